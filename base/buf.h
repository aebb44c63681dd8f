/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A byte buffer that grows by doubling and is reset, not freed, between uses: the arena of one sample, one event, one
 * copy of remote memory. Growing is the only place that allocates, so once a buffer has its working size it costs
 * nothing. Not thread-safe.
 */
#ifndef AU_BASE_BUF_H
#define AU_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

typedef struct au_buf {
    uint8_t *data; /**< owned; NULL until the first growth */
    size_t len;    /**< bytes in use */
    size_t cap;    /**< bytes allocated */
} au_buf;

/** Frees the memory; the buffer is empty and usable again. */
void au_buf_deinit(au_buf *buf);

/** Makes room for `more` further bytes. 0 on success, -1 when there is no memory (the buffer is unchanged). */
int au_buf_reserve(au_buf *buf, size_t more);

/** Appends. 0 on success, -1 when there is no memory. */
int au_buf_append(au_buf *buf, const void *bytes, size_t len);

static inline void au_buf_reset(au_buf *buf)
{
    buf->len = 0;
}

#endif
