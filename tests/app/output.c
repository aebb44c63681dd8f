/* SPDX-License-Identifier: Apache-2.0 */
#include "app/output.h"

#include <apr_file_io.h>
#include <apr_general.h>
#include <apr_strings.h>
#include <apr_thread_cond.h>
#include <apr_thread_mutex.h>
#include <apr_time.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "platform/platform.h"
#include "tests/app/suites.h"

/* A sink that keeps what it gets, and can be slow, hang, or fail. */
typedef struct test_sink {
    au_output_sink base;
    au_buf bytes; /* of the writer's thread until close */
    _Atomic size_t length;
    atomic_int writes, closes;
    atomic_int hangs;        /* write blocks while it is set */
    size_t fail_at;          /* bytes taken before write fails; 0: never */
    apr_interval_time_t nap; /* of each write */
    int close_fails;
} test_sink;

static au_error *sink_write(au_output_sink *base, const void *bytes, size_t len)
{
    test_sink *sink = (test_sink *)base;
    while (atomic_load(&sink->hangs)) {
        apr_sleep(1000);
    }
    if (sink->nap) {
        apr_sleep(sink->nap);
    }
    atomic_fetch_add(&sink->writes, 1);
    if (sink->fail_at && sink->bytes.len + len > sink->fail_at) {
        return au_error_cause(au_error_create(AU_ERR_IO, 28, "cannot write to test"), "the disk is full");
    }
    if (au_buf_append(&sink->bytes, bytes, len)) {
        return au_error_memory();
    }
    atomic_store(&sink->length, sink->bytes.len);
    return NULL;
}

static au_error *sink_close(au_output_sink *base)
{
    test_sink *sink = (test_sink *)base;
    atomic_fetch_add(&sink->closes, 1);
    return sink->close_fails ? au_error_create(AU_ERR_IO, 0, "cannot finish test") : NULL;
}

static apr_pool_t *pool;
static test_sink sink;
static au_output *output;

static void setup(void)
{
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
    memset(&sink, 0, sizeof sink);
    sink.base.write = sink_write;
    sink.base.close = sink_close;
}

static void teardown(void)
{
    au_buf_deinit(&sink.bytes);
    apr_pool_destroy(pool);
}

static void begin(au_output_options options)
{
    au_error *error = au_output_create(&options, &sink.base, pool, &output);
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
}

static void end_well(void)
{
    au_error *error = au_output_close(output);
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
    ck_assert_int_eq(atomic_load(&sink.closes), 1);
}

/* The n-th byte of a stream that no piece of it looks like another. */
static uint8_t pattern(uint64_t n)
{
    return (uint8_t)((n * UINT64_C(0x9E3779B97F4A7C15)) >> 56);
}

static void push_pattern(uint64_t *at, size_t len)
{
    uint8_t piece[4096];
    ck_assert_uint_le(len, sizeof piece);
    for (size_t i = 0; i < len; i++) {
        piece[i] = pattern(*at + i);
    }
    ck_assert_int_eq(au_output_push(output, piece, len), 0);
    *at += len;
}

static void is_pattern(const uint8_t *bytes, size_t len, uint64_t expected)
{
    ck_assert_uint_eq(len, expected);
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != pattern(i)) {
            ck_abort_msg("byte %zu of %zu differs", i, len);
        }
    }
}

static au_buf decompress(const au_buf *packed)
{
    au_buf out = {0};
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_inBuffer in = {packed->data, packed->len, 0};
    for (size_t before = 1; in.pos < in.size || before;) {
        ck_assert_int_eq(au_buf_reserve(&out, 65536), 0);
        ZSTD_outBuffer to = {out.data + out.len, out.cap - out.len, 0};
        ck_assert(!ZSTD_isError(ZSTD_decompressStream(context, &to, &in)));
        before = to.pos;
        out.len += to.pos;
    }
    ZSTD_freeDCtx(context);
    return out;
}

/* ---- what goes in comes out --------------------------------------------------------------------------------- */

static const struct {
    int compress, immediate;
    size_t ring;
    apr_interval_time_t nap;
} settings[] = {{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 512, 0}, {0, 1, 512, 0},   {0, 0, 512, 500},
                {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 512, 0}, {1, 1, 512, 200}, {0, 0, 1, 0}};

START_TEST(all_bytes_arrive_in_order)
{
    begin((au_output_options){
        .compress = settings[_i].compress, .immediate = settings[_i].immediate, .ring_bytes = settings[_i].ring});
    sink.nap = settings[_i].nap;
    uint64_t at = 0;
    unsigned state = 1;
    for (int i = 0; i < 400; i++) {
        state = state * 1103515245u + 12345u;
        push_pattern(&at, (state >> 16) % (settings[_i].ring == 1 ? 3 : 1500)); /* some are larger than the ring */
    }
    end_well();
    if (settings[_i].compress) {
        au_buf plain = decompress(&sink.bytes);
        is_pattern(plain.data, plain.len, at);
        au_buf_deinit(&plain);
    } else {
        is_pattern(sink.bytes.data, sink.bytes.len, at);
    }
}
END_TEST

START_TEST(nothing_is_fine)
{
    begin((au_output_options){0});
    ck_assert_int_eq(au_output_push(output, "", 0), 0);
    ck_assert_int_eq(au_output_flush(output), 0);
    end_well();
    ck_assert_uint_eq(sink.bytes.len, 0);
}
END_TEST

/* ---- when ---------------------------------------------------------------------------------------------------- */

/* Waits until the sink holds `len` bytes; how long that took. */
static apr_interval_time_t wait_for(size_t len)
{
    apr_time_t start = apr_time_now();
    while (atomic_load(&sink.length) < len) {
        ck_assert_msg(apr_time_now() - start < apr_time_from_sec(10), "nothing arrives");
        apr_sleep(500);
    }
    return apr_time_now() - start;
}

START_TEST(written_without_being_asked)
{
    begin((au_output_options){.compress = _i});
    uint64_t at = 0;
    for (int i = 0; i < 5; i++) {
        size_t before = atomic_load(&sink.length);
        push_pattern(&at, 100);
        apr_interval_time_t took = wait_for(before + 1);
        ck_assert_msg(took < apr_time_from_msec(200), "took %d ms", (int)(took / 1000));
        if (_i) { /* all that was pushed can be read now, though the frame has not ended */
            au_buf plain = decompress(&sink.bytes);
            is_pattern(plain.data, plain.len, at);
            au_buf_deinit(&plain);
        }
    }
    end_well();
}
END_TEST

START_TEST(immediate_does_not_wait_for_the_tick)
{
    begin((au_output_options){.immediate = 1, .compress = _i});
    uint64_t at = 0;
    apr_time_t start = apr_time_now();
    for (int i = 0; i < 100; i++) {
        size_t before = atomic_load(&sink.length);
        push_pattern(&at, 10);
        wait_for(before + 1);
    }
    apr_interval_time_t took = apr_time_now() - start;
    ck_assert_msg(took < apr_time_from_msec(100 * AU_OUTPUT_TICK_MS / 4), "took %d ms", (int)(took / 1000));
    end_well();
}
END_TEST

/* Once with a sink that takes its time: what comes during a write waits for the next tick like everything else. */
START_TEST(writes_are_few_when_nothing_hurries)
{
    begin((au_output_options){0});
    sink.nap = _i * 20000;
    uint64_t at = 0;
    apr_time_t start = apr_time_now();
    while (apr_time_now() - start < apr_time_from_msec(500)) {
        push_pattern(&at, 20);
        apr_sleep(100);
    }
    end_well();
    apr_interval_time_t ticks = (apr_time_now() - start) / apr_time_from_msec(AU_OUTPUT_TICK_MS);
    ck_assert_int_le((int)sink.writes,
                     (int)ticks + 2); /* of some thousand pushes; the first needs no tick, nor does the end */
    ck_assert_uint_eq(sink.bytes.len, at);
}
END_TEST

START_TEST(flush_waits_for_the_sink)
{
    begin((au_output_options){.compress = _i});
    uint64_t at = 0;
    sink.nap = 2000;
    apr_interval_time_t took = 0;
    for (int i = 0; i < 10; i++) {
        push_pattern(&at, 64);
        apr_time_t start = apr_time_now();
        ck_assert_int_eq(au_output_flush(output), 0);
        took += apr_time_now() - start;
        if (_i) {
            au_buf plain = decompress(&sink.bytes);
            is_pattern(plain.data, plain.len, at);
            au_buf_deinit(&plain);
        } else {
            ck_assert_uint_eq(atomic_load(&sink.length), at);
        }
    }
    ck_assert_msg(took < apr_time_from_msec(10 * AU_OUTPUT_TICK_MS / 2), "took %d ms", (int)(took / 1000));
    end_well();
}
END_TEST

/* ---- slow and broken sinks ------------------------------------------------------------------------------------ */

START_TEST(slow_sink_does_not_hold_the_sampler)
{
    begin((au_output_options){.ring_bytes = 65536});
    atomic_store(&sink.hangs, 1);
    uint64_t at = 0;
    apr_time_t start = apr_time_now();
    while (at + 100 <= 65536) {
        push_pattern(&at, 100);
    }
    ck_assert_int_lt((int)((apr_time_now() - start) / 1000), 1000);
    ck_assert_uint_eq(au_output_stalls(output), 0);
    atomic_store(&sink.hangs, 0);
    end_well();
    is_pattern(sink.bytes.data, sink.bytes.len, at);
}
END_TEST

START_TEST(full_ring_waits_and_counts)
{
    begin((au_output_options){.ring_bytes = 1024});
    sink.nap = 3000;
    uint64_t at = 0;
    for (int i = 0; i < 40; i++) {
        push_pattern(&at, 700); /* two do not fit: each one but the first few waits, once */
    }
    ck_assert_uint_ge(au_output_stalls(output), 30);
    ck_assert_uint_le(au_output_stalls(output), 40);
    uint64_t before = au_output_stalls(output);
    push_pattern(&at, 4096); /* has to wait again and again, and is one stall all the same */
    ck_assert_uint_eq(au_output_stalls(output), before + 1);
    end_well();
    is_pattern(sink.bytes.data, sink.bytes.len, at);
}
END_TEST

START_TEST(write_error_is_told)
{
    begin((au_output_options){.ring_bytes = 1024, .compress = _i & 1, .immediate = _i >> 1});
    sink.fail_at = 5000;
    uint8_t noise[256];
    unsigned state = 7;
    int taken = 0;
    apr_time_t start = apr_time_now();
    for (int failed = 0; !failed; taken++) {
        for (size_t i = 0; i < sizeof noise; i++) {
            state = state * 1103515245u + 12345u;
            noise[i] = (uint8_t)(state >> 16);
        }
        failed = au_output_push(output, noise, sizeof noise);
        ck_assert(apr_time_now() - start < apr_time_from_sec(20));
    }
    ck_assert_int_gt(taken, 5000 / 256 - 5);
    ck_assert_int_ne(au_output_push(output, noise, sizeof noise), 0);
    ck_assert_int_ne(au_output_flush(output), 0);
    au_error *error = au_output_close(output);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, AU_ERR_IO);
    ck_assert_str_eq(error->message, "cannot write to test");
    ck_assert_str_eq(error->cause, "the disk is full");
    au_error_clear(error);
    ck_assert_int_eq(atomic_load(&sink.closes), 1);
    ck_assert_uint_le(sink.bytes.len, 5000);
}
END_TEST

START_TEST(error_at_the_very_end_is_told)
{
    begin((au_output_options){.compress = _i});
    sink.close_fails = 1;
    ck_assert_int_eq(au_output_push(output, "abc", 3), 0);
    au_error *error = au_output_close(output);
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->message, "cannot finish test");
    au_error_clear(error);
}
END_TEST

static int patience; /* how many times the user still waits */

static int user_gives_up(void *baton)
{
    (void)baton;
    return patience-- <= 0;
}

/* Leaves a thread and memory behind, as said in output.h; so it is not run where leaks are looked for in one process.
 */
START_TEST(hanging_sink_can_be_left)
{
    begin((au_output_options){.ring_bytes = 512, .give_up = user_gives_up});
    patience = 2;
    atomic_store(&sink.hangs, 1);
    uint8_t bytes[512] = {0};
    int refused = 0;
    apr_time_t start = apr_time_now();
    for (int i = 0; i < 10 && !refused; i++) {
        refused = au_output_push(output, bytes, sizeof bytes);
    }
    ck_assert_int_ne(refused, 0);
    au_error *error = au_output_close(output);
    ck_assert_int_lt((int)((apr_time_now() - start) / 1000), 2000);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, AU_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error->message, "gave up"));
    au_error_clear(error);
    /* Let the thread run out, so that the fixture may take the sink away. */
    atomic_store(&sink.hangs, 0);
    while (atomic_load(&sink.closes) == 0) {
        apr_sleep(1000);
    }
    apr_sleep(50000);
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------------------------- */

static const char old_profile[] = "a profile of old";

/* The path of a file that is not there. */
static char *free_path(void)
{
    const char *folder;
    apr_file_t *file;
    ck_assert_int_eq(apr_temp_dir_get(&folder, pool), APR_SUCCESS);
    char *path = apr_pstrcat(pool, folder, "/austin-XXXXXX", NULL);
    ck_assert_int_eq(apr_file_mktemp(&file, path, APR_FOPEN_CREATE | APR_FOPEN_EXCL | APR_FOPEN_WRITE, pool),
                     APR_SUCCESS);
    apr_file_close(file);
    ck_assert_int_eq(apr_file_remove(path, pool), APR_SUCCESS);
    return path;
}

static void write_to(const char *path, const char *text, apr_int32_t how)
{
    apr_file_t *file;
    ck_assert_int_eq(apr_file_open(&file, path, APR_FOPEN_WRITE | APR_FOPEN_CREATE | how, APR_FPROT_OS_DEFAULT, pool),
                     APR_SUCCESS);
    ck_assert_int_eq(apr_file_write_full(file, text, strlen(text), NULL), APR_SUCCESS);
    apr_file_close(file);
}

static char *content_of(const char *path, apr_size_t *length)
{
    char *text = apr_pcalloc(pool, 1000);
    apr_file_t *file;
    *length = 0;
    if (apr_file_open(&file, path, APR_FOPEN_READ | APR_FOPEN_BINARY, APR_FPROT_OS_DEFAULT, pool) != APR_SUCCESS) {
        return NULL;
    }
    (void)apr_file_read_full(file, text, 999, length);
    apr_file_close(file);
    return text;
}

static void open_and_begin(const char *path, int compress, au_output_sink **file)
{
    au_error *error = au_output_sink_open(path, pool, file);
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
    error = au_output_create(&(au_output_options){.compress = compress}, *file, pool, &output);
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
}

static void finish(void)
{
    au_error *error = au_output_close(output);
    ck_assert_msg(error == NULL, "%s: %s", error ? error->message : "", error ? error->cause : "");
}

/* A run that came to nothing has not touched the file, plain or compressed. */
START_TEST(old_profile_stays)
{
    char *path = free_path();
    apr_size_t length;
    au_output_sink *file;
    write_to(path, old_profile, 0);
    open_and_begin(path, _i, &file);
    ck_assert(file->occupied);
    finish();
    ck_assert_str_eq(content_of(path, &length), old_profile);
    apr_file_remove(path, pool);
}
END_TEST

START_TEST(old_profile_makes_way)
{
    char *path = free_path();
    apr_size_t length;
    au_output_sink *file;
    write_to(path, old_profile, 0);
    open_and_begin(path, _i, &file);
    ck_assert_ptr_null(au_output_sink_keep(file));
    ck_assert_int_eq(au_output_push(output, "new", 3), 0);
    finish();
    char *text = content_of(path, &length);
    if (_i) {
        au_buf packed = {(uint8_t *)text, length, length};
        au_buf plain = decompress(&packed);
        ck_assert_uint_eq(plain.len, 3);
        ck_assert_int_eq(memcmp(plain.data, "new", 3), 0);
        au_buf_deinit(&plain);
    } else {
        ck_assert_str_eq(text, "new");
    }
    apr_file_remove(path, pool);
}
END_TEST

/* Neither there before: gone again; there and empty: empty again. */
START_TEST(what_is_not_kept_is_taken_back)
{
    char *path = free_path();
    apr_size_t length;
    au_output_sink *file;
    if (_i & 1) {
        write_to(path, "", 0);
    }
    open_and_begin(path, _i >> 1, &file);
    ck_assert(!file->occupied);
    ck_assert_int_eq(au_output_push(output, "the start of a stream", 21), 0);
    ck_assert_int_eq(au_output_flush(output), 0);
    ck_assert_ptr_nonnull(content_of(path, &length));
    ck_assert_uint_gt(length, 0);
    finish();
    ck_assert_int_eq(content_of(path, &length) != NULL, _i & 1);
    ck_assert_uint_eq(length, 0);
    if (_i & 1) {
        apr_file_remove(path, pool);
    }
}
END_TEST

START_TEST(what_others_did_is_left_alone)
{
    char *path = free_path();
    apr_size_t length;
    au_output_sink *file;
    open_and_begin(path, 0, &file);
    if (_i && strcmp(au_platform_sys()->ops->name, "windows") == 0) {
        printf("app: NOT RUN: a file that is open keeps its name there\n");
        finish();
        return;
    }
    if (_i) { /* another file has the name now */
        ck_assert_int_eq(apr_file_remove(path, pool), APR_SUCCESS);
    }
    write_to(path, "words of others", APR_FOPEN_APPEND);
    finish();
    ck_assert_str_eq(content_of(path, &length), "words of others");
    apr_file_remove(path, pool);
}
END_TEST

START_TEST(folder_is_no_file)
{
    const char *folder;
    au_output_sink *file;
    ck_assert_int_eq(apr_temp_dir_get(&folder, pool), APR_SUCCESS);
    au_error *error = au_output_sink_open(folder, pool, &file);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, AU_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error->message, folder));
    ck_assert_ptr_nonnull(error->hint);
    au_error_clear(error);
}
END_TEST

START_TEST(current_folder_is_gone)
{
    char *path = free_path(), *before;
    au_output_sink *file;
    ck_assert_int_eq(apr_filepath_get(&before, 0, pool), APR_SUCCESS);
    ck_assert_int_eq(apr_dir_make(path, APR_FPROT_OS_DEFAULT, pool), APR_SUCCESS);
    ck_assert_int_eq(apr_filepath_set(path, pool), APR_SUCCESS);
    apr_status_t removed = apr_dir_remove(path, pool);
    au_error *relative = removed ? NULL : au_output_sink_open("a.mojo", pool, &file);
    au_error *absolute = removed ? NULL : au_output_sink_open(apr_pstrcat(pool, path, "/a", NULL), pool, &file);
    ck_assert_int_eq(apr_filepath_set(before, pool), APR_SUCCESS);
    if (removed) {
        puts("SKIP: output: the current folder is gone: this system keeps it");
        apr_dir_remove(path, pool);
        return;
    }
    ck_assert_ptr_nonnull(relative);
    ck_assert_ptr_nonnull(strstr(relative->cause, "current folder"));
    ck_assert_ptr_nonnull(strstr(relative->hint, "absolute path"));
    ck_assert_ptr_nonnull(absolute);
    ck_assert_ptr_nonnull(strstr(absolute->hint, "create the folder"));
    au_error_clear(relative);
    au_error_clear(absolute);
}
END_TEST

Suite *au_output_suite(void)
{
    Suite *suite = suite_create("output");
    TCase *group = tcase_create("output");
    tcase_set_timeout(group, 60);
    tcase_add_checked_fixture(group, setup, teardown);
    tcase_add_loop_test(group, all_bytes_arrive_in_order, 0, (int)(sizeof settings / sizeof settings[0]));
    tcase_add_test(group, nothing_is_fine);
    tcase_add_loop_test(group, written_without_being_asked, 0, 2);
    tcase_add_loop_test(group, immediate_does_not_wait_for_the_tick, 0, 2);
    tcase_add_loop_test(group, writes_are_few_when_nothing_hurries, 0, 2);
    tcase_add_loop_test(group, flush_waits_for_the_sink, 0, 2);
    tcase_add_test(group, slow_sink_does_not_hold_the_sampler);
    tcase_add_test(group, full_ring_waits_and_counts);
    tcase_add_loop_test(group, write_error_is_told, 0, 4);
    tcase_add_loop_test(group, error_at_the_very_end_is_told, 0, 2);
    tcase_add_loop_test(group, old_profile_stays, 0, 2);
    tcase_add_loop_test(group, old_profile_makes_way, 0, 2);
    tcase_add_loop_test(group, what_is_not_kept_is_taken_back, 0, 4);
    tcase_add_loop_test(group, what_others_did_is_left_alone, 0, 2);
    tcase_add_test(group, folder_is_no_file);
    tcase_add_test(group, current_folder_is_gone);
#ifdef __SANITIZE_THREAD__
    (void)hanging_sink_can_be_left;
    puts("SKIP: output: a hanging sink can be left: ThreadSanitizer takes what is left behind for a race");
#else
    tcase_add_test(group, hanging_sink_can_be_left);
#endif
    suite_add_tcase(suite, group);
    return suite;
}
