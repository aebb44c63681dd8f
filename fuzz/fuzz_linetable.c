/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line-table decoder. Input: one byte of style (bit 0) and walk, four of first line, then the table.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/linetable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5) {
        return 0;
    }
    au_table_style style = data[0] & 1 ? AU_TABLE_311 : AU_TABLE_310;
    int32_t first;
    memcpy(&first, data + 1, sizeof first);
    const uint8_t *table = data + 5;
    size_t len = size - 5;
    au_linetable it;
    uint32_t start;
    uint32_t end;
    uint32_t last = 0;
    size_t steps = 0;
    au_position p;
    au_linetable_init(&it, style, table, len, first);
    while (au_linetable_next(&it, &start, &end, &p)) {
        check(start == last && end >= start && ++steps <= len);
        check(p.line <= INT32_MAX && p.line_end <= INT32_MAX && p.column <= INT32_MAX && p.column_end <= INT32_MAX);
        if (steps < 64 && end > start) { /* the look-up finds what the walk does */
            au_position found = au_linetable_find(style, table, len, first, end - 1);
            check(memcmp(&found, &p, sizeof p) == 0);
        }
        last = end;
    }
    au_position none = au_linetable_find(style, table, len, first, last);
    check(none.line == 0 && none.column == 0);
    return 0;
}
