/* SPDX-License-Identifier: Apache-2.0 */
/* What the vectors leave open about the strict check. */
#include <string.h>

#include "format/mojo_check.h"
#include "tests/format/dump.h"
#include "tests/format/suites.h"

#define STREAM(body) ((const uint8_t *)"MOJ\4" body), (sizeof("MOJ\4" body) - 1)
#define DEFS "\13\2a.py\0\13\3f\0\13\4libc.so\0\3\1\2\3\1\1\0\0"

static void expect(const uint8_t *stream, size_t len, int unfinished, const char *findings)
{
    for (size_t piece = 0; piece < 3; piece++) {
        au_buf found = {0};
        dump_findings(stream, len, piece, unfinished, &found);
        ck_assert_str_eq((const char *)found.data, findings);
        au_buf_deinit(&found);
    }
}

START_TEST(every_rule_has_a_name)
{
    for (int rule = 1; rule < AU_MOJO_RULE_COUNT; rule++) {
        ck_assert_ptr_nonnull(strchr(au_mojo_rule_name((au_mojo_rule)rule), rule == AU_MOJO_TRUNCATED ? 't' : '.'));
        ck_assert_uint_gt(strlen(au_mojo_rule_text((au_mojo_rule)rule)), 10);
    }
    ck_assert_str_eq(au_mojo_rule_name((au_mojo_rule)AU_MOJO_RULE_COUNT), "unknown");
}
END_TEST

START_TEST(headers)
{
    expect((const uint8_t *)"MO", 2, 0, "violation\t0\theader.magic\n");
    expect((const uint8_t *)"MOJ\200", 4, 0, "violation\t4\ttruncated\n");
    expect((const uint8_t *)"MOJ\0", 4, 0, "violation\t3\theader.version\n");
    expect((const uint8_t *)"MOJ\104", 4, 0, "violation\t3\theader.version\n"); /* -4 */
    expect((const uint8_t *)"MOJ\204\0", 5, 0, "warning\t3\tvarint.canonical\n");
    expect((const uint8_t *)"MOJ\4", 4, 0, "");
}
END_TEST

START_TEST(metadata_is_between_samples)
{
    expect(STREAM("\1a\0b\0\2\1\0T\0\11\1\1a\0b\0\2\1\0T\0\11\1\1a\0b\0"), 0, "");
    /* The sample that goes on behind it shows that it was inside. */
    expect(STREAM("\2\1\0T\0\11\1\1a\0b\0\12\1"), 0, "violation\t11\tmetadata.inside\n");
}
END_TEST

START_TEST(samples_are_whole_and_in_order)
{
    expect(STREAM("\2\1\0T\0\2\1\0T\0\11\1"), 0, "violation\t4\tsample.metric\n");
    expect(STREAM("\2\1\0T\0\7\7\11\1"), 0, "violation\t10\tsample.order\n");
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0\15\15\11\1"), 0, "violation\t17\tsample.order\n");
    expect(STREAM("\2\1\0T\0\11\1\10\12\1\2\1\0T\0\11\1\12\1\10"), 0, "violation\t23\tsample.order\n");
    expect(STREAM("\2\1\0T\0\10\11\1\12\1"), 0, "violation\t10\tsample.order\n");
    expect(STREAM("\2\1\0T\0\11\1\10\10\12\1"), 0, "violation\t12\tmetric.twice\n");
    expect(STREAM("\2\1\0T\0\12\1\2\1\0T\0\11\1\12\1"), 0, "violation\t11\tmode.mixed\n");
    /* A repeat in the first sample that is also out of order breaks two rules. */
    expect(STREAM("\2\1\0T\0" DEFS "\5\1\15\11\1"), 0, "violation\t40\tsample.order\nviolation\t40\trepeat.first\n");
}
END_TEST

START_TEST(definitions)
{
    expect(STREAM(DEFS DEFS), 0, "");
    expect(STREAM("\3\1\11\12\0\0\0\0"), 0, "violation\t4\tstring.undefined\nviolation\t4\tstring.undefined\n");
    expect(STREAM("\14\11"), 0, "violation\t4\tstring.undefined\n");
    expect(STREAM("\13\2a.py\0\3\1\2\1\3\0\5\1"), 0, ""); /* no end line: the columns stand alone */
    expect(STREAM("\13\2a.py\0\3\1\2\1\3\3\5\4"), 0, "violation\t11\tframe.location\n");
    expect(STREAM("\13\2a.py\0\3\1\2\1\3\4\5\4"), 0, ""); /* the end is on another line */
    expect(STREAM("\13\2a.py\0\3\1\2\1\103\0\0\0"), 0, "violation\t11\tframe.location\n");
    expect(STREAM("\13\2libc.so\0\3\1\2\1\3\0\0\0"), 0, ""); /* an offset in the line is fine */
    expect(STREAM("\13\2libc.so\0\3\1\2\1\3\3\0\0"), 0, "warning\t14\tframe.native\n");
    /* Ten bytes hold more than 64 bits: long, but not too long. */
    expect(STREAM("\2\1\0T\0\11\277\377\377\377\377\377\377\377\377\177"), 0, "");
    expect(STREAM("\2\1\0T\0\11\277\377\377\377\377\377\377\377\377\377\1"), 0, "violation\t10\tvarint.length\n");
    expect(STREAM("\13\277\377\377\377\0a\0"), 0, "warning\t5\tvarint.canonical\nviolation\t5\tkey.length\n");
}
END_TEST

START_TEST(tasks)
{
    /* The identifiers of a sample may come in any order, but leave no gap. */
    expect(STREAM("\2\1\0T\0" DEFS "\16\2\0\1\5\1\16\1\0\1\5\1\11\1"), 0, "");
    expect(STREAM("\2\1\0T\0" DEFS "\16\4\0\1\5\1\16\2\0\1\5\1\16\1\0\1\5\1\11\1"), 0,
           "violation\t38\ttask.sequence\n");
    /* Gone means gone, whatever the event. */
    expect(STREAM("\2\1\0T\0\16\1\0\0\20\1\11\1\2\1\0T\0\17\1\0\11\1\2\1\0T\0\16\1\0\0\11\1"), 0,
           "violation\t13\ttask.reuse\nviolation\t22\ttask.reuse\nviolation\t32\ttask.reuse\n");
    expect(STREAM("\2\1\0T\0\20\0\11\1"), 0, "violation\t9\ttask.id\n");
    expect(STREAM("\2\1\0T\0\17\1\2\11\1"), 0, "violation\t9\twaiter.unknown\nviolation\t9\twaiter.unknown\n");
    /* A run is over when another task's begins. */
    expect(STREAM("\2\1\0T\0" DEFS "\16\1\0\1\5\1\16\2\0\1\5\1\17\1\0\17\2\0\17\1\2\11\1"), 0, "");
    expect(STREAM("\2\1\0T\0" DEFS "\16\1\0\1\5\1\16\2\0\1\5\1\17\1\0\17\1\2\11\1"), 0, "violation\t53\twaiter.zero\n");
    /* A next sample, or the end, where a Frame reference should come. */
    expect(STREAM("\2\1\0T\0" DEFS "\16\1\0\2\5\1\2\1\0T\0\11\1"), 0,
           "violation\t4\tsample.metric\nviolation\t44\ttask.frames\n");
    expect(STREAM("\2\1\0T\0" DEFS "\16\1\0\101\11\1"), 0, "violation\t38\ttask.frames\n");
}
END_TEST

START_TEST(unfinished_streams_are_cut_first)
{
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0"), 1, "");
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0\5"), 1, "");
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T"), 1, "");
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0\5\7"), 1, ""); /* what only the part behind the cut breaks */
    expect(STREAM("\2\1\0T\0\11\1\12\1\2\1\0T\0\11\1"), 1, "");
    expect((const uint8_t *)"", 0, 1, "");
    expect((const uint8_t *)"MO", 2, 1, "");
    expect((const uint8_t *)"MOJ\204", 4, 1, "");
    /* What lies before the cut counts, and so does what no cut can make. */
    expect(STREAM("\2\1\0T\0\5\7\11\1\2\1\0T\0"), 1, "violation\t9\tframe.undefined\n");
    expect((const uint8_t *)"MX", 2, 1, "violation\t0\theader.magic\n");
    expect(STREAM("\2\1\0T\0\11\1\21"), 1, "violation\t11\tevent.unknown\n");
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0\5\7\0"), 1,
           "violation\t16\tframe.undefined\nviolation\t18\tevent.reserved\n");
    /* A last sample that is whole counts. */
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0\5\7\11\1"), 1, "violation\t16\tframe.undefined\n");
    expect(STREAM("\2\1\0T\0\11\1\2\1\0T\0\5\7\11\1\2"), 1, "violation\t16\tframe.undefined\n");
}
END_TEST

Suite *checker_suite(void)
{
    Suite *suite = suite_create("checker");
    TCase *tests = tcase_create("checker");
    tcase_add_test(tests, every_rule_has_a_name);
    tcase_add_test(tests, headers);
    tcase_add_test(tests, metadata_is_between_samples);
    tcase_add_test(tests, samples_are_whole_and_in_order);
    tcase_add_test(tests, definitions);
    tcase_add_test(tests, tasks);
    tcase_add_test(tests, unfinished_streams_are_cut_first);
    suite_add_tcase(suite, tests);
    return suite;
}
