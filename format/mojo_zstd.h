/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Compresses a stream into one zstd frame as it is written. No file, no thread; the memory is taken when it is made.
 *
 * What is flushed can be read back whole by a reader that meets the end of the file right behind it, so a run that is
 * killed loses only what came after the last flush. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_ZSTD_H
#define AU_FORMAT_MOJO_ZSTD_H

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct au_mojo_zstd au_mojo_zstd;

/** `level` as the zstd program takes it (1 is fast, 3 usual); out of range is brought into it. NULL without memory. */
au_mojo_zstd *au_mojo_zstd_create(int level);
void au_mojo_zstd_destroy(au_mojo_zstd *zstd);

/** Compresses bytes; what comes out so far, perhaps nothing, is appended to `out`. */
AU_MUST_USE au_error *au_mojo_zstd_push(au_mojo_zstd *zstd, const void *bytes, size_t len, au_buf *out);

/** Appends all that is still held back. */
AU_MUST_USE au_error *au_mojo_zstd_flush(au_mojo_zstd *zstd, au_buf *out);

/** Ends the frame. A further push begins another one, which readers take for more of the same stream. */
AU_MUST_USE au_error *au_mojo_zstd_end(au_mojo_zstd *zstd, au_buf *out);

#endif
