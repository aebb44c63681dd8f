/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/mojo_dict.h"
#include "format/mojo_event.h"
#include "format/mojo_stage.h"

typedef const au_mojo_sample_frame *frame_ref;

/* The frames of the latest sample of a (pid, thread name), which are also the ones of the sample that is being read:
 * a repeat then costs nothing, however deep the stack is. */
typedef struct thread_state {
    au_buf frames; /* of frame_ref */
    int seen;      /* has had a sample */
    struct thread_state *next;
} thread_state;

typedef struct task_state {
    au_buf frames; /* of frame_ref: the latest position */
    int known;     /* reported by a Task stack */
    struct task_state *next;
} task_state;

/* A task event of the sample; ranges into the arenas, which may still move. */
typedef struct task_note {
    uint64_t offset;
    au_mojo_task_kind kind;
    int64_t task;
    const au_mojo_text *name;
    size_t start, count;
} task_note;

struct au_mojo_reader {
    au_mojo_handlers handlers;
    au_mojo_parser parser;
    au__dict dict;
    const au_mojo_text *empty, *unknown;
    thread_state *threads;
    task_state *tasks;

    au_mojo_rule broken; /* why reading has stopped */
    uint64_t broken_at;
    int failed; /* stopped, by `broken`, a handler or the lack of memory */

    uint64_t samples;
    int any_stack;  /* there is a current PID */
    int both;       /* samples have a time and a memory metric */
    int know_kinds; /* a sample has shown which metrics they have */

    /* The sample that is being read. */
    int open;
    int begun; /* its frames have begun: the stack before is no longer of interest */
    au__stage stage;
    thread_state *thread;
    au_mojo_sample sample;
    au_buf kernel;         /* of const au_mojo_text * */
    au_buf notes;          /* of task_note */
    au_buf task_frames;    /* arena of frame_ref */
    au_buf waiters;        /* arena of int64_t */
    au_buf events;         /* of au_mojo_task_event, made when the sample is over */
    uint64_t task_pending; /* Frame references that the latest Task stack still waits for */
    int run_open;          /* the latest note is a run of waiters that may go on */
    int run_zero;          /* it has a waiter 0 */
};

au_mojo_reader *au_mojo_reader_create(const au_mojo_handlers *handlers)
{
    au_mojo_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        return NULL;
    }
    reader->handlers = *handlers;
    au_mojo_parser_init(&reader->parser);
    au__dict_init(&reader->dict);
    reader->empty = au__dict_text(&reader->dict, "", 0);
    reader->unknown = au__dict_text(&reader->dict, "<unknown>", strlen("<unknown>"));
    if (!reader->empty || !reader->unknown) {
        au_mojo_reader_destroy(reader);
        return NULL;
    }
    return reader;
}

void au_mojo_reader_destroy(au_mojo_reader *reader)
{
    if (!reader) {
        return;
    }
    /* The states themselves lie in the dictionary. */
    for (thread_state *thread = reader->threads; thread; thread = thread->next) {
        au_buf_deinit(&thread->frames);
    }
    for (task_state *task = reader->tasks; task; task = task->next) {
        au_buf_deinit(&task->frames);
    }
    au_buf_deinit(&reader->kernel);
    au_buf_deinit(&reader->notes);
    au_buf_deinit(&reader->task_frames);
    au_buf_deinit(&reader->waiters);
    au_buf_deinit(&reader->events);
    au__dict_deinit(&reader->dict);
    au_mojo_parser_deinit(&reader->parser);
    free(reader);
}

uint64_t au_mojo_reader_version(const au_mojo_reader *reader)
{
    return reader->parser.version;
}

uint32_t au_mojo_reader_texts(const au_mojo_reader *reader)
{
    return reader->dict.texts;
}

uint32_t au_mojo_reader_frames(const au_mojo_reader *reader)
{
    return reader->dict.frames;
}

static void warn(au_mojo_reader *reader, uint64_t offset, au_mojo_rule rule)
{
    if (reader->handlers.warning) {
        reader->handlers.warning(reader->handlers.context, offset, rule);
    }
}

static au_error *broken_error(const au_mojo_reader *reader)
{
    return au_error_cause(au_error_create(AU_ERR_IO, 0, "the MOJO stream cannot be read on at byte %" PRIu64 " (%s)",
                                          reader->broken_at, au_mojo_rule_name(reader->broken)),
                          "%s", au_mojo_rule_text(reader->broken));
}

static au_error *broken(au_mojo_reader *reader, uint64_t offset, au_mojo_rule rule)
{
    reader->broken = rule;
    reader->broken_at = offset;
    return broken_error(reader);
}

/* ------------------------------------------------------------------------------------------------- definitions */

static unsigned sign_of(const au_mojo_field *key)
{
    return key->negative && key->magnitude ? AU__SPACE_NEGATIVE : 0;
}

static void *look_up(const au_mojo_reader *reader, const au_mojo_field *key, unsigned pid_space, unsigned all_space)
{
    void *found = NULL;
    if (reader->any_stack) {
        found = au__dict_get(&reader->dict, (uint64_t)reader->sample.pid, key->magnitude, pid_space + sign_of(key));
    }
    return found ? found : au__dict_get(&reader->dict, 0, key->magnitude, all_space + sign_of(key));
}

static int define(au_mojo_reader *reader, const au_mojo_field *key, unsigned pid_space, unsigned all_space, void *value)
{
    if (reader->any_stack &&
        au__dict_set(&reader->dict, (uint64_t)reader->sample.pid, key->magnitude, pid_space + sign_of(key), value)) {
        return -1;
    }
    return au__dict_set(&reader->dict, 0, key->magnitude, all_space + sign_of(key), value);
}

static const au_mojo_text *text_of(const au_mojo_reader *reader, const au_mojo_field *key)
{
    const au_mojo_text *text = look_up(reader, key, AU__SPACE_STRING_PID, AU__SPACE_STRING_ALL);
    if (!text && !key->overflow && key->magnitude == AU_MOJO_STRING_NONE) {
        return reader->empty;
    }
    if (!text && !key->overflow && !key->negative && key->magnitude == AU_MOJO_STRING_UNKNOWN) {
        return reader->unknown;
    }
    return text;
}

static au_error *on_string(au_mojo_reader *reader, const au_mojo_event *event)
{
    const au_mojo_field *key = &event->fields[0];
    if (key->overflow) {
        return broken(reader, key->offset, AU_MOJO_VARINT_LENGTH);
    }
    const au_mojo_text *text = au__dict_text(&reader->dict, event->fields[1].text, event->fields[1].length);
    if (!text) {
        return au_error_memory();
    }
    const au_mojo_text *before = look_up(reader, key, AU__SPACE_STRING_PID, AU__SPACE_STRING_ALL);
    if (before && before != text) {
        warn(reader, event->offset, AU_MOJO_STRING_REDEFINED);
    }
    if (key->magnitude == AU_MOJO_STRING_UNKNOWN && !key->negative && text != reader->unknown) {
        warn(reader, event->offset, AU_MOJO_STRING_KEY1);
    }
    int failed = define(reader, key, AU__SPACE_STRING_PID, AU__SPACE_STRING_ALL, (void *)(uintptr_t)text);
    return failed ? au_error_memory() : NULL;
}

static au_error *on_frame(au_mojo_reader *reader, const au_mojo_event *event)
{
    const au_mojo_field *key = &event->fields[0];
    if (key->overflow) {
        return broken(reader, key->offset, AU_MOJO_VARINT_LENGTH);
    }
    au_mojo_sample_frame frame = {.file = text_of(reader, &event->fields[1]),
                                  .scope = text_of(reader, &event->fields[2])};
    if (!frame.file || !frame.scope) {
        return broken(reader, event->offset, AU_MOJO_STRING_UNDEFINED);
    }
    int64_t *places[] = {&frame.line, &frame.line_end, &frame.column, &frame.column_end};
    for (unsigned i = 3; i < event->count; i++) {
        if (!au_mojo_field_value(&event->fields[i], places[i - 3])) {
            return broken(reader, event->fields[i].offset, AU_MOJO_VARINT_LENGTH);
        }
    }
    frame_ref made = au__dict_frame(&reader->dict, &frame);
    if (!made) {
        return au_error_memory();
    }
    frame_ref before = look_up(reader, key, AU__SPACE_FRAME_PID, AU__SPACE_FRAME_ALL);
    if (before && before != made) {
        warn(reader, event->offset, AU_MOJO_FRAME_REDEFINED);
    }
    int failed = define(reader, key, AU__SPACE_FRAME_PID, AU__SPACE_FRAME_ALL, (void *)(uintptr_t)made);
    return failed ? au_error_memory() : NULL;
}

/* ------------------------------------------------------------------------------------------------------- tasks */

static task_state *task_of(au_mojo_reader *reader, int64_t id)
{
    task_state *task = au__dict_get(&reader->dict, 0, (uint64_t)id, AU__SPACE_TASK);
    if (!task) {
        task = au__dict_alloc(&reader->dict, sizeof *task);
        if (!task || au__dict_set(&reader->dict, 0, (uint64_t)id, AU__SPACE_TASK, task)) {
            return NULL;
        }
        task->next = reader->tasks;
        reader->tasks = task;
    }
    return task;
}

static int is_known(const au_mojo_reader *reader, int64_t id)
{
    const task_state *task = au__dict_get(&reader->dict, 0, (uint64_t)id, AU__SPACE_TASK);
    return task && task->known;
}

static au_error *add_note(au_mojo_reader *reader, const task_note *note)
{
    return au_buf_append(&reader->notes, note, sizeof *note) ? au_error_memory() : NULL;
}

static task_note *last_note(au_mojo_reader *reader)
{
    return (task_note *)(void *)(reader->notes.data + reader->notes.len) - 1;
}

static au_error *on_task_stack(au_mojo_reader *reader, const au_mojo_event *event)
{
    int64_t id, count;
    if (!au_mojo_field_value(&event->fields[0], &id)) {
        return broken(reader, event->fields[0].offset, AU_MOJO_VARINT_LENGTH);
    }
    if (!au_mojo_field_value(&event->fields[2], &count)) {
        return broken(reader, event->fields[2].offset, AU_MOJO_VARINT_LENGTH);
    }
    const au_mojo_text *name = text_of(reader, &event->fields[1]);
    if (!name) {
        return broken(reader, event->offset, AU_MOJO_STRING_UNDEFINED);
    }
    if (id <= 0) {
        warn(reader, event->offset, AU_MOJO_TASK_ID);
    }
    if (count < 0) {
        warn(reader, event->offset, AU_MOJO_TASK_FRAMES);
        count = 0;
    }
    task_state *task = task_of(reader, id);
    if (!task) {
        return au_error_memory();
    }
    task->known = 1;
    reader->task_pending = (uint64_t)count;
    task_note note = {.offset = event->offset,
                      .kind = count ? AU_MOJO_TASK_IS_AT : AU_MOJO_TASK_GONE,
                      .task = id,
                      .name = event->fields[1].magnitude == AU_MOJO_STRING_NONE ? NULL : name,
                      .start = reader->task_frames.len / sizeof(frame_ref)};
    return add_note(reader, &note);
}

static au_error *on_task_waiter(au_mojo_reader *reader, const au_mojo_event *event, int goes_on)
{
    int64_t id, waiter;
    for (unsigned i = 0; i < 2; i++) {
        if (!au_mojo_field_value(&event->fields[i], i ? &waiter : &id)) {
            return broken(reader, event->fields[i].offset, AU_MOJO_VARINT_LENGTH);
        }
    }
    if (!is_known(reader, id) || (waiter && !is_known(reader, waiter))) {
        warn(reader, event->offset, AU_MOJO_WAITER_UNKNOWN);
    }
    task_note *run = goes_on ? last_note(reader) : NULL;
    if (!run || run->task != id) {
        task_note note = {.offset = event->offset,
                          .kind = AU_MOJO_TASK_WAITERS,
                          .task = id,
                          .start = reader->waiters.len / sizeof(int64_t)};
        au_error *error = add_note(reader, &note);
        if (error) {
            return error;
        }
        run = last_note(reader);
        reader->run_zero = 0;
    } else if (reader->run_zero || waiter == 0) {
        warn(reader, event->offset, AU_MOJO_WAITER_ZERO);
    }
    reader->run_open = 1;
    if (waiter == 0) {
        reader->run_zero = 1;
        return NULL;
    }
    run->count++;
    return au_buf_append(&reader->waiters, &waiter, sizeof waiter) ? au_error_memory() : NULL;
}

static au_error *on_running(au_mojo_reader *reader, const au_mojo_event *event)
{
    int64_t id;
    if (!au_mojo_field_value(&event->fields[0], &id)) {
        return broken(reader, event->fields[0].offset, AU_MOJO_VARINT_LENGTH);
    }
    if (!is_known(reader, id)) {
        warn(reader, event->offset, AU_MOJO_RUNNING_UNKNOWN);
    }
    task_note note = {.offset = event->offset, .kind = AU_MOJO_TASK_RUNNING, .task = id};
    reader->sample.running = id;
    return add_note(reader, &note);
}

/* Turns the notes into events, and moves the tasks to where the sample says that they are. */
static int resolve_tasks(au_mojo_reader *reader)
{
    size_t count = reader->notes.len / sizeof(task_note);
    const task_note *notes = (const task_note *)(void *)reader->notes.data;
    for (size_t i = 0; i < count; i++) {
        const task_note *note = &notes[i];
        au_mojo_task_event event = {.offset = note->offset, .kind = note->kind, .task = note->task, .name = note->name};
        if (note->kind == AU_MOJO_TASK_WAITERS) {
            event.waiters = note->count ? (const int64_t *)(void *)reader->waiters.data + note->start : NULL;
            event.waiter_count = note->count;
        } else if (note->kind != AU_MOJO_TASK_RUNNING) {
            event.frames = note->count ? (const frame_ref *)(void *)reader->task_frames.data + note->start : NULL;
            event.frame_count = note->count;
            task_state *task = task_of(reader, note->task);
            if (note->count) {
                au_buf_reset(&task->frames);
            } else {
                au_buf_deinit(&task->frames); /* gone for good */
            }
            if (note->count && au_buf_append(&task->frames, event.frames, note->count * sizeof(frame_ref))) {
                return -1;
            }
        }
        if (au_buf_append(&reader->events, &event, sizeof event)) {
            return -1;
        }
    }
    reader->sample.task_events = (const au_mojo_task_event *)(void *)reader->events.data;
    reader->sample.task_event_count = count;
    const task_state *running = au__dict_get(&reader->dict, 0, (uint64_t)reader->sample.running, AU__SPACE_TASK);
    if (reader->sample.running && running) {
        reader->sample.task_frames = (const frame_ref *)(void *)running->frames.data;
        reader->sample.task_frame_count = running->frames.len / sizeof(frame_ref);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------------------- samples */

static au_error *end_sample(au_mojo_reader *reader)
{
    if (!reader->open) {
        return NULL;
    }
    reader->open = 0;
    au_mojo_sample *sample = &reader->sample;
    if (!reader->begun) {
        au_buf_reset(&reader->thread->frames); /* a sample without frames: the next repeat repeats that */
    }
    if (resolve_tasks(reader)) {
        return au_error_memory();
    }
    if (sample->has_time || sample->has_memory) {
        if (!reader->know_kinds) {
            reader->know_kinds = 1;
            reader->both = sample->has_time && sample->has_memory;
        }
    } else {
        warn(reader, sample->offset, AU_MOJO_SAMPLE_METRIC);
    }
    sample->frames = (const frame_ref *)(void *)reader->thread->frames.data;
    sample->frame_count = reader->thread->frames.len / sizeof(frame_ref);
    sample->kernel = (const au_mojo_text *const *)(void *)reader->kernel.data;
    sample->kernel_count = reader->kernel.len / sizeof(au_mojo_text *);
    sample->index = reader->samples++;
    return reader->handlers.sample ? reader->handlers.sample(reader->handlers.context, sample) : NULL;
}

static au_error *on_stack(au_mojo_reader *reader, const au_mojo_event *event)
{
    au_error *error = end_sample(reader);
    if (error) {
        return error;
    }
    int64_t pid, iid = 0;
    if (!au_mojo_field_value(&event->fields[0], &pid)) {
        return broken(reader, event->fields[0].offset, AU_MOJO_VARINT_LENGTH);
    }
    if (event->count == 3 && !au_mojo_field_value(&event->fields[1], &iid)) {
        return broken(reader, event->fields[1].offset, AU_MOJO_VARINT_LENGTH);
    }
    const au_mojo_field *name = &event->fields[event->count - 1];
    const au_mojo_text *text = au__dict_text(&reader->dict, name->text, name->length);
    if (!text) {
        return au_error_memory();
    }
    thread_state *thread = au__dict_get(&reader->dict, (uint64_t)pid, text->id, AU__SPACE_THREAD);
    if (thread) {
        thread->seen = 1;
    } else {
        thread = au__dict_alloc(&reader->dict, sizeof *thread);
        if (!thread || au__dict_set(&reader->dict, (uint64_t)pid, text->id, AU__SPACE_THREAD, thread)) {
            return au_error_memory();
        }
        thread->next = reader->threads;
        reader->threads = thread;
    }
    reader->sample =
        (au_mojo_sample){.offset = event->offset, .end = event->end, .pid = pid, .iid = iid, .thread = text};
    reader->any_stack = reader->open = 1;
    reader->thread = thread;
    reader->begun = 0;
    reader->task_pending = 0;
    reader->run_open = 0;
    reader->stage = AU__STAGE_TASKS;
    au_buf_reset(&reader->kernel);
    au_buf_reset(&reader->notes);
    au_buf_reset(&reader->task_frames);
    au_buf_reset(&reader->waiters);
    au_buf_reset(&reader->events);
    return NULL;
}

static void begin_frames(au_mojo_reader *reader)
{
    if (!reader->begun) {
        reader->begun = 1;
        au_buf_reset(&reader->thread->frames);
    }
}

static au_error *on_repeat(au_mojo_reader *reader, const au_mojo_event *event)
{
    if (reader->begun) {
        return broken(reader, event->offset, AU_MOJO_SAMPLE_ORDER); /* two stacks: which one is it? */
    }
    if (!reader->thread->seen) {
        return broken(reader, event->offset, AU_MOJO_REPEAT_FIRST);
    }
    reader->begun = 1;
    au_buf *frames = &reader->thread->frames;
    while (frames->len && ((frame_ref *)(void *)(frames->data + frames->len))[-1]->native) {
        frames->len -= sizeof(frame_ref);
    }
    return NULL;
}

static au_error *on_frame_ref(au_mojo_reader *reader, const au_mojo_event *event, int of_task)
{
    frame_ref frame = look_up(reader, &event->fields[0], AU__SPACE_FRAME_PID, AU__SPACE_FRAME_ALL);
    if (!frame || event->fields[0].overflow) {
        return broken(reader, event->offset, AU_MOJO_FRAME_UNDEFINED);
    }
    au_buf *frames = &reader->thread->frames;
    if (of_task) {
        reader->task_pending--;
        last_note(reader)->count++;
        frames = &reader->task_frames;
    } else {
        begin_frames(reader);
    }
    return au_buf_append(frames, &frame, sizeof frame) ? au_error_memory() : NULL;
}

static au_error *on_invalid_frame(au_mojo_reader *reader)
{
    au_mojo_sample_frame frame = {.file = reader->empty, .scope = reader->empty, .invalid = 1};
    frame_ref made = au__dict_frame(&reader->dict, &frame);
    begin_frames(reader);
    return !made || au_buf_append(&reader->thread->frames, &made, sizeof made) ? au_error_memory() : NULL;
}

static au_error *on_kernel_frame(au_mojo_reader *reader, const au_mojo_event *event)
{
    const au_mojo_text *symbol = au__dict_text(&reader->dict, event->fields[0].text, event->fields[0].length);
    return !symbol || au_buf_append(&reader->kernel, &symbol, sizeof symbol) ? au_error_memory() : NULL;
}

static au_error *on_metric(au_mojo_reader *reader, const au_mojo_event *event, uint8_t *has, int64_t *value)
{
    if (*has) {
        warn(reader, event->offset, AU_MOJO_METRIC_TWICE);
    }
    *has = 1;
    return au_mojo_field_value(&event->fields[0], value)
               ? NULL
               : broken(reader, event->fields[0].offset, AU_MOJO_VARINT_LENGTH);
}

static au_error *on_sample_event(au_mojo_reader *reader, const au_mojo_event *event)
{
    if (!reader->open) {
        warn(reader, event->offset, AU_MOJO_SAMPLE_OUTSIDE);
        return NULL;
    }
    int of_task = event->id == AU_MOJO_FRAME_REF && reader->task_pending;
    int goes_on = event->id == AU_MOJO_TASK_WAITER && reader->run_open;
    reader->sample.end = event->end;
    reader->run_open = 0;
    if (!of_task) {
        if (reader->task_pending) {
            warn(reader, event->offset, AU_MOJO_TASK_FRAMES);
            reader->task_pending = 0;
        }
        int hopeless = event->id == AU_MOJO_STACK_REPEAT && reader->begun; /* an error follows */
        if (!au__stage_enter(&reader->stage, event->id) && !hopeless) {
            warn(reader, event->offset, AU_MOJO_SAMPLE_ORDER);
        }
    }
    switch (event->id) {
    case AU_MOJO_FRAME_REF:
        return on_frame_ref(reader, event, of_task);
    case AU_MOJO_INVALID_FRAME:
        return on_invalid_frame(reader);
    case AU_MOJO_STACK_REPEAT:
        return on_repeat(reader, event);
    case AU_MOJO_KERNEL_FRAME:
        return on_kernel_frame(reader, event);
    case AU_MOJO_GC:
        reader->sample.gc = 1;
        return NULL;
    case AU_MOJO_IDLE:
        reader->sample.idle = 1;
        return NULL;
    case AU_MOJO_TIME:
        return on_metric(reader, event, &reader->sample.has_time, &reader->sample.time_us);
    case AU_MOJO_MEMORY:
        return on_metric(reader, event, &reader->sample.has_memory, &reader->sample.memory_bytes);
    case AU_MOJO_TASK_STACK:
        return on_task_stack(reader, event);
    case AU_MOJO_TASK_WAITER:
        return on_task_waiter(reader, event, goes_on);
    default:
        return on_running(reader, event);
    }
}

static au_error *on_metadata(au_mojo_reader *reader, const au_mojo_event *event)
{
    if (reader->open && (reader->sample.has_time || reader->sample.has_memory)) {
        au_error *error = end_sample(reader);
        if (error) {
            return error;
        }
    } else if (reader->open) {
        warn(reader, event->offset, AU_MOJO_METADATA_INSIDE);
    }
    const char *key = event->fields[0].text, *value = event->fields[1].text;
    if (!reader->know_kinds && strcmp(key, "mode") == 0) {
        reader->both = strcmp(value, "full") == 0;
    }
    return reader->handlers.metadata ? reader->handlers.metadata(reader->handlers.context, event->offset, key, value)
                                     : NULL;
}

static au_error *on_event(au_mojo_reader *reader, const au_mojo_event *event)
{
    switch (event->id) {
    case AU_MOJO_METADATA:
        return on_metadata(reader, event);
    case AU_MOJO_STACK:
        return on_stack(reader, event);
    case AU_MOJO_FRAME:
        return on_frame(reader, event);
    case AU_MOJO_STRING:
        return on_string(reader, event);
    case AU_MOJO_STRING_REF:
        return text_of(reader, &event->fields[0]) ? NULL : broken(reader, event->offset, AU_MOJO_STRING_UNDEFINED);
    default:
        return on_sample_event(reader, event);
    }
}

au_error *au_mojo_reader_feed(au_mojo_reader *reader, const void *bytes, size_t len)
{
    if (reader->failed) {
        return reader->broken ? broken_error(reader) : au_error_create(AU_ERR_IO, 0, "the reader has stopped before");
    }
    au_mojo_parser_feed(&reader->parser, bytes, len);
    for (;;) {
        const au_mojo_event *event;
        au_error *error = NULL;
        switch (au_mojo_parser_next(&reader->parser, &event)) {
        case AU_MOJO_NEXT_MORE:
            return NULL;
        case AU_MOJO_NEXT_HEADER:
            break;
        case AU_MOJO_NEXT_EVENT:
            error = on_event(reader, event);
            break;
        default:
            error = reader->parser.out_of_memory ? au_error_memory()
                                                 : broken(reader, reader->parser.rule_offset, reader->parser.rule);
            break;
        }
        if (error) {
            reader->failed = 1;
            return error;
        }
    }
}

/* The last sample has all that one of this stream has, and the input does not end inside one of its own events. */
static int is_whole(const au_mojo_reader *reader, int cut)
{
    int cut_in_sample = cut && au__is_of_sample(reader->parser.event.id);
    return !cut_in_sample && (reader->both ? reader->sample.has_time && reader->sample.has_memory
                                           : reader->sample.has_time || reader->sample.has_memory);
}

au_error *au_mojo_reader_finish(au_mojo_reader *reader, int complete, int *unfinished)
{
    *unfinished = 1;
    if (reader->failed) {
        return au_mojo_reader_feed(reader, NULL, 0);
    }
    au_mojo_rule rule = au_mojo_parser_finish(&reader->parser);
    uint64_t offset = reader->parser.rule_offset;
    au_error *error = NULL;
    if (reader->open) {
        if (is_whole(reader, rule != AU_MOJO_RULE_NONE)) {
            error = end_sample(reader);
        } else if (rule == AU_MOJO_RULE_NONE) {
            rule = AU_MOJO_SAMPLE_METRIC;
            offset = reader->sample.offset;
        }
    }
    *unfinished = rule != AU_MOJO_RULE_NONE;
    if (!error && complete && rule != AU_MOJO_RULE_NONE) {
        error = broken(reader, offset, rule);
    }
    reader->failed = error != NULL;
    return error;
}
