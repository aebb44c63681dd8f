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
 * is the shortest. The moment is that of the thread state. A cframe (3.11, 3.12) that it points to is on the C stack
 * and read right after it: if the call has ended by then, its words are mostly still there, and that of a call that
 * goes on are there anyway. To ask for the pointer again would favour the calls that go on.
 *
 * Code objects come last: an entry of the cache was proven before the batch, and proven again after the frames were
 * read it is the same object all the time in between (code.c).
 */
#include "engine/stack.h"

static uint32_t tstate_bytes(const au_layout *l)
{
    uint32_t fields[] = {l->tstate_interp,        l->tstate_frame,  l->tstate_cframe,
                         l->tstate_thread_id,     l->tstate_state,  l->tstate_native_thread_id,
                         l->tstate_datastack_top, l->tstate_status, l->tstate_id,
                         l->tstate_base_frame};
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

static int add_string(au_engine *e, au_spans *proof, const au_str *s, uint32_t bytes)
{
    uint32_t from = s->length_at;
    if (inline_string(&e->remote, s)) {
        return au__spans_add(e, proof, s->addr + from, (uint32_t)(s->data - s->addr) - from + bytes);
    }
    return au__spans_add(e, proof, s->addr + from, 8) || au__spans_add(e, proof, s->data, bytes);
}

/* An interpreter that counts what it frees: see au__batch_judge_checks. */
static int counts_deaths(const au_engine *e)
{
    return e->remote.layout.interp_code_generation != AU_ABSENT;
}

/* Is the head of the object asked for, which says that it lives? A version is given once, but contents come again. */
static int asks_life(const au_engine *e, const au_code *code)
{
    return counts_deaths(e) || code->by_content;
}

static int add_check(au_engine *e, au_spans *proof, au_check *check)
{
    const au_code *code = check->code;
    check->part = (uint32_t)proof->part_count;
    if (asks_life(e, code) && au__spans_add(e, proof, code->addr, e->remote.layout.object_type)) {
        return -1;
    }
    if (au__spans_add(e, proof, code->addr + e->codes.head_from, e->codes.head_to - e->codes.head_from)) {
        return -1;
    }
    if (!code->by_content) {
        return 0;
    }
    uint32_t size_at = e->remote.layout.object_size;
    return add_string(e, proof, &code->scope_str, code->scope_bytes) ||
           au__spans_add(e, proof, code->table_addr + size_at,
                         e->remote.layout.bytes_data - size_at + code->table_bytes) ||
           add_string(e, proof, &code->file_str, code->file_bytes);
}

static int plan(au_engine *e, au_thread_rec *rec)
{
    au__spans_clear(&rec->proof);
    for (size_t i = 0; i < rec->check_count; i++) {
        if (add_check(e, &rec->proof, &rec->checks[i])) {
            return -1;
        }
    }
    return au__spans_join(e, &rec->proof, UINT32_MAX);
}

static int holds_string(au_engine *e, const au_spans *proof, uint32_t *part, const au_str *s, const uint8_t *raw,
                        uint32_t bytes)
{
    const uint8_t *head = au__spans_copy(e, proof, (*part)++, 0);
    const uint8_t *text;
    if (inline_string(&e->remote, s)) {
        text = head ? head + ((uint32_t)(s->data - s->addr) - s->length_at) : NULL;
    } else {
        text = au__spans_copy(e, proof, (*part)++, 0);
    }
    return head && text && au__u64(head) == s->length && au__same_bytes(text, raw, bytes);
}

/* Something refers to it. What is being freed looks whole (Objects/codeobject.c, code_dealloc). */
static int lives(const au_engine *e, const au_spans *proof, const au_check *check)
{
    const uint8_t *head = au__spans_copy(e, proof, check->part, 0);
    return head && au__object_lives(&e->remote.layout, head);
}

typedef enum { HOLDS, DEAD, ANOTHER } verdict;

/*
 * What is in the place of a code object: it, or one with the same contents; it, dead, which may be made again just as
 * it was, so that what is known of it is kept; or something else.
 */
static verdict judge_check(au_engine *e, const au_spans *proof, const au_check *check)
{
    const au_code *code = check->code;
    uint32_t part = check->part + (uint32_t)asks_life(e, code);
    const uint8_t *head = au__spans_copy(e, proof, part++, 0);
    if (!head || !au__same_bytes(head, code->head, e->codes.head_to - e->codes.head_from)) {
        return ANOTHER;
    }
    if (!code->by_content) {
        return HOLDS;
    }
    if (!lives(e, proof, check)) {
        return DEAD; /* its strings and its table may be other things by now */
    }
    if (!holds_string(e, proof, &part, &code->scope_str, code->scope_raw, code->scope_bytes)) {
        return ANOTHER;
    }
    const uint8_t *table = au__spans_copy(e, proof, part++, 0);
    uint32_t gap = e->remote.layout.bytes_data - e->remote.layout.object_size;
    if (!table || au__u64(table) != code->table_bytes || !au__same_bytes(table + gap, code->table, code->table_bytes)) {
        return ANOTHER;
    }
    return holds_string(e, proof, &part, &code->file_str, code->file_raw, code->file_bytes) ? HOLDS : ANOTHER;
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
    rec->checks_epoch = code->epoch == rec->checks_epoch ? rec->checks_epoch : 0;
    rec->proof.stale = 1;
    au__code_pin(code);
    return 0;
}

void au__check_drop(au_engine *e, au_thread_rec *rec, size_t index)
{
    au__code_unpin(&e->codes, rec->checks[index].code);
    rec->checks[index] = rec->checks[--rec->check_count];
    rec->proof.stale = 1;
    au__standing_drop(rec);
}

/*
 * The frames outside the chunks: where they lie, and their ranges in scratch.order, that with the innermost frame
 * first. -1: no memory.
 */
static int plan_frames(au_engine *e, au_thread_rec *rec, uint32_t *count)
{
    enum { GAP_MAX = 1024 }; /* what is between them has to be copied too, and the tracee's cache lines are far away */
    const au_layout *l = &e->remote.layout;
    au_spans *frames = &rec->frames;
    if (frames->stale) {
        uint32_t lead = au__frame_lead(l);
        uint32_t len = au__frame_copy(l);
        au__spans_clear(frames);
        for (size_t i = 0; i < rec->outside_count; i++) {
            rec->outside[i].part = (uint32_t)i;
            if (au__spans_add(e, frames, rec->outside[i].addr - lead, len)) {
                return -1;
            }
        }
        if (au__spans_join(e, frames, GAP_MAX)) {
            return -1;
        }
    }
    if (au__grow(&e->scratch.order, &e->scratch.order_cap, frames->range_count, sizeof(uint32_t), &e->stats)) {
        return -1;
    }
    for (size_t i = 0; i < rec->outside_count; i++) {
        au_range *range = &frames->ranges[frames->parts[rec->outside[i].part].range];
        if (range->turn != (uint32_t)e->batch) {
            range->turn = (uint32_t)e->batch;
            e->scratch.order[(*count)++] = frames->parts[rec->outside[i].part].range;
        }
    }
    return 0;
}

static int add_range(au_engine *e, au_range *range, int copy)
{
    return (range->piece[copy] = add(e, range->addr, range->len)) == UINT32_MAX;
}

/*
 * The current frame before anything is copied. A copy takes the cache lines of the frames away from the tracee's CPU,
 * so that a return or a call that comes just then takes longer, and a moment that lies there shows the caller too
 * often.
 */
static int add_first(au_engine *e, const au_thread_rec *rec, au_batch *b)
{
    const au_layout *l = &e->remote.layout;
    b->first_cframe = b->first_frame = UINT32_MAX;
    if (l->tstate_cframe == AU_ABSENT) {
        return (b->first_frame = add(e, rec->addr + l->tstate_frame, 8)) == UINT32_MAX;
    }
    if (!rec->cframes_len) {
        return 0;
    }
    b->first_cframe = add(e, rec->addr + l->tstate_cframe, 8);
    b->first_frame = add(e, rec->cframes, rec->cframes_len);
    return b->first_cframe == UINT32_MAX || b->first_frame == UINT32_MAX;
}

/* The pieces of the stack itself. */
static int add_looks(au_engine *e, const au_interp_rec *interp, au_thread_rec *rec, au_batch *b)
{
    const au_layout *l = &e->remote.layout;
    au_range *ranges;
    uint32_t range_count = 0;
    int failed = plan_frames(e, rec, &range_count);
    ranges = rec->frames.ranges;
    failed |= add_first(e, rec, b);
    for (size_t i = range_count; i-- > 0;) {
        failed |= add_range(e, &ranges[e->scratch.order[i]], 0);
    }
    for (size_t i = rec->chunk_count; i-- > 0;) {
        failed |= (rec->chunks[i].piece[0] = add(e, rec->chunks[i].addr, rec->chunks[i].len)) == UINT32_MAX;
    }
    failed |= (b->tstate = add(e, rec->addr, tstate_bytes(l))) == UINT32_MAX;
    if (rec->cframes_len) {
        failed |= (b->cframe = add(e, rec->cframes, rec->cframes_len)) == UINT32_MAX;
    }
    for (size_t i = 0; i < rec->chunk_count; i++) {
        failed |= (rec->chunks[i].piece[1] = add(e, rec->chunks[i].addr, rec->chunks[i].len)) == UINT32_MAX;
    }
    for (size_t i = 0; i < range_count; i++) {
        failed |= add_range(e, &ranges[e->scratch.order[i]], 1);
    }
    /* Where a sub-interpreter lay may lie the next one, with its threads and code; the main one stays till the end. */
    b->interp_id = UINT32_MAX;
    if (interp->id != 0) {
        failed |= (b->interp_id = add(e, interp->addr + l->interp_id, 8)) == UINT32_MAX;
    }
    return failed;
}

/* Where an interpreter has what changes when a code object may have been replaced by another; AU_ABSENT: nowhere. */
static uint32_t epoch_at(const au_layout *l)
{
    return l->interp_code_generation != AU_ABSENT ? l->interp_code_generation : l->interp_code_counter;
}

/*
 * Where code objects are new again and again, what counts them before the looks as well: the one of this version, or
 * none was freed since, tells at once of one that was met just now that the looks have seen it (stack.c).
 */
static int add_epoch(au_engine *e, const au_interp_rec *interp, uint32_t *piece)
{
    const au_layout *l = &e->remote.layout;
    uint32_t len = l->interp_code_generation != AU_ABSENT ? 8 : 4;
    *piece = UINT32_MAX;
    return epoch_at(l) != AU_ABSENT && !e->codes.by_content &&
           (*piece = add(e, interp->addr + epoch_at(l), len)) == UINT32_MAX;
}

/* What tells whether any code object was replaced, and with_checks those that the stack may refer to. */
static int add_checks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int with_checks, au_batch *b)
{
    int failed = add_epoch(e, interp, &b->epoch);
    int wanted = with_checks && rec->check_count &&
                 (b->epoch == UINT32_MAX || !interp->epoch || rec->checks_epoch != interp->epoch);
    if (wanted && (!rec->proof.stale || plan(e, rec) == 0)) {
        for (size_t i = 0; i < rec->proof.range_count; i++) {
            failed |= add_range(e, &rec->proof.ranges[i], 0);
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

/* Gives the pieces their buffers. */
static int give_room(au_engine *e)
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
    return 0;
}

/*
 * Was the copying itself interrupted? A copy of a chunk is a moment only if it was made in one go, and an interrupt or
 * a preemption of us shows in how long the batch took. It has nothing to do with what the tracee does, so leaving such
 * batches out favours nobody.
 */
static void judge_pace(au_engine *e, uint64_t spent_ns, int first, uint8_t *even, uint8_t *steady)
{
    uint64_t *usual = &e->piece_ps[!first];
    uint64_t piece = spent_ns * 1000 / (e->scratch.piece_count + 2);
    /* after a sleep caches are cold, and times are all over the place */
    int cold = first && e->slept;
    e->slept = 0;
    *even = !*usual || piece < *usual + *usual / 4;
    *steady = *even || (cold && piece < 3 * *usual);
    /* follows the time that three batches in ten keep: what is usual, without those that were interrupted */
    if (!*usual) {
        *usual = piece ? piece : 1;
    } else if (piece < *usual) {
        *usual -= *usual * 7 / 512;
    } else {
        *usual += *usual * 3 / 512 + 1;
    }
}

void au__batch_serve(au_engine *e, int first, uint8_t *even, uint8_t *steady)
{
    const au_proc_ops *ops = e->remote.ops;
    uint64_t before = ops->now(e->sys);
    ops->read_many(e->remote.proc, e->scratch.pieces, e->scratch.piece_count);
    judge_pace(e, ops->now(e->sys) - before, first, even, steady);
}

static void cframe_used(au_thread_rec *rec, au_addr cframe)
{
    rec->cframe_low = !rec->cframe_low || cframe < rec->cframe_low ? cframe : rec->cframe_low;
    rec->cframe_high = cframe > rec->cframe_high ? cframe : rec->cframe_high;
}

/* The word of a piece at `at`; 0 if it was not asked for or not readable. */
static uint64_t word_of(const au_engine *e, uint32_t piece, uint64_t at)
{
    const au_piece *p = piece == UINT32_MAX ? NULL : &e->scratch.pieces[piece];
    return p && p->outcome == AU_OK && at + 8 <= p->len ? au__u64((const uint8_t *)p->buf + at) : 0;
}

au_addr au__batch_first_top(const au_engine *e, uint32_t first_cframe, uint32_t first_frame, au_addr cframe,
                            uint64_t at)
{
    const au_layout *l = &e->remote.layout;
    if (l->tstate_cframe == AU_ABSENT) {
        return word_of(e, first_frame, 0);
    }
    /* of an entry from C that has ended meanwhile the words are mostly still there */
    uint64_t first = word_of(e, first_cframe, 0) - (cframe - at);
    return first < AU_CFRAMES_MAX ? word_of(e, first_frame, first + l->cframe_current_frame) : 0;
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
        b->first_top = au__batch_first_top(e, b->first_cframe, b->first_frame, 0, 0);
        if (l->minor == 10) { /* its frames keep code and caller, so that both copies show that moment */
            b->top = e->scratch.pieces[b->first_frame].outcome == AU_OK ? b->first_top : b->top;
            b->first_top = 0;
        }
        return;
    }
    au_addr cframe = au__u64(b->ts + l->tstate_cframe);
    uint64_t at = cframe - rec->cframes;
    b->cframe_fits = rec->cframes_len && at < rec->cframes_len &&
                     at + l->cframe_current_frame + 8 <= rec->cframes_len && pieces[b->cframe].outcome == AU_OK;
    if (b->cframe_fits) {
        b->top = au__u64((const uint8_t *)pieces[b->cframe].buf + at + l->cframe_current_frame);
        b->first_top = au__batch_first_top(e, b->first_cframe, b->first_frame, cframe, at);
        b->first_strays = word_of(e, b->first_cframe, 0) != cframe;
        cframe_used(rec, cframe);
    }
}

uint64_t au__batch_epoch(const au_engine *e, const au_interp_rec *interp, uint32_t number)
{
    const au_piece *piece = number == UINT32_MAX ? NULL : &e->scratch.pieces[number];
    if (!piece || piece->outcome != AU_OK) {
        return 0;
    }
    if (e->remote.layout.interp_code_generation != AU_ABSENT) {
        return au__epoch(interp, au__u64(piece->buf) + 1); /* so that a generation of 0 is a value too */
    }
    uint32_t next = au__u32(piece->buf); /* 0: the versions are used up, and do not change any more */
    return next ? au__epoch(interp, next + UINT64_C(1)) : 0;
}

/* What was known before the looks. */
static void judge_first_epoch(const au_engine *e, au_interp_rec *interp, au_batch *b)
{
    uint64_t epoch = au__batch_epoch(e, interp, b->epoch_first);
    b->epoch_before = epoch ? epoch : interp->epoch;
    if (epoch && e->remote.layout.interp_code_generation == AU_ABSENT) {
        uint32_t next = au__u32(e->scratch.pieces[b->epoch_first].buf);
        interp->version_seen = next - 1 > interp->version_seen ? next - 1 : interp->version_seen;
    }
}

static uint64_t judge_epoch(au_engine *e, au_interp_rec *interp, const au_batch *b)
{
    uint64_t epoch = au__batch_epoch(e, interp, b->epoch);
    if (epoch && epoch < interp->epoch) {
        /* what only ever goes up has begun anew: it is the interpreter of another runtime */
        interp->serial = ++e->interp_serial;
        interp->epoch = 0;
        au__runtime_is_new(e);
        epoch = au__batch_epoch(e, interp, b->epoch);
    }
    e->scratch.calm = epoch && epoch == b->epoch_before;
    interp->epoch = epoch ? epoch : interp->epoch;
    e->scratch.epoch = epoch;
    return epoch;
}

/*
 * What an interpreter counts are the code objects that it has made (3.13): while none is, one that was seen whole is
 * not replaced. Or it counts those that it frees (3.14+): then one may have been freed already and still look whole, so
 * that only what a frame refers to is known to live (stack.c, lives_on).
 */
void au__batch_judge_checks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, au_batch *b)
{
    uint64_t epoch = judge_epoch(e, interp, b);
    int unproven = b->proven && au__spans_must_split(e, &rec->proof, 0);
    int all = !unproven, all_of_epoch = epoch != 0;
    for (size_t i = 0; i < rec->check_count; i++) {
        au_check *check = &rec->checks[i];
        au_code *code = check->code;
        check->failed = 0;
        if (!b->proven || unproven) {
            continue;
        }
        if (code->born_batch >= e->batch) {
            all = 0;
            continue; /* entered after the looks: it proves nothing about them */
        }
        verdict v = judge_check(e, &rec->proof, check);
        if (v == HOLDS) {
            code->valid_batch = e->batch;
            code->counted = counts_deaths(e) && lives(e, &rec->proof, check);
            code->epoch = counts_deaths(e) ? code->epoch : epoch;
        } else {
            check->failed = v == ANOTHER;
        }
        all = all && code->valid_batch == e->batch;
        all_of_epoch = all_of_epoch && code->epoch == epoch;
    }
    b->all_hold = b->proven ? all : epoch && rec->checks_epoch == epoch;
    rec->checks_epoch = b->proven ? (all && all_of_epoch ? epoch : 0) : rec->checks_epoch;
}

/* The pieces of a batch that was not asked for yet. -1: no memory. */
static int build(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int with_checks, au_batch *b)
{
    memset(b, 0, sizeof *b);
    e->again.rec = NULL;
    e->scratch.piece_count = 0;
    e->scratch.arena.len = 0;
    b->epoch = b->epoch_first = UINT32_MAX;
    if (e->new_code && e->new_code-- && add_epoch(e, interp, &b->epoch_first)) {
        return -1;
    }
    if (add_looks(e, interp, rec, b) || add_checks(e, interp, rec, with_checks, b)) {
        return -1;
    }
    b->piece_count = e->scratch.piece_count;
    return (e->heads_due == AU_HEADS_READ && add_heads(e)) || give_room(e) ? -1 : 0;
}

int au__batch_read(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int with_checks, au_batch *b)
{
    e->scratch.epoch = 0;
    e->scratch.calm = 0;
    e->scratch.looks_there = 1;
    e->batch++;
    interp->version_seen = interp->version_new;
    if (!with_checks || !au__again_take(e, rec, b)) {
        if (build(e, interp, rec, with_checks, b)) {
            return -1;
        }
        au__batch_serve(e, with_checks, &b->even, &b->steady);
    }
    judge_first_epoch(e, interp, b);
    judge_state(e, rec, b);
    if (!au__spans_must_split(e, &rec->frames, 0)) {
        au__spans_must_split(e, &rec->frames, 1);
    }
    if (e->heads_due == AU_HEADS_READ) {
        au__heads_judge(e, e->scratch.pieces + e->heads_piece);
    } else if (e->heads_due == AU_HEADS_BY_LINKS && b->ts) {
        au__heads_by_links(e, b->ts);
    }
    if (e->thread_count == 1 && b->ts) {
        au__lone_judge(e, b->ts);
    }
    if (with_checks) {
        au__batch_judge_checks(e, interp, rec, b);
    } else {
        judge_epoch(e, interp, b);
    }
    return 0;
}

void au__cframe_note(const au_engine *e, au_thread_rec *rec, au_addr cframe)
{
    uint32_t size = e->remote.layout.cframe_current_frame + 8;
    au_addr low = cframe;
    au_addr high = cframe + size;
    if (rec->cframes_len) {
        low = rec->cframes < low ? rec->cframes : low;
        high = rec->cframes + rec->cframes_len > high ? rec->cframes + rec->cframes_len : high;
    }
    if (high - low > AU_CFRAMES_PART) {
        low = cframe;
        high = cframe + size;
    }
    rec->cframes = low;
    rec->cframes_len = cframe ? (uint32_t)(high - low) : 0;
    cframe_used(rec, cframe);
}

void au__cframe_forget(const au_engine *e, au_thread_rec *rec)
{
    enum { AGE_MAX = 64 };
    if (!rec->cframe_low || rec->cframe_age++ < AGE_MAX) {
        return;
    }
    /* That of a thread in which no Python runs is in its thread state, far away from those on the C stack. */
    uint64_t len = rec->cframe_high - rec->cframe_low + e->remote.layout.cframe_current_frame + 8;
    if (len <= AU_CFRAMES_MAX) {
        rec->cframes = rec->cframe_low;
        rec->cframes_len = (uint32_t)len;
    }
    rec->cframe_low = rec->cframe_high = 0;
    rec->cframe_age = 0;
}

int au__batch_prove(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, uint64_t epoch_before)
{
    au_batch b;
    memset(&b, 0, sizeof b);
    e->scratch.piece_count = 0;
    e->scratch.arena.len = 0;
    e->scratch.looks_there = 0;
    e->again.rec = NULL;
    b.epoch_before = epoch_before;
    if (add_checks(e, interp, rec, 1, &b) || give_room(e)) {
        return -1;
    }
    e->remote.ops->read_many(e->remote.proc, e->scratch.pieces, e->scratch.piece_count);
    au__batch_judge_checks(e, interp, rec, &b);
    return 0;
}
