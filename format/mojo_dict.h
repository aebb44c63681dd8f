/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What a stream has defined so far: texts and frames, each distinct one kept once for the life of the dictionary, and a
 * table from numbers to them. Shared by the reader and the checker.
 *
 * Memory grows with what the stream really holds, never with what it claims. NULL means no memory where a value is
 * asked to be made. Inside the room only. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_DICT_H
#define AU_FORMAT_MOJO_DICT_H

#include <stddef.h>
#include <stdint.h>

#include "format/mojo_sample.h"

/** The spaces of the table: the third part of an entry's name. */
typedef enum au__space {
    AU__SPACE_TEXT,         /**< by hash and length: chains of interned texts */
    AU__SPACE_FRAME,        /**< by two hashes: chains of interned frames */
    AU__SPACE_STRING_PID,   /**< pid, key */
    AU__SPACE_STRING_ALL,   /**< 0, key */
    AU__SPACE_FRAME_PID,    /**< pid, key */
    AU__SPACE_FRAME_ALL,    /**< 0, key */
    AU__SPACE_THREAD,       /**< pid, text's id */
    AU__SPACE_TASK,         /**< 0, task */
    AU__SPACE_NEGATIVE = 16 /**< added for a negative key */
} au__space;

typedef struct au__entry {
    uint64_t a, b;
    void *value; /**< NULL in a free slot */
    uint32_t space;
} au__entry;

typedef struct au__block au__block;

typedef struct au__dict {
    uint64_t seed;
    au__entry *entries; /**< open addressing, at most half full; a power of two */
    size_t count, capacity;
    au__block *blocks; /**< all that is interned */
    uint32_t texts, frames;
} au__dict;

void au__dict_init(au__dict *dict);
void au__dict_deinit(au__dict *dict);

/** The value of a name; NULL if there is none. */
void *au__dict_get(const au__dict *dict, uint64_t a, uint64_t b, unsigned space);

/** Sets the value (not NULL) of a name. 0, or -1 when there is no memory. */
int au__dict_set(au__dict *dict, uint64_t a, uint64_t b, unsigned space, void *value);

/** Memory that lives as long as the dictionary, zeroed and aligned for any object. NULL when there is none. */
void *au__dict_alloc(au__dict *dict, size_t size);

/** The one copy of a text. */
const au_mojo_text *au__dict_text(au__dict *dict, const char *text, size_t length);

/** The one copy of a frame; `id`, `native` of the argument are ignored. */
const au_mojo_sample_frame *au__dict_frame(au__dict *dict, const au_mojo_sample_frame *frame);

/** True if a file name is that of a native frame: it does not end in .py and is not of the form <...>. */
int au__is_native(const char *file, size_t length);

#endif
