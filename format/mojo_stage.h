/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The order of the events inside a sample, for the reader and the checker.
 *
 * Inside the room only. No state of its own, any thread.
 */
#ifndef AU_FORMAT_MOJO_STAGE_H
#define AU_FORMAT_MOJO_STAGE_H

#include "format/mojo.h"

/** How far a sample has come; each event belongs to one stage and stages do not go back. */
typedef enum au__stage {
    AU__STAGE_TASKS,
    AU__STAGE_REPEAT,
    AU__STAGE_FRAMES,
    AU__STAGE_KERNEL,
    AU__STAGE_GC,
    AU__STAGE_TIME,
    AU__STAGE_IDLE,
    AU__STAGE_MEMORY
} au__stage;

/** The stage of an event that belongs to a sample. */
static inline au__stage au__stage_of(unsigned id)
{
    switch (id) {
    case AU_MOJO_STACK_REPEAT:
        return AU__STAGE_REPEAT;
    case AU_MOJO_FRAME_REF:
    case AU_MOJO_INVALID_FRAME:
        return AU__STAGE_FRAMES;
    case AU_MOJO_KERNEL_FRAME:
        return AU__STAGE_KERNEL;
    case AU_MOJO_GC:
        return AU__STAGE_GC;
    case AU_MOJO_TIME:
        return AU__STAGE_TIME;
    case AU_MOJO_IDLE:
        return AU__STAGE_IDLE;
    case AU_MOJO_MEMORY:
        return AU__STAGE_MEMORY;
    default:
        return AU__STAGE_TASKS;
    }
}

/** True for the events that make up a sample, but for its Stack event. */
static inline int au__is_of_sample(unsigned id)
{
    return id != AU_MOJO_STACK && id != AU_MOJO_METADATA && id != AU_MOJO_STRING && id != AU_MOJO_FRAME &&
           id != AU_MOJO_STRING_REF;
}

/** 1 and the stage moves on, or 0 if the event comes too late. Stack repeat and Garbage collector come once. */
static inline int au__stage_enter(au__stage *stage, unsigned id)
{
    au__stage wanted = au__stage_of(id);
    if (wanted < *stage) {
        return 0;
    }
    int once = wanted == AU__STAGE_REPEAT || wanted == AU__STAGE_GC;
    int fine = !(once && wanted == *stage);
    *stage = wanted;
    return fine;
}

#endif
