/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The writer's memory of the strings it has sent: (pid, text) to key.
 *
 * Bounded, and may forget: two generations of at most AU__STRINGS_GENERATION entries each. New strings go to the young
 * one; a string found in the old one moves over; when the young one is full the old one is dropped whole and the two
 * change places. So what is used stays, what is not used goes, and the memory is two flat blocks that never fragment.
 * Each generation grows by doubling up to its bound and is then reused for good.
 *
 * Inside the room only. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_STRINGS_H
#define AU_FORMAT_MOJO_STRINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    AU__STRINGS_GENERATION = 4096,        /**< entries of a generation: a power of two */
    AU__STRINGS_TEXT_BYTES = 1024 * 1024, /**< text of a generation: a power of two */
    AU__STRINGS_LONGEST = 64 * 1024,      /**< longer strings are not remembered */
};

typedef struct au__string_entry {
    uint64_t hash;
    int64_t pid;
    uint32_t key;
    uint32_t start; /**< of the text */
    uint32_t length;
    uint32_t dead; /**< its process has ended */
} au__string_entry;

typedef struct au__string_generation {
    au__string_entry *entries;
    uint32_t *slots; /**< open addressing: 1 + index of the entry, 0 for empty; twice as many as entries */
    uint32_t count, capacity;
    au_buf text;
} au__string_generation;

typedef struct au__strings {
    au__string_generation generations[2];
    unsigned young;
} au__strings;

void au__strings_init(au__strings *strings);
void au__strings_deinit(au__strings *strings);

/** The key of a string under a PID, or 0 when it is not known (0 is never the key of a remembered string). */
uint32_t au__strings_find(au__strings *strings, int64_t pid, const char *text, size_t length);

/** Remembers a string that is not known. Without memory, or with a string that is too long, nothing happens. */
void au__strings_add(au__strings *strings, int64_t pid, const char *text, size_t length, uint32_t key);

/** Forgets the strings of a process. */
void au__strings_forget(au__strings *strings, int64_t pid);

#endif
