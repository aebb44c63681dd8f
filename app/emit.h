/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Turns the engine's samples into MOJO: the au_sink of a run.
 *
 * A sample becomes Stack, then the String and Frame definitions that are new, then the references (or one Stack
 * repeat), then the Time. Frame keys are kept in au_location.sink_key.
 *
 * When a Stack repeat is right (docs/format.md, "Stack repeats"): a reader takes it to mean the frames of the sample
 * before *of the same PID and thread string*, less the native ones at its end, and knows native frames by their file
 * name alone. So one is written only if the engine says that the frames are the same, the last sample written under
 * this PID and thread string is the one before of this very thread state, and the stack does not end in a frame that
 * looks native.
 */
#ifndef AU_APP_EMIT_H
#define AU_APP_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "format/mojo_writer.h"

/** Takes whole samples of one pass, or whole metadata. 0; anything else ends the run. */
typedef int (*au_emit_push_fn)(void *baton, const void *bytes, size_t len);

typedef enum au_emit_end {
    AU_EMIT_GOES_ON = 0,
    AU_EMIT_NO_MEMORY,
    AU_EMIT_NO_KEYS, /**< the stream has used up all of its keys */
    AU_EMIT_REFUSED  /**< push has refused */
} au_emit_end;

typedef struct au_emit au_emit;

/** `key_limit` is AU_MOJO_KEY_LIMIT, or less in tests. NULL when there is no memory. */
au_emit *au_emit_create(uint32_t key_limit, au_emit_push_fn push, void *baton);

/** NULL is accepted. */
void au_emit_destroy(au_emit *emit);

/** What the engine is given. */
au_sink *au_emit_sink(au_emit *emit);

/** The magic and the version, once, first. Returned as by au_emit_metadata. */
au_emit_end au_emit_header(au_emit *emit);

/** Metadata before the first or after the last sample. After AU_EMIT_NO_KEYS it may still be written. */
au_emit_end au_emit_metadata(au_emit *emit, const char *key, const char *format, ...) AU_PRINTF(3, 4);

/** Why the sink has refused a sample. */
au_emit_end au_emit_ended(const au_emit *emit);

#endif
