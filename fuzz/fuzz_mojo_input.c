/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an input that may be compressed. What must hold: the cut into pieces changes nothing, plain bytes come
 * out as they went in, and what our own compressor makes of the bytes comes back, flushed and ended.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/mojo_input.h"
#include "format/mojo_zstd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A small frame can stand for gigabytes; the time of a fuzzer is for other things. */
enum { ENOUGH = 4 * 1024 * 1024 };

static au_error *collect(void *context, const void *bytes, size_t len)
{
    au_buf *out = context;
    if (len == 0) {
        abort();
    }
    if (out->len + len > ENOUGH) {
        return au_error_create(AU_ERR_VALUE, 0, "enough");
    }
    return au_buf_append(out, bytes, len) ? au_error_memory() : NULL;
}

/* 0: whole, 1: unfinished, 2: an error. */
static int take(const uint8_t *data, size_t size, size_t piece, au_buf *out)
{
    au_mojo_input *input = au_mojo_input_create(collect, out);
    au_error *error = input ? NULL : au_error_memory();
    for (size_t at = 0; at < size && !error; at += piece) {
        error = au_mojo_input_push(input, data + at, size - at < piece ? size - at : piece);
    }
    int unfinished = 0;
    if (!error) {
        error = au_mojo_input_finish(input, &unfinished);
    }
    int result = error ? 2 : unfinished;
    if (!error && !au_mojo_input_is_compressed(input) &&
        (out->len != size || (size && memcmp(out->data, data, size) != 0))) {
        abort();
    }
    au_error_clear(error);
    au_mojo_input_destroy(input);
    return result;
}

static void must_come_back(const uint8_t *data, size_t size)
{
    au_buf packed = {0}, out = {0};
    au_mojo_zstd *zstd = au_mojo_zstd_create(1);
    if (!zstd || au_mojo_zstd_push(zstd, data, size, &packed) || au_mojo_zstd_flush(zstd, &packed)) {
        abort();
    }
    int flushed = take(packed.data, packed.len, 4096, &out);
    if (flushed == 2 || out.len != size || (size && memcmp(out.data, data, size) != 0)) {
        abort();
    }
    au_buf_reset(&out);
    if (au_mojo_zstd_end(zstd, &packed) || take(packed.data, packed.len, 7, &out) != 0 || out.len != size) {
        abort();
    }
    au_mojo_zstd_destroy(zstd);
    au_buf_deinit(&packed);
    au_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    au_buf whole = {0}, pieces = {0};
    int first = take(data, size, size ? size : 1, &whole);
    int second = take(data, size, 1 + (size ? data[size - 1] % 13U : 0), &pieces);
    if (first != second ||
        (first != 2 && (whole.len != pieces.len || (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0)))) {
        abort();
    }
    au_buf_deinit(&whole);
    au_buf_deinit(&pieces);
    must_come_back(data, size);
    return 0;
}
