/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Carries bytes from the sampling thread to where they shall go, through a bounded ring and a thread of its own, so
 * that a slow disk or reader does not disturb sampling.
 *
 * The sampler copies bytes into the ring: no lock, no system call. The writer empties it at least every
 * AU_OUTPUT_TICK_MS, so that the stream of a run that is killed can be read up to shortly before its end; with
 * compression each such write ends a zstd block (see flush in format/mojo_zstd.h). Only when the ring is full does the
 * sampler wait: that is one stall, and nothing is lost.
 *
 * Whoever pushes shall push whole samples: what is pushed in one call becomes visible to the writer at once (unless it
 * is larger than the ring), so writes end at a sample.
 *
 * Push, flush and close belong to one thread, the writer's own thread is inside. The sink is called by the writer's
 * thread only.
 */
#ifndef AU_APP_OUTPUT_H
#define AU_APP_OUTPUT_H

#include <apr_pools.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    AU_OUTPUT_TICK_MS = 100,
    AU_OUTPUT_RING_BYTES = 4 * 1024 * 1024 /**< 20 s of one thread at 10 kHz */
};

/** Where the bytes end up: a file, standard output, or a test's own. */
typedef struct au_output_sink {
    /** Writes all bytes. NULL, or why not. */
    au_error *(*write)(struct au_output_sink *sink, const void *bytes, size_t len);
    /** Called once, by au_output_close, also after errors. NULL, or what writing failed of late. */
    au_error *(*close)(struct au_output_sink *sink);
    /** A file with a content of its own, maybe a profile of old: nothing shall be pushed before au_output_sink_keep. */
    int occupied;
} au_output_sink;

/**
 * Opens `path` for writing from its beginning, or standard output when it is NULL. AU_ERR_IO names the path and the
 * reason. The sink lives in `pool`. A file keeps what is in it for the time being; if it is closed before
 * au_output_sink_keep was called, it is again as it was found, and gone if it was not there.
 */
AU_MUST_USE au_error *au_output_sink_open(const char *path, apr_pool_t *pool, au_output_sink **sink);

/**
 * What is written will be a profile: takes the place of what was there. By the thread that pushes, for a sink of
 * au_output_sink_open; before the first push if it is occupied.
 */
AU_MUST_USE au_error *au_output_sink_keep(au_output_sink *sink);

typedef struct au_output_options {
    int compress;
    int immediate;     /**< wake the writer at every push */
    size_t ring_bytes; /**< 0: AU_OUTPUT_RING_BYTES; rounded up to a power of two */
    /** Asked every tick while somebody waits for the sink: non-zero ends the waiting. NULL: wait for ever. */
    int (*give_up)(void *baton);
    void *baton;
} au_output_options;

typedef struct au_output au_output;

/** Starts the writer. The sink stays the caller's memory, but au_output_close closes it. */
AU_MUST_USE au_error *au_output_create(const au_output_options *options, au_output_sink *sink, apr_pool_t *pool,
                                       au_output **out);

/**
 * Takes `len` bytes, waiting while the ring is full. 0, or -1 when writing has failed or waiting was given up: nothing
 * more shall be pushed then.
 */
int au_output_push(au_output *output, const void *bytes, size_t len);

/** Waits until all that was pushed is written. 0, or -1 as au_output_push. */
int au_output_flush(au_output *output);

/**
 * Writes what is left, ends the zstd frame, closes the sink and the thread. If nothing was ever pushed, nothing is
 * written. Returns the first error of the whole life,
 * the caller's to clear; NULL if all went well. Once. When waiting is given up the thread and its memory are left
 * behind, and so must be the sink and both pools until the process ends.
 */
AU_MUST_USE au_error *au_output_close(au_output *output);

/** How often au_output_push had to wait. */
uint64_t au_output_stalls(const au_output *output);

#endif
