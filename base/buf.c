/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

void au_buf_deinit(au_buf *buf)
{
    free(buf->data);
    buf->data = NULL;
    buf->len = buf->cap = 0;
}

int au_buf_reserve(au_buf *buf, size_t more)
{
    if (buf->cap - buf->len >= more) {
        return 0;
    }
    if (more > SIZE_MAX - buf->len) {
        return -1;
    }
    size_t need = buf->len + more;
    size_t cap = buf->cap ? buf->cap : 256;
    while (cap < need) {
        if (cap > SIZE_MAX / 2) {
            cap = need;
            break;
        }
        cap *= 2;
    }
    uint8_t *data = realloc(buf->data, cap);
    if (!data) {
        return -1;
    }
    buf->data = data;
    buf->cap = cap;
    return 0;
}

int au_buf_append(au_buf *buf, const void *bytes, size_t len)
{
    if (au_buf_reserve(buf, len)) {
        return -1;
    }
    if (len) {
        memcpy(buf->data + buf->len, bytes, len);
    }
    buf->len += len;
    return 0;
}
