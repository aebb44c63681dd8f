/* SPDX-License-Identifier: Apache-2.0 */
#include "app/emit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/last_written.h"

enum { PUSH_AT = 8192 }; /* the samples of thousands of threads do not wait for the end of their pass */

struct au_emit {
    au_sink sink; /* first: the engine's pointer converts */
    au_mojo_writer *writer;
    au_last_written last;
    au_emit_push_fn push;
    void *baton;
    au_emit_end ended;
};

static au_emit_end end_of(au_mojo_result result)
{
    return result == AU_MOJO_OK ? AU_EMIT_GOES_ON : result == AU_MOJO_NO_KEYS ? AU_EMIT_NO_KEYS : AU_EMIT_NO_MEMORY;
}

/* Hands on what the writer holds. */
static au_emit_end push_out(au_emit *emit)
{
    au_buf *out = au_mojo_writer_out(emit->writer);
    int refused = emit->push(emit->baton, out->data, out->len);
    au_buf_reset(out);
    return refused ? AU_EMIT_REFUSED : AU_EMIT_GOES_ON;
}

/* All definitions that this stack needs and that were not sent before, file before scope before frame. */
static au_mojo_result define_frames(au_emit *emit, const au_sample *sample)
{
    for (size_t i = 0; i < sample->frame_count; i++) {
        au_location *location = sample->frames[i];
        if (location->sink_key) {
            continue;
        }
        au_mojo_frame frame = {.line = location->line,
                               .line_end = location->line_end,
                               .column = location->column,
                               .column_end = location->column_end};
        au_mojo_result result = au_mojo_write_string(emit->writer, location->file, &frame.file_key);
        if (result == AU_MOJO_OK) {
            result = au_mojo_write_string(emit->writer, location->scope, &frame.scope_key);
        }
        if (result == AU_MOJO_OK) {
            result = au_mojo_write_frame(emit->writer, &frame, &location->sink_key);
        }
        if (result != AU_MOJO_OK) {
            return result;
        }
    }
    return AU_MOJO_OK;
}

static au_mojo_result write_frames(au_emit *emit, const au_sample *sample)
{
    au_mojo_result result = define_frames(emit, sample);
    for (size_t i = 0; i < sample->frame_count && result == AU_MOJO_OK; i++) {
        result = au_mojo_write_frame_ref(emit->writer, sample->frames[i]->sink_key);
    }
    return result;
}

/* The frames of a sample, in full or as a repeat; notes what a reader knows afterwards. */
static au_mojo_result write_stack(au_emit *emit, const au_sample *sample)
{
    au_last_entry *name, *state;
    if (au_last_written_find(&emit->last, sample->pid, sample->thread, sample->thread_length, sample->state_id, &name,
                             &state)) {
        return AU_MOJO_NO_MEMORY;
    }
    int repeat =
        (sample->flags & AU_SAMPLE_SAME) && name->serial != 0 && name->serial == state->serial && !name->native_end;
    au_mojo_result result = AU_MOJO_OK;
    if (!repeat) {
        result = write_frames(emit, sample);
        name->native_end =
            sample->frame_count > 0 && au_mojo_is_native_file(sample->frames[sample->frame_count - 1]->file);
    } else if (sample->frame_count > 0) { /* of an empty stack nothing is the shorter way to say the same */
        result = au_mojo_write_stack_repeat(emit->writer);
    }
    name->serial = state->serial = ++emit->last.serial;
    return result;
}

static int take_sample(au_sink *sink, const au_sample *sample)
{
    au_emit *emit = (au_emit *)sink;
    au_buf *out = au_mojo_writer_out(emit->writer);
    size_t whole = out->len;
    if (emit->ended != AU_EMIT_GOES_ON) {
        return -1;
    }
    au_mojo_result result =
        au_mojo_write_stack_n(emit->writer, sample->pid, sample->iid, sample->thread, sample->thread_length);
    if (result == AU_MOJO_OK) {
        result = write_stack(emit, sample);
    }
    if (result == AU_MOJO_OK) {
        result = au_mojo_write_time(emit->writer, sample->time_us);
    }
    if (result != AU_MOJO_OK) {
        out->len = whole; /* a sample is written whole or not at all */
        emit->ended = end_of(result);
    } else if (out->len >= PUSH_AT) {
        emit->ended = push_out(emit);
    }
    return emit->ended != AU_EMIT_GOES_ON;
}

static int end_pass(au_sink *sink, uint64_t time_us)
{
    au_emit *emit = (au_emit *)sink;
    (void)time_us;
    if (emit->ended == AU_EMIT_GOES_ON) {
        emit->ended = push_out(emit);
    }
    return emit->ended != AU_EMIT_GOES_ON;
}

au_emit *au_emit_create(uint32_t key_limit, au_emit_push_fn push, void *baton)
{
    au_emit *emit = calloc(1, sizeof *emit);
    if (!emit) {
        return NULL;
    }
    emit->sink.sample = take_sample;
    emit->sink.pass = end_pass;
    emit->push = push;
    emit->baton = baton;
    emit->writer = au_mojo_writer_create(key_limit);
    if (!emit->writer || au_last_written_init(&emit->last, AU_LAST_WRITTEN_LIMIT)) {
        au_emit_destroy(emit);
        return NULL;
    }
    return emit;
}

void au_emit_destroy(au_emit *emit)
{
    if (emit) {
        au_mojo_writer_destroy(emit->writer);
        au_last_written_deinit(&emit->last);
        free(emit);
    }
}

au_sink *au_emit_sink(au_emit *emit)
{
    return &emit->sink;
}

au_emit_end au_emit_ended(const au_emit *emit)
{
    return emit->ended;
}

au_emit_end au_emit_header(au_emit *emit)
{
    au_emit_end end = end_of(au_mojo_write_header(emit->writer));
    return end == AU_EMIT_GOES_ON ? push_out(emit) : end;
}

au_emit_end au_emit_metadata(au_emit *emit, const char *key, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *value = length < 0 ? NULL : malloc((size_t)length + 1);
    au_emit_end end = AU_EMIT_NO_MEMORY;
    if (value) {
        vsnprintf(value, (size_t)length + 1, format, args);
        end = end_of(au_mojo_write_metadata(emit->writer, key, value));
        free(value);
    }
    va_end(args);
    return end == AU_EMIT_GOES_ON ? push_out(emit) : end;
}
