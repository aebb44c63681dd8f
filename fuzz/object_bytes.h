/* SPDX-License-Identifier: Apache-2.0 */
/** @file The input of a fuzz target as the source of an object file, whole or in small portions. */
#ifndef AU_FUZZ_OBJECT_BYTES_H
#define AU_FUZZ_OBJECT_BYTES_H

#include <stdint.h>
#include <string.h>

#include "objfile/objfile.h"

typedef struct bytes {
    const uint8_t *data;
    size_t len;
    int small;
} bytes;

static int read_bytes(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    const bytes *from = baton;
    if (offset >= from->len) {
        *got = 0;
        return -1;
    }
    *got = from->len - offset < len ? (size_t)(from->len - offset) : len;
    if (from->small && *got > 100) {
        *got = 100;
    }
    memcpy(buf, from->data + offset, *got);
    return 0;
}

#endif
