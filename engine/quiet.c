/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Threads whose stack need not be read again: most of a thousand sleepers.
 *
 * Python frames change only under the GIL, and the GIL notes who took it last and counts how often that was another
 * thread (Python/ceval_gil.c, take_gil: last_holder, switch_number). So when both are what they were before a stack was
 * read, and the thread was not that holder, its stack is what it was: one small read for all threads. After one switch
 * only the two threads that it went between may have moved.
 *
 * A thread that goes from one interpreter to another with the same GIL (PyThreadState_Swap) is not noted: the holder is
 * the state that it was in when it last took or dropped the GIL (drop_gil). So that proves nothing where interpreters
 * share one, or where the holder is a state that is not there any more.
 */
#include <stdlib.h>

#include "engine/internal.h"

/* The heads of the lists, by the way. */
static void want_heads(au_engine *e, size_t heads, size_t *n)
{
    for (size_t i = 0; i < heads; i++) {
        au_addr addr;
        uint32_t len;
        au__heads_want(e, i, &addr, &len);
        e->quiet_pieces[(*n)++] = (au_piece){addr, NULL, len, 0};
    }
}

/* Gives the pieces their buffers and has them read. */
static int serve(au_engine *e, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += (e->quiet_pieces[i].len + 7u) & ~7u;
    }
    e->quiet_arena.len = 0;
    if (au_buf_reserve(&e->quiet_arena, bytes)) {
        return -1;
    }
    size_t offset = 0;
    for (size_t i = 0; i < count; i++) {
        e->quiet_pieces[i].buf = e->quiet_arena.data + offset;
        offset += (e->quiet_pieces[i].len + 7u) & ~7u;
    }
    if (count) {
        e->remote.ops->read_many(e->remote.proc, e->quiet_pieces, count);
    }
    return 0;
}

static uint64_t gil_of(const au_engine *e, const au_interp_rec *interp)
{
    const au_layout *l = &e->remote.layout;
    return l->runtime_gil != AU_ABSENT ? e->runtime + l->runtime_gil : interp->gil;
}

/* The GIL that several interpreters use, 0: each has its own. A sub-interpreter has its own, or the main one's. */
static au_addr shared_gil(const au_engine *e)
{
    const au_interp_rec *main = NULL;
    for (size_t i = 0; i < e->interp_count && !main; i++) {
        main = e->interps[i].id == 0 ? &e->interps[i] : NULL;
    }
    for (size_t i = 0; i < e->interp_count && main; i++) {
        if (&e->interps[i] != main && gil_of(e, &e->interps[i]) == gil_of(e, main)) {
            return gil_of(e, main);
        }
    }
    return 0;
}

static int is_thread(const au_engine *e, au_addr state)
{
    for (size_t i = 0; i < e->thread_count; i++) {
        if (e->threads[i]->addr == state) {
            return 1;
        }
    }
    return 0;
}

/* Reads who has the GIL of each interpreter. Threads with a proof keep it or lose it. -1: no memory. */
static int gil_look(au_engine *e)
{
    /* struct _gil_runtime_state (pycore_gil.h): the count is an unsigned long behind the int `locked` */
    enum { HOLDER = 8, LOCKED = 16, WINDOW = LOCKED + 16 - HOLDER };
    const size_t switches_at = LOCKED + (size_t)e->remote.layout.long_bytes - HOLDER;
    size_t heads = e->heads_due ? au__heads_count(e) : 0;
    if (au__grow(&e->quiet_pieces, &e->quiet_piece_cap, e->interp_count + heads, sizeof *e->quiet_pieces, &e->stats)) {
        return -1;
    }
    size_t n = 0;
    for (size_t i = 0; i < e->interp_count; i++) {
        au_addr gil = gil_of(e, &e->interps[i]);
        e->interps[i].gil_piece = gil ? (uint32_t)n : UINT32_MAX;
        if (gil) {
            e->quiet_pieces[n++] = (au_piece){gil + HOLDER, NULL, WINDOW, 0};
        }
    }
    want_heads(e, heads, &n);
    if (serve(e, n)) {
        return -1;
    }
    if (heads) {
        au__heads_judge(e, e->quiet_pieces + (n - heads));
    }
    au_addr shared = e->interp_serial > 1 ? shared_gil(e) : 0;
    for (size_t i = 0; i < e->interp_count; i++) {
        au_interp_rec *interp = &e->interps[i];
        const au_piece *piece = interp->gil_piece == UINT32_MAX ? NULL : &e->quiet_pieces[interp->gil_piece];
        int known = piece && piece->outcome == AU_OK;
        au_addr holder = known ? au__u64(piece->buf) : 0;
        known = known && au__plausible(holder); /* nobody yet: nothing to be told from */
        if (e->interp_serial > 1) {             /* there are others, or have been */
            known = known && gil_of(e, interp) != shared && (holder != interp->gil_holder || is_thread(e, holder));
        }
        uint32_t switches = known ? au__u32((const uint8_t *)piece->buf + switches_at) : 0;
        uint32_t passed = switches - interp->gil_switches;
        interp->gil_stands =
            known && interp->gil_known && (passed == 1 || (passed == 0 && holder == interp->gil_holder));
        interp->gil_holder_before = interp->gil_holder;
        interp->gil_known = known;
        e->switched |= !interp->gil_stands || passed;
        interp->gil_holder = holder;
        interp->gil_switches = switches;
    }
    const au_interp_rec *interp = e->interps;
    for (size_t i = 0; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (interp->addr != rec->interp) {
            interp = au__interp_of(e, rec);
        }
        rec->gil_proof = rec->gil_proof && interp && interp->gil_stands && rec->addr != interp->gil_holder &&
                         rec->addr != interp->gil_holder_before;
        rec->unchanged = rec->gil_proof;
        interp = interp ? interp : e->interps;
    }
    return 0;
}

void au__quiet_prove(au_thread_rec *rec, const au_interp_rec *interp)
{
    rec->gil_proof = interp->gil_known && rec->addr != interp->gil_holder;
}

int au__quiet_look(au_engine *e)
{
    for (size_t i = 0; i < e->thread_count; i++) {
        e->threads[i]->unchanged = 0;
    }
    return e->thread_count > 1 && e->remote.layout.gil_tells ? gil_look(e) : 0;
}
