/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_errno.h>
#include <apr_getopt.h>
#include <apr_strings.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "query/query.h"

static const au_query_command *const commands[] = {&au_query_top, &au_query_collapsed, &au_query_events,
                                                   &au_query_check};
enum { COMMANDS = sizeof commands / sizeof commands[0], OPTION_UNFINISHED = 256, DEFAULT_ROWS = 10 };

static const apr_getopt_option_t option_table[] = {
    {"rows", 'n', 1, "top: how many at most; 0: all (default 10)"},
    {"unfinished", OPTION_UNFINISHED, 0, "check: cut after the last whole sample first"},
    {"help", '?', 0, "this text"},
    {"version", 'V', 0, "the version"},
    {NULL, 0, 0, NULL},
};

static void print_help(au_query_output *out)
{
    au_query_print(out, "Usage: austin-query COMMAND [OPTION...] [FILE]\n\n"
                        "Answers questions about a profile that austin has written. FILE may be compressed\n"
                        "with zstd, and it need not be finished; - or none is standard input.\n\nCommands:\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        au_query_print(out, "  %-28s %s\n", commands[i]->synopsis, commands[i]->help);
    }
    au_query_print(out, "\nOptions:\n");
    for (const apr_getopt_option_t *option = option_table; option->name; option++) {
        char name[32];
        if (option->optch < OPTION_UNFINISHED) {
            apr_snprintf(name, sizeof name, "-%c, --%s%s", option->optch, option->name, option->has_arg ? "=ROWS" : "");
        } else {
            apr_snprintf(name, sizeof name, "    --%s", option->name);
        }
        au_query_print(out, "  %-28s %s\n", name, option->description);
    }
    au_query_print(out, "\nIn a memory profile shares are of the memory that was gained. check prints one\n"
                        "finding a line, with its byte offset. Exit status: 0; of check 1 if a rule is\n"
                        "broken, 0 for warnings alone; 5 if the input cannot be read; 64 for wrong usage.\n");
}

static void complain(apr_file_t *err, const au_error *error)
{
    apr_file_printf(err, "austin-query: %s\n", error->message);
    if (error->cause) {
        apr_file_printf(err, "  %s\n", error->cause);
    }
    if (error->hint) {
        apr_file_printf(err, "  %s\n", error->hint);
    }
}

static au_error *usage_error(const char *what, const char *which)
{
    return au_error_hint(au_error_create(AU_ERR_USAGE, 0, "%s%s", what, which),
                         "Try austin-query --help for the commands and options.");
}

static void keep_quiet(void *context, const char *format, ...)
{
    (void)context;
    (void)format;
}

/* Stands for "-" while APR looks at the words: it takes a single dash for an option without a letter. */
static const char standard_input[] = "(standard input)";

typedef struct arguments {
    const au_query_command *command;
    au_query_options options;
    int help, version;
} arguments;

static au_error *parse_rows(const char *text, uint64_t *rows)
{
    char *end;
    errno = 0;
    *rows = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text < '0' || *text > '9') {
        return usage_error("-n wants a number of rows, not ", text);
    }
    return NULL;
}

static au_error *parse(apr_pool_t *pool, int argc, const char *const *argv, arguments *out)
{
    apr_getopt_t *state;
    const char **words = apr_pcalloc(pool, ((size_t)argc + 1) * sizeof *words);
    for (int i = 0; i < argc; i++) {
        words[i] = i && strcmp(argv[i], "-") == 0 ? standard_input : argv[i];
    }
    *out = (arguments){.options = {.file = "-", .rows = DEFAULT_ROWS}};
    if (apr_getopt_init(&state, pool, argc, words) != APR_SUCCESS) {
        return au_error_memory();
    }
    state->interleave = 1;
    state->errfn = keep_quiet;
    int letter, rows_given = 0;
    const char *value;
    apr_status_t status;
    while ((status = apr_getopt_long(state, option_table, &letter, &value)) == APR_SUCCESS) {
        au_error *error = NULL;
        switch (letter) {
        case 'n':
            rows_given = 1;
            error = parse_rows(*value == '=' ? value + 1 : value, &out->options.rows);
            break;
        case OPTION_UNFINISHED:
            out->options.unfinished = 1;
            break;
        case 'V':
            out->version = 1;
            break;
        default:
            out->help = 1;
            break;
        }
        if (error) {
            return error;
        }
    }
    if (status == APR_BADCH || status == APR_BADARG) {
        const char *word = argv[state->ind - 1 < argc ? state->ind - 1 : argc - 1];
        return usage_error(status == APR_BADARG ? "an option lacks its argument: " : "unknown option: ", word);
    }
    if (out->help || out->version) {
        return NULL;
    }
    int count = argc - state->ind;
    const char *const *word = state->argv + state->ind;
    if (count == 0) {
        return usage_error("no command given", "");
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, word[0]) == 0) {
            out->command = commands[i];
        }
    }
    if (!out->command) {
        return usage_error("unknown command: ", word[0]);
    }
    if (count > 2) {
        return usage_error("one file only, please; this is one too many: ", word[2]);
    }
    if (count == 2) {
        out->options.file = word[1] == standard_input ? "-" : word[1];
    }
    if (rows_given && out->command != &au_query_top) {
        return usage_error("-n is for top, not for ", out->command->name);
    }
    if (out->options.unfinished && out->command != &au_query_check) {
        return usage_error("--unfinished is for check, not for ", out->command->name);
    }
    return NULL;
}

static void say_how_it_ended(apr_file_t *err, const arguments *args, const au_query_end *end)
{
    const char *name = strcmp(args->options.file, "-") == 0 ? "standard input" : args->options.file;
    if (end->unfinished && args->command != &au_query_check) {
        apr_file_printf(err, "austin-query: %s is not finished; this is what is there\n", name);
    }
    const au_query_warnings *warnings = &end->warnings;
    if (warnings->count) {
        apr_file_printf(err, "austin-query: %s: %" PRIu64 " warning%s, the first at byte %" PRIu64 " (%s: %s)\n", name,
                        warnings->count, warnings->count == 1 ? "" : "s", warnings->first_offset,
                        au_mojo_rule_name(warnings->first_rule), au_mojo_rule_text(warnings->first_rule));
    }
}

int au_query_main(int argc, const char *const *argv)
{
    apr_pool_t *pool;
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        return AU_ERR_MEMORY;
    }
    apr_file_t *err;
    au_query_output out = {0};
    if (apr_file_open_stdout(&out.file, pool) != APR_SUCCESS || apr_file_open_stderr(&err, pool) != APR_SUCCESS) {
        apr_pool_destroy(pool);
        return AU_ERR_IO;
    }
    arguments args;
    int status = 0;
    au_error *error = parse(pool, argc, argv, &args);
    if (!error && args.command) {
        au_query_end end;
        error = au_query_run(args.command, &args.options, &out, pool, &end);
        if (!error) {
            say_how_it_ended(err, &args, &end);
            status = end.status;
        }
    } else if (!error) {
        if (args.version) {
            au_query_print(&out, "austin-query " AU_QUERY_VERSION "\n");
        } else {
            print_help(&out);
        }
        error = au_query_flush(&out);
    }
    if (error) {
        /* Whoever reads us may have seen enough: `| head` is no reason for words. */
        if (!APR_STATUS_IS_EPIPE(error->os_code)) {
            complain(err, error);
        }
        status = (int)error->code;
        au_error_clear(error);
    }
    au_buf_deinit(&out.text);
    apr_pool_destroy(pool);
    return status;
}
