/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Stacks that stand.
 *
 * Most samples find the frames of the sample before, at most with another instruction in the innermost one. To see that
 * takes a comparison of four words a frame in each copy, where a walk, a judgement and new proofs would come to the
 * same: cold code and cold data are what a sample costs after a sleep.
 */
#include <stdlib.h>

#include "engine/stack.h"

void au__standing_drop(au_thread_rec *rec)
{
    rec->standing.count = 0;
}

static au_standing_frame keep(const au_layout *l, const uint8_t *f, uint32_t offset)
{
    return (au_standing_frame){.executable = au__u64(f + l->frame_executable),
                               .previous = au__u64(f + l->frame_previous),
                               .ip = au__u64(f + l->frame_ip),
                               .offset = offset,
                               .tlbc = l->frame_tlbc_index == AU_ABSENT ? 0 : au__i32(f + l->frame_tlbc_index)};
}

void au__standing_note(au_engine *e, au_thread_rec *rec, int look)
{
    const au_layout *l = &e->remote.layout;
    const au_scratch *s = &e->scratch;
    const au_raw_frame *raw = s->raw[look];
    const au_chunk *c = rec->chunks;
    au_standing *standing = &rec->standing;
    size_t count = s->raw_count[look];
    standing->count = 0;
    if (l->minor == 10 || !s->looks_there || !rec->chunk_count || count != rec->stack.count || !count ||
        au__grow(&standing->frames, &standing->cap, count, sizeof *standing->frames, &e->stats)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *f = au__covers(c, raw[i].addr) ? au__in_chunk(e, c, raw[i].addr, look) : NULL;
        if (!f || raw[i].outside >= 0 || raw[i].shim >= 0 || raw[i].owner != 0 || raw[i].entered || raw[i].inferred ||
            rec->stack.frames[count - 1 - i].code->addr != raw[i].code) {
            return;
        }
        standing->frames[i] = keep(l, f, (uint32_t)(raw[i].addr - c->addr));
        if (i + 1 < count && standing->frames[i].previous != raw[i + 1].addr) {
            return;
        }
    }
    standing->chunk = c->addr;
    standing->count = count;
}

static int stands(const au_layout *l, const au_standing_frame *was, const uint8_t *f, int innermost)
{
    return au__u64(f + l->frame_executable) == was->executable && au__u64(f + l->frame_previous) == was->previous &&
           f[l->frame_owner] == 0 && (innermost || au__u64(f + l->frame_ip) == was->ip) &&
           (innermost || l->frame_tlbc_index == AU_ABSENT || au__i32(f + l->frame_tlbc_index) == was->tlbc);
}

static int all_stand(const au_layout *l, const au_standing *standing, const au_piece *p)
{
    if (p->outcome != AU_OK) {
        return 0;
    }
    for (size_t i = 0; i < standing->count; i++) {
        uint32_t offset = standing->frames[i].offset;
        if ((uint64_t)offset + l->frame_localsplus > p->len ||
            !stands(l, &standing->frames[i], (const uint8_t *)p->buf + offset, i == 0)) {
            return 0;
        }
    }
    return 1;
}

/* The innermost frame goes on: where is it now? 0: not in this code. */
static int go_on(au_engine *e, au_thread_rec *rec, const uint8_t *f, int *same)
{
    const au_layout *l = &e->remote.layout;
    au_standing_frame *was = &rec->standing.frames[0];
    au_stack *stack = &rec->stack;
    au_frame *frame = &stack->frames[stack->count - 1];
    au_standing_frame now = keep(l, f, was->offset);
    int64_t unit;
    *same = 1;
    if (now.ip == was->ip && now.tlbc == was->tlbc) {
        rec->still++;
        return 1;
    }
    au_raw_frame raw = {.addr = rec->standing.chunk + was->offset,
                        .code = frame->code->addr,
                        .ip = now.ip,
                        .tlbc = now.tlbc,
                        .outside = -1,
                        .shim = -1};
    au_location *location = au__frame_unit(e, frame->code, &raw, 1, &unit)
                                ? au__code_location(&e->codes, &e->remote, frame->code, unit)
                                : NULL;
    if (!location) {
        return 0;
    }
    *was = now;
    *same = location == frame->location;
    frame->ip = now.ip;
    frame->location = location;
    if (stack->shown_count == stack->count) {
        stack->shown[stack->count - 1] = location;
    }
    rec->still = 0;
    return 1;
}

int au__standing_shows(au_engine *e, au_thread_rec *rec, int even, int *same)
{
    const au_layout *l = &e->remote.layout;
    const au_standing *standing = &rec->standing;
    const au_chunk *c = rec->chunks;
    const au_piece *first = &e->scratch.pieces[c->piece[0]];
    const au_piece *second = &e->scratch.pieces[c->piece[1]];
    if (!all_stand(l, standing, first) || !all_stand(l, standing, second)) {
        return 0;
    }
    /* from 3.14 on the frame of a call that is over leaves no trace, so the moment is that of the second copy */
    if (even && l->minor >= 14 &&
        au__chain_has_callee(e, c, second, rec->stack.frames[standing->count - 1].code,
                             c->addr + standing->frames[0].offset)) {
        return 0;
    }
    return go_on(e, rec, (const uint8_t *)second->buf + standing->frames[0].offset, same);
}

int au__standing_holds(au_engine *e, au_thread_rec *rec, const au_batch *b, int *same)
{
    const au_standing *standing = &rec->standing;
    const au_chunk *c = rec->chunks;
    if (!b->all_hold || !rec->chunk_count || c->addr != standing->chunk || rec->stack.flags ||
        rec->stack.count != standing->count || b->top != c->addr + standing->frames[0].offset ||
        b->first_top != b->top) {
        return 0;
    }
    return au__standing_shows(e, rec, b->even, same);
}
