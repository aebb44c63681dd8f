/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Takes a stream as it lies in a file or comes out of a pipe, plain or in zstd frames, and hands on the plain bytes.
 * Which of the two it is shows in its first four bytes (RFC 8878, section 3.1.1: the magic of a frame; 3.1.2: of a
 * skippable one). Any number of frames may follow each other. No file, no thread.
 *
 * Everything that a killed compressor had flushed is handed on; that the last frame is not whole is told at the end.
 * Memory is zstd's window, at most 128 MiB by its own default limit. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_INPUT_H
#define AU_FORMAT_MOJO_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** Gets plain bytes, valid during the call. An error ends the input and comes out of push() or finish(). */
typedef au_error *(*au_mojo_sink)(void *context, const void *bytes, size_t len);

typedef struct au_mojo_input au_mojo_input;

/** NULL when there is no memory. */
au_mojo_input *au_mojo_input_create(au_mojo_sink sink, void *context);
void au_mojo_input_destroy(au_mojo_input *input);

/** The next bytes as they are. Offsets in errors about the compression count these bytes. */
AU_MUST_USE au_error *au_mojo_input_push(au_mojo_input *input, const void *bytes, size_t len);

/** No more bytes. `*unfinished`: a zstd frame is not whole. */
AU_MUST_USE au_error *au_mojo_input_finish(au_mojo_input *input, int *unfinished);

/** True once the input is known to be compressed. */
int au_mojo_input_is_compressed(const au_mojo_input *input);

#endif
