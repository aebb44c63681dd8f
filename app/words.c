/* SPDX-License-Identifier: Apache-2.0 */
#include "app/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/platform.h"

int au_words_append(au_buf *out, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    int failed = length < 0 || au_buf_reserve(out, (size_t)length + 1);
    if (!failed) {
        vsnprintf((char *)out->data + out->len, (size_t)length + 1, format, args);
        out->len += (size_t)length;
    }
    va_end(args);
    return failed ? -1 : 0;
}

/* Columns of a UTF-8 text: every byte that does not continue a character counts. */
static size_t columns(const char *text, size_t length)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return n;
}

/*
 * Controls steer a terminal, and so do the C1 ones, which UTF-8 writes as C2 80 to C2 9F. A bare byte above 7F does
 * nothing to a terminal that reads UTF-8.
 */
static int append_word(au_buf *out, const char *word, size_t length)
{
    if (au_buf_append(out, word, length)) {
        return -1;
    }
    uint8_t *copy = out->data + out->len - length;
    for (size_t i = 0; i < length; i++) {
        int c1 = copy[i] >= 0x80 && copy[i] <= 0x9F && i > 0 && copy[i - 1] == 0xC2;
        if (copy[i] < 0x20 || copy[i] == 0x7F) {
            copy[i] = '?';
        } else if (c1) {
            copy[i - 1] = copy[i] = '?';
        }
    }
    return 0;
}

static int append_blanks(au_buf *out, size_t count)
{
    int failed = 0;
    while (count-- > 0 && !failed) {
        failed = au_buf_append(out, " ", 1);
    }
    return failed;
}

int au_words_wrap(au_buf *out, const char *text, size_t column, size_t indent, size_t width)
{
    int failed = 0, first = 1;
    while (*text && !failed) {
        size_t blanks = strspn(text, " \n");
        text += blanks;
        size_t length = strcspn(text, " \n");
        if (length == 0) {
            break;
        }
        size_t wide = columns(text, length);
        if (!first && width && column + 1 + wide > width) {
            failed = au_buf_append(out, "\n", 1) || append_blanks(out, indent);
            column = indent;
        } else if (!first) {
            failed = au_buf_append(out, " ", 1);
            column++;
        }
        failed = failed || append_word(out, text, length);
        column += wide;
        text += length;
        first = 0;
    }
    return failed || au_buf_append(out, "\n", 1) ? -1 : 0;
}

static int wants_colour(int fd)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return au_is_terminal(fd) && !(none && *none) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void au_console_init(au_console *console, int fd)
{
    int width = au_is_terminal(fd) ? au_terminal_width(fd) : 0;
    console->fd = fd;
    console->colour = wants_colour(fd);
    /* Very wide lines read badly; in very narrow ones the words that people search for would be torn apart. */
    console->width = width == 0 ? 0 : width < 40 ? 40 : width > 100 ? 100 : (size_t)width;
}

void au_console_put(const au_console *console, au_buf *text)
{
    if (text->len) {
        (void)au_write_all(console->fd, text->data, text->len); /* there is nobody left to tell */
    }
    au_buf_reset(text);
}

const char *au_console_bold(const au_console *console)
{
    return console->colour ? "\033[1m" : "";
}

const char *au_console_plain(const au_console *console)
{
    return console->colour ? "\033[0m" : "";
}
