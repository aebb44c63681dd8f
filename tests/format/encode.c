/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/format/encode.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/format/dump.h"

typedef struct known_frame {
    int64_t pid;
    uint32_t id, key;
} known_frame;

/* What was last written for a process and thread name. */
typedef struct last_stack {
    int64_t pid, iid;
    char *thread;
    const au_mojo_sample_frame **frames;
    size_t count;
} last_stack;

struct encoder {
    au_mojo_writer *writer;
    int repeats;
    known_frame *frames;
    size_t frame_count;
    last_stack *stacks;
    size_t stack_count;
};

encoder *encoder_create(uint32_t key_limit, int repeats)
{
    encoder *e = calloc(1, sizeof *e);
    MUST(e);
    e->writer = au_mojo_writer_create(key_limit);
    MUST(e->writer);
    e->repeats = repeats;
    MUST(au_mojo_write_header(e->writer) == AU_MOJO_OK);
    return e;
}

void encoder_destroy(encoder *e)
{
    for (size_t i = 0; i < e->stack_count; i++) {
        free(e->stacks[i].thread);
        free(e->stacks[i].frames);
    }
    free(e->stacks);
    free(e->frames);
    au_mojo_writer_destroy(e->writer);
    free(e);
}

au_mojo_writer *encoder_writer(encoder *e)
{
    return e->writer;
}

static uint32_t key_of(encoder *e, int64_t pid, const au_mojo_sample_frame *frame)
{
    for (size_t i = 0; i < e->frame_count; i++) {
        if (e->frames[i].pid == pid && e->frames[i].id == frame->id) {
            return e->frames[i].key;
        }
    }
    au_mojo_frame made = {.line = (uint32_t)frame->line,
                          .line_end = (uint32_t)frame->line_end,
                          .column = (uint32_t)frame->column,
                          .column_end = (uint32_t)frame->column_end};
    MUST(au_mojo_write_string(e->writer, frame->file->text, &made.file_key) == AU_MOJO_OK);
    MUST(au_mojo_write_string(e->writer, frame->scope->text, &made.scope_key) == AU_MOJO_OK);
    known_frame known = {.pid = pid, .id = frame->id};
    MUST(au_mojo_write_frame(e->writer, &made, &known.key) == AU_MOJO_OK);
    e->frames = realloc(e->frames, (e->frame_count + 1) * sizeof *e->frames);
    MUST(e->frames);
    e->frames[e->frame_count++] = known;
    return known.key;
}

static last_stack *stack_of(encoder *e, const au_mojo_sample *sample, int *found)
{
    for (size_t i = 0; i < e->stack_count; i++) {
        if (e->stacks[i].pid == sample->pid && strcmp(e->stacks[i].thread, sample->thread->text) == 0) {
            *found = 1;
            return &e->stacks[i];
        }
    }
    *found = 0;
    e->stacks = realloc(e->stacks, (e->stack_count + 1) * sizeof *e->stacks);
    MUST(e->stacks);
    last_stack *stack = &e->stacks[e->stack_count++];
    *stack = (last_stack){.pid = sample->pid, .thread = strdup(sample->thread->text)};
    MUST(stack->thread);
    return stack;
}

/* Frames that a repeat of the latest sample gives: -1 if it cannot be used, else how many of the new stack it covers.
 */
static long repeat_covers(const last_stack *stack, const au_mojo_sample *sample)
{
    size_t kept = stack->count;
    while (kept && au_mojo_is_native_file(stack->frames[kept - 1]->file->text)) {
        kept--;
    }
    if (stack->iid != sample->iid || kept > sample->frame_count ||
        (kept && memcmp(stack->frames, sample->frames, kept * sizeof *stack->frames) != 0)) {
        return -1;
    }
    return (long)kept;
}

static void encode_tasks(encoder *e, const au_mojo_sample *sample)
{
    au_mojo_writer *w = e->writer;
    for (size_t i = 0; i < sample->task_event_count; i++) {
        const au_mojo_task_event *event = &sample->task_events[i];
        uint64_t task = (uint64_t)event->task;
        if (event->kind == AU_MOJO_TASK_WAITERS) {
            for (size_t k = 0; k < event->waiter_count; k++) {
                MUST(au_mojo_write_task_waiter(w, task, (uint64_t)event->waiters[k]) == AU_MOJO_OK);
            }
            if (!event->waiter_count) {
                MUST(au_mojo_write_task_waiter(w, task, 0) == AU_MOJO_OK);
            }
        } else if (event->kind == AU_MOJO_TASK_RUNNING) {
            MUST(au_mojo_write_running_task(w, task) == AU_MOJO_OK);
        } else {
            /* Definitions first: austin-python takes nothing but references behind a Task stack. */
            uint32_t name = AU_MOJO_STRING_NONE;
            if (event->name) {
                MUST(au_mojo_write_string(w, event->name->text, &name) == AU_MOJO_OK);
            }
            for (size_t k = 0; k < event->frame_count; k++) {
                key_of(e, sample->pid, event->frames[k]);
            }
            MUST(au_mojo_write_task_stack(w, task, name, (uint32_t)event->frame_count) == AU_MOJO_OK);
            for (size_t k = 0; k < event->frame_count; k++) {
                MUST(au_mojo_write_frame_ref(w, key_of(e, sample->pid, event->frames[k])) == AU_MOJO_OK);
            }
        }
    }
}

au_error *encode_metadata(void *context, uint64_t offset, const char *key, const char *value)
{
    encoder *e = context;
    (void)offset;
    MUST(au_mojo_write_metadata(e->writer, key, value) == AU_MOJO_OK);
    return NULL;
}

au_error *encode_sample(void *context, const au_mojo_sample *sample)
{
    encoder *e = context;
    au_mojo_writer *w = e->writer;
    MUST(au_mojo_write_stack(w, sample->pid, sample->iid, sample->thread->text) == AU_MOJO_OK);
    encode_tasks(e, sample);
    int found;
    last_stack *stack = stack_of(e, sample, &found);
    long covered = found && e->repeats ? repeat_covers(stack, sample) : -1;
    if (covered >= 0) {
        MUST(au_mojo_write_stack_repeat(w) == AU_MOJO_OK);
    }
    for (size_t i = covered > 0 ? (size_t)covered : 0; i < sample->frame_count; i++) {
        MUST(au_mojo_write_frame_ref(w, key_of(e, sample->pid, sample->frames[i])) == AU_MOJO_OK);
    }
    stack->iid = sample->iid;
    stack->count = sample->frame_count;
    stack->frames = realloc(stack->frames, (sample->frame_count + 1) * sizeof *stack->frames);
    MUST(stack->frames);
    if (sample->frame_count) {
        memcpy(stack->frames, sample->frames, sample->frame_count * sizeof *stack->frames);
    }
    for (size_t i = 0; i < sample->kernel_count; i++) {
        MUST(au_mojo_write_kernel_frame(w, sample->kernel[i]->text) == AU_MOJO_OK);
    }
    if (sample->gc) {
        MUST(au_mojo_write_gc(w) == AU_MOJO_OK);
    }
    if (sample->has_time) {
        MUST(au_mojo_write_time(w, (uint64_t)sample->time_us) == AU_MOJO_OK);
    }
    if (sample->idle) {
        MUST(au_mojo_write_idle(w) == AU_MOJO_OK);
    }
    if (sample->has_memory) {
        MUST(au_mojo_write_memory(w, sample->memory_bytes) == AU_MOJO_OK);
    }
    return NULL;
}
