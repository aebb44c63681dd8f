/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The command line: one table of options, and what the words of one call mean.
 *
 * The table is the only place that knows an option; parsing, `--help`, `--usage` and the option lists of the manual
 * page are made from it.
 */
#ifndef AU_APP_OPTIONS_H
#define AU_APP_OPTIONS_H

#include <apr_pools.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "engine/engine.h"

typedef enum au_action { AU_ACTION_SAMPLE, AU_ACTION_HELP, AU_ACTION_USAGE, AU_ACTION_VERSION } au_action;

typedef struct au_options {
    au_action action;
    au_mode mode;
    uint64_t interval_us; /**< 0: flat out */
    uint64_t timeout_ms;
    uint64_t exposure_ms;       /**< 0: no limit */
    const char *output;         /**< path; NULL: standard output */
    int pipe;                   /**< -P: only samples and errors, each sample at once */
    int compress;               /**< --compress, or the output's name ends in .zst */
    au_pid pid;                 /**< attach to it; 0: launch `command` */
    const char *const *command; /**< NULL-terminated, a part of the caller's argv; NULL: attach */
} au_options;

/** The value that an option takes. */
typedef enum au_option_value {
    AU_VALUE_NONE,
    AU_VALUE_INTERVAL, /**< integer; us (default), ms or s */
    AU_VALUE_TIMEOUT,  /**< integer; ms (default) or s */
    AU_VALUE_EXPOSURE, /**< integer; s (default) or ms */
    AU_VALUE_PID,
    AU_VALUE_PATH
} au_option_value;

typedef struct au_option {
    int code; /**< the letter, or a number above 255 when there is none */
    au_option_value value;
    int available;           /**< 0: known to Austin's users, refused for now */
    const char *name;        /**< long name without dashes */
    const char *placeholder; /**< of the value in texts; NULL with AU_VALUE_NONE */
    const char *help;        /**< one or two sentences */
} au_option;

/** All options in the order of the texts. */
const au_option *au_option_table(size_t *count);

/**
 * Reads the words of a call; `argv` is NULL-terminated and outlives `options`. `pool` is for scratch.
 *
 * AU_ERR_USAGE: a word that cannot be; AU_ERR_COMMAND: neither a command nor a PID. No word at all is
 * AU_ACTION_USAGE. Help, usage and version count as soon as they are met.
 */
AU_MUST_USE au_error *au_options_parse(int argc, const char *const *argv, apr_pool_t *pool, au_options *options);

/** How the texts show an option: "-i/--interval", or "--compress" when it has no letter. `buf` is returned. */
const char *au_option_label(const au_option *option, char *buf, size_t cap);

/* The texts; each is appended to `out`. 0 on success, -1 when there is no memory. */

/** `--help`: for a terminal, 80 columns; `colour` allows bold words. */
int au_options_help(au_buf *out, int colour);

/** `--usage`: the synopsis. */
int au_options_usage(au_buf *out);

/** The option list of the manual page in mdoc, of those that are available or of those that are not. */
int au_options_manual(au_buf *out, int available);

#endif
