/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_zstd.h"

#include <stdlib.h>
#include <zstd.h>

struct au_mojo_zstd {
    ZSTD_CCtx *context;
    size_t room; /* what a step wants to have free in the output */
};

au_mojo_zstd *au_mojo_zstd_create(int level)
{
    au_mojo_zstd *zstd = calloc(1, sizeof *zstd);
    if (!zstd) {
        return NULL;
    }
    zstd->context = ZSTD_createCCtx();
    zstd->room = ZSTD_CStreamOutSize();
    if (level < ZSTD_minCLevel()) {
        level = ZSTD_minCLevel();
    } else if (level > ZSTD_maxCLevel()) {
        level = ZSTD_maxCLevel();
    }
    if (!zstd->context || ZSTD_isError(ZSTD_CCtx_setParameter(zstd->context, ZSTD_c_compressionLevel, level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(zstd->context, ZSTD_c_checksumFlag, 1))) {
        au_mojo_zstd_destroy(zstd);
        return NULL;
    }
    return zstd;
}

void au_mojo_zstd_destroy(au_mojo_zstd *zstd)
{
    if (zstd) {
        ZSTD_freeCCtx(zstd->context);
        free(zstd);
    }
}

static au_error *run(au_mojo_zstd *zstd, const void *bytes, size_t len, au_buf *out, ZSTD_EndDirective directive)
{
    ZSTD_inBuffer in = {.src = bytes, .size = len, .pos = 0};
    for (;;) {
        if (au_buf_reserve(out, zstd->room)) {
            return au_error_memory();
        }
        ZSTD_outBuffer piece = {.dst = out->data + out->len, .size = out->cap - out->len, .pos = 0};
        size_t left = ZSTD_compressStream2(zstd->context, &piece, &in, directive);
        out->len += piece.pos;
        if (ZSTD_isError(left)) {
            return au_error_cause(au_error_create(AU_ERR_IO, 0, "the stream cannot be compressed"), "%s",
                                  ZSTD_getErrorName(left));
        }
        if (directive == ZSTD_e_continue ? in.pos == in.size : left == 0) {
            return NULL;
        }
    }
}

au_error *au_mojo_zstd_push(au_mojo_zstd *zstd, const void *bytes, size_t len, au_buf *out)
{
    return len ? run(zstd, bytes, len, out, ZSTD_e_continue) : NULL;
}

au_error *au_mojo_zstd_flush(au_mojo_zstd *zstd, au_buf *out)
{
    return run(zstd, NULL, 0, out, ZSTD_e_flush);
}

au_error *au_mojo_zstd_end(au_mojo_zstd *zstd, au_buf *out)
{
    return run(zstd, NULL, 0, out, ZSTD_e_end);
}
