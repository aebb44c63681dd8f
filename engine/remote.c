/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "engine/internal.h"

au_outcome au__read(const au_remote *r, au_addr addr, void *buf, size_t len)
{
    return r->ops->read(r->proc, addr, buf, len);
}

au_outcome au__read_u64(const au_remote *r, au_addr addr, uint64_t *out)
{
    uint8_t bytes[8];
    au_outcome outcome = r->ops->read(r->proc, addr, bytes, sizeof bytes);
    if (outcome == AU_OK) {
        *out = au__u64(bytes);
    }
    return outcome;
}

au_outcome au__read_u32(const au_remote *r, au_addr addr, uint32_t *out)
{
    uint8_t bytes[4];
    au_outcome outcome = r->ops->read(r->proc, addr, bytes, sizeof bytes);
    if (outcome == AU_OK) {
        *out = au__u32(bytes);
    }
    return outcome;
}

int au__grow_to(void *array, size_t *cap, size_t need, size_t size, au_stats *stats)
{
    size_t more = *cap ? *cap : 16;
    while (more < need) {
        if (more > SIZE_MAX / 2 / size) {
            return -1;
        }
        more *= 2;
    }
    void *old;
    memcpy(&old, array, sizeof old);
    void *grown = realloc(old, more * size);
    if (!grown) {
        return -1;
    }
    memcpy(array, &grown, sizeof grown);
    *cap = more;
    stats->arena_growths++;
    return 0;
}
