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
    FIRST_SLOT = 8,       /* of the first chunk: kept free (Python/pystate.c, push_chunk) */
    GEN_STATE = -5        /* 3.11: gi_frame_state, from gi_iframe on; FRAME_EXECUTING is 0 */
};

static const au_raw_frame nothing;

/* The copy of a frame that lies in chunk i; NULL if the copy is too short or was not readable. */
const uint8_t *au__in_chunk(au_engine *e, const au_chunk *c, au_addr addr, int look)
{
    const au_piece *p = &e->scratch.pieces[c->piece[look]];
    uint64_t at = addr - c->addr;
    return p->outcome == AU_OK && at + e->remote.layout.frame_localsplus <= p->len ? (const uint8_t *)p->buf + at
                                                                                   : NULL;
}

/*
 * Where the copy of the frame at addr is; NULL if it was not asked for or not readable. *chunk and *outside remember
 * where the last hit was: chains go through both lists in order, so nearly every search ends at once.
 */
static const uint8_t *copy_of(au_engine *e, au_thread_rec *rec, size_t outside_count, au_addr addr, int look,
                              size_t *chunk, size_t *outside, int32_t *at)
{
    for (size_t n = 0; n < 2 && *chunk + n < rec->chunk_count; n++) {
        if (au__covers(&rec->chunks[*chunk + n], addr)) {
            *chunk += n;
            return au__in_chunk(e, &rec->chunks[*chunk], addr, look);
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
        if (au__covers(&rec->chunks[i], addr)) {
            *chunk = i;
            return au__in_chunk(e, &rec->chunks[i], addr, look);
        }
    }
    return NULL;
}

/* The chunk that has addr, from `chunk` on; chunk_count: none. */
size_t au__chunk_of(const au_thread_rec *rec, size_t chunk, au_addr addr)
{
    for (size_t n = 0; n < rec->chunk_count; n++) {
        size_t i = chunk + n < rec->chunk_count ? chunk + n : chunk + n - rec->chunk_count;
        if (au__covers(&rec->chunks[i], addr)) {
            return i;
        }
    }
    return rec->chunk_count;
}

/* Judges a copied frame. DROP: a frame that has returned already; its caller is intact. CUT: no caller. LEFT: calls
 * nobody. */
au_verdict au__frame_judge(const au_layout *l, const uint8_t *f, au_addr addr, int innermost, au_raw_frame *out,
                           au_addr *previous)
{
    *out = nothing;
    out->addr = addr;
    out->shim = -1;
    *previous = au__u64(f + l->frame_previous);
    if (*previous && !au__plausible(*previous)) {
        return AU_FRAME_BAD;
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
        out->executes = (uint8_t)runs;
        out->owner = au__u64(f + l->frame_ip - 8) != 0; /* f_gen: AU_OWNER_GENERATOR */
        if (!*previous && out->owner) {
            return AU_FRAME_CUT;
        }
        return !au__plausible(executable)         ? AU_FRAME_BAD
               : runs || (innermost && *previous) ? AU_FRAME_GOOD
                                                  : AU_FRAME_LEFT;
    }
    out->owner = f[l->frame_owner];
    out->ip = au__u64(f + l->frame_ip);
    if (l->frame_tlbc_index != AU_ABSENT) {
        out->tlbc = au__i32(f + l->frame_tlbc_index);
    }
    if (out->owner > 4) {
        return AU_FRAME_BAD;
    }
    if (out->owner >= l->shim_owner) {
        return AU_FRAME_SKIP;
    }
    if (l->tagged) {
        /* _PyStackRef: 11 is an int, 01 alone is NULL (Include/internal/pycore_stackref.h) */
        if ((executable & 3) == 3) {
            return AU_FRAME_BAD;
        }
        executable &= ~UINT64_C(3);
        if (executable == 0) {
            return innermost ? AU_FRAME_DROP : AU_FRAME_BAD;
        }
    }
    out->code = executable;
    if (l->minor == 11 && out->owner == AU_OWNER_GENERATOR && !*previous && f[GEN_STATE] != 0) {
        return AU_FRAME_CUT; /* it has handed out a value meanwhile: nobody's caller, and no root */
    }
    return au__plausible(executable) ? AU_FRAME_GOOD : AU_FRAME_BAD;
}

static int push(au_engine *e, int look, const au_raw_frame *frame)
{
    au_scratch *s = &e->scratch;
    size_t at = s->raw_count[look];
    if (au__grow(&s->raw[look], &s->raw_cap[look], at + 1, sizeof *s->raw[look], &e->stats)) {
        return -1;
    }
    s->raw[look][at] = *frame;
    s->raw_count[look] = at + 1;
    return 0;
}

static int note_outside(au_engine *e, au_thread_rec *rec, au_addr addr)
{
    for (size_t i = 0; i < rec->chunk_count; i++) {
        if (au__covers(&rec->chunks[i], addr)) {
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

/* Where a thread's first frame of all lies in a chunk: behind the slot that is kept free in the oldest one. */
static au_addr first_place(const au_thread_rec *rec, size_t chunk)
{
    return rec->chunks[chunk].addr + CHUNK_HEADER + (chunk + 1 == rec->chunk_count ? FIRST_SLOT : 0);
}

/* A chunk with newer ones: _PyStackChunk has previous, size, top in words. */
static int is_empty_chunk(const au_piece *p)
{
    const uint8_t *head = p->buf;
    return p->outcome == AU_OK && p->len >= CHUNK_HEADER && head && au__u64(head + 16) <= FIRST_SLOT / 8;
}

/*
 * Is this the first frame of the oldest chunk (or of a later one, if it was too large for those before it)? Nobody
 * below it can be in a chunk, so the entry from C that it was called through is the root, and need not be read again.
 */
static int is_first(au_engine *e, const au_thread_rec *rec, const au_raw_frame *frame, size_t chunk, int look)
{
    if (frame->outside >= 0 || chunk >= rec->chunk_count) {
        return 0;
    }
    size_t oldest = rec->chunk_count - 1;
    if (frame->addr != first_place(rec, chunk)) {
        return 0;
    }
    const au_piece *last = &e->scratch.pieces[rec->chunks[oldest].piece[look]];
    int is_empty = 1;
    for (size_t i = chunk + 1; i <= oldest; i++) {
        is_empty = is_empty && is_empty_chunk(&e->scratch.pieces[rec->chunks[i].piece[look]]);
    }
    return is_empty && last->outcome == AU_OK && last->len >= CHUNK_HEADER && au__u64(last->buf) == 0;
}

typedef struct walk {
    au_engine *e;
    au_thread_rec *rec;
    const au_batch *b;
    int look, chase;
    au_addr current;       /* the first frame, if it was current before the copy was made; else 0 */
    int told_alone;        /* also of frames that were called from Python, what they ran is told by their instruction */
    au_addr base_frame;    /* the root of every chain; 0: there is none */
    size_t chunk, outside; /* where the last hits were */
    size_t known;          /* frames outside that have a copy; those noted in this very walk have none yet */
    int innermost, last_skipped;
    int leaving;      /* all frames so far have returned since */
    int works;        /* 3.10: the frame visited last executes in this copy */
    int inlined;      /* the frame visited last was called from Python, not by way of C */
    au_addr end;      /* where the frame to come ends, if it lies in a chunk */
    au_addr entry;    /* what the first frame of the first chunk was called through */
    au_outside *call; /* by which the frame to come is said to have resumed the one before; NULL: no inference */
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
    uint32_t len = au__frame_copy(l);
    *end = AU_CHAIN_BROKEN;
    uint8_t *single = w->e->scratch.single;
    if (len > sizeof w->e->scratch.single || au__read(&w->e->remote, addr - lead, single, len) != AU_OK) {
        return NULL;
    }
    size_t had = w->rec->outside_count;
    if (note_outside(w->e, w->rec, addr)) {
        *end = AU_CHAIN_MEMORY;
        return NULL;
    }
    *at = w->rec->outside_count > had ? (int32_t)had : -1;
    return single + lead;
}

/*
 * Was the first frame of all called through this entry from C? When it returns, the thread state goes back to its entry
 * before its locals are cleared, and then destructors run above it that are called from there (Python/ceval.c,
 * _PyEvalFrameClearAndPop).
 */
static int entered_first(const walk *w, au_addr entry)
{
    const au_layout *l = &w->e->remote.layout;
    for (size_t i = w->rec->chunk_count; i-- > 0;) {
        const uint8_t *f = au__in_chunk(w->e, &w->rec->chunks[i], first_place(w->rec, i), w->look);
        if (f && au__u64(f + l->frame_previous) == entry) {
            return 1;
        }
        const au_piece *p = &w->e->scratch.pieces[w->rec->chunks[i].piece[w->look]];
        if (!is_empty_chunk(p)) {
            return 0;
        }
    }
    return 0;
}

/*
 * The current frame has returned since, or it and callers of it have: what they have run is told by their instructions.
 * In the middle of a batch that is so only of one that was called from C; of one that was called from Python the caller
 * tells more (calls.c, au__chain_resolve).
 */
static au_verdict left_since(const walk *w, au_raw_frame *frame, au_addr previous)
{
    int from_python = au__chunk_of(w->rec, w->chunk, previous) < w->rec->chunk_count;
    if (w->current && frame->owner == 0 && (w->leaving || frame->addr == w->current) &&
        (w->told_alone || !from_python)) {
        frame->code = au__chain_left(w->e, frame->addr, frame->ip);
        frame->left = frame->code != 0;
    }
    return frame->left ? AU_FRAME_GOOD : w->leaving ? AU_FRAME_BAD : AU_FRAME_DROP;
}

/*
 * 3.10: a trace or profile function is called before its frame begins to execute and after it has ended
 * (Python/ceval.c, _PyEval_EvalFrameDefault: call_trace_protected at its start and at `exiting`), and while it is at
 * work that frame is its caller all the same. Include/cpython/frameobject.h: FRAME_CLEARED is 4.
 */
static int is_traced(const au_layout *l, const uint8_t *f)
{
    return l->minor == 10 && f[l->frame_state] != 4;
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
    au_verdict v = au__frame_judge(l, f, *addr, w->innermost || w->leaving, &frame, &previous);
    frame.outside = at;
    v = v == AU_FRAME_DROP ? left_since(w, &frame, previous) : v;
    if (v == AU_FRAME_LEFT && w->works && is_traced(l, f)) {
        v = AU_FRAME_GOOD;
    }
    w->works = frame.executes;
    /* a caller that executes has no callee: what lies above it is what a call has left behind */
    if (w->inlined && !w->leaving && v == AU_FRAME_GOOD && au__executes(l, f)) {
        return AU_CHAIN_CUT;
    }
    w->leaving = frame.left || (w->leaving && v == AU_FRAME_SKIP);
    w->inlined =
        v == AU_FRAME_GOOD && at < 0 && frame.owner == 0 && (l->frame_is_entry == AU_ABSENT || !f[l->frame_is_entry]);
    if (v == AU_FRAME_BAD || v == AU_FRAME_LEFT) {
        return v == AU_FRAME_BAD ? AU_CHAIN_BROKEN : AU_CHAIN_CUT;
    }
    if (w->call) {
        if ((v != AU_FRAME_GOOD && v != AU_FRAME_CUT) || frame.code != w->call->caller_code) {
            return AU_CHAIN_BROKEN;
        }
        frame.ip = w->call->caller_ip; /* it goes on by itself meanwhile */
        w->call = NULL;
    }
    if (v == AU_FRAME_SKIP) {
        if (s->raw_count[w->look]) {
            s->raw[w->look][s->raw_count[w->look] - 1].entered = 1;
            s->raw[w->look][s->raw_count[w->look] - 1].shim = at;
        }
    } else if (v != AU_FRAME_DROP) {
        if (frame.outside < 0 && frame.addr == w->end) {
            return AU_CHAIN_BROKEN; /* its own caller, through an entry that is gone */
        }
        if (push(w->e, w->look, &frame)) {
            return AU_CHAIN_MEMORY;
        }
        w->innermost = 0;
        w->end = frame.outside < 0 ? frame.addr : w->end;
    }
    w->last_skipped = v == AU_FRAME_SKIP;
    if (v == AU_FRAME_CUT) {
        return AU_CHAIN_CUT;
    }
    if (!previous || previous == w->base_frame) {
        /* An entry from C may be gone by the time of its copy, and what lies there now may say anything. A frame in a
           chunk has none but entries below it if it is the first one of all. */
        const au_raw_frame *last = s->raw_count[w->look] ? &s->raw[w->look][s->raw_count[w->look] - 1] : NULL;
        if (w->last_skipped && l->minor >= 12 && w->entry != *addr && last && last->outside < 0 &&
            !entered_first(w, *addr)) {
            return AU_CHAIN_BROKEN;
        }
        w->rec->root_entry = w->last_skipped && w->entry == *addr ? *addr : w->rec->root_entry;
        /* from 3.12 on each entry from C has a shim below it, so a chain that ends elsewhere was cut */
        return previous || l->minor < 12 || w->last_skipped ? AU_CHAIN_ROOT
               : frame.owner == AU_OWNER_GENERATOR          ? AU_CHAIN_CUT
                                                            : AU_CHAIN_BROKEN;
    }
    int first = !w->last_skipped && is_first(w->e, w->rec, &frame, w->chunk, w->look);
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
    if (!last || w->chase || last->outside < 0 || last->owner != AU_OWNER_GENERATOR || last->inferred) {
        return NULL;
    }
    au_outside *o = &w->rec->outside[last->outside];
    if (o->votes < AU_SURE || o->code != last->code || o->caller_end != w->end) {
        return NULL;
    }
    last->inferred = 1;
    last->entered = 0;
    last->shim = -1;
    s->inferred[w->look]++;
    return o;
}

static au_chain_end walk_from(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int chase, int current,
                              au_addr top, au_addr end_of_top)
{
    const au_layout *l = &e->remote.layout;
    walk w = {.e = e,
              .rec = rec,
              .b = b,
              .look = look,
              .chase = chase,
              .current = current ? top : 0,
              .told_alone = current && look == 0,
              .known = rec->outside_count,
              .innermost = 1,
              .end = end_of_top};
    size_t bound = rec->outside_count + 8;
    au_addr addr = top;
    au_addr seen = addr; /* Brent's cycle finder: the frame met at the last power of two */
    size_t steps = 0;
    size_t power = 1;
    w.base_frame = b->ts && l->tstate_base_frame != AU_ABSENT ? au__u64(b->ts + l->tstate_base_frame) : 0;
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

au_chain_end au__chain_walk(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int chase)
{
    return walk_from(e, rec, b, look, chase, look == 1 || b->top == b->first_top, b->top, b->chunk_top);
}

au_chain_end au__chain_walk_first(au_engine *e, au_thread_rec *rec, const au_batch *b)
{
    /* it may have returned by now, and the top be where it began */
    return walk_from(e, rec, b, 0, 0, 1, b->first_top, 0);
}

static void met_at(au_thread_rec *rec, int32_t outside, size_t depth)
{
    if (outside >= 0 && (size_t)outside < rec->outside_count) {
        rec->outside[outside].depth = (uint32_t)depth;
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
