/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_strings.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

static uint64_t hash_of(int64_t pid, const char *text, size_t length)
{
    uint64_t hash = mix((uint64_t)pid, UINT64_C(0xc2b2ae3d27d4eb4f) + length);
    uint64_t word;
    for (; length >= sizeof word; text += sizeof word, length -= sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    memcpy(&word, text, length);
    return mix(mix(hash, word), hash >> 7);
}

void au__strings_init(au__strings *strings)
{
    memset(strings, 0, sizeof *strings);
}

void au__strings_deinit(au__strings *strings)
{
    for (int i = 0; i < 2; i++) {
        free(strings->generations[i].entries);
        free(strings->generations[i].slots);
        au_buf_deinit(&strings->generations[i].text);
    }
    au__strings_init(strings);
}

static au__string_entry *look_up(const au__string_generation *generation, uint64_t hash, int64_t pid, const char *text,
                                 size_t length)
{
    if (!generation->capacity) {
        return NULL;
    }
    uint32_t mask = generation->capacity * 2 - 1;
    /* At most half of the slots are taken, so an empty one ends the walk. */
    for (uint32_t at = (uint32_t)hash & mask; generation->slots[at]; at = (at + 1) & mask) {
        au__string_entry *entry = &generation->entries[generation->slots[at] - 1];
        if (entry->hash == hash && entry->pid == pid && !entry->dead && entry->length == length &&
            memcmp(generation->text.data + entry->start, text, length) == 0) {
            return entry;
        }
    }
    return NULL;
}

static void link_entry(au__string_generation *generation, uint32_t index)
{
    uint32_t mask = generation->capacity * 2 - 1;
    uint32_t at = (uint32_t)generation->entries[index].hash & mask;
    while (generation->slots[at]) {
        at = (at + 1) & mask;
    }
    generation->slots[at] = index + 1;
}

/* Room for one entry more, doubling up to the bound. */
static int grow(au__string_generation *generation)
{
    if (generation->count < generation->capacity) {
        return 0;
    }
    uint32_t capacity = generation->capacity ? generation->capacity * 2 : 64;
    uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
    au__string_entry *entries = realloc(generation->entries, capacity * sizeof *entries);
    if (entries) {
        generation->entries = entries;
    }
    if (!slots || !entries) {
        free(slots);
        return -1;
    }
    free(generation->slots);
    generation->slots = slots;
    generation->capacity = capacity;
    for (uint32_t i = 0; i < generation->count; i++) {
        link_entry(generation, i);
    }
    return 0;
}

static void clear(au__string_generation *generation)
{
    if (generation->count) {
        memset(generation->slots, 0, (size_t)generation->capacity * 2 * sizeof *generation->slots);
    }
    generation->count = 0;
    au_buf_reset(&generation->text);
}

static void insert(au__strings *strings, uint64_t hash, int64_t pid, const char *text, size_t length, uint32_t key)
{
    au__string_generation *young = &strings->generations[strings->young];
    if (young->count == AU__STRINGS_GENERATION || length > AU__STRINGS_TEXT_BYTES - young->text.len) {
        strings->young ^= 1;
        young = &strings->generations[strings->young];
        clear(young);
    }
    if (grow(young)) {
        return;
    }
    size_t start = young->text.len;
    if (au_buf_append(&young->text, text, length)) {
        return;
    }
    young->entries[young->count] =
        (au__string_entry){.hash = hash, .pid = pid, .key = key, .start = (uint32_t)start, .length = (uint32_t)length};
    link_entry(young, young->count++);
}

uint32_t au__strings_find(au__strings *strings, int64_t pid, const char *text, size_t length)
{
    uint64_t hash = hash_of(pid, text, length);
    au__string_entry *entry = look_up(&strings->generations[strings->young], hash, pid, text, length);
    if (entry) {
        return entry->key;
    }
    entry = look_up(&strings->generations[strings->young ^ 1], hash, pid, text, length);
    if (!entry) {
        return 0;
    }
    uint32_t key = entry->key;
    /* Still in use: it moves to the young generation. The old one may be dropped by this, so `entry` is dead now. */
    insert(strings, hash, pid, text, length, key);
    return key;
}

void au__strings_add(au__strings *strings, int64_t pid, const char *text, size_t length, uint32_t key)
{
    if (length <= AU__STRINGS_LONGEST) {
        insert(strings, hash_of(pid, text, length), pid, text, length, key);
    }
}

void au__strings_forget(au__strings *strings, int64_t pid)
{
    for (int i = 0; i < 2; i++) {
        au__string_generation *generation = &strings->generations[i];
        for (uint32_t k = 0; k < generation->count; k++) {
            if (generation->entries[k].pid == pid) {
                generation->entries[k].dead = 1;
            }
        }
    }
}
