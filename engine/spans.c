/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Stretches of memory that are asked for together are joined into fewer pieces if they lie near each other: a piece
 * costs the port more than a KiB of copying does.
 */
#include <stdlib.h>

#include "engine/internal.h"

void au__spans_clear(au_spans *spans)
{
    spans->part_count = 0;
}

int au__spans_add(au_engine *e, au_spans *spans, au_addr addr, uint32_t len)
{
    if (au__grow(&spans->parts, &spans->part_cap, spans->part_count + 1, sizeof *spans->parts, &e->stats)) {
        return -1;
    }
    spans->parts[spans->part_count++] = (au_part){addr, len, 0, 0};
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const au_part *x = *(au_part *const *)a;
    const au_part *y = *(au_part *const *)b;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Each page of a range holds bytes of a part, so a range faults only where a part would. */
static int belongs(const au_engine *e, const au_spans *spans, const au_range *last, const au_part *part,
                   uint32_t gap_max)
{
    enum { RANGE_MAX = 64 << 10, PAGE_BITS = 12 };
    au_addr end = last->addr + last->len;
    uint64_t len = part->addr + part->len - last->addr;
    return !spans->split && len <= RANGE_MAX && len <= e->remote.window_cap &&
           (part->addr <= end ||
            (part->addr - end <= gap_max && (part->addr >> PAGE_BITS) - ((end - 1) >> PAGE_BITS) <= 1));
}

int au__spans_join(au_engine *e, au_spans *spans, uint32_t gap_max)
{
    spans->stale = 1;
    if (au__grow(&spans->order, &spans->order_cap, spans->part_count, sizeof *spans->order, &e->stats)) {
        return -1;
    }
    for (size_t i = 0; i < spans->part_count; i++) {
        spans->order[i] = &spans->parts[i];
    }
    if (spans->part_count) {
        qsort(spans->order, spans->part_count, sizeof *spans->order, by_address);
    }
    spans->range_count = 0;
    for (size_t i = 0; i < spans->part_count; i++) {
        au_part *part = spans->order[i];
        au_range *last = spans->range_count ? &spans->ranges[spans->range_count - 1] : NULL;
        if (!last || !belongs(e, spans, last, part, gap_max)) {
            if (au__grow(&spans->ranges, &spans->range_cap, spans->range_count + 1, sizeof *last, &e->stats)) {
                return -1;
            }
            last = &spans->ranges[spans->range_count++];
            *last = (au_range){part->addr, 0, 0, {UINT32_MAX, UINT32_MAX}};
        }
        part->range = (uint32_t)(spans->range_count - 1);
        part->offset = (uint32_t)(part->addr - last->addr);
        if (part->offset + part->len > last->len) {
            last->len = part->offset + part->len;
        }
    }
    spans->stale = 0;
    return 0;
}

int au__spans_must_split(const au_engine *e, au_spans *spans, int copy)
{
    for (size_t i = 0; !spans->split && spans->range_count < spans->part_count && i < spans->range_count; i++) {
        uint32_t piece = spans->ranges[i].piece[copy];
        if (piece != UINT32_MAX && e->scratch.pieces[piece].outcome != AU_OK) {
            spans->split = spans->stale = 1;
            return 1;
        }
    }
    return 0;
}

const uint8_t *au__spans_copy(const au_engine *e, const au_spans *spans, uint32_t part, int copy)
{
    if (part >= spans->part_count) {
        return NULL;
    }
    const au_part *p = &spans->parts[part];
    const au_piece *piece = &e->scratch.pieces[spans->ranges[p->range].piece[copy]];
    return piece->outcome == AU_OK ? (const uint8_t *)piece->buf + p->offset : NULL;
}

void au__spans_release(au_spans *spans)
{
    free(spans->parts);
    free(spans->order);
    free(spans->ranges);
    memset(spans, 0, sizeof *spans);
}
