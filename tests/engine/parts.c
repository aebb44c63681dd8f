/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small parts of the engine on their own: calls that were seen (links.c), the places they are made from (sites.c),
 * memory that is asked for together (spans.c).
 */
#include <stdlib.h>

#include "engine/stack.h"
#include "tests/engine/suites.h"

static au_engine *engine;

static void begin(void)
{
    engine = calloc(1, sizeof *engine);
    ck_assert_ptr_nonnull(engine);
    engine->remote.window_cap = 1 << 20;
}

static void end(void)
{
    free(engine->scratch.pieces);
    free(engine);
}

START_TEST(calls_are_known)
{
    au_links *links = &engine->links;
    ck_assert_int_eq(au__links_find(links, 0x7000, 0x8000), AU_LINK_UNKNOWN);
    au__links_enter(links, 0x7000, 0x8000, 1);
    au__links_enter(links, 0x8000, 0x7000, 0);
    ck_assert_int_eq(au__links_find(links, 0x7000, 0x8000), AU_LINK_HELD);
    ck_assert_int_eq(au__links_find(links, 0x8000, 0x7000), AU_LINK_UNHELD);
    ck_assert_int_eq(au__links_find(links, 0x7000, 0x8010), AU_LINK_UNKNOWN);
}
END_TEST

/* A full table forgets the oldest, and hardly ever takes one call for another. */
START_TEST(table_of_calls)
{
    enum { MANY = 100000 };
    au_links *links = &engine->links;
    unsigned wrong = 0;
    unsigned kept = 0;
    for (au_addr i = 0; i < MANY; i++) {
        wrong += au__links_find(links, 0x7f0000000000 + i * 48, 0x7f0000000000 + i * 80) != AU_LINK_UNKNOWN;
        au__links_enter(links, 0x7f0000000000 + i * 48, 0x7f0000000000 + i * 80, 1);
        ck_assert_int_eq(au__links_find(links, 0x7f0000000000 + i * 48, 0x7f0000000000 + i * 80), AU_LINK_HELD);
    }
    for (au_addr i = MANY - AU_LINKS / 4; i < MANY; i++) {
        kept += au__links_find(links, 0x7f0000000000 + i * 48, 0x7f0000000000 + i * 80) == AU_LINK_HELD;
    }
    ck_assert_uint_le(wrong, 3);
    ck_assert_uint_ge(kept, AU_LINKS / 4 * 9 / 10);
}
END_TEST

/* One frame calls another, and stands at `was` in the earlier look and at `is` in the later one; where it is put. */
static uint64_t put_to(au_addr caller, uint64_t was, uint64_t is, int executes)
{
    static const au_thread_rec rec;
    au_raw_frame looks[2][2];
    for (int look = 0; look < 2; look++) {
        looks[look][0] =
            (au_raw_frame){.addr = 0x1000, .code = 0x7f0000008000, .executes = (uint8_t)executes, .outside = -1};
        looks[look][1] = (au_raw_frame){.addr = 0x2000, .code = caller, .ip = look ? is : was, .outside = -1};
        engine->scratch.raw[look] = looks[look];
        engine->scratch.raw_count[look] = 2;
    }
    au__sites_settle(engine, &rec, 1);
    ck_assert(executes || looks[0][1].ip == looks[1][1].ip); /* then it stands still */
    engine->scratch.raw[0] = engine->scratch.raw[1] = NULL;
    return looks[1][1].ip;
}

START_TEST(callers_stand_at_their_calls)
{
    enum {
        CALLER = 0x7f0000007000,
        OTHER = 0x7f0000007800,
        FIRST = 20,
        SECOND = 90,
        RARE = 60,
        LATER = 200,
        LOOKS = 200
    };
    ck_assert_uint_eq(put_to(CALLER, 33, 35, 0), 35); /* nothing is known yet */
    for (int i = 0; i < (int)LOOKS; i++) {
        ck_assert_uint_eq(put_to(CALLER, FIRST, FIRST, 1), FIRST);
        ck_assert_uint_eq(put_to(CALLER, SECOND, SECOND, 1), SECOND);
    }
    ck_assert_uint_eq(put_to(CALLER, RARE, RARE, 1), RARE); /* seen at work, so it may be */
    ck_assert_uint_eq(put_to(CALLER, FIRST, 24, 0), FIRST);
    ck_assert_uint_eq(put_to(CALLER, 91, FIRST, 0), FIRST);
    ck_assert_uint_eq(put_to(CALLER, FIRST, 91, 0), FIRST); /* it was at its call, so it is that one */
    ck_assert_uint_eq(put_to(CALLER, 23, 24, 0), FIRST);
    ck_assert_uint_eq(put_to(CALLER, 61, RARE, 0), FIRST);
    ck_assert_uint_eq(put_to(CALLER, 89, 100, 0), SECOND);
    ck_assert_uint_eq(put_to(CALLER, 5, 7, 0), FIRST); /* around a loop */
    ck_assert_uint_eq(put_to(CALLER, 1000, 1001, 0), 1001);
    ck_assert_uint_eq(put_to(CALLER, UINT64_MAX, UINT64_MAX, 1), UINT64_MAX); /* not begun */
    ck_assert_uint_eq(put_to(OTHER, 23, 24, 0), 24);
    for (int i = 0; i < 60; i++) { /* what comes into use later is learnt soon, for all that was seen before */
        ck_assert_uint_eq(put_to(CALLER, LATER, LATER, 1), LATER);
    }
    ck_assert_uint_eq(put_to(CALLER, 201, 202, 0), LATER);
    for (uint64_t at = 0; at < 100; at++) { /* from anywhere */
        ck_assert_uint_eq(put_to(OTHER, at, at, 1), at);
    }
    ck_assert_uint_eq(put_to(OTHER, 201, 202, 0), 202);
}
END_TEST

static size_t ranges_of(const au_addr *addrs, size_t count, uint32_t len, uint32_t gap, int split)
{
    au_spans spans = {.split = split};
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(au__spans_add(engine, &spans, addrs[i], len), 0);
    }
    ck_assert_int_eq(au__spans_join(engine, &spans, gap), 0);
    for (size_t i = 0; i < count; i++) { /* each part lies in its range */
        const au_part *part = &spans.parts[i];
        const au_range *range = &spans.ranges[part->range];
        ck_assert_uint_eq(range->addr + part->offset, addrs[i]);
        ck_assert_uint_le(part->offset + len, range->len);
    }
    size_t ranges = spans.range_count;
    au__spans_release(&spans);
    return ranges;
}

START_TEST(parts_are_joined)
{
    static const au_addr near[] = {0x7300, 0x7000, 0x7100, 0x7000};
    static const au_addr apart[] = {0x7000, 0x7100, 0x7700};
    static const au_addr pages[] = {0x7ff0, 0x8010, 0x9fff, 0xc000}; /* the last lies two pages on */
    ck_assert_uint_eq(ranges_of(near, 4, 64, 1024, 0), 1);
    ck_assert_uint_eq(ranges_of(near, 4, 64, 1024, 1), 4);
    ck_assert_uint_eq(ranges_of(apart, 3, 64, 1024, 0), 2);
    ck_assert_uint_eq(ranges_of(apart, 3, 64, UINT32_MAX, 0), 1);
    ck_assert_uint_eq(ranges_of(pages, 4, 1, UINT32_MAX, 0), 2);
    ck_assert_uint_eq(ranges_of(NULL, 0, 64, 1024, 0), 0);
    engine->remote.window_cap = 128;
    ck_assert_uint_eq(ranges_of(near, 4, 64, 1024, 0), 3);
}
END_TEST

/* A range that cannot be read is asked for part by part; a part that cannot is not split any further. */
START_TEST(ranges_are_split)
{
    uint8_t copy[256] = {0};
    au_spans spans = {0};
    engine->scratch.pieces = calloc(2, sizeof(au_piece));
    ck_assert_int_eq(au__spans_add(engine, &spans, 0x7000, 16), 0);
    ck_assert_int_eq(au__spans_add(engine, &spans, 0x7010, 16), 0);
    ck_assert_int_eq(au__spans_join(engine, &spans, 1024), 0);
    ck_assert_uint_eq(spans.range_count, 1);
    spans.ranges[0].piece[0] = 0;
    engine->scratch.pieces[0] = (au_piece){0x7000, copy, 32, AU_OK};
    ck_assert_int_eq(au__spans_must_split(engine, &spans, 0), 0);
    ck_assert_ptr_eq(au__spans_copy(engine, &spans, 1, 0), copy + 16);
    ck_assert_ptr_null(au__spans_copy(engine, &spans, 2, 0));
    ck_assert_ptr_null(au__spans_copy(engine, &spans, UINT32_MAX, 0));
    engine->scratch.pieces[0].outcome = AU_FAULT;
    ck_assert_ptr_null(au__spans_copy(engine, &spans, 0, 0));
    ck_assert_int_eq(au__spans_must_split(engine, &spans, 0), 1);
    ck_assert_int_ne(spans.stale, 0);
    ck_assert_int_eq(au__spans_join(engine, &spans, 1024), 0);
    ck_assert_uint_eq(spans.range_count, 2);
    spans.ranges[0].piece[0] = 0;
    spans.ranges[1].piece[0] = 1;
    ck_assert_int_eq(au__spans_must_split(engine, &spans, 0), 0);
    au__spans_release(&spans);
}
END_TEST

Suite *au_parts_suite(void)
{
    Suite *suite = suite_create("parts");
    TCase *tc = tcase_create("parts");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, calls_are_known);
    tcase_add_test(tc, table_of_calls);
    tcase_add_test(tc, callers_stand_at_their_calls);
    tcase_add_test(tc, parts_are_joined);
    tcase_add_test(tc, ranges_are_split);
    suite_add_tcase(suite, tc);
    return suite;
}
