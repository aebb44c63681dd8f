/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "app/options.h"
#include "app/words.h"

enum { WIDTH = 80, HELP_COLUMN = 30, USAGE_INDENT = 13, MANUAL_WIDTH = 78 };

static const char synopsis[] = "austin [OPTION...] COMMAND [ARG...]\n"
                               "       austin [OPTION...] -p PID\n";

static const char purpose[] =
    "Austin samples the stacks of a running CPython 3.10 to 3.15 from outside, without changing or stopping it, and "
    "writes them as a MOJO stream. It launches COMMAND, or attaches to the process PID. Options end at the first word "
    "that is none, or at --.";

static int help_option(au_buf *out, const au_option *option)
{
    char text[64], letter[8] = "    ";
    if (option->code <= 255) {
        snprintf(letter, sizeof letter, "-%c, ", option->code);
    }
    const char *placeholder = option->placeholder ? option->placeholder : "";
    int length =
        snprintf(text, sizeof text, "  %s--%s%s%s", letter, option->name, *placeholder ? "=" : "", placeholder);
    return au_words_append(out, "%-*s", HELP_COLUMN, text) ||
           au_words_wrap(out, option->help, length < HELP_COLUMN ? HELP_COLUMN : (size_t)length, HELP_COLUMN, WIDTH);
}

static int help_options(au_buf *out, int available)
{
    size_t count;
    const au_option *table = au_option_table(&count);
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++) {
        if (table[i].available == available) {
            failed = help_option(out, &table[i]);
        }
    }
    return failed;
}

int au_options_help(au_buf *out, int colour)
{
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    int failed = au_words_append(out, "%sUsage:%s %s\n", bold, plain, synopsis) ||
                 au_words_wrap(out, purpose, 0, 0, WIDTH) || au_words_append(out, "\n%sOptions:%s\n", bold, plain) ||
                 help_options(out, 1) || au_words_append(out, "\n%sKnown, but not available yet:%s\n", bold, plain) ||
                 help_options(out, 0) || au_words_append(out, "\n") ||
                 au_words_wrap(out,
                               "A number and its unit are one word: -i 1ms, -i1ms, -i=1ms, --interval=1ms and "
                               "--interval 1ms are the same.",
                               0, 0, WIDTH) ||
                 au_words_append(out, "\nReport bugs to the project's issue tracker.\n");
    return failed ? -1 : 0;
}

/* One word of the synopsis, on a new line if need be. */
static int usage_word(au_buf *out, size_t *column, const char *word)
{
    int failed = 0;
    if (*column + 1 + strlen(word) > WIDTH) {
        failed = au_words_append(out, "\n%*s", USAGE_INDENT, "");
        *column = USAGE_INDENT;
    }
    *column += 1 + strlen(word);
    return failed || au_words_append(out, " %s", word);
}

/* Flags without a value share one pair of brackets; each option with a value has its own. */
int au_options_usage(au_buf *out)
{
    char flags[64] = "[-", word[64];
    size_t count, used = 2, column = USAGE_INDENT;
    const au_option *table = au_option_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (table[i].available && table[i].code <= 255 && table[i].value == AU_VALUE_NONE && used + 2 < sizeof flags) {
            flags[used++] = (char)table[i].code;
        }
    }
    flags[used++] = ']';
    flags[used] = '\0';
    int failed = au_words_append(out, "Usage: austin") || usage_word(out, &column, flags);
    for (size_t i = 0; i < count && !failed; i++) {
        if (table[i].available && table[i].code > 255) {
            snprintf(word, sizeof word, "[--%s]", table[i].name);
            failed = usage_word(out, &column, word);
        } else if (table[i].available && table[i].value != AU_VALUE_NONE && table[i].code != 'p') {
            snprintf(word, sizeof word, "[-%c %s]", table[i].code, table[i].placeholder);
            failed = usage_word(out, &column, word);
        }
    }
    failed = failed || usage_word(out, &column, "COMMAND [ARG...]") || usage_word(out, &column, "| -p PID") ||
             au_words_append(out, "\n'austin --help' says more.\n");
    return failed ? -1 : 0;
}

/* A sentence ends a line of mdoc, and lines are short. */
static int manual_text(au_buf *out, const char *text)
{
    int failed = 0;
    while (*text && !failed) {
        const char *end = strstr(text, ". ");
        int length = end ? (int)(end - text) + 1 : (int)strlen(text);
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%.*s", length, text);
        failed = au_words_wrap(out, sentence, 0, 0, MANUAL_WIDTH);
        text += length + (end ? 1 : 0);
    }
    return failed;
}

int au_options_manual(au_buf *out, int available)
{
    size_t count;
    const au_option *table = au_option_table(&count);
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++) {
        const au_option *option = &table[i];
        if (option->available != available) {
            continue;
        }
        failed = au_words_append(out, ".It");
        if (!failed && option->code <= 255) {
            failed = au_words_append(out, " Fl %s%c%s%s , Fl", option->code == '?' ? "\\&" : "", option->code,
                                     option->placeholder ? " Ar " : "", option->placeholder ? option->placeholder : "");
        } else if (!failed) {
            failed = au_words_append(out, " Fl");
        }
        failed = failed ||
                 au_words_append(out, " Fl %s%s%s\n", option->name, option->placeholder ? " Ns = Ns Ar " : "",
                                 option->placeholder ? option->placeholder : "") ||
                 manual_text(out, option->help);
    }
    return failed ? -1 : 0;
}
