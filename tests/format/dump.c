/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/format/dump.h"

#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_check.h"
#include "format/mojo_event.h"
#include "format/mojo_reader.h"

typedef struct task_total {
    int64_t id, pid, iid;
    char *thread, *name; /* quoted; NULL: none */
    uint64_t first, gone;
    int has_gone;
    int64_t time, running;
    int64_t *waiters;
    size_t waiter_count;
} task_total;

struct dump {
    au_buf metadata, samples, all;
    int64_t time, memory;
    uint64_t count;
    task_total *tasks;
    size_t task_count;
    unsigned warnings;
    au_mojo_rule first_warning;
};

dump *dump_create(void)
{
    dump *d = calloc(1, sizeof *d);
    MUST(d);
    return d;
}

void dump_destroy(dump *d)
{
    for (size_t i = 0; i < d->task_count; i++) {
        free(d->tasks[i].thread);
        free(d->tasks[i].name);
        free(d->tasks[i].waiters);
    }
    free(d->tasks);
    au_buf_deinit(&d->metadata);
    au_buf_deinit(&d->samples);
    au_buf_deinit(&d->all);
    free(d);
}

static void add(au_buf *out, const char *format, ...) AU_PRINTF(2, 3);

static void add(au_buf *out, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    MUST(length >= 0 && (size_t)length < sizeof text);
    MUST(au_buf_append(out, text, (size_t)length) == 0);
}

static void add_quoted(au_buf *out, const char *text)
{
    for (const uint8_t *at = (const uint8_t *)text; *at; at++) {
        if (*at >= 0x20 && *at < 0x7f && *at != '\\') {
            MUST(au_buf_append(out, at, 1) == 0);
        } else {
            add(out, "\\x%02x", *at);
        }
    }
}

static char *quoted_copy(const char *text)
{
    au_buf out = {0};
    add_quoted(&out, text);
    MUST(au_buf_append(&out, "", 1) == 0);
    return (char *)out.data;
}

static void add_frame(au_buf *out, const char *word, const au_mojo_sample_frame *frame)
{
    add(out, "%s\t", word);
    if (frame->invalid) {
        add(out, "(invalid)\n");
        return;
    }
    add_quoted(out, frame->file->text);
    add(out, "\t");
    add_quoted(out, frame->scope->text);
    add(out, "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\n", frame->line, frame->line_end, frame->column,
        frame->column_end);
}

static void add_name(au_buf *out, const au_mojo_text *name)
{
    add(out, name ? "=" : "-");
    if (name) {
        add_quoted(out, name->text);
    }
}

static void add_optional(au_buf *out, int present, int64_t value)
{
    if (present) {
        add(out, "\t%" PRId64, value);
    } else {
        add(out, "\t-");
    }
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void add_numbers(au_buf *out, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(out, "%s%" PRId64, i ? "," : "", numbers[i]);
    }
}

/* ------------------------------------------------------------------------------------------------------- tasks */

static task_total *total_of(dump *d, int64_t id)
{
    for (size_t i = 0; i < d->task_count; i++) {
        if (d->tasks[i].id == id) {
            return &d->tasks[i];
        }
    }
    return NULL;
}

static void note_task(dump *d, const au_mojo_sample *sample, const au_mojo_task_event *event)
{
    task_total *task = total_of(d, event->task);
    int is_stack = event->kind == AU_MOJO_TASK_IS_AT || event->kind == AU_MOJO_TASK_GONE;
    if (is_stack && !task) {
        d->tasks = realloc(d->tasks, (d->task_count + 1) * sizeof *d->tasks);
        MUST(d->tasks);
        task = &d->tasks[d->task_count++];
        *task = (task_total){.id = event->task, .pid = sample->pid, .iid = sample->iid, .first = d->count};
        task->thread = quoted_copy(sample->thread->text);
    }
    if (is_stack && event->name) {
        free(task->name);
        task->name = quoted_copy(event->name->text);
    }
    if (event->kind == AU_MOJO_TASK_GONE && !task->has_gone) {
        task->has_gone = 1;
        task->gone = d->count;
    }
    if (event->kind == AU_MOJO_TASK_WAITERS && task) {
        free(task->waiters);
        size_t bytes = event->waiter_count * sizeof *task->waiters;
        task->waiters = malloc(bytes + 1);
        MUST(task->waiters);
        if (bytes) {
            memcpy(task->waiters, event->waiters, bytes);
            qsort(task->waiters, event->waiter_count, sizeof *task->waiters, compare_numbers);
        }
        task->waiter_count = event->waiter_count;
    }
}

static void charge_tasks(dump *d, const au_mojo_sample *sample)
{
    char *thread = d->task_count ? quoted_copy(sample->thread->text) : NULL;
    for (size_t i = 0; i < d->task_count; i++) {
        task_total *task = &d->tasks[i];
        if (!task->has_gone && task->pid == sample->pid && task->iid == sample->iid &&
            strcmp(task->thread, thread) == 0) {
            task->time += sample->time_us;
        }
        if (task->id == sample->running) {
            task->running += sample->time_us;
        }
    }
    free(thread);
}

static void add_task_event(au_buf *out, const au_mojo_task_event *event)
{
    switch (event->kind) {
    case AU_MOJO_TASK_IS_AT:
    case AU_MOJO_TASK_GONE:
        add(out, "task\t%s\t%" PRId64 "\t", event->kind == AU_MOJO_TASK_IS_AT ? "stack" : "gone", event->task);
        add_name(out, event->name);
        add(out, "\n");
        for (size_t i = 0; i < event->frame_count; i++) {
            add_frame(out, "task_frame", event->frames[i]);
        }
        break;
    case AU_MOJO_TASK_WAITERS: {
        int64_t *sorted = malloc(event->waiter_count * sizeof *sorted + 1);
        MUST(sorted);
        if (event->waiter_count) {
            memcpy(sorted, event->waiters, event->waiter_count * sizeof *sorted);
            qsort(sorted, event->waiter_count, sizeof *sorted, compare_numbers);
        }
        add(out, "task\twaiters\t%" PRId64 "\t", event->task);
        add_numbers(out, sorted, event->waiter_count);
        add(out, "\n");
        free(sorted);
        break;
    }
    default:
        add(out, "task\trunning\t%" PRId64 "\n", event->task);
        break;
    }
}

/* ---------------------------------------------------------------------------------------------------- handlers */

au_error *dump_metadata(void *context, uint64_t offset, const char *key, const char *value)
{
    dump *d = context;
    (void)offset;
    add(&d->metadata, "metadata\t");
    add_quoted(&d->metadata, key);
    add(&d->metadata, "\t");
    add_quoted(&d->metadata, value);
    add(&d->metadata, "\n");
    return NULL;
}

au_error *dump_sample(void *context, const au_mojo_sample *sample)
{
    dump *d = context;
    au_buf *out = &d->samples;
    add(out, "sample\t%" PRId64 "\t%" PRId64 "\t", sample->pid, sample->iid);
    add_quoted(out, sample->thread->text);
    add(out, "\t%d", sample->gc);
    add_optional(out, sample->has_time && sample->has_memory, sample->idle);
    add_optional(out, sample->has_time, sample->time_us);
    add_optional(out, sample->has_memory, sample->memory_bytes);
    add_optional(out, sample->running != 0, sample->running);
    add(out, "\n");
    for (size_t i = 0; i < sample->frame_count; i++) {
        add_frame(out, "frame", sample->frames[i]);
    }
    for (size_t i = 0; i < sample->kernel_count; i++) {
        add(out, "kernel\t");
        add_quoted(out, sample->kernel[i]->text);
        add(out, "\n");
    }
    for (size_t i = 0; i < sample->task_event_count; i++) {
        add_task_event(out, &sample->task_events[i]);
        note_task(d, sample, &sample->task_events[i]);
    }
    for (size_t i = 0; i < sample->task_frame_count; i++) {
        add_frame(out, "running_frame", sample->task_frames[i]);
    }
    charge_tasks(d, sample);
    d->time += sample->time_us;
    d->memory += sample->memory_bytes;
    d->count++;
    return NULL;
}

void dump_warning(void *context, uint64_t offset, au_mojo_rule rule)
{
    dump *d = context;
    (void)offset;
    if (!d->warnings++) {
        d->first_warning = rule;
    }
}

unsigned dump_warnings(const dump *d)
{
    return d->warnings;
}

au_mojo_rule dump_first_warning(const dump *d)
{
    return d->first_warning;
}

/* -------------------------------------------------------------------------------------------------------- whole */

static int compare_tasks(const void *a, const void *b)
{
    return compare_numbers(&((const task_total *)a)->id, &((const task_total *)b)->id);
}

static void add_summaries(dump *d, au_buf *out)
{
    if (d->task_count) {
        qsort(d->tasks, d->task_count, sizeof *d->tasks, compare_tasks);
    }
    for (size_t i = 0; i < d->task_count; i++) {
        const task_total *task = &d->tasks[i];
        add(out, "summary\t%" PRId64 "\t%s", task->id, task->name ? "=" : "-");
        MUST(au_buf_append(out, task->name ? task->name : "", task->name ? strlen(task->name) : 0) == 0);
        add(out, "\t%" PRId64 "\t%" PRId64 "\t", task->pid, task->iid);
        MUST(au_buf_append(out, task->thread, strlen(task->thread)) == 0);
        add(out, "\t%" PRIu64, task->first);
        add_optional(out, task->has_gone, (int64_t)task->gone);
        add(out, "\t%" PRId64 "\t%" PRId64 "\t", task->time, task->running);
        add_numbers(out, task->waiters, task->waiter_count);
        add(out, "\n");
    }
}

const char *dump_text(dump *d, const uint8_t *stream, size_t len)
{
    uint64_t counts[256] = {0};
    au_mojo_parser parser;
    au_mojo_parser_init(&parser);
    au_mojo_parser_feed(&parser, stream, len);
    const au_mojo_event *event;
    for (au_mojo_next next; (next = au_mojo_parser_next(&parser, &event)) != AU_MOJO_NEXT_MORE;) {
        MUST(next != AU_MOJO_NEXT_STOP);
        if (next == AU_MOJO_NEXT_EVENT) {
            counts[event->id]++;
        }
    }
    au_buf *out = &d->all;
    au_buf_reset(out);
    add(out, "version\t%" PRIu64 "\nbytes\t%zu\n", parser.version, len);
    for (unsigned id = 1; id <= AU_MOJO_RUNNING_TASK; id++) {
        if (counts[id]) {
            add(out, "events\t%s\t%" PRIu64 "\n", au_mojo_event_name(id), counts[id]);
        }
    }
    au_mojo_parser_deinit(&parser);
    add(out, "time\t%" PRId64 "\nmemory\t%" PRId64 "\n", d->time, d->memory);
    MUST(au_buf_append(out, d->metadata.data, d->metadata.len) == 0);
    MUST(au_buf_append(out, d->samples.data, d->samples.len) == 0);
    add_summaries(d, out);
    MUST(au_buf_append(out, "", 1) == 0);
    return (const char *)out->data;
}

const char *dump_samples_text(dump *d)
{
    au_buf *out = &d->all;
    au_buf_reset(out);
    MUST(au_buf_append(out, d->samples.data, d->samples.len) == 0);
    add_summaries(d, out);
    MUST(au_buf_append(out, "", 1) == 0);
    return (const char *)out->data;
}

au_error *dump_read(dump *d, const uint8_t *stream, size_t len, size_t piece, int complete, int *unfinished)
{
    au_mojo_handlers handlers = {
        .context = d, .sample = dump_sample, .metadata = dump_metadata, .warning = dump_warning};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    MUST(reader);
    au_error *error = NULL;
    for (size_t at = 0; at < len && !error;) {
        size_t take = piece && piece < len - at ? piece : len - at;
        /* A copy of its own, so that a sanitizer sees whoever keeps a pointer into it. */
        uint8_t *copy = malloc(take);
        MUST(copy);
        memcpy(copy, stream + at, take);
        error = au_mojo_reader_feed(reader, copy, take);
        free(copy);
        at += take;
    }
    if (!error) {
        error = au_mojo_reader_finish(reader, complete, unfinished);
    }
    au_mojo_reader_destroy(reader);
    return error;
}

static void add_finding(void *context, const au_mojo_finding *finding)
{
    add(context, "%s\t%" PRIu64 "\t%s\n", finding->warning ? "warning" : "violation", finding->offset,
        au_mojo_rule_name(finding->rule));
}

void dump_findings(const uint8_t *stream, size_t len, size_t piece, int unfinished, au_buf *out)
{
    au_mojo_checker *checker = au_mojo_checker_create(unfinished, add_finding, out);
    MUST(checker);
    for (size_t at = 0; at < len;) {
        size_t take = piece && piece < len - at ? piece : len - at;
        uint8_t *copy = malloc(take);
        MUST(copy);
        memcpy(copy, stream + at, take);
        MUST(!(au_mojo_checker_feed(checker, copy, take)));
        free(copy);
        at += take;
    }
    uint64_t violations, warnings;
    MUST(!(au_mojo_checker_finish(checker, &violations, &warnings)));
    au_mojo_checker_destroy(checker);
    uint64_t lines = 0;
    for (size_t i = 0; i < out->len; i++) {
        lines += out->data[i] == '\n';
    }
    MUST(violations + warnings == lines);
    MUST(au_buf_append(out, "", 1) == 0);
    out->len--;
}

void load_file(const char *path, au_buf *out)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s: %s (run from the root of the tree)", path, strerror(errno));
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;) {
        MUST(au_buf_append(out, piece, n) == 0);
    }
    MUST(!ferror(file));
    fclose(file);
    MUST(au_buf_append(out, "", 1) == 0);
    out->len--;
}
