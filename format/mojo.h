/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The MOJO format: numbers shared by the writer, the reader and the checker. The format itself is in docs/format.md.
 */
#ifndef AU_FORMAT_MOJO_H
#define AU_FORMAT_MOJO_H

#include <stdint.h>

enum { AU_MOJO_VERSION = 4 };

typedef enum au_mojo_event_id {
    AU_MOJO_RESERVED = 0,
    AU_MOJO_METADATA = 1,
    AU_MOJO_STACK = 2,
    AU_MOJO_FRAME = 3,
    AU_MOJO_INVALID_FRAME = 4,
    AU_MOJO_FRAME_REF = 5,
    AU_MOJO_KERNEL_FRAME = 6,
    AU_MOJO_GC = 7,
    AU_MOJO_IDLE = 8,
    AU_MOJO_TIME = 9,
    AU_MOJO_MEMORY = 10,
    AU_MOJO_STRING = 11,
    AU_MOJO_STRING_REF = 12,
    AU_MOJO_STACK_REPEAT = 13,
    AU_MOJO_TASK_STACK = 14,
    AU_MOJO_TASK_WAITER = 15,
    AU_MOJO_RUNNING_TASK = 16
} au_mojo_event_id;

/** Keys fit a varint of four bytes. */
#define AU_MOJO_KEY_LIMIT (UINT32_C(1) << 27)

/** String key 0 is "none", key 1 is `<unknown>`; neither is ever defined. */
enum { AU_MOJO_STRING_NONE = 0, AU_MOJO_STRING_UNKNOWN = 1, AU_MOJO_STRING_FIRST = 2 };

#endif
