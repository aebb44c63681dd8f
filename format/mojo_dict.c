/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_dict.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 32 * 1024 };

struct au__block {
    au__block *next;
    size_t used, size;
    max_align_t data[];
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 32);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length)
{
    const uint8_t *at = bytes;
    uint64_t word;
    for (; length >= sizeof word; at += sizeof word, length -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = mix(hash, word);
    }
    word = length;
    for (; length; length--) {
        word = word << 8 | *at++;
    }
    return mix(mix(hash, word), hash >> 9);
}

void au__dict_init(au__dict *dict)
{
    memset(dict, 0, sizeof *dict);
    /* Where we lie differs from run to run, so a stream cannot be made to fill one chain. */
    dict->seed = mix((uint64_t)(uintptr_t)dict, (uint64_t)(uintptr_t)&au__dict_init);
}

void au__dict_deinit(au__dict *dict)
{
    for (au__block *block = dict->blocks; block;) {
        au__block *next = block->next;
        free(block);
        block = next;
    }
    free(dict->entries);
    memset(dict, 0, sizeof *dict);
}

static au__entry *slot_of(const au__dict *dict, uint64_t a, uint64_t b, unsigned space)
{
    size_t mask = dict->capacity - 1;
    size_t at = (size_t)mix(mix(mix(dict->seed, a), b), space) & mask;
    /* At most half of the slots are taken, so a free one ends the walk. */
    for (;; at = (at + 1) & mask) {
        au__entry *entry = &dict->entries[at];
        if (!entry->value || (entry->a == a && entry->b == b && entry->space == space)) {
            return entry;
        }
    }
}

void *au__dict_get(const au__dict *dict, uint64_t a, uint64_t b, unsigned space)
{
    return dict->capacity ? slot_of(dict, a, b, space)->value : NULL;
}

static int grow(au__dict *dict)
{
    if (dict->count < dict->capacity / 2) {
        return 0;
    }
    size_t capacity = dict->capacity ? dict->capacity * 2 : 256;
    au__entry *entries = capacity <= SIZE_MAX / sizeof *entries ? calloc(capacity, sizeof *entries) : NULL;
    if (!entries) {
        return -1;
    }
    au__entry *old = dict->entries;
    size_t old_capacity = dict->capacity;
    dict->entries = entries;
    dict->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].value) {
            *slot_of(dict, old[i].a, old[i].b, old[i].space) = old[i];
        }
    }
    free(old);
    return 0;
}

int au__dict_set(au__dict *dict, uint64_t a, uint64_t b, unsigned space, void *value)
{
    if (grow(dict)) {
        return -1;
    }
    au__entry *entry = slot_of(dict, a, b, space);
    dict->count += !entry->value;
    *entry = (au__entry){.a = a, .b = b, .space = space, .value = value};
    return 0;
}

void *au__dict_alloc(au__dict *dict, size_t size)
{
    size_t units = size / sizeof(max_align_t) + 1;
    au__block *block = dict->blocks;
    if (!block || block->size - block->used < units) {
        size_t room = units > BLOCK_BYTES / sizeof(max_align_t) ? units : BLOCK_BYTES / sizeof(max_align_t);
        if (room > (SIZE_MAX - sizeof *block) / sizeof(max_align_t)) {
            return NULL;
        }
        au__block *made = calloc(1, sizeof *block + room * sizeof(max_align_t));
        if (!made) {
            return NULL;
        }
        made->size = room;
        /* A block for one big thing goes behind the first, so that the room left there is not given up. */
        if (block && units > BLOCK_BYTES / sizeof(max_align_t) / 4) {
            made->next = block->next;
            block->next = made;
        } else {
            made->next = block;
            dict->blocks = made;
        }
        block = made;
    }
    void *memory = &block->data[block->used];
    block->used += units;
    return memory;
}

const au_mojo_text *au__dict_text(au__dict *dict, const char *text, size_t length)
{
    uint64_t hash = hash_bytes(dict->seed, text, length);
    au_mojo_text *chain = au__dict_get(dict, hash, length, AU__SPACE_TEXT);
    for (au_mojo_text *at = chain; at; at = at->next) {
        if (at->length == length && memcmp(at->text, text, length) == 0) {
            return at;
        }
    }
    if (length > SIZE_MAX - sizeof *chain - 1 || dict->texts == UINT32_MAX) {
        return NULL;
    }
    au_mojo_text *made = au__dict_alloc(dict, sizeof *made + length + 1);
    if (!made) {
        return NULL;
    }
    char *copy = (char *)(made + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    made->text = copy;
    made->length = length;
    made->next = chain;
    if (au__dict_set(dict, hash, length, AU__SPACE_TEXT, made)) {
        return NULL;
    }
    made->id = dict->texts++;
    return made;
}

const au_mojo_sample_frame *au__dict_frame(au__dict *dict, const au_mojo_sample_frame *frame)
{
    const uint64_t content[] = {(uint64_t)(uintptr_t)frame->file,
                                (uint64_t)(uintptr_t)frame->scope,
                                (uint64_t)frame->line,
                                (uint64_t)frame->line_end,
                                (uint64_t)frame->column,
                                (uint64_t)frame->column_end,
                                frame->invalid};
    uint64_t hash = hash_bytes(dict->seed, content, sizeof content);
    au_mojo_sample_frame *chain = au__dict_get(dict, hash, 0, AU__SPACE_FRAME);
    for (au_mojo_sample_frame *at = chain; at; at = at->next) {
        if (at->file == frame->file && at->scope == frame->scope && at->line == frame->line &&
            at->line_end == frame->line_end && at->column == frame->column && at->column_end == frame->column_end &&
            at->invalid == frame->invalid) {
            return at;
        }
    }
    au_mojo_sample_frame *made = dict->frames == UINT32_MAX ? NULL : au__dict_alloc(dict, sizeof *made);
    if (!made) {
        return NULL;
    }
    *made = *frame;
    made->next = chain;
    made->native = !frame->invalid && frame->file && au__is_native(frame->file->text, frame->file->length);
    if (au__dict_set(dict, hash, 0, AU__SPACE_FRAME, made)) {
        return NULL;
    }
    made->id = dict->frames++;
    return made;
}

int au__is_native(const char *file, size_t length)
{
    if (length >= 2 && file[0] == '<' && file[length - 1] == '>') {
        return 0;
    }
    return length < 3 || memcmp(file + length - 3, ".py", 3) != 0;
}
