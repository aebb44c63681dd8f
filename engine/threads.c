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

enum { INTERPRETERS_MAX = 1 << 20, THREADS_MAX = 1 << 22, HEAD_WINDOW = 4096 };

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

/* id, next and head of the threads of one interpreter, in one read of the window that covers them. */
static au_outcome read_interp(const au_remote *r, au_addr addr, int64_t *id, au_addr *next, au_addr *head)
{
    const au_layout *l = &r->layout;
    uint32_t from = l->interp_next < l->interp_id ? l->interp_next : l->interp_id;
    uint32_t to = l->interp_next > l->interp_id ? l->interp_next : l->interp_id;
    from = from < l->interp_threads_head ? from : l->interp_threads_head;
    to = (to > l->interp_threads_head ? to : l->interp_threads_head) + 8;
    uint8_t window[256];
    if (to - from > sizeof window || to - from > r->window_cap) {
        au_piece pieces[3] = {{addr + l->interp_id, id, 8, 0},
                              {addr + l->interp_next, next, 8, 0},
                              {addr + l->interp_threads_head, head, 8, 0}};
        return r->ops->read_many(r->proc, pieces, 3) == 3 ? AU_OK : (au_outcome)pieces[0].outcome;
    }
    au_outcome outcome = au__read(r, addr + from, window, to - from);
    if (outcome == AU_OK) {
        *id = (int64_t)au__u64(window + (l->interp_id - from));
        *next = au__u64(window + (l->interp_next - from));
        *head = au__u64(window + (l->interp_threads_head - from));
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
    return most + 8;
}

/* The interpreters, newest first. AU_FAULT when a link is bad: the list was moving. */
static au_outcome walk_interps(au_engine *e)
{
    au_addr addr;
    size_t count = 0;
    au_outcome outcome = au__read_u64(&e->remote, e->runtime + e->remote.layout.runtime_interpreters_head, &addr);
    if (outcome != AU_OK) {
        return outcome;
    }
    if (!addr) {
        return AU_FAULT;
    }
    e->list_stamp++;
    while (addr) {
        int64_t id;
        au_addr next;
        au_addr head;
        if (!au__plausible(addr) || count >= INTERPRETERS_MAX) {
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
        while (at < e->interp_count && (e->interps[at].addr != addr || e->interps[at].id != id)) {
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
        }
        rec.threads_head = head;
        rec.seen = e->list_stamp;
        e->interps[count++] = rec;
        addr = next;
    }
    e->interp_count = count;
    return AU_OK;
}

static au_thread_rec *known_thread(au_engine *e, size_t from, au_addr addr, au_addr interp, uint64_t ident,
                                   uint64_t native, size_t *at)
{
    for (size_t i = from; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (rec->addr == addr && rec->interp == interp && rec->ident == ident && rec->native == native) {
            *at = i;
            return rec;
        }
    }
    return NULL;
}

/* Takes the thread at addr into place `at` of the order. */
static int place_thread(au_engine *e, size_t at, const au_interp_rec *interp, au_addr addr, uint64_t ident,
                        uint64_t native)
{
    size_t found = 0;
    au_thread_rec *rec = known_thread(e, at, addr, interp->addr, ident, native, &found);
    if (rec) {
        if (found != at) {
            memmove(e->threads + at + 1, e->threads + at, (found - at) * sizeof *e->threads);
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
    rec->addr = addr;
    rec->interp = interp->addr;
    rec->iid = interp->id;
    rec->ident = ident;
    rec->native = native;
    rec->state_id = ++e->next_state_id;
    rec->is_main = interp->id == 0 && ident && ident == e->main_ident;
    rec->seen = e->list_stamp;
    memmove(e->threads + at + 1, e->threads + at, (e->thread_count - at) * sizeof *e->threads);
    e->threads[at] = rec;
    e->thread_count++;
    e->stats.threads_seen++;
    return 0;
}

/* Asks for the heads of `n` thread states that are believed to follow each other from e->threads[from] on. */
static size_t prefetch(au_engine *e, size_t from, au_addr first, uint32_t len)
{
    size_t n = 0;
    while (from + n < e->thread_count && n < HEAD_WINDOW) {
        n++;
    }
    if (n == 0 || e->threads[from]->addr != first) {
        return 0;
    }
    if (au__grow(&e->list_pieces, &e->list_piece_cap, n, sizeof *e->list_pieces, &e->stats)) {
        return 0;
    }
    e->list_arena.len = 0;
    if (au_buf_reserve(&e->list_arena, n * len)) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        e->list_pieces[i] = (au_piece){e->threads[from + i]->addr, e->list_arena.data + i * len, len, 0};
    }
    e->remote.ops->read_many(e->remote.proc, e->list_pieces, n);
    return n;
}

static au_outcome walk_threads(au_engine *e, const au_interp_rec *interp, size_t *at)
{
    const au_layout *l = &e->remote.layout;
    uint8_t single[512];
    uint32_t len = head_bytes(l);
    au_addr addr = interp->threads_head;
    size_t have = 0; /* prefetched heads, from place `base` on */
    size_t base = 0;
    if (len > sizeof single) {
        return AU_FAULT;
    }
    while (addr) {
        const uint8_t *head = NULL;
        if (!au__plausible(addr) || *at >= THREADS_MAX) {
            return AU_FAULT;
        }
        if (!(have && *at >= base && *at - base < have && e->list_pieces[*at - base].addr == addr)) {
            have = prefetch(e, *at, addr, len);
            base = *at;
        }
        if (have && e->list_pieces[*at - base].addr == addr && e->list_pieces[*at - base].outcome == AU_OK) {
            head = e->list_pieces[*at - base].buf;
        } else {
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
        uint64_t native = l->tstate_native_thread_id == AU_ABSENT ? 0 : au__u64(head + l->tstate_native_thread_id);
        size_t before = e->thread_count;
        if (place_thread(e, *at, interp, addr, au__u64(head + l->tstate_thread_id), native)) {
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

/* Is there nothing new at the heads? One batch. */
static au_outcome heads_stand(au_engine *e, int *stand)
{
    const au_layout *l = &e->remote.layout;
    size_t n = 1 + 2 * e->interp_count;
    if (au__grow(&e->list_pieces, &e->list_piece_cap, n, sizeof *e->list_pieces, &e->stats)) {
        return AU_FAULT;
    }
    e->list_arena.len = 0;
    if (au_buf_reserve(&e->list_arena, n * 8)) {
        return AU_FAULT;
    }
    for (size_t i = 0; i < n; i++) {
        au_addr at = e->runtime + l->runtime_interpreters_head;
        if (i) {
            at = e->interps[(i - 1) / 2].addr + (i % 2 ? l->interp_threads_head : l->interp_next);
        }
        e->list_pieces[i] = (au_piece){at, e->list_arena.data + i * 8, 8, 0};
    }
    size_t good = e->remote.ops->read_many(e->remote.proc, e->list_pieces, n);
    if (good != n) {
        *stand = 0;
        return e->list_pieces[0].outcome == AU_OK ? AU_OK : (au_outcome)e->list_pieces[0].outcome;
    }
    *stand = au__u64(e->list_arena.data) == e->interps[0].addr;
    for (size_t i = 0; *stand && i < e->interp_count; i++) {
        au_addr next = i + 1 < e->interp_count ? e->interps[i + 1].addr : 0;
        *stand = au__u64(e->list_arena.data + 8 + 16 * i) == e->interps[i].threads_head &&
                 au__u64(e->list_arena.data + 16 + 16 * i) == next;
    }
    return AU_OK;
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
