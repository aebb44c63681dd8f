/* SPDX-License-Identifier: Apache-2.0 */
#include "app/options.h"

#include <apr_general.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/app/suites.h"

static apr_pool_t *pool;
static const char *const *words; /* of the line that was parsed last */

static void setup(void)
{
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
}

static void teardown(void)
{
    apr_pool_destroy(pool);
}

/* Parses "austin " + line; words are separated by single blanks, and "~" stands for an empty word. */
static au_error *parse(const char *line, au_options *options)
{
    const char **argv = apr_pcalloc(pool, 64 * sizeof *argv);
    int argc = 0;
    argv[argc++] = "austin";
    char *rest = apr_pstrdup(pool, line), *state = NULL;
    for (char *word = strtok_r(rest, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
        argv[argc++] = strcmp(word, "~") == 0 ? "" : word;
    }
    words = argv;
    return au_options_parse(argc, argv, pool, options);
}

static au_options accepted(const char *line)
{
    au_options options;
    au_error *error = parse(line, &options);
    ck_assert_msg(error == NULL, "'%s': %s", line, error ? error->message : "");
    return options;
}

/* The whole text of the error, for searching. */
static const char *refused(const char *line, au_errcode code)
{
    au_options options;
    au_error *error = parse(line, &options);
    ck_assert_msg(error != NULL, "'%s' is accepted", line);
    ck_assert_msg(error->code == code, "'%s': %d, %s", line, (int)error->code, error->message);
    const char *text = apr_pstrcat(pool, error->message, " | ", error->cause ? error->cause : "", " | ",
                                   error->hint ? error->hint : "", NULL);
    au_error_clear(error);
    return text;
}

static void holds(const char *text, const char *needle)
{
    ck_assert_msg(strstr(text, needle) != NULL, "no '%s' in '%s'", needle, text);
}

/* ---- the line as a whole ------------------------------------------------------------------------------------ */

START_TEST(nothing_is_usage)
{
    ck_assert_int_eq(accepted("").action, AU_ACTION_USAGE);
}
END_TEST

START_TEST(defaults)
{
    au_options options = accepted("python app.py");
    ck_assert_int_eq(options.action, AU_ACTION_SAMPLE);
    ck_assert_int_eq(options.mode, AU_MODE_WALL);
    ck_assert_uint_eq(options.interval_us, 100);
    ck_assert_uint_eq(options.timeout_ms, 3000);
    ck_assert_uint_eq(options.exposure_ms, 0);
    ck_assert_ptr_null(options.output);
    ck_assert_int_eq(options.pipe, 0);
    ck_assert_int_eq(options.compress, 0);
    ck_assert_int_eq(options.pid, 0);
    ck_assert_str_eq(options.command[0], "python");
    ck_assert_str_eq(options.command[1], "app.py");
    ck_assert_ptr_null(options.command[2]);
}
END_TEST

START_TEST(command_keeps_its_options)
{
    au_options options = accepted("-i 1ms python x.py -p 3 --help -c -- -n");
    ck_assert_uint_eq(options.interval_us, 1000);
    ck_assert_int_eq(options.pid, 0);
    ck_assert_int_eq(options.mode, AU_MODE_WALL);
    ck_assert_ptr_eq(options.command, words + 3);
    ck_assert_str_eq(options.command[5], "-c");
    ck_assert_str_eq(options.command[6], "--");

    options = accepted("python -c pass");
    ck_assert_ptr_eq(options.command, words + 1);
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    au_options options = accepted("-c -- -x -c");
    ck_assert_int_eq(options.mode, AU_MODE_CPU);
    ck_assert_str_eq(options.command[0], "-x");
    ck_assert_str_eq(options.command[1], "-c");

    options = accepted("-- python --");
    ck_assert_str_eq(options.command[0], "python");
    ck_assert_str_eq(options.command[1], "--");

    refused("--", AU_ERR_COMMAND);
    refused("-c --", AU_ERR_COMMAND);
}
END_TEST

START_TEST(command_or_pid)
{
    holds(refused("-c", AU_ERR_COMMAND), "neither a command nor a PID");
    refused("-i 1ms", AU_ERR_COMMAND);
    refused("-o file", AU_ERR_COMMAND);
    holds(refused("-p 12 python", AU_ERR_USAGE), "cannot be combined");
    refused("-p 12 -- python", AU_ERR_USAGE);
    ck_assert_int_eq(accepted("-p 12").pid, 12);
    ck_assert_ptr_null(accepted("-p 12 --").command);
}
END_TEST

START_TEST(texts_end_the_line)
{
    ck_assert_int_eq(accepted("-?").action, AU_ACTION_HELP);
    ck_assert_int_eq(accepted("--help").action, AU_ACTION_HELP);
    ck_assert_int_eq(accepted("--usage").action, AU_ACTION_USAGE);
    ck_assert_int_eq(accepted("-V").action, AU_ACTION_VERSION);
    ck_assert_int_eq(accepted("--version").action, AU_ACTION_VERSION);
    ck_assert_int_eq(accepted("-c -V").action, AU_ACTION_VERSION);
    ck_assert_int_eq(accepted("-cV").action, AU_ACTION_VERSION);
    ck_assert_int_eq(accepted("-V --nonsense").action, AU_ACTION_VERSION);
    refused("--nonsense -V", AU_ERR_USAGE);
}
END_TEST

START_TEST(flags_can_be_grouped)
{
    au_options options = accepted("-cP -p 1");
    ck_assert_int_eq(options.mode, AU_MODE_CPU);
    ck_assert_int_eq(options.pipe, 1);
    options = accepted("-Pi 1ms -cp 123");
    ck_assert_int_eq(options.pipe, 1);
    ck_assert_uint_eq(options.interval_us, 1000);
    ck_assert_int_eq(options.mode, AU_MODE_CPU);
    ck_assert_int_eq(options.pid, 123);
    ck_assert_int_eq(accepted("-Pcp123").pid, 123);
}
END_TEST

START_TEST(the_last_one_counts)
{
    au_options options = accepted("-i 1ms -i 2ms -p 1 --pid=2");
    ck_assert_uint_eq(options.interval_us, 2000);
    ck_assert_int_eq(options.pid, 2);
}
END_TEST

/* ---- every option of the table ------------------------------------------------------------------------------ */

START_TEST(table_is_sound)
{
    size_t count;
    const au_option *table = au_option_table(&count);
    ck_assert_uint_eq(count, 18);
    for (size_t i = 0; i < count; i++) {
        ck_assert_ptr_nonnull(table[i].name);
        ck_assert_ptr_nonnull(table[i].help);
        ck_assert_int_eq(table[i].value != AU_VALUE_NONE, table[i].placeholder != NULL);
        ck_assert_int_eq(table[i].help[strlen(table[i].help) - 1], '.');
        for (size_t j = 0; j < i; j++) {
            ck_assert_int_ne(table[i].code, table[j].code);
            ck_assert_str_ne(table[i].name, table[j].name);
        }
    }
}
END_TEST

static const char *sample_value(const au_option *option)
{
    return option->value == AU_VALUE_PATH ? "file" : "7";
}

START_TEST(every_form_of_every_option)
{
    size_t count;
    const au_option *option = &au_option_table(&count)[_i];
    char line[256], label[64];
    const char *value = sample_value(option);
    const char *forms[5];
    int n = 0;
    if (option->value != AU_VALUE_NONE) {
        forms[n++] = apr_psprintf(pool, "--%s=%s", option->name, value);
        forms[n++] = apr_psprintf(pool, "--%s %s", option->name, value);
        if (option->code < 256) {
            forms[n++] = apr_psprintf(pool, "-%c%s", option->code, value);
            forms[n++] = apr_psprintf(pool, "-%c %s", option->code, value);
            forms[n++] = apr_psprintf(pool, "-%c=%s", option->code, value);
        }
    } else {
        forms[n++] = apr_psprintf(pool, "--%s", option->name);
        if (option->code < 256) {
            forms[n++] = apr_psprintf(pool, "-%c", option->code);
        }
        snprintf(line, sizeof line, "--%s=1", option->name);
        holds(refused(line, AU_ERR_USAGE), "takes no argument");
        if (option->code < 256) {
            snprintf(line, sizeof line, "-%c=1", option->code);
            holds(refused(line, AU_ERR_USAGE), "takes no argument");
        }
    }
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof line, "%s%s", forms[i], option->value == AU_VALUE_PID ? "" : " python");
        if (option->available) {
            accepted(line);
        } else {
            const char *text = refused(line, AU_ERR_USAGE);
            holds(text, "not available yet");
            holds(text, au_option_label(option, label, sizeof label));
        }
    }
}
END_TEST

START_TEST(every_argument_must_be_there)
{
    size_t count;
    const au_option *option = &au_option_table(&count)[_i];
    if (option->value == AU_VALUE_NONE) {
        return;
    }
    char line[64];
    snprintf(line, sizeof line, "--%s", option->name);
    holds(refused(line, AU_ERR_USAGE), "needs an argument");
    snprintf(line, sizeof line, "-%c", option->code);
    holds(refused(line, AU_ERR_USAGE), "needs an argument");
    snprintf(line, sizeof line, "-P%c", option->code);
    holds(refused(line, AU_ERR_USAGE), "needs an argument");
    if (option->available) {
        snprintf(line, sizeof line, "-%c -P python", option->code);
        holds(refused(line, AU_ERR_USAGE), "needs an argument");
        snprintf(line, sizeof line, "--%s -5 python", option->name);
        holds(refused(line, AU_ERR_USAGE), "needs an argument");
        snprintf(line, sizeof line, "-%c -- python", option->code);
        holds(refused(line, AU_ERR_USAGE), "needs an argument");
        snprintf(line, sizeof line, "--%s= python", option->name);
        refused(line, AU_ERR_USAGE);
        snprintf(line, sizeof line, "-%c= python", option->code);
        refused(line, AU_ERR_USAGE);
        snprintf(line, sizeof line, "-%c ~ python", option->code);
        refused(line, AU_ERR_USAGE);
    }
}
END_TEST

START_TEST(no_prefix_of_a_long_name)
{
    size_t count;
    const au_option *option = &au_option_table(&count)[_i];
    for (size_t length = 1; length < strlen(option->name); length++) {
        char line[96];
        snprintf(line, sizeof line, "--%.*s python", (int)length, option->name);
        holds(refused(line, AU_ERR_USAGE), "unknown option");
        snprintf(line, sizeof line, "--%.*s=1 python", (int)length, option->name);
        holds(refused(line, AU_ERR_USAGE), "unknown option");
    }
}
END_TEST

START_TEST(one_dash_for_a_long_name)
{
    size_t count;
    const au_option *option = &au_option_table(&count)[_i];
    char line[64], meant[64];
    snprintf(line, sizeof line, "-%s 1 python", option->name);
    snprintf(meant, sizeof meant, "did you mean --%s?", option->name);
    if (strcmp(option->name, "gc") == 0) {
        holds(refused(line, AU_ERR_USAGE), "-g/--gc is not available yet"); /* -g -c is a legal group */
    } else {
        holds(refused(line, AU_ERR_USAGE), meant);
    }
}
END_TEST

/* ---- values ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *line;
    uint64_t interval_us, timeout_ms, exposure_ms; /* UINT64_MAX: not looked at */
} good[] = {
#define ANY UINT64_MAX
    {"-i 0", 0, ANY, ANY},
    {"-i1ms", 1000, ANY, ANY},
    {"-i 1ms", 1000, ANY, ANY},
    {"-i=1ms", 1000, ANY, ANY},
    {"--interval=1ms", 1000, ANY, ANY},
    {"--interval 1ms", 1000, ANY, ANY},
    {"-i 250", 250, ANY, ANY},
    {"-i 250us", 250, ANY, ANY},
    {"-i 2s", 2000000, ANY, ANY},
    {"-i 007", 7, ANY, ANY},
    {"-t 100", ANY, 100, ANY},
    {"-t 100ms", ANY, 100, ANY},
    {"-t 5s", ANY, 5000, ANY},
    {"-t 0", ANY, 0, ANY},
    {"-x 3", ANY, ANY, 3000},
    {"-x 3s", ANY, ANY, 3000},
    {"-x 500ms", ANY, ANY, 500},
    {"-x 0", ANY, ANY, 0},
#undef ANY
};

START_TEST(good_numbers)
{
    char line[96];
    snprintf(line, sizeof line, "%s python", good[_i].line);
    au_options options = accepted(line);
    if (good[_i].interval_us != UINT64_MAX) {
        ck_assert_uint_eq(options.interval_us, good[_i].interval_us);
    }
    if (good[_i].timeout_ms != UINT64_MAX) {
        ck_assert_uint_eq(options.timeout_ms, good[_i].timeout_ms);
    }
    if (good[_i].exposure_ms != UINT64_MAX) {
        ck_assert_uint_eq(options.exposure_ms, good[_i].exposure_ms);
    }
}
END_TEST

static const struct {
    const char *line, *needle;
} bad[] = {
    {"-i=-5", "negative"},
    {"-i-5", "negative"},
    {"--interval=-5", "negative"},
    {"-i 1.5ms", "whole number"},
    {"-i 1m", "unit"},
    {"-i 1MS", "unit"},
    {"-i 1ms2", "unit"},
    {"-i ms", "digit"},
    {"-i +1", "digit"},
    {"-i 0x10", "unit"},
    {"-i 18446744073709551616", "too large"},
    {"-i 99999999999999999999999999", "too large"},
    {"-i 18446744073709551615", "too large"},
    {"-i 9223372036854775807s", "too large"},
    {"-t 1us", "unit"},
    {"-t 18446744073709551615s", "too large"},
    {"-x 1us", "unit"},
    {"-x 1.5", "whole number"},
    {"-x 18446744073709551", "too large"},
    {"-p 0", "above 0"},
    {"-p=-1", "negative"},
    {"-p 12a", "whole number"},
    {"-p 2147483648", "too large"},
    {"-p 4294967297", "too large"},
    {"-o=", "empty"},
};

START_TEST(bad_values)
{
    char line[96];
    snprintf(line, sizeof line, "%s python", bad[_i].line);
    const char *text = refused(line, AU_ERR_USAGE);
    holds(text, bad[_i].needle);
    holds(text, "invalid");
}
END_TEST

START_TEST(output_names)
{
    ck_assert_str_eq(accepted("-o a.mojo python").output, "a.mojo");
    ck_assert_str_eq(accepted("-oa.mojo python").output, "a.mojo");
    ck_assert_str_eq(accepted("-o=a.mojo python").output, "a.mojo");
    ck_assert_str_eq(accepted("--output==a python").output, "=a"); /* only a short option has a sign too many */
    ck_assert_int_eq(accepted("-o a.mojo python").compress, 0);
    ck_assert_int_eq(accepted("-o a.mojo.zst python").compress, 1);
    ck_assert_int_eq(accepted("-o a.zst.mojo python").compress, 0);
    ck_assert_int_eq(accepted("--compress python").compress, 1);
}
END_TEST

static const struct {
    const char *line, *needle;
} hints[] = {
    {"-mem python x.py", "did you mean --memory?"},
    {"--intervall=1ms python", "did you mean --interval?"},
    {"--pip python", "did you mean --pipe?"},
    {"--exposrue=1 python", "did you mean --exposure?"},
    {"-out file python", "did you mean --output?"},
    {"-b python", "MOJO is the only format"},
    {"--binary python", "MOJO is the only format"},
    {"-s python", "-c/--cpu"},
    {"--sleepless python", "-c/--cpu"},
    {"-h", "--help"},
    {"- python", "unknown option"},
    {"--=3 python", "unknown option"},
    {"-Z python", "unknown option '-Z'"},
    {"-cZ python", "unknown option '-cZ'"},
    {"-\xC3\xA9 python", "unknown option"},
    {"--\xFF python", "unknown option"},
};

START_TEST(unknown_options_get_a_hint)
{
    holds(refused(hints[_i].line, AU_ERR_USAGE), hints[_i].needle);
}
END_TEST

START_TEST(any_words_do_no_harm)
{
    static const char letters[] = "-=CcxfgikmnopPtwV?s10u. ~z\x80";
    unsigned state = 12345;
    for (int round = 0; round < 20000; round++) {
        char line[40];
        size_t length = 0, want = 1 + (size_t)round % 30;
        while (length < want) {
            state = state * 1103515245u + 12345u;
            line[length++] = letters[(state >> 16) % (sizeof letters - 1)];
        }
        line[length] = '\0';
        au_options options;
        au_error *error = parse(line, &options);
        if (error) {
            ck_assert(error->code == AU_ERR_USAGE || error->code == AU_ERR_COMMAND);
            au_error_clear(error);
        } else if (options.action == AU_ACTION_SAMPLE) {
            ck_assert((options.pid > 0) != (options.command != NULL));
        }
        if (round % 1000 == 0) {
            apr_pool_clear(pool);
        }
    }
}
END_TEST

Suite *au_options_suite(void)
{
    size_t count;
    (void)au_option_table(&count);
    Suite *suite = suite_create("options");
    TCase *group = tcase_create("options");
    tcase_add_checked_fixture(group, setup, teardown);
    tcase_add_test(group, nothing_is_usage);
    tcase_add_test(group, defaults);
    tcase_add_test(group, command_keeps_its_options);
    tcase_add_test(group, two_dashes_end_the_options);
    tcase_add_test(group, command_or_pid);
    tcase_add_test(group, texts_end_the_line);
    tcase_add_test(group, flags_can_be_grouped);
    tcase_add_test(group, the_last_one_counts);
    tcase_add_test(group, table_is_sound);
    tcase_add_loop_test(group, every_form_of_every_option, 0, (int)count);
    tcase_add_loop_test(group, every_argument_must_be_there, 0, (int)count);
    tcase_add_loop_test(group, no_prefix_of_a_long_name, 0, (int)count);
    tcase_add_loop_test(group, one_dash_for_a_long_name, 0, (int)count);
    tcase_add_loop_test(group, good_numbers, 0, (int)(sizeof good / sizeof good[0]));
    tcase_add_loop_test(group, bad_values, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(group, output_names);
    tcase_add_loop_test(group, unknown_options_get_a_hint, 0, (int)(sizeof hints / sizeof hints[0]));
    tcase_add_test(group, any_words_do_no_harm);
    suite_add_tcase(suite, group);
    return suite;
}
