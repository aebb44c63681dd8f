/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Where an instruction stands in the source: CPython's two line-table encodings, decoded from a copy. Pure functions
 * over untrusted bytes: no allocation, bounded by the table's length, never fail (what the table does not say is 0).
 *
 * 3.10: `co_linetable` of PEP 626 (Objects/lnotab_notes.txt of 3.10): pairs of bytecode delta and line delta.
 * 3.11+: the location table of PEP 657 (Objects/locations.md of 3.11; InternalDocs/code_objects.md of 3.14).
 */
#ifndef AU_ENGINE_LINETABLE_H
#define AU_ENGINE_LINETABLE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/layout/layout.h"

/** As in MOJO: lines 1-based, columns 1-based bytes, the end column one past the last byte; 0 = unknown. */
typedef struct au_position {
    uint32_t line, line_end, column, column_end;
} au_position;

/** Walks a table range by range. */
typedef struct au_linetable {
    au_table_style style;
    const uint8_t *table;
    size_t len, at;
    int64_t line;  /* the running line */
    uint32_t unit; /* first code unit after the last range */
} au_linetable;

void au_linetable_init(au_linetable *it, au_table_style style, const uint8_t *table, size_t len, int32_t firstlineno);

/** The next range of code units [*start, *end) and its position. 0 at the end of the table. */
int au_linetable_next(au_linetable *it, uint32_t *start, uint32_t *end, au_position *position);

/** The position of the code unit `unit`; all 0 if the table does not cover it. */
au_position au_linetable_find(au_table_style style, const uint8_t *table, size_t len, int32_t firstlineno,
                              uint32_t unit);

#endif
