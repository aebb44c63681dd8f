/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what our decoder makes of line tables, for comparison with co_positions().
 * Input, one line a code object: MINOR FIRSTLINENO HEX-LINETABLE (`-` for an empty table).
 * Output, one line a code object: START-END:line,line_end,column,column_end in code units, ranges parted by blanks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/linetable.h"

static int nibble(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t got;
    while ((got = getline(&line, &cap, stdin)) > 0) {
        char *rest = line;
        long minor = strtol(rest, &rest, 10);
        long first = strtol(rest, &rest, 10);
        while (*rest == ' ') {
            rest++;
        }
        uint8_t *table = malloc((size_t)got);
        size_t len = 0;
        if (!table) {
            return 1;
        }
        for (; nibble(rest[0]) >= 0 && nibble(rest[1]) >= 0; rest += 2) {
            table[len++] = (uint8_t)(nibble(rest[0]) << 4 | nibble(rest[1]));
        }
        au_linetable it;
        uint32_t start;
        uint32_t end;
        au_position p;
        au_linetable_init(&it, minor <= 10 ? AU_TABLE_310 : AU_TABLE_311, table, len, (int32_t)first);
        while (au_linetable_next(&it, &start, &end, &p)) {
            printf("%u-%u:%u,%u,%u,%u ", start, end, p.line, p.line_end, p.column, p.column_end);
        }
        putchar('\n');
        free(table);
    }
    free(line);
    return 0;
}
