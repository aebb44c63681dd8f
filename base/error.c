/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its remedy is found by the number, as for all that a system has too little of (app/messages.c). */
static au_error au__no_memory = {AU_ERR_MEMORY, ENOMEM, "out of memory", "the system gives no more of it (ENOMEM)",
                                 NULL};
static au_error au__gone = {AU_ERR_GONE, 0, "the process has gone", NULL, NULL};

static int is_static(const au_error *error)
{
    return error == &au__no_memory || error == &au__gone;
}

static char *format_text(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        return NULL;
    }
    char *text = malloc((size_t)length + 1);
    if (text) {
        vsnprintf(text, (size_t)length + 1, format, args);
    }
    return text;
}

au_error *au_error_create(au_errcode code, int os_code, const char *format, ...)
{
    au_error *error = calloc(1, sizeof *error);
    if (!error) {
        return &au__no_memory;
    }
    va_list args;
    va_start(args, format);
    error->message = format_text(format, args);
    va_end(args);
    if (!error->message) {
        free(error);
        return &au__no_memory;
    }
    error->code = code;
    error->os_code = os_code;
    return error;
}

static au_error *set_text(au_error *error, const char **slot, const char *format, va_list args)
{
    char *text = format_text(format, args);
    if (text) {
        free((void *)(uintptr_t)*slot);
        *slot = text;
    }
    return error;
}

au_error *au_error_cause(au_error *error, const char *format, ...)
{
    if (!error || is_static(error)) {
        return error;
    }
    va_list args;
    va_start(args, format);
    error = set_text(error, &error->cause, format, args);
    va_end(args);
    return error;
}

au_error *au_error_hint(au_error *error, const char *format, ...)
{
    if (!error || is_static(error)) {
        return error;
    }
    va_list args;
    va_start(args, format);
    error = set_text(error, &error->hint, format, args);
    va_end(args);
    return error;
}

au_error *au_error_memory(void)
{
    return &au__no_memory;
}

au_error *au_error_gone(void)
{
    return &au__gone;
}

void au_error_clear(au_error *error)
{
    if (!error || is_static(error)) {
        return;
    }
    free((void *)(uintptr_t)error->message);
    free((void *)(uintptr_t)error->cause);
    free((void *)(uintptr_t)error->hint);
    free(error);
}

const char *au_error_text(int code)
{
    switch (code) {
#define AU_X(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return text;
        AU_ERROR_CODES(AU_X)
#undef AU_X
    default:
        return "unknown error";
    }
}
