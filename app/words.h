/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Words for people: formatting into a buffer, wrapping, and a console that knows its width and colours.
 */
#ifndef AU_APP_WORDS_H
#define AU_APP_WORDS_H

#include <stdarg.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/** Appends formatted text, without a NUL. 0 on success, -1 when there is no memory (then nothing is appended). */
int au_words_append(au_buf *out, const char *format, ...) AU_PRINTF(2, 3);

/**
 * Appends `text` as lines of at most `width` columns, broken at blanks; `width` 0 breaks nothing. The first line begins
 * where the caller's text ends, `column` columns from the left; the following ones are indented by `indent`. A word
 * that is wider than a line is not cut. Ends with a newline.
 *
 * Bytes that could steer a terminal become '?': paths and names of tracees are in these texts. The width of a
 * character is taken to be 1.
 */
int au_words_wrap(au_buf *out, const char *text, size_t column, size_t indent, size_t width);

/** Where words go to: a standard descriptor. Not thread-safe. */
typedef struct au_console {
    int fd;
    int colour;   /**< it is a terminal, TERM is not "dumb" and NO_COLOR is not set (https://no-color.org) */
    size_t width; /**< 0: not a terminal, so lines are not broken and can be searched */
} au_console;

void au_console_init(au_console *console, int fd);

/** Writes the buffer out and empties it. */
void au_console_put(const au_console *console, au_buf *text);

/** The escape sequences of bold text and back, or "" where there are no colours. */
const char *au_console_bold(const au_console *console);
const char *au_console_plain(const au_console *console);

#endif
