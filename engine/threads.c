/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The lists of interpreters and thread states (Include/internal/pycore_interp.h, pycore_pystate.h). They are changed
 * under locks that we cannot take, so every link is checked (`thread->interp == interp`), every walk is bounded, and a
 * list that moved is read again on the next pass. New ones are linked in at the head, so a cheap look at the heads
 * finds births; a full walk finds the rest.
 */
#include <stdlib.h>

#include "engine/internal.h"

enum { INTERPRETERS_MAX = 1 << 20, THREADS_MAX = 1 << 22, HEAD_WINDOW = 4096, HOLE_MAX = 32 };

au_interp_rec *au__interp_of(au_engine *e, const au_thread_rec *rec)
{
    for (size_t i = 0; i < e->interp_count; i++) {
        if (e->interps[i].addr == rec->interp) {
            return &e->interps[i];
        }
    }
    return NULL;
}

static void free_thread(au_engine *e, au_thread_rec *rec)
{
    if (rec->state.slot) {
        rec->state.wanted = 0;
        e->remote.ops->thread_states(e->remote.proc, &rec->state, 1);
    }
    au__stack_release(e, rec);
    free(rec->name);
    free(rec);
}

void au__threads_clear(au_engine *e)
{
    for (size_t i = 0; i < e->thread_count; i++) {
        free_thread(e, e->threads[i]);
    }
    e->thread_count = 0;
    e->interp_count = 0;
    e->list_due_ns = 0;
}

/*
 * The fields of an interpreter that tell of births, and that it is itself: they stand side by side in all versions
 * (pycore_interp.h). An id that lies far away (there is no such version) is left out.
 */
enum { NEAR = 256 };

typedef struct heads_window {
    uint32_t from, len;
    int has_id;
} heads_window;

static heads_window window_of(const au_layout *l)
{
    uint32_t from = l->interp_next < l->interp_threads_head ? l->interp_next : l->interp_threads_head;
    uint32_t to = l->interp_next > l->interp_threads_head ? l->interp_next : l->interp_threads_head;
    uint32_t low = l->interp_id < from ? l->interp_id : from;
    uint32_t high = l->interp_id > to ? l->interp_id : to;
    return high - low <= NEAR ? (heads_window){low, high - low + 8, 1} : (heads_window){from, to - from + 8, 0};
}

/* id, next and head of the threads of one interpreter, in one read if they lie together. */
static au_outcome read_interp(const au_remote *r, au_addr addr, int64_t *id, au_addr *next, au_addr *head)
{
    const au_layout *l = &r->layout;
    heads_window window = window_of(l);
    uint8_t copy[NEAR + 8];
    if (!window.has_id || window.len > r->window_cap) {
        au_piece pieces[3] = {{addr + l->interp_id, id, 8, 0},
                              {addr + l->interp_next, next, 8, 0},
                              {addr + l->interp_threads_head, head, 8, 0}};
        return r->ops->read_many(r->proc, pieces, 3) == 3 ? AU_OK : (au_outcome)pieces[0].outcome;
    }
    au_outcome outcome = au__read(r, addr + window.from, copy, window.len);
    if (outcome == AU_OK) {
        *id = (int64_t)au__u64(copy + (l->interp_id - window.from));
        *next = au__u64(copy + (l->interp_next - window.from));
        *head = au__u64(copy + (l->interp_threads_head - window.from));
    }
    return outcome;
}

static uint32_t head_bytes(const au_layout *l)
{
    uint32_t most = l->tstate_thread_id > l->tstate_next ? l->tstate_thread_id : l->tstate_next;
    most = l->tstate_interp > most ? l->tstate_interp : most;
    if (l->tstate_native_thread_id != AU_ABSENT && l->tstate_native_thread_id > most) {
        most = l->tstate_native_thread_id;
    }
    if (l->tstate_id != AU_ABSENT && l->tstate_id > most) {
        most = l->tstate_id;
    }
    return most + 8;
}

/* The interpreters, newest first. AU_FAULT when a link is bad: the list was moving. */
static au_outcome walk_interps(au_engine *e)
{
    au_addr addr;
    size_t count = 0;
    au_ring links = {0};
    au_outcome outcome = au__read_u64(&e->remote, e->runtime + e->remote.layout.runtime_interpreters_head, &addr);
    if (outcome != AU_OK) {
        return outcome;
    }
    if (!addr) {
        e->reborn = 1;
        return AU_FAULT;
    }
    const uint32_t reborn = e->reborn ? e->interp_serial : 0; /* those up to it are over */
    e->list_stamp++;
    while (addr) {
        int64_t id;
        au_addr next;
        au_addr head;
        if (!au__plausible(addr) || count >= INTERPRETERS_MAX || au__ring_closes(&links, addr)) {
            return AU_FAULT;
        }
        outcome = read_interp(&e->remote, addr, &id, &next, &head);
        if (outcome != AU_OK) {
            return outcome;
        }
        if (au__grow(&e->interps, &e->interp_cap, count + 1, sizeof *e->interps, &e->stats)) {
            return AU_FAULT;
        }
        size_t at = count;
        while (at < e->interp_count &&
               (e->interps[at].addr != addr || e->interps[at].id != id || e->interps[at].serial <= reborn)) {
            at++;
        }
        au_interp_rec rec = {0};
        if (at < e->interp_count) { /* known: to its place in the order */
            rec = e->interps[at];
            memmove(e->interps + count + 1, e->interps + count, (at - count) * sizeof *e->interps);
        } else {
            if (e->interp_count > count) { /* make room */
                if (au__grow(&e->interps, &e->interp_cap, e->interp_count + 1, sizeof *e->interps, &e->stats)) {
                    return AU_FAULT;
                }
                memmove(e->interps + count + 1, e->interps + count, (e->interp_count - count) * sizeof *e->interps);
            }
            e->interp_count++;
            e->stats.interpreters_seen++;
            rec.addr = addr;
            rec.id = id;
            rec.serial = ++e->interp_serial;
        }
        if (!rec.gil && e->remote.layout.interp_gil != AU_ABSENT) {
            (void)au__read_u64(&e->remote, addr + e->remote.layout.interp_gil, &rec.gil); /* 0 until it is made */
        }
        rec.threads_head = head;
        rec.seen = e->list_stamp;
        e->interps[count++] = rec;
        addr = next;
    }
    e->interp_count = count;
    e->reborn = 0;
    return AU_OK;
}

/* What a thread state says of itself. */
typedef struct identity {
    au_addr addr;
    uint64_t ident, native, unique;
} identity;

static au_thread_rec *known_thread(au_engine *e, size_t from, const au_interp_rec *interp, const identity *id,
                                   size_t *at)
{
    for (size_t i = from; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (rec->addr == id->addr && rec->maker == interp->serial && rec->ident == id->ident &&
            rec->native == id->native && rec->unique == id->unique) {
            *at = i;
            return rec;
        }
    }
    return NULL;
}

/* Takes a thread into place `at` of the order. */
static int place_thread(au_engine *e, size_t at, const au_interp_rec *interp, const identity *id)
{
    size_t found = 0;
    au_thread_rec *rec = known_thread(e, at, interp, id, &found);
    if (rec) {
        if (found != at && found - at <= HOLE_MAX) {
            /* those before it have probably ended: out of the way of all that follow */
            au_thread_rec *hole[HOLE_MAX];
            size_t n = found - at;
            memcpy(hole, e->threads + at, n * sizeof(au_thread_rec *));
            memmove(e->threads + at, e->threads + found, (e->thread_count - found) * sizeof(au_thread_rec *));
            memcpy(e->threads + (e->thread_count - n), hole, n * sizeof(au_thread_rec *));
        } else if (found != at) {
            memmove(e->threads + at + 1, e->threads + at, (found - at) * sizeof(au_thread_rec *));
            e->threads[at] = rec;
        }
        rec->seen = e->list_stamp;
        return 0;
    }
    rec = calloc(1, sizeof *rec);
    if (!rec || au__grow(&e->threads, &e->thread_cap, e->thread_count + 1, sizeof *e->threads, &e->stats)) {
        free(rec);
        return -1;
    }
    rec->addr = id->addr;
    rec->interp = interp->addr;
    rec->iid = interp->id;
    rec->ident = id->ident;
    rec->native = id->native;
    rec->unique = id->unique;
    rec->maker = interp->serial;
    rec->state_id = ++e->next_state_id;
    rec->is_main = interp->id == 0 && id->ident && id->ident == e->main_ident;
    rec->seen = e->list_stamp;
    memmove(e->threads + at + 1, e->threads + at, (e->thread_count - at) * sizeof *e->threads);
    e->threads[at] = rec;
    e->thread_count++;
    e->stats.threads_seen++;
    return 0;
}

uint32_t au__join_piece(au_piece *pieces, size_t *count, au_addr addr, uint32_t len)
{
    enum { GAP = 512, RANGE_MAX = 64 << 10 };
    au_piece *last = *count ? &pieces[*count - 1] : NULL;
    au_addr low = last && last->addr < addr ? last->addr : addr;
    au_addr high = last && last->addr + last->len > addr + len ? last->addr + last->len : addr + len;
    if (last && addr + len + GAP > last->addr && addr < last->addr + last->len + GAP && high - low <= RANGE_MAX) {
        last->addr = low;
        last->len = (uint32_t)(high - low);
    } else {
        pieces[(*count)++] = (au_piece){addr, NULL, len, 0};
    }
    return (uint32_t)(*count - 1);
}

/* Asks for the heads of `n` thread states that are believed to follow each other from e->threads[from] on. */
static size_t prefetch(au_engine *e, size_t from, au_addr first, uint32_t len)
{
    size_t n = e->thread_count - from < HEAD_WINDOW ? e->thread_count - from : HEAD_WINDOW;
    if (from >= e->thread_count || e->threads[from]->addr != first) {
        return 0;
    }
    if (au__grow(&e->list_pieces, &e->list_piece_cap, n, sizeof *e->list_pieces, &e->stats) ||
        au__grow(&e->list_range, &e->list_range_cap, n, sizeof *e->list_range, &e->stats)) {
        return 0;
    }
    size_t count = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        e->list_range[i] = au__join_piece(e->list_pieces, &count, e->threads[from + i]->addr, len);
    }
    for (size_t i = 0; i < count; i++) {
        bytes += e->list_pieces[i].len;
    }
    e->list_arena.len = 0;
    if (au_buf_reserve(&e->list_arena, bytes)) {
        return 0;
    }
    for (size_t i = 0, at = 0; i < count; at += e->list_pieces[i++].len) {
        e->list_pieces[i].buf = e->list_arena.data + at;
    }
    e->remote.ops->read_many(e->remote.proc, e->list_pieces, count);
    return n;
}

/* The head of the thread state at addr, number i of those that were asked for; NULL if it is not among them. */
static const uint8_t *prefetched(const au_engine *e, size_t i, au_addr addr, uint32_t len)
{
    const au_piece *piece = &e->list_pieces[e->list_range[i]];
    if (piece->outcome != AU_OK || addr < piece->addr || addr - piece->addr + len > piece->len) {
        return NULL;
    }
    return (const uint8_t *)piece->buf + (addr - piece->addr);
}

static au_outcome walk_threads(au_engine *e, const au_interp_rec *interp, size_t *at)
{
    const au_layout *l = &e->remote.layout;
    uint8_t single[512];
    uint32_t len = head_bytes(l);
    au_addr addr = interp->threads_head;
    size_t have = 0; /* prefetched heads, from place `base` on */
    size_t base = 0;
    au_ring links = {0};
    if (len > sizeof single) {
        return AU_FAULT;
    }
    while (addr) {
        if (!au__plausible(addr) || *at >= THREADS_MAX || au__ring_closes(&links, addr)) {
            return AU_FAULT;
        }
        if (!(have && *at >= base && *at - base < have && e->threads[*at]->addr == addr)) {
            have = prefetch(e, *at, addr, len);
            base = *at;
        }
        const uint8_t *head = have ? prefetched(e, *at - base, addr, len) : NULL;
        if (!head) {
            au_outcome outcome = au__read(&e->remote, addr, single, len);
            if (outcome != AU_OK) {
                return outcome;
            }
            head = single;
        }
        if (au__u64(head + l->tstate_interp) != interp->addr) {
            return AU_FAULT;
        }
        au_addr next = au__u64(head + l->tstate_next);
        identity id = {
            .addr = addr,
            .ident = au__ulong(l, head + l->tstate_thread_id),
            .native = l->tstate_native_thread_id == AU_ABSENT ? 0 : au__ulong(l, head + l->tstate_native_thread_id),
            .unique = l->tstate_id == AU_ABSENT ? 0 : au__u64(head + l->tstate_id),
        };
        size_t before = e->thread_count;
        if (place_thread(e, *at, interp, &id)) {
            return AU_FAULT;
        }
        if (e->thread_count != before) {
            have = 0; /* a new one in between: what was asked for stands one place further */
        }
        (*at)++;
        addr = next;
    }
    return AU_OK;
}

/* Which thread states share an OS thread: only such of a sub-interpreter can, with one of another interpreter. */
static void mark_sharing(au_engine *e)
{
    for (size_t i = 0; i < e->thread_count; i++) {
        e->threads[i]->shares_tid = 0;
    }
    for (size_t i = 0; e->interp_count > 1 && i < e->thread_count; i++) {
        au_thread_rec *sub = e->threads[i];
        for (size_t k = 0; sub->iid != 0 && sub->ident && k < e->thread_count; k++) {
            au_thread_rec *other = e->threads[k];
            if (other != sub && other->ident == sub->ident && other->native == sub->native) {
                other->shares_tid = sub->shares_tid = 1;
            }
        }
    }
}

/* Drops what the last walk did not meet. */
static void sweep(au_engine *e, size_t met)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->thread_count; i++) {
        if (i < met && e->threads[i]->seen == e->list_stamp) {
            e->threads[kept++] = e->threads[i];
        } else {
            free_thread(e, e->threads[i]);
        }
    }
    e->thread_count = kept;
}

size_t au__heads_count(const au_engine *e)
{
    return 1 + e->interp_count;
}

/* In _PyRuntime: from the int `initialized`, which is before `finalizing`, to the head of the list of interpreters. */
static uint32_t life_from(const au_layout *l)
{
    uint32_t initialized = l->runtime_finalizing - (l->minor == 10 ? 4 : 8);
    int near = l->runtime_finalizing != AU_ABSENT && l->runtime_finalizing >= 8 &&
               l->runtime_interpreters_head > l->runtime_finalizing &&
               l->runtime_interpreters_head - l->runtime_finalizing <= 64;
    return near ? initialized : l->runtime_interpreters_head;
}

void au__heads_want(const au_engine *e, size_t i, au_addr *addr, uint32_t *len)
{
    const au_layout *l = &e->remote.layout;
    if (i == 0) {
        *addr = e->runtime + life_from(l);
        *len = l->runtime_interpreters_head - life_from(l) + 8;
        return;
    }
    heads_window window = window_of(l);
    *addr = e->interps[i - 1].addr + window.from;
    *len = window.len;
}

/*
 * Has a runtime been ended and another one begun in its place? It has the same address, and its interpreter, threads
 * and code objects may have those of the one before, with the same numbers.
 */
static void watch_life(au_engine *e, const au_piece *runtime)
{
    const au_layout *l = &e->remote.layout;
    uint32_t from = life_from(l);
    if (from == l->runtime_interpreters_head || runtime->outcome != AU_OK) {
        return;
    }
    const uint8_t *copy = runtime->buf;
    uint32_t initialized = au__u32(copy);
    uint64_t finalizing = au__u64(copy + (l->runtime_finalizing - from));
    au_life was = e->life;
    e->life = initialized == 1 ? AU_LIFE_STANDS
              : initialized    ? AU_LIFE_UNKNOWN
              : finalizing     ? AU_LIFE_ENDS
                               : AU_LIFE_BEGINS;
    if ((was == AU_LIFE_ENDS && (e->life == AU_LIFE_BEGINS || e->life == AU_LIFE_STANDS)) ||
        (was == AU_LIFE_STANDS && e->life == AU_LIFE_BEGINS)) {
        au__runtime_is_new(e);
    }
}

int au__heads_stand(const au_engine *e, const au_piece *pieces)
{
    const au_layout *l = &e->remote.layout;
    heads_window window = window_of(l);
    const uint8_t *head = (const uint8_t *)pieces[0].buf + (l->runtime_interpreters_head - life_from(l));
    if (pieces[0].outcome != AU_OK || au__u64(head) != e->interps[0].addr) {
        return 0;
    }
    for (size_t i = 0; i < e->interp_count; i++) {
        const uint8_t *copy = pieces[1 + i].buf;
        au_addr next = i + 1 < e->interp_count ? e->interps[i + 1].addr : 0;
        if (pieces[1 + i].outcome != AU_OK ||
            au__u64(copy + (l->interp_threads_head - window.from)) != e->interps[i].threads_head ||
            au__u64(copy + (l->interp_next - window.from)) != next ||
            (window.has_id && (int64_t)au__u64(copy + (l->interp_id - window.from)) != e->interps[i].id)) {
            return 0;
        }
    }
    return 1;
}

void au__lone_judge(au_engine *e, const uint8_t *tstate)
{
    uint32_t active = au__active_at(&e->remote.layout);
    e->lone_active = active != AU_ABSENT && au__says_active(&e->remote.layout, au__u32(tstate + active));
}

void au__heads_by_links(au_engine *e, const uint8_t *tstate)
{
    uint32_t next =
        e->remote.layout.tstate_next; /* `prev` stands before it (Include/cpython/pystate.h, all versions) */
    e->heads_due = AU_HEADS_NOT_DUE;
    e->heads_outcome = AU_OK;
    if (au__u64(tstate + next - 8) != 0 || au__u64(tstate + next) != 0) {
        e->list_due_ns = 0;
    }
}

void au__heads_judge(au_engine *e, const au_piece *pieces)
{
    e->heads_due = AU_HEADS_NOT_DUE;
    e->heads_outcome = (au_outcome)pieces[0].outcome;
    watch_life(e, &pieces[0]);
    if (!au__heads_stand(e, pieces)) {
        e->list_due_ns = 0;
    }
}

/* Is there nothing new at the heads? One batch. */
static au_outcome heads_stand(au_engine *e, int *stand)
{
    size_t n = au__heads_count(e);
    if (au__grow(&e->list_pieces, &e->list_piece_cap, n, sizeof *e->list_pieces, &e->stats)) {
        return AU_FAULT;
    }
    e->list_arena.len = 0;
    for (size_t i = 0; i < n; i++) {
        au_addr addr;
        uint32_t len;
        au__heads_want(e, i, &addr, &len);
        e->list_pieces[i] = (au_piece){addr, (void *)(uintptr_t)e->list_arena.len, len, 0};
        e->list_arena.len += len;
    }
    size_t need = e->list_arena.len;
    e->list_arena.len = 0;
    if (au_buf_reserve(&e->list_arena, need)) {
        return AU_FAULT;
    }
    for (size_t i = 0; i < n; i++) {
        e->list_pieces[i].buf = e->list_arena.data + (uintptr_t)e->list_pieces[i].buf;
    }
    e->remote.ops->read_many(e->remote.proc, e->list_pieces, n);
    watch_life(e, &e->list_pieces[0]);
    *stand = au__heads_stand(e, e->list_pieces) && !e->reborn;
    return (au_outcome)e->list_pieces[0].outcome;
}

au_outcome au__threads_update(au_engine *e, int full)
{
    if (!full && e->interp_count) {
        int stand = 0;
        au_outcome outcome = heads_stand(e, &stand);
        if (outcome != AU_OK || stand) {
            return outcome;
        }
    }
    au_outcome outcome = AU_FAULT;
    size_t at = 0;
    for (int tries = 0; tries < 8 && outcome == AU_FAULT; tries++) {
        if (tries) {
            e->stats.list_torn++;
        }
        outcome = walk_interps(e);
        at = 0;
        for (size_t i = 0; outcome == AU_OK && i < e->interp_count; i++) {
            outcome = walk_threads(e, &e->interps[i], &at);
        }
    }
    if (outcome == AU_OK) {
        sweep(e, at);
        mark_sharing(e);
    }
    return outcome;
}
