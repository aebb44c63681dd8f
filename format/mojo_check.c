/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "format/mojo_dict.h"
#include "format/mojo_event.h"
#include "format/mojo_stage.h"
#include "format/mojo_utf8.h"

enum { KIND_TIME = 1, KIND_MEMORY = 2, KIND_IDLE = 4 };

typedef struct task_mark {
    int gone;
} task_mark;

/* A task that the sample reports for the first time. */
typedef struct new_task {
    int64_t id;
    uint64_t offset;
} new_task;

struct au_mojo_checker {
    int unfinished;
    void (*found)(void *context, const au_mojo_finding *finding);
    void *context;
    uint64_t violations, warnings;

    au_mojo_parser parser;
    au__dict dict;
    const au_mojo_text *empty, *unknown;
    au_buf findings; /* of au_mojo_finding: of the sample that is open, or since the last one */
    int stopped;     /* nothing behind can be told */
    int no_memory;

    unsigned kinds; /* metrics of the first sample that had any; 0 before */
    int full_mode;  /* metadata says so: the last sample needs both */
    int64_t highest_task;

    /* The sample that is open. */
    int open;
    uint64_t stack_offset;
    int first_of_thread;
    au__stage stage;
    unsigned seen; /* KIND_* */
    uint64_t task_pending;
    int run_open, run_zero; /* a run of Task waiter events may go on; it has a 0 */
    int64_t run_task;
    au_buf new_tasks;     /* of new_task */
    au_buf late_metadata; /* of uint64_t: Metadata behind a metric, inside only if the sample goes on */
};

int au_mojo_rule_is_warning(au_mojo_rule rule)
{
    return rule == AU_MOJO_STRING_UTF8 || rule == AU_MOJO_VARINT_CANONICAL || rule == AU_MOJO_FRAME_NATIVE;
}

au_mojo_checker *au_mojo_checker_create(int unfinished, void (*found)(void *context, const au_mojo_finding *finding),
                                        void *context)
{
    au_mojo_checker *checker = calloc(1, sizeof *checker);
    if (!checker) {
        return NULL;
    }
    checker->unfinished = unfinished;
    checker->found = found;
    checker->context = context;
    au_mojo_parser_init(&checker->parser);
    au__dict_init(&checker->dict);
    checker->empty = au__dict_text(&checker->dict, "", 0);
    checker->unknown = au__dict_text(&checker->dict, "<unknown>", strlen("<unknown>"));
    if (!checker->empty || !checker->unknown) {
        au_mojo_checker_destroy(checker);
        return NULL;
    }
    return checker;
}

void au_mojo_checker_destroy(au_mojo_checker *checker)
{
    if (checker) {
        au_buf_deinit(&checker->findings);
        au_buf_deinit(&checker->new_tasks);
        au_buf_deinit(&checker->late_metadata);
        au__dict_deinit(&checker->dict);
        au_mojo_parser_deinit(&checker->parser);
        free(checker);
    }
}

static void append(au_mojo_checker *checker, au_buf *buf, const void *bytes, size_t len)
{
    if (au_buf_append(buf, bytes, len)) {
        checker->no_memory = 1;
    }
}

static void find(au_mojo_checker *checker, uint64_t offset, au_mojo_rule rule)
{
    au_mojo_finding finding = {.offset = offset, .rule = rule, .warning = au_mojo_rule_is_warning(rule)};
    append(checker, &checker->findings, &finding, sizeof finding);
}

/* Some findings show late (a sample without a metric, a gap in the tasks), so those of a sample are put in order. A
 * merge sort: it keeps the order of equal offsets, and a hostile stream gets no square of its length out of it. */
static void sort_findings(au_mojo_finding *from, au_mojo_finding *spare, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = count - start < width ? count : start + width;
            size_t end = count - start < 2 * width ? count : start + 2 * width;
            size_t a = start, b = middle;
            for (size_t k = start; k < end; k++) {
                spare[k] = b == end || (a < middle && from[a].offset <= from[b].offset) ? from[a++] : from[b++];
            }
        }
        memcpy(from, spare, count * sizeof *from);
    }
}

/* Hands out what was found below `cut`; what lies behind is forgotten, but for what no cut can make. */
static void flush(au_mojo_checker *checker, uint64_t cut)
{
    size_t count = checker->findings.len / sizeof(au_mojo_finding);
    if (count > 1) {
        if (au_buf_reserve(&checker->findings, checker->findings.len)) {
            checker->no_memory = 1;
            return;
        }
        au_mojo_finding *first = (au_mojo_finding *)(void *)checker->findings.data;
        sort_findings(first, first + count, count);
    }
    const au_mojo_finding *finding = (const au_mojo_finding *)(void *)checker->findings.data;
    for (size_t i = 0; i < count; i++, finding++) {
        int kept = finding->offset < cut || finding->rule == AU_MOJO_EVENT_RESERVED ||
                   finding->rule == AU_MOJO_EVENT_UNKNOWN || finding->rule == AU_MOJO_VARINT_LENGTH ||
                   (checker->stopped && finding->rule == AU_MOJO_HEADER_MAGIC);
        if (kept) {
            checker->violations += !finding->warning;
            checker->warnings += (uint64_t)finding->warning;
            if (checker->found) {
                checker->found(checker->context, finding);
            }
        }
    }
    au_buf_reset(&checker->findings);
}

/* ------------------------------------------------------------------------------------------------------ fields */

static void check_field(au_mojo_checker *checker, const au_mojo_field *field)
{
    if (field->kind == AU_MOJO_FIELD_STRING) {
        if (!au__utf8_valid(field->text, field->length)) {
            find(checker, field->offset, AU_MOJO_STRING_UTF8);
        }
        return;
    }
    if (!field->canonical) {
        find(checker, field->offset, AU_MOJO_VARINT_CANONICAL);
    }
    if (field->kind == AU_MOJO_FIELD_KEY) {
        if (field->length > 4) {
            find(checker, field->offset, AU_MOJO_KEY_LENGTH);
        }
        if (field->negative && field->magnitude) {
            find(checker, field->offset, AU_MOJO_KEY_NEGATIVE);
        }
    }
}

/* A number beyond 64 bits counts as the nearest that fits. */
static int64_t value_of(const au_mojo_field *field)
{
    int64_t value = field->negative ? INT64_MIN : INT64_MAX;
    au_mojo_field_value(field, &value);
    return value;
}

static unsigned sign_of(const au_mojo_field *key)
{
    return key->negative && key->magnitude ? AU__SPACE_NEGATIVE : 0;
}

/* ------------------------------------------------------------------------------------------------- definitions */

static void check_string(au_mojo_checker *checker, const au_mojo_event *event)
{
    const au_mojo_field *key = &event->fields[0];
    const au_mojo_text *text = au__dict_text(&checker->dict, event->fields[1].text, event->fields[1].length);
    if (!text) {
        checker->no_memory = 1;
        return;
    }
    unsigned space = AU__SPACE_STRING_ALL + sign_of(key);
    const au_mojo_text *before = au__dict_get(&checker->dict, 0, key->magnitude, space);
    if (!key->negative && key->magnitude == AU_MOJO_STRING_UNKNOWN) {
        find(checker, event->offset, AU_MOJO_STRING_KEY1);
        return;
    }
    if (before && before != text) {
        find(checker, event->offset, AU_MOJO_STRING_REDEFINED);
    }
    if (au__dict_set(&checker->dict, 0, key->magnitude, space, (void *)(uintptr_t)text)) {
        checker->no_memory = 1;
    }
}

static const au_mojo_text *check_string_key(au_mojo_checker *checker, const au_mojo_event *event,
                                            const au_mojo_field *key)
{
    const au_mojo_text *text = au__dict_get(&checker->dict, 0, key->magnitude, AU__SPACE_STRING_ALL + sign_of(key));
    if (!text && key->magnitude == AU_MOJO_STRING_NONE) {
        text = checker->empty;
    }
    if (!text && !key->negative && key->magnitude == AU_MOJO_STRING_UNKNOWN) {
        text = checker->unknown;
    }
    if (!text) {
        find(checker, event->offset, AU_MOJO_STRING_UNDEFINED);
    }
    return text;
}

static void check_frame(au_mojo_checker *checker, const au_mojo_event *event)
{
    const au_mojo_field *key = &event->fields[0];
    const au_mojo_text *file = check_string_key(checker, event, &event->fields[1]);
    const au_mojo_text *scope = check_string_key(checker, event, &event->fields[2]);
    au_mojo_sample_frame frame = {.file = file,
                                  .scope = scope,
                                  .line = value_of(&event->fields[3]),
                                  .line_end = value_of(&event->fields[4]),
                                  .column = value_of(&event->fields[5]),
                                  .column_end = value_of(&event->fields[6])};
    int negative = frame.line < 0 || frame.line_end < 0 || frame.column < 0 || frame.column_end < 0;
    int backwards = frame.line_end && frame.line_end < frame.line;
    /* Columns can only be compared on one line. */
    int one_line = frame.line_end == frame.line;
    if (negative || backwards || (one_line && frame.column_end && frame.column_end < frame.column)) {
        find(checker, event->offset, AU_MOJO_FRAME_LOCATION);
    }
    const au_mojo_sample_frame *made = au__dict_frame(&checker->dict, &frame);
    if (!made) {
        checker->no_memory = 1;
        return;
    }
    if (made->native && (frame.line_end || frame.column || frame.column_end)) {
        find(checker, event->offset, AU_MOJO_FRAME_NATIVE);
    }
    unsigned space = AU__SPACE_FRAME_ALL + sign_of(key);
    const au_mojo_sample_frame *before = au__dict_get(&checker->dict, 0, key->magnitude, space);
    if (before && before != made) {
        find(checker, event->offset, AU_MOJO_FRAME_REDEFINED);
    }
    if (au__dict_set(&checker->dict, 0, key->magnitude, space, (void *)(uintptr_t)made)) {
        checker->no_memory = 1;
    }
}

/* ------------------------------------------------------------------------------------------------------- tasks */

static task_mark *task_of(au_mojo_checker *checker, int64_t id)
{
    return au__dict_get(&checker->dict, 0, (uint64_t)id, AU__SPACE_TASK);
}

/* An identifier in use: 1 if the task was reported before, else `unknown` is found. Finds 0, negative and gone ones. */
static void check_task(au_mojo_checker *checker, uint64_t offset, int64_t id, au_mojo_rule unknown)
{
    if (id <= 0) {
        find(checker, offset, AU_MOJO_TASK_ID);
        return;
    }
    const task_mark *task = task_of(checker, id);
    if (!task) {
        find(checker, offset, unknown);
    } else if (task->gone) {
        find(checker, offset, AU_MOJO_TASK_REUSE);
    }
}

static void check_task_stack(au_mojo_checker *checker, const au_mojo_event *event)
{
    int64_t id = value_of(&event->fields[0]), count = value_of(&event->fields[2]);
    check_string_key(checker, event, &event->fields[1]);
    if (count < 0) {
        find(checker, event->offset, AU_MOJO_TASK_FRAMES);
        count = 0;
    }
    checker->task_pending = (uint64_t)count;
    if (id <= 0) {
        find(checker, event->offset, AU_MOJO_TASK_ID);
        return;
    }
    task_mark *task = task_of(checker, id);
    if (!task) {
        task = au__dict_alloc(&checker->dict, sizeof *task);
        if (!task || au__dict_set(&checker->dict, 0, (uint64_t)id, AU__SPACE_TASK, task)) {
            checker->no_memory = 1;
            return;
        }
        new_task note = {.id = id, .offset = event->offset};
        append(checker, &checker->new_tasks, &note, sizeof note);
    } else if (task->gone) {
        find(checker, event->offset, AU_MOJO_TASK_REUSE);
    }
    task->gone |= count == 0; /* for good, whatever else is said of it */
}

static void check_waiter(au_mojo_checker *checker, const au_mojo_event *event, int goes_on)
{
    int64_t id = value_of(&event->fields[0]), waiter = value_of(&event->fields[1]);
    check_task(checker, event->offset, id, AU_MOJO_WAITER_UNKNOWN);
    if (waiter) {
        check_task(checker, event->offset, waiter, AU_MOJO_WAITER_UNKNOWN);
    }
    if (!goes_on || checker->run_task != id) {
        checker->run_task = id;
        checker->run_zero = 0;
    } else if (checker->run_zero || waiter == 0) {
        find(checker, event->offset, AU_MOJO_WAITER_ZERO);
    }
    checker->run_open = 1;
    checker->run_zero |= waiter == 0;
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const new_task *)a)->id, y = ((const new_task *)b)->id;
    return (x > y) - (x < y);
}

static void check_sequence(au_mojo_checker *checker)
{
    new_task *tasks = (new_task *)(void *)checker->new_tasks.data;
    size_t count = checker->new_tasks.len / sizeof *tasks;
    if (count > 1) {
        qsort(tasks, count, sizeof *tasks, by_id);
    }
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].id > checker->highest_task) {
            if (tasks[i].id != checker->highest_task + 1) {
                find(checker, tasks[i].offset, AU_MOJO_TASK_SEQUENCE);
            }
            checker->highest_task = tasks[i].id;
        }
    }
    au_buf_reset(&checker->new_tasks);
}

/* ----------------------------------------------------------------------------------------------------- samples */

/* `offset` is where something else than a Frame reference of the last task stack comes. */
static void end_task_frames(au_mojo_checker *checker, uint64_t offset)
{
    if (checker->task_pending) {
        find(checker, offset, AU_MOJO_TASK_FRAMES);
        checker->task_pending = 0;
    }
}

static void end_sample(au_mojo_checker *checker, uint64_t offset)
{
    if (!checker->open) {
        return;
    }
    end_task_frames(checker, offset);
    check_sequence(checker);
    unsigned kinds = checker->seen & (KIND_TIME | KIND_MEMORY);
    if (!kinds) {
        find(checker, checker->stack_offset, AU_MOJO_SAMPLE_METRIC);
    } else if (!checker->kinds) {
        checker->kinds = kinds;
    } else if (checker->kinds != kinds) {
        find(checker, checker->stack_offset, AU_MOJO_MODE_MIXED);
    }
    if ((checker->seen & KIND_IDLE) && kinds != (KIND_TIME | KIND_MEMORY)) {
        find(checker, checker->stack_offset, AU_MOJO_IDLE_MODE);
    }
    checker->open = 0;
}

static void check_stack(au_mojo_checker *checker, const au_mojo_event *event)
{
    end_sample(checker, event->offset);
    const au_mojo_text *name = au__dict_text(&checker->dict, event->fields[2].text, event->fields[2].length);
    if (!name) {
        checker->no_memory = 1;
        return;
    }
    uint64_t pid = (uint64_t)value_of(&event->fields[0]);
    checker->first_of_thread = !au__dict_get(&checker->dict, pid, name->id, AU__SPACE_THREAD);
    if (checker->first_of_thread && au__dict_set(&checker->dict, pid, name->id, AU__SPACE_THREAD, checker)) {
        checker->no_memory = 1;
    }
    checker->open = 1;
    checker->stack_offset = event->offset;
    checker->stage = AU__STAGE_TASKS;
    checker->seen = 0;
    checker->run_open = 0;
    au_buf_reset(&checker->late_metadata);
}

static void check_metric(au_mojo_checker *checker, const au_mojo_event *event, unsigned kind)
{
    if (checker->seen & kind) {
        find(checker, event->offset, AU_MOJO_METRIC_TWICE);
    } else if (!au__stage_enter(&checker->stage, event->id)) {
        find(checker, event->offset, AU_MOJO_SAMPLE_ORDER);
    }
    checker->seen |= kind;
}

static void check_metadata(au_mojo_checker *checker, const au_mojo_event *event)
{
    if (checker->open && !(checker->seen & (KIND_TIME | KIND_MEMORY))) {
        find(checker, event->offset, AU_MOJO_METADATA_INSIDE);
    } else if (checker->open) {
        append(checker, &checker->late_metadata, &event->offset, sizeof event->offset);
    }
    if (strcmp(event->fields[0].text, "mode") == 0) {
        checker->full_mode = strcmp(event->fields[1].text, "full") == 0;
    }
}

/* The sample goes on behind metadata that seemed to come after it. */
static void settle_metadata(au_mojo_checker *checker)
{
    const uint64_t *offsets = (const uint64_t *)(void *)checker->late_metadata.data;
    for (size_t i = 0; i < checker->late_metadata.len / sizeof *offsets; i++) {
        find(checker, offsets[i], AU_MOJO_METADATA_INSIDE);
    }
    au_buf_reset(&checker->late_metadata);
}

static void check_sample_event(au_mojo_checker *checker, const au_mojo_event *event)
{
    int of_task = 0, goes_on = 0;
    if (!checker->open) {
        find(checker, event->offset, AU_MOJO_SAMPLE_OUTSIDE);
    } else {
        settle_metadata(checker);
        of_task = event->id == AU_MOJO_FRAME_REF && checker->task_pending;
        goes_on = event->id == AU_MOJO_TASK_WAITER && checker->run_open;
        checker->run_open = 0;
        if (of_task) {
            checker->task_pending--;
        } else {
            end_task_frames(checker, event->offset);
        }
    }
    int metric = event->id == AU_MOJO_TIME || event->id == AU_MOJO_IDLE || event->id == AU_MOJO_MEMORY;
    int late = checker->open && !of_task && !metric && !au__stage_enter(&checker->stage, event->id);
    if (late) {
        find(checker, event->offset, AU_MOJO_SAMPLE_ORDER);
    }
    switch (event->id) {
    case AU_MOJO_INVALID_FRAME:
        find(checker, event->offset, AU_MOJO_EVENT_INVALID_FRAME);
        break;
    case AU_MOJO_FRAME_REF: {
        const au_mojo_field *key = &event->fields[0];
        if (!au__dict_get(&checker->dict, 0, key->magnitude, AU__SPACE_FRAME_ALL + sign_of(key))) {
            find(checker, event->offset, AU_MOJO_FRAME_UNDEFINED);
        }
        break;
    }
    case AU_MOJO_STACK_REPEAT:
        if (checker->open && checker->first_of_thread) {
            find(checker, event->offset, AU_MOJO_REPEAT_FIRST);
        }
        break;
    case AU_MOJO_TIME:
    case AU_MOJO_IDLE:
    case AU_MOJO_MEMORY:
        if (checker->open) {
            check_metric(checker, event,
                         event->id == AU_MOJO_TIME   ? KIND_TIME
                         : event->id == AU_MOJO_IDLE ? KIND_IDLE
                                                     : KIND_MEMORY);
        }
        break;
    case AU_MOJO_TASK_STACK:
        if (checker->open) {
            check_task_stack(checker, event);
        }
        break;
    case AU_MOJO_TASK_WAITER:
        if (checker->open) {
            check_waiter(checker, event, goes_on);
        }
        break;
    case AU_MOJO_RUNNING_TASK:
        if (checker->open) {
            check_task(checker, event->offset, value_of(&event->fields[0]), AU_MOJO_RUNNING_UNKNOWN);
        }
        break;
    default:
        break;
    }
}

static void check_event(au_mojo_checker *checker, const au_mojo_event *event)
{
    if (event->id == AU_MOJO_STACK) {
        /* What belongs to the sample before is complete, and lies before this event. */
        end_sample(checker, event->offset);
        flush(checker, UINT64_MAX);
    }
    for (unsigned i = 0; i < event->count; i++) {
        check_field(checker, &event->fields[i]);
    }
    switch (event->id) {
    case AU_MOJO_METADATA:
        check_metadata(checker, event);
        break;
    case AU_MOJO_STACK:
        check_stack(checker, event);
        break;
    case AU_MOJO_FRAME:
        check_frame(checker, event);
        break;
    case AU_MOJO_STRING:
        check_string(checker, event);
        break;
    case AU_MOJO_STRING_REF:
        check_string_key(checker, event, &event->fields[0]);
        break;
    default:
        check_sample_event(checker, event);
        break;
    }
}

au_error *au_mojo_checker_feed(au_mojo_checker *checker, const void *bytes, size_t len)
{
    if (checker->stopped) {
        return NULL;
    }
    au_mojo_parser *parser = &checker->parser;
    au_mojo_parser_feed(parser, bytes, len);
    while (!checker->no_memory) {
        const au_mojo_event *event;
        switch (au_mojo_parser_next(parser, &event)) {
        case AU_MOJO_NEXT_MORE:
            return NULL;
        case AU_MOJO_NEXT_HEADER:
            check_field(checker, &parser->version_field);
            if (parser->version != AU_MOJO_VERSION || parser->version_field.negative) {
                find(checker, 3, AU_MOJO_HEADER_VERSION);
                checker->stopped = 1;
                return NULL;
            }
            break;
        case AU_MOJO_NEXT_EVENT:
            check_event(checker, event);
            break;
        default:
            if (parser->out_of_memory) {
                return au_error_memory();
            }
            find(checker, parser->rule_offset, parser->rule);
            checker->stopped = 1;
            return NULL;
        }
    }
    return au_error_memory();
}

/* Where the stream is cut: before a last sample that is not whole, else before an event that is not whole. */
static uint64_t cut_of(const au_mojo_checker *checker, int cut)
{
    unsigned needed = checker->kinds ? checker->kinds : checker->full_mode ? KIND_TIME | KIND_MEMORY : 0;
    unsigned have = checker->seen & (KIND_TIME | KIND_MEMORY);
    int in_sample = cut && checker->parser.version && au__is_of_sample(checker->parser.event.id);
    int whole = !in_sample && have && (have & needed) == needed;
    return checker->open && !whole ? checker->stack_offset : checker->parser.offset;
}

au_error *au_mojo_checker_finish(au_mojo_checker *checker, uint64_t *violations, uint64_t *warnings)
{
    au_mojo_parser *parser = &checker->parser;
    uint64_t cut = UINT64_MAX;
    if (!checker->stopped) {
        au_mojo_rule rule = au_mojo_parser_finish(parser);
        if (checker->unfinished) {
            cut = cut_of(checker, rule != AU_MOJO_RULE_NONE);
        }
        if (cut > checker->stack_offset || !checker->open) {
            if (rule == AU_MOJO_RULE_NONE || checker->unfinished) {
                end_sample(checker, parser->offset);
            }
        }
        if (rule != AU_MOJO_RULE_NONE) {
            find(checker, parser->rule_offset, rule);
        }
    }
    flush(checker, cut);
    *violations = checker->violations;
    *warnings = checker->warnings;
    return checker->no_memory ? au_error_memory() : NULL;
}
