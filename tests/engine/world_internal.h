/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the files of the invented CPython share. Not for tests. Helpers abort with a word when they fail.
 */
#ifndef AU_TESTS_ENGINE_WORLD_INTERNAL_H
#define AU_TESTS_ENGINE_WORLD_INTERNAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/world.h"

enum {
    EXTRA_WORDS = 4,           /* locals and stack of every frame */
    W_RUNTIME_VADDR = 0x100000 /* of _PyRuntime in the module */
};

static inline void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "world: %s failed\n", what);
        abort();
    }
}

static inline void *grown(void *array, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) {
        return array;
    }
    *cap = need * 2;
    array = realloc(array, *cap * size);
    must(array != NULL, "realloc");
    return array;
}

static inline void byte(world *w, au_addr at, uint8_t value)
{
    must(au_image_byte(w->image, at, value) == 0, "write");
}

/* A zeroed object of that type. */
static inline au_addr object(world *w, size_t size, au_addr type)
{
    au_addr at = world_alloc(w, size);
    world_word(w, at + w->l.object_type, type);
    return at;
}

static inline char *copy_text(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    must(copy != NULL, "malloc");
    return strcpy(copy, text);
}

/** A keys object with room for `room` entries. kind: 0 general, 1 unicode, 2 split (world_objects.c). */
au_addr w__keys_object(world *w, int kind, const au_addr *keys, const au_addr *values, size_t n, size_t room);
au_addr w__dict_object(world *w, au_addr keys, au_addr values);

/** The line of a unit by the table that every code object has here. */
int w__line_of(const world *w, int first, int unit);

/** 3.13 with a GIL: where an interpreter has the version of the next code object, and after it the table of functions.
 */
enum { WORLD_COUNTER = 11000 };
/** Enters a code object, if any, there, and brings the counter up to date. */
void world_count_code(world *w, const w_interp *interp, const w_code *code);

#endif
