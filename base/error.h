/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Errors of the cold paths.
 *
 * A function that can fail for a reason worth telling returns `au_error *`: NULL is success. The caller owns what it
 * gets and either returns it, wraps it or clears it. Hot paths do not use this; they return `au_outcome`
 * (engine/proc_ops.h) and count.
 *
 * An error says three things: what happened to which thing (`message`: pid, path or address is in it), why
 * (`cause`, often the system's own words), and what the user can do (`hint`). Only `app` shows any of them.
 *
 * Thread-safe: every error is its own block of memory. The two that must work without memory, AU_ERR_MEMORY and
 * AU_ERR_GONE, have static instances; clearing those is a no-op.
 */
#ifndef AU_BASE_ERROR_H
#define AU_BASE_ERROR_H

#include <stdarg.h>
#include <stdint.h>

/**
 * Codes and the exit status each one becomes. Numbers are the process exit statuses that Austin's users know and are
 * never reused.
 */
#define AU_ERROR_CODES(X)                                                                                              \
    X(AU_ERR_OS, 1, "operating system error")                                                                          \
    X(AU_ERR_PERMISSION, 2, "permission denied")                                                                       \
    X(AU_ERR_GONE, 3, "the process has gone")                                                                          \
    X(AU_ERR_MEMORY, 4, "out of memory")                                                                               \
    X(AU_ERR_IO, 5, "input/output error")                                                                              \
    X(AU_ERR_COMMAND, 6, "neither command nor PID")                                                                    \
    X(AU_ERR_ENVIRONMENT, 7, "bad environment variable")                                                               \
    X(AU_ERR_VALUE, 8, "value out of range")                                                                           \
    X(AU_ERR_PYTHON, 10, "no supported Python")                                                                        \
    X(AU_ERR_BINARY, 11, "unusable binary")                                                                            \
    X(AU_ERR_OBJECT, 12, "inconsistent Python object")                                                                 \
    X(AU_ERR_MAPS, 13, "unusable memory map")                                                                          \
    X(AU_ERR_USAGE, 64, "wrong usage")

typedef enum au_errcode {
#define AU_X(name, value, text) name = value,
    AU_ERROR_CODES(AU_X)
#undef AU_X
} au_errcode;

typedef struct au_error {
    au_errcode code;
    int os_code;         /**< errno, GetLastError() or kern_return_t; 0 if none */
    const char *message; /**< what happened to what; never NULL */
    const char *cause;   /**< why; NULL if the message says it */
    const char *hint;    /**< what the user can do; NULL if nothing is known */
} au_error;

#if defined(__GNUC__)
#define AU_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define AU_MUST_USE __attribute__((warn_unused_result))
#else
#define AU_PRINTF(fmt, args)
#define AU_MUST_USE
#endif

/** A new error; the text is formatted at once. Falls back to the static AU_ERR_MEMORY one when there is no memory. */
AU_MUST_USE au_error *au_error_create(au_errcode code, int os_code, const char *format, ...) AU_PRINTF(3, 4);

/** Adds the cause or the hint (replacing what was there). Takes and returns `error`, so calls nest. NULL stays NULL. */
AU_MUST_USE au_error *au_error_cause(au_error *error, const char *format, ...) AU_PRINTF(2, 3);
AU_MUST_USE au_error *au_error_hint(au_error *error, const char *format, ...) AU_PRINTF(2, 3);

/** The static ones. */
AU_MUST_USE au_error *au_error_memory(void);
AU_MUST_USE au_error *au_error_gone(void);

/** Frees an error. NULL and the static ones are accepted. */
void au_error_clear(au_error *error);

/** The stock text of a code, for example "permission denied"; "unknown error" for a number that is not in the list. */
const char *au_error_text(int code);

#endif
