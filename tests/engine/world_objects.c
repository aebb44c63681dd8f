/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, numbers, dicts and code objects of an invented CPython. */
#include "tests/engine/layouts.h"
#include "tests/engine/world_internal.h"

/* ---- objects --------------------------------------------------------------------------------------------------- */

static unsigned width_of(const uint32_t *chars, size_t count, int *ascii)
{
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        most = chars[i] > most ? chars[i] : most;
    }
    *ascii = most < 128;
    return most < 256 ? 1 : most < 65536 ? 2 : 4;
}

static void put_chars(world *w, au_addr at, const uint32_t *chars, size_t count, unsigned width)
{
    uint8_t *to = au_image_at(w->image, at, count * width);
    must(to != NULL || count == 0, "write");
    for (size_t i = 0; i < count; i++) {
        for (unsigned k = 0; k < width; k++) {
            to[i * width + k] = (uint8_t)(chars[i] >> (8 * k));
        }
    }
}

/* As wchar_t: of four bytes, or UTF-16 where a long has four bytes. How many there are. */
static size_t put_wchars(world *w, au_addr at, const uint32_t *chars, size_t count)
{
    if (w->l.long_bytes == 8) {
        put_chars(w, at, chars, count, 4);
        return count;
    }
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t over = chars[i] - 0x10000;
        const uint32_t halves[2] = {0xd800 + (over >> 10), 0xdc00 + (over & 0x3ff)};
        const int two = chars[i] >= 0x10000;
        put_chars(w, at + 2 * n, two ? halves : &chars[i], two ? 2 : 1, 2);
        n += two ? 2 : 1;
    }
    return n;
}

au_addr world_str32(world *w, const uint32_t *chars, size_t count, int form)
{
    const au_layout *l = &w->l;
    int ascii;
    unsigned width = width_of(chars, count, &ascii);
    au_addr at = object(w, (size_t)l->str_any + 16 + (count + 1) * 4, w->object_type);
    uint32_t state = width << l->kind_bit;
    if (form == W_STR_WSTR && l->ready_bit >= 0) {
        au_addr text = world_alloc(w, (count + 1) * 4);
        world_int(w, at + l->str_state, 0);
        world_word(w, at + l->str_wstr, text);
        world_word(w, at + l->str_wstr + 24, put_wchars(w, text, chars, count));
        return at;
    }
    world_word(w, at + l->str_length, count);
    if (l->ready_bit >= 0) {
        state |= 1u << l->ready_bit;
    }
    if (form == W_STR_COMPACT) {
        state |= 1u << l->compact_bit | (unsigned)ascii << l->ascii_bit;
        put_chars(w, at + (ascii ? l->str_ascii_data : l->str_compact_data), chars, count, width);
    } else { /* of a subclass of str */
        au_addr text = world_alloc(w, (count + 1) * 4);
        put_chars(w, text, chars, count, width);
        world_word(w, at + l->str_any, text);
    }
    world_int(w, at + l->str_state, state);
    return at;
}

au_addr world_str(world *w, const char *utf8)
{
    const uint8_t *p = (const uint8_t *)utf8;
    size_t cap = strlen(utf8);
    size_t n = 0;
    uint32_t *chars = calloc(cap + 1, sizeof *chars);
    must(chars != NULL, "calloc");
    while (*p) {
        int more = *p < 0x80 ? 0 : *p < 0xe0 ? 1 : *p < 0xf0 ? 2 : 3;
        uint32_t c = more == 0 ? *p : *p & (0x3fu >> more);
        for (p++; more; more--) {
            c = c << 6 | (*p++ & 63u);
        }
        chars[n++] = c;
    }
    au_addr at = world_str32(w, chars, n, W_STR_COMPACT);
    free(chars);
    return at;
}

au_addr world_bytes(world *w, const void *bytes, size_t len)
{
    au_addr at = object(w, w->l.bytes_data + len + 1, w->object_type);
    world_word(w, at + w->l.object_size, len);
    must(len == 0 || au_image_write(w->image, at + w->l.bytes_data, bytes, len) == 0, "write");
    return at;
}

au_addr world_int_object(world *w, uint64_t value)
{
    const au_layout *l = &w->l;
    au_addr at = object(w, l->int_digits + 16u, w->object_type);
    uint64_t digits = 0;
    for (uint64_t rest = value; rest; rest >>= 30) {
        world_int(w, at + l->int_digits + 4 * digits++, (uint32_t)(rest & 0x3fffffff));
    }
    world_word(w, at + l->int_size, w->minor < 12 ? digits : digits << 3 | (digits ? 0 : 1));
    return at;
}

au_addr w__keys_object(world *w, int kind, const au_addr *keys, const au_addr *values, size_t n, size_t room)
{
    const au_layout *l = &w->l;
    unsigned log2 = 3;
    while (((size_t)1 << log2) * 2 / 3 < room) {
        log2++;
    }
    size_t size = (size_t)1 << log2;
    size_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
    au_addr at = world_alloc(w, l->keys_indices + size * width + room * 24);
    au_addr entries = at + l->keys_indices + size * width;
    if (w->minor == 10) {
        kind = 0;
        world_word(w, at + l->keys_size, size);
    } else {
        byte(w, at + l->keys_size, (uint8_t)log2);
        byte(w, at + l->keys_log2_index_bytes, (uint8_t)(log2 + (width == 4 ? 2 : width - 1)));
        byte(w, at + l->keys_kind, (uint8_t)kind);
    }
    world_word(w, at + l->keys_nentries, n);
    for (size_t i = 0; i < n; i++) {
        au_addr entry = entries + i * (kind == 0 ? 24 : 16) + (kind == 0 ? 8 : 0);
        world_word(w, entry, keys[i]);
        world_word(w, entry + 8, values ? values[i] : 0);
    }
    return at;
}

au_addr w__dict_object(world *w, au_addr keys, au_addr values)
{
    au_addr at = object(w, w->l.dict_values + 24u, w->object_type);
    world_word(w, at + w->l.dict_keys, keys);
    world_word(w, at + w->l.dict_values, values);
    return at;
}

au_addr world_dict(world *w, int general, const au_addr *keys, const au_addr *values, size_t n)
{
    return w__dict_object(w, w__keys_object(w, general ? 0 : 1, keys, values, n, n + 2), 0);
}

/* ---- code objects ---------------------------------------------------------------------------------------------- */

int w__line_of(const world *w, int first, int unit)
{
    return w->minor == 10 ? first + unit + 1 : first + unit + 1 - (unit + 1) / 4;
}

/* The table of every code object here: each unit its own entry, of the kinds in turn. */
static size_t line_table(const world *w, int units, uint8_t *out)
{
    size_t n = 0;
    for (int i = 0; i < units; i++) {
        if (w->minor == 10) {
            out[n++] = 2;
            out[n++] = 1;
            continue;
        }
        switch (i % 4) {
        case 0: /* one line on, two plain columns */
            out[n++] = 0x80 | 11 << 3;
            out[n++] = (uint8_t)(i % 100);
            out[n++] = (uint8_t)(i % 100 + 7);
            break;
        case 1: /* long: two lines on to its end, columns 10 and 300 */
            out[n++] = 0x80 | 14 << 3;
            out[n++] = 2;
            out[n++] = 2;
            out[n++] = 10;
            out[n++] = 0x40 | (300 & 63);
            out[n++] = 300 >> 6;
            break;
        case 2:
            out[n++] = 0x80 | 13 << 3;
            out[n++] = 2;
            break;
        default:
            out[n++] = 0x80 | 15 << 3;
        }
    }
    return n;
}

void world_code_refs(world *w, const w_code *code, uint32_t count)
{
    world_int(w, code->addr + (w->l.object_type < 24 ? 0 : 12), count); /* ob_refcnt, ob_ref_local */
}

static void fill_code(world *w, w_code *code)
{
    const au_layout *l = &w->l;
    world_word(w, code->addr + l->object_type, w->code_type);
    world_code_refs(w, code, 1);
    world_word(w, code->addr + l->code_filename, code->file_str);
    world_word(w, code->addr + l->code_name, code->scope_str);
    world_word(w, code->addr + l->code_linetable, code->table);
    world_int(w, code->addr + l->code_firstlineno, (uint32_t)code->first);
    if (w->minor == 10) {
        world_word(w, code->addr + l->code_bytecode, code->bytecode);
        return;
    }
    world_word(w, code->addr + l->object_size, (uint64_t)code->units);
    world_word(w, code->addr + l->code_qualname, code->scope_str);
    world_int(w, code->addr + l->code_firsttraceable, 1);
    if (l->code_framesize != AU_ABSENT) {
        world_int(w, code->addr + l->code_framesize, l->frame_localsplus / 8 + EXTRA_WORDS);
    }
    if (l->code_version != AU_ABSENT) {
        world_int(w, code->addr + l->code_version, w->next_version++);
    }
    for (w_interp *i = w->interps; i; i = i->next) {
        world_count_code(w, i, code);
    }
}

void world_count_code(world *w, const w_interp *interp, const w_code *code)
{
    if (w->minor != 13 || w->free_threaded) {
        return;
    }
    if (code) { /* struct _func_version_cache_item */
        uint32_t version = (uint32_t)world_get(w, code->addr + w->l.code_version);
        au_addr slot = interp->addr + WORLD_COUNTER + 8 + version % 4096 * 16;
        world_word(w, slot, w->object_type);
        world_word(w, slot + 8, code->addr);
    }
    world_word(w, interp->addr + WORLD_COUNTER, w->next_version);
}

w_code *world_code(world *w, const char *file, const char *scope, int first, int units)
{
    const au_layout *l = &w->l;
    w_code *code = calloc(1, sizeof *code);
    uint8_t *table = malloc((size_t)units * 6 + 1);
    must(code && table, "malloc");
    code->file = copy_text(file);
    code->scope = copy_text(scope);
    code->first = first;
    code->units = units;
    code->addr = world_alloc(w, 256 + (size_t)units * 2);
    code->file_str = world_str(w, file);
    code->scope_str = world_str(w, scope);
    code->table = world_bytes(w, table, line_table(w, units, table));
    if (w->minor == 10) {
        code->bytecode = object(w, l->bytes_data + (size_t)units * 2 + 1, w->object_type);
        world_word(w, code->bytecode + l->object_size, (uint64_t)units * 2);
    } else {
        code->bytecode = code->addr + l->code_bytecode;
    }
    code->tlbc[0] = code->bytecode;
    if (l->code_tlbc != AU_ABSENT) {
        au_addr array = world_alloc(w, 8 + 4 * 8);
        world_word(w, array, 4);
        world_word(w, array + 8, code->bytecode);
        for (size_t i = 1; i < 3; i++) { /* the last entry stays NULL */
            code->tlbc[i] = world_alloc(w, (size_t)units * 2);
            world_word(w, array + 8 + 8 * i, code->tlbc[i]);
        }
        world_word(w, code->addr + l->code_tlbc, array);
    }
    fill_code(w, code);
    free(table);
    code->next = w->codes;
    w->codes = code;
    return code;
}

static void overwrite(world *w, au_addr str, const char *text)
{
    must(au_image_write(w->image, str + w->l.str_ascii_data, text, strlen(text)) == 0, "write");
}

void world_code_remake(world *w, w_code *code, const char *file, const char *scope, int first, int same_strings)
{
    if (same_strings) { /* ASCII, as long as before */
        must(strlen(file) == strlen(code->file) && strlen(scope) == strlen(code->scope), "remake");
        overwrite(w, code->file_str, file);
        overwrite(w, code->scope_str, scope);
    } else {
        code->file_str = world_str(w, file);
        code->scope_str = world_str(w, scope);
    }
    free(code->file);
    free(code->scope);
    code->file = copy_text(file);
    code->scope = copy_text(scope);
    code->first = first;
    fill_code(w, code);
    code->frame = 0; /* code_dealloc frees it */
    if (w->l.interp_code_generation != AU_ABSENT) {
        for (w_interp *i = w->interps; i; i = i->next) {
            au_addr at = i->addr + w->l.interp_code_generation;
            world_word(w, at, world_get(w, at) + 1);
        }
    }
}
