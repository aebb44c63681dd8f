/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/text.h"

#include <string.h>

static uint32_t char_at(const uint8_t *chars, size_t i, unsigned width)
{
    const uint8_t *p = chars + i * width;
    switch (width) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)p[0] | (uint32_t)p[1] << 8;
    default:
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    }
}

/* One character as it goes out; at most 7 bytes. */
static size_t encode(uint32_t c, uint8_t out[8])
{
    if (c == 0 || c == 0xfffd || (c >= 0xd800 && c < 0xe000)) {
        static const char digits[] = "0123456789ABCDEF";
        out[0] = 0xef;
        out[1] = 0xbf;
        out[2] = 0xbd;
        for (int i = 0; i < 4; i++) {
            out[3 + i] = (uint8_t)digits[c >> (12 - 4 * i) & 15];
        }
        return 7;
    }
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 63));
        out[2] = (uint8_t)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 63));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 63));
    out[3] = (uint8_t)(0x80 | (c & 63));
    return 4;
}

int au_text_append(au_buf *out, const uint8_t *chars, size_t count, unsigned width, int pairs, int more)
{
    static const uint8_t ellipsis[3] = {0xe2, 0x80, 0xa6};
    size_t start = out->len;
    size_t cut = start; /* where the text ends if an ellipsis has to follow */
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[8];
        uint32_t c = char_at(chars, i, width);
        if (pairs && c >> 10 == 0xd800 >> 10 && i + 1 < count && char_at(chars, i + 1, width) >> 10 == 0xdc00 >> 10) {
            c = 0x10000 + ((c & 0x3ff) << 10 | (char_at(chars, ++i, width) & 0x3ff));
        }
        if (c > 0x10ffff) {
            out->len = start;
            return -2;
        }
        size_t n = encode(c, bytes);
        if (out->len - start + n > AU_TEXT_MAX) {
            more = 1;
            break;
        }
        if (au_buf_append(out, bytes, n)) {
            out->len = start;
            return -1;
        }
        if (out->len - start + sizeof ellipsis <= AU_TEXT_MAX) {
            cut = out->len;
        }
    }
    if (more) {
        out->len = cut;
        if (au_buf_append(out, ellipsis, sizeof ellipsis)) {
            out->len = start;
            return -1;
        }
    }
    return 0;
}
