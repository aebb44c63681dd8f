/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The last batch, once more.
 *
 * A pass over one thread whose stack stands asks for the same memory as the pass before and finds the same words in it.
 * To see that, nothing has to be planned, walked or proven: after a sleep all of it would run from cold memory, and
 * that is most of what such a pass costs. What is compared is what the judgement of the batch would look at; when
 * anything of it differs, the batch is judged as any other, so what is sampled does not depend on this.
 */
#include "engine/stack.h"

static uint64_t word(const uint8_t *ts, uint32_t at, int bytes)
{
    return bytes == 4 ? au__u32(ts + at) : au__u64(ts + at);
}

static void keep(au_again *again, const uint8_t *ts, uint32_t at, int bytes)
{
    if (at != AU_ABSENT) {
        again->word_at[again->word_count] = (uint16_t)at;
        again->word_bytes[again->word_count] = (uint8_t)bytes;
        again->words[again->word_count++] = word(ts, at, bytes);
    }
}

static void keep_word(au_again *again, const uint8_t *ts, uint32_t at)
{
    keep(again, ts, at, 8);
}

void au__again_arm(au_engine *e, const au_interp_rec *interp, au_thread_rec *rec, const au_batch *b)
{
    const au_layout *l = &e->remote.layout;
    au_again *again = &e->again;
    uint64_t epoch = au__batch_epoch(e, interp, b->epoch);
    /* what is counted proves all, or nothing is counted in this version and each is proven by itself */
    int by_epoch = !b->proven && epoch && epoch == interp->epoch && epoch == rec->checks_epoch;
    int each = b->proven && b->epoch == UINT32_MAX;
    again->rec = NULL;
    uint32_t next = l->tstate_next; /* `prev` stands before it, see au__heads_by_links */
    /* flat out nothing gets cold; what lies outside the chunks is asked for in an order that changes */
    if (!e->options.interval_us || e->options.mode != AU_MODE_WALL || e->thread_count != 1 || e->interp_count != 1 ||
        interp->id != 0 || rec->outside_count || e->heads_outcome != AU_OK || au__u64(b->ts + next) ||
        au__u64(b->ts + next - 8) || !(by_epoch || each)) {
        return;
    }
    e->scratch.piece_count = b->piece_count; /* without what else rode with it */
    *again = (au_again){.rec = rec,
                        .proven = (uint8_t)b->proven,
                        .tstate = b->tstate,
                        .cframe = b->cframe,
                        .epoch = b->epoch,
                        .first_cframe = b->first_cframe,
                        .first_frame = b->first_frame,
                        .frame_at = UINT32_MAX,
                        .epoch_was = epoch};
    keep_word(again, b->ts, l->tstate_interp);
    keep(again, b->ts, l->tstate_thread_id, l->long_bytes);
    keep(again, b->ts, l->tstate_native_thread_id, l->long_bytes);
    keep_word(again, b->ts, next);
    keep_word(again, b->ts, next - 8);
    keep_word(again, b->ts, l->tstate_datastack_chunk);
    keep_word(again, b->ts, l->tstate_datastack_top);
    keep_word(again, b->ts, l->tstate_cframe == AU_ABSENT ? l->tstate_frame : l->tstate_cframe);
    if (e->lone_active) {
        keep_word(again, b->ts, au__active_at(l));
    }
    if (l->tstate_cframe != AU_ABSENT) {
        again->frame_at = (uint32_t)(au__u64(b->ts + l->tstate_cframe) - rec->cframes) + l->cframe_current_frame;
    }
}

/* Is the thread where it was, by its thread state? */
static int same_state(const au_engine *e, const au_again *again)
{
    const au_piece *pieces = e->scratch.pieces;
    const uint8_t *ts = pieces[again->tstate].buf;
    if (pieces[again->tstate].outcome != AU_OK || !again->rec->standing.count) {
        return 0;
    }
    for (unsigned i = 0; i < again->word_count; i++) {
        if (word(ts, again->word_at[i], again->word_bytes[i]) != again->words[i]) {
            return 0;
        }
    }
    const au_standing *standing = &again->rec->standing;
    au_addr top = standing->chunk + standing->frames[0].offset;
    if (again->frame_at == UINT32_MAX) {
        return au__batch_first_top(e, UINT32_MAX, again->first_frame, 0, 0) == top;
    }
    uint32_t current = e->remote.layout.cframe_current_frame;
    au_addr address = au__u64(ts + e->remote.layout.tstate_cframe);
    const au_piece *cframe = &pieces[again->cframe];
    return cframe->outcome == AU_OK && au__u64((const uint8_t *)cframe->buf + again->frame_at) == top &&
           au__batch_first_top(e, again->first_cframe, again->first_frame, address, again->frame_at - current) == top;
}

/* Are its code objects what they were? */
static int same_code(au_engine *e, au_again *again)
{
    if (!again->proven) {
        return au__batch_epoch(e, e->interps, again->epoch) == again->epoch_was;
    }
    au_batch b = {.epoch = again->epoch, .proven = 1};
    au__batch_judge_checks(e, e->interps, again->rec, &b);
    return b.all_hold;
}

int au__again_stands(au_engine *e, int *same)
{
    au_again *again = &e->again;
    au__batch_serve(e, 1, &again->even, &again->steady);
    again->served = 1;
    if (!again->steady || !same_state(e, again) || !same_code(e, again) ||
        !au__standing_shows(e, again->rec, again->even, same)) {
        return 0;
    }
    again->served = 0;
    return 1;
}

int au__again_take(au_engine *e, const au_thread_rec *rec, au_batch *b)
{
    au_again *again = &e->again;
    int served = again->served && again->rec == rec;
    if (served) {
        *b = (au_batch){.tstate = again->tstate,
                        .cframe = again->cframe,
                        .epoch = again->epoch,
                        .epoch_first = UINT32_MAX,
                        .first_cframe = again->first_cframe,
                        .first_frame = again->first_frame,
                        .interp_id = UINT32_MAX,
                        .piece_count = e->scratch.piece_count,
                        .proven = again->proven,
                        .even = again->even,
                        .steady = again->steady};
    }
    again->served = 0;
    again->rec = NULL; /* what it is compared with may be another stack from now on */
    return served;
}
