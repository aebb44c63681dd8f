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

/*
 * An index for long tables: the state of the walk at some entries, so that a look-up begins near its unit. Its answers
 * are those of au_linetable_find for the same table, whatever the table holds.
 */

/** Longest table that may have one: up to here the numbers of code units cannot go round. */
#define AU_LINETABLE_INDEX_MAX ((size_t)64 << 20)

/** The state of the walk before an entry: enough to go on from there. */
typedef struct au_linetable_mark {
    uint32_t unit, at;
    int32_t line;
} au_linetable_mark;

/** Most marks that a table of `len` bytes can have when they are at least `spacing` (> 0) bytes apart. */
size_t au_linetable_mark_room(size_t len, size_t spacing);

/** Walks the table once and writes its marks to `out`, which has room for them. Returns how many; 0: too long. */
size_t au_linetable_mark_all(au_table_style style, const uint8_t *table, size_t len, int32_t firstlineno,
                             size_t spacing, au_linetable_mark *out);

/** au_linetable_find by those marks: reads `spacing` bytes and an entry. Without any mark, all 0. */
au_position au_linetable_find_marked(au_table_style style, const uint8_t *table, size_t len,
                                     const au_linetable_mark *marks, size_t count, uint32_t unit);

#endif
