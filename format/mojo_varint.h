/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The varint of MOJO (docs/format.md, "Varints"): sign and magnitude, lowest bits first. The first byte holds "more",
 * the sign and six bits of the value, every later byte holds "more" and seven bits.
 *
 * Inside the room only. No state, any thread.
 */
#ifndef AU_FORMAT_MOJO_VARINT_H
#define AU_FORMAT_MOJO_VARINT_H

#include <stddef.h>
#include <stdint.h>

/** 64 bits of magnitude need one byte of six bits and nine of seven. */
enum { AU__VARINT_MAX = 10 };

/** Writes at most AU__VARINT_MAX bytes to `out`; returns how many. */
static inline size_t au__varint_put(uint8_t *out, uint64_t magnitude, int negative)
{
    size_t n = 0;
    uint8_t byte = (uint8_t)((magnitude & 0x3f) | (negative ? 0x40 : 0));
    magnitude >>= 6;
    while (magnitude) {
        out[n++] = byte | 0x80;
        byte = (uint8_t)(magnitude & 0x7f);
        magnitude >>= 7;
    }
    out[n++] = byte;
    return n;
}

/** The magnitude of a signed number, also of INT64_MIN. */
static inline uint64_t au__magnitude(int64_t value)
{
    return value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
}

typedef enum au__varint_status {
    AU__VARINT_OK,
    AU__VARINT_SHORT,   /**< the bytes end before the number does */
    AU__VARINT_TOO_LONG /**< more than AU__VARINT_MAX bytes */
} au__varint_status;

typedef struct au__varint {
    uint64_t magnitude;
    uint8_t length;    /**< bytes taken */
    uint8_t negative;  /**< the sign bit; may be set on zero */
    uint8_t canonical; /**< no needless byte and no negative zero */
    uint8_t overflow;  /**< more than 64 bits (ten bytes can hold 69): the magnitude is UINT64_MAX */
} au__varint;

static inline au__varint_status au__varint_get(const uint8_t *bytes, size_t available, au__varint *out)
{
    if (available == 0) {
        return AU__VARINT_SHORT;
    }
    uint8_t byte = bytes[0];
    uint64_t magnitude = byte & 0x3f;
    unsigned shift = 6;
    size_t n = 1;
    out->negative = (byte & 0x40) != 0;
    out->overflow = 0;
    while (byte & 0x80) {
        if (n == AU__VARINT_MAX) {
            return AU__VARINT_TOO_LONG;
        }
        if (n == available) {
            return AU__VARINT_SHORT;
        }
        byte = bytes[n++];
        uint64_t bits = byte & 0x7f;
        if (shift > 57 && (bits >> (64 - shift)) != 0) {
            out->overflow = 1;
        }
        magnitude |= bits << shift;
        shift += 7;
    }
    out->magnitude = out->overflow ? UINT64_MAX : magnitude;
    out->length = (uint8_t)n;
    out->canonical = !(n > 1 && byte == 0) && !(out->negative && magnitude == 0);
    return AU__VARINT_OK;
}

#endif
