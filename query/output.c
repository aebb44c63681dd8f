/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "query/query.h"

enum { PIECE = 64 * 1024 };

static void write_out(au_query_output *out)
{
    if (!out->error && out->text.len) {
        apr_size_t written;
        apr_status_t status = apr_file_write_full(out->file, out->text.data, out->text.len, &written);
        if (status != APR_SUCCESS) {
            char why[120];
            au_error *error = au_error_create(AU_ERR_IO, (int)status, "cannot write to standard output");
            error = au_error_cause(error, "%s", apr_strerror(status, why, sizeof why));
            out->error = au_error_hint(error, "Let standard output be a file with room, or a pipe that is read.");
        }
    }
    au_buf_reset(&out->text);
}

static void put(au_query_output *out, const char *text, size_t len)
{
    if (au_buf_append(&out->text, text, len) && !out->error) {
        out->error = au_error_memory();
    }
    if (out->text.len >= PIECE) {
        write_out(out);
    }
}

void au_query_print(au_query_output *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0) {
        put(out, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    }
}

void au_query_print_text(au_query_output *out, const char *text)
{
    put(out, text, strlen(text));
}

void au_query_print_number(au_query_output *out, int64_t number)
{
    char text[24];
    size_t at = sizeof text;
    uint64_t rest = number < 0 ? UINT64_C(0) - (uint64_t)number : (uint64_t)number;
    do {
        text[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (number < 0) {
        text[--at] = '-';
    }
    put(out, text + at, sizeof text - at);
}

/* Bytes that may stand in a line as they are. C1 controls are two bytes in UTF-8 and are told by the first. */
static size_t plain_length(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    while (*at >= 0x20 && *at != 0x7f && !(*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)) {
        at++;
    }
    return (size_t)(at - (const uint8_t *)text);
}

void au_query_print_name(au_query_output *out, const char *text)
{
    for (;;) {
        size_t plain = plain_length(text);
        put(out, text, plain);
        text += plain;
        if (!*text) {
            return;
        }
        static const char digits[] = "0123456789abcdef";
        uint8_t byte = (uint8_t)*text++;
        const char escape[] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        put(out, escape, sizeof escape);
    }
}

size_t au_query_name_width(const char *text)
{
    size_t width = 0;
    while (*text) {
        size_t plain = plain_length(text);
        for (size_t i = 0; i < plain; i++) {
            width += ((uint8_t)text[i] & 0xc0) != 0x80;
        }
        text += plain;
        if (*text) {
            width += 4;
            text++;
        }
    }
    return width;
}

au_error *au_query_flush(au_query_output *out)
{
    write_out(out);
    au_error *error = out->error;
    out->error = NULL;
    return error;
}
