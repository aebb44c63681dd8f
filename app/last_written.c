/* SPDX-License-Identifier: Apache-2.0 */
#include "app/last_written.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

int au_last_written_init(au_last_written *last, size_t limit)
{
    *last = (au_last_written){.limit = limit, .capacity = limit < FIRST_CAPACITY ? limit : FIRST_CAPACITY};
    last->entries = calloc(last->capacity, sizeof *last->entries);
    return last->entries ? 0 : -1;
}

void au_last_written_deinit(au_last_written *last)
{
    free(last->entries);
    au_buf_deinit(&last->names);
    au_buf_deinit(&last->spare);
    last->entries = NULL;
}

/* Spreads all bits over all bits; the constants are those of MurmurHash3's finalizer (public domain). Never 0. */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= UINT64_C(0xff51afd7ed558ccd);
    value ^= value >> 33;
    value *= UINT64_C(0xc4ceb9fe1a85ec53);
    value ^= value >> 33;
    return value ? value : 1;
}

static uint64_t hash_name(int64_t pid, const char *text, size_t length)
{
    uint64_t hash = mix((uint64_t)pid);
    while (length >= sizeof hash) {
        uint64_t word;
        memcpy(&word, text, sizeof word);
        hash = mix(hash ^ word);
        text += sizeof word;
        length -= sizeof word;
    }
    uint64_t rest = length;
    for (size_t i = 0; i < length; i++) {
        rest = rest << 8 | (unsigned char)text[i];
    }
    return mix(hash ^ rest);
}

static au_last_entry *free_slot(const au_last_written *last, uint64_t hash)
{
    size_t at = (size_t)hash & (last->capacity - 1);
    while (last->entries[at].hash) {
        at = (at + 1) & (last->capacity - 1);
    }
    return &last->entries[at];
}

/* Moves the entries written after `oldest` into a table of `capacity`. */
static int rebuild(au_last_written *last, size_t capacity, uint64_t oldest)
{
    au_last_entry *before = last->entries, *entries = calloc(capacity, sizeof *entries);
    size_t before_capacity = last->capacity;
    au_buf_reset(&last->spare);
    if (!entries || au_buf_reserve(&last->spare, last->names.len)) {
        free(entries);
        return -1;
    }
    last->entries = entries;
    last->capacity = capacity;
    last->count = 0;
    last->recent = 0;
    for (size_t i = 0; i < before_capacity; i++) {
        const au_last_entry *entry = &before[i];
        if (!entry->hash || entry->serial <= oldest) {
            continue;
        }
        au_last_entry *slot = free_slot(last, entry->hash);
        *slot = *entry;
        slot->next = slot->name_at = slot->next_name = 0;
        last->count++;
        if (entry->is_name) {
            slot->start = (uint32_t)last->spare.len;
            (void)au_buf_append(&last->spare, last->names.data + entry->start, entry->length);
        }
    }
    free(before);
    au_buf names = last->names;
    last->names = last->spare;
    last->spare = names;
    return 0;
}

/*
 * Makes room for two more entries and one more name. A half full table holds capacity / 4 threads at most, and one pass
 * writes each living one once: what is older than that many samples belongs to a thread that has ended or sleeps.
 */
static int make_room(au_last_written *last, size_t name_length)
{
    int full = last->count + 2 > last->capacity / 2;
    if (!full && last->names.len + name_length <= UINT32_MAX / 2) {
        return 0;
    }
    uint64_t window = last->capacity / 4;
    uint64_t oldest = last->serial > window ? last->serial - window : 0;
    if (full && rebuild(last, last->capacity, oldest)) {
        return -1;
    }
    if (last->count + 2 > last->capacity / 8 * 3 && last->capacity < last->limit) {
        return rebuild(last, last->capacity * 2, 0);
    }
    if (last->count + 2 > last->capacity / 2 || last->names.len + name_length > UINT32_MAX / 2) {
        return rebuild(last, last->capacity, last->serial); /* forgets everything */
    }
    return 0;
}

/* memcmp in words: names are short, a call from cold memory is not, and some C libraries go byte by byte. */
static int same_bytes(const void *one, const void *other, size_t length)
{
    const uint8_t *a = one, *b = other;
    for (; length >= sizeof(uint64_t); a += sizeof(uint64_t), b += sizeof(uint64_t), length -= sizeof(uint64_t)) {
        uint64_t x, y;
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        if (x != y) {
            return 0;
        }
    }
    while (length && *a == *b) {
        a++, b++, length--;
    }
    return length == 0;
}

/* Threads come in the same order pass after pass, so the next one is nearly always the one that came next last time. */
static int found_in_order(au_last_written *last, int64_t pid, const char *thread, size_t length, uint64_t state,
                          au_last_entry **name, au_last_entry **of_state)
{
    uint32_t at = last->recent ? last->entries[last->recent - 1].next : 0;
    au_last_entry *entry = at ? &last->entries[at - 1] : NULL;
    if (!entry || entry->state != state || entry->pid != pid || !entry->name_at) {
        return 0;
    }
    au_last_entry *named = &last->entries[entry->name_at - 1];
    if (named->length != length || !same_bytes(last->names.data + named->start, thread, length)) {
        return 0;
    }
    /* of thousands of threads none is still in the cache, and there is other work before the next one is asked for */
    __builtin_prefetch(&last->entries[entry->next ? entry->next - 1 : 0]);
    __builtin_prefetch(&last->entries[entry->next_name ? entry->next_name - 1 : 0]);
    last->recent = at;
    *name = named;
    *of_state = entry;
    return 1;
}

int au_last_written_find(au_last_written *last, int64_t pid, const char *thread, size_t length, uint64_t state,
                         au_last_entry **name, au_last_entry **of_state)
{
    if (found_in_order(last, pid, thread, length, state, name, of_state)) {
        return 0;
    }
    if (make_room(last, length)) {
        return -1;
    }
    uint64_t hash = hash_name(pid, thread, length);
    size_t mask = last->capacity - 1, at = (size_t)hash & mask;
    au_last_entry *entry = &last->entries[at];
    while (entry->hash && !(entry->hash == hash && entry->is_name && entry->pid == pid && entry->length == length &&
                            memcmp(last->names.data + entry->start, thread, length) == 0)) {
        at = (at + 1) & mask;
        entry = &last->entries[at];
    }
    if (!entry->hash) {
        size_t start = last->names.len;
        if (au_buf_append(&last->names, thread, length)) {
            return -1;
        }
        *entry = (au_last_entry){
            .hash = hash, .pid = pid, .is_name = 1, .start = (uint32_t)start, .length = (uint32_t)length};
        last->count++;
    }
    *name = entry;

    hash = mix(mix((uint64_t)pid) ^ state);
    at = (size_t)hash & mask;
    entry = &last->entries[at];
    while (entry->hash && !(entry->hash == hash && !entry->is_name && entry->pid == pid && entry->state == state)) {
        at = (at + 1) & mask;
        entry = &last->entries[at];
    }
    if (!entry->hash) {
        *entry = (au_last_entry){.hash = hash, .pid = pid, .state = state};
        last->count++;
    }
    *of_state = entry;
    uint32_t here = (uint32_t)(entry - last->entries) + 1;
    entry->name_at = (uint32_t)(*name - last->entries) + 1;
    if (last->recent) {
        last->entries[last->recent - 1].next = here;
        last->entries[last->recent - 1].next_name = entry->name_at;
    }
    last->recent = here;
    return 0;
}
