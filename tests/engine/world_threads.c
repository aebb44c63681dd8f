/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters, threads, their stacks and their names. */
#include "tests/engine/layouts.h"
#include "tests/engine/world_internal.h"

enum { CHUNK_BYTES = 16384, CHUNK_HEAD = 24, ACTIVE_MAX = 4096 };

/* ---- interpreters and threads ---------------------------------------------------------------------------------- */

w_interp *world_interp(world *w, int64_t id)
{
    const au_layout *l = &w->l;
    w_interp *interp = calloc(1, sizeof *interp);
    must(interp != NULL, "calloc");
    interp->addr = world_alloc(w, 160 * 1024);
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
    for (const w_code *code = w->codes; code; code = code->next) {
        world_count_code(w, interp, code);
    }
    world_count_code(w, interp, NULL);
    return interp;
}

/* `prev` stands before `next` in every version (Include/cpython/pystate.h). */
static au_addr prev_of(const world *w, au_addr thread)
{
    return thread + w->l.tstate_next - 8;
}

w_thread *world_thread(world *w, w_interp *interp, uint64_t ident, au_tid tid)
{
    const au_layout *l = &w->l;
    w_thread *t = calloc(1, sizeof *t);
    must(t != NULL, "calloc");
    t->addr = world_alloc(w, 2048);
    t->interp = interp->addr;
    ident = l->long_bytes == 4 ? (uint32_t)ident : ident;
    t->ident = ident;
    t->tid = tid;
    t->native = (uint64_t)tid;
    world_word(w, t->addr + l->tstate_interp, interp->addr);
    world_word(w, t->addr + l->tstate_thread_id, UINT64_MAX); /* what is behind a short one is none of it */
    world_long(w, t->addr + l->tstate_thread_id, ident);
    au_addr next = world_get(w, interp->addr + l->interp_threads_head);
    world_word(w, t->addr + l->tstate_next, next);
    if (next) {
        world_word(w, prev_of(w, next), t->addr);
    }
    if (l->tstate_native_thread_id != AU_ABSENT) {
        world_word(w, t->addr + l->tstate_native_thread_id, UINT64_MAX);
        world_long(w, t->addr + l->tstate_native_thread_id, (uint64_t)tid);
    } else {
        must(au_image_add_id(w->image, AU_ID_PTHREAD, ident, tid) == 0, "id");
    }
    if (l->tstate_id != AU_ABSENT) {
        world_word(w, t->addr + l->tstate_id, ++w->thread_states);
    }
    if (l->tstate_cframe != AU_ABSENT) {
        t->cframe = world_alloc(w, 32);
        world_word(w, t->addr + l->tstate_cframe, t->cframe);
    }
    if (l->tstate_base_frame != AU_ABSENT) {
        t->base_frame = t->addr + (au_addr)layout_value(w->build, "thread_state_impl.base_frame");
        world_word(w, t->addr + l->tstate_base_frame, t->base_frame);
        world_word(w, t->base_frame + l->frame_executable, w->object_type | 1);
        byte(w, t->base_frame + l->frame_owner, 3);
        world_word(w, t->addr + l->tstate_frame, t->base_frame);
    }
    world_word(w, interp->addr + l->interp_threads_head, t->addr);
    if (au_image_set_thread(w->image, tid, AU_RUN_RUNNING, 1)) { /* else it is one that lives on, as after an exec */
        must(au_image_add_thread(w->image, tid, "python") == 0, "thread");
        must(au_image_set_thread(w->image, tid, AU_RUN_RUNNING, 1) == 0, "thread");
    }
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
    au_addr next = world_get(w, thread->addr + l->tstate_next);
    world_word(w, link, next);
    if (next) {
        world_word(w, prev_of(w, next), world_get(w, prev_of(w, thread->addr)));
    }
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
    /* the first word of the first one stays free (Python/pystate.c, push_chunk) */
    w_chunk chunk = {UINT64_C(0x7e0000000000) + (w->next_chunk++ << 20), size, CHUNK_HEAD + (t->chunk_count ? 0 : 8)};
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
    return t->spare_count ? t->spare[--t->spare_count] : world_alloc(w, 256) + 16;
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
    top = top ? top : t->base_frame;
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
    if (w->minor == 11 && p->frame.owner == W_GENERATOR) {
        byte(w, p->addr - 5, 0); /* gi_frame_state: FRAME_EXECUTING */
    }
    set_stacktop(w, p, -1);
    put_ip(w, p);
}

void world_push(world *w, w_thread *t, w_frame frame)
{
    const au_layout *l = &w->l;
    w_placed p = {.frame = frame};
    au_addr previous = innermost_frame(t);
    previous = previous ? previous : t->base_frame;
    if (frame.owner == W_SHIM) {
        if (l->tstate_cframe != AU_ABSENT) {
            p.cframe = t->cframe;
            t->cframe = outside_memory(w, t);
        }
        p.addr = w->minor >= 12 ? outside_memory(w, t) : 0;
    } else if (w->minor == 10 && frame.owner != W_GENERATOR && frame.code->frame) {
        p.addr = frame.code->frame; /* Objects/frameobject.c of 3.10: frame_alloc */
        ((w_code *)frame.code)->frame = 0;
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
    if (l->frame_is_entry != AU_ABSENT && p.addr) {
        byte(w, p.addr + l->frame_is_entry, !t->count || t->frames[t->count - 1].frame.owner == W_SHIM);
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
    au_addr cframe = p.cframe ? t->cframe : 0;
    t->cframe = p.cframe ? p.cframe : t->cframe;
    if (p.size) {
        w_chunk *c = &t->chunks[t->chunk_count - 1];
        c->used -= p.size;
        set_stacktop(w, &p, 0); /* RETURN_VALUE saves the stack pointer */
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
        w_code *code = (w_code *)p.frame.code;
        if (w->minor == 10) {
            byte(w, p.addr + l->frame_state, p.frame.owner == W_GENERATOR ? 0xff : 1);
        }
        if (p.frame.owner == W_GENERATOR) { /* it hands out a value */
            world_word(w, p.addr + l->frame_previous, 0);
        }
        if (w->minor == 11 && p.frame.owner == W_GENERATOR) {
            byte(w, p.addr - 5, 0xff); /* gi_frame_state: FRAME_SUSPENDED */
        }
        if (l->tagged) {
            world_word(w, p.addr + l->frame_executable, 1);
        }
        if (w->minor == 10 && p.frame.owner == W_PLAIN && !code->frame) {
            code->frame = p.addr;
        } else {
            give_back(t, p.addr);
        }
    }
    if (cframe) {
        give_back(t, cframe); /* last, so that it is the next entry's cframe again */
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

void world_gil(world *w, w_interp *interp, const w_thread *holder)
{
    const au_layout *l = &w->l;
    enum { HOLDER = 8, LOCKED = 16 }; /* pycore_gil.h */
    const au_addr switches_at = LOCKED + (au_addr)l->long_bytes;
    if (!interp->gil && l->runtime_gil != AU_ABSENT) {
        interp->gil = w->runtime + l->runtime_gil;
    } else if (!interp->gil) {
        interp->gil = world_alloc(w, 64);
        world_word(w, interp->addr + l->interp_gil, interp->gil);
    }
    if (world_get(w, interp->gil + HOLDER) != holder->addr) {
        world_word(w, interp->gil + HOLDER, holder->addr);
        world_long(w, interp->gil + switches_at, world_get(w, interp->gil + switches_at) + 1);
    }
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

void world_threading(world *w, w_interp *interp)
{
    const au_layout *l = &w->l;
    interp->keys = w__keys_object(w, 0, NULL, NULL, 0, ACTIVE_MAX);
    interp->active = w__dict_object(w, interp->keys, 0);
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
        w->thread_keys = w__keys_object(w, 2, names, NULL, ATTRIBUTES, ATTRIBUTES + 3);
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
        world_word(w, at + 16, dict ? dict : w__dict_object(w, w->thread_keys, array));
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
