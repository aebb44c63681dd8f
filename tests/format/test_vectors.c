/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of tests/format/vectors through the reader, the writer and the checker. Run from the root of the tree. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_event.h"
#include "format/mojo_reader.h"
#include "tests/format/dump.h"
#include "tests/format/encode.h"
#include "tests/format/suites.h"

#define VECTORS "tests/format/vectors/"

static const char *const handed[] = {
    "definitions-anywhere", "full-idle-gc",   "kernel-gc",      "keys-unicode",
    "memory-negative",      "native-repeats", "odd-file-names", "processes-interpreters",
    "task-lifecycle",       "time-varints",
};

/* What the tolerant reader does with each malformed stream. */
typedef enum verdict {
    READS,    /* no word */
    WARNS,    /* reads it, with a warning */
    FAILS,    /* an error that names the byte */
    FAILS_END /* an error if the input is said to be complete; else it is not finished */
} verdict;

typedef struct bad_vector {
    const char *name;
    verdict verdict;
    int samples; /* handed out before the error; all there are without one */
    const char *rule;
} bad_vector;

static const bad_vector bad[] = {
    {"cut-event-id", FAILS_END, 1, "truncated"},
    {"cut-frame", FAILS_END, 1, "truncated"},
    {"cut-sample", FAILS_END, 1, "sample.metric"},
    {"cut-string", FAILS_END, 1, "string.unterminated"},
    {"cut-varint", FAILS_END, 1, "truncated"},
    {"empty", FAILS_END, 0, "header.magic"},
    {"event-0", FAILS, 0, "event.reserved"},
    {"event-17", FAILS, 0, "event.unknown"},
    {"event-4", READS, 2, ""},
    {"event-ff", FAILS, 1, "event.unknown"},
    {"frame-late", FAILS, 0, "frame.undefined"},
    {"frame-redefined", WARNS, 1, "frame.redefined"},
    {"frame-undefined", FAILS, 1, "frame.undefined"},
    {"idle-in-wall", READS, 2, ""},
    {"key-1", READS, 1, ""},
    {"key-long", READS, 1, ""},
    {"key-negative", FAILS, 1, "frame.undefined"},
    {"location", READS, 1, ""},
    {"magic", FAILS, 0, "header.magic"},
    {"metadata-inside", WARNS, 2, "metadata.inside"},
    {"metric-twice", WARNS, 2, "metric.twice"},
    {"mode-mixed", READS, 2, ""},
    {"no-stack", WARNS, 0, "sample.outside"},
    {"not-utf8", READS, 2, ""},
    {"nul-missing", FAILS, 0, "string.undefined"},
    {"order-gc", WARNS, 2, "sample.order"},
    {"order-kernel", WARNS, 2, "sample.order"},
    {"order-metrics", WARNS, 1, "sample.order"},
    {"order-tasks", WARNS, 2, "sample.order"},
    {"repeat-first", FAILS, 0, "repeat.first"},
    {"repeat-late", FAILS, 1, "sample.order"},
    {"repeat-other-process", FAILS, 1, "repeat.first"},
    {"running-unknown", WARNS, 2, "running.unknown"},
    {"string-redefined", WARNS, 1, "string.redefined"},
    {"string-undefined", FAILS, 0, "string.undefined"},
    {"task-0", WARNS, 2, "task.id"},
    {"task-frames-huge", WARNS, 2, "task.frames"},
    {"task-frames-short", WARNS, 2, "task.frames"},
    {"task-gap", READS, 2, ""},
    {"task-reused", READS, 4, ""},
    {"varint-huge", FAILS, 1, "varint.length"},
    {"varint-padded", READS, 3, ""},
    {"version-3", READS, 1, ""},
    {"version-5", FAILS, 0, "header.version"},
    {"version-missing", FAILS_END, 0, "truncated"},
    {"waiter-unknown", WARNS, 2, "waiter.unknown"},
    {"waiter-zero", WARNS, 2, "waiter.zero"},
};

enum { HANDED_COUNT = sizeof handed / sizeof handed[0], BAD_COUNT = sizeof bad / sizeof bad[0] };

static void load_vector(const char *group, const char *name, const char *suffix, au_buf *out)
{
    char path[256];
    snprintf(path, sizeof path, VECTORS "%s/%s.%s", group, name, suffix);
    load_file(path, out);
}

static au_error *count_sample(void *context, const au_mojo_sample *sample)
{
    (void)sample;
    ++*(int *)context;
    return NULL;
}

START_TEST(conforming_streams_decode_to_their_json)
{
    static const size_t pieces[] = {0, 1, 2, 7, 64};
    au_buf stream = {0}, text = {0};
    load_vector("handed", handed[_i], "mojo", &stream);
    load_vector("handed", handed[_i], "txt", &text);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        dump *d = dump_create();
        int unfinished;
        ck_assert_ptr_null(dump_read(d, stream.data, stream.len, pieces[i], 1, &unfinished));
        ck_assert_int_eq(unfinished, 0);
        ck_assert_str_eq(dump_text(d, stream.data, stream.len), (const char *)text.data);
        ck_assert_uint_eq(dump_warnings(d), 0);
        dump_destroy(d);
    }
    au_buf_deinit(&stream);
    au_buf_deinit(&text);
}
END_TEST

/* The content without what depends on how it is written: the counts of bytes and events. */
static const char *behind_the_head(const char *text)
{
    const char *at = strstr(text, "\ntime\t");
    ck_assert_ptr_nonnull(at);
    return at;
}

START_TEST(what_is_written_again_decodes_to_the_same)
{
    for (int repeats = 0; repeats < 2; repeats++) {
        au_buf stream = {0}, text = {0}, findings = {0};
        load_vector("handed", handed[_i], "mojo", &stream);
        load_vector("handed", handed[_i], "txt", &text);
        encoder *e = encoder_create(AU_MOJO_KEY_LIMIT, repeats);
        au_mojo_handlers handlers = {.context = e, .sample = encode_sample, .metadata = encode_metadata};
        au_mojo_reader *reader = au_mojo_reader_create(&handlers);
        int unfinished;
        ck_assert_ptr_null(au_mojo_reader_feed(reader, stream.data, stream.len));
        ck_assert_ptr_null(au_mojo_reader_finish(reader, 1, &unfinished));
        au_mojo_reader_destroy(reader);

        const au_buf *again = au_mojo_writer_out(encoder_writer(e));
        dump *d = dump_create();
        ck_assert_ptr_null(dump_read(d, again->data, again->len, 0, 1, &unfinished));
        ck_assert_str_eq(behind_the_head(dump_text(d, again->data, again->len)),
                         behind_the_head((const char *)text.data));
        dump_findings(again->data, again->len, 0, 0, &findings);
        ck_assert_str_eq((const char *)findings.data, "");
        dump_destroy(d);
        encoder_destroy(e);
        au_buf_deinit(&stream);
        au_buf_deinit(&text);
        au_buf_deinit(&findings);
    }
}
END_TEST

START_TEST(conforming_streams_have_no_findings)
{
    au_buf stream = {0};
    load_vector("handed", handed[_i], "mojo", &stream);
    for (size_t piece = 0; piece < 9; piece++) {
        au_buf findings = {0};
        dump_findings(stream.data, stream.len, piece, 0, &findings);
        ck_assert_str_eq((const char *)findings.data, "");
        au_buf_deinit(&findings);
    }
    au_buf_deinit(&stream);
}
END_TEST

START_TEST(cut_anywhere_is_valid_but_unfinished)
{
    au_buf stream = {0};
    load_vector("handed", handed[_i], "mojo", &stream);
    for (size_t len = 0; len < stream.len; len++) {
        au_buf findings = {0};
        dump_findings(stream.data, len, 0, 1, &findings);
        ck_assert_msg(findings.len == 0, "%s cut at %zu: %s", handed[_i], len, (const char *)findings.data);
        au_buf_deinit(&findings);
        /* The reader hands out a beginning of what it hands out of the whole. */
        dump *whole = dump_create(), *part = dump_create();
        int unfinished;
        ck_assert_ptr_null(dump_read(whole, stream.data, stream.len, 0, 1, &unfinished));
        ck_assert_ptr_null(dump_read(part, stream.data, len, 0, 0, &unfinished));
        const char *text = dump_samples_text(part);
        const char *end = strstr(text, "summary\t");
        size_t compared = end ? (size_t)(end - text) : strlen(text);
        ck_assert_msg(strncmp(text, dump_samples_text(whole), compared) == 0, "%s cut at %zu", handed[_i], len);
        dump_destroy(whole);
        dump_destroy(part);
    }
    au_buf_deinit(&stream);
}
END_TEST

START_TEST(malformed_streams_get_their_verdict)
{
    au_buf stream = {0}, text = {0};
    load_vector("bad", bad[_i].name, "mojo", &stream);
    load_vector("bad", bad[_i].name, "txt", &text);
    for (size_t piece = 0; piece < 9; piece++) {
        au_buf findings = {0};
        dump_findings(stream.data, stream.len, piece, 0, &findings);
        ck_assert_msg(strcmp((const char *)findings.data, (const char *)text.data) == 0, "%s: found\n%sbut it is\n%s",
                      bad[_i].name, (const char *)findings.data, (const char *)text.data);
        au_buf_deinit(&findings);
    }
    au_buf_deinit(&stream);
    au_buf_deinit(&text);
}
END_TEST

START_TEST(the_reader_bears_what_it_can)
{
    const bad_vector *vector = &bad[_i];
    au_buf stream = {0};
    load_vector("bad", vector->name, "mojo", &stream);
    for (size_t piece = 0; piece < 4; piece++) {
        for (int complete = 0; complete < 2; complete++) {
            dump *d = dump_create();
            int unfinished = 0, samples = 0;
            au_error *error = dump_read(d, stream.data, stream.len, piece, complete, &unfinished);
            for (const char *at = dump_samples_text(d); (at = strstr(at, "sample\t")) != NULL; at++) {
                samples++;
            }
            int fails = vector->verdict == FAILS || (vector->verdict == FAILS_END && complete);
            ck_assert_msg((error != NULL) == fails, "%s: %s", vector->name, error ? error->message : "no error");
            if (error) {
                ck_assert_msg(strstr(error->message, vector->rule) && strstr(error->message, "byte "), "%s: %s",
                              vector->name, error->message);
            }
            ck_assert_msg(samples == vector->samples, "%s: %d samples", vector->name, samples);
            ck_assert_msg((dump_warnings(d) > 0) == (vector->verdict == WARNS), "%s: %u warnings", vector->name,
                          dump_warnings(d));
            if (vector->verdict == WARNS) {
                ck_assert_str_eq(au_mojo_rule_name(dump_first_warning(d)), vector->rule);
            }
            if (vector->verdict == FAILS_END && !complete) {
                ck_assert_int_eq(unfinished, 1);
            }
            au_error_clear(error);
            dump_destroy(d);
        }
    }
    au_buf_deinit(&stream);
}
END_TEST

/* ---------------------------------------------------------------------------------- streams of Austin 4.0.0 */

/* As austin-python 2.4.0 (mojo2austin) reads them; the GC marks were counted when the stream was made. */
typedef struct real_facts {
    const char *name;
    int samples, frames, gc;
    int64_t time;
} real_facts;

static const real_facts real[] = {
    {"full-313", 1153, 4711, 0, 4201036},
    {"gc-314", 784, 1478, 271, 999138},
    {"p-312", 84, 1693, 0, 471864},
    {"sub-314", 2462, 8031, 0, 3703696},
};

enum { REAL_COUNT = sizeof real / sizeof real[0] };

typedef struct real_count {
    int samples, frames, gc, idle, memory, native;
    int64_t time;
} real_count;

static au_error *count_real(void *context, const au_mojo_sample *sample)
{
    real_count *count = context;
    count->samples++;
    count->gc += sample->gc;
    count->idle += sample->idle;
    count->memory += sample->has_memory;
    count->time += sample->time_us;
    count->frames += (int)sample->frame_count;
    for (size_t i = 0; i < sample->frame_count; i++) {
        count->native += sample->frames[i]->native;
    }
    return NULL;
}

static void read_real(const char *name, real_count *count)
{
    au_buf stream = {0};
    load_vector("real", name, "mojo", &stream);
    au_mojo_handlers handlers = {.context = count, .sample = count_real};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    int unfinished;
    for (size_t at = 0; at < stream.len; at += 1000) {
        size_t take = stream.len - at < 1000 ? stream.len - at : 1000;
        ck_assert_ptr_null(au_mojo_reader_feed(reader, stream.data + at, take));
    }
    ck_assert_ptr_null(au_mojo_reader_finish(reader, 1, &unfinished));
    ck_assert_uint_eq(au_mojo_reader_version(reader), 3);
    au_mojo_reader_destroy(reader);
    au_buf findings = {0};
    dump_findings(stream.data, stream.len, 0, 0, &findings);
    ck_assert_str_eq((const char *)findings.data, "violation\t3\theader.version\n");
    au_buf_deinit(&findings);
    au_buf_deinit(&stream);
}

START_TEST(real_streams_of_version_3_decode)
{
    const real_facts *facts = &real[_i];
    real_count count = {0};
    read_real(facts->name, &count);
    ck_assert_int_eq(count.samples, facts->samples);
    ck_assert_int_eq(count.frames, facts->frames);
    ck_assert_int_eq(count.gc, facts->gc);
    ck_assert_int_eq(count.time, facts->time);
    int full = strcmp(facts->name, "full-313") == 0;
    ck_assert_int_eq(count.memory, full ? count.samples : 0);
    ck_assert_int_eq(count.idle > 0, full);
    ck_assert_int_eq(count.native > 0, strcmp(facts->name, "p-312") == 0);
}
END_TEST

/* ------------------------------------------------------------------------------------------- older versions */

static void read_bytes(const uint8_t *bytes, size_t len, const char *expected)
{
    dump *d = dump_create();
    int unfinished;
    au_error *error = dump_read(d, bytes, len, 1, 1, &unfinished);
    ck_assert_msg(!error, "%s", error ? error->message : "");
    ck_assert_str_eq(dump_samples_text(d), expected);
    dump_destroy(d);
}

START_TEST(versions_1_and_2_have_their_own_layouts)
{
    static const uint8_t v1[] = "MOJ\1\2\52T\0\13\2a.py\0\13\3f\0\3\5\2\3\12\5\5\4\11\62";
    read_bytes(v1, sizeof v1 - 1, "sample\t42\t0\tT\t0\t-\t50\t-\t-\nframe\ta.py\tf\t10\t0\t0\t0\nframe\t(invalid)\n");
    static const uint8_t v2[] = "MOJ\2\2\52T\0\13\2a.py\0\13\3f\0\3\5\2\3\12\13\1\7\5\5\11\62";
    read_bytes(v2, sizeof v2 - 1, "sample\t42\t0\tT\t0\t-\t50\t-\t-\nframe\ta.py\tf\t10\t11\t1\t7\n");
    static const uint8_t v3[] = "MOJ\3\2\52\1T\0\13\2a.py\0\13\3f\0\3\5\2\3\12\13\1\7\5\5\11\62";
    read_bytes(v3, sizeof v3 - 1, "sample\t42\t1\tT\t0\t-\t50\t-\t-\nframe\ta.py\tf\t10\t11\t1\t7\n");
    /* Events 13 to 16 came with version 4. */
    static const uint8_t repeat[] = "MOJ\3\2\52\1T\0\15\11\62";
    int samples = 0, unfinished;
    au_mojo_handlers handlers = {.context = &samples, .sample = count_sample};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    au_error *error = au_mojo_reader_feed(reader, repeat, sizeof repeat - 1);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(strstr(error->message, "byte 9 (event.unknown)"));
    au_error_clear(error);
    /* The error stays. */
    error = au_mojo_reader_finish(reader, 0, &unfinished);
    ck_assert_ptr_nonnull(error);
    au_error_clear(error);
    ck_assert_int_eq(samples, 0);
    au_mojo_reader_destroy(reader);
}
END_TEST

Suite *vectors_suite(void)
{
    Suite *suite = suite_create("vectors");
    TCase *tests = tcase_create("vectors");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, conforming_streams_decode_to_their_json, 0, HANDED_COUNT);
    tcase_add_loop_test(tests, what_is_written_again_decodes_to_the_same, 0, HANDED_COUNT);
    tcase_add_loop_test(tests, conforming_streams_have_no_findings, 0, HANDED_COUNT);
    tcase_add_loop_test(tests, cut_anywhere_is_valid_but_unfinished, 0, HANDED_COUNT);
    tcase_add_loop_test(tests, malformed_streams_get_their_verdict, 0, BAD_COUNT);
    tcase_add_loop_test(tests, the_reader_bears_what_it_can, 0, BAD_COUNT);
    tcase_add_loop_test(tests, real_streams_of_version_3_decode, 0, REAL_COUNT);
    tcase_add_test(tests, versions_1_and_2_have_their_own_layouts);
    suite_add_tcase(suite, tests);
    return suite;
}
