/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the parts of `austin-query` share. A command is a consumer of plain bytes; the source brings them out of a file
 * or standard input, the output takes the text. One thread.
 */
#ifndef AU_QUERY_QUERY_H
#define AU_QUERY_QUERY_H

#include <apr_file_io.h>
#include <apr_pools.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/mojo_rules.h"

#define AU_QUERY_VERSION "5.0.0"

/* ------------------------------------------------------------------------------------------------------ output */

/** Text for standard output; written when there is a good piece of it. */
typedef struct au_query_output {
    apr_file_t *file;
    au_buf text;
    au_error *error; /**< the first that occurred; later text is dropped. Owned until au_query_flush hands it out */
} au_query_output;

void au_query_print(au_query_output *out, const char *format, ...) AU_PRINTF(2, 3);

/** The same without the cost of a format. */
void au_query_print_text(au_query_output *out, const char *text);
void au_query_print_number(au_query_output *out, int64_t number);

/** Text of a stream: bytes that would move the cursor or break the line become \xHH; UTF-8 passes. */
void au_query_print_name(au_query_output *out, const char *text);

/** How many columns au_query_print_name takes, counting every character as one. */
size_t au_query_name_width(const char *text);

/** Writes all. The first error since the beginning, or NULL. */
AU_MUST_USE au_error *au_query_flush(au_query_output *out);

/* ---------------------------------------------------------------------------------------------------- commands */

typedef struct au_query_options {
    const char *file; /**< "-": standard input */
    uint64_t rows;    /**< top: at most so many rows; 0: all */
    int unfinished;   /**< check: cut first */
} au_query_options;

/** Warnings of the reader, for a word about them at the end. */
typedef struct au_query_warnings {
    uint64_t count, first_offset;
    au_mojo_rule first_rule;
} au_query_warnings;

void au_query_warn(au_query_warnings *warnings, uint64_t offset, au_mojo_rule rule);

/** How a run ended. */
typedef struct au_query_end {
    int unfinished;
    int status;                 /**< exit status */
    au_query_warnings warnings; /**< what the reader had to bear */
} au_query_end;

/**
 * One run of a command. `feed` gets plain bytes in order, `finish` comes once behind them unless feed failed;
 * `end->unfinished` is set before if the compressed input was cut, and behind if the stream is not whole.
 */
typedef struct au_query_command {
    const char *name;
    const char *synopsis;
    const char *help;
    void *(*open)(const au_query_options *options, au_query_output *out, apr_pool_t *pool); /**< NULL: no memory */
    au_error *(*feed)(void *state, const void *bytes, size_t len);
    au_error *(*finish)(void *state, au_query_end *end);
    void (*close)(void *state);
} au_query_command;

extern const au_query_command au_query_top, au_query_collapsed, au_query_events, au_query_check;

/** Reads the file of the options through a command. */
AU_MUST_USE au_error *au_query_run(const au_query_command *command, const au_query_options *options,
                                   au_query_output *out, apr_pool_t *pool, au_query_end *end);

/** The program: arguments as main() has them, without the globals of APR set up. The exit status. */
int au_query_main(int argc, const char *const *argv);

#endif
