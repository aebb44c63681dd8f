/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MAGIC_BYTES = 4 };

typedef enum input_kind { KIND_UNKNOWN, KIND_PLAIN, KIND_ZSTD } input_kind;

struct au_mojo_input {
    au_mojo_sink sink;
    void *context;
    input_kind kind;
    uint8_t first[MAGIC_BYTES]; /* until the kind is known */
    size_t first_len;
    uint64_t taken; /* bytes of the input */
    ZSTD_DStream *stream;
    int inside; /* a frame has begun and is not whole */
    uint8_t *out;
    size_t out_size;
};

au_mojo_input *au_mojo_input_create(au_mojo_sink sink, void *context)
{
    au_mojo_input *input = calloc(1, sizeof *input);
    if (input) {
        input->sink = sink;
        input->context = context;
    }
    return input;
}

void au_mojo_input_destroy(au_mojo_input *input)
{
    if (input) {
        ZSTD_freeDStream(input->stream);
        free(input->out);
        free(input);
    }
}

int au_mojo_input_is_compressed(const au_mojo_input *input)
{
    return input->kind == KIND_ZSTD;
}

static int is_zstd(const uint8_t *first)
{
    uint32_t magic = (uint32_t)first[0] | (uint32_t)first[1] << 8 | (uint32_t)first[2] << 16 | (uint32_t)first[3] << 24;
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static au_error *decompress(au_mojo_input *input, const void *bytes, size_t len)
{
    ZSTD_inBuffer in = {.src = bytes, .size = len, .pos = 0};
    uint64_t start = input->taken;
    input->taken += len;
    int full = 0; /* the output was filled, so the decompressor may hold more */
    while (in.pos < in.size || full) {
        ZSTD_outBuffer out = {.dst = input->out, .size = input->out_size, .pos = 0};
        size_t before = in.pos;
        size_t status = ZSTD_decompressStream(input->stream, &out, &in);
        if (ZSTD_isError(status)) {
            return au_error_cause(au_error_create(AU_ERR_IO, 0,
                                                  "the zstd frame cannot be read on at byte %" PRIu64
                                                  " of the compressed input",
                                                  start + in.pos),
                                  "%s", ZSTD_getErrorName(status));
        }
        /* 0: the frame is whole and all of it is out. Only bytes taken since then begin another one. */
        input->inside = status != 0 && (input->inside || in.pos > before);
        if (out.pos) {
            au_error *error = input->sink(input->context, input->out, out.pos);
            if (error) {
                return error;
            }
        }
        full = out.pos == out.size;
        if (in.pos == before && !out.pos) {
            break;
        }
    }
    return NULL;
}

static au_error *hand_on(au_mojo_input *input, const void *bytes, size_t len)
{
    if (input->kind == KIND_ZSTD) {
        return decompress(input, bytes, len);
    }
    input->taken += len;
    return len ? input->sink(input->context, bytes, len) : NULL;
}

static au_error *decide(au_mojo_input *input)
{
    if (input->first_len == MAGIC_BYTES && is_zstd(input->first)) {
        input->stream = ZSTD_createDStream();
        input->out_size = ZSTD_DStreamOutSize();
        input->out = malloc(input->out_size);
        if (!input->stream || !input->out) {
            return au_error_memory();
        }
        input->kind = KIND_ZSTD;
    } else {
        input->kind = KIND_PLAIN;
    }
    return hand_on(input, input->first, input->first_len);
}

au_error *au_mojo_input_push(au_mojo_input *input, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    while (input->kind == KIND_UNKNOWN && len) {
        input->first[input->first_len++] = *at++;
        len--;
        if (input->first_len == MAGIC_BYTES) {
            au_error *error = decide(input);
            if (error) {
                return error;
            }
        }
    }
    return len ? hand_on(input, at, len) : NULL;
}

au_error *au_mojo_input_finish(au_mojo_input *input, int *unfinished)
{
    au_error *error = input->kind == KIND_UNKNOWN ? decide(input) : NULL;
    *unfinished = input->inside;
    return error;
}
