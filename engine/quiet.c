/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Threads whose stack need not be read again: most of a thousand sleepers, and a loop that calls nobody.
 *
 * The GIL knows best. Python frames change only under it, and it notes who took it last and counts how often that was
 * another thread (Python/ceval_gil.c, take_gil: last_holder, switch_number). So when both are what they were before a
 * stack was read, and the thread was not that holder, its stack is what it was: one small read for all threads. After
 * one switch only the two threads that it went between may have moved.
 *
 * Where that does not tell (free-threaded builds, a GIL that changes hands), a stack that has stood for a while is
 * compared. Of such a thread the bytes are kept that its stack was made of: the words of the thread state that lead to it and the
 * used part of its stack chunk. While a copy of the same places is the same bytes, so is the stack: the frames in it
 * hold their code objects. One batch asks for all quiet threads, at one piece each and a share of another, where a
 * system call for each would tell no more than that it has not run.
 *
 * It is no way for stacks that move: a look that finds another stack would be repeated later, and what stands would
 * gain by it. So a stack must have stood for QUIET_PASSES and QUIET_NS before; then the gain is a few microseconds in
 * that time.
 */
#include <stdlib.h>

#include "engine/stack.h"

enum { QUIET_PASSES = 8, IMAGE_MAX = 16 << 10 };
#define QUIET_NS UINT64_C(2000000)

/* The words that lead from a thread state to its stack, and tell it from another that took its place. */
static size_t words_of(const au_layout *l, uint32_t at[6])
{
    const uint32_t all[] = {l->tstate_interp,          l->tstate_frame,           l->tstate_cframe,
                            l->tstate_datastack_chunk, l->tstate_datastack_top, l->tstate_thread_id};
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] != AU_ABSENT) {
            at[n++] = all[i];
        }
    }
    return n;
}

static void window_of(const au_layout *l, uint32_t *from, uint32_t *to)
{
    uint32_t at[6];
    size_t n = words_of(l, at);
    *from = UINT32_MAX;
    *to = 0;
    for (size_t i = 0; i < n; i++) {
        *from = at[i] < *from ? at[i] : *from;
        *to = at[i] + 8 > *to ? at[i] + 8 : *to;
    }
}

void au__quiet_drop(au_thread_rec *rec)
{
    rec->quiet = 0;
    rec->unchanged = 0;
}

int au__quiet_capture(au_engine *e, au_thread_rec *rec, const au_batch *b, uint64_t now)
{
    const au_layout *l = &e->remote.layout;
    rec->quiet = 0;
    if (rec->still == 0) {
        rec->still_since_ns = now;
    }
    if (l->tstate_datastack_chunk == AU_ABSENT || rec->still < QUIET_PASSES || now - rec->still_since_ns < QUIET_NS ||
        rec->chunk_count != 1) {
        return 0;
    }
    const au_chunk *c = rec->chunks;
    const au_piece *copy = &e->scratch.pieces[c->piece[1]];
    uint64_t used = b->chunk_top - c->addr;
    for (int look = 0; look < 2; look++) {
        for (size_t i = 0; i < e->scratch.raw_count[look]; i++) {
            if (e->scratch.raw[look][i].outside >= 0 && !e->scratch.raw[look][i].skip) {
                return 0; /* a generator's frame is not in the chunk */
            }
        }
    }
    if (b->chunk != c->addr || b->chunk_top < c->addr || used > copy->len || used > IMAGE_MAX) {
        return 0;
    }
    uint32_t at[6];
    size_t words = words_of(l, at);
    size_t need = (size_t)used + words * 8;
    if (au__grow(&rec->image, &rec->image_cap, need, 1, &e->stats)) {
        return -1;
    }
    for (size_t i = 0; i < words; i++) {
        memcpy(rec->image + i * 8, b->ts + at[i], 8);
    }
    memcpy(rec->image + words * 8, copy->buf, (size_t)used);
    rec->image_chunk = c->addr;
    rec->image_used = (uint32_t)used;
    rec->quiet = 1;
    return 0;
}

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

/* Reads who has the GIL of each interpreter. Threads with a proof keep it or lose it. -1: no memory. */
static int gil_look(au_engine *e)
{
    enum { HOLDER = 8, SWITCHES = 24, WINDOW = SWITCHES + 8 - HOLDER }; /* struct _gil_runtime_state, LP64 and LLP64 */
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
    for (size_t i = 0; i < e->interp_count; i++) {
        au_interp_rec *interp = &e->interps[i];
        const au_piece *piece = interp->gil_piece == UINT32_MAX ? NULL : &e->quiet_pieces[interp->gil_piece];
        int known = piece && piece->outcome == AU_OK;
        au_addr holder = known ? au__u64(piece->buf) : 0;
        known = known && au__plausible(holder); /* nobody yet: nothing to be told from */
        uint32_t switches = known ? au__u32((const uint8_t *)piece->buf + (SWITCHES - HOLDER)) : 0;
        uint32_t passed = switches - interp->gil_switches;
        interp->gil_stands = known && interp->gil_known && (passed == 1 || (passed == 0 && holder == interp->gil_holder));
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

static int is_unchanged(const au_engine *e, const au_thread_rec *rec, const uint32_t *at, size_t words, uint32_t from)
{
    const au_piece *state = &e->quiet_pieces[rec->quiet_piece[0]];
    const au_piece *chunk = &e->quiet_pieces[rec->quiet_piece[1]];
    if (state->outcome != AU_OK || chunk->outcome != AU_OK) {
        return 0;
    }
    const uint8_t *copy = (const uint8_t *)state->buf + (rec->addr + from - state->addr);
    for (size_t i = 0; i < words; i++) {
        if (memcmp(rec->image + i * 8, copy + (at[i] - from), 8) != 0) {
            return 0;
        }
    }
    return memcmp(rec->image + words * 8, chunk->buf, rec->image_used) == 0;
}

/* The pieces: thread states first, joined where they lie near each other, then the chunks, then the heads. */
static int want(au_engine *e, uint32_t from, uint32_t to, size_t *count)
{
    size_t quiet = 0;
    size_t heads = e->heads_due ? au__heads_count(e) : 0;
    size_t n = 0;
    for (size_t i = 0; i < e->thread_count; i++) {
        quiet += e->threads[i]->quiet && !e->threads[i]->unchanged;
    }
    *count = 0;
    if (quiet == 0) {
        return 0;
    }
    if (au__grow(&e->quiet_pieces, &e->quiet_piece_cap, 2 * quiet + heads, sizeof *e->quiet_pieces, &e->stats)) {
        return -1;
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        if (e->threads[i]->quiet && !e->threads[i]->unchanged) {
            e->threads[i]->quiet_piece[0] = au__join_piece(e->quiet_pieces, &n, e->threads[i]->addr + from, to - from);
        }
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (rec->quiet && !rec->unchanged) {
            rec->quiet_piece[1] = (uint32_t)n;
            e->quiet_pieces[n++] = (au_piece){rec->image_chunk, NULL, rec->image_used, 0};
        }
    }
    want_heads(e, heads, &n);
    *count = n;
    return 0;
}

int au__quiet_look(au_engine *e)
{
    const au_layout *l = &e->remote.layout;
    uint32_t at[6];
    uint32_t from;
    uint32_t to;
    size_t count;
    size_t words = words_of(l, at);
    window_of(l, &from, &to);
    for (size_t i = 0; i < e->thread_count; i++) {
        e->threads[i]->unchanged = 0;
    }
    if (e->thread_count > 1 && l->gil_tells && gil_look(e)) {
        return -1;
    }
    if (want(e, from, to, &count)) {
        return -1;
    }
    if (count == 0) {
        return 0;
    }
    int heads = e->heads_due;
    if (serve(e, count)) {
        return -1;
    }
    for (size_t i = 0; i < e->thread_count; i++) {
        au_thread_rec *rec = e->threads[i];
        if (rec->quiet && !rec->unchanged) {
            rec->unchanged = rec->quiet = is_unchanged(e, rec, at, words, from);
            rec->still = rec->quiet ? rec->still : 0;
        }
    }
    if (heads) {
        au__heads_judge(e, e->quiet_pieces + (count - au__heads_count(e)));
    }
    return 0;
}
