/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Reads the few kinds of Python object that names are made of. Cold paths: a call reads several times. Every length
 * is capped before it is used and every copy judged, since the tracee may change it all at any moment.
 */
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/text.h"

enum {
    STR_LENGTH_MAX = 1 << 28,
    DICT_ENTRIES_MAX = 1 << 24,
    ENTRIES_AT_ONCE = 170 /* 4 KiB of the larger kind */
};

size_t au__str_head_size(const au_layout *layout)
{
    return (size_t)layout->str_any + 8;
}

size_t au__str_head_least(const au_layout *layout)
{
    return layout->str_ascii_data;
}

au_outcome au__str_judge(const au_remote *r, au_addr addr, const uint8_t *head, size_t len, au_str *out)
{
    const au_layout *l = &r->layout;
    int whole = len >= au__str_head_size(l);
    if (len < l->str_length + 8u || len < l->str_state + 4u) {
        return AU_FAULT;
    }
    uint64_t length = au__u64(head + l->str_length);
    uint32_t state = au__u32(head + l->str_state);
    unsigned kind = state >> l->kind_bit & 7;
    int compact = state >> l->compact_bit & 1;
    int ascii = state >> l->ascii_bit & 1;
    if (l->ready_bit >= 0 && !(state >> l->ready_bit & 1)) {
        /* only wchar_t text: behind `wstr` come utf8_length, utf8 and wstr_length (unicodeobject.h of 3.10) */
        if (!whole) {
            return AU_FAULT;
        }
        out->addr = addr;
        out->data = au__u64(head + l->str_wstr);
        out->length_at = l->str_wstr + 24;
        out->length = au__u64(head + out->length_at);
        out->width = r->layout.long_bytes == 4 ? 2 : 4;
        out->pairs = out->width == 2;
        return au__plausible(out->data) && out->length <= STR_LENGTH_MAX ? AU_OK : AU_FAULT;
    }
    if (length > STR_LENGTH_MAX || (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1)) {
        return AU_FAULT;
    }
    out->addr = addr;
    out->length = length;
    out->length_at = l->str_length;
    out->width = kind;
    out->pairs = 0;
    if (compact) {
        out->data = addr + (ascii ? l->str_ascii_data : l->str_compact_data);
        return AU_OK;
    }
    if (!whole) {
        return AU_FAULT;
    }
    out->data = au__u64(head + l->str_any);
    return out->data >= 4096 && out->data < (UINT64_C(1) << 56) ? AU_OK : AU_FAULT;
}

static au_outcome str_at(const au_remote *r, au_addr addr, au_str *out)
{
    uint8_t head[256];
    size_t len = au__str_head_size(&r->layout);
    if (!au__plausible(addr) || len > sizeof head) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read(r, addr, head, len);
    if (outcome == AU_FAULT) { /* a short one may end where the memory does */
        len = au__str_head_least(&r->layout);
        outcome = au__read(r, addr, head, len);
    }
    return outcome == AU_OK ? au__str_judge(r, addr, head, len, out) : outcome;
}

au_outcome au__read_text(const au_remote *r, au_addr addr, au_buf *out)
{
    au_str s;
    au_outcome outcome = str_at(r, addr, &s);
    if (outcome != AU_OK) {
        return outcome;
    }
    size_t count = s.length > AU_TEXT_MAX ? AU_TEXT_MAX : (size_t)s.length;
    uint8_t few[512];
    uint8_t *chars = few;
    if (count * s.width > sizeof few) {
        chars = malloc(count * s.width);
        if (!chars) {
            return AU_FAULT;
        }
    }
    outcome = au__read(r, s.data, chars, count * s.width);
    if (outcome == AU_OK && au_text_append(out, chars, count, s.width, s.pairs, s.length > count) != 0) {
        outcome = AU_FAULT;
    }
    if (chars != few) {
        free(chars);
    }
    return outcome;
}

au_outcome au__int_value(const au_layout *l, const uint8_t *copy, uint64_t *out)
{
    uint64_t size = au__u64(copy + l->int_size);
    uint64_t digits = l->minor >= 12 ? size >> 3 : size;
    int negative = l->minor >= 12 ? (size & 3) == 2 : (int64_t)size < 0;
    if (negative || digits > 2) {
        return AU_FAULT;
    }
    uint64_t value = 0;
    for (uint64_t i = digits; i-- > 0;) {
        uint32_t digit = au__u32(copy + l->int_digits + 4 * i);
        if (digit >> 30) {
            return AU_FAULT;
        }
        value = value << 30 | digit;
    }
    *out = l->minor >= 12 && (size & 3) == 1 ? 0 : value;
    return AU_OK;
}

au_outcome au__read_int(const au_remote *r, au_addr addr, uint64_t *out)
{
    /* two digits are asked for even if there is one: objects are allocated in multiples of 16 bytes */
    uint8_t copy[64];
    size_t len = (size_t)r->layout.int_digits + 8;
    if (!au__plausible(addr) || len > sizeof copy) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read(r, addr, copy, len);
    return outcome == AU_OK ? au__int_value(&r->layout, copy, out) : outcome;
}

/* ---- dicts --------------------------------------------------------------------------------------------------- */

/* A keys object, and where the values are when they are not beside the keys. */
typedef struct table {
    au_addr entries;
    uint64_t count;
    size_t entry_bytes, key_at; /* the value of a combined table follows its key */
    au_addr values;             /* of a split table; 0 for a combined one */
} table;

static au_outcome keys_at(const au_remote *r, au_addr keys, au_addr values, table *out)
{
    const au_layout *l = &r->layout;
    uint8_t head[64];
    if (!au__plausible(keys) || l->keys_indices > sizeof head) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read(r, keys, head, l->keys_indices);
    if (outcome != AU_OK) {
        return outcome;
    }
    out->count = au__u64(head + l->keys_nentries);
    out->values = values;
    uint64_t index_bytes;
    if (l->minor == 10) {
        uint64_t size = au__u64(head + l->keys_size);
        if (size > (UINT64_C(1) << 30)) {
            return AU_FAULT;
        }
        index_bytes = size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
        out->entry_bytes = 24;
        out->key_at = 8;
    } else {
        unsigned log2 = head[l->keys_log2_index_bytes];
        unsigned kind = head[l->keys_kind];
        if (log2 > 32 || kind > 2) {
            return AU_FAULT;
        }
        index_bytes = UINT64_C(1) << log2;
        out->entry_bytes = kind == 0 ? 24 : 16;
        out->key_at = kind == 0 ? 8 : 0;
    }
    out->entries = keys + l->keys_indices + index_bytes;
    return out->count <= DICT_ENTRIES_MAX ? AU_OK : AU_FAULT;
}

static au_outcome dict_table(const au_remote *r, au_addr dict, table *out)
{
    const au_layout *l = &r->layout;
    uint8_t head[96];
    size_t len = (size_t)l->dict_values + 8;
    if (!au__plausible(dict) || len > sizeof head) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read(r, dict, head, len);
    if (outcome != AU_OK) {
        return outcome;
    }
    au_addr values = au__u64(head + l->dict_values);
    if (values) {
        values += l->values_data == AU_ABSENT ? 0 : l->values_data;
    }
    return keys_at(r, au__u64(head + l->dict_keys), values, out);
}

static au_outcome table_each(const au_remote *r, const table *t, au_dict_fn fn, void *baton)
{
    uint8_t bytes[ENTRIES_AT_ONCE * 24];
    uint8_t values[ENTRIES_AT_ONCE * 8];
    for (uint64_t i = 0; i < t->count; i += ENTRIES_AT_ONCE) {
        size_t n = t->count - i < ENTRIES_AT_ONCE ? (size_t)(t->count - i) : ENTRIES_AT_ONCE;
        au_piece pieces[2] = {
            {t->entries + i * t->entry_bytes, bytes, (uint32_t)(n * t->entry_bytes), 0},
            {t->values + i * 8, values, (uint32_t)(n * 8), 0},
        };
        size_t wanted = t->values ? 2 : 1;
        if (r->ops->read_many(r->proc, pieces, wanted) != wanted) {
            return pieces[0].outcome != AU_OK ? (au_outcome)pieces[0].outcome : (au_outcome)pieces[1].outcome;
        }
        for (size_t k = 0; k < n; k++) {
            const uint8_t *entry = bytes + k * t->entry_bytes + t->key_at;
            au_addr key = au__u64(entry);
            au_addr value = t->values ? au__u64(values + 8 * k) : au__u64(entry + 8);
            if (key && value && fn(baton, key, value) == AU_NEXT_STOP) {
                return AU_OK;
            }
        }
    }
    return AU_OK;
}

au_outcome au__pydict_each(const au_remote *r, au_addr dict, au_dict_fn fn, void *baton)
{
    table t;
    au_outcome outcome = dict_table(r, dict, &t);
    return outcome == AU_OK ? table_each(r, &t, fn, baton) : outcome;
}

/* Is the copied string object this ASCII text? `len` bytes of it were copied. */
static int copied_equals(const au_layout *l, const uint8_t *copy, const char *text, size_t text_len)
{
    uint32_t state = au__u32(copy + l->str_state);
    return (state >> l->kind_bit & 7) == 1 && (state >> l->compact_bit & 1) && (state >> l->ascii_bit & 1) &&
           au__u64(copy + l->str_length) == text_len && memcmp(copy + l->str_ascii_data, text, text_len) == 0;
}

/* Looks for a key: all keys of one read of entries are asked for at once. */
static au_outcome table_find(const au_remote *r, const table *t, const char *name, au_addr *slot, au_addr *value)
{
    enum { AT_ONCE = 64, COPY_MAX = 128 };
    const au_layout *l = &r->layout;
    size_t name_len = strlen(name);
    size_t len = l->str_ascii_data + name_len;
    uint8_t entries[AT_ONCE * 24];
    uint8_t copies[AT_ONCE][COPY_MAX];
    au_piece pieces[AT_ONCE];
    if (len > COPY_MAX) {
        return AU_FAULT;
    }
    for (uint64_t i = 0; i < t->count; i += AT_ONCE) {
        size_t n = t->count - i < AT_ONCE ? (size_t)(t->count - i) : AT_ONCE;
        au_outcome outcome = au__read(r, t->entries + i * t->entry_bytes, entries, n * t->entry_bytes);
        if (outcome != AU_OK) {
            return outcome;
        }
        for (size_t k = 0; k < n; k++) {
            au_addr key = au__u64(entries + k * t->entry_bytes + t->key_at);
            pieces[k] = (au_piece){key, copies[k], au__plausible(key) ? (uint32_t)len : 0, 0};
        }
        r->ops->read_many(r->proc, pieces, n);
        for (size_t k = 0; k < n; k++) {
            if (!pieces[k].len || pieces[k].outcome != AU_OK || !copied_equals(l, copies[k], name, name_len)) {
                continue;
            }
            au_addr at = t->values ? t->values + (i + k) * 8 : t->entries + (i + k) * t->entry_bytes + t->key_at + 8;
            uint64_t found;
            outcome = au__read_u64(r, at, &found);
            if (outcome != AU_OK || !found) {
                return outcome == AU_OK ? AU_FAULT : outcome;
            }
            if (slot) {
                *slot = at;
            }
            *value = found;
            return AU_OK;
        }
    }
    return AU_FAULT;
}

au_outcome au__pydict_slot(const au_remote *r, au_addr dict, const char *key, au_addr *slot, au_addr *value)
{
    table t;
    au_outcome outcome = dict_table(r, dict, &t);
    return outcome == AU_OK ? table_find(r, &t, key, slot, value) : outcome;
}

au_outcome au__pydict_get(const au_remote *r, au_addr dict, const char *key, au_addr *value)
{
    return au__pydict_slot(r, dict, key, NULL, value);
}

/* ---- instances ----------------------------------------------------------------------------------------------- */

enum { TYPE_INLINE_VALUES = 1u << 2, TYPE_MANAGED_DICT = 1u << 4, WORD = 8 };

/* Notes a word that the way to an attribute goes through. */
static au_outcome read_step(const au_remote *r, au_addr at, au_path *path, uint64_t *word)
{
    au_outcome outcome = au__read_u64(r, at, word);
    if (outcome == AU_OK && path && path->count < AU_PATH_MAX) {
        path->at[path->count] = at;
        path->was[path->count++] = *word;
    }
    return outcome;
}

/* Notes where the attribute itself was found. */
static au_outcome arrived(au_outcome outcome, au_addr slot, au_addr value, au_path *path)
{
    if (outcome == AU_OK && path && path->count < AU_PATH_MAX) {
        path->at[path->count] = slot;
        path->was[path->count++] = value;
    }
    return outcome;
}

/* Attributes in a values array whose names are the type's cached keys. */
static au_outcome values_get(const au_remote *r, au_addr type, au_addr values, const char *name, au_path *path,
                             au_addr *value)
{
    au_addr keys;
    au_addr slot = 0;
    table t;
    au_outcome outcome = au__read_u64(r, type + r->layout.type_cached_keys, &keys);
    if (outcome == AU_OK) {
        outcome = keys_at(r, keys, values, &t);
    }
    if (outcome == AU_OK) {
        outcome = table_find(r, &t, name, &slot, value);
    }
    return arrived(outcome, slot, *value, path);
}

static au_outcome dict_get(const au_remote *r, au_addr dict, const char *name, au_path *path, au_addr *value)
{
    uint64_t unused;
    au_addr slot = 0;
    if (!au__plausible(dict)) {
        return AU_FAULT;
    }
    au_outcome outcome = read_step(r, dict + r->layout.dict_keys, path, &unused);
    if (outcome == AU_OK) {
        outcome = read_step(r, dict + r->layout.dict_values, path, &unused);
    }
    if (outcome == AU_OK) {
        outcome = au__pydict_slot(r, dict, name, &slot, value);
    }
    return arrived(outcome, slot, *value, path);
}

au_outcome au__instance_get(const au_remote *r, au_addr object, const char *name, au_path *path, au_addr *value)
{
    const au_layout *l = &r->layout;
    au_addr type;
    uint64_t flags;
    uint64_t word;
    *value = 0;
    if (path) {
        path->count = 0;
    }
    if (!au__plausible(object)) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read_u64(r, object + l->object_type, &type);
    if (outcome == AU_OK && !au__plausible(type)) {
        outcome = AU_FAULT;
    }
    if (outcome == AU_OK) {
        outcome = au__read_u64(r, type + l->type_flags, &flags);
    }
    if (outcome != AU_OK) {
        return outcome;
    }
    if (l->attrs == AU_ATTRS_DICTOFFSET || !(flags & TYPE_MANAGED_DICT)) {
        uint64_t offset;
        outcome = au__read_u64(r, type + l->type_dictoffset, &offset);
        if (outcome != AU_OK || offset == 0 || offset > 65536) {
            return outcome == AU_OK ? AU_FAULT : outcome;
        }
        outcome = read_step(r, object + offset, path, &word);
        return outcome == AU_OK ? dict_get(r, word, name, path, value) : outcome;
    }
    au_addr before = object + (au_addr)(int64_t)l->managed_dict;
    outcome = read_step(r, before, path, &word);
    if (outcome != AU_OK) {
        return outcome;
    }
    switch (l->attrs) {
    case AU_ATTRS_311: {
        uint64_t values;
        outcome = read_step(r, before - WORD, path, &values);
        if (outcome != AU_OK) {
            return outcome;
        }
        return values ? values_get(r, type, values, name, path, value) : dict_get(r, word, name, path, value);
    }
    case AU_ATTRS_312:
        return word & 1 ? values_get(r, type, word + 1, name, path, value) : dict_get(r, word, name, path, value);
    default:
        break;
    }
    if (word) {
        return dict_get(r, word, name, path, value);
    }
    if (!(flags & TYPE_INLINE_VALUES)) {
        return AU_FAULT;
    }
    uint64_t basic;
    uint8_t head[8];
    outcome = au__read_u64(r, type + l->type_basicsize, &basic);
    if (outcome != AU_OK || basic == 0 || basic > 65536) {
        return outcome == AU_OK ? AU_FAULT : outcome;
    }
    outcome = au__read(r, object + basic, head, sizeof head);
    if (outcome != AU_OK || head[l->values_valid] != 1) {
        return outcome == AU_OK ? AU_FAULT : outcome;
    }
    return values_get(r, type, object + basic + l->values_data, name, path, value);
}
