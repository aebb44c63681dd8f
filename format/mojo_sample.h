/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A sample as the reader hands it out: keys, repeats and task references are resolved. Texts and frames are interned:
 * equal ones are the same pointer (and id) for the life of the reader; everything else is valid during the callback.
 */
#ifndef AU_FORMAT_MOJO_SAMPLE_H
#define AU_FORMAT_MOJO_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/** A text of the stream: any bytes but NUL, UTF-8 if the writer keeps to the format. */
typedef struct au_mojo_text {
    const char *text; /**< ends with a NUL */
    size_t length;
    uint32_t id;               /**< 0, 1, ... in the order of first appearance */
    struct au_mojo_text *next; /**< private */
} au_mojo_text;

typedef struct au_mojo_sample_frame {
    const au_mojo_text *file, *scope;
    int64_t line, line_end, column, column_end; /**< 0: not known */
    uint32_t id;                                /**< 0, 1, ... in the order of first appearance */
    uint8_t native;                             /**< by its file name; see docs/format.md, "Native frames" */
    uint8_t invalid;                            /**< an Invalid frame event of an older stream: both texts are empty */
    struct au_mojo_sample_frame *next;          /**< private */
} au_mojo_sample_frame;

typedef enum au_mojo_task_kind {
    AU_MOJO_TASK_IS_AT,   /**< Task stack with frames: the task's position */
    AU_MOJO_TASK_GONE,    /**< Task stack without frames: the task has ended */
    AU_MOJO_TASK_WAITERS, /**< a run of Task waiter events: the whole set of waiters */
    AU_MOJO_TASK_RUNNING  /**< Running task */
} au_mojo_task_kind;

typedef struct au_mojo_task_event {
    uint64_t offset; /**< of the (first) event */
    au_mojo_task_kind kind;
    int64_t task;
    const au_mojo_text *name;                  /**< of a Task stack; NULL for name key 0 and for the other kinds */
    const au_mojo_sample_frame *const *frames; /**< AU_MOJO_TASK_IS_AT, outermost first */
    size_t frame_count;
    const int64_t *waiters; /**< AU_MOJO_TASK_WAITERS; none if the task has no waiters any more */
    size_t waiter_count;
} au_mojo_task_event;

typedef struct au_mojo_sample {
    uint64_t index;  /**< 0, 1, ... in the stream */
    uint64_t offset; /**< of the Stack event */
    uint64_t end;    /**< of the byte behind the last event that belongs to the sample */
    int64_t pid, iid;
    const au_mojo_text *thread;
    const au_mojo_sample_frame *const *frames; /**< outermost first, repeats resolved, Invalid frames included */
    size_t frame_count;
    const au_mojo_text *const *kernel; /**< symbols in the order of the stream */
    size_t kernel_count;
    uint8_t gc, idle;
    uint8_t has_time, has_memory; /**< a sample has at least one, or a warning */
    int64_t time_us;
    int64_t memory_bytes;
    const au_mojo_task_event *task_events; /**< in the order of the stream */
    size_t task_event_count;
    int64_t running;                                /**< 0: the sample belongs to the thread alone */
    const au_mojo_sample_frame *const *task_frames; /**< the latest position of the running task */
    size_t task_frame_count;
} au_mojo_sample;

#endif
