/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes through the reader, in pieces whose sizes come from the bytes themselves. What must hold: every pointer
 * that is handed out can be read, the cut does not change what comes out, and the work stays in proportion to the
 * input.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct digest {
    uint64_t hash, samples, bytes;
} digest;

static void add(digest *d, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++) {
        d->hash = (d->hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    d->bytes += len;
}

static void add_text(digest *d, const au_mojo_text *text)
{
    if (strlen(text->text) != text->length) {
        abort();
    }
    add(d, text->text, text->length < 64 ? text->length : 64);
}

static void add_frames(digest *d, const au_mojo_sample_frame *const *frames, size_t count)
{
    add(d, &count, sizeof count);
    /* A few bytes can ask for a deep stack in every sample: its ends are enough. */
    for (size_t i = 0; i < count; i += i < 8 || i + 8 >= count ? 1 : count - i - 8) {
        add_text(d, frames[i]->file);
        add_text(d, frames[i]->scope);
        add(d, &frames[i]->line, sizeof frames[i]->line);
    }
}

static au_error *on_sample(void *context, const au_mojo_sample *sample)
{
    digest *d = context;
    d->samples++;
    if (sample->index + 1 != d->samples || sample->end < sample->offset) {
        abort();
    }
    add_text(d, sample->thread);
    add_frames(d, sample->frames, sample->frame_count);
    add_frames(d, sample->task_frames, sample->task_frame_count);
    for (size_t i = 0; i < sample->kernel_count; i++) {
        add_text(d, sample->kernel[i]);
    }
    for (size_t i = 0; i < sample->task_event_count; i++) {
        const au_mojo_task_event *event = &sample->task_events[i];
        if (event->name) {
            add_text(d, event->name);
        }
        add_frames(d, event->frames, event->frame_count);
        add(d, event->waiters, event->waiter_count * sizeof *event->waiters);
    }
    add(d, &sample->time_us, sizeof sample->time_us);
    add(d, &sample->memory_bytes, sizeof sample->memory_bytes);
    return NULL;
}

static au_error *on_metadata(void *context, uint64_t offset, const char *key, const char *value)
{
    add(context, &offset, sizeof offset);
    add(context, key, strlen(key));
    add(context, value, strlen(value));
    return NULL;
}

static void on_warning(void *context, uint64_t offset, au_mojo_rule rule)
{
    add(context, &offset, sizeof offset);
    add(context, au_mojo_rule_name(rule), 4);
}

/* Reads all; whether it failed is in the digest. */
static digest read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
    digest d = {.hash = UINT64_C(0xcbf29ce484222325)};
    au_mojo_handlers handlers = {.context = &d, .sample = on_sample, .metadata = on_metadata, .warning = on_warning};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    au_error *error = reader ? NULL : au_error_memory();
    for (size_t at = 0; at < size && !error;) {
        size_t take = piece && piece < size - at ? piece : size - at;
        uint8_t *copy = malloc(take);
        memcpy(copy, data + at, take);
        error = au_mojo_reader_feed(reader, copy, take);
        free(copy);
        at += take;
    }
    int unfinished = 0;
    if (!error) {
        error = au_mojo_reader_finish(reader, size & 1, &unfinished);
    }
    if (error) {
        add(&d, error->message, strlen(error->message));
    }
    add(&d, &unfinished, sizeof unfinished);
    au_error_clear(error);
    au_mojo_reader_destroy(reader);
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    digest whole = read_in_pieces(data, size, 0);
    digest pieces = read_in_pieces(data, size, 1 + (size ? data[size - 1] % 13U : 0));
    if (whole.hash != pieces.hash || whole.samples != pieces.samples || whole.bytes != pieces.bytes) {
        abort();
    }
    return 0;
}
