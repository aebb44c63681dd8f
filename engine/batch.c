/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * One batch: everything that a stack needs, asked for where it was last time, in one call of the port.
 *
 * Order is the point. The port serves the pieces strictly in order, so
 *
 *     outer frames, inner frames, | thread state | inner frames, outer frames, code objects
 *
 * has one moment in the middle that every frame's two copies enclose: what is equal in both was so at that moment, if
 * it did not change and change back in between. What changes most often is read closest to the middle, so its window
 * is the shortest. A cframe (3.11, 3.12) is that middle, and the thread state around it must point to it both times.
 *
 * Code objects come last: an entry of the cache was proven before the batch, and proven again after the frames were
 * read it is the same object all the time in between (code.c).
 */
#include <stdlib.h>

#include "engine/stack.h"

static uint32_t tstate_bytes(const au_layout *l)
{
    uint32_t fields[] = {l->tstate_interp,        l->tstate_frame, l->tstate_cframe,
                         l->tstate_thread_id,     l->tstate_state, l->tstate_native_thread_id,
                         l->tstate_datastack_top, l->tstate_status};
    uint32_t most = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i] != AU_ABSENT && fields[i] > most) {
            most = fields[i];
        }
    }
    return most + 8;
}

/* Notes a piece; its buffer is an offset until all are known, since the arena may still move. */
static uint32_t add(au_engine *e, au_addr addr, uint32_t len)
{
    au_scratch *s = &e->scratch;
    if (au__grow(&s->pieces, &s->piece_cap, s->piece_count + 1, sizeof *s->pieces, &e->stats)) {
        return UINT32_MAX;
    }
    s->pieces[s->piece_count] = (au_piece){addr, (void *)(uintptr_t)s->arena.len, len, 0};
    s->arena.len += (len + 7u) & ~7u;
    return (uint32_t)s->piece_count++;
}

/* ---- what proves a code object --------------------------------------------------------------------------------- */

/* A string as it is compared: from its length word to its last character, or in two parts if they lie apart. */
static int inline_string(const au_remote *r, const au_str *s)
{
    return s->data > s->addr && s->data - s->addr <= r->layout.str_any;
}

static int add_part(au_engine *e, au_proof *proof, au_addr addr, uint32_t len)
{
    if (au__grow(&proof->parts, &proof->part_cap, proof->part_count + 1, sizeof *proof->parts, &e->stats)) {
        return -1;
    }
    proof->parts[proof->part_count++] = (au_part){addr, len, 0, 0};
    return 0;
}

static int add_string(au_engine *e, au_proof *proof, const au_str *s, uint32_t bytes)
{
    uint32_t from = s->length_at;
    if (inline_string(&e->remote, s)) {
        return add_part(e, proof, s->addr + from, (uint32_t)(s->data - s->addr) - from + bytes);
    }
    return add_part(e, proof, s->addr + from, 8) || add_part(e, proof, s->data, bytes);
}

static int add_check(au_engine *e, au_proof *proof, au_check *check)
{
    const au_code *code = check->code;
    check->part = (uint32_t)proof->part_count;
    if (add_part(e, proof, code->addr + e->codes.head_from, e->codes.head_to - e->codes.head_from)) {
        return -1;
    }
    if (!code->by_content) {
        return 0;
    }
    uint32_t size_at = e->remote.layout.object_size;
    return add_string(e, proof, &code->scope_str, code->scope_bytes) ||
           add_part(e, proof, code->table_addr + size_at, e->remote.layout.bytes_data - size_at + code->table_bytes) ||
           add_string(e, proof, &code->file_str, code->file_bytes);
}

static int by_address(const void *a, const void *b)
{
    const au_part *x = *(au_part *const *)a;
    const au_part *y = *(au_part *const *)b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/*
 * Joins parts into ranges, if not `split`. Each page of a range holds bytes of a part, so a range faults only where a
 * part would; that they lie on neighbouring pages at most keeps the gaps short.
 */
static int join(au_engine *e, au_proof *proof)
{
    enum { RANGE_MAX = 64 << 10, PAGE_BITS = 12 };
    if (au__grow(&proof->order, &proof->order_cap, proof->part_count, sizeof(au_part *), &e->stats)) {
        return -1;
    }
    for (size_t i = 0; i < proof->part_count; i++) {
        proof->order[i] = &proof->parts[i];
    }
    qsort(proof->order, proof->part_count, sizeof(au_part *), by_address);
    proof->range_count = 0;
    for (size_t i = 0; i < proof->part_count; i++) {
        au_part *part = proof->order[i];
        au_range *last = proof->range_count ? &proof->ranges[proof->range_count - 1] : NULL;
        au_addr end = last ? last->addr + last->len : 0;
        if (!last || part->addr + part->len - last->addr > RANGE_MAX || proof->split ||
            part->addr + part->len - last->addr > e->remote.window_cap ||
            (part->addr > end && (part->addr >> PAGE_BITS) - ((end - 1) >> PAGE_BITS) > 1)) {
            if (au__grow(&proof->ranges, &proof->range_cap, proof->range_count + 1, sizeof *last, &e->stats)) {
                return -1;
            }
            last = &proof->ranges[proof->range_count++];
            *last = (au_range){part->addr, 0, UINT32_MAX};
        }
        part->range = (uint32_t)(proof->range_count - 1);
        part->offset = (uint32_t)(part->addr - last->addr);
        if (part->offset + part->len > last->len) {
            last->len = part->offset + part->len;
        }
    }
    return 0;
}

static int plan(au_engine *e, au_thread_rec *rec)
{
    au_proof *proof = &rec->proof;
    proof->part_count = 0;
    for (size_t i = 0; i < rec->check_count; i++) {
        if (add_check(e, proof, &rec->checks[i])) {
            return -1;
        }
    }
    proof->stale = join(e, proof) != 0;
    return proof->stale ? -1 : 0;
}

/* Has a range failed that is more than its parts? Then they are asked for one by one from now on. */
static int must_split(au_engine *e, au_proof *proof)
{
    for (size_t i = 0; !proof->split && i < proof->range_count; i++) {
        if (e->scratch.pieces[proof->ranges[i].piece].outcome != AU_OK) {
            proof->split = proof->stale = 1;
            return 1;
        }
    }
    return 0;
}

/* The copy of a part; NULL if it was not readable. */
static const uint8_t *copy_of(au_engine *e, const au_proof *proof, uint32_t part)
{
    const au_part *p = &proof->parts[part];
    const au_piece *piece = &e->scratch.pieces[proof->ranges[p->range].piece];
    return piece->outcome == AU_OK ? (const uint8_t *)piece->buf + p->offset : NULL;
}

static int holds_string(au_engine *e, const au_proof *proof, uint32_t *part, const au_str *s, const uint8_t *raw,
                        uint32_t bytes)
{
    const uint8_t *head = copy_of(e, proof, (*part)++);
    const uint8_t *text;
    if (inline_string(&e->remote, s)) {
        text = head ? head + ((uint32_t)(s->data - s->addr) - s->length_at) : NULL;
    } else {
        text = copy_of(e, proof, (*part)++);
    }
    return head && text && au__u64(head) == s->length && memcmp(text, raw, bytes) == 0;
}

static int holds(au_engine *e, const au_proof *proof, const au_check *check)
{
    const au_code *code = check->code;
    uint32_t part = check->part;
    const uint8_t *head = copy_of(e, proof, part++);
    if (!head || memcmp(head, code->head, e->codes.head_to - e->codes.head_from) != 0) {
        return 0;
    }
    if (!code->by_content) {
        return 1;
    }
    if (!holds_string(e, proof, &part, &code->scope_str, code->scope_raw, code->scope_bytes)) {
        return 0;
    }
    const uint8_t *table = copy_of(e, proof, part++);
    uint32_t gap = e->remote.layout.bytes_data - e->remote.layout.object_size;
    if (!table || au__u64(table) != code->table_bytes || memcmp(table + gap, code->table, code->table_bytes) != 0) {
        return 0;
    }
    return holds_string(e, proof, &part, &code->file_str, code->file_raw, code->file_bytes);
}

int au__check_add(au_engine *e, au_thread_rec *rec, au_code *code)
{
    for (size_t i = 0; i < rec->check_count; i++) {
        if (rec->checks[i].code == code) {
            rec->checks[i].idle = 0;
            return 0;
        }
    }
    if (au__grow(&rec->checks, &rec->check_cap, rec->check_count + 1, sizeof *rec->checks, &e->stats)) {
        return -1;
    }
    rec->checks[rec->check_count++] = (au_check){code, 0, UINT32_MAX, 0};
    rec->proof.stale = 1;
    au__code_pin(code);
    return 0;
}

void au__check_drop(au_engine *e, au_thread_rec *rec, size_t index)
{
    au__code_unpin(&e->codes, rec->checks[index].code);
    rec->checks[index] = rec->checks[--rec->check_count];
    rec->proof.stale = 1;
}

/* The pieces of the stack itself. */
static int add_looks(au_engine *e, au_thread_rec *rec, au_batch *b)
{
    const au_layout *l = &e->remote.layout;
    uint32_t lead = au__frame_lead(l);
    uint32_t frame = lead + (l->minor == 10 ? l->frame_state + 4 : l->frame_localsplus);
    int failed = 0;
    for (size_t i = rec->outside_count; i-- > 0;) {
        failed |= (rec->outside[i].piece[0] = add(e, rec->outside[i].addr - lead, frame)) == UINT32_MAX;
    }
    if (rec->cframe) { /* the cframe is what changes with each call, the pointer to it stands for long */
        failed |= (b->tstate = add(e, rec->addr, tstate_bytes(l))) == UINT32_MAX;
    }
    for (size_t i = rec->chunk_count; i-- > 0;) {
        failed |= (rec->chunks[i].piece[0] = add(e, rec->chunks[i].addr, rec->chunks[i].len)) == UINT32_MAX;
    }
    if (rec->cframe) {
        failed |= (b->cframe = add(e, rec->cframe, l->cframe_current_frame + 8)) == UINT32_MAX;
    } else {
        failed |= (b->tstate = add(e, rec->addr, tstate_bytes(l))) == UINT32_MAX;
    }
    for (size_t i = 0; i < rec->chunk_count; i++) {
        failed |= (rec->chunks[i].piece[1] = add(e, rec->chunks[i].addr, rec->chunks[i].len)) == UINT32_MAX;
    }
    if (rec->cframe) {
        failed |= (b->tstate_again = add(e, rec->addr + l->tstate_cframe, 8)) == UINT32_MAX;
    }
    for (size_t i = 0; i < rec->outside_count; i++) {
        failed |= (rec->outside[i].piece[1] = add(e, rec->outside[i].addr - lead, frame)) == UINT32_MAX;
    }
    return failed;
}

/* The code objects that the stack may refer to, after the generation that tells whether any was freed. */
static int add_checks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, au_batch *b)
{
    const au_layout *l = &e->remote.layout;
    int failed = 0;
    b->epoch = UINT32_MAX;
    if (l->interp_code_generation != AU_ABSENT) {
        failed |= (b->epoch = add(e, interp->addr + l->interp_code_generation, 8)) == UINT32_MAX;
    }
    int wanted = 0;
    for (size_t i = 0; i < rec->check_count && !wanted; i++) {
        wanted = b->epoch == UINT32_MAX || rec->checks[i].code->epoch != interp->epoch || !interp->epoch;
    }
    if (wanted && (!rec->proof.stale || plan(e, rec) == 0)) {
        for (size_t i = 0; i < rec->proof.range_count; i++) {
            au_range *range = &rec->proof.ranges[i];
            failed |= (range->piece = add(e, range->addr, range->len)) == UINT32_MAX;
        }
    }
    b->proven = wanted;
    return failed | (wanted && rec->proof.stale);
}

/* The heads of the lists of interpreters and threads, once a pass: what a call of its own would cost more for. */
static int add_heads(au_engine *e)
{
    int failed = 0;
    size_t n = au__heads_count(e);
    e->heads_piece = (uint32_t)e->scratch.piece_count;
    for (size_t i = 0; i < n; i++) {
        au_addr addr;
        uint32_t len;
        au__heads_want(e, i, &addr, &len);
        failed |= add(e, addr, len) == UINT32_MAX;
    }
    return failed;
}

/* Gives the pieces their buffers and has them served. */
static int serve(au_engine *e)
{
    au_scratch *s = &e->scratch;
    size_t need = s->arena.len;
    s->arena.len = 0;
    if (au_buf_reserve(&s->arena, need)) {
        return -1;
    }
    for (size_t i = 0; i < s->piece_count; i++) {
        s->pieces[i].buf = s->arena.data + (uintptr_t)s->pieces[i].buf;
    }
    e->remote.ops->read_many(e->remote.proc, s->pieces, s->piece_count);
    return 0;
}

/*
 * Was the copying itself interrupted? A copy of a chunk is a moment only if it was made in one go, and an interrupt or
 * a preemption of us shows in how long the batch took. It has nothing to do with what the tracee does, so leaving such
 * batches out favours nobody.
 */
static void judge_pace(au_engine *e, uint64_t spent_ns, int first, au_batch *b)
{
    uint64_t *usual = &e->piece_ps[!first];
    uint64_t piece = spent_ns * 1000 / (e->scratch.piece_count + 2);
    /* after a sleep caches are cold, and times are all over the place */
    int cold = first && e->slept;
    e->slept = 0;
    b->even = !*usual || piece < *usual + *usual / 4;
    b->steady = b->even || (cold && piece < 3 * *usual);
    /* follows the time that three batches in ten keep: what is usual, without those that were interrupted */
    if (!*usual) {
        *usual = piece ? piece : 1;
    } else if (piece < *usual) {
        *usual -= *usual * 7 / 512;
    } else {
        *usual += *usual * 3 / 512 + 1;
    }
}

static void judge_state(au_engine *e, au_thread_rec *rec, au_batch *b)
{
    const au_layout *l = &e->remote.layout;
    const au_piece *pieces = e->scratch.pieces;
    b->ts = pieces[b->tstate].outcome == AU_OK ? pieces[b->tstate].buf : NULL;
    b->cframe_fits = 1;
    if (!b->ts) {
        return;
    }
    if (l->tstate_datastack_chunk != AU_ABSENT) {
        b->chunk = au__u64(b->ts + l->tstate_datastack_chunk);
        b->chunk_top = au__u64(b->ts + l->tstate_datastack_top);
    }
    if (l->tstate_cframe == AU_ABSENT) {
        b->top = au__u64(b->ts + l->tstate_frame);
        return;
    }
    b->cframe_fits = rec->cframe && au__u64(b->ts + l->tstate_cframe) == rec->cframe &&
                     pieces[b->cframe].outcome == AU_OK && pieces[b->tstate_again].outcome == AU_OK &&
                     au__u64(pieces[b->tstate_again].buf) == rec->cframe;
    if (b->cframe_fits) {
        b->top = au__u64((const uint8_t *)pieces[b->cframe].buf + l->cframe_current_frame);
    }
}

static void judge_checks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b)
{
    uint64_t epoch = 0;
    if (b->epoch != UINT32_MAX && e->scratch.pieces[b->epoch].outcome == AU_OK) {
        epoch = au__u64(e->scratch.pieces[b->epoch].buf) + 1; /* so that a generation of 0 is a value too */
        interp->epoch = epoch;
    }
    int unproven = b->proven && must_split(e, &rec->proof);
    for (size_t i = 0; i < rec->check_count; i++) {
        au_check *check = &rec->checks[i];
        au_code *code = check->code;
        check->failed = 0;
        if (unproven) {
            continue;
        }
        if (code->born_batch >= e->batch) {
            continue; /* entered after the looks: it proves nothing about them */
        }
        if (!b->proven) {
            if (epoch && code->epoch == epoch) {
                code->valid_batch = e->batch;
            }
        } else if (holds(e, &rec->proof, check)) {
            code->valid_batch = e->batch;
            code->epoch = epoch;
        } else {
            check->failed = 1;
        }
    }
}

int au__batch_read(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int with_checks, au_batch *b)
{
    memset(b, 0, sizeof *b);
    e->scratch.piece_count = 0;
    e->scratch.arena.len = 0;
    e->batch++;
    b->epoch_before = interp->epoch;
    interp->version_seen = interp->version_new;
    b->epoch = UINT32_MAX;
    int heads = e->heads_due;
    if (add_looks(e, rec, b) || (with_checks && add_checks(e, interp, rec, b)) || (heads && add_heads(e))) {
        return -1;
    }
    uint64_t before = e->remote.ops->now(e->sys);
    if (serve(e)) {
        return -1;
    }
    judge_pace(e, e->remote.ops->now(e->sys) - before, with_checks, b);
    judge_state(e, rec, b);
    if (heads) {
        au__heads_judge(e, e->scratch.pieces + e->heads_piece);
    }
    if (with_checks) {
        judge_checks(e, interp, rec, b);
    }
    return 0;
}

int au__batch_prove(au_engine *e, au_interp_rec *interp, au_thread_rec *rec)
{
    au_batch b;
    memset(&b, 0, sizeof b);
    e->scratch.piece_count = 0;
    e->scratch.arena.len = 0;
    if (add_checks(e, interp, rec, &b) || serve(e)) {
        return -1;
    }
    judge_checks(e, interp, rec, &b);
    return 0;
}
