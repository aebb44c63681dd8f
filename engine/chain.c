/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Follows the frames of one look, in the copies.
 *
 * 3.10: PyFrameObject by f_back, all on the heap (Include/cpython/frameobject.h). 3.11+: _PyInterpreterFrame by
 * `previous` (Include/internal/pycore_frame.h, from 3.14 pycore_interpframe_structs.h), in the thread's data-stack
 * chunks (Include/internal/pycore_pystate.h, Python/pystate.c: push_chunk), but for generators, whose frame is in
 * the generator object, and for shims, which are on the C stack.
 */
#include <stdlib.h>

#include "engine/stack.h"

enum {
    CHUNK_HEADER = 24, /* previous, size, top */
    CHUNK_SIZE_MAX = 1 << 30,
    CHUNKS_MAX = 1 << 20,
    FRAMES_MAX = 1 << 24, /* a bound for a walk that reads as it goes: no stack is that deep */
    SLACK = 512,          /* asked for beyond the top of the last look: the next calls */
    CALLER_MAX = 4096,    /* bytes of one frame's locals and stack, where they are not told */
    PLAIN_MAX = 64,       /* innermost frames that one copy alone may tell */
    OWNER_GENERATOR = 1,  /* Include/internal/pycore_frame.h, enum _frameowner */
    FIRST_SLOT = 8,       /* of the first chunk: kept free (Python/pystate.c, push_chunk) */
    GEN_STATE = -5        /* 3.11: gi_frame_state, from gi_iframe on; FRAME_EXECUTING is 0 */
};

static const au_raw_frame nothing;

/* The copy of a frame that lies in chunk i; NULL if the copy is too short or was not readable. */
static const uint8_t *in_chunk(au_engine *e, const au_chunk *c, au_addr addr, int look)
{
    const au_piece *p = &e->scratch.pieces[c->piece[look]];
    uint64_t at = addr - c->addr;
    return p->outcome == AU_OK && at + e->remote.layout.frame_localsplus <= p->len ? (const uint8_t *)p->buf + at
                                                                                   : NULL;
}

static int covers(const au_chunk *c, au_addr addr)
{
    return addr >= c->addr && addr - c->addr < c->size;
}

/*
 * Where the copy of the frame at addr is; NULL if it was not asked for or not readable. *chunk and *outside remember
 * where the last hit was: chains go through both lists in order, so nearly every search ends at once.
 */
static const uint8_t *copy_of(au_engine *e, au_thread_rec *rec, size_t outside_count, au_addr addr, int look,
                              size_t *chunk, size_t *outside, int32_t *at)
{
    for (size_t n = 0; n < 2 && *chunk + n < rec->chunk_count; n++) {
        if (covers(&rec->chunks[*chunk + n], addr)) {
            *chunk += n;
            return in_chunk(e, &rec->chunks[*chunk], addr, look);
        }
    }
    for (size_t n = 0; n < outside_count; n++) {
        size_t i = *outside + n < outside_count ? *outside + n : *outside + n - outside_count;
        if (rec->outside[i].addr == addr) {
            const uint8_t *copy = au__spans_copy(e, &rec->frames, rec->outside[i].part, look);
            rec->outside[i].idle = 0;
            *at = (int32_t)i;
            *outside = i + 1 < outside_count ? i + 1 : 0;
            return copy ? copy + au__frame_lead(&e->remote.layout) : NULL;
        }
    }
    for (size_t i = 0; i < rec->chunk_count; i++) {
        if (covers(&rec->chunks[i], addr)) {
            *chunk = i;
            return in_chunk(e, &rec->chunks[i], addr, look);
        }
    }
    return NULL;
}

/* The chunk that has addr, from `chunk` on; chunk_count: none. */
static size_t chunk_of(const au_thread_rec *rec, size_t chunk, au_addr addr)
{
    for (size_t n = 0; n < rec->chunk_count; n++) {
        size_t i = chunk + n < rec->chunk_count ? chunk + n : chunk + n - rec->chunk_count;
        if (covers(&rec->chunks[i], addr)) {
            return i;
        }
    }
    return rec->chunk_count;
}

typedef enum verdict { FRAME_GOOD, FRAME_SKIP, FRAME_DROP, FRAME_CUT, FRAME_LEFT, FRAME_BAD } verdict;

/*
 * Is this frame, in one copy, the one that executes? Up to 3.13 it says so itself: its stack pointer is in a register
 * and `stacktop` is -1, and a caller's is not (Include/internal/pycore_frame.h, _PyFrame_GetStackPointer). From 3.14 on
 * a frame that has returned loses its executable, so the innermost live one is the last that has one.
 */
static int executes(const au_layout *l, const uint8_t *f)
{
    return l->frame_stacktop != AU_ABSENT && au__i32(f + l->frame_stacktop) == -1;
}

/* Judges a copied frame. DROP: a frame that has returned already; its caller is intact. CUT: no caller. LEFT: calls
 * nobody. */
static verdict judge(const au_layout *l, const uint8_t *f, au_addr addr, int innermost, au_raw_frame *out,
                     au_addr *previous)
{
    *out = nothing;
    out->addr = addr;
    out->shim = -1;
    *previous = au__u64(f + l->frame_previous);
    if (*previous && !au__plausible(*previous)) {
        return FRAME_BAD;
    }
    uint64_t executable = au__u64(f + l->frame_executable);
    if (l->minor == 10) {
        int8_t state = (int8_t)f[l->frame_state];
        out->ip = (uint64_t)(int64_t)au__i32(f + l->frame_ip);
        out->code = executable;
        /*
         * FRAME_EXECUTING 0, FRAME_UNWINDING 2; created and ended ones are no callers. The innermost one executed when
         * the thread state was read, whatever its copy says: it is kept for its code object or on a free list, with
         * code and caller as they were (Objects/frameobject.c, frame_dealloc). Only a generator's is cut off when it
         * hands out a value (Objects/genobject.c, gen_send_ex).
         */
        int runs = state == 0 || state == 2;
        out->owner = au__u64(f + l->frame_ip - 8) != 0; /* f_gen: OWNER_GENERATOR */
        if (!*previous && out->owner) {
            return FRAME_CUT;
        }
        return !au__plausible(executable) ? FRAME_BAD : runs || (innermost && *previous) ? FRAME_GOOD : FRAME_LEFT;
    }
    out->owner = f[l->frame_owner];
    out->ip = au__u64(f + l->frame_ip);
    if (l->frame_tlbc_index != AU_ABSENT) {
        out->tlbc = au__i32(f + l->frame_tlbc_index);
    }
    if (out->owner > 4) {
        return FRAME_BAD;
    }
    if (out->owner >= l->shim_owner) {
        return FRAME_SKIP;
    }
    if (l->tagged) {
        /* _PyStackRef: 11 is an int, 01 alone is NULL (Include/internal/pycore_stackref.h) */
        if ((executable & 3) == 3) {
            return FRAME_BAD;
        }
        executable &= ~UINT64_C(3);
        if (executable == 0) {
            return innermost ? FRAME_DROP : FRAME_BAD;
        }
    }
    out->code = executable;
    if (l->minor == 11 && out->owner == OWNER_GENERATOR && !*previous && f[GEN_STATE] != 0) {
        return FRAME_CUT; /* it has handed out a value meanwhile: nobody's caller, and no root */
    }
    return au__plausible(executable) ? FRAME_GOOD : FRAME_BAD;
}

static int push(au_engine *e, int look, const au_raw_frame *frame)
{
    au_scratch *s = &e->scratch;
    if (au__grow(&s->raw[look], &s->raw_cap[look], s->raw_count[look] + 1, sizeof *s->raw[look], &e->stats)) {
        return -1;
    }
    s->raw[look][s->raw_count[look]++] = *frame;
    return 0;
}

static int note_outside(au_engine *e, au_thread_rec *rec, au_addr addr)
{
    for (size_t i = 0; i < rec->chunk_count; i++) {
        if (covers(&rec->chunks[i], addr)) {
            uint64_t need = addr - rec->chunks[i].addr + e->remote.layout.frame_localsplus + SLACK;
            if (need > rec->chunks[i].len) {
                rec->chunks[i].len = need < rec->chunks[i].size ? (uint32_t)need : rec->chunks[i].size;
            }
            return 0;
        }
    }
    for (size_t i = 0; i < rec->outside_count && i < 64; i++) {
        if (rec->outside[i].addr == addr) {
            return 0;
        }
    }
    if (au__grow(&rec->outside, &rec->outside_cap, rec->outside_count + 1, sizeof *rec->outside, &e->stats)) {
        return -1;
    }
    rec->outside[rec->outside_count++] = (au_outside){.addr = addr, .depth = UINT32_MAX, .part = UINT32_MAX};
    rec->frames.stale = 1;
    return 0;
}

/*
 * Is this the first frame of the first chunk, and has it been called through the entry from C that was the root before?
 * Nobody below it can be in a chunk, so that entry need not be read again.
 */
static int is_first(const au_thread_rec *rec, const au_raw_frame *frame, const uint8_t *f)
{
    const au_chunk *oldest = rec->chunk_count ? &rec->chunks[rec->chunk_count - 1] : NULL;
    return oldest && frame->outside < 0 && frame->addr == oldest->addr + CHUNK_HEADER + FIRST_SLOT &&
           au__u64(f - CHUNK_HEADER - FIRST_SLOT) == 0;
}

/* Where the frame that calls raw[i] ends: at the next one in a chunk, or where the thread state says. */
static au_addr end_of_caller(const au_scratch *s, const au_batch *b, int look, size_t i)
{
    for (; i-- > 0;) {
        if (s->raw[look][i].outside < 0) {
            return s->raw[look][i].addr;
        }
    }
    return b->chunk_top;
}

typedef struct walk {
    au_engine *e;
    au_thread_rec *rec;
    const au_batch *b;
    int look, chase;
    au_addr base_frame;
    size_t chunk, outside; /* where the last hits were */
    size_t known;          /* frames outside that have a copy; those noted in this very walk have none yet */
    int innermost, last_skipped;
    au_addr end;      /* where the frame to come ends, if it lies in a chunk */
    au_addr entry;    /* what the first frame of the first chunk was called through */
    au_outside *call; /* by which the frame to come is said to have resumed the one before; NULL: no inference */
    uint8_t single[512];
} walk;

/* Where the frame at addr is: its copy, or read now and noted. *end says why it is not. */
static const uint8_t *fetch(walk *w, au_addr addr, int32_t *at, au_chain_end *end)
{
    const au_layout *l = &w->e->remote.layout;
    const uint8_t *f = copy_of(w->e, w->rec, w->known, addr, w->look, &w->chunk, &w->outside, at);
    if (f || !w->chase) {
        *end = AU_CHAIN_MISSING;
        return f;
    }
    uint32_t lead = au__frame_lead(l);
    uint32_t len = lead + (l->minor == 10 ? l->frame_state + 4 : l->frame_localsplus);
    *end = AU_CHAIN_BROKEN;
    if (len > sizeof w->single || au__read(&w->e->remote, addr - lead, w->single, len) != AU_OK) {
        return NULL;
    }
    size_t had = w->rec->outside_count;
    if (note_outside(w->e, w->rec, addr)) {
        *end = AU_CHAIN_MEMORY;
        return NULL;
    }
    *at = w->rec->outside_count > had ? (int32_t)had : -1;
    return w->single + lead;
}

/* The frame at *addr; then *addr is the next one. AU_CHAIN_ON: there is one. */
static au_chain_end visit(walk *w, au_addr *addr)
{
    const au_layout *l = &w->e->remote.layout;
    au_scratch *s = &w->e->scratch;
    int32_t at = -1;
    au_chain_end end = AU_CHAIN_BROKEN;
    const uint8_t *f = au__plausible(*addr) ? fetch(w, *addr, &at, &end) : NULL;
    if (!f) {
        return end;
    }
    au_raw_frame frame;
    au_addr previous;
    verdict v = judge(l, f, *addr, w->innermost, &frame, &previous);
    frame.outside = at;
    if (v == FRAME_BAD || v == FRAME_LEFT) {
        return v == FRAME_BAD ? AU_CHAIN_BROKEN : AU_CHAIN_CUT;
    }
    if (w->call) {
        if ((v != FRAME_GOOD && v != FRAME_CUT) || frame.code != w->call->caller_code) {
            return AU_CHAIN_BROKEN;
        }
        frame.ip = w->call->caller_ip; /* it goes on by itself meanwhile */
        w->call = NULL;
    }
    if (v == FRAME_SKIP) {
        if (s->raw_count[w->look]) {
            s->raw[w->look][s->raw_count[w->look] - 1].entered = 1;
            s->raw[w->look][s->raw_count[w->look] - 1].shim = at;
        }
    } else if (v != FRAME_DROP) {
        if (push(w->e, w->look, &frame)) {
            return AU_CHAIN_MEMORY;
        }
        w->innermost = 0;
        w->end = frame.outside < 0 ? frame.addr : w->end;
    }
    w->last_skipped = v == FRAME_SKIP;
    if (v == FRAME_CUT) {
        return AU_CHAIN_CUT;
    }
    if (!previous || previous == w->base_frame) {
        w->rec->root_entry = w->last_skipped && w->entry == *addr ? *addr : w->rec->root_entry;
        /* from 3.12 on each entry from C has a shim below it, so a chain that ends elsewhere was cut */
        return previous || l->minor < 12 || w->last_skipped ? AU_CHAIN_ROOT
               : frame.owner == OWNER_GENERATOR             ? AU_CHAIN_CUT
                                                            : AU_CHAIN_BROKEN;
    }
    int first = !w->last_skipped && is_first(w->rec, &frame, f);
    if (first && previous == w->rec->root_entry) {
        return AU_CHAIN_ROOT;
    }
    w->entry = first ? previous : 0;
    *addr = previous;
    return AU_CHAIN_ON;
}

/*
 * A generator that the thread state says is executing has handed out a value by the time of this copy, or was resumed
 * after it; so it has no caller in the copy, or was entered through a shim that is no more. Then it was called from
 * whom it always is, if that can be its caller now.
 */
static au_outside *infer(walk *w)
{
    au_scratch *s = &w->e->scratch;
    size_t count = s->raw_count[w->look];
    au_raw_frame *last = count ? &s->raw[w->look][count - 1] : NULL;
    if (!last || w->chase || last->outside < 0 || last->owner != OWNER_GENERATOR || last->inferred) {
        return NULL;
    }
    au_outside *o = &w->rec->outside[last->outside];
    if (o->votes < AU_SURE || o->code != last->code || o->caller_end != end_of_caller(s, w->b, w->look, count - 1)) {
        return NULL;
    }
    last->inferred = 1;
    last->entered = 0;
    last->shim = -1;
    s->inferred[w->look]++;
    return o;
}

au_chain_end au__chain_walk(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int chase)
{
    const au_layout *l = &e->remote.layout;
    walk w = {.e = e,
              .rec = rec,
              .b = b,
              .look = look,
              .chase = chase,
              .known = rec->outside_count,
              .innermost = 1,
              .end = b->chunk_top};
    size_t bound = rec->outside_count + 8;
    au_addr addr = b->top;
    au_addr seen = addr; /* Brent's cycle finder: the frame met at the last power of two */
    size_t steps = 0;
    size_t power = 1;
    w.base_frame = l->tstate_base_frame != AU_ABSENT ? rec->addr + l->tstate_base_frame : 0;
    e->scratch.raw_count[look] = 0;
    e->scratch.inferred[look] = 0;
    for (size_t i = 0; i < rec->chunk_count; i++) {
        bound += rec->chunks[i].len / l->frame_localsplus + 1;
    }
    bound = chase ? FRAMES_MAX : bound;
    if (!addr || addr == w.base_frame) {
        return AU_CHAIN_ROOT;
    }
    for (size_t n = 0; n < bound; n++) {
        au_chain_end end = visit(&w, &addr);
        if (end == AU_CHAIN_ROOT || end == AU_CHAIN_MISSING || end == AU_CHAIN_MEMORY) {
            return end;
        }
        if (end != AU_CHAIN_ON) {
            if (w.call && w.call->votes) {
                w.call->votes--; /* it is no caller now */
            }
            w.call = infer(&w);
            if (!w.call) {
                return end;
            }
            addr = w.call->caller;
        }
        if (addr == seen) {
            return AU_CHAIN_BROKEN;
        }
        if (++steps == power) {
            seen = addr;
            power *= 2;
            steps = 0;
        }
    }
    return AU_CHAIN_BROKEN;
}

/*
 * Does a caller's memory, from its locals on, hold this object? The function that it called and the generator that it
 * resumed are still in the slots of its value stack that the call has popped, or among its locals.
 */
static int holds_object(const uint8_t *from, const uint8_t *to, au_addr object)
{
    for (; from + 8 <= to; from += 8) {
        if ((au__u64(from) & ~UINT64_C(3)) == object) { /* _PyStackRef has marks in the low bits */
            return 1;
        }
    }
    return 0;
}

/* The function that a frame runs, among the values of its caller, which end where it begins. */
static int holds_callee(const au_layout *l, const uint8_t *caller, const uint8_t *callee)
{
    return holds_object(caller + l->frame_localsplus, callee, au__u64(callee + l->frame_function) & ~UINT64_C(3));
}

static int called_by(const au_layout *l, const uint8_t *f, au_addr caller)
{
    return au__u64(f + l->frame_previous) == caller && f[l->frame_owner] == 0 &&
           au__plausible(au__u64(f + l->frame_executable) & ~UINT64_C(3));
}

/*
 * The frame that was called from the one at *addr, above it in the same copy; NULL if there is none. It begins where
 * its caller's ends, which the caller's code object tells from 3.12 on; 3.11 is searched.
 */
static const uint8_t *callee_in(au_engine *e, const au_chunk *c, const au_piece *p, au_addr code, au_addr *addr)
{
    const au_layout *l = &e->remote.layout;
    uint64_t at = *addr - c->addr;
    uint64_t end;
    if (l->code_framesize != AU_ABSENT) {
        const au_code *known = au__codes_get(&e->codes, code);
        if (!known || !known->frame_bytes) {
            return NULL;
        }
        at += known->frame_bytes;
        end = at + 8;
    } else {
        at += l->frame_localsplus;
        end = at + CALLER_MAX;
    }
    for (; at < end && at + l->frame_localsplus <= p->len; at += 8) {
        const uint8_t *f = (const uint8_t *)p->buf + at;
        if (called_by(l, f, *addr)) {
            *addr = c->addr + at;
            return f;
        }
    }
    return NULL;
}

static int plain_call(const au_raw_frame *frame)
{
    return frame->outside < 0 && frame->owner == 0;
}

int au__chain_resolve(au_engine *e, au_thread_rec *rec, size_t common)
{
    const au_layout *l = &e->remote.layout;
    au_scratch *s = &e->scratch;
    if (l->minor < 11 || common == 0) {
        return 0;
    }
    /* what is above must be plain calls: a C function in between leaves no trace in the copy */
    for (int look = 0; look < 2; look++) {
        size_t moved = s->raw_count[look] - common;
        for (size_t i = 0; i <= moved; i++) {
            if (!plain_call(&s->raw[look][i]) || (i < moved && s->raw[look][i].entered)) {
                return 0;
            }
        }
    }
    au_addr addr = s->raw[1][s->raw_count[1] - common].addr;
    au_addr code = s->raw[1][s->raw_count[1] - common].code;
    const au_chunk *c = rec->chunks;
    if (!rec->chunk_count || !covers(c, addr)) {
        return 0;
    }
    const au_piece *p = &s->pieces[c->piece[1]];
    const uint8_t *f = in_chunk(e, c, addr, 1);
    au_raw_frame above[PLAIN_MAX];
    size_t n = 0;
    while (f && !executes(l, f)) {
        au_addr previous;
        const uint8_t *next = callee_in(e, c, p, code, &addr);
        if (!next) {
            if (l->frame_stacktop != AU_ABSENT) {
                return 0; /* it has called somebody who is not there (yet) */
            }
            break;
        }
        if (n == PLAIN_MAX || judge(l, next, addr, 0, &above[n], &previous) != FRAME_GOOD) {
            return 0;
        }
        /* a line that came late can bring two frames together that never met */
        au_link link = au__links_find(&e->links, code, above[n].code);
        if (link == AU_LINK_UNKNOWN || (link == AU_LINK_HELD && !holds_callee(l, f, next))) {
            return 0;
        }
        code = above[n].code;
        if (!au__codes_get(&e->codes, code)) {
            au_outcome outcome; /* what was left over in the copy is no frame: its "code" is not one */
            au_code *made = au__codes_resolve(&e->codes, &e->remote, code, &outcome);
            if (!made) {
                return 0;
            }
            made->born_batch = e->batch;
        }
        above[n].alone = 1;
        above[n++].outside = -1;
        f = next;
    }
    if (!f || au__grow(&s->raw[1], &s->raw_cap[1], common + n, sizeof *s->raw[1], &e->stats)) {
        return 0;
    }
    memmove(s->raw[1] + n, s->raw[1] + (s->raw_count[1] - common), common * sizeof *s->raw[1]);
    for (size_t i = 0; i < n; i++) {
        s->raw[1][i] = above[n - 1 - i];
    }
    s->raw_count[1] = common + n;
    return 1;
}

/* Is the generator of frame i among the values of its caller? `looks`: bits of the copies that must show it. */
static int holds_generator(au_engine *e, const au_batch *b, const au_chunk *chunk, int look, size_t i, unsigned looks)
{
    const au_layout *l = &e->remote.layout;
    const au_raw_frame *callee = &e->scratch.raw[look][i];
    au_addr caller = callee[1].addr;
    uint64_t bytes = end_of_caller(&e->scratch, b, look, i) - caller;
    for (int copy = 0; copy < 2; copy++) {
        if (!(looks & 1u << copy)) {
            continue;
        }
        const au_piece *p = &e->scratch.pieces[chunk->piece[copy]];
        const uint8_t *f = in_chunk(e, chunk, caller, copy);
        if (!f || bytes < l->frame_localsplus || bytes > (uint64_t)((const uint8_t *)p->buf + p->len - f) ||
            !holds_object(f + l->frame_localsplus, f + bytes, callee->addr - l->gen_frame)) {
            return 0;
        }
    }
    return 1;
}

/* Is frame i of a look called by the next one, by what is in this copy alone? */
static int proven_call(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, size_t i, size_t *chunk)
{
    const au_layout *l = &e->remote.layout;
    const au_raw_frame *callee = &e->scratch.raw[look][i];
    const au_raw_frame *caller = callee + 1;
    if (callee->inferred) {
        return 0;
    }
    if (callee->outside >= 0 && caller->outside >= 0) {
        return 1; /* a generator's own frame stays what it is */
    }
    au_link link = au__links_find(&e->links, caller->code, callee->code);
    if (caller->outside >= 0 || (callee->outside < 0 && callee->entered)) {
        return link != AU_LINK_UNKNOWN;
    }
    *chunk = chunk_of(rec, *chunk, caller->addr);
    if (*chunk == rec->chunk_count) {
        return 0;
    }
    const au_chunk *c = &rec->chunks[*chunk];
    if (callee->outside >= 0) {
        const au_outside *o = &rec->outside[callee->outside];
        return o->votes >= AU_SURE && o->code == callee->code && o->caller_code == caller->code &&
               holds_generator(e, b, c, look, i, 1u << look);
    }
    const uint8_t *f = in_chunk(e, c, caller->addr, look);
    const uint8_t *next = covers(c, callee->addr) ? in_chunk(e, c, callee->addr, look) : NULL;
    return f && next && f < next && (link == AU_LINK_UNHELD || (link == AU_LINK_HELD && holds_callee(l, f, next)));
}

int au__chain_alone(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, size_t common)
{
    size_t moved = e->scratch.raw_count[look] - common;
    size_t chunk = 0;
    int generators = 0;
    if (e->remote.layout.minor < 11 || common == 0 ||
        e->scratch.raw[look][e->scratch.raw_count[look] - 1].owner == OWNER_GENERATOR) {
        return 0;
    }
    for (size_t i = 0; i < moved; i++) {
        generators += e->scratch.raw[look][i].outside >= 0;
    }
    for (size_t i = 0; i < moved; i++) {
        if (!generators || !proven_call(e, rec, b, look, i, &chunk)) {
            return 0;
        }
    }
    return 1;
}

void au__chain_learn(au_engine *e, const au_thread_rec *rec, int look)
{
    const au_layout *l = &e->remote.layout;
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    size_t chunk = 0;
    for (size_t i = 0; l->minor > 10 && i + 1 < s->raw_count[look] && i < PLAIN_MAX; i++) {
        const au_raw_frame *callee = &raw[i];
        const au_raw_frame *caller = &raw[i + 1];
        if (callee->outside >= 0 || au__links_find(&e->links, caller->code, callee->code) != AU_LINK_UNKNOWN) {
            continue;
        }
        int held = 0;
        chunk = chunk_of(rec, chunk, callee->addr);
        if (chunk < rec->chunk_count && caller->outside < 0 && !callee->entered) {
            const uint8_t *f =
                covers(&rec->chunks[chunk], caller->addr) ? in_chunk(e, &rec->chunks[chunk], caller->addr, look) : NULL;
            const uint8_t *next = in_chunk(e, &rec->chunks[chunk], callee->addr, look);
            if (!f || !next || f >= next) {
                continue; /* resolved are calls within one chunk only */
            }
            held = holds_callee(l, f, next);
        }
        au__links_enter(&e->links, caller->code, callee->code, held);
    }
}

uint64_t au__chain_doubt(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, au_doubt *of)
{
    const au_layout *l = &e->remote.layout;
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    uint64_t doubt = 0;
    size_t chunk = 0;
    *of = (au_doubt){0, 0};
    for (size_t i = 0; l->minor > 10 && i < s->raw_count[look]; i++) {
        if (raw[i].owner != OWNER_GENERATOR || raw[i].outside < 0) {
            continue;
        }
        size_t caller = i + 1;
        if (caller == s->raw_count[look]) { /* by nobody? */
            of->unheld = of->strong = 1;
            doubt = (doubt ^ raw[i].addr) * UINT64_C(0x9e3779b97f4a7c15) | 1;
            continue;
        }
        if (raw[caller].outside >= 0) {
            continue; /* a generator's own frame stays what it is */
        }
        chunk = chunk_of(rec, chunk, raw[caller].addr);
        if (chunk == rec->chunk_count) {
            continue;
        }
        const au_outside *o = &rec->outside[raw[i].outside];
        au_link site = au__links_find(&e->links, raw[caller].code, raw[caller].ip);
        /* in one copy, the lines of a frame's head and of its values may be of two moments */
        int held = holds_generator(e, b, &rec->chunks[chunk], look, i, 3);
        int as_ever = o->votes < AU_SURE || o->code != raw[i].code || o->caller_code == raw[caller].code;
        if (held && as_ever && site == AU_LINK_UNKNOWN) {
            au__links_enter(&e->links, raw[caller].code, raw[caller].ip, 1);
        } else if (!held || !as_ever) {
            of->unheld |= !held;
            of->strong |= !as_ever || site != AU_LINK_UNKNOWN;
            doubt = (doubt ^ raw[i].addr ^ raw[caller].code) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        }
    }
    return doubt;
}

static void met_at(au_thread_rec *rec, int32_t outside, size_t depth)
{
    if (outside >= 0 && (size_t)outside < rec->outside_count) {
        rec->outside[outside].depth = (uint32_t)depth;
    }
}

/* One more look says so, or one less: a majority of looks decides. 0: another may take its place. */
static int vote(uint32_t *votes, int same)
{
    if (!same && *votes) {
        --*votes;
        return 1;
    }
    *votes += *votes < 2 * AU_SURE;
    return same;
}

void au__chain_callers(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int sure)
{
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    size_t chunk = 0;
    au_addr end = b->chunk_top;
    for (size_t i = 0; i + 1 < s->raw_count[look]; i++) {
        end = i && raw[i - 1].outside < 0 ? raw[i - 1].addr : end;
        if (raw[i].outside < 0 || raw[i].owner != OWNER_GENERATOR || raw[i].inferred) {
            continue;
        }
        if (!sure && raw[i + 1].outside < 0) {
            chunk = chunk_of(rec, chunk, raw[i + 1].addr);
            if (chunk == rec->chunk_count || !holds_generator(e, b, &rec->chunks[chunk], look, i, 1u << look)) {
                continue;
            }
        }
        au_outside *o = &rec->outside[raw[i].outside];
        if (!vote(&o->votes, o->code == raw[i].code && o->caller_code == raw[i + 1].code)) {
            o->code = raw[i].code;
            o->caller_code = raw[i + 1].code;
            o->ip_votes = 0;
        }
        if (o->code != raw[i].code || o->caller_code != raw[i + 1].code) {
            continue;
        }
        o->caller = raw[i + 1].addr;
        o->caller_end = end;
        if (!vote(&o->ip_votes, o->caller_ip == raw[i + 1].ip)) {
            o->caller_ip = raw[i + 1].ip;
        }
    }
}

void au__outside_order(au_engine *e, au_thread_rec *rec, int look)
{
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    size_t count = s->raw_count[look];
    for (size_t i = 0; i < count; i++) {
        met_at(rec, raw[i].outside, count - i);
        met_at(rec, raw[i].shim, count - i);
    }
    for (size_t i = 1; i < rec->outside_count; i++) { /* nearly sorted nearly always */
        au_outside moving = rec->outside[i];
        size_t to = i;
        while (to > 0 && rec->outside[to - 1].depth < moving.depth) {
            rec->outside[to] = rec->outside[to - 1];
            to--;
        }
        rec->outside[to] = moving;
    }
}

/* How much of a chunk to ask for. */
static uint32_t useful(au_addr chunk, uint32_t size, au_addr top)
{
    uint64_t used = top > chunk && top - chunk <= size ? top - chunk : CHUNK_HEADER;
    used += SLACK;
    return used < size ? (uint32_t)used : size;
}

int au__chunks_find(au_engine *e, au_thread_rec *rec, au_addr chunk, au_addr top)
{
    au_scratch *s = &e->scratch;
    size_t count = 0;
    au_addr addr = chunk;
    while (addr) {
        size_t known = 0;
        while (known < rec->chunk_count && rec->chunks[known].addr != addr) {
            known++;
        }
        if (count && known < rec->chunk_count) { /* from here on the list is as it was */
            size_t rest = rec->chunk_count - known;
            if (au__grow(&s->chunks, &s->chunk_cap, count + rest, sizeof *s->chunks, &e->stats)) {
                return -1;
            }
            memcpy(s->chunks + count, rec->chunks + known, rest * sizeof *s->chunks);
            count += rest;
            break;
        }
        uint8_t head[CHUNK_HEADER];
        if (!au__plausible(addr) || au__read(&e->remote, addr, head, sizeof head) != AU_OK) {
            break;
        }
        uint64_t size = au__u64(head + 8);
        au_addr end = count ? addr + CHUNK_HEADER + au__u64(head + 16) * 8 : top;
        if (size < CHUNK_HEADER || size > CHUNK_SIZE_MAX || count >= CHUNKS_MAX) {
            break;
        }
        if (au__grow(&s->chunks, &s->chunk_cap, count + 1, sizeof *s->chunks, &e->stats)) {
            return -1;
        }
        s->chunks[count++] = (au_chunk){addr, useful(addr, (uint32_t)size, end), (uint32_t)size, {0, 0}};
        addr = au__u64(head);
    }
    if (au__grow(&rec->chunks, &rec->chunk_cap, count, sizeof *rec->chunks, &e->stats)) {
        return -1;
    }
    if (count) {
        memcpy(rec->chunks, s->chunks, count * sizeof *s->chunks);
    }
    rec->chunk_count = count;
    return 0;
}
