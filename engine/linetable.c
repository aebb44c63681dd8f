/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/linetable.h"

void au_linetable_init(au_linetable *it, au_table_style style, const uint8_t *table, size_t len, int32_t firstlineno)
{
    it->style = style;
    it->table = table;
    it->len = len;
    it->at = 0;
    it->line = firstlineno;
    it->unit = 0;
}

/* A line or column as it goes out: what is not positive or absurd is unknown. */
static uint32_t clean(int64_t value)
{
    return value > 0 && value <= INT32_MAX ? (uint32_t)value : 0;
}

/* Six bits a byte, least significant first, bit 6 says that more follow. */
static uint64_t varint(au_linetable *it)
{
    uint64_t value = 0;
    for (unsigned shift = 0; it->at < it->len; shift += 6) {
        uint8_t byte = it->table[it->at++];
        if (shift < 60) {
            value |= (uint64_t)(byte & 63) << shift;
        }
        if (!(byte & 64)) {
            break;
        }
    }
    return value & UINT64_C(0x7fffffffffff);
}

static int64_t signed_varint(au_linetable *it)
{
    uint64_t value = varint(it);
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static uint8_t raw(au_linetable *it)
{
    return it->at < it->len ? it->table[it->at++] : 0;
}

static void set_line(au_linetable *it, int64_t delta)
{
    it->line += delta;
    if (it->line > INT32_MAX || it->line < INT32_MIN) {
        it->line = 0;
    }
}

static int next_310(au_linetable *it, uint32_t *start, uint32_t *end, au_position *position)
{
    if (it->at + 2 > it->len) {
        return 0;
    }
    uint8_t bytes = it->table[it->at];
    int8_t delta = (int8_t)it->table[it->at + 1];
    it->at += 2;
    *position = (au_position){0, 0, 0, 0};
    if (delta != -128) { /* -128: these instructions have no line, and the running one stays */
        set_line(it, delta);
        position->line = clean(it->line);
    }
    *start = it->unit;
    it->unit += bytes / 2;
    *end = it->unit;
    return 1;
}

static int next_311(au_linetable *it, uint32_t *start, uint32_t *end, au_position *position)
{
    if (it->at >= it->len) {
        return 0;
    }
    uint8_t first = it->table[it->at++];
    unsigned code = first >> 3 & 15;
    uint32_t units = (first & 7u) + 1;
    *position = (au_position){0, 0, 0, 0};
    if (code <= 9) { /* short: same line, columns in one byte */
        uint8_t byte = raw(it);
        int64_t column = (int64_t)code * 8 + (byte >> 4);
        position->line = position->line_end = clean(it->line);
        position->column = clean(column + 1);
        position->column_end = clean(column + (byte & 15) + 1);
    } else if (code <= 12) { /* one line: two plain columns */
        set_line(it, (int64_t)code - 10);
        uint8_t column = raw(it);
        uint8_t column_end = raw(it);
        position->line = position->line_end = clean(it->line);
        position->column = (uint32_t)column + 1;
        position->column_end = (uint32_t)column_end + 1;
    } else if (code == 13) { /* a line without columns */
        set_line(it, signed_varint(it));
        position->line = position->line_end = clean(it->line);
    } else if (code == 14) { /* long: all four, the columns already 1-based */
        set_line(it, signed_varint(it));
        int64_t line_end = it->line + (int64_t)varint(it);
        position->line = clean(it->line);
        position->line_end = clean(line_end);
        position->column = clean((int64_t)varint(it));
        position->column_end = clean((int64_t)varint(it));
    } /* 15: no location */
    *start = it->unit;
    it->unit += units;
    *end = it->unit;
    return 1;
}

int au_linetable_next(au_linetable *it, uint32_t *start, uint32_t *end, au_position *position)
{
    return it->style == AU_TABLE_310 ? next_310(it, start, end, position) : next_311(it, start, end, position);
}

static au_position find_on(au_linetable *it, uint32_t unit)
{
    uint32_t start;
    uint32_t end;
    au_position position;
    while (au_linetable_next(it, &start, &end, &position)) {
        if (unit >= start && unit < end) {
            return position;
        }
    }
    return (au_position){0, 0, 0, 0};
}

au_position au_linetable_find(au_table_style style, const uint8_t *table, size_t len, int32_t firstlineno,
                              uint32_t unit)
{
    au_linetable it;
    au_linetable_init(&it, style, table, len, firstlineno);
    return find_on(&it, unit);
}

/* ---- the index ------------------------------------------------------------------------------------------------ */

size_t au_linetable_mark_room(size_t len, size_t spacing)
{
    return len / spacing + (len % spacing != 0);
}

size_t au_linetable_mark_all(au_table_style style, const uint8_t *table, size_t len, int32_t firstlineno,
                             size_t spacing, au_linetable_mark *out)
{
    au_linetable it;
    uint32_t start;
    uint32_t end;
    au_position position;
    size_t count = 0;
    size_t due = 0;
    if (len > AU_LINETABLE_INDEX_MAX) {
        return 0;
    }
    au_linetable_init(&it, style, table, len, firstlineno);
    do {
        if (it.at >= due && it.at < len) { /* the running line always fits: set_line sees to it */
            out[count++] = (au_linetable_mark){it.unit, (uint32_t)it.at, (int32_t)it.line};
            due = it.at + spacing;
        }
    } while (au_linetable_next(&it, &start, &end, &position));
    return count;
}

au_position au_linetable_find_marked(au_table_style style, const uint8_t *table, size_t len,
                                     const au_linetable_mark *marks, size_t count, uint32_t unit)
{
    size_t low = 0; /* marks before this one are not behind the unit */
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (marks[middle].unit <= unit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return (au_position){0, 0, 0, 0};
    }
    const au_linetable_mark *from = &marks[low - 1];
    au_linetable it = {
        .style = style, .table = table, .len = len, .at = from->at, .line = from->line, .unit = from->unit};
    if (low < count) {
        it.len = marks[low].at; /* what covers the unit ends before the next mark */
    }
    return find_on(&it, unit);
}
