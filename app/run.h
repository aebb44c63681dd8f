/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * One run: output, launch or attach, find the interpreter, sample, end.
 */
#ifndef AU_APP_RUN_H
#define AU_APP_RUN_H

#include <apr_pools.h>

#include "app/options.h"

/**
 * Does what the options say (AU_ACTION_SAMPLE) and returns the exit status. Prints its own messages. `pool` and what
 * is in it stay alive until the process ends: a writer that hangs is left behind.
 */
int au_run(const au_options *options, apr_pool_t *pool);

#endif
