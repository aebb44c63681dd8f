/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/maps. The first byte of the input, times 16, is how much one read gives (0: all). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "platform/linux/maps.h"

typedef struct bytes {
    const uint8_t *at;
    size_t left, portion;
} bytes;

static long read_bytes(void *baton, void *buf, size_t len)
{
    bytes *from = baton;
    size_t take = from->left < len ? from->left : len;
    if (from->portion && take > from->portion) {
        take = from->portion;
    }
    memcpy(buf, from->at, take);
    from->at += take;
    from->left -= take;
    return (long)take;
}

static int look(void *baton, const au__maps_line *line)
{
    size_t *seen = baton;
    ++*seen;
    if (line->start >= line->end || (line->path && (line->path[0] == 0 || strlen(line->path) > 65536))) {
        abort();
    }
    if (line->inode && au__maps_file_id(line) == 0) {
        abort();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    bytes from = {data + 1, size - 1, (size_t)data[0] * 16};
    size_t seen = 0, lines = 0;
    if (au__maps_each(read_bytes, &from, look, &seen, &lines) != 0 || seen != lines) {
        abort();
    }
    return 0;
}
