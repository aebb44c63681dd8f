/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Encodes MOJO v4 events into a buffer. No file, no thread, no clock: the owner takes `out` and resets it.
 *
 * Keys: frame and string keys are counters of the whole stream, so a key never means two things. A reader may keep
 * keys per process, so a definition is sent under each PID that uses it; the string table is therefore kept by
 * (pid, text). It is bounded and may forget: a forgotten string is simply defined again under a new key.
 *
 * Not thread-safe. Every function appends whole events or nothing.
 */
#ifndef AU_FORMAT_MOJO_WRITER_H
#define AU_FORMAT_MOJO_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "format/mojo.h"

typedef enum au_mojo_result {
    AU_MOJO_OK = 0,
    AU_MOJO_NO_MEMORY,
    AU_MOJO_NO_KEYS /**< all 2^27 keys are used: nothing new can be defined in this stream */
} au_mojo_result;

typedef struct au_mojo_writer au_mojo_writer;

/** `key_limit` is AU_MOJO_KEY_LIMIT, or less in tests. NULL when there is no memory. */
au_mojo_writer *au_mojo_writer_create(uint32_t key_limit);
void au_mojo_writer_destroy(au_mojo_writer *writer);

/** The encoded bytes not taken yet; the owner copies them away and resets the buffer. */
au_buf *au_mojo_writer_out(au_mojo_writer *writer);

/** "MOJ" and the version. Once, first. */
au_mojo_result au_mojo_write_header(au_mojo_writer *writer);

/** Outside of samples: before the first Stack event, or at the end. */
au_mojo_result au_mojo_write_metadata(au_mojo_writer *writer, const char *key, const char *value);

/** Begins a sample; all that follows belongs to it. */
au_mojo_result au_mojo_write_stack(au_mojo_writer *writer, int64_t pid, int64_t iid, const char *thread);

/** The same where the length of `thread` is known: bytes, without the NUL that follows them. */
au_mojo_result au_mojo_write_stack_n(au_mojo_writer *writer, int64_t pid, int64_t iid, const char *thread,
                                     size_t length);

/**
 * The key of a string under the PID of the current sample, sending its definition if need be. `<unknown>` gives key 1.
 * "" is a string like any other: key 0 says that there is none, which only the name of a task may say (austin-python
 * refuses it in a frame).
 */
au_mojo_result au_mojo_write_string(au_mojo_writer *writer, const char *text, uint32_t *key);

typedef struct au_mojo_frame {
    uint32_t file_key, scope_key;
    uint32_t line, line_end, column, column_end;
} au_mojo_frame;

/** Defines a frame under a new key. The strings must have been defined under this PID. */
au_mojo_result au_mojo_write_frame(au_mojo_writer *writer, const au_mojo_frame *frame, uint32_t *key);

au_mojo_result au_mojo_write_frame_ref(au_mojo_writer *writer, uint32_t key);
au_mojo_result au_mojo_write_stack_repeat(au_mojo_writer *writer);
au_mojo_result au_mojo_write_kernel_frame(au_mojo_writer *writer, const char *symbol);
au_mojo_result au_mojo_write_gc(au_mojo_writer *writer);
au_mojo_result au_mojo_write_idle(au_mojo_writer *writer);
au_mojo_result au_mojo_write_time(au_mojo_writer *writer, uint64_t microseconds);
au_mojo_result au_mojo_write_memory(au_mojo_writer *writer, int64_t bytes);
au_mojo_result au_mojo_write_task_stack(au_mojo_writer *writer, uint64_t task, uint32_t name_key, uint32_t frames);
au_mojo_result au_mojo_write_task_waiter(au_mojo_writer *writer, uint64_t task, uint64_t waiter);
au_mojo_result au_mojo_write_running_task(au_mojo_writer *writer, uint64_t task);

/** True if a reader takes a frame of this file name for a native one (does not end in .py, is not `<...>`). */
int au_mojo_is_native_file(const char *file);

/** Forgets the string table of a process that has ended. */
void au_mojo_forget_process(au_mojo_writer *writer, int64_t pid);

#endif
