/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/engine/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/layouts.h"

const char *const world_builds[] = {"3.10.13-x86_64",  "3.11.7-x86_64",   "3.12.1-x86_64",
                                    "3.13.18-x86_64",  "3.13.18t-x86_64", "3.14.10-x86_64",
                                    "3.14.10t-x86_64", "3.15.2-x86_64",   "3.15.2t-x86_64"};

enum {
    HEAP_STEP = 1 << 20,
    CHUNK_BYTES = 16384,
    CHUNK_HEAD = 24,
    EXTRA_WORDS = 4, /* locals and stack of every frame */
    ACTIVE_MAX = 4096,
    RUNTIME_VADDR = 0x100000,
    VERSION_VADDR = 0x2000
};

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "world: %s failed\n", what);
        abort();
    }
}

static void *grown(void *array, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) {
        return array;
    }
    *cap = need * 2;
    array = realloc(array, *cap * size);
    must(array != NULL, "realloc");
    return array;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

au_addr world_alloc(world *w, size_t size)
{
    size = (size + 15u) & ~(size_t)15;
    if (w->heap + size > w->heap_end) {
        size_t step = size + 64 > HEAP_STEP ? size + 4096 : HEAP_STEP;
        w->heap = w->heap_end + 65536;
        must(au_image_map(w->image, w->heap, step, AU_PERM_READ | AU_PERM_WRITE, NULL) == 0, "map");
        w->heap_end = w->heap + step;
    }
    au_addr at = w->heap;
    w->heap += size;
    return at;
}

void world_word(world *w, au_addr at, uint64_t value)
{
    must(au_image_word(w->image, at, value) == 0, "write");
}

void world_int(world *w, au_addr at, uint32_t value)
{
    must(au_image_int(w->image, at, value) == 0, "write");
}

static void byte(world *w, au_addr at, uint8_t value)
{
    must(au_image_byte(w->image, at, value) == 0, "write");
}

uint64_t world_get(world *w, au_addr at)
{
    uint64_t value;
    const void *from = au_image_at(w->image, at, 8);
    must(from != NULL, "read");
    memcpy(&value, from, 8);
    return value;
}

/* ---- objects --------------------------------------------------------------------------------------------------- */

static au_addr object(world *w, size_t size, au_addr type)
{
    au_addr at = world_alloc(w, size);
    world_word(w, at + w->l.object_type, type);
    return at;
}

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

au_addr world_str32(world *w, const uint32_t *chars, size_t count, int form)
{
    const au_layout *l = &w->l;
    int ascii;
    unsigned width = width_of(chars, count, &ascii);
    au_addr at = object(w, (size_t)l->str_any + 16 + (count + 1) * 4, w->object_type);
    uint32_t state = width << l->kind_bit;
    if (form == W_STR_WSTR && l->ready_bit >= 0) {
        au_addr text = world_alloc(w, (count + 1) * 4);
        put_chars(w, text, chars, count, 4);
        world_int(w, at + l->str_state, 0);
        world_word(w, at + l->str_wstr, text);
        world_word(w, at + l->str_wstr + 24, count);
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

/* A keys object with room for `room` entries. kind: 0 general, 1 unicode, 2 split. */
static au_addr keys_object(world *w, int kind, const au_addr *keys, const au_addr *values, size_t n, size_t room)
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

static au_addr dict_object(world *w, au_addr keys, au_addr values)
{
    au_addr at = object(w, w->l.dict_values + 24u, w->object_type);
    world_word(w, at + w->l.dict_keys, keys);
    world_word(w, at + w->l.dict_values, values);
    return at;
}

au_addr world_dict(world *w, int general, const au_addr *keys, const au_addr *values, size_t n)
{
    return dict_object(w, keys_object(w, general ? 0 : 1, keys, values, n, n + 2), 0);
}

/* ---- code objects ---------------------------------------------------------------------------------------------- */

static int line_of(const world *w, int first, int unit)
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

static void fill_code(world *w, w_code *code)
{
    const au_layout *l = &w->l;
    world_word(w, code->addr + l->object_type, w->code_type);
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
}

static char *copy_text(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    must(copy != NULL, "malloc");
    return strcpy(copy, text);
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
    if (w->l.interp_code_generation != AU_ABSENT) {
        for (w_interp *i = w->interps; i; i = i->next) {
            au_addr at = i->addr + w->l.interp_code_generation;
            world_word(w, at, world_get(w, at) + 1);
        }
    }
}

/* ---- interpreters and threads ---------------------------------------------------------------------------------- */

w_interp *world_interp(world *w, int64_t id)
{
    const au_layout *l = &w->l;
    w_interp *interp = calloc(1, sizeof *interp);
    must(interp != NULL, "calloc");
    interp->addr = world_alloc(w, 16384);
    interp->id = id;
    world_word(w, interp->addr + l->interp_id, (uint64_t)id);
    world_word(w, interp->addr + l->interp_next, w->interps ? w->interps->addr : 0);
    if (l->interp_code_generation != AU_ABSENT) {
        world_word(w, interp->addr + l->interp_code_generation, 5);
    }
    au_addr keys[2] = {world_str(w, "version"), world_str(w, "hexversion")};
    au_addr values[2] = {world_str(w, "3"), world_int_object(w, layout_version(w->build))};
    world_word(w, interp->addr + l->interp_sysdict, world_dict(w, 0, keys, values, 2));
    world_word(w, w->runtime + l->runtime_interpreters_head, interp->addr);
    interp->next = w->interps;
    w->interps = interp;
    return interp;
}

w_thread *world_thread(world *w, w_interp *interp, uint64_t ident, au_tid tid)
{
    const au_layout *l = &w->l;
    w_thread *t = calloc(1, sizeof *t);
    must(t != NULL, "calloc");
    t->addr = world_alloc(w, 2048);
    t->interp = interp->addr;
    t->ident = ident;
    t->tid = tid;
    t->native = (uint64_t)tid;
    world_word(w, t->addr + l->tstate_interp, interp->addr);
    world_word(w, t->addr + l->tstate_thread_id, ident);
    world_word(w, t->addr + l->tstate_next, world_get(w, interp->addr + l->interp_threads_head));
    if (l->tstate_native_thread_id != AU_ABSENT) {
        world_word(w, t->addr + l->tstate_native_thread_id, (uint64_t)tid);
    } else {
        must(au_image_add_id(w->image, AU_ID_PTHREAD, ident, tid) == 0, "id");
    }
    if (l->tstate_cframe != AU_ABSENT) {
        t->cframe = world_alloc(w, 32);
        world_word(w, t->addr + l->tstate_cframe, t->cframe);
    }
    if (l->tstate_base_frame != AU_ABSENT) {
        au_addr base = t->addr + l->tstate_base_frame;
        world_word(w, base + l->frame_executable, w->object_type | 1);
        byte(w, base + l->frame_owner, 3);
        world_word(w, t->addr + l->tstate_frame, base);
    }
    world_word(w, interp->addr + l->interp_threads_head, t->addr);
    (void)au_image_remove_thread(w->image, tid);
    must(au_image_add_thread(w->image, tid, "python") == 0, "thread");
    must(au_image_set_thread(w->image, tid, AU_RUN_RUNNING, 1) == 0, "thread");
    t->next = w->threads;
    w->threads = t;
    return t;
}

void world_thread_end(world *w, w_thread *thread)
{
    const au_layout *l = &w->l;
    au_addr link = thread->interp + l->interp_threads_head;
    while (world_get(w, link) != thread->addr) {
        must(world_get(w, link) != 0, "unlink");
        link = world_get(w, link) + l->tstate_next;
    }
    world_word(w, link, world_get(w, thread->addr + l->tstate_next));
    (void)au_image_remove_thread(w->image, thread->tid);
}

/* ---- stacks ---------------------------------------------------------------------------------------------------- */

static void new_chunk(world *w, w_thread *t, size_t need)
{
    const au_layout *l = &w->l;
    size_t size = CHUNK_BYTES;
    while (size < need + CHUNK_HEAD) {
        size *= 2;
    }
    w_chunk *last = t->chunk_count ? &t->chunks[t->chunk_count - 1] : NULL;
    w_chunk chunk = {UINT64_C(0x7e0000000000) + (w->next_chunk++ << 20), size, CHUNK_HEAD};
    must(au_image_map(w->image, chunk.addr, size, AU_PERM_READ | AU_PERM_WRITE, NULL) == 0, "map");
    world_word(w, chunk.addr, last ? last->addr : 0);
    world_word(w, chunk.addr + 8, size);
    if (last) {
        world_word(w, last->addr + 16, (last->used - CHUNK_HEAD) / 8);
    }
    t->chunks = grown(t->chunks, &t->chunk_cap, t->chunk_count + 1, sizeof *t->chunks);
    t->chunks[t->chunk_count++] = chunk;
    world_word(w, t->addr + l->tstate_datastack_chunk, chunk.addr);
}

static au_addr outside_memory(world *w, w_thread *t)
{
    return t->spare_count ? t->spare[--t->spare_count] : world_alloc(w, 256);
}

static void give_back(w_thread *t, au_addr at)
{
    t->spare = grown(t->spare, &t->spare_cap, t->spare_count + 1, sizeof *t->spare);
    t->spare[t->spare_count++] = at;
}

static au_addr innermost_frame(const w_thread *t)
{
    for (size_t i = t->count; i-- > 0;) {
        if (t->frames[i].addr) {
            return t->frames[i].addr;
        }
    }
    return 0;
}

static void set_current(world *w, w_thread *t)
{
    const au_layout *l = &w->l;
    au_addr top = innermost_frame(t);
    if (!top && l->tstate_base_frame != AU_ABSENT) {
        top = t->addr + l->tstate_base_frame;
    }
    if (l->tstate_cframe == AU_ABSENT) {
        world_word(w, t->addr + l->tstate_frame, top);
        return;
    }
    world_word(w, t->cframe + l->cframe_current_frame, top);
    world_word(w, t->addr + l->tstate_cframe, t->cframe);
}

static void set_top(world *w, w_thread *t)
{
    if (w->l.tstate_datastack_top != AU_ABSENT && t->chunk_count) {
        const w_chunk *c = &t->chunks[t->chunk_count - 1];
        world_word(w, t->addr + w->l.tstate_datastack_top, c->addr + c->used);
    }
}

static void put_ip(world *w, const w_placed *p)
{
    const au_layout *l = &w->l;
    if (w->minor == 10) {
        world_int(w, p->addr + l->frame_ip, (uint32_t)p->frame.unit);
        return;
    }
    int tlbc = l->frame_tlbc_index != AU_ABSENT ? p->frame.tlbc : 0;
    au_addr start = p->frame.code->tlbc[tlbc];
    int unit = p->frame.unit < 0 && w->minor >= 13 ? 0 : p->frame.unit;
    world_word(w, p->addr + l->frame_ip, start + (au_addr)(int64_t)(2 * unit));
    if (l->frame_tlbc_index != AU_ABSENT) {
        world_int(w, p->addr + l->frame_tlbc_index, (uint32_t)tlbc);
    }
}

/* Up to 3.13: how much of its stack a frame uses; -1 while it executes. One that waits for C code still has -1. */
static void set_stacktop(world *w, const w_placed *p, int top)
{
    if (w->l.frame_stacktop != AU_ABSENT && p->addr && p->frame.owner != W_SHIM) {
        world_int(w, p->addr + w->l.frame_stacktop, (uint32_t)top);
    }
}

static void write_frame(world *w, const w_placed *p, au_addr previous)
{
    const au_layout *l = &w->l;
    world_word(w, p->addr + l->frame_previous, previous);
    if (w->minor == 10) {
        world_word(w, p->addr + l->frame_executable, p->frame.code->addr);
        byte(w, p->addr + l->frame_state, 0);
        put_ip(w, p);
        return;
    }
    if (p->frame.owner == W_SHIM) {
        world_word(w, p->addr + l->frame_executable, w->object_type | (l->tagged ? 1 : 0));
        byte(w, p->addr + l->frame_owner, 3);
        return;
    }
    uint64_t tag = l->tagged && (w->free_threaded || p->frame.owner == W_GENERATOR) ? 1 : 0;
    world_word(w, p->addr + l->frame_executable, p->frame.code->addr | tag);
    byte(w, p->addr + l->frame_owner, p->frame.owner == W_GENERATOR ? 1 : 0);
    set_stacktop(w, p, -1);
    put_ip(w, p);
}

void world_push(world *w, w_thread *t, w_frame frame)
{
    const au_layout *l = &w->l;
    w_placed p = {.frame = frame};
    au_addr previous = innermost_frame(t);
    if (!previous && l->tstate_base_frame != AU_ABSENT) {
        previous = t->addr + l->tstate_base_frame;
    }
    if (frame.owner == W_SHIM) {
        if (l->tstate_cframe != AU_ABSENT) {
            p.cframe = t->cframe;
            t->cframe = outside_memory(w, t);
        }
        p.addr = w->minor >= 12 ? outside_memory(w, t) : 0;
    } else if (w->minor == 10 || frame.owner == W_GENERATOR) {
        p.addr = outside_memory(w, t);
    } else {
        p.size = l->frame_localsplus + 8u * EXTRA_WORDS;
        const w_chunk *c = t->chunk_count ? &t->chunks[t->chunk_count - 1] : NULL;
        if (!c || c->used + p.size > c->size) {
            new_chunk(w, t, p.size);
        }
        w_chunk *to = &t->chunks[t->chunk_count - 1];
        p.addr = to->addr + to->used;
        to->used += p.size;
    }
    if (p.addr) {
        write_frame(w, &p, previous);
    }
    if (t->count && frame.owner != W_SHIM) {
        set_stacktop(w, &t->frames[t->count - 1], 2);
    }
    t->frames = grown(t->frames, &t->cap, t->count + 1, sizeof *t->frames);
    t->frames[t->count++] = p;
    set_top(w, t);
    set_current(w, t);
}

void world_pop(world *w, w_thread *t)
{
    const au_layout *l = &w->l;
    w_placed p = t->frames[--t->count];
    if (p.cframe) {
        give_back(t, t->cframe);
        t->cframe = p.cframe;
    }
    if (p.size) {
        w_chunk *c = &t->chunks[t->chunk_count - 1];
        c->used -= p.size;
        if (l->tagged) {
            world_word(w, p.addr + l->frame_executable, 1);
        }
        if (c->used == CHUNK_HEAD && t->chunk_count > 1) {
            must(au_image_unmap(w->image, c->addr) == 0, "unmap");
            t->chunk_count--;
            world_word(w, t->chunks[t->chunk_count - 1].addr + 16, 0);
            world_word(w, t->addr + l->tstate_datastack_chunk, t->chunks[t->chunk_count - 1].addr);
        }
    } else if (p.addr) {
        if (w->minor == 10) {
            byte(w, p.addr + l->frame_state, 1);
        }
        if (l->tagged) {
            world_word(w, p.addr + l->frame_executable, 1);
        }
        give_back(t, p.addr);
    }
    if (t->count) {
        set_stacktop(w, &t->frames[t->count - 1], -1);
    }
    set_top(w, t);
    set_current(w, t);
}

void world_stack(world *w, w_thread *t, const w_frame *frames, size_t count)
{
    while (t->count) {
        world_pop(w, t);
    }
    world_push(w, t, (w_frame){.owner = W_SHIM});
    for (size_t i = 0; i < count; i++) {
        world_push(w, t, frames[i]);
    }
}

void world_set_unit(world *w, w_thread *t, size_t index, int unit)
{
    t->frames[index].frame.unit = unit;
    put_ip(w, &t->frames[index]);
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

void world_threading(world *w, w_interp *interp)
{
    const au_layout *l = &w->l;
    interp->keys = keys_object(w, 0, NULL, NULL, 0, ACTIVE_MAX);
    interp->active = dict_object(w, interp->keys, 0);
    au_addr names[3] = {world_str(w, "Thread"), world_str(w, "_active"), world_str(w, "_limbo")};
    au_addr things[3] = {w->object_type, interp->active, w->object_type};
    au_addr module = object(w, l->module_dict + 16u, w->object_type);
    world_word(w, module + l->module_dict, world_dict(w, 0, names, things, 3));
    au_addr keys[80];
    au_addr values[80];
    for (size_t i = 0; i < 80; i++) { /* in one read of entries it is not */
        char name[16];
        snprintf(name, sizeof name, "module%zu", i);
        keys[i] = world_str(w, i == 70 ? "threading" : name);
        values[i] = i == 70 ? module : i == 5 ? 0 : w->object_type;
    }
    world_word(w, interp->addr + l->interp_modules, world_dict(w, interp->id % 2 == 1, keys, values, 80));
}

static const char *const attributes[] = {"_target", "_args", "_name", "_native_id", "_daemonic"};
enum { ATTRIBUTES = 5, ATTRIBUTE_NAME = 2, ATTRIBUTE_NATIVE = 3 };

static au_addr thread_object(world *w, w_thread *t, const char *name, int style)
{
    const au_layout *l = &w->l;
    enum { BASIC = 64 };
    au_addr at = world_alloc(w, 64 + BASIC + 8 + 8 * ATTRIBUTES) + 64; /* words before it */
    au_addr names[ATTRIBUTES];
    au_addr values[ATTRIBUTES] = {w->object_type, w->object_type, world_str(w, name), world_int_object(w, t->native),
                                  0};
    if (!w->thread_type) {
        w->thread_type = world_alloc(w, 2048);
        for (int i = 0; i < ATTRIBUTES; i++) {
            names[i] = world_str(w, attributes[i]);
        }
        w->thread_keys = keys_object(w, 2, names, NULL, ATTRIBUTES, ATTRIBUTES + 3);
        world_word(w, w->thread_type + l->type_cached_keys, w->thread_keys);
        world_word(w, w->thread_type + l->type_basicsize, BASIC);
        world_word(w, w->thread_type + l->type_dictoffset, l->attrs == AU_ATTRS_DICTOFFSET ? 16 : (uint64_t)-1);
        world_word(w, w->thread_type + l->type_flags, w->minor == 10 ? 0 : w->minor < 13 ? 1u << 4 : 1u << 4 | 1u << 2);
    }
    world_word(w, at + l->object_type, w->thread_type);
    au_addr dict = 0;
    au_addr array = 0;
    uint64_t skip = l->values_data == AU_ABSENT ? 0 : l->values_data;
    if (style == W_NAME_DICT) {
        for (int i = 0; i < ATTRIBUTES; i++) {
            names[i] = world_str(w, attributes[i]);
        }
        dict = world_dict(w, 0, names, values, ATTRIBUTES);
        au_addr keys = world_get(w, dict + l->dict_keys);
        size_t index = 16; /* bytes: as many as entries fit, in so small a dict */
        au_addr each = w->minor == 10 ? 24 : 16;
        t->name_slot = keys + l->keys_indices + index + ATTRIBUTE_NAME * each + each - 8;
        must(world_get(w, t->name_slot) == values[ATTRIBUTE_NAME], "slot");
    } else {
        array = l->attrs == AU_ATTRS_INLINE ? at + BASIC : world_alloc(w, 8 + 8 * ATTRIBUTES);
        for (size_t i = 0; i < ATTRIBUTES; i++) {
            world_word(w, array + skip + 8 * i, values[i]);
        }
        t->name_slot = array + skip + 8 * ATTRIBUTE_NAME;
        if (l->attrs == AU_ATTRS_INLINE) {
            byte(w, array + l->values_valid, 1);
        }
    }
    au_addr before = at + (au_addr)(int64_t)l->managed_dict;
    switch (l->attrs) {
    case AU_ATTRS_DICTOFFSET: /* a split dict as a rule */
        world_word(w, at + 16, dict ? dict : dict_object(w, w->thread_keys, array));
        break;
    case AU_ATTRS_311:
        world_word(w, before, dict);
        world_word(w, before - 8, array);
        break;
    case AU_ATTRS_312:
        world_word(w, before, dict ? dict : array - 1);
        break;
    default:
        world_word(w, before, dict);
    }
    return at;
}

void world_name(world *w, w_interp *interp, w_thread *t, const char *name, int style)
{
    const au_layout *l = &w->l;
    t->object = thread_object(w, t, name, style);
    size_t log2 = 3;
    while (((size_t)1 << log2) * 2 / 3 < ACTIVE_MAX) {
        log2++;
    }
    au_addr entries = interp->keys + l->keys_indices + ((au_addr)2 << log2);
    au_addr entry = entries + 24 * interp->active_count + 8;
    must(interp->active_count < ACTIVE_MAX, "room");
    world_word(w, entry, world_int_object(w, t->ident));
    world_word(w, entry + 8, t->object);
    world_word(w, interp->keys + l->keys_nentries, ++interp->active_count);
}

void world_rename(world *w, w_thread *t, const char *name)
{
    world_word(w, t->name_slot, world_str(w, name));
}

/* ---- what must come out ---------------------------------------------------------------------------------------- */

static void append(au_buf *out, const char *text)
{
    must(au_buf_append(out, text, strlen(text)) == 0, "append");
}

static void append_place(au_buf *out, const char *file, const char *scope, const uint32_t n[4])
{
    char numbers[64];
    if (out->len) {
        append(out, ";");
    }
    append(out, file);
    append(out, ":");
    append(out, scope);
    snprintf(numbers, sizeof numbers, ":%u:%u:%u:%u", n[0], n[1], n[2], n[3]);
    append(out, numbers);
}

void world_expect(world *w, const w_thread *t, au_buf *out)
{
    size_t innermost = t->count;
    while (innermost && t->frames[innermost - 1].frame.owner == W_SHIM) {
        innermost--;
    }
    out->len = 0;
    for (size_t i = 0; i < innermost; i++) {
        const w_frame *f = &t->frames[i].frame;
        if (f->owner == W_SHIM) {
            continue;
        }
        int unit = f->unit;
        if (w->minor >= 11 && unit < 1 && f->owner == W_PLAIN && i + 1 < innermost) {
            continue; /* not begun and not the leaf */
        }
        uint32_t line = (uint32_t)line_of(w, f->code->first, unit);
        uint32_t n[4] = {line, 0, 0, 0};
        if (unit < 0 || (w->minor >= 11 && unit < 1)) {
            n[0] = (uint32_t)f->code->first;
            n[1] = w->minor >= 11 ? n[0] : 0;
        } else if (w->minor >= 11) {
            n[1] = line;
            switch (unit % 4) {
            case 0:
                n[2] = (uint32_t)(unit % 100 + 1);
                n[3] = (uint32_t)(unit % 100 + 8);
                break;
            case 1:
                n[1] = line + 2;
                n[2] = 10;
                n[3] = 300;
                break;
            case 2:
                break;
            default:
                n[0] = n[1] = 0;
            }
        }
        append_place(out, f->code->file, f->code->scope, n);
    }
    must(au_buf_append(out, "", 1) == 0, "append");
}

void w_stack_text(const au_sample *sample, au_buf *out)
{
    out->len = 0;
    for (size_t i = 0; i < sample->frame_count; i++) {
        const au_location *at = sample->frames[i];
        const uint32_t n[4] = {at->line, at->line_end, at->column, at->column_end};
        append_place(out, at->file, at->scope, n);
    }
    must(au_buf_append(out, "", 1) == 0, "append");
}

/* ---- the runtime and its module -------------------------------------------------------------------------------- */

static void le(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static void section(uint8_t *at, uint32_t name, uint32_t type, uint64_t addr, uint64_t offset, uint64_t size,
                    uint32_t link, uint64_t entsize)
{
    le(at, name, 4);
    le(at + 4, type, 4);
    le(at + 16, addr, 8);
    le(at + 24, offset, 8);
    le(at + 32, size, 8);
    le(at + 40, link, 4);
    le(at + 56, entsize, 8);
}

/* A shared object of one segment: .PyRuntime, and a symbol table with Py_Version from 3.11 on (gABI, chapter 4). */
static void add_module(world *w, int is_main, const char *path)
{
    enum { HEADERS = 64, SEGMENTS = 64, STRINGS = 128, SYMBOLS = 256, SIZE = 1024 };
    static const char strings[] = "\0.PyRuntime\0.symtab\0.strtab\0Py_Version";
    uint8_t elf[SIZE] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    le(elf + 16, 3, 2);
    le(elf + 18, 62, 2);
    le(elf + 32, SEGMENTS, 8);
    le(elf + 40, 512, 8);
    le(elf + 54, 56, 2);
    le(elf + 56, 1, 2);
    le(elf + 58, 64, 2);
    le(elf + 60, 4, 2);
    le(elf + 62, 3, 2);
    le(elf + SEGMENTS, 1, 4);
    le(elf + SEGMENTS + 32, SIZE, 8);
    le(elf + SEGMENTS + 40, RUNTIME_VADDR + w->runtime_size, 8);
    memcpy(elf + STRINGS, strings, sizeof strings);
    le(elf + SYMBOLS + 24, 28, 4);
    elf[SYMBOLS + 28] = 1 << 4 | 1;
    le(elf + SYMBOLS + 30, 1, 2);
    le(elf + SYMBOLS + 32, VERSION_VADDR, 8);
    le(elf + SYMBOLS + 40, 8, 8);
    section(elf + 512 + 64, 1, 1, RUNTIME_VADDR, 0, w->runtime_size, 0, 0);
    section(elf + 512 + 128, 12, 2, 0, SYMBOLS, w->minor == 10 ? 24 : 48, 3, 24);
    section(elf + 512 + 192, 20, 3, 0, STRINGS, sizeof strings, 0, 0);
    au_module module = {.base = w->bias,
                        .end = w->bias + RUNTIME_VADDR + w->runtime_size,
                        .bias = w->bias,
                        .path = path,
                        .is_main = is_main,
                        .bits = AU_BITS_64};
    must(au_image_add_module(w->image, &module, elf, sizeof elf) == 0, "module");
    must(au_image_map(w->image, w->bias + VERSION_VADDR, 4096, AU_PERM_READ, path) == 0, "map");
    world_word(w, w->bias + VERSION_VADDR, layout_version(w->build));
}

world *world_create_in(au_image *image, const char *label, int nth, int is_main, const char *path)
{
    world *w = calloc(1, sizeof *w);
    must(w != NULL, "calloc");
    w->image = image;
    w->label = label;
    w->build = layout_find(label);
    must(w->build >= 0, label);
    w->minor = layout_version(w->build) >> 16 & 0xff;
    w->free_threaded = layout_free_threaded(w->build);
    w->bias = UINT64_C(0x555500000000) + ((au_addr)(unsigned)nth << 32);
    w->runtime = w->bias + RUNTIME_VADDR;
    w->runtime_size = (uint64_t)layout_value(w->build, "runtime_state.size");
    w->heap = w->heap_end = UINT64_C(0x7f0000000000) + ((au_addr)(unsigned)nth << 36);
    w->next_version = 100;
    w->next_chunk = (uint64_t)(unsigned)nth << 12;
    must(au_image_map(image, w->runtime, (size_t)((w->runtime_size + 4095) & ~UINT64_C(4095)),
                      AU_PERM_READ | AU_PERM_WRITE, path) == 0,
         "map");
    must(au_image_describe(image, w->runtime, 0x100000, 77, 0) == 0, "describe");
    uint8_t table[AU_DEBUG_OFFSETS_MAX];
    size_t size = layout_table(w->build, table);
    if (size) {
        uint64_t version;
        must(au_layout_from_debug_offsets(table, size, w->runtime_size, &w->l, &version) == AU_OFFSETS_OK, "layout");
        must(au_image_write(image, w->runtime, table, size) == 0, "write");
    } else {
        w->l = *au_layout_static(w->minor);
    }
    if (is_main >= 0) {
        add_module(w, is_main, path);
    }
    w->object_type = world_alloc(w, 1024);
    w->code_type = world_alloc(w, 1024);
    au_addr name = world_alloc(w, 16);
    must(au_image_write(image, name, "code", 5) == 0, "write");
    world_word(w, w->code_type + w->l.type_name, name);
    au_addr other = world_alloc(w, 16);
    must(au_image_write(image, other, "type", 5) == 0, "write");
    world_word(w, w->object_type + w->l.type_name, other);
    world_word(w, w->object_type + w->l.object_type, w->object_type);
    return w;
}

world *world_create(const char *label)
{
    char path[64];
    au_image *image = au_image_create(4321);
    must(image != NULL, "image");
    int build = layout_find(label);
    must(build >= 0, label);
    snprintf(path, sizeof path, "/usr/bin/python3.%u", layout_version(build) >> 16 & 0xff);
    return world_create_in(image, label, 0, 1, path);
}

void world_destroy(world *w, int keep_image)
{
    for (w_code *c = w->codes, *next; c; c = next) {
        next = c->next;
        free(c->file);
        free(c->scope);
        free(c);
    }
    for (w_thread *t = w->threads, *next; t; t = next) {
        next = t->next;
        free(t->frames);
        free(t->chunks);
        free(t->spare);
        free(t);
    }
    for (w_interp *i = w->interps, *next; i; i = next) {
        next = i->next;
        free(i);
    }
    if (!keep_image) {
        au_image_destroy(w->image);
    }
    free(w);
}

w_thread *world_basic(world *w)
{
    w_interp *interp = world_interp(w, 0);
    w_thread *t = world_thread(w, interp, UINT64_C(0x7fff12345000), 4321);
    w_frame frames[1] = {{world_code(w, "/srv/app.py", "<module>", 1, 60), 5, W_PLAIN, 0}};
    world_word(w, w->runtime + w->l.runtime_main_thread, t->ident);
    world_stack(w, t, frames, 1);
    return t;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static int take_sample(au_sink *sink, const au_sample *sample)
{
    w_run *run = (w_run *)sink;
    if (run->on_sample) {
        return run->on_sample(run, sample);
    }
    run->samples = grown(run->samples, &run->cap, run->count + 1, sizeof *run->samples);
    au_buf text = {0};
    w_stack_text(sample, &text);
    run->samples[run->count++] = (w_sample){.thread = copy_text(sample->thread),
                                            .stack = (char *)text.data,
                                            .iid = sample->iid,
                                            .state_id = sample->state_id,
                                            .time_us = sample->time_us,
                                            .flags = sample->flags,
                                            .frames = sample->frame_count};
    return 0;
}

static int take_pass(au_sink *sink, uint64_t time_us)
{
    w_run *run = (w_run *)sink;
    run->passes++;
    run->time_us += time_us;
    return run->on_pass ? run->on_pass(run) : 0;
}

void w_run_init(w_run *run, world *w)
{
    memset(run, 0, sizeof *run);
    run->sink = (au_sink){take_sample, take_pass};
    run->options = (au_engine_options){.interval_us = 1000, .timeout_ms = 100, .random_seed = 7};
    run->w = w;
}

void w_run_deinit(w_run *run)
{
    au_engine_destroy(run->engine);
    if (run->proc) {
        run->proc->ops->close(run->proc);
    }
    for (size_t i = 0; i < run->count; i++) {
        free(run->samples[i].thread);
        free(run->samples[i].stack);
    }
    free(run->samples);
}

au_error *w_run_find(w_run *run)
{
    au_sys *sys = au_image_sys(run->w->image);
    au_error *error = au_engine_create(&run->options, sys, &run->sink, &run->engine);
    if (!error) {
        error = sys->ops->open(sys, 4321, AU_WANT_READ, &run->proc);
    }
    return error ? error : au_engine_find(run->engine, run->proc, &run->python);
}

void w_run_go(w_run *run, uint64_t passes)
{
    if (!run->engine) {
        run->options.max_passes = passes;
        au_error *error = w_run_find(run);
        if (error) {
            fprintf(stderr, "world: %s: %s: %s\n", run->w->label, error->message, error->cause ? error->cause : "");
            abort();
        }
    }
    au_error *error = au_engine_run(run->engine, &run->how);
    must(error == NULL, "run");
    run->stats = *au_engine_stats(run->engine);
}
