/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/mojo_input.h"
#include "format/mojo_zstd.h"
#include "tests/format/dump.h"
#include "tests/format/suites.h"

static au_error *collect(void *context, const void *bytes, size_t len)
{
    MUST(len > 0);
    return au_buf_append(context, bytes, len) ? au_error_memory() : NULL;
}

/* Takes bytes in pieces; what comes out is appended. */
static int take(const uint8_t *bytes, size_t len, size_t piece, au_buf *out)
{
    au_mojo_input *input = au_mojo_input_create(collect, out);
    ck_assert_ptr_nonnull(input);
    for (size_t at = 0; at < len; at += piece) {
        MUST(!au_mojo_input_push(input, bytes + at, len - at < piece ? len - at : piece));
    }
    int unfinished;
    ck_assert_ptr_null(au_mojo_input_finish(input, &unfinished));
    au_mojo_input_destroy(input);
    return unfinished;
}

static void fill(au_buf *buf, size_t len)
{
    uint32_t state = 1;
    for (size_t i = 0; i < len; i++) {
        state = state * 1664525 + 1013904223;
        uint8_t byte = (uint8_t)(i % 7 ? i / 5 : state >> 24);
        MUST(au_buf_append(buf, &byte, 1) == 0);
    }
}

static const size_t pieces[] = {1, 2, 3, 5, 1000, 65536, 10000000};
enum { PIECES = sizeof pieces / sizeof pieces[0] };

START_TEST(plain_bytes_pass)
{
    static const size_t lengths[] = {0, 1, 3, 4, 5, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        au_buf plain = {0}, out = {0};
        fill(&plain, lengths[i]);
        ck_assert_int_eq(take(plain.data, plain.len, pieces[_i], &out), 0);
        ck_assert_uint_eq(out.len, plain.len);
        ck_assert(!out.len || memcmp(out.data, plain.data, out.len) == 0);
        au_buf_deinit(&plain);
        au_buf_deinit(&out);
    }
}
END_TEST

START_TEST(frames_follow_each_other)
{
    static const size_t lengths[] = {0, 1, 200000, 3};
    au_buf plain = {0}, packed = {0}, out = {0};
    au_mojo_zstd *zstd = au_mojo_zstd_create(3);
    ck_assert_ptr_nonnull(zstd);
    for (size_t i = 0; i < 4; i++) {
        size_t from = plain.len;
        fill(&plain, lengths[i]);
        ck_assert_ptr_null(au_mojo_zstd_push(zstd, plain.data + from, lengths[i], &packed));
        ck_assert_ptr_null(au_mojo_zstd_end(zstd, &packed));
        /* A skippable frame between two. */
        ck_assert_int_eq(au_buf_append(&packed, "\x53\x2a\x4d\x18\3\0\0\0abc", 11), 0);
    }
    au_mojo_zstd_destroy(zstd);
    ck_assert_uint_lt(packed.len, plain.len);
    ck_assert_int_eq(take(packed.data, packed.len, pieces[_i], &out), 0);
    ck_assert_uint_eq(out.len, plain.len);
    ck_assert_int_eq(memcmp(out.data, plain.data, out.len), 0);
    au_buf_deinit(&plain);
    au_buf_deinit(&packed);
    au_buf_deinit(&out);
}
END_TEST

START_TEST(all_that_was_flushed_comes_out)
{
    au_buf plain = {0}, packed = {0};
    fill(&plain, 100000);
    au_mojo_zstd *zstd = au_mojo_zstd_create(1);
    for (size_t at = 0; at < plain.len; at += 10000) {
        ck_assert_ptr_null(au_mojo_zstd_push(zstd, plain.data + at, 10000, &packed));
        ck_assert_ptr_null(au_mojo_zstd_flush(zstd, &packed));
        au_buf out = {0};
        ck_assert_int_eq(take(packed.data, packed.len, pieces[_i], &out), 1);
        ck_assert_uint_eq(out.len, at + 10000);
        ck_assert_int_eq(memcmp(out.data, plain.data, out.len), 0);
        au_buf_deinit(&out);
    }
    /* Killed at any byte: a beginning, and it is told. */
    for (size_t len = 4; len < packed.len; len += packed.len / 100) {
        au_buf out = {0};
        ck_assert_int_eq(take(packed.data, len, 1 << 16, &out), 1);
        ck_assert_uint_le(out.len, plain.len);
        ck_assert(!out.len || memcmp(out.data, plain.data, out.len) == 0);
        au_buf_deinit(&out);
    }
    au_mojo_zstd_destroy(zstd);
    au_buf_deinit(&plain);
    au_buf_deinit(&packed);
}
END_TEST

START_TEST(broken_frames_are_named)
{
    au_buf plain = {0}, packed = {0}, out = {0};
    fill(&plain, 100000);
    au_mojo_zstd *zstd = au_mojo_zstd_create(99); /* brought into range */
    ck_assert_ptr_null(au_mojo_zstd_push(zstd, plain.data, plain.len, &packed));
    ck_assert_ptr_null(au_mojo_zstd_end(zstd, &packed));
    au_mojo_zstd_destroy(zstd);
    packed.data[packed.len - 1] ^= 1; /* the checksum */
    au_mojo_input *input = au_mojo_input_create(collect, &out);
    au_error *error = au_mojo_input_push(input, packed.data, packed.len);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, AU_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error->message, "of the compressed input"));
    ck_assert_ptr_nonnull(error->cause);
    ck_assert_int_eq(au_mojo_input_is_compressed(input), 1);
    au_error_clear(error);
    au_mojo_input_destroy(input);
    /* Plain bytes behind a frame are no frame. */
    packed.data[packed.len - 1] ^= 1;
    ck_assert_int_eq(au_buf_append(&packed, "MOJ\4", 4), 0);
    input = au_mojo_input_create(collect, &out);
    error = au_mojo_input_push(input, packed.data, packed.len);
    ck_assert_ptr_nonnull(error);
    au_error_clear(error);
    au_mojo_input_destroy(input);
    au_buf_deinit(&plain);
    au_buf_deinit(&packed);
    au_buf_deinit(&out);
}
END_TEST

static au_error *refuse(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return au_error_create(AU_ERR_VALUE, 0, "enough");
}

START_TEST(an_error_of_the_sink_comes_out)
{
    au_mojo_input *input = au_mojo_input_create(refuse, NULL);
    ck_assert_ptr_null(au_mojo_input_push(input, "MOJ", 3)); /* may still be anything */
    au_error *error = au_mojo_input_push(input, "\4", 1);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->code, AU_ERR_VALUE);
    au_error_clear(error);
    au_mojo_input_destroy(input);
}
END_TEST

Suite *input_suite(void)
{
    Suite *suite = suite_create("input");
    TCase *tests = tcase_create("input");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, plain_bytes_pass, 0, PIECES);
    tcase_add_loop_test(tests, frames_follow_each_other, 0, PIECES);
    tcase_add_loop_test(tests, all_that_was_flushed_comes_out, 0, PIECES);
    tcase_add_test(tests, broken_frames_are_named);
    tcase_add_test(tests, an_error_of_the_sink_comes_out);
    suite_add_tcase(suite, tests);
    return suite;
}
