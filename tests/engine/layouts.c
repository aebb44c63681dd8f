/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/layouts.h"

enum { BUILDS_MAX = 35 };

typedef struct layout_row {
    const char *name;
    int16_t place[3]; /* in the tables of 3.13, 3.14, 3.15 */
    int32_t value[BUILDS_MAX];
} layout_row;

#include "tests/engine/data/layouts.inc"

_Static_assert((int)LAYOUT_BUILDS <= (int)BUILDS_MAX, "a row is too short");

int layout_count(void)
{
    return LAYOUT_BUILDS;
}

const char *layout_label(int build)
{
    return layout_builds[build];
}

int layout_find(const char *label)
{
    size_t len = strlen(label);
    for (int i = 0; i < LAYOUT_BUILDS; i++) {
        for (const char *at = layout_builds[i]; at; at = strchr(at, ' ')) {
            at += *at == ' ';
            if (strncmp(at, label, len) == 0 && (at[len] == ' ' || at[len] == '\0')) {
                return i;
            }
        }
    }
    return -1;
}

uint32_t layout_version(int build)
{
    return layout_versions[build];
}

int layout_free_threaded(int build)
{
    return (int)layout_free_threadeds[build];
}

int layout_long_bytes(int build)
{
    return (int)layout_longs[build];
}

static const layout_row *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof layout_rows / sizeof layout_rows[0]; i++) {
        if (strcmp(layout_rows[i].name, name) == 0) {
            return &layout_rows[i];
        }
    }
    fprintf(stderr, "layouts: no row %s\n", name);
    abort();
}

int32_t layout_value(int build, const char *name)
{
    return row_of(name)->value[build];
}

int layout_place(unsigned minor, const char *name)
{
    return minor < 13 || minor > 15 ? -1 : row_of(name)->place[minor - 13];
}

const char *layout_name(size_t n)
{
    return n < sizeof layout_rows / sizeof layout_rows[0] ? layout_rows[n].name : NULL;
}

static void put(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

size_t layout_table(int build, uint8_t table[AU_DEBUG_OFFSETS_MAX])
{
    unsigned minor = layout_versions[build] >> 16 & 0xff;
    static const size_t sizes[3] = {AU_DEBUG_OFFSETS_313, AU_DEBUG_OFFSETS_314, AU_DEBUG_OFFSETS_315};
    if (minor < 13) {
        return 0;
    }
    memset(table, 0, AU_DEBUG_OFFSETS_MAX);
    for (size_t i = 0; i < sizeof layout_rows / sizeof layout_rows[0]; i++) {
        const layout_row *row = &layout_rows[i];
        if (row->place[minor - 13] > 0 && row->value[build] != LAYOUT_NONE) {
            put(table + row->place[minor - 13], (uint64_t)row->value[build]);
        }
    }
    memcpy(table, "xdebugpy", 8);
    put(table + 8, layout_versions[build]);
    put(table + 16, layout_free_threadeds[build]);
    return sizes[minor - 13];
}
