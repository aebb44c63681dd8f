/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_reader.h"
#include "format/mojo_writer.h"
#include "tests/format/dump.h"
#include "tests/format/suites.h"

static au_mojo_writer *new_writer(uint32_t key_limit)
{
    au_mojo_writer *writer = au_mojo_writer_create(key_limit);
    ck_assert_ptr_nonnull(writer);
    ck_assert_int_eq(au_mojo_write_header(writer), AU_MOJO_OK);
    return writer;
}

static void expect_bytes(au_mojo_writer *writer, const char *bytes, size_t len)
{
    const au_buf *out = au_mojo_writer_out(writer);
    ck_assert_uint_eq(out->len, len);
    ck_assert_int_eq(memcmp(out->data, bytes, len), 0);
}

/* The whole example of docs/format.md, byte for byte. */
START_TEST(the_example_of_the_format_page)
{
    static const char example[] = "MOJ\4"
                                  "\1mode\0wall\0"
                                  "\2\x92\x42\0MainThread\0"
                                  "\13\2a.py\0"
                                  "\13\3f\0"
                                  "\3\1\2\3\7\7\5\11"
                                  "\5\1"
                                  "\11\xa4\1"
                                  "\2\x92\x42\0MainThread\0"
                                  "\15"
                                  "\11\xa8\1";
    au_mojo_writer *w = new_writer(AU_MOJO_KEY_LIMIT);
    uint32_t file, scope, frame;
    au_mojo_write_metadata(w, "mode", "wall");
    au_mojo_write_stack(w, 4242, 0, "MainThread");
    au_mojo_write_string(w, "a.py", &file);
    au_mojo_write_string(w, "f", &scope);
    au_mojo_frame content = {
        .file_key = file, .scope_key = scope, .line = 7, .line_end = 7, .column = 5, .column_end = 9};
    au_mojo_write_frame(w, &content, &frame);
    au_mojo_write_frame_ref(w, frame);
    au_mojo_write_time(w, 100);
    au_mojo_write_stack(w, 4242, 0, "MainThread");
    au_mojo_write_stack_repeat(w);
    au_mojo_write_time(w, 104);
    expect_bytes(w, example, sizeof example - 1);
    au_mojo_writer_destroy(w);
}
END_TEST

START_TEST(numbers_are_written_as_the_format_says)
{
    static const struct {
        int64_t value;
        const char *bytes;
    } cases[] = {
        {0, "\0"},
        {1, "\1"},
        {-1, "\x41"},
        {63, "\x3f"},
        {64, "\x80\1"},
        {131, "\x83\2"},
        {-131, "\xc3\2"},
        {8191, "\xbf\x7f"},
        {8192, "\x80\x80\1"},
        {134217727, "\xbf\xff\xff\x7f"},
        {INT64_MAX, "\xbf\xff\xff\xff\xff\xff\xff\xff\xff\1"},
        {INT64_MIN, "\xc0\x80\x80\x80\x80\x80\x80\x80\x80\2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        au_mojo_writer *w = au_mojo_writer_create(AU_MOJO_KEY_LIMIT);
        au_mojo_write_memory(w, cases[i].value);
        const au_buf *out = au_mojo_writer_out(w);
        ck_assert_uint_eq(out->data[0], AU_MOJO_MEMORY);
        ck_assert_uint_eq(out->len, 1 + (cases[i].value ? strlen(cases[i].bytes) : 1));
        ck_assert_int_eq(memcmp(out->data + 1, cases[i].bytes, out->len - 1), 0);
        au_mojo_writer_destroy(w);
    }
}
END_TEST

START_TEST(a_string_is_sent_once_a_process)
{
    au_mojo_writer *w = new_writer(AU_MOJO_KEY_LIMIT);
    uint32_t first, again, other, none, unknown;
    au_mojo_write_stack(w, 1, 0, "a");
    au_mojo_write_string(w, "", &none);
    au_mojo_write_string(w, "<unknown>", &unknown);
    ck_assert_uint_eq(none, AU_MOJO_STRING_FIRST); /* the empty one is defined like any other */
    ck_assert_uint_eq(unknown, AU_MOJO_STRING_UNKNOWN);
    au_mojo_write_string(w, "text", &first);
    size_t len = au_mojo_writer_out(w)->len;
    au_mojo_write_string(w, "text", &again);
    ck_assert_uint_eq(again, first);
    ck_assert_uint_eq(au_mojo_writer_out(w)->len, len);
    au_mojo_write_stack(w, 2, 0, "a");
    len = au_mojo_writer_out(w)->len;
    au_mojo_write_string(w, "text", &other);
    ck_assert_uint_ne(other, first);
    ck_assert_uint_gt(au_mojo_writer_out(w)->len, len);
    /* A process that has ended is forgotten, another is not. */
    au_mojo_forget_process(w, 2);
    au_mojo_write_string(w, "text", &again);
    ck_assert_uint_ne(again, other);
    ck_assert_uint_ne(again, first);
    au_mojo_write_stack(w, 1, 0, "a");
    au_mojo_write_string(w, "text", &again);
    ck_assert_uint_eq(again, first);
    au_mojo_writer_destroy(w);
}
END_TEST

START_TEST(no_key_is_given_beyond_the_limit)
{
    au_mojo_writer *w = new_writer(5);
    uint32_t key = 0, frames = 0, strings = 0;
    au_mojo_write_stack(w, 1, 0, "a");
    au_mojo_frame content = {0};
    while (au_mojo_write_frame(w, &content, &key) == AU_MOJO_OK) {
        ck_assert_uint_eq(key, ++frames);
    }
    ck_assert_uint_eq(frames, 4); /* 1 to 4 */
    char text[16];
    do {
        snprintf(text, sizeof text, "s%u", strings++);
    } while (au_mojo_write_string(w, text, &key) == AU_MOJO_OK);
    ck_assert_uint_eq(strings, 4); /* 2 to 4 were given */
    size_t len = au_mojo_writer_out(w)->len;
    ck_assert_int_eq(au_mojo_write_string(w, "one more", &key), AU_MOJO_NO_KEYS);
    ck_assert_int_eq(au_mojo_write_frame(w, &content, &key), AU_MOJO_NO_KEYS);
    ck_assert_uint_eq(au_mojo_writer_out(w)->len, len); /* nothing of it was written */
    /* What is known goes on. */
    ck_assert_int_eq(au_mojo_write_string(w, "s0", &key), AU_MOJO_OK);
    ck_assert_int_eq(au_mojo_write_frame_ref(w, 4), AU_MOJO_OK);
    ck_assert_int_eq(au_mojo_write_time(w, 1), AU_MOJO_OK);
    au_mojo_writer_destroy(w);
}
END_TEST

START_TEST(the_last_key_has_four_bytes)
{
    au_mojo_writer *w = au_mojo_writer_create(UINT32_MAX);
    au_mojo_write_frame_ref(w, AU_MOJO_KEY_LIMIT - 1);
    ck_assert_uint_eq(au_mojo_writer_out(w)->len, 1 + 4);
    au_mojo_writer_destroy(w);
}
END_TEST

/* Ten times more strings than the table holds: memory stays bounded, keys are never used twice, and a reader gets the
 * text that was meant. */
START_TEST(the_table_is_bounded_and_may_forget)
{
    au_mojo_writer *w = new_writer(AU_MOJO_KEY_LIMIT);
    au_buf *out = au_mojo_writer_out(w);
    dump *d = dump_create();
    au_mojo_handlers handlers = {.context = d, .sample = dump_sample, .warning = dump_warning};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    au_buf expected = {0};
    uint32_t highest = 0, hot_key = 0, hot_sent = 0;
    size_t settled = 0;
    enum { ROUNDS = 80000 };
    for (unsigned i = 0; i < ROUNDS; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, "/srv/app/generated/module_%06u.py", i);
        au_mojo_write_stack(w, 7, 0, "T");
        au_mojo_frame content = {.line = i};
        uint32_t before = highest, key;
        MUST(au_mojo_write_string(w, text, &content.file_key) == AU_MOJO_OK);
        MUST(content.file_key > before);
        highest = content.file_key;
        MUST(au_mojo_write_string(w, "always there", &content.scope_key) == AU_MOJO_OK);
        if (content.scope_key != hot_key) {
            MUST(content.scope_key > highest);
            highest = hot_key = content.scope_key;
            hot_sent++;
        }
        MUST(au_mojo_write_frame(w, &content, &key) == AU_MOJO_OK);
        MUST(au_mojo_write_frame_ref(w, key) == AU_MOJO_OK);
        MUST(au_mojo_write_time(w, 1) == AU_MOJO_OK);
        MUST(!au_mojo_reader_feed(reader, out->data, out->len));
        au_buf_reset(out);
        char line[160];
        length = snprintf(line, sizeof line, "sample\t7\t0\tT\t0\t-\t1\t-\t-\nframe\t%s\talways there\t%u\t0\t0\t0\n",
                          text, i);
        MUST(au_buf_append(&expected, line, (size_t)length) == 0);
        if (i == ROUNDS / 2) {
            settled = out->cap;
        }
    }
    ck_assert_uint_eq(hot_sent, 1); /* what is in use is never forgotten */
    ck_assert_uint_eq(out->cap, settled);
    int unfinished;
    ck_assert_ptr_null(au_mojo_reader_finish(reader, 1, &unfinished));
    au_mojo_reader_destroy(reader);
    MUST(au_buf_append(&expected, "", 1) == 0);
    ck_assert_str_eq(dump_samples_text(d), (const char *)expected.data);
    ck_assert_uint_eq(dump_warnings(d), 0);
    dump_destroy(d);
    au_buf_deinit(&expected);
    /* The first strings are long forgotten: they are sent again under a new key. */
    uint32_t key;
    au_mojo_write_string(w, "/srv/app/generated/module_000000.py", &key);
    MUST(key > highest);
    au_mojo_writer_destroy(w);
}
END_TEST

START_TEST(long_strings_pass)
{
    au_mojo_writer *w = new_writer(AU_MOJO_KEY_LIMIT);
    au_mojo_write_stack(w, 1, 0, "a");
    size_t sizes[] = {16 * 1024, 64 * 1024, 64 * 1024 + 1, 3 * 1024 * 1024};
    for (size_t i = 0; i < 4; i++) {
        char *text = malloc(sizes[i] + 1);
        memset(text, 'x', sizes[i]);
        text[sizes[i]] = 0;
        uint32_t first, again;
        ck_assert_int_eq(au_mojo_write_string(w, text, &first), AU_MOJO_OK);
        ck_assert_int_eq(au_mojo_write_string(w, text, &again), AU_MOJO_OK);
        if (sizes[i] <= 64 * 1024) {
            ck_assert_uint_eq(first, again);
        } else {
            ck_assert_uint_gt(again, first);
        }
        free(text);
    }
    au_mojo_write_time(w, 1);
    au_buf findings = {0};
    dump_findings(au_mojo_writer_out(w)->data, au_mojo_writer_out(w)->len, 4096, 0, &findings);
    ck_assert_str_eq((const char *)findings.data, "");
    au_buf_deinit(&findings);
    au_mojo_writer_destroy(w);
}
END_TEST

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_HEAP 1
#endif

START_TEST(a_warm_writer_does_not_grow)
{
#ifdef COUNTS_HEAP
    au_mojo_writer *w = new_writer(AU_MOJO_KEY_LIMIT);
    size_t warm = 0;
    /* New strings all the time: ten turns of the whole table are the warm-up of this worst case. */
    for (unsigned i = 0; i < 200000; i++) {
        char text[64];
        snprintf(text, sizeof text, "function_with_a_name_of_its_own_%07u", i);
        au_mojo_write_stack(w, i / 50000, 0, "T");
        au_mojo_frame content = {.line = 1};
        uint32_t key;
        au_mojo_write_string(w, text, &content.scope_key);
        au_mojo_write_frame(w, &content, &key);
        au_mojo_write_frame_ref(w, key);
        au_mojo_write_time(w, 1);
        au_buf_reset(au_mojo_writer_out(w));
        if (i == 81920) {
            warm = mallinfo2().uordblks;
        }
    }
    ck_assert_uint_eq(mallinfo2().uordblks, warm);
    ck_assert_uint_lt(warm, 3 * 1024 * 1024 + 512 * 1024);
    au_mojo_writer_destroy(w);
#else
    printf("SKIP: a_warm_writer_does_not_grow: this build cannot count the heap\n");
#endif
}
END_TEST

START_TEST(native_files_are_known_by_their_names)
{
    static const char *const python[] = {"a.py", ".py", "/x/y.py", "<string>", "<>", "<frozen importlib._bootstrap>"};
    static const char *const native[] = {
        "",  "a", "py", "a.pyx", "a.pyc",         "a.PY", "/usr/lib/libc.so.6", "native@7f00",
        "<", ">", "<x", "x>",    "/usr/bin/tool", "a.py "};
    for (size_t i = 0; i < sizeof python / sizeof python[0]; i++) {
        ck_assert_msg(!au_mojo_is_native_file(python[i]), "%s", python[i]);
    }
    for (size_t i = 0; i < sizeof native / sizeof native[0]; i++) {
        ck_assert_msg(au_mojo_is_native_file(native[i]), "%s", native[i]);
    }
}
END_TEST

Suite *writer_suite(void)
{
    Suite *suite = suite_create("writer");
    TCase *tests = tcase_create("writer");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_example_of_the_format_page);
    tcase_add_test(tests, numbers_are_written_as_the_format_says);
    tcase_add_test(tests, a_string_is_sent_once_a_process);
    tcase_add_test(tests, no_key_is_given_beyond_the_limit);
    tcase_add_test(tests, the_last_key_has_four_bytes);
    tcase_add_test(tests, the_table_is_bounded_and_may_forget);
    tcase_add_test(tests, long_strings_pass);
    tcase_add_test(tests, a_warm_writer_does_not_grow);
    tcase_add_test(tests, native_files_are_known_by_their_names);
    suite_add_tcase(suite, tests);
    return suite;
}
