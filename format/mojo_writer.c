/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_writer.h"

#include <stdlib.h>
#include <string.h>

#include "format/mojo_dict.h"
#include "format/mojo_strings.h"
#include "format/mojo_varint.h"

struct au_mojo_writer {
    au_buf out;
    au__strings strings;
    uint32_t key_limit;
    uint32_t next_string, next_frame;
    int64_t pid; /**< of the latest Stack event */
};

au_mojo_writer *au_mojo_writer_create(uint32_t key_limit)
{
    au_mojo_writer *writer = calloc(1, sizeof *writer);
    if (writer) {
        au__strings_init(&writer->strings);
        writer->key_limit = key_limit < AU_MOJO_KEY_LIMIT ? key_limit : AU_MOJO_KEY_LIMIT;
        writer->next_string = AU_MOJO_STRING_FIRST;
        writer->next_frame = 1;
        writer->pid = INT64_MIN; /* no process yet */
    }
    return writer;
}

void au_mojo_writer_destroy(au_mojo_writer *writer)
{
    if (writer) {
        au__strings_deinit(&writer->strings);
        au_buf_deinit(&writer->out);
        free(writer);
    }
}

au_buf *au_mojo_writer_out(au_mojo_writer *writer)
{
    return &writer->out;
}

/* The put functions append to room that was reserved before, so that an event is written whole or not at all. */

static au_mojo_result reserve(au_mojo_writer *writer, size_t varints, size_t bytes)
{
    if (bytes > SIZE_MAX - 1 - varints * AU__VARINT_MAX) {
        return AU_MOJO_NO_MEMORY;
    }
    return au_buf_reserve(&writer->out, 1 + varints * AU__VARINT_MAX + bytes) ? AU_MOJO_NO_MEMORY : AU_MOJO_OK;
}

static void put_id(au_mojo_writer *writer, au_mojo_event_id id)
{
    writer->out.data[writer->out.len++] = (uint8_t)id;
}

static void put_unsigned(au_mojo_writer *writer, uint64_t value)
{
    writer->out.len += au__varint_put(writer->out.data + writer->out.len, value, 0);
}

static void put_signed(au_mojo_writer *writer, int64_t value)
{
    writer->out.len += au__varint_put(writer->out.data + writer->out.len, au__magnitude(value), value < 0);
}

/* `size` counts the NUL that ends the string. */
static void put_string(au_mojo_writer *writer, const char *text, size_t size)
{
    memcpy(writer->out.data + writer->out.len, text, size);
    writer->out.len += size;
}

au_mojo_result au_mojo_write_header(au_mojo_writer *writer)
{
    au_mojo_result result = reserve(writer, 1, 3);
    if (result == AU_MOJO_OK) {
        put_string(writer, "MOJ", 3);
        put_unsigned(writer, AU_MOJO_VERSION);
    }
    return result;
}

au_mojo_result au_mojo_write_metadata(au_mojo_writer *writer, const char *key, const char *value)
{
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
    au_mojo_result result = reserve(writer, 0, key_size + value_size);
    if (result == AU_MOJO_OK) {
        put_id(writer, AU_MOJO_METADATA);
        put_string(writer, key, key_size);
        put_string(writer, value, value_size);
    }
    return result;
}

au_mojo_result au_mojo_write_stack(au_mojo_writer *writer, int64_t pid, int64_t iid, const char *thread)
{
    return au_mojo_write_stack_n(writer, pid, iid, thread, strlen(thread));
}

au_mojo_result au_mojo_write_stack_n(au_mojo_writer *writer, int64_t pid, int64_t iid, const char *thread,
                                     size_t length)
{
    size_t size = length + 1;
    au_mojo_result result = reserve(writer, 2, size);
    if (result == AU_MOJO_OK) {
        put_id(writer, AU_MOJO_STACK);
        put_signed(writer, pid);
        put_signed(writer, iid);
        put_string(writer, thread, size);
        writer->pid = pid;
    }
    return result;
}

au_mojo_result au_mojo_write_string(au_mojo_writer *writer, const char *text, uint32_t *key)
{
    size_t length = strlen(text);
    if (strcmp(text, "<unknown>") == 0) {
        *key = AU_MOJO_STRING_UNKNOWN;
        return AU_MOJO_OK;
    }
    uint32_t found = au__strings_find(&writer->strings, writer->pid, text, length);
    if (found) {
        *key = found;
        return AU_MOJO_OK;
    }
    if (writer->next_string >= writer->key_limit) {
        return AU_MOJO_NO_KEYS;
    }
    au_mojo_result result = reserve(writer, 1, length + 1);
    if (result == AU_MOJO_OK) {
        *key = writer->next_string++;
        put_id(writer, AU_MOJO_STRING);
        put_unsigned(writer, *key);
        put_string(writer, text, length + 1);
        au__strings_add(&writer->strings, writer->pid, text, length, *key);
    }
    return result;
}

au_mojo_result au_mojo_write_frame(au_mojo_writer *writer, const au_mojo_frame *frame, uint32_t *key)
{
    if (writer->next_frame >= writer->key_limit) {
        return AU_MOJO_NO_KEYS;
    }
    au_mojo_result result = reserve(writer, 7, 0);
    if (result == AU_MOJO_OK) {
        *key = writer->next_frame++;
        put_id(writer, AU_MOJO_FRAME);
        put_unsigned(writer, *key);
        put_unsigned(writer, frame->file_key);
        put_unsigned(writer, frame->scope_key);
        put_unsigned(writer, frame->line);
        put_unsigned(writer, frame->line_end);
        put_unsigned(writer, frame->column);
        put_unsigned(writer, frame->column_end);
    }
    return result;
}

static au_mojo_result write_bare(au_mojo_writer *writer, au_mojo_event_id id)
{
    au_mojo_result result = reserve(writer, 0, 0);
    if (result == AU_MOJO_OK) {
        put_id(writer, id);
    }
    return result;
}

static au_mojo_result write_unsigned(au_mojo_writer *writer, au_mojo_event_id id, uint64_t value)
{
    au_mojo_result result = reserve(writer, 1, 0);
    if (result == AU_MOJO_OK) {
        put_id(writer, id);
        put_unsigned(writer, value);
    }
    return result;
}

au_mojo_result au_mojo_write_frame_ref(au_mojo_writer *writer, uint32_t key)
{
    return write_unsigned(writer, AU_MOJO_FRAME_REF, key);
}

au_mojo_result au_mojo_write_stack_repeat(au_mojo_writer *writer)
{
    return write_bare(writer, AU_MOJO_STACK_REPEAT);
}

au_mojo_result au_mojo_write_kernel_frame(au_mojo_writer *writer, const char *symbol)
{
    size_t size = strlen(symbol) + 1;
    au_mojo_result result = reserve(writer, 0, size);
    if (result == AU_MOJO_OK) {
        put_id(writer, AU_MOJO_KERNEL_FRAME);
        put_string(writer, symbol, size);
    }
    return result;
}

au_mojo_result au_mojo_write_gc(au_mojo_writer *writer)
{
    return write_bare(writer, AU_MOJO_GC);
}

au_mojo_result au_mojo_write_idle(au_mojo_writer *writer)
{
    return write_bare(writer, AU_MOJO_IDLE);
}

au_mojo_result au_mojo_write_time(au_mojo_writer *writer, uint64_t microseconds)
{
    return write_unsigned(writer, AU_MOJO_TIME, microseconds);
}

au_mojo_result au_mojo_write_memory(au_mojo_writer *writer, int64_t bytes)
{
    au_mojo_result result = reserve(writer, 1, 0);
    if (result == AU_MOJO_OK) {
        put_id(writer, AU_MOJO_MEMORY);
        put_signed(writer, bytes);
    }
    return result;
}

au_mojo_result au_mojo_write_task_stack(au_mojo_writer *writer, uint64_t task, uint32_t name_key, uint32_t frames)
{
    au_mojo_result result = reserve(writer, 3, 0);
    if (result == AU_MOJO_OK) {
        put_id(writer, AU_MOJO_TASK_STACK);
        put_unsigned(writer, task);
        put_unsigned(writer, name_key);
        put_unsigned(writer, frames);
    }
    return result;
}

au_mojo_result au_mojo_write_task_waiter(au_mojo_writer *writer, uint64_t task, uint64_t waiter)
{
    au_mojo_result result = reserve(writer, 2, 0);
    if (result == AU_MOJO_OK) {
        put_id(writer, AU_MOJO_TASK_WAITER);
        put_unsigned(writer, task);
        put_unsigned(writer, waiter);
    }
    return result;
}

au_mojo_result au_mojo_write_running_task(au_mojo_writer *writer, uint64_t task)
{
    return write_unsigned(writer, AU_MOJO_RUNNING_TASK, task);
}

int au_mojo_is_native_file(const char *file)
{
    return au__is_native(file, strlen(file));
}

void au_mojo_forget_process(au_mojo_writer *writer, int64_t pid)
{
    au__strings_forget(&writer->strings, pid);
}
