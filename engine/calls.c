/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Who called whom: what a copy, two of them, or many samples tell of the links between frames.
 *
 * Frames that move faster than two looks can be had are not left out, since that would favour code that stands still.
 * They are believed on evidence: a frame whose function, or whose generator, is among the values of its caller was
 * called by it; calls that were seen in looks that agreed are possible (links.c); and a generator has the caller that
 * most looks say.
 */
#include "engine/stack.h"

enum {
    CALLER_MAX = 4096, /* bytes of one frame's locals and stack, where they are not told */
    PLAIN_MAX = 64,    /* innermost frames that one copy alone may tell */
    NOTED = 4          /* innermost frames of which it is noted what runs where they lie */
};

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

int au__chain_has_callee(au_engine *e, const au_chunk *c, const au_piece *p, const au_code *code, au_addr addr)
{
    const au_layout *l = &e->remote.layout;
    uint64_t at = addr - c->addr + code->frame_bytes;
    return code->frame_bytes && at + l->frame_localsplus <= p->len && called_by(l, (const uint8_t *)p->buf + at, addr);
}

/*
 * The frame that was called from the one at *addr, above it in the same copy; NULL if there is none. It begins where
 * its caller's ends, which the caller's code object tells from 3.12 on; 3.11 is searched.
 */
static const uint8_t *callee_in(au_engine *e, const au_chunk *c, const au_piece *p, au_addr code, au_addr *addr)
{
    const au_layout *l = &e->remote.layout;
    if (l->code_framesize != AU_ABSENT) {
        const au_code *known = au__codes_get(&e->codes, code);
        if (!known || !au__chain_has_callee(e, c, p, known, *addr)) {
            return NULL;
        }
        *addr += known->frame_bytes;
        return (const uint8_t *)p->buf + (*addr - c->addr);
    }
    uint64_t at = *addr - c->addr + l->frame_localsplus;
    for (uint64_t end = at + CALLER_MAX; at < end && at + l->frame_localsplus <= p->len; at += 8) {
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

/*
 * Is this instruction known to call that code? What a call has left behind in a copy looks like the call, while its
 * caller has gone on.
 */
static int calls_from(au_engine *e, uint64_t ip, au_addr callee)
{
    return au__links_find(&e->links, ip, callee) != AU_LINK_UNKNOWN;
}

/*
 * It is known at the second look that says so: two looks may have seen the same moment that never was, and what is
 * taught wrongly shows from then on in every sample that it fits.
 */
static void learn_site(au_engine *e, uint64_t ip, au_addr callee)
{
    const au_addr once = callee ^ UINT64_C(0x5151000000000001);
    if (!calls_from(e, ip, callee)) {
        au__links_enter(&e->links, ip, calls_from(e, ip, once) ? callee : once, 1);
    }
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
    if (!rec->chunk_count || !au__covers(c, addr)) {
        return 0;
    }
    const au_piece *p = &s->pieces[c->piece[1]];
    const uint8_t *f = au__in_chunk(e, c, addr, 1);
    au_raw_frame above[PLAIN_MAX];
    size_t n = 0;
    while (f && !au__executes(l, f)) {
        au_addr previous;
        const uint8_t *next = callee_in(e, c, p, code, &addr);
        if (!next) {
            if (l->frame_stacktop != AU_ABSENT) {
                return 0; /* it has called somebody who is not there (yet) */
            }
            break;
        }
        if (n == PLAIN_MAX || au__frame_judge(l, next, addr, 0, &above[n], &previous) != AU_FRAME_GOOD) {
            return 0;
        }
        /* a line that came late can bring two frames together that never met */
        au_link link = au__links_find(&e->links, code, above[n].code);
        if (link == AU_LINK_UNKNOWN || !calls_from(e, au__u64(f + l->frame_ip), above[n].code) ||
            (link == AU_LINK_HELD && !holds_callee(l, f, next))) {
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
        const uint8_t *f = au__in_chunk(e, chunk, caller, copy);
        if (!f || bytes < l->frame_localsplus || bytes > (uint64_t)((const uint8_t *)p->buf + p->len - f) ||
            !holds_object(f + l->frame_localsplus, f + bytes, callee->addr - l->gen_frame)) {
            return 0;
        }
    }
    return 1;
}

/*
 * C code between a generator and its caller is a fact of the program: the caller of an event loop's callbacks has never
 * had the coroutine among its values. Once such a pair has been more than a doubt this often, it is none any more; else
 * coroutines that run for less than two looks would never be seen, and the loop around them all the more.
 */
enum { UNHELD_FACTS = 3 };

static au_addr unheld_pair(au_addr generator, unsigned level)
{
    return generator ^ (UINT64_C(0x5a5a000000000001) + ((uint64_t)level << 8));
}

static int is_known_unheld(au_engine *e, const au_raw_frame *generator, const au_raw_frame *caller)
{
    return au__links_find(&e->links, caller->code, unheld_pair(generator->code, UNHELD_FACTS)) != AU_LINK_UNKNOWN;
}

/*
 * Where a frame of a look called the one above it. A caller that has returned as well by the time of its copy stands at
 * its end: then it can be told if it calls that code at one place only. 0: it cannot be told.
 */
static uint64_t called_from(au_engine *e, const au_raw_frame *callee, int has_returned)
{
    enum { UNITS = 512 };
    const au_raw_frame *caller = callee + 1;
    if (!has_returned || calls_from(e, caller->ip, callee->code)) {
        return caller->ip;
    }
    const au_code *code = au__codes_get(&e->codes, caller->code);
    uint64_t found = 0;
    for (uint32_t i = 0; code && code->units <= UNITS && i < code->units; i++) {
        uint64_t ip = code->start + UINT64_C(2) * i;
        if (calls_from(e, ip, callee->code)) {
            if (found) {
                return 0;
            }
            found = ip;
        }
    }
    return found;
}

/* A frame of a look and the next one. */
typedef struct pair {
    int look;
    size_t i;
    uint64_t ip;  /* where the caller calls */
    int returned; /* the call is over by the time of the copy */
} pair;

/* Is it called by the next one, by what is in this copy alone? */
static int proven_call(au_engine *e, const au_thread_rec *rec, const au_batch *b, pair p, size_t *chunk)
{
    const au_layout *l = &e->remote.layout;
    const au_raw_frame *callee = &e->scratch.raw[p.look][p.i];
    const au_raw_frame *caller = callee + 1;
    if (callee->inferred) {
        return 0;
    }
    if (callee->outside >= 0 && caller->outside >= 0) {
        return 1; /* a generator's own frame stays what it is */
    }
    au_link link = au__links_find(&e->links, caller->code, callee->code);
    if (callee->outside < 0 && !calls_from(e, p.ip, callee->code)) {
        return 0;
    }
    if (caller->outside >= 0 || (callee->outside < 0 && callee->entered)) {
        return link != AU_LINK_UNKNOWN;
    }
    *chunk = au__chunk_of(rec, *chunk, caller->addr);
    if (*chunk == rec->chunk_count) {
        return 0;
    }
    const au_chunk *c = &rec->chunks[*chunk];
    if (callee->outside >= 0) {
        const au_outside *o = &rec->outside[callee->outside];
        return is_known_unheld(e, callee, caller) ||
               (o->votes >= AU_SURE && o->code == callee->code && o->caller_code == caller->code &&
                holds_generator(e, b, c, p.look, p.i, 1u << p.look));
    }
    const uint8_t *f = au__in_chunk(e, c, caller->addr, p.look);
    const uint8_t *next = au__covers(c, callee->addr) ? au__in_chunk(e, c, callee->addr, p.look) : NULL;
    /* what a call returns takes the place of the function */
    return f && next && f < next &&
           (link == AU_LINK_UNHELD || (link == AU_LINK_HELD && (p.returned || holds_callee(l, f, next))));
}

int au__chain_alone(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, size_t common)
{
    size_t moved = e->scratch.raw_count[look] - common;
    size_t chunk = 0;
    int generators = 0;
    if (e->remote.layout.minor < 11 || common == 0 ||
        e->scratch.raw[look][e->scratch.raw_count[look] - 1].owner == AU_OWNER_GENERATOR) {
        return 0;
    }
    for (size_t i = 0; i < moved; i++) {
        generators += e->scratch.raw[look][i].outside >= 0;
    }
    for (size_t i = 0; i < moved; i++) {
        if (!generators || !proven_call(e, rec, b, (pair){look, i, e->scratch.raw[look][i + 1].ip, 0}, &chunk)) {
            return 0;
        }
    }
    return 1;
}

int au__chain_was(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, size_t common)
{
    au_scratch *s = &e->scratch;
    au_raw_frame *raw = s->raw[look];
    size_t moved = s->raw_count[look] - common;
    size_t chunk = 0;
    if (common == 0 || moved > PLAIN_MAX || raw[0].addr != b->first_top) {
        return 0; /* from 3.14 on a frame that has returned has lost its code */
    }
    /* generators only below C code, in either look: else one of a generator and its consumer would be favoured */
    au_doubt of;
    for (int k = 0; k < 2; k++) {
        const au_raw_frame *r = s->raw[k];
        for (size_t i = 0; i < s->raw_count[k]; i++) {
            int last = i + 1 == s->raw_count[k];
            if (!plain_call(&r[i]) && (last || (r[i + 1].outside < 0 && !is_known_unheld(e, &r[i], &r[i + 1])))) {
                return 0;
            }
        }
    }
    if (au__chain_doubt(e, rec, b, look, &of)) {
        return 0;
    }
    uint64_t ips[PLAIN_MAX];
    for (size_t i = 0; i < moved; i++) {
        int caller_returned = i + 1 < moved;
        ips[i] = called_from(e, &raw[i], caller_returned);
        if (!proven_call(e, rec, b, (pair){look, i, ips[i], caller_returned || raw[i].left}, &chunk)) {
            return 0;
        }
    }
    for (size_t i = 0; i < moved; i++) {
        raw[i].alone = 1;
        raw[i + 1].ip = ips[i];
    }
    return 1;
}

static au_left *left_of(au_engine *e, au_addr frame)
{
    return &e->left[(frame >> 3) % AU_LEFT_PLACES];
}

static void note_frame(au_engine *e, const au_raw_frame *frame)
{
    au_left *left = left_of(e, frame->addr);
    if (left->frame != frame->addr) {
        *left = (au_left){.frame = frame->addr};
    }
    size_t i = 0;
    while (i + 1 < AU_LEFT_CODES && left->codes[i] != frame->code) {
        i++;
    }
    memmove(left->codes + 1, left->codes, i * sizeof *left->codes);
    left->codes[0] = frame->code;
}

au_addr au__chain_left(au_engine *e, au_addr frame, uint64_t ip)
{
    const au_left *left = left_of(e, frame);
    for (size_t i = 0; left->frame == frame && i < AU_LEFT_CODES && left->codes[i]; i++) {
        const au_code *code = au__codes_get(&e->codes, left->codes[i]);
        if (code && ip - code->start < (uint64_t)code->units * 2) {
            return code->addr;
        }
    }
    return 0;
}

void au__chain_learn(au_engine *e, const au_thread_rec *rec, int look)
{
    const au_layout *l = &e->remote.layout;
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    size_t chunk = 0;
    for (size_t i = 0; l->tagged && i < s->raw_count[look] && i < NOTED && plain_call(&raw[i]); i++) {
        note_frame(e, &raw[i]);
    }
    for (size_t i = 0; l->minor > 10 && i + 1 < s->raw_count[look] && i < PLAIN_MAX; i++) {
        const au_raw_frame *callee = &raw[i];
        const au_raw_frame *caller = &raw[i + 1];
        if (callee->outside >= 0) {
            continue;
        }
        learn_site(e, caller->ip, callee->code);
        if (au__links_find(&e->links, caller->code, callee->code) != AU_LINK_UNKNOWN) {
            continue;
        }
        int held = 0;
        chunk = au__chunk_of(rec, chunk, callee->addr);
        if (chunk < rec->chunk_count && caller->outside < 0 && !callee->entered) {
            const uint8_t *f = au__covers(&rec->chunks[chunk], caller->addr)
                                   ? au__in_chunk(e, &rec->chunks[chunk], caller->addr, look)
                                   : NULL;
            const uint8_t *next = au__in_chunk(e, &rec->chunks[chunk], callee->addr, look);
            if (!f || !next || f >= next) {
                continue; /* resolved are calls within one chunk only */
            }
            held = holds_callee(l, f, next);
        }
        au__links_enter(&e->links, caller->code, callee->code, held);
    }
}

void au__chain_believe(au_engine *e, int look)
{
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    for (size_t i = 0; i + 1 < s->raw_count[look]; i++) {
        if (!raw[i].unheld) {
            continue;
        }
        unsigned level = 1;
        while (level < UNHELD_FACTS &&
               au__links_find(&e->links, raw[i + 1].code, unheld_pair(raw[i].code, level)) != AU_LINK_UNKNOWN) {
            level++;
        }
        au__links_enter(&e->links, raw[i + 1].code, unheld_pair(raw[i].code, level), 0);
    }
}

uint64_t au__chain_doubt(au_engine *e, const au_thread_rec *rec, const au_batch *b, int look, au_doubt *of)
{
    const au_layout *l = &e->remote.layout;
    au_scratch *s = &e->scratch;
    au_raw_frame *raw = s->raw[look];
    uint64_t doubt = 0;
    size_t chunk = 0;
    *of = (au_doubt){0, 0};
    for (size_t i = 0; l->minor > 10 && i < s->raw_count[look]; i++) {
        if (raw[i].owner != AU_OWNER_GENERATOR || raw[i].outside < 0) {
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
        chunk = au__chunk_of(rec, chunk, raw[caller].addr);
        if (chunk == rec->chunk_count) {
            continue;
        }
        const au_outside *o = &rec->outside[raw[i].outside];
        au_link site = au__links_find(&e->links, raw[caller].code, raw[caller].ip);
        /* in one copy, the lines of a frame's head and of its values may be of two moments */
        int held = holds_generator(e, b, &rec->chunks[chunk], look, i, 3);
        int as_ever = o->votes < AU_SURE || o->code != raw[i].code || o->caller_code == raw[caller].code;
        raw[i].unheld = !held && as_ever && site == AU_LINK_UNKNOWN;
        if (held && as_ever && site == AU_LINK_UNKNOWN) {
            au__links_enter(&e->links, raw[caller].code, raw[caller].ip, 1);
        } else if (raw[i].unheld && is_known_unheld(e, &raw[i], &raw[caller])) {
            raw[i].unheld = 0;
        } else if (!held || !as_ever) {
            int strong = !as_ever || site != AU_LINK_UNKNOWN;
            of->unheld |= !held;
            of->strong |= strong;
            doubt ^= strong ? raw[i].addr : raw[i].code; /* tasks that take turns are as good as one */
            doubt = (doubt ^ raw[caller].code) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        }
    }
    return doubt;
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
        if (raw[i].outside < 0 || raw[i].owner != AU_OWNER_GENERATOR || raw[i].inferred) {
            continue;
        }
        if (!sure && raw[i + 1].outside < 0) {
            chunk = au__chunk_of(rec, chunk, raw[i + 1].addr);
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
