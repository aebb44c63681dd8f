/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line-table decoder against what real interpreters said of their own code objects (make_linetable_vectors.py),
 * and against tables made up here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/linetable.h"
#include "tests/engine/suites.h"

enum { UNITS_MAX = 1 << 16 };

static au_position positions[UNITS_MAX];

/* Decodes a whole table; returns the number of code units it covers. */
static uint32_t decode(au_table_style style, const uint8_t *table, size_t len, int32_t first)
{
    au_linetable it;
    uint32_t start;
    uint32_t end;
    uint32_t units = 0;
    au_position p;
    au_linetable_init(&it, style, table, len, first);
    while (au_linetable_next(&it, &start, &end, &p)) {
        if (start != units || end < start || end > UNITS_MAX) { /* Check's own tell a pipe about each success */
            ck_abort_msg("a range from %u to %u after unit %u", start, end, units);
        }
        for (; units < end; units++) {
            positions[units] = p;
        }
    }
    return units;
}

/* The index gives what the walk gave (`positions`), for every unit and behind the last, whatever its spacing. */
static void compare_marked(au_table_style style, const uint8_t *table, size_t len, int32_t first, uint32_t units)
{
    static const size_t spacings[] = {1, 7, 128, 100000};
    size_t few = len > 20000 ? 1 : 0; /* the outer ones are slow in a long table: too many marks, or one */
    for (size_t i = few; i < sizeof spacings / sizeof spacings[0] - few; i++) {
        size_t room = au_linetable_mark_room(len, spacings[i]);
        au_linetable_mark *marks =
            malloc(room ? room * sizeof *marks : 1); /* exact, so that a sanitizer sees one more */
        ck_assert_ptr_nonnull(marks);
        size_t count = au_linetable_mark_all(style, table, len, first, spacings[i], marks);
        ck_assert_uint_le(count, room);
        ck_assert_uint_ge(count, len > 0);
        for (size_t k = 1; k < count; k++) {
            if (marks[k].at < marks[k - 1].at + spacings[i] || marks[k].unit < marks[k - 1].unit) {
                ck_abort_msg("mark %zu of spacing %zu is at %u, unit %u", k, spacings[i], marks[k].at, marks[k].unit);
            }
        }
        for (uint32_t u = 0; u < units; u++) {
            au_position p = au_linetable_find_marked(style, table, len, marks, count, u);
            if (memcmp(&p, &positions[u], sizeof p) != 0) {
                ck_abort_msg("unit %u of %u, spacing %zu: line %u, not %u", u, units, spacings[i], p.line,
                             positions[u].line);
            }
        }
        static const au_position none;
        const uint32_t behind[] = {units, units + 1, UINT32_MAX / 2, UINT32_MAX};
        for (size_t k = 0; k < sizeof behind / sizeof behind[0]; k++) {
            au_position p = au_linetable_find_marked(style, table, len, marks, count, behind[k]);
            ck_assert_mem_eq(&p, &none, sizeof p);
        }
        free(marks);
    }
}

static size_t unhex(const char *text, uint8_t *out)
{
    size_t n = 0;
    unsigned byte;
    while (sscanf(text + 2 * n, "%2x", &byte) == 1) {
        out[n++] = (uint8_t)byte;
    }
    return n;
}

static uint64_t fnv(uint32_t units)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t u = 0; u < units; u++) {
        const uint32_t words[4] = {positions[u].line, positions[u].line_end, positions[u].column,
                                   positions[u].column_end};
        for (int i = 0; i < 16; i++) {
            hash = (hash ^ (words[i / 4] >> (i % 4 * 8) & 0xff)) * UINT64_C(0x100000001b3);
        }
    }
    return hash;
}

/* Compares with spelt-out runs; 3.10's table may cover more than its code has. */
static void compare(const char *runs, uint32_t units, const char *what)
{
    uint32_t unit = 0;
    unsigned n;
    au_position p;
    int used;
    while (sscanf(runs, "%u*%u,%u,%u,%u%n", &n, &p.line, &p.line_end, &p.column, &p.column_end, &used) == 5) {
        for (; n; n--, unit++) {
            ck_assert_msg(unit < units, "%s: the table ends at unit %u", what, unit);
            const au_position *q = &positions[unit];
            ck_assert_msg(q->line == p.line && q->line_end == p.line_end && q->column == p.column &&
                              q->column_end == p.column_end,
                          "%s: unit %u is %u,%u,%u,%u", what, unit, q->line, q->line_end, q->column, q->column_end);
        }
        runs += used + (runs[used] == ';');
    }
    ck_assert_msg(*runs == '\0' || *runs == '\n', "%s", what);
    ck_assert_msg(unit == units, "%s: %u units, expected %u", what, units, unit);
}

START_TEST(vectors)
{
    char path[64];
    char line[16384];
    static char hex[8192];
    static char expected[8192];
    static uint8_t table[4096];
    int minor = _i;
    int count = 0;
    snprintf(path, sizeof path, "tests/engine/data/linetable-3.%d.txt", minor);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: not found (run from the tree's root)", path);
    while (fgets(line, sizeof line, file)) {
        int first;
        if (line[0] == '#') {
            continue;
        }
        expected[0] = '\0';
        ck_assert_int_ge(sscanf(line, "%d %8191s %8191s", &first, hex, expected), 2);
        size_t len = unhex(hex, table);
        uint32_t units = decode(minor == 10 ? AU_TABLE_310 : AU_TABLE_311, table, len, first);
        if (expected[0] == '#') {
            ck_assert_msg(fnv(units) == strtoull(expected + 1, NULL, 16), "3.%d: %.60s", minor, line);
        } else {
            compare(expected, units, line);
        }
        for (uint32_t u = 0; u < units; u++) { /* the look-up of one unit is the same walk */
            au_position p = au_linetable_find(minor == 10 ? AU_TABLE_310 : AU_TABLE_311, table, len, first, u);
            ck_assert_mem_eq(&p, &positions[u], sizeof p);
        }
        compare_marked(minor == 10 ? AU_TABLE_310 : AU_TABLE_311, table, len, first, units);
        count++;
    }
    fclose(file);
    ck_assert_int_ge(count, 150);
}
END_TEST

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    do {
        out[n++] = (uint8_t)((value & 63) | (value > 63 ? 64 : 0));
        value >>= 6;
    } while (value);
    return n;
}

static uint64_t zigzag(int64_t value)
{
    return value < 0 ? (uint64_t)-value << 1 | 1 : (uint64_t)value << 1;
}

/* A table of more than 64 KiB of all entry kinds, with lines that go up and down. */
START_TEST(large)
{
    enum { TABLE = 80 * 1024 };
    uint8_t *table = malloc(TABLE + 64);
    au_position *want = calloc(UNITS_MAX, sizeof *want);
    size_t len = 0;
    uint32_t units = 0;
    int64_t line = 100000;
    uint32_t seed = 12345;
    ck_assert(table && want);
    while (len < TABLE && units + 8 < UNITS_MAX) {
        seed = seed * 1664525 + 1013904223;
        unsigned code = seed >> 28;
        unsigned length = 1 + (seed >> 24 & 1);
        uint32_t a = seed >> 8 & 63;
        uint32_t b = seed >> 16 & 63;
        int64_t delta = (int64_t)(seed >> 6 & 2047) - 1000;
        au_position p = {0, 0, 0, 0};
        table[len++] = (uint8_t)(0x80 | code << 3 | (length - 1));
        if (code <= 9) {
            table[len++] = (uint8_t)(a & 0x7f);
            p = (au_position){(uint32_t)line, (uint32_t)line, code * 8 + (a >> 4) + 1,
                              code * 8 + (a >> 4) + (a & 15) + 1};
        } else if (code <= 12) {
            line += (int)code - 10;
            table[len++] = (uint8_t)a;
            table[len++] = (uint8_t)b;
            p = (au_position){(uint32_t)line, (uint32_t)line, a + 1, b + 1};
        } else if (code == 13) {
            line += delta;
            len += put_varint(table + len, zigzag(delta));
            p = (au_position){(uint32_t)line, (uint32_t)line, 0, 0};
        } else if (code == 14) {
            line += delta;
            len += put_varint(table + len, zigzag(delta));
            len += put_varint(table + len, b);
            len += put_varint(table + len, a * 1000);
            len += put_varint(table + len, b * 2000);
            p = (au_position){(uint32_t)line, (uint32_t)line + b, a * 1000, b * 2000};
        }
        line = line < 5000 ? 100000 : line;
        if (line == 100000 && p.line) {
            /* an entry of its own brings the running line back */
            int64_t back = 100000 - (int64_t)p.line;
            table[len++] = 0x80 | 13 << 3;
            len += put_varint(table + len, zigzag(back));
            for (unsigned i = 0; i < length; i++) {
                want[units++] = p;
            }
            want[units++] = (au_position){100000, 100000, 0, 0};
            continue;
        }
        for (unsigned i = 0; i < length; i++) {
            want[units++] = p;
        }
    }
    ck_assert_uint_gt(len, 65536);
    ck_assert_uint_eq(decode(AU_TABLE_311, table, len, 100000), units);
    for (uint32_t u = 0; u < units; u++) {
        ck_assert_msg(memcmp(&positions[u], &want[u], sizeof *want) == 0, "unit %u: line %u, not %u", u,
                      positions[u].line, want[u].line);
    }
    compare_marked(AU_TABLE_311, table, len, 100000, units);
    free(table);
    free(want);
}
END_TEST

START_TEST(large_310)
{
    enum { PAIRS = 40000 };
    uint8_t *table = malloc(2 * PAIRS);
    uint32_t unit = 0;
    int64_t line = 1000;
    ck_assert(table);
    for (uint32_t i = 0; i < PAIRS; i++) {
        int delta = i % 7 == 3 ? -128 : (int)(i % 11) - 5;
        table[2 * i] = (uint8_t)(i % 5 == 0 ? 0 : 2);
        table[2 * i + 1] = (uint8_t)delta;
    }
    uint32_t units = decode(AU_TABLE_310, table, 2 * PAIRS, 1000);
    for (uint32_t i = 0; i < PAIRS; i++) {
        int delta = (int8_t)table[2 * i + 1];
        line += delta == -128 ? 0 : delta;
        if (table[2 * i]) {
            ck_assert_uint_eq(positions[unit].line, delta == -128 || line < 0 ? 0 : (uint32_t)line);
            ck_assert_uint_eq(positions[unit].line_end + positions[unit].column + positions[unit].column_end, 0);
            unit++;
        }
    }
    ck_assert_uint_eq(unit, units);
    compare_marked(AU_TABLE_310, table, 2 * PAIRS, 1000, units);
    free(table);
}
END_TEST

/* Tables at random, also such that are none: any bytes, entries that are cut, numbers without end, lines that leave
 * their range. The index must not know better or worse than the plain walk. */
START_TEST(marked)
{
    uint32_t seed = 99;
    for (int round = 0; round < 400; round++) {
        size_t len = (size_t)(round % 7 == 0 ? round % 13 : round % 240);
        uint8_t *table = malloc(len ? len : 1);
        ck_assert_ptr_nonnull(table);
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            uint8_t any = (uint8_t)(seed >> 24);
            switch (round % 5) {
            case 0:
                table[i] = any;
                break;
            case 1: /* numbers that go on and on */
                table[i] = (uint8_t)(any | (any & 3 ? 0x40 : 0));
                break;
            case 2: /* nothing but lines and long entries */
                table[i] = (uint8_t)(0x80 | (13 + (any & 1)) << 3);
                break;
            case 3: /* 3.10: many empty ranges */
                table[i] = any & 1 ? 0 : any;
                break;
            default: /* far jumps of the line */
                table[i] = (uint8_t)(i % 6 ? 0x7f : 0x80 | 13 << 3 | (any & 7));
            }
        }
        for (int style = 0; style < 2; style++) {
            const int32_t firsts[] = {1, INT32_MAX, INT32_MIN, (int32_t)seed};
            int32_t first = firsts[round / 5 % 4];
            uint32_t units = decode(style ? AU_TABLE_311 : AU_TABLE_310, table, len, first);
            compare_marked(style ? AU_TABLE_311 : AU_TABLE_310, table, len, first, units);
        }
        free(table);
    }
}
END_TEST

/* Bytes that are no table: bounded, nothing read behind the end, values stay in range. */
START_TEST(nonsense)
{
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        size_t len = (size_t)(round % 67);
        uint8_t *table = malloc(len ? len : 1); /* of this very size, so that a sanitizer sees a read behind it */
        au_linetable it;
        uint32_t start;
        uint32_t end;
        au_position p;
        size_t steps = 0;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            table[i] = (uint8_t)(round & 1 ? seed >> 24 : 0x80 | (seed >> 26) | (seed >> 20 & 0x48));
        }
        for (int style = 0; style < 2; style++) {
            au_linetable_init(&it, style ? AU_TABLE_311 : AU_TABLE_310, table, len, (int32_t)seed);
            while (au_linetable_next(&it, &start, &end, &p)) {
                ck_assert_uint_le(++steps, 2 * len);
                ck_assert_uint_le(p.line, INT32_MAX);
                ck_assert_uint_le(p.line_end, INT32_MAX);
                ck_assert_uint_le(p.column, INT32_MAX);
                ck_assert_uint_le(p.column_end, INT32_MAX);
            }
        }
        free(table);
    }
}
END_TEST

START_TEST(edges)
{
    static const uint8_t nowhere[] = {0x80 | 15 << 3 | 7, 0x80 | 13 << 3, 0x04};
    static const uint8_t endless[] = {0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
    ck_assert_uint_eq(decode(AU_TABLE_311, NULL, 0, 7), 0);
    ck_assert_uint_eq(au_linetable_find(AU_TABLE_311, NULL, 0, 7, 0).line, 0);
    ck_assert_uint_eq(decode(AU_TABLE_311, nowhere, sizeof nowhere, 7), 9);
    ck_assert_uint_eq(positions[7].line, 0);
    ck_assert_uint_eq(positions[8].line, 9); /* the running line came through "no location" unchanged */
    ck_assert_uint_eq(au_linetable_find(AU_TABLE_311, nowhere, sizeof nowhere, 7, 9).line, 0);
    ck_assert_uint_eq(au_linetable_find(AU_TABLE_311, nowhere, sizeof nowhere, 7, UINT32_MAX).line, 0);
    ck_assert_uint_eq(decode(AU_TABLE_311, endless, sizeof endless, INT32_MAX), 1);
    ck_assert_uint_le(positions[0].line, INT32_MAX);
    compare_marked(AU_TABLE_311, NULL, 0, 7, 0);
    ck_assert_uint_eq(au_linetable_mark_room(0, 128), 0);
    ck_assert_uint_eq(au_linetable_mark_room(128, 128), 1);
    ck_assert_uint_eq(au_linetable_mark_room(129, 128), 2);
    /* longer than what could be numbered: none, before a byte is looked at */
    ck_assert_uint_eq(au_linetable_mark_all(AU_TABLE_310, NULL, AU_LINETABLE_INDEX_MAX + 1, 1, 128, NULL), 0);
}
END_TEST

Suite *au_linetable_suite(void)
{
    Suite *suite = suite_create("linetable");
    TCase *tcase = tcase_create("linetable");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, vectors, 10, 16);
    tcase_add_test(tcase, large);
    tcase_add_test(tcase, large_310);
    tcase_add_test(tcase, marked);
    tcase_add_test(tcase, nonsense);
    tcase_add_test(tcase, edges);
    suite_add_tcase(suite, tcase);
    return suite;
}
