/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The cache of code objects.
 *
 * A code object is immutable in all that we show of it, but it dies, and its memory is used again. So an entry alone
 * proves nothing: a stack is accepted only when each of its code objects was proven in the same batch of reads
 * (stack.c), between the two looks at the frames that refer to it. What proves it depends on the version:
 *
 * - 3.12+: `co_version`, a number that no other code object of the interpreter has (Objects/codeobject.c, init_code);
 *   with it the fields around it, as they lie in one window of the object.
 * - 3.14+: nothing at all has to be read while `_code_object_generation` of the interpreter stands, which code_dealloc
 *   raises (Objects/codeobject.c of 3.14).
 * - 3.10, 3.11 (and a version number of 0, when the numbers are used up): the content itself: both strings and the
 *   line table are compared with what the entry was made of.
 *
 * The cache is bounded by number and by memory; the clock algorithm forgets what no stack holds.
 */
#include <stdlib.h>

#include "engine/internal.h"
#include "engine/text.h"

enum {
    HEAD_MAX = 320,
    TABLE_MAX = 64 << 20, /* a limit against madness only */
    SPECULATIVE = 192,    /* bytes asked for behind the header of a string or table before its length is known */
    LOCATION_COST = sizeof(au_location) + 24
};

static size_t hash(const au_codes *codes, au_addr addr)
{
    uint64_t h = (addr >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32) & (codes->bucket_count - 1);
}

int au__codes_init(au_codes *codes, au_stats *stats)
{
    memset(codes, 0, sizeof *codes);
    codes->stats = stats;
    codes->bucket_count = 4096;
    codes->max_count = 8192;
    codes->max_bytes = 8u << 20;
    codes->buckets = calloc(codes->bucket_count, sizeof(au_code *));
    return codes->buckets ? 0 : -1;
}

static void code_free(au_code *code)
{
    for (uint32_t i = 0; i < code->location_count; i++) {
        free(code->locations[i]);
    }
    free(code->locations);
    free(code->marks);
    free(code->position_slots);
    free(code->slot_unit);
    free(code->slot_location);
    free(code->head);
    free(code->scope_raw);
    free(code->file_raw);
    free(code->table);
    free(code->file);
    free(code->scope);
    free(code);
}

static void unlink_code(au_codes *codes, au_code **link)
{
    au_code *code = *link;
    *link = code->next;
    code->next = NULL;
    codes->count--;
    codes->bytes -= code->bytes;
    code->orphan = 1;
    if (code->pins == 0) {
        code_free(code);
    }
}

void au__codes_reset(au_codes *codes, const au_layout *layout)
{
    for (size_t i = 0; i < codes->bucket_count; i++) {
        while (codes->buckets[i]) {
            unlink_code(codes, &codes->buckets[i]);
        }
    }
    codes->code_type = 0;
    uint32_t fields[] = {layout->code_filename,  layout->code_name,    layout->code_qualname,
                         layout->code_linetable, layout->code_version, layout->code_firstlineno};
    codes->head_from = UINT32_MAX;
    codes->head_to = 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i] != AU_ABSENT) {
            codes->head_from = fields[i] < codes->head_from ? fields[i] : codes->head_from;
            codes->head_to = fields[i] + 8 > codes->head_to ? fields[i] + 8 : codes->head_to;
        }
    }
    codes->head_from &= ~UINT32_C(3);
}

void au__codes_deinit(au_codes *codes)
{
    for (size_t i = 0; codes->buckets && i < codes->bucket_count; i++) {
        while (codes->buckets[i]) {
            unlink_code(codes, &codes->buckets[i]);
        }
    }
    free(codes->buckets);
    codes->buckets = NULL;
    au_buf_deinit(&codes->scratch);
    au_buf_deinit(&codes->text);
}

au_code *au__codes_get(au_codes *codes, au_addr addr)
{
    for (au_code *code = codes->buckets[hash(codes, addr)]; code; code = code->next) {
        if (code->addr == addr) {
            code->used = 1;
            return code;
        }
    }
    return NULL;
}

void au__code_pin(au_code *code)
{
    code->pins++;
}

void au__code_unpin(au_codes *codes, au_code *code)
{
    (void)codes;
    if (--code->pins == 0 && code->orphan) {
        code_free(code);
    }
}

/* Makes room: the hand goes round, clears the used mark once and forgets what is unused and unpinned. */
static void evict(au_codes *codes)
{
    size_t steps = 3 * codes->bucket_count; /* everything may be pinned: then the bound gives way */
    while (steps-- && (codes->count >= codes->max_count || codes->bytes >= codes->max_bytes)) {
        au_code **link = &codes->buckets[codes->hand];
        codes->hand = (codes->hand + 1) & (codes->bucket_count - 1);
        while (*link) {
            au_code *code = *link;
            if (code->pins == 0 && !code->used) {
                unlink_code(codes, link);
                codes->stats->code_evictions++;
            } else {
                code->used = 0;
                link = &code->next;
            }
        }
    }
}

/* ---- reading one ---------------------------------------------------------------------------------------------- */

static au_outcome check_type(au_codes *codes, const au_remote *r, au_addr type)
{
    if (codes->code_type) {
        return type == codes->code_type ? AU_OK : AU_FAULT;
    }
    uint64_t name;
    char text[8];
    if (!au__plausible(type)) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read_u64(r, type + r->layout.type_name, &name);
    if (outcome == AU_OK) {
        outcome = au__read(r, name, text, 5);
    }
    if (outcome == AU_OK && memcmp(text, "code", 5) != 0) {
        outcome = AU_FAULT;
    }
    if (outcome == AU_OK) {
        codes->code_type = type;
    }
    return outcome;
}

/* A string or bytes object on its way in: header and what was asked for behind it. */
typedef struct body {
    au_addr addr, data;
    uint64_t want;  /* bytes of content that are needed */
    uint8_t *bytes; /* owned until taken */
} body;

/*
 * Fills in the contents: first what the speculative read already brought, else one more read each.
 * `head` holds head_len + SPECULATIVE bytes read from addr, or only head_len if the longer read failed.
 */
static au_outcome fill(const au_remote *r, body *b, const uint8_t *head, size_t have)
{
    b->bytes = malloc(b->want ? (size_t)b->want : 1);
    if (!b->bytes) {
        return AU_FAULT;
    }
    if (b->data >= b->addr && b->data - b->addr <= have && b->want <= have - (b->data - b->addr)) {
        memcpy(b->bytes, head + (b->data - b->addr), (size_t)b->want);
        return AU_OK;
    }
    return au__read(r, b->data, b->bytes, (size_t)b->want);
}

/* The three objects behind a code object: scope, file, table. */
static au_outcome read_bodies(const au_remote *r, au_code *code, body bodies[3])
{
    const au_layout *l = &r->layout;
    uint8_t heads[3][128 + SPECULATIVE];
    size_t sizes[3] = {au__str_head_size(l), au__str_head_size(l), l->bytes_data};
    size_t have[3];
    au_piece pieces[3];
    if (sizes[0] > 128 || sizes[2] > 128) {
        return AU_FAULT;
    }
    for (int i = 0; i < 3; i++) {
        pieces[i] = (au_piece){bodies[i].addr, heads[i], (uint32_t)(sizes[i] + SPECULATIVE), 0};
    }
    r->ops->read_many(r->proc, pieces, 3);
    for (int i = 0; i < 3; i++) {
        have[i] = sizes[i] + SPECULATIVE;
        if (pieces[i].outcome != AU_OK) { /* near the end of a mapping: only what must be there */
            au_outcome outcome = au__read(r, bodies[i].addr, heads[i], sizes[i]);
            if (outcome == AU_FAULT && i < 2) {
                sizes[i] = au__str_head_least(l);
                outcome = au__read(r, bodies[i].addr, heads[i], sizes[i]);
            }
            if (outcome != AU_OK) {
                return outcome;
            }
            have[i] = sizes[i];
        }
    }
    au_str *strings[2] = {&code->scope_str, &code->file_str};
    for (int i = 0; i < 2; i++) {
        au_outcome outcome = au__str_judge(r, bodies[i].addr, heads[i], have[i], strings[i]);
        if (outcome != AU_OK) {
            return outcome;
        }
        uint64_t count = strings[i]->length > AU_TEXT_MAX ? AU_TEXT_MAX : strings[i]->length;
        bodies[i].data = strings[i]->data;
        bodies[i].want = count * strings[i]->width;
    }
    bodies[2].data = bodies[2].addr + l->bytes_data;
    bodies[2].want = au__u64(heads[2] + l->object_size);
    if (bodies[2].want > TABLE_MAX) {
        return AU_FAULT;
    }
    for (int i = 0; i < 3; i++) {
        au_outcome outcome = fill(r, &bodies[i], heads[i], have[i]);
        if (outcome != AU_OK) {
            return outcome;
        }
    }
    return AU_OK;
}

static char *text_of(au_codes *codes, const au_str *s, const uint8_t *chars, uint32_t bytes)
{
    codes->text.len = 0;
    if (au_text_append(&codes->text, chars, bytes / s->width, s->width, s->pairs, s->length > bytes / s->width) ||
        au_buf_append(&codes->text, "", 1)) {
        return NULL;
    }
    char *text = malloc(codes->text.len);
    if (text) {
        memcpy(text, codes->text.data, codes->text.len);
    }
    return text;
}

/*
 * CPython's own code. The cleanup frame of an inlined class call (Python/specialize.c, _Py_InitCleanup; its table is
 * one byte that says "no location" from 3.13 on, and empty before). And that of an entry from C (Python/pylifecycle.c,
 * interpreter_trampoline): its frame is told by its owner, unless the C stack has been used for something else since.
 */
static int is_own(const au_code *code)
{
    return (code->table_bytes <= 1 && strcmp(code->scope, "__init__") == 0 && strcmp(code->file, "__init__") == 0) ||
           (strcmp(code->scope, "<interpreter trampoline>") == 0 && strcmp(code->file, "<shim>") == 0);
}

int au__object_lives(const au_layout *l, const uint8_t *head)
{
    enum { COUNT_MAX = 0x400000, IMMORTAL_MIN = 0x3b000000 };
    if (l->object_type >= 24) {
        return (int64_t)au__u32(head + 12) + ((int64_t)au__u64(head + 16) >> 2) > 0;
    }
    uint32_t count = au__u32(head);
    return (au__u64(head) >> 32 & 0xffff) == 0 && count != 0 && (count < COUNT_MAX || count >= IMMORTAL_MIN);
}

static au_outcome read_code(au_codes *codes, const au_remote *r, au_code *code)
{
    const au_layout *l = &r->layout;
    uint8_t head[HEAD_MAX];
    uint8_t again[HEAD_MAX];
    size_t len = (size_t)l->code_bytecode + 8;
    if (l->code_firsttraceable != AU_ABSENT && len < l->code_firsttraceable + 4u) {
        len = l->code_firsttraceable + 4u;
    }
    if (len < codes->head_to) {
        len = codes->head_to;
    }
    if (len > sizeof head || !au__plausible(code->addr)) {
        return AU_FAULT;
    }
    au_outcome outcome = au__read(r, code->addr, head, len);
    if (outcome == AU_OK && !au__object_lives(l, head)) {
        outcome = AU_FAULT;
    }
    if (outcome == AU_OK) {
        outcome = check_type(codes, r, au__u64(head + l->object_type));
    }
    if (outcome != AU_OK) {
        return outcome;
    }
    uint32_t scope_at = l->code_qualname != AU_ABSENT ? l->code_qualname : l->code_name;
    body bodies[3] = {{au__u64(head + scope_at), 0, 0, NULL},
                      {au__u64(head + l->code_filename), 0, 0, NULL},
                      {au__u64(head + l->code_linetable), 0, 0, NULL}};
    for (int i = 0; i < 3; i++) {
        if (!au__plausible(bodies[i].addr)) {
            return AU_FAULT;
        }
    }
    outcome = read_bodies(r, code, bodies);
    code->scope_raw = bodies[0].bytes;
    code->scope_bytes = (uint32_t)bodies[0].want;
    code->file_raw = bodies[1].bytes;
    code->file_bytes = (uint32_t)bodies[1].want;
    code->table = bodies[2].bytes;
    code->table_bytes = (uint32_t)bodies[2].want;
    code->table_addr = bodies[2].addr;
    if (outcome != AU_OK) {
        return outcome;
    }
    code->firstlineno = au__i32(head + l->code_firstlineno);
    if (l->minor == 10) {
        uint64_t bytes;
        au_addr bytecode = au__u64(head + l->code_bytecode);
        if (!au__plausible(bytecode)) {
            return AU_FAULT;
        }
        outcome = au__read_u64(r, bytecode + l->object_size, &bytes);
        if (outcome != AU_OK || bytes > UINT32_MAX) {
            return outcome == AU_OK ? AU_FAULT : outcome;
        }
        code->units = (uint32_t)(bytes / 2);
        code->start = 0;
    } else {
        uint64_t units = au__u64(head + l->object_size);
        if (units > (1u << 30)) {
            return AU_FAULT;
        }
        code->units = (uint32_t)units;
        code->start = code->addr + l->code_bytecode;
        code->firsttraceable = au__i32(head + l->code_firsttraceable);
    }
    if (l->code_framesize != AU_ABSENT) {
        int32_t words = au__i32(head + l->code_framesize);
        code->frame_bytes = words > 0 && words < 1 << 20 ? (uint32_t)words * 8 : 0;
    }
    code->version = l->code_version == AU_ABSENT ? 0 : au__u32(head + l->code_version);
    code->by_content = code->version == 0 || codes->by_content;
    /* the same object before and after, and alive: then all that was read in between belongs to it */
    outcome = au__read(r, code->addr, again, len);
    if (outcome == AU_OK && !au__object_lives(l, again)) {
        outcome = AU_FAULT;
    }
    if (outcome == AU_OK &&
        memcmp(head + codes->head_from, again + codes->head_from, codes->head_to - codes->head_from) != 0) {
        outcome = AU_FAULT;
    }
    if (outcome != AU_OK) {
        return outcome;
    }
    size_t window = codes->head_to - codes->head_from;
    code->head = malloc(window ? window : 1);
    code->scope = text_of(codes, &code->scope_str, code->scope_raw, code->scope_bytes);
    code->file = text_of(codes, &code->file_str, code->file_raw, code->file_bytes);
    if (!code->head || !code->scope || !code->file) {
        return AU_FAULT;
    }
    memcpy(code->head, head + codes->head_from, window);
    code->shim = l->minor >= 12 && is_own(code);
    code->bytes = sizeof *code + code->scope_bytes + code->file_bytes + code->table_bytes + strlen(code->scope) +
                  strlen(code->file) + (codes->head_to - codes->head_from) + 128;
    if (!code->by_content) { /* only compared by content */
        free(code->scope_raw);
        free(code->file_raw);
        code->scope_raw = code->file_raw = NULL;
    }
    return AU_OK;
}

au_code *au__codes_resolve(au_codes *codes, const au_remote *r, au_addr addr, au_outcome *outcome)
{
    *outcome = AU_OK;
    codes->stats->code_misses++;
    au_code *code = calloc(1, sizeof *code);
    if (!code) {
        return NULL;
    }
    code->addr = addr;
    code->tlbc_index = -1;
    *outcome = read_code(codes, r, code);
    if (*outcome != AU_OK) {
        code_free(code);
        return NULL;
    }
    for (au_code **link = &codes->buckets[hash(codes, addr)]; *link; link = &(*link)->next) {
        if ((*link)->addr == addr) {
            unlink_code(codes, link);
            break;
        }
    }
    evict(codes);
    au_code **bucket = &codes->buckets[hash(codes, addr)];
    code->next = *bucket;
    *bucket = code;
    code->used = 1;
    codes->count++;
    codes->bytes += code->bytes;
    return code;
}

/* ---- locations ------------------------------------------------------------------------------------------------ */

enum {
    MARKS_FROM = 1024,  /* bytes of a table from which on it is worth an index */
    MARK_SPACING = 128, /* bytes of a table between two marks: the index takes a tenth of what the table does */
    POSITIONS_FROM = 16 /* distinct positions from which on they are hashed */
};

/* The entry has grown by that much. */
static void charge(au_codes *codes, au_code *code, size_t bytes)
{
    code->bytes += bytes;
    if (!code->orphan) {
        codes->bytes += bytes;
    }
}

/* Where the table says that a code unit is. Without memory for an index, the long way. */
static au_position look_up(au_codes *codes, au_code *code, au_table_style style, uint32_t unit)
{
    if (!code->marks && code->table_bytes >= MARKS_FROM) {
        size_t room = au_linetable_mark_room(code->table_bytes, MARK_SPACING);
        code->marks = malloc(room * sizeof *code->marks);
        if (code->marks) {
            code->mark_count = au_linetable_mark_all(style, code->table, code->table_bytes, code->firstlineno,
                                                     MARK_SPACING, code->marks);
            charge(codes, code, room * sizeof *code->marks);
        }
    }
    if (code->mark_count) {
        return au_linetable_find_marked(style, code->table, code->table_bytes, code->marks, code->mark_count, unit);
    }
    return au_linetable_find(style, code->table, code->table_bytes, code->firstlineno, unit);
}

static void set_slot(au_code *code, uint32_t unit, uint32_t location)
{
    uint32_t mask = code->slot_cap - 1;
    uint32_t i = unit * UINT32_C(2654435769) & mask;
    while (code->slot_unit[i]) {
        i = (i + 1) & mask;
    }
    code->slot_unit[i] = unit + 1;
    code->slot_location[i] = location;
    code->slot_count++;
}

static int grow_slots(au_codes *codes, au_code *code)
{
    uint32_t old_cap = code->slot_cap;
    uint32_t *units = code->slot_unit;
    uint32_t *locations = code->slot_location;
    uint32_t cap = old_cap ? old_cap * 2 : 8;
    uint32_t *new_units = calloc(cap, sizeof *new_units);
    uint32_t *new_locations = calloc(cap, sizeof *new_locations);
    if (!new_units || !new_locations) {
        free(new_units);
        free(new_locations);
        return -1;
    }
    code->slot_unit = new_units;
    code->slot_location = new_locations;
    code->slot_cap = cap;
    code->slot_count = 0;
    for (uint32_t i = 0; i < old_cap; i++) {
        if (units[i]) {
            set_slot(code, units[i] - 1, locations[i]);
        }
    }
    free(units);
    free(locations);
    charge(codes, code, (cap - old_cap) * (sizeof *new_units + sizeof *new_locations));
    return 0;
}

static uint32_t hash_position(const au_code *code, const au_position *p)
{
    uint64_t h = p->line * UINT64_C(0x9e3779b97f4a7c15) + p->line_end;
    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + p->column;
    h = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb) + p->column_end;
    return (uint32_t)((h ^ h >> 31) & (code->position_cap - 1));
}

static int is_at(const au_location *have, const au_position *p)
{
    return have->line == p->line && have->line_end == p->line_end && have->column == p->column &&
           have->column_end == p->column_end;
}

static void enter_position(au_code *code, uint32_t index)
{
    const au_location *at = code->locations[index];
    const au_position p = {at->line, at->line_end, at->column, at->column_end};
    uint32_t i = hash_position(code, &p);
    while (code->position_slots[i]) {
        i = (i + 1) & (code->position_cap - 1);
    }
    code->position_slots[i] = index + 1;
}

/* Keeps the hash of positions at most half full. */
static int grow_positions(au_codes *codes, au_code *code)
{
    uint32_t cap = code->position_cap ? code->position_cap * 2 : POSITIONS_FROM * 4;
    uint32_t *slots = calloc(cap, sizeof *slots);
    if (!slots) {
        return -1;
    }
    free(code->position_slots);
    charge(codes, code, (cap - code->position_cap) * sizeof *slots);
    code->position_slots = slots;
    code->position_cap = cap;
    for (uint32_t i = 0; i < code->location_count; i++) {
        enter_position(code, i);
    }
    return 0;
}

/* The entry that there is for a position; UINT32_MAX: none. */
static uint32_t find_position(const au_code *code, const au_position *p)
{
    if (!code->position_cap) {
        for (uint32_t i = 0; i < code->location_count; i++) {
            if (is_at(code->locations[i], p)) {
                return i;
            }
        }
        return UINT32_MAX;
    }
    for (uint32_t i = hash_position(code, p); code->position_slots[i]; i = (i + 1) & (code->position_cap - 1)) {
        uint32_t index = code->position_slots[i] - 1;
        if (is_at(code->locations[index], p)) {
            return index;
        }
    }
    return UINT32_MAX;
}

/* The entry for a position, making it if there is none. UINT32_MAX: no memory. */
static uint32_t location_index(au_codes *codes, au_code *code, const au_position *p)
{
    uint32_t have = find_position(code, p);
    if (have != UINT32_MAX) {
        return have;
    }
    if (code->location_count >= POSITIONS_FROM && code->location_count * 2 >= code->position_cap &&
        grow_positions(codes, code)) {
        return UINT32_MAX;
    }
    if (code->location_count == code->location_cap) {
        uint32_t cap = code->location_cap ? code->location_cap * 2 : 2;
        au_location **grown = realloc(code->locations, cap * sizeof(au_location *));
        if (!grown) {
            return UINT32_MAX;
        }
        code->locations = grown;
        code->location_cap = cap;
    }
    au_location *made = calloc(1, sizeof *made);
    if (!made) {
        return UINT32_MAX;
    }
    made->file = code->file;
    made->scope = code->scope;
    made->line = p->line;
    made->line_end = p->line_end;
    made->column = p->column;
    made->column_end = p->column_end;
    code->locations[code->location_count] = made;
    charge(codes, code, LOCATION_COST);
    if (code->position_cap) {
        enter_position(code, code->location_count);
    }
    return code->location_count++;
}

au_location *au__code_location(au_codes *codes, const au_remote *r, au_code *code, int64_t unit)
{
    uint32_t key = unit < 0 ? code->units : (uint32_t)unit; /* before the first instruction: one entry of its own */
    if (code->slot_cap) {
        uint32_t mask = code->slot_cap - 1;
        for (uint32_t i = key * UINT32_C(2654435769) & mask; code->slot_unit[i]; i = (i + 1) & mask) {
            if (code->slot_unit[i] == key + 1) {
                codes->stats->code_hits++;
                return code->locations[code->slot_location[i]];
            }
        }
    }
    au_position p;
    int32_t first = code->firstlineno > 0 ? code->firstlineno : 0;
    if (unit < 0 || (r->layout.minor > 10 && unit < code->firsttraceable)) {
        /* not begun: CPython's own answer is the first line (Objects/codeobject.c, PyCode_Addr2Line(-1)) */
        p = (au_position){(uint32_t)first, r->layout.minor > 10 ? (uint32_t)first : 0, 0, 0};
    } else {
        p = look_up(codes, code, r->layout.table, (uint32_t)unit);
    }
    if (code->slot_count * 4 >= code->slot_cap * 3 && grow_slots(codes, code)) {
        return NULL;
    }
    uint32_t index = location_index(codes, code, &p);
    if (index == UINT32_MAX) {
        return NULL;
    }
    set_slot(code, key, index);
    return code->locations[index];
}
