/* SPDX-License-Identifier: Apache-2.0 */
#include "app/options.h"

#include <apr_getopt.h>
#include <stdio.h>
#include <string.h>

enum { CODE_USAGE = 256, CODE_COMPRESS };

static const au_option table[] = {
    {'C', AU_VALUE_NONE, 0, "children", NULL, "Sample the child processes too, at any depth."},
    {'c', AU_VALUE_NONE, 1, "cpu", NULL, "Sample only the threads that are on a CPU."},
    {CODE_COMPRESS, AU_VALUE_NONE, 1, "compress", NULL,
     "Write the stream as a zstd file. An output whose name ends in .zst is compressed without it."},
    {'x', AU_VALUE_EXPOSURE, 1, "exposure", "N",
     "Stop by itself after N seconds (or 500ms); a program that was launched is then interrupted. Default: no limit."},
    {'f', AU_VALUE_NONE, 0, "full", NULL, "Put time, idle state and memory on every sample."},
    {'g', AU_VALUE_NONE, 0, "gc", NULL, "Mark the samples that were taken while garbage was collected."},
    {'i', AU_VALUE_INTERVAL, 1, "interval", "N",
     "Aimed time between two sampling passes: microseconds, or 1ms, 1s. 0 means no pause at all. Default: 100us."},
    {'k', AU_VALUE_NONE, 0, "kernel", NULL, "Add the frames of the kernel."},
    {'m', AU_VALUE_NONE, 0, "memory", NULL, "Measure resident memory instead of time."},
    {'n', AU_VALUE_NONE, 0, "native", NULL, "Add the native frames."},
    {'o', AU_VALUE_PATH, 1, "output", "FILE", "Where the samples go. Default: standard output."},
    {'p', AU_VALUE_PID, 1, "pid", "PID", "Attach to this process instead of launching a command."},
    {'P', AU_VALUE_NONE, 1, "pipe", NULL,
     "For a reader at the other end of a pipe: no words but errors and warnings, and every sample is passed on at "
     "once."},
    {'t', AU_VALUE_TIMEOUT, 1, "timeout", "N",
     "How long to wait for a Python interpreter to appear: milliseconds, or 3s. Default: 3000ms."},
    {'w', AU_VALUE_PID, 0, "where", "PID", "Print the stacks of a process once and leave."},
    {'?', AU_VALUE_NONE, 1, "help", NULL, "Show this text and leave."},
    {CODE_USAGE, AU_VALUE_NONE, 1, "usage", NULL, "Show a short synopsis and leave."},
    {'V', AU_VALUE_NONE, 1, "version", NULL, "Show name and version and leave."},
};

enum { TABLE_COUNT = sizeof table / sizeof table[0] };

const au_option *au_option_table(size_t *count)
{
    *count = TABLE_COUNT;
    return table;
}

const char *au_option_label(const au_option *option, char *buf, size_t cap)
{
    if (option->code > 255) {
        snprintf(buf, cap, "--%s", option->name);
    } else {
        snprintf(buf, cap, "-%c/--%s", option->code, option->name);
    }
    return buf;
}

static const au_option *by_code(int code)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (table[i].code == code) {
            return &table[i];
        }
    }
    return NULL;
}

static const au_option *by_name(const char *name, size_t length)
{
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

/* ---- what was meant ----------------------------------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 32 };

/* Edits (insert, drop, change, swap of neighbours) between two short words; large for long ones. */
static size_t edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[3][NAME_MAX_BYTES + 1];
    if (a_length > NAME_MAX_BYTES || b_length > NAME_MAX_BYTES) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_length; j++) {
        row[0][j] = j;
        row[1][j] = j;
        row[2][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *two_before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_before[j - 2] + 1 < best) {
                best = two_before[j - 2] + 1;
            }
            now[j] = best;
        }
    }
    return row[a_length % 3][b_length];
}

/* The option whose long name a word without dashes looks like, or NULL. */
static const au_option *meant(const char *word, size_t length)
{
    const au_option *found = by_name(word, length);
    size_t best = length < 6 ? 2 : 3; /* fewer edits than this */
    for (size_t i = 0; i < TABLE_COUNT && !found && length >= 2; i++) {
        if (strncmp(table[i].name, word, length) == 0) {
            found = &table[i];
        }
    }
    for (size_t i = 0, exact = found != NULL; i < TABLE_COUNT && !exact && length >= 3; i++) {
        size_t distance = edits(word, length, table[i].name, strlen(table[i].name));
        if (distance < best) {
            best = distance;
            found = &table[i];
        }
    }
    return found;
}

/* Options that Austin had before 4.0 and that are still in people's scripts. */
static const char *formerly(const char *word)
{
    static const struct {
        const char *word, *now;
    } gone[] = {
        {"-b", "MOJO is the only format now: leave it out"},
        {"--binary", "MOJO is the only format now: leave it out"},
        {"-s", "it is called -c/--cpu now"},
        {"--sleepless", "it is called -c/--cpu now"},
        {"-h", "did you mean -? or --help?"},
        {"-e", "it is gone: samples of the idle threads are always there, unless -c is given"},
    };
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        if (strcmp(gone[i].word, word) == 0) {
            return gone[i].now;
        }
    }
    return NULL;
}

static au_error *unknown(const char *word)
{
    const char *name = word + (word[1] == '-' ? 2 : 1);
    const char *now = formerly(word);
    const au_option *option = now ? NULL : meant(name, strcspn(name, "="));
    au_error *error = au_error_create(AU_ERR_USAGE, 0, "unknown option '%s'", word);
    if (now) {
        error = au_error_hint(error, "%s", now);
    } else if (option) {
        error = au_error_hint(error, "did you mean --%s?", option->name);
    }
    return error;
}

/* ---- one word ----------------------------------------------------------------------------------------------- */

static au_error *takes_no_argument(const au_option *option, const char *word)
{
    char label[64];
    return au_error_create(AU_ERR_USAGE, 0, "option %s takes no argument ('%s')",
                           au_option_label(option, label, sizeof label), word);
}

/*
 * A long name behind one dash reads as a group of letters: `-output x` would quietly write to a file `utput`. What is
 * a group of known flags is left alone, and so is a value that only looks like a name to two letters.
 */
static const au_option *slipped(const char *word)
{
    size_t length = strcspn(word + 1, "=");
    if (length < 3) {
        return NULL;
    }
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (strncmp(table[i].name, word + 1, length) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

static au_error *check_group(const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const au_option *option = (unsigned char)*letter < 128 ? by_code(*letter) : NULL;
        if (!option) {
            if (*letter == '=' && letter > word + 1) {
                return takes_no_argument(by_code(letter[-1]), word);
            }
            return unknown(word);
        }
        if (option->value != AU_VALUE_NONE) {
            return letter[1] && slipped(word) ? unknown(word) : NULL;
        }
    }
    return NULL;
}

static au_error *check_long(const char *word)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const au_option *option = by_name(name, length);
    if (!option) {
        return unknown(word);
    }
    return name[length] && option->value == AU_VALUE_NONE ? takes_no_argument(option, word) : NULL;
}

/* Judges a word that begins with a dash before apr_getopt takes it apart, so that we can say what is wrong with it. */
static au_error *check_word(const char *word)
{
    if (strcmp(word, "--") == 0) {
        return NULL;
    }
    if (word[1] == '\0') {
        return unknown(word);
    }
    return word[1] == '-' ? check_long(word) : check_group(word);
}

/* ---- values ------------------------------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

/* Decimal digits and one of the units. Returns NULL, or the reason why not. */
static const char *quantity(const char *text, const unit *units, uint64_t limit, uint64_t *out)
{
    if (*text == '-') {
        return "it must not be negative";
    }
    if (*text < '0' || *text > '9') {
        return "it must begin with a decimal digit";
    }
    uint64_t value = 0;
    int over = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        over |= value > (UINT64_MAX - digit) / 10;
        value = over ? 0 : value * 10 + digit;
    }
    int has_units = units[1].name != NULL;
    while (units->name && strcmp(units->name, text) != 0) {
        units++;
    }
    if (!units->name) {
        return *text == '.' || *text == ',' || !has_units ? "it must be a whole number" : "its unit is not known";
    }
    if (over || value > limit / units->factor) {
        return "it is too large";
    }
    *out = value * units->factor;
    return NULL;
}

/* Times are added to clocks in signed 64-bit nanoseconds later on; a hundred years are enough for everybody. */
#define CENTURY_S (UINT64_C(100) * 366 * 86400)

static const char *parse_value(const au_option *option, const char *text, au_options *options)
{
    static const unit interval_units[] = {{"", 1}, {"us", 1}, {"ms", 1000}, {"s", 1000000}, {NULL, 0}};
    static const unit timeout_units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {NULL, 0}};
    static const unit exposure_units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {NULL, 0}};
    static const unit no_units[] = {{"", 1}, {NULL, 0}};
    const char *problem = NULL;
    uint64_t number = 0;

    switch (option->value) {
    case AU_VALUE_INTERVAL:
        return quantity(text, interval_units, CENTURY_S * 1000000, &options->interval_us);
    case AU_VALUE_TIMEOUT:
        return quantity(text, timeout_units, CENTURY_S * 1000, &options->timeout_ms);
    case AU_VALUE_EXPOSURE:
        return quantity(text, exposure_units, CENTURY_S * 1000, &options->exposure_ms);
    case AU_VALUE_PID:
        problem = quantity(text, no_units, INT32_MAX, &number);
        if (!problem && number == 0) {
            problem = "it must be above 0";
        }
        options->pid = (au_pid)number;
        return problem;
    case AU_VALUE_PATH:
        options->output = text;
        return *text ? NULL : "it is empty";
    case AU_VALUE_NONE:
        break;
    }
    return NULL;
}

static au_error *bad_value(const au_option *option, const char *text, const char *problem)
{
    static const char *const expected[] = {
        [AU_VALUE_NONE] = "nothing",
        [AU_VALUE_INTERVAL] = "a whole number with no unit (microseconds), us, ms or s, for example 1ms",
        [AU_VALUE_TIMEOUT] = "a whole number with no unit (milliseconds), ms or s, for example 5s",
        [AU_VALUE_EXPOSURE] = "a whole number with no unit (seconds), s or ms, for example 10",
        [AU_VALUE_PID] = "the number of a process, for example 4242",
        [AU_VALUE_PATH] = "the name of a file",
    };
    static const char *const what[] = {
        [AU_VALUE_NONE] = "value",        [AU_VALUE_INTERVAL] = "interval", [AU_VALUE_TIMEOUT] = "timeout",
        [AU_VALUE_EXPOSURE] = "exposure", [AU_VALUE_PID] = "PID",           [AU_VALUE_PATH] = "output file",
    };
    char label[64];
    au_error *error = au_error_create(AU_ERR_USAGE, 0, "invalid %s '%s' for option %s", what[option->value], text,
                                      au_option_label(option, label, sizeof label));
    error = au_error_cause(error, "%s", problem);
    return au_error_hint(error, "give %s", expected[option->value]);
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* ---- the whole line ----------------------------------------------------------------------------------------- */

/* `word` is the last word that was used: the value itself, or what it is glued to. */
static au_error *apply(const au_option *option, const char *value, const char *word, au_options *options)
{
    char label[64];
    au_option_label(option, label, sizeof label);
    if (!option->available) {
        return au_error_create(AU_ERR_USAGE, 0, "option %s is not available yet", label);
    }
    if (option->value != AU_VALUE_NONE) {
        if (value == word && value[0] == '-') {
            return au_error_cause(au_error_create(AU_ERR_USAGE, 0, "option %s needs an argument", label),
                                  "'%s' begins with a dash, so it is not taken as one", value);
        }
        if (value != word && value[0] == '=' && word[1] != '-') { /* -i=1ms: apr_getopt leaves the sign to us */
            value++;
        }
        const char *problem = parse_value(option, value, options);
        return problem ? bad_value(option, value, problem) : NULL;
    }
    switch (option->code) {
    case 'c':
        options->mode = AU_MODE_CPU;
        break;
    case 'P':
        options->pipe = 1;
        break;
    case CODE_COMPRESS:
        options->compress = 1;
        break;
    case '?':
        options->action = AU_ACTION_HELP;
        break;
    case CODE_USAGE:
        options->action = AU_ACTION_USAGE;
        break;
    case 'V':
        options->action = AU_ACTION_VERSION;
        break;
    }
    return NULL;
}

static au_error *check_whole(au_options *options)
{
    if (options->pid && options->command) {
        return au_error_hint(
            au_error_create(AU_ERR_USAGE, 0, "a PID cannot be combined with a command ('%s')", options->command[0]),
            "give either -p %lld, or the command", (long long)options->pid);
    }
    if (!options->pid && !options->command) {
        return au_error_hint(au_error_create(AU_ERR_COMMAND, 0, "there is neither a command nor a PID to sample"),
                             "say what to run, for example 'austin -o profile.mojo python app.py', or what to attach "
                             "to, for example 'austin -o profile.mojo -p 4242'");
    }
    if (options->output && ends_with(options->output, ".zst")) {
        options->compress = 1;
    }
    return NULL;
}

au_error *au_options_parse(int argc, const char *const *argv, apr_pool_t *pool, au_options *options)
{
    *options = (au_options){.action = argc > 1 ? AU_ACTION_SAMPLE : AU_ACTION_USAGE,
                            .mode = AU_MODE_WALL,
                            .interval_us = 100,
                            .timeout_ms = 3000};

    apr_getopt_option_t known[TABLE_COUNT + 1];
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        known[i] = (apr_getopt_option_t){table[i].name, table[i].code, table[i].value != AU_VALUE_NONE, table[i].help};
    }
    known[TABLE_COUNT] = (apr_getopt_option_t){NULL, 0, 0, NULL};

    apr_getopt_t *reader;
    if (apr_getopt_init(&reader, pool, argc, argv) != APR_SUCCESS) {
        return au_error_memory();
    }
    reader->errfn = NULL;   /* the words are ours */
    reader->interleave = 0; /* the first word that is no option begins the command */

    while (options->action == AU_ACTION_SAMPLE) {
        if (*reader->place == '\0' && reader->ind < argc && argv[reader->ind][0] == '-') {
            au_error *error = check_word(argv[reader->ind]);
            if (error) {
                return error;
            }
        }
        int code = 0;
        const char *value = NULL;
        apr_status_t status = apr_getopt_long(reader, known, &code, &value);
        if (status == APR_EOF) {
            break;
        }
        const au_option *option = by_code(code);
        if (status != APR_SUCCESS || !option) {
            /* check_word has let only one thing through: the argument that is missing at the end of the line. */
            return au_error_create(AU_ERR_USAGE, 0, "option '%s' needs an argument", argv[argc - 1]);
        }
        au_error *error = apply(option, value, argv[reader->ind - 1], options);
        if (error) {
            return error;
        }
    }
    if (options->action != AU_ACTION_SAMPLE) {
        return NULL;
    }
    options->command = reader->ind < argc ? argv + reader->ind : NULL;
    return check_whole(options);
}
