/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_event.h"
#include "format/mojo_reader.h"
#include "tests/format/dump.h"
#include "tests/format/suites.h"

/* A stream as a literal: octal escapes, version 4. */
#define STREAM(body) ((const uint8_t *)"MOJ\4" body), (sizeof("MOJ\4" body) - 1)

static void expect_samples(const uint8_t *stream, size_t len, unsigned warnings, const char *expected)
{
    for (size_t piece = 0; piece < 3; piece++) {
        dump *d = dump_create();
        int unfinished;
        au_error *error = dump_read(d, stream, len, piece, 1, &unfinished);
        ck_assert_msg(!error, "%s", error ? error->message : "");
        ck_assert_str_eq(dump_samples_text(d), expected);
        ck_assert_uint_eq(dump_warnings(d), warnings);
        dump_destroy(d);
    }
}

static void expect_error(const uint8_t *stream, size_t len, const char *needle)
{
    dump *d = dump_create();
    int unfinished;
    au_error *error = dump_read(d, stream, len, 1, 0, &unfinished);
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(strstr(error->message, needle) != NULL, "%s", error->message);
    ck_assert_int_eq(error->code, AU_ERR_IO);
    au_error_clear(error);
    dump_destroy(d);
}

/* Frame 1 is a.py f line 1, frame 2 a.py g line 2, frame 3 libc.so g, in process 1. */
#define DEFS "\13\2a.py\0\13\3f\0\13\4g\0\13\5libc.so\0\3\1\2\3\1\0\0\0\3\2\2\4\2\0\0\0\3\3\5\4\0\0\0\0"
#define F1 "frame\ta.py\tf\t1\t0\t0\t0\n"
#define F2 "frame\ta.py\tg\t2\t0\t0\t0\n"
#define F3 "frame\tlibc.so\tg\t0\t0\t0\t0\n"
#define S(pid, iid, thread, time) "sample\t" pid "\t" iid "\t" thread "\t0\t-\t" time "\t-\t-\n"

START_TEST(a_repeat_goes_by_process_and_name)
{
    expect_samples(STREAM("\2\1\0T\0" DEFS "\5\1\5\2\11\1"
                          "\2\1\0U\0\5\2\11\2"
                          "\2\1\1T\0\15\11\3" /* another interpreter: the name counts */
                          "\2\1\0U\0\15\5\1\11\4"),
                   0,
                   S("1", "0", "T", "1") F1 F2 S("1", "0", "U", "2") F2 S("1", "1", "T", "3")
                       F1 F2 S("1", "0", "U", "4") F2 F1);
}
END_TEST

START_TEST(a_repeat_drops_native_frames_at_the_end)
{
    expect_samples(STREAM("\2\1\0T\0" DEFS "\5\3\5\1\5\3\5\3\11\1"
                          "\2\1\0T\0\15\11\2"
                          "\2\1\0T\0\15\5\3\11\3"
                          "\2\1\0T\0\5\3\11\4"
                          "\2\1\0T\0\15\11\5"),
                   0,
                   S("1", "0", "T", "1") F3 F1 F3 F3 S("1", "0", "T", "2") F3 F1 S("1", "0", "T", "3")
                       F3 F1 F3 S("1", "0", "T", "4") F3 S("1", "0", "T", "5"));
}
END_TEST

START_TEST(empty_stacks_repeat_too)
{
    expect_samples(STREAM("\2\1\0T\0" DEFS "\11\1"
                          "\2\1\0T\0\15\11\2"
                          "\2\1\0T\0\5\1\11\3"
                          "\2\1\0T\0\11\4"
                          "\2\1\0T\0\15\11\5"),
                   0,
                   S("1", "0", "T", "1") S("1", "0", "T", "2") S("1", "0", "T", "3") F1 S("1", "0", "T", "4")
                       S("1", "0", "T", "5"));
}
END_TEST

START_TEST(kernel_frames_are_not_repeated)
{
    expect_samples(STREAM("\2\1\0T\0" DEFS "\5\1\6read\0\11\1"
                          "\2\1\0T\0\15\11\2"
                          "\2\1\0T\0\15\6poll\0\11\3"),
                   0,
                   S("1", "0", "T", "1") F1 "kernel\tread\n" S("1", "0", "T", "2") F1 S("1", "0", "T", "3") F1
                   "kernel\tpoll\n");
}
END_TEST

START_TEST(keys_are_looked_up_in_their_process_first)
{
    /* Both processes define frame 1 and string 2, differently; process 3 defines nothing. */
    expect_samples(
        STREAM("\2\1\0T\0\13\2a.py\0\3\1\2\2\1\0\0\0\5\1\11\1"
               "\2\2\0T\0\13\2b.py\0\3\1\2\2\2\0\0\0\5\1\11\2"
               "\2\1\0T\0\5\1\11\3"
               "\2\3\0T\0\5\1\11\4"),
        2,
        S("1", "0", "T", "1") "frame\ta.py\ta.py\t1\t0\t0\t0\n" S(
            "2", "0", "T",
            "2") "frame\tb.py\tb.py\t2\t0\t0\t0\n" S("1", "0", "T",
                                                     "3") "frame\ta.py\ta.py\t1\t0\t0\t0\n" S("3", "0", "T",
                                                                                              "4") "frame\tb.py\tb."
                                                                                                   "py\t2\t0\t0\t0\n");
}
END_TEST

START_TEST(the_last_definition_counts)
{
    expect_samples(
        STREAM("\2\1\0T\0" DEFS "\3\1\2\4\11\0\0\0\5\1\11\1"
               "\2\1\0T\0\13\2a.py\0\5\1\11\2" /* the same again is no matter */
               "\2\1\0T\0\13\1other\0\3\4\2\1\1\0\0\0\5\4\11\3"),
        2,
        S("1", "0", "T", "1") "frame\ta.py\tg\t9\t0\t0\t0\n" S("1", "0", "T", "2") "frame\ta.py\tg\t9\t0\t0\t0\n" S(
            "1", "0", "T", "3") "frame\ta.py\tother\t1\t0\t0\t0\n");
}
END_TEST

START_TEST(string_1_is_unknown_and_string_0_is_empty)
{
    expect_samples(STREAM("\2\1\0T\0\3\1\0\1\0\0\0\0\5\1\11\1"), 0,
                   S("1", "0", "T", "1") "frame\t\t<unknown>\t0\t0\t0\t0\n");
}
END_TEST

START_TEST(keys_of_64_bits)
{
    expect_samples(STREAM("\2\1\0T\0\13\277\377\377\377\377\377\377\377\377\3a.py\0"
                          "\3\277\377\377\377\377\377\377\377\377\3\277\377\377\377\377\377\377\377\377\3\0\1\0\0\0"
                          "\5\277\377\377\377\377\377\377\377\377\3\11\1"),
                   0, S("1", "0", "T", "1") "frame\ta.py\t\t1\t0\t0\t0\n");
    /* One bit more cannot be told apart any more. */
    expect_error(STREAM("\2\1\0T\0\13\277\377\377\377\377\377\377\377\377\7a.py\0"), "byte 10 (varint.length)");
}
END_TEST

START_TEST(errors_name_the_byte)
{
    expect_error(STREAM("\2\1\0T\0\5\1\11\1"), "byte 9 (frame.undefined)");
    expect_error(STREAM("\2\1\0T\0\14\7\11\1"), "byte 9 (string.undefined)");
    expect_error(STREAM("\21"), "byte 4 (event.unknown)");
    expect_error(STREAM("\0"), "byte 4 (event.reserved)");
    expect_error(STREAM("\2\1\0T\0\16\1\7\0\11\1"), "byte 9 (string.undefined)");
    expect_error(STREAM("\11\377\377\377\377\377\377\377\377\377\377\1"), "byte 5 (varint.length)");
    expect_error(STREAM("\2\1\0T\0\11\200\200\200\200\200\200\200\200\200\2"), "byte 10 (varint.length)");
}
END_TEST

START_TEST(tasks_are_followed)
{
    expect_samples(STREAM("\2\1\0T\0" DEFS "\13\6job\0"
                          "\16\1\6\2\5\1\3\7\2\3\3\0\0\0\5\7" /* a definition between does not count */
                          "\16\2\0\1\5\2"
                          "\17\1\2\17\2\0\20\1\5\2\11\12"
                          "\2\1\0T\0\20\1\15\11\13"       /* still where it was */
                          "\2\1\0T\0\16\1\6\0\15\11\14"), /* gone */
                   0,
                   "sample\t1\t0\tT\t0\t-\t10\t-\t1\n" F2 "task\tstack\t1\t=job\n"
                   "task_frame\ta.py\tf\t1\t0\t0\t0\ntask_frame\ta.py\tf\t3\t0\t0\t0\n"
                   "task\tstack\t2\t-\ntask_frame\ta.py\tg\t2\t0\t0\t0\n"
                   "task\twaiters\t1\t2\ntask\twaiters\t2\t\ntask\trunning\t1\n"
                   "running_frame\ta.py\tf\t1\t0\t0\t0\nrunning_frame\ta.py\tf\t3\t0\t0\t0\n"
                   "sample\t1\t0\tT\t0\t-\t11\t-\t1\n" F2 "task\trunning\t1\n"
                   "running_frame\ta.py\tf\t1\t0\t0\t0\nrunning_frame\ta.py\tf\t3\t0\t0\t0\n"
                   "sample\t1\t0\tT\t0\t-\t12\t-\t-\n" F2 "task\tgone\t1\t=job\n"
                   "summary\t1\t=job\t1\t0\tT\t0\t2\t21\t21\t2\n"
                   "summary\t2\t-\t1\t0\tT\t0\t-\t33\t0\t\n");
}
END_TEST

typedef struct order {
    char text[64];
} order;

static au_error *order_sample(void *context, const au_mojo_sample *sample)
{
    (void)sample;
    strcat(((order *)context)->text, "s");
    return NULL;
}

static au_error *order_metadata(void *context, uint64_t offset, const char *key, const char *value)
{
    (void)offset;
    (void)value;
    strcat(((order *)context)->text, key);
    return NULL;
}

START_TEST(samples_and_metadata_come_in_the_order_of_the_stream)
{
    static const char stream[] = "MOJ\4\1a\0\0\2\1\0T\0\11\1\2\1\0T\0\11\1\1b\0\0\1c\0\0\2\1\0T\0\11\1\1d\0\0";
    order seen = {""};
    au_mojo_handlers handlers = {.context = &seen, .sample = order_sample, .metadata = order_metadata};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    int unfinished;
    ck_assert_ptr_null(au_mojo_reader_feed(reader, stream, sizeof stream - 1));
    ck_assert_ptr_null(au_mojo_reader_finish(reader, 1, &unfinished));
    ck_assert_str_eq(seen.text, "assbcsd");
    au_mojo_reader_destroy(reader);
}
END_TEST

static au_error *refuse(void *context, const au_mojo_sample *sample)
{
    (void)context;
    (void)sample;
    return au_error_create(AU_ERR_VALUE, 0, "enough");
}

START_TEST(an_error_of_a_handler_comes_out)
{
    static const char stream[] = "MOJ\4\2\1\0T\0\11\1\2\1\0T\0\11\1";
    au_mojo_handlers handlers = {.sample = refuse};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    au_error *error = au_mojo_reader_feed(reader, stream, sizeof stream - 1);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, AU_ERR_VALUE);
    au_error_clear(error);
    au_mojo_reader_destroy(reader);
}
END_TEST

/* How many samples come out of a stream that is not known to be complete, and whether that is told. */
static void expect_unfinished(const uint8_t *stream, size_t len, int samples, int unfinished)
{
    dump *d = dump_create();
    int told, count = 0;
    ck_assert_ptr_null(dump_read(d, stream, len, 0, 0, &told));
    for (const char *at = dump_samples_text(d); (at = strstr(at, "sample\t")) != NULL; at++) {
        count++;
    }
    ck_assert_int_eq(count, samples);
    ck_assert_int_eq(told, unfinished);
    dump_destroy(d);
}

START_TEST(the_last_sample_counts_if_it_is_whole)
{
    expect_unfinished(STREAM("\2\1\0T\0\11\1"), 1, 0);
    expect_unfinished(STREAM("\2\1\0T\0\11\1\2"), 1, 1);
    expect_unfinished(STREAM("\2\1\0T\0\11\1\1a\0b"), 1, 1);
    expect_unfinished(STREAM("\2\1\0T\0\11\1\13\2a"), 1, 1);
    expect_unfinished(STREAM("\2\1\0T\0"), 0, 1);
    expect_unfinished(STREAM("\2\1\0T\0\11\201"), 0, 1);
    /* In full mode a time is half a sample. */
    expect_unfinished(STREAM("\2\1\0T\0\11\1\12\1\2\1\0T\0\11\1"), 1, 1);
    expect_unfinished(STREAM("\2\1\0T\0\11\1\12\1\2\1\0T\0\11\1\12"), 1, 1);
    expect_unfinished(STREAM("\2\1\0T\0\11\1\12\1\2\1\0T\0\11\1\12\2"), 2, 0);
    expect_unfinished(STREAM("\1mode\0full\0\2\1\0T\0\11\1"), 0, 1);
    /* Even when nothing but the cut event tells. */
    expect_unfinished(STREAM("\2\1\0T\0\11\1\12\201"), 0, 1);
}
END_TEST

/* A stack that grows by a frame with each sample, in two bytes: the work must not be the square of the length. */
START_TEST(deep_repeats_cost_nothing)
{
    enum { SAMPLES = 300000 };
    au_buf stream = {0};
    static const char head[] = "MOJ\4\2\1\0T\0" DEFS "\5\1\11\1";
    static const char next[] = "\2\1\0T\0\15\5\1\11\1";
    MUST(au_buf_append(&stream, head, sizeof head - 1) == 0);
    for (int i = 0; i < SAMPLES; i++) {
        MUST(au_buf_append(&stream, next, sizeof next - 1) == 0);
    }
    au_mojo_handlers handlers = {0};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    int unfinished;
    ck_assert_ptr_null(au_mojo_reader_feed(reader, stream.data, stream.len));
    ck_assert_ptr_null(au_mojo_reader_finish(reader, 1, &unfinished));
    ck_assert_uint_eq(au_mojo_reader_frames(reader), 3);
    au_mojo_reader_destroy(reader);
    au_buf_deinit(&stream);
}
END_TEST

/* A megabyte of string in single bytes: looked through once. */
START_TEST(long_strings_in_single_bytes)
{
    enum { LENGTH = 1 << 20 };
    au_mojo_parser parser;
    au_mojo_parser_init(&parser);
    const au_mojo_event *event;
    au_mojo_parser_feed(&parser, "MOJ\4\1", 5);
    ck_assert_int_eq(au_mojo_parser_next(&parser, &event), AU_MOJO_NEXT_HEADER);
    ck_assert_int_eq(au_mojo_parser_next(&parser, &event), AU_MOJO_NEXT_MORE);
    for (int i = 0; i < LENGTH; i++) {
        au_mojo_parser_feed(&parser, "x", 1);
        MUST(au_mojo_parser_next(&parser, &event) == AU_MOJO_NEXT_MORE);
    }
    au_mojo_parser_feed(&parser, "\0v\0\7\10", 5);
    ck_assert_int_eq(au_mojo_parser_next(&parser, &event), AU_MOJO_NEXT_EVENT);
    ck_assert_uint_eq(event->offset, 4);
    ck_assert_uint_eq(event->end, 5 + LENGTH + 3);
    ck_assert_uint_eq(event->fields[0].length, LENGTH);
    ck_assert_str_eq(event->fields[1].text, "v");
    ck_assert_int_eq(au_mojo_parser_next(&parser, &event), AU_MOJO_NEXT_EVENT);
    ck_assert_uint_eq(event->id, AU_MOJO_GC);
    ck_assert_int_eq(au_mojo_parser_next(&parser, &event), AU_MOJO_NEXT_EVENT);
    ck_assert_uint_eq(event->id, AU_MOJO_IDLE);
    ck_assert_int_eq(au_mojo_parser_next(&parser, &event), AU_MOJO_NEXT_MORE);
    ck_assert_int_eq(au_mojo_parser_finish(&parser), AU_MOJO_RULE_NONE);
    au_mojo_parser_deinit(&parser);
}
END_TEST

START_TEST(fields_have_names)
{
    ck_assert_str_eq(au_mojo_field_name(AU_MOJO_FRAME, 4, 6), "column_end");
    ck_assert_str_eq(au_mojo_field_name(AU_MOJO_FRAME, 1, 3), "line");
    ck_assert_str_eq(au_mojo_field_name(AU_MOJO_FRAME, 1, 4), "");
    ck_assert_str_eq(au_mojo_field_name(AU_MOJO_STACK, 2, 1), "thread");
    ck_assert_str_eq(au_mojo_field_name(AU_MOJO_STACK, 3, 1), "iid");
    ck_assert_str_eq(au_mojo_field_name(99, 4, 0), "");
    ck_assert_str_eq(au_mojo_event_name(AU_MOJO_RUNNING_TASK), "Running task");
    ck_assert_str_eq(au_mojo_event_name(17), "unknown");
}
END_TEST

Suite *reader_suite(void)
{
    Suite *suite = suite_create("reader");
    TCase *tests = tcase_create("reader");
    tcase_set_timeout(tests, 20);
    tcase_add_test(tests, a_repeat_goes_by_process_and_name);
    tcase_add_test(tests, a_repeat_drops_native_frames_at_the_end);
    tcase_add_test(tests, empty_stacks_repeat_too);
    tcase_add_test(tests, kernel_frames_are_not_repeated);
    tcase_add_test(tests, keys_are_looked_up_in_their_process_first);
    tcase_add_test(tests, the_last_definition_counts);
    tcase_add_test(tests, string_1_is_unknown_and_string_0_is_empty);
    tcase_add_test(tests, keys_of_64_bits);
    tcase_add_test(tests, errors_name_the_byte);
    tcase_add_test(tests, tasks_are_followed);
    tcase_add_test(tests, samples_and_metadata_come_in_the_order_of_the_stream);
    tcase_add_test(tests, an_error_of_a_handler_comes_out);
    tcase_add_test(tests, the_last_sample_counts_if_it_is_whole);
    tcase_add_test(tests, deep_repeats_cost_nothing);
    tcase_add_test(tests, long_strings_in_single_bytes);
    tcase_add_test(tests, fields_have_names);
    suite_add_tcase(suite, tests);
    return suite;
}
