/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line-table decoder and its index. Input: one byte of style (bit 0) and of the index' spacing, four of first line,
 * then the table.
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
    size_t spacing = (size_t)(data[0] >> 1) + 1;
    au_linetable it;
    uint32_t start;
    uint32_t end;
    uint32_t last = 0;
    size_t steps = 0;
    au_position p;
    size_t room = au_linetable_mark_room(len, spacing);
    au_linetable_mark *marks = malloc(room ? room * sizeof *marks : 1);
    check(marks != NULL);
    size_t count = au_linetable_mark_all(style, table, len, first, spacing, marks);
    check(count <= room);
    au_linetable_init(&it, style, table, len, first);
    while (au_linetable_next(&it, &start, &end, &p)) {
        check(start == last && end >= start && ++steps <= len);
        check(p.line <= INT32_MAX && p.line_end <= INT32_MAX && p.column <= INT32_MAX && p.column_end <= INT32_MAX);
        if (steps < 64 && end > start) { /* the look-up finds what the walk does */
            au_position found = au_linetable_find(style, table, len, first, end - 1);
            check(memcmp(&found, &p, sizeof p) == 0);
        }
        for (uint32_t unit = start; unit < end; unit++) { /* and so does the index, for every unit */
            au_position found = au_linetable_find_marked(style, table, len, marks, count, unit);
            check(memcmp(&found, &p, sizeof p) == 0);
        }
        last = end;
    }
    au_position none = au_linetable_find(style, table, len, first, last);
    check(none.line == 0 && none.column == 0);
    none = au_linetable_find_marked(style, table, len, marks, count, last);
    check(none.line == 0 && none.line_end == 0 && none.column == 0 && none.column_end == 0);
    free(marks);
    return 0;
}
