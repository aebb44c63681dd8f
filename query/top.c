/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hottest lines. A row is a function, file and line: "own" is the weight of the samples whose innermost frame it
 * is, "total" that of the samples in which it is anywhere, each counted once. The weight is the time, in a memory
 * profile the memory that was gained (what was given back has no place in a share).
 *
 * A sample's stack is the frames of the thread, then those of the task that it runs, then those of the kernel.
 */
#include <apr_hash.h>
#include <apr_strings.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_reader.h"
#include "query/query.h"

typedef struct row {
    const au_mojo_text *file, *scope; /* file NULL: the kernel */
    int64_t line;
    int invalid; /* an Invalid frame of an older stream: it has no texts */
    double own, total;
    uint64_t last; /* 1 + index of the sample that it was last counted for */
} row;

typedef struct row_name {
    uint32_t file, scope;
    int64_t line;
    int invalid;
} row_name;

/* Frames that differ in columns alone are one row; `rows` holds what an id of the reader stands for. */
typedef struct row_list {
    row **rows;
    size_t count;
} row_list;

typedef struct top {
    au_query_output *out;
    apr_pool_t *pool;
    uint64_t limit;
    au_mojo_reader *reader;
    au_query_warnings warnings;
    apr_hash_t *by_name;
    row_list by_frame, by_symbol; /* by the id of a frame, by that of a kernel symbol */
    double weight;
    uint64_t samples;
} top;

static int grow(row_list *list, size_t needed)
{
    if (needed <= list->count) {
        return 0;
    }
    size_t count = list->count ? list->count : 256;
    while (count < needed) {
        count *= 2;
    }
    row **rows = realloc(list->rows, count * sizeof *rows);
    if (!rows) {
        return -1;
    }
    memset(rows + list->count, 0, (count - list->count) * sizeof *rows);
    list->rows = rows;
    list->count = count;
    return 0;
}

static row *row_of(top *t, const row *like)
{
    row_name name;
    memset(&name, 0, sizeof name);
    name.file = like->file ? like->file->id : UINT32_MAX;
    name.scope = like->scope->id;
    name.line = like->line;
    name.invalid = like->invalid;
    row *found = apr_hash_get(t->by_name, &name, sizeof name);
    if (!found) {
        found = apr_pmemdup(t->pool, like, sizeof *like);
        apr_hash_set(t->by_name, apr_pmemdup(t->pool, &name, sizeof name), sizeof name, found);
    }
    return found;
}

/* Counts one frame; what it returns is the innermost so far. */
static row *count(top *t, row_list *list, uint32_t id, const row *like, double weight)
{
    if (grow(list, (size_t)id + 1)) {
        return NULL;
    }
    if (!list->rows[id]) {
        list->rows[id] = row_of(t, like);
    }
    row *r = list->rows[id];
    if (r->last != t->samples) {
        r->last = t->samples;
        r->total += weight;
    }
    return r;
}

static au_error *on_sample(void *context, const au_mojo_sample *sample)
{
    top *t = context;
    double weight = sample->has_time ? (double)sample->time_us : (double)sample->memory_bytes;
    if (weight < 0) {
        weight = 0;
    }
    t->samples++;
    t->weight += weight;
    row *leaf = NULL;
    for (int part = 0; part < 2; part++) {
        const au_mojo_sample_frame *const *frames = part ? sample->task_frames : sample->frames;
        size_t frame_count = part ? sample->task_frame_count : sample->frame_count;
        for (size_t i = 0; i < frame_count; i++) {
            const au_mojo_sample_frame *frame = frames[i];
            row like = {.file = frame->file, .scope = frame->scope, .line = frame->line, .invalid = frame->invalid};
            leaf = count(t, &t->by_frame, frame->id, &like, weight);
            if (!leaf) {
                return au_error_memory();
            }
        }
    }
    for (size_t i = 0; i < sample->kernel_count; i++) {
        row like = {.scope = sample->kernel[i]};
        leaf = count(t, &t->by_symbol, sample->kernel[i]->id, &like, weight);
        if (!leaf) {
            return au_error_memory();
        }
    }
    if (leaf) {
        leaf->own += weight;
    }
    return NULL;
}

static void on_warning(void *context, uint64_t offset, au_mojo_rule rule)
{
    au_query_warn(&((top *)context)->warnings, offset, rule);
}

static void *open_top(const au_query_options *options, au_query_output *out, apr_pool_t *pool)
{
    top *t = apr_pcalloc(pool, sizeof *t);
    t->out = out;
    t->pool = pool;
    t->limit = options->rows;
    t->by_name = apr_hash_make(pool);
    au_mojo_handlers handlers = {.context = t, .sample = on_sample, .warning = on_warning};
    t->reader = au_mojo_reader_create(&handlers);
    return t->reader ? t : NULL;
}

static au_error *feed_top(void *state, const void *bytes, size_t len)
{
    return au_mojo_reader_feed(((top *)state)->reader, bytes, len);
}

static int by_weight(const void *a, const void *b)
{
    const row *x = *(row *const *)a, *y = *(row *const *)b;
    if (x->own != y->own) {
        return x->own < y->own ? 1 : -1;
    }
    if (x->total != y->total) {
        return x->total < y->total ? 1 : -1;
    }
    /* Equal ones in the order of the stream, so that a file always gives the same text. */
    uint32_t file_x = x->file ? x->file->id : UINT32_MAX, file_y = y->file ? y->file->id : UINT32_MAX;
    if (file_x != file_y) {
        return file_x < file_y ? -1 : 1;
    }
    if (x->scope->id != y->scope->id) {
        return x->scope->id < y->scope->id ? -1 : 1;
    }
    return (x->line > y->line) - (x->line < y->line);
}

/* A name may be empty (Python lets code objects have any): a blank column would look like a mistake. */
static const char *scope_text(const row *r)
{
    return r->invalid ? ":INVALID:" : r->scope->length ? r->scope->text : "\"\"";
}

static void print_rows(top *t, row *const *rows, size_t shown)
{
    enum { WIDEST = 48 }; /* a name that is longer pushes its own row alone */
    size_t width = strlen("function");
    for (size_t i = 0; i < shown; i++) {
        size_t w = au_query_name_width(scope_text(rows[i]));
        if (w > width) {
            width = w < WIDEST ? w : WIDEST;
        }
    }
    double whole = t->weight > 0 ? t->weight / 100 : 1;
    au_query_print(t->out, "%7s %7s  %-*s  %s\n", "own %", "total %", (int)width, "function", "file:line");
    for (size_t i = 0; i < shown; i++) {
        const row *r = rows[i];
        au_query_print(t->out, "%7.2f %7.2f  ", r->own / whole, r->total / whole);
        au_query_print_name(t->out, scope_text(r));
        for (size_t w = au_query_name_width(scope_text(r)); w < width; w++) {
            au_query_print(t->out, " ");
        }
        au_query_print(t->out, "  ");
        au_query_print_name(t->out, r->file ? r->file->text : "<kernel>");
        au_query_print(t->out, ":%" PRId64 "\n", r->line);
    }
}

static au_error *finish_top(void *state, au_query_end *end)
{
    top *t = state;
    int unfinished;
    au_error *error = au_mojo_reader_finish(t->reader, 0, &unfinished);
    end->unfinished |= unfinished;
    end->warnings = t->warnings;
    if (error) {
        return error;
    }
    size_t row_count = apr_hash_count(t->by_name), n = 0;
    row **rows = malloc((row_count + 1) * sizeof(row *));
    if (!rows) {
        return au_error_memory();
    }
    for (apr_hash_index_t *at = apr_hash_first(t->pool, t->by_name); at; at = apr_hash_next(at)) {
        rows[n++] = apr_hash_this_val(at);
    }
    qsort(rows, n, sizeof(row *), by_weight);
    print_rows(t, rows, t->limit && t->limit < n ? (size_t)t->limit : n);
    free(rows);
    return NULL;
}

static void close_top(void *state)
{
    top *t = state;
    au_mojo_reader_destroy(t->reader);
    free(t->by_frame.rows);
    free(t->by_symbol.rows);
}

const au_query_command au_query_top = {
    .name = "top",
    .synopsis = "top [-n ROWS] [FILE]",
    .help = "the hottest lines: own and total share of the time",
    .open = open_top,
    .feed = feed_top,
    .finish = finish_top,
    .close = close_top,
};
