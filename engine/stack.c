/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * One thread's stack, read while the thread runs.
 *
 * A read is accepted when the thread state, every frame and every code object agree in two looks of one batch
 * (batch.c); else it is repeated within a bound. What stays torn is not thrown away, since that would favour code that
 * stands still: the frames, counted from the root, that both looks agree on are kept, and the stack says that it is
 * torn.
 */
#include <stdlib.h>

#include "engine/stack.h"

enum {
    TRIES = 48,         /* looks that moved */
    PART_TRIES = 8,     /* ... more, for as much of it as two looks agree on */
    ALONE_MAX = 4,      /* 3.10: innermost frames that one look alone may tell */
    PUSHED_TRIES = 8,   /* looks with a caller that has not begun */
    STEADY_TRIES = 8,   /* looks that were interrupted */
    NO_ROOT_TRIES = 16, /* without ever seeing a root */
    EXTENSIONS = 96,    /* batches that asked for too little */
    FORGET_AFTER = 32   /* samples after which an unused prediction is dropped */
};

/* ---- agreement ------------------------------------------------------------------------------------------------ */

static int same_frame(const au_raw_frame *a, const au_raw_frame *b)
{
    return a->addr == b->addr && a->code == b->code;
}

/*
 * Whole agreement: all but the instruction of the innermost Python frame, which may go on in it. What has returned
 * before the first copy was made says nothing of where its caller stood.
 */
static int looks_agree(const au_scratch *s)
{
    if (s->raw_count[0] != s->raw_count[1] || (s->raw_count[0] && s->raw[0][0].left)) {
        return 0;
    }
    int innermost = 1;
    for (size_t i = 0; i < s->raw_count[0]; i++) {
        const au_raw_frame *a = &s->raw[0][i];
        const au_raw_frame *b = &s->raw[1][i];
        if (!same_frame(a, b)) {
            return 0;
        }
        if (!innermost && (a->ip != b->ip || a->tlbc != b->tlbc || a->executes != b->executes)) {
            return 0;
        }
        innermost = 0;
    }
    return 1;
}

/* How many frames, counted from the root, both looks have in common. */
static size_t common_part(const au_scratch *s)
{
    size_t n = 0;
    while (n < s->raw_count[0] && n < s->raw_count[1]) {
        const au_raw_frame *a = &s->raw[0][s->raw_count[0] - 1 - n];
        const au_raw_frame *b = &s->raw[1][s->raw_count[1] - 1 - n];
        if (!same_frame(a, b) || a->ip != b->ip || a->executes != b->executes || a->left) {
            break;
        }
        n++;
    }
    return n;
}

/* ---- from raw frames to locations ------------------------------------------------------------------------------ */

enum { UNIT_UNKNOWN = -1, NEW_CODE = 64 };

/* Free-threaded 3.14+: a thread may run its own copy of the bytecode (co_tlbc: {size, entries[size]}). */
static au_addr bytecode_start(au_engine *e, au_code *code, const au_raw_frame *raw)
{
    const au_layout *l = &e->remote.layout;
    if (l->code_tlbc == AU_ABSENT || raw->tlbc <= 0) {
        return code->start;
    }
    uint64_t bytes = (uint64_t)code->units * 2;
    if (code->tlbc_index == raw->tlbc && raw->ip - code->tlbc_start < bytes) {
        return code->tlbc_start;
    }
    au_addr array;
    uint64_t size;
    au_addr start;
    if (au__read_u64(&e->remote, code->addr + l->code_tlbc, &array) != AU_OK || !au__plausible(array) ||
        au__read_u64(&e->remote, array, &size) != AU_OK || (uint64_t)raw->tlbc >= size ||
        au__read_u64(&e->remote, array + 8 + 8 * (uint64_t)raw->tlbc, &start) != AU_OK || !au__plausible(start)) {
        return code->start;
    }
    code->tlbc_index = raw->tlbc;
    code->tlbc_start = start;
    return start;
}

int au__frame_unit(au_engine *e, au_code *code, const au_raw_frame *raw, int innermost, int64_t *unit)
{
    if (e->remote.layout.minor == 10) {
        *unit = (int64_t)raw->ip;
    } else {
        au_addr start = bytecode_start(e, code, raw);
        if (raw->ip - start >= (uint64_t)code->units * 2 && raw->ip - code->start < (uint64_t)code->units * 2) {
            start = code->start; /* not switched to the copy yet */
        }
        *unit = ((int64_t)raw->ip - (int64_t)start) / 2;
    }
    if (*unit >= 0 && *unit < (int64_t)code->units) {
        return 1;
    }
    /* one before the first: pushed and not begun (up to 3.12 the pointer is that of the instruction before) */
    int begun = *unit != -1;
    *unit = UNIT_UNKNOWN;
    return innermost || !begun;
}

typedef enum made {
    MADE_OK,
    MADE_PROVE, /* known, and to be proven for the looks at hand */
    MADE_AGAIN, /* entered just now: needs new looks */
    MADE_DEAD,  /* no code object any more */
    MADE_MOVED,
    MADE_MEMORY
} made;

/*
 * A code object that was entered after the looks is the one that the looks have seen if it was made before them: from
 * 3.12 on an interpreter numbers its code objects as it makes them (Objects/codeobject.c, init_code).
 */
static made as_old_as_the_looks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, au_code *code, au_code **out)
{
    if (au__check_add(e, rec, code)) {
        return MADE_MEMORY;
    }
    if (code->version == 0 || code->version > interp->version_seen) {
        e->new_code = NEW_CODE;
        return MADE_AGAIN;
    }
    code->born_batch = e->batch - 1;
    code->valid_batch = e->batch;
    *out = code;
    return MADE_OK;
}

/*
 * It was proven after the looks, and a frame in them refers to it: alive, then, and still so if none was freed from
 * before the looks to the reading of the generation.
 */
static void lives_on(const au_engine *e, au_code *code)
{
    code->epoch = e->scratch.calm && code->counted ? e->scratch.epoch : code->epoch;
}

/* Finds the code object of a raw frame, proven for this batch. `guess` is what the last stack had at this place. */
static made proven_code(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_raw_frame *raw,
                        au_code *guess, au_code **out)
{
    au_code *code = guess && guess->addr == raw->code && !guess->orphan ? guess : au__codes_get(&e->codes, raw->code);
    if (code && code->maker != interp->serial && !code->by_content) {
        code = NULL; /* interpreters number their code objects each for itself, and may have the same memory in turn */
    }
    if (code && code->valid_batch == e->batch) {
        lives_on(e, code);
        *out = code;
        return MADE_OK;
    }
    if (code && code->born_batch >= e->batch) {
        return as_old_as_the_looks(e, interp, rec, code, out);
    }
    if (code && e->scratch.epoch && code->epoch == e->scratch.epoch) {
        code->valid_batch = e->batch; /* none has been replaced since it was proven */
        *out = code;
        return MADE_OK;
    }
    for (size_t i = 0; code && i < rec->check_count; i++) {
        if (rec->checks[i].code == code && rec->checks[i].failed) {
            au__check_drop(e, rec, i); /* its memory holds another object by now */
            code = NULL;
        }
    }
    if (code) {
        return au__check_add(e, rec, code) ? MADE_MEMORY : MADE_PROVE;
    }
    au_outcome outcome;
    code = au__codes_resolve(&e->codes, &e->remote, raw->code, &outcome);
    if (!code) {
        return outcome == AU_OK ? MADE_MEMORY : MADE_DEAD;
    }
    code->born_batch = e->batch;
    code->maker = interp->serial;
    interp->version_new = code->version > interp->version_new ? code->version : interp->version_new;
    au__counter_find(e, interp, code);
    return as_old_as_the_looks(e, interp, rec, code, out);
}

static au_code *guess_for(const au_thread_rec *rec, size_t from_root)
{
    return from_root < rec->stack.count ? rec->stack.frames[from_root].code : NULL;
}

/*
 * Makes scratch.frames of the `count` outermost raw frames of a look. All codes are tried, so that one more batch
 * brings all that were missing.
 */
static made make_frames(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int look, size_t count, int whole)
{
    au_scratch *s = &e->scratch;
    const au_raw_frame *raw = count ? s->raw[look] + (s->raw_count[look] - count) : NULL;
    made result = MADE_OK;
    size_t shown = 0;
    s->frame_count = 0;
    if (au__grow(&s->frames, &s->frame_cap, count, sizeof *s->frames, &e->stats)) {
        return MADE_MEMORY;
    }
    for (size_t i = count; i-- > 0;) {
        au_code *code = NULL;
        made m = proven_code(e, interp, rec, &raw[i], guess_for(rec, shown), &code);
        s->newest = m == MADE_AGAIN ? count - i : s->newest;
        s->dead = m == MADE_DEAD ? count - i - 1 : s->dead;
        if (m == MADE_OK) {
            code->shown_batch = e->batch;
        } else if (m > MADE_AGAIN) {
            return m;
        } else if (m > result) {
            result = m;
        }
        if (result != MADE_OK) {
            shown++;
            continue;
        }
        if (code->shim) {
            continue;
        }
        int innermost = whole && i == 0;
        if (shown < rec->stack.count && rec->stack.frames[shown].code == code &&
            rec->stack.frames[shown].ip == raw[i].ip && (!code->tlbc_start || !raw[i].tlbc)) {
            s->frames[s->frame_count++] = rec->stack.frames[shown++];
            continue;
        }
        int64_t unit;
        if (!au__frame_unit(e, code, &raw[i], innermost, &unit)) {
            return MADE_MOVED;
        }
        if (e->remote.layout.minor > 10 && !innermost && raw[i].owner == 0 && unit < code->firsttraceable) {
            if (raw[i].alone || s->tries < PUSHED_TRIES) {
                return MADE_MOVED; /* the copy has a callee that is not its own */
            }
            continue; /* not begun, so it has called nobody: CPython does not show it either (_PyFrame_IsIncomplete) */
        }
        au_location *location = au__code_location(&e->codes, &e->remote, code, unit);
        if (!location) {
            return MADE_MEMORY;
        }
        s->frames[s->frame_count++] = (au_frame){code, raw[i].ip, location};
        shown++;
    }
    return result;
}

/* From 3.14 on: has no code object been freed since before the batch? Then those entered just now were there then. */
static int nothing_was_freed(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b)
{
    uint64_t generation;
    uint32_t at = e->remote.layout.interp_code_generation;
    if (at == AU_ABSENT || !b->epoch_before || au__read_u64(&e->remote, interp->addr + at, &generation) != AU_OK ||
        au__epoch(interp, generation + 1) != b->epoch_before) {
        return 0;
    }
    for (size_t i = 0; i < rec->check_count; i++) {
        au_code *code = rec->checks[i].code;
        if (code->born_batch >= e->batch) {
            code->born_batch = e->batch - 1;
            code->valid_batch = e->batch;
            code->epoch = b->epoch_before;
        }
    }
    return 1;
}

/* The same, proving what is not proven yet. */
static made make_proven(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b, int look,
                        size_t count, int whole)
{
    made m = make_frames(e, interp, rec, look, count, whole);
    for (int n = 0; m == MADE_PROVE && n < 2; n++) {
        if (au__batch_prove(e, interp, rec, b->epoch_before)) {
            return MADE_MEMORY;
        }
        m = make_frames(e, interp, rec, look, count, whole);
    }
    if (m == MADE_AGAIN && nothing_was_freed(e, interp, rec, b)) {
        m = make_frames(e, interp, rec, look, count, whole);
    }
    return m == MADE_PROVE ? MADE_MOVED : m;
}

/* ---- taking a stack over --------------------------------------------------------------------------------------- */

static int take_over(au_engine *e, au_thread_rec *rec, unsigned flags, int *same)
{
    au_scratch *s = &e->scratch;
    au_stack *old = &rec->stack;
    size_t both = old->count < s->frame_count ? old->count : s->frame_count;
    size_t equal = 0;
    int moved = old->count != s->frame_count || old->flags != flags;
    if (au__grow(&old->frames, &old->cap, s->frame_count, sizeof *old->frames, &e->stats)) {
        return -1;
    }
    int went_on = 0;
    while (equal < both && old->frames[equal].code == s->frames[equal].code) {
        moved |= old->frames[equal].location != s->frames[equal].location;
        went_on |= old->frames[equal].ip != s->frames[equal].ip;
        old->frames[equal] = s->frames[equal];
        equal++;
    }
    moved |= equal < both;
    for (size_t i = equal; i < s->frame_count; i++) {
        au__code_pin(s->frames[i].code);
    }
    for (size_t i = equal; i < old->count; i++) {
        au__code_unpin(&e->codes, old->frames[i].code);
    }
    if (s->frame_count > equal) {
        memcpy(old->frames + equal, s->frames + equal, (s->frame_count - equal) * sizeof *s->frames);
    }
    old->count = s->frame_count;
    old->flags = flags;
    *same = !moved;
    old->shown_count = moved ? 0 : old->shown_count;
    rec->still = moved || went_on ? 0 : rec->still + 1;
    return 0;
}

/* Frames that were not in a stack for a while are not asked for any more. */
static void forget_outside(au_thread_rec *rec)
{
    size_t kept = 0;
    for (size_t i = 0; i < rec->outside_count; i++) {
        if (rec->outside[i].idle++ <= FORGET_AFTER) {
            rec->outside[kept++] = rec->outside[i];
        }
    }
    if (kept < rec->outside_count) {
        rec->outside_count = kept;
        rec->frames.stale = 1;
        rec->frames.split = 0;
    }
}

/* What was not used for a while is not asked for any more. */
static void forget(au_engine *e, au_thread_rec *rec, int look)
{
    au__outside_order(e, rec, look);
    if (rec->cframes_len) {
        au__cframe_forget(e, rec);
    }
    forget_outside(rec);
    for (size_t i = rec->check_count; i-- > 0;) {
        if (rec->checks[i].code->shown_batch == e->batch) {
            rec->checks[i].idle = 0;
        } else if (rec->checks[i].idle++ > FORGET_AFTER) {
            au__check_drop(e, rec, i);
        }
    }
}

void au__stack_release(au_engine *e, au_thread_rec *rec)
{
    if (e->again.rec == rec) {
        e->again.rec = NULL;
    }
    for (size_t i = 0; i < rec->stack.count; i++) {
        au__code_unpin(&e->codes, rec->stack.frames[i].code);
    }
    while (rec->check_count) {
        au__check_drop(e, rec, rec->check_count - 1);
    }
    free(rec->stack.frames);
    free(rec->stack.shown);
    free(rec->chunks);
    free(rec->outside);
    free(rec->checks);
    free(rec->standing.frames);
    memset(&rec->standing, 0, sizeof rec->standing);
    au__spans_release(&rec->frames);
    au__spans_release(&rec->proof);
    memset(&rec->stack, 0, sizeof rec->stack);
    rec->chunks = NULL;
    rec->outside = NULL;
    rec->checks = NULL;
    rec->chunk_count = rec->chunk_cap = rec->outside_count = rec->outside_cap = rec->check_cap = 0;
}

/* ---- the read itself ------------------------------------------------------------------------------------------- */

/* Is it still the thread state that it was? */
static int still_ours(const au_engine *e, const au_thread_rec *rec, const au_batch *b)
{
    const uint8_t *ts = b->ts;
    const au_layout *l = &e->remote.layout;
    uint64_t native = l->tstate_native_thread_id == AU_ABSENT ? 0 : au__ulong(l, ts + l->tstate_native_thread_id);
    uint64_t unique = l->tstate_id == AU_ABSENT ? 0 : au__u64(ts + l->tstate_id);
    const au_piece *id = b->interp_id == UINT32_MAX ? NULL : &e->scratch.pieces[b->interp_id];
    return au__u64(ts + l->tstate_interp) == rec->interp && au__ulong(l, ts + l->tstate_thread_id) == rec->ident &&
           native == rec->native && unique == rec->unique &&
           (!id || (id->outcome == AU_OK && (int64_t)au__u64(id->buf) == rec->iid));
}

typedef enum step { STEP_ACCEPT, STEP_STANDS, STEP_TORN, STEP_EXTEND, STEP_MOVED, STEP_LOST, STEP_MEMORY } step;

/* What the tries of one read have brought so far. */
typedef struct best {
    int have;        /* scratch.frames holds an agreed part */
    int truncated;   /* ... of which neither look reaches a root */
    unsigned rooted; /* tries in which a look did reach one: then the others were moments, not a cut stack */
    int look;        /* the accepted one */
    int moving;      /* the innermost frame was another one in some try */
    int same;        /* a stack that stands: nothing of it has changed */
    au_addr top;
} best;

/* Does the batch have the cframe and the newest chunk where the thread state says they are? */
static step predictions(au_engine *e, au_thread_rec *rec, const au_batch *b, best *found)
{
    const au_layout *l = &e->remote.layout;
    if (!b->cframe_fits) {
        au_addr cframe = au__u64(b->ts + l->tstate_cframe);
        if (cframe && !au__plausible(cframe)) {
            return STEP_MOVED;
        }
        int known = rec->cframes_len && cframe - rec->cframes < rec->cframes_len;
        found->moving |= rec->cframes_len != 0;
        au__cframe_note(e, rec, cframe);
        return known ? STEP_MOVED : STEP_EXTEND;
    }
    if (l->tstate_datastack_chunk == AU_ABSENT || !b->chunk) {
        return STEP_ACCEPT;
    }
    const au_chunk *c = rec->chunk_count ? rec->chunks : NULL;
    int fits = c && c->addr == b->chunk && (b->chunk_top <= c->addr + c->len || b->chunk_top > c->addr + c->size);
    if (!fits) {
        return au__chunks_find(e, rec, b->chunk, b->chunk_top) ? STEP_MEMORY : STEP_EXTEND;
    }
    return STEP_ACCEPT;
}

/* Makes what can be made of an agreed part, for the case that no try brings a whole stack. */
static step keep_part(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b, size_t count,
                      int truncated, best *found)
{
    made m = make_proven(e, interp, rec, b, 0, count, truncated);
    found->have = m == MADE_OK;
    found->truncated = truncated;
    return m == MADE_MEMORY ? STEP_MEMORY : m == MADE_AGAIN ? STEP_EXTEND : STEP_MOVED;
}

/*
 * The moment of a sample is that of the first whole look. A code object in it that is not known yet is read and proven
 * for the next look; if by then its frame has gone, the sample is not moved to what runs now, since that would favour
 * code that lives long: the frames around it are kept, and the sample is torn.
 */
static step tear(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b, int look, size_t count,
                 best *found)
{
    made m = make_proven(e, interp, rec, b, look, count, 0);
    if (m == MADE_MEMORY || m == MADE_AGAIN) {
        return m == MADE_AGAIN ? STEP_EXTEND : STEP_MEMORY;
    }
    if (m != MADE_OK) {
        e->scratch.frame_count = 0;
    }
    found->have = 1;
    found->truncated = 0;
    return STEP_TORN;
}

/* How many of the frames that wait for their proof, counted from the root, the look still has. */
static size_t still_there(const au_scratch *s, int look, size_t count)
{
    size_t n = 0;
    while (n < s->pending_count && n < count &&
           same_frame(&s->pending[s->pending_count - 1 - n], &s->raw[look][s->raw_count[look] - 1 - n])) {
        n++;
    }
    return n;
}

static int wait_for_proof(au_engine *e, int look)
{
    au_scratch *s = &e->scratch;
    if (au__grow(&s->pending, &s->pending_cap, s->newest, sizeof *s->pending, &e->stats)) {
        return -1;
    }
    s->pending_count = s->newest;
    memcpy(s->pending, s->raw[look] + (s->raw_count[look] - s->newest), s->newest * sizeof *s->pending);
    return 0;
}

/* A whole stack in a look: its code objects. */
static step name_it(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b, int look, size_t count,
                    best *found)
{
    size_t stands = still_there(&e->scratch, look, count);
    if (stands < e->scratch.pending_count) {
        return tear(e, interp, rec, b, look, stands, found);
    }
    switch (make_proven(e, interp, rec, b, look, count, 1)) {
    case MADE_OK:
        found->look = look;
        return STEP_ACCEPT;
    case MADE_AGAIN:
        return wait_for_proof(e, look) ? STEP_MEMORY : STEP_EXTEND;
    case MADE_DEAD:
        return tear(e, interp, rec, b, look, e->scratch.dead, found);
    case MADE_MEMORY:
        return STEP_MEMORY;
    default:
        return STEP_MOVED;
    }
}

/* Has a doubt not been seen often enough for a fact? What is a fact tells who calls a generator. */
static int in_doubt(au_engine *e, au_thread_rec *rec, const au_batch *b, int look, int facts)
{
    enum { OFTEN = 2, VERY_OFTEN = 8 };
    au_doubt of;
    uint64_t doubt = au__chain_doubt(e, rec, b, look, &of);
    rec->doubted = doubt == rec->doubt ? rec->doubted + 1 : 1;
    rec->doubt = doubt;
    int in_doubt = doubt && rec->doubted < (of.strong ? VERY_OFTEN : OFTEN);
    if (doubt && !in_doubt && !of.strong) {
        au__chain_believe(e, look);
    }
    if (facts && !in_doubt && of.unheld) {
        au__chain_callers(e, rec, b, look, 1);
    }
    return in_doubt;
}

/*
 * The caller of a generator goes on as soon as that hands out a value, so its instruction may differ in two looks that
 * enclose the moment. While the generator executes, it stands at its call.
 */
static void settle_callers(au_scratch *s, const au_thread_rec *rec)
{
    for (size_t i = 1; s->raw_count[0] == s->raw_count[1] && i < s->raw_count[0]; i++) {
        au_raw_frame *a = &s->raw[0][i];
        au_raw_frame *b = &s->raw[1][i];
        if (s->raw[0][i - 1].owner == 0 || s->raw[0][i - 1].outside < 0 || a->ip == b->ip || !same_frame(a, b)) {
            continue;
        }
        const au_outside *o = &rec->outside[s->raw[0][i - 1].outside];
        if (o->votes >= AU_SURE && o->code == s->raw[0][i - 1].code && o->caller == a->addr &&
            o->caller_code == a->code) {
            a->ip = b->ip = o->caller_ip;
        }
    }
}

/*
 * Where generators are entered from C, one that the first word shows cannot be told as often as the frame around it,
 * and up to 3.12 the entries of both are words on the C stack. So there the moment is the middle of the batch for
 * either.
 */
static int first_is_told(const au_scratch *s, const au_batch *b)
{
    for (int look = 0; look < 2 && b->first_strays; look++) {
        for (size_t i = 0; i < s->raw_count[look]; i++) {
            if (s->raw[look][i].outside >= 0) {
                return 0;
            }
        }
    }
    return 1;
}

/*
 * The thread has called or returned while it was copied: what the first copy shows is the moment, if its calls are
 * known to be made. Those of code that was never met cannot be; but it ran, and its caller did not, so the sample is
 * torn there.
 */
static step as_first_seen(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b, size_t common,
                          best *found)
{
    const au_scratch *s = &e->scratch;
    /* the later one shows that moment only if nobody else was current in between, as far as is known */
    int both = b->top == b->first_top && s->raw_count[1] && s->raw[1][0].entered;
    for (int look = 0; look <= both; look++) {
        if (au__chain_was(e, rec, b, look, common)) {
            return name_it(e, interp, rec, b, look, s->raw_count[look], found);
        }
    }
    for (size_t i = 0; i + common < s->raw_count[0] && s->raw[0][0].addr == b->first_top; i++) {
        au_code *code;
        if (au__codes_get(&e->codes, s->raw[0][i].code)) {
            continue;
        }
        uint32_t known = interp->version_new;
        made m = proven_code(e, interp, rec, &s->raw[0][i], NULL, &code);
        if (m == MADE_MEMORY) {
            return STEP_MEMORY;
        }
        /* older than what was met before, it is met again, and with its caller (3.12+ tell); else its like may never be
         */
        int is_new = m == MADE_AGAIN || (m == MADE_OK && code->version > known);
        return is_new ? tear(e, interp, rec, b, 0, common, found) : STEP_MOVED;
    }
    return STEP_MOVED;
}

/* Both looks lead to a root. */
static step judge_looks(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, au_batch *b, int last_try, best *found)
{
    au_scratch *s = &e->scratch;
    settle_callers(s, rec);
    int inferred = s->inferred[0] || s->inferred[1];
    int agree = looks_agree(s);
    size_t common = agree ? s->raw_count[0] : common_part(s);
    int look = 1; /* of the innermost frame, the later: the earlier may be what a call before it has left */
    if (agree && !inferred && (!b->first_top || b->first_top == b->top)) {
        au__chain_learn(e, rec, look); /* not what has come again since the first word, and may have been read twice */
    }
    if (!agree && !inferred && b->first_top && b->first_top == b->top && !s->pending_count && first_is_told(s, b)) {
        step first = as_first_seen(e, interp, rec, b, common, found);
        if (first != STEP_MOVED) {
            return first;
        }
    }
    /* A frame that was pushed and popped between the looks is in neither copy from 3.14 on. So that callers are not
       favoured, the moment is always that of the second copy: has the innermost frame called by then? */
    int resolved =
        b->even && !inferred && (!agree || e->remote.layout.minor >= 14) && au__chain_resolve(e, rec, common);
    if (!agree && !resolved) {
        for (look = 1; look >= 0; look--) {
            if (b->even && s->raw_count[look] && s->raw[look][0].addr == b->top &&
                au__chain_alone(e, rec, b, look, common)) {
                return name_it(e, interp, rec, b, look, s->raw_count[look], found);
            }
        }
        return last_try ? keep_part(e, interp, rec, b, common, 0, found) : STEP_MOVED;
    }
    if (s->inferred[1] && !s->inferred[0]) {
        look = 0; /* it has the generator at work */
    }
    if (in_doubt(e, rec, b, look, agree && !inferred)) {
        return last_try ? keep_part(e, interp, rec, b, 0, 0, found) : STEP_MOVED;
    }
    return name_it(e, interp, rec, b, look, s->raw_count[look], found);
}

/*
 * Waits for less than a microsecond, for a time drawn at random: looks one after the other take equally long, and a
 * tracee whose loop takes as long would be seen at one place of it again and again.
 */
static void out_of_step(au_engine *e)
{
    for (uint64_t n = au__random(e) >> 56; n; n--) {
        au__random(e);
    }
}

/* A generator that is left and resumed while it is read leads anywhere; that is no cut stack. */
static int ends_in_generator(const au_scratch *s, int look)
{
    const au_raw_frame *last = s->raw_count[look] ? &s->raw[look][s->raw_count[look] - 1] : NULL;
    return last && last->owner != 0 && last->outside >= 0;
}

/*
 * The thread has called or returned between the reading of its current frame and the second one, amid the copies. The
 * moment is that of the first: its frame is in the first copy, called from where frames like it are called.
 */
static step as_it_was(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, const au_batch *b, best *found)
{
    if (au__chain_walk_first(e, rec, b) != AU_CHAIN_ROOT || au__chain_walk(e, rec, b, 1, 0) != AU_CHAIN_ROOT ||
        e->scratch.inferred[0] || e->scratch.inferred[1] || !first_is_told(&e->scratch, b)) {
        return STEP_MOVED;
    }
    return as_first_seen(e, interp, rec, b, common_part(&e->scratch), found);
}

/*
 * 3.10: may the second look tell a stack alone? A caller that does not execute is one only while it is traced, which
 * both looks must say: by the later one it may have ended with its callee.
 */
static int later_is_enough(const au_scratch *s)
{
    size_t moved = s->raw_count[1] - common_part(s);
    for (size_t i = 1; i < moved; i++) {
        if (!s->raw[1][i].executes) {
            return 0;
        }
    }
    return moved <= ALONE_MAX;
}

static step attempt(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, unsigned tries, au_batch *b, best *found)
{
    int last_try = tries + 1 >= TRIES || (tries + 1 == NO_ROOT_TRIES && !found->rooted && !found->moving);
    e->scratch.tries = tries;
    if (tries || !e->options.interval_us) {
        out_of_step(e);
    }
    if (au__batch_read(e, interp, rec, tries == 0, b)) {
        return STEP_MEMORY;
    }
    if (!b->ts || !still_ours(e, rec, b)) {
        return STEP_LOST;
    }
    step s = predictions(e, rec, b, found);
    if (s != STEP_ACCEPT) {
        return s;
    }
    if (!b->steady && tries < STEADY_TRIES) {
        return STEP_MOVED; /* also if it agrees: of interrupted looks only those at slow code do */
    }
    if (tries == 0 && !e->scratch.pending_count && rec->standing.count && au__standing_holds(e, rec, b, &found->same)) {
        return STEP_STANDS;
    }
    found->moving |= found->top && found->top != b->top;
    found->top = b->top;
    if (b->first_top && b->first_top != b->top && !e->scratch.pending_count) {
        s = as_it_was(e, interp, rec, b, found);
        if (s != STEP_MOVED) {
            return s;
        }
    }
    au_chain_end first = au__chain_walk(e, rec, b, 0, 0);
    if (first == AU_CHAIN_MISSING) {
        size_t outside = rec->outside_count;
        size_t len = rec->chunk_count ? rec->chunks[0].len : 0;
        au_chain_end chased = au__chain_walk(e, rec, b, 0, 1);
        if (chased == AU_CHAIN_MEMORY) {
            return STEP_MEMORY;
        }
        if (chased == AU_CHAIN_ROOT) {
            au__outside_order(e, rec, 0);
        }
        int more = rec->outside_count > outside || (rec->chunk_count && rec->chunks[0].len > len);
        /* 3.10: the moment is that of this look: a frame that is new to us must still be there in the next batch */
        if (e->remote.layout.minor == 10 && chased == AU_CHAIN_ROOT && rec->outside_count > outside &&
            !e->scratch.pending_count) {
            e->scratch.newest = e->scratch.raw_count[0];
            if (wait_for_proof(e, 0)) {
                return STEP_MEMORY;
            }
        }
        if (chased == AU_CHAIN_ROOT || more) {
            return STEP_EXTEND;
        }
        if (!last_try) {
            return STEP_MOVED;
        }
        /* its next link leads nowhere: the part that can be read is all there is */
        first = au__chain_walk(e, rec, b, 0, 0) == AU_CHAIN_ROOT ? AU_CHAIN_ROOT : AU_CHAIN_BROKEN;
    }
    au_chain_end second = au__chain_walk(e, rec, b, 1, 0);
    if (first == AU_CHAIN_MEMORY || second == AU_CHAIN_MEMORY) {
        return STEP_MEMORY;
    }
    if (second == AU_CHAIN_MISSING && last_try) {
        second = AU_CHAIN_BROKEN;
    }
    if (e->remote.layout.minor == 10 && second == AU_CHAIN_ROOT) {
        au__sites_settle(e, rec, first == AU_CHAIN_ROOT);
    }
    for (int look = 0; look < 2; look++) {
        if ((look ? second : first) == AU_CHAIN_ROOT) {
            au__chain_callers(e, rec, b, look, 0);
        }
    }
    found->moving |= first == AU_CHAIN_CUT || second == AU_CHAIN_CUT || ends_in_generator(&e->scratch, 0) ||
                     ends_in_generator(&e->scratch, 1);
    size_t count = e->scratch.raw_count[0];
    found->rooted += first == AU_CHAIN_ROOT || second == AU_CHAIN_ROOT;
    if (second == AU_CHAIN_ROOT && b->even && e->remote.layout.minor == 10 && later_is_enough(&e->scratch)) {
        /* The frames of a call stay in memory with their code and their caller until they are used again, so the later
           look, from the innermost frame outwards, is as good as a stack that stands. */
        au__chain_callers(e, rec, b, 1, 1);
        return name_it(e, interp, rec, b, 1, e->scratch.raw_count[1], found);
    }
    if (first == AU_CHAIN_ROOT && second == AU_CHAIN_ROOT) {
        return judge_looks(e, interp, rec, b, last_try, found);
    }
    if ((first == AU_CHAIN_ROOT || second == AU_CHAIN_ROOT) && b->even) {
        int look = second == AU_CHAIN_ROOT;
        if (au__chain_alone(e, rec, b, look, e->scratch.raw_count[look] > 0)) {
            return name_it(e, interp, rec, b, look, e->scratch.raw_count[look], found);
        }
    }
    if (last_try && first == AU_CHAIN_BROKEN && second == AU_CHAIN_BROKEN && count && looks_agree(&e->scratch)) {
        return keep_part(e, interp, rec, b, count, 1, found);
    }
    found->have = 0;
    return STEP_MOVED;
}

/* After a sleep the cache has lost the stack of the sample before, and this one will be much the same: while the system
 * reads the tracee, it comes back. */
static void fetch_ahead(const au_engine *e, const au_thread_rec *rec)
{
    enum { AHEAD = 32, LINE = 64 };
    const au_stack *stack = &rec->stack;
    size_t first = stack->count > AHEAD ? stack->count - AHEAD : 0;
    for (size_t i = stack->count; i-- > first && e->slept;) {
        const char *code = (const char *)stack->frames[i].code;
        __builtin_prefetch(code, 1);
        __builtin_prefetch(code + LINE, 1);
        __builtin_prefetch(stack->frames[i].location);
    }
}

au_walk au__stack_read(au_engine *e, au_interp_rec *interp, au_thread_rec *rec, int *same)
{
    best found = {0};
    au_batch b;
    unsigned tries = 0;
    unsigned extensions = 0;
    e->scratch.pending_count = 0;
    fetch_ahead(e, rec);
    while ((tries < TRIES || (!found.have && tries < TRIES + PART_TRIES)) && extensions < EXTENSIONS) {
        switch (attempt(e, interp, rec, tries, &b, &found)) {
        case STEP_ACCEPT:
            forget(e, rec, found.look);
            if (take_over(e, rec, 0, same)) {
                return AU_WALK_MEMORY;
            }
            au__standing_note(e, rec, found.look);
            return AU_WALK_OK;
        case STEP_STANDS:
            forget_outside(rec);
            *same = found.same;
            for (size_t i = 0; b.proven && e->scratch.calm && i < rec->stack.count; i++) {
                lives_on(e, rec->stack.frames[i].code);
            }
            if (!extensions) {
                au__again_arm(e, interp, rec, &b);
            }
            return AU_WALK_OK;
        case STEP_TORN:
            tries = TRIES;
            break;
        case STEP_EXTEND:
            found.have = 0; /* scratch.frames is no longer whole */
            extensions++;
            break;
        case STEP_MOVED:
            tries++;
            e->stats.retries++;
            if (tries == NO_ROOT_TRIES && !found.rooted && !found.moving) {
                tries = TRIES; /* it has no root: more looks bring nothing */
            }
            break;
        case STEP_LOST:
            return AU_WALK_LOST;
        case STEP_MEMORY:
            return AU_WALK_MEMORY;
        }
    }
    if (!found.have || (found.truncated && (found.rooted || found.moving))) {
        found.truncated = 0;
        e->scratch.frame_count = 0;
    }
    forget(e, rec, 0);
    au__standing_drop(rec);
    if (take_over(e, rec, found.truncated ? AU_SAMPLE_TRUNCATED : AU_SAMPLE_TORN, same)) {
        return AU_WALK_MEMORY;
    }
    return AU_WALK_PARTIAL;
}
