/* SPDX-License-Identifier: Apache-2.0 */
#include "app/output.h"

#include <apr_thread_cond.h>
#include <apr_thread_mutex.h>
#include <apr_thread_proc.h>
#include <apr_time.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "app/messages.h"
#include "base/buf.h"
#include "format/mojo_zstd.h"

enum {
    LEVEL = 3,               /* zstd's own default */
    PIECE_BYTES = 256 * 1024 /* written, or compressed, in one go: then the sampler gets the room back */
};

/*
 * The ring: `head` counts all bytes ever pushed, `tail` all bytes ever taken out; `settled` all bytes that are where
 * they shall be, flushed. Only the sampler writes head, only the writer writes the other two.
 *
 * Sleeping is the rare case and the only one that takes the mutex. Each side first says that it is about to sleep
 * (`asleep`, `waiting`), then looks at the counters again; the other side moves its counter, then looks whether
 * somebody sleeps. All four steps are sequentially consistent, so one of the two always sees the other. The timed
 * waits would mend a lost wake-up, but nothing relies on it.
 */
struct au_output {
    uint8_t *ring;
    size_t capacity; /* a power of two */
    _Atomic uint64_t head;
    _Atomic uint64_t tail;
    _Atomic uint64_t settled;
    atomic_int asleep;  /* the writer */
    atomic_int waiting; /* the sampler */
    atomic_int closing;
    atomic_int failed;   /* `error` is set */
    atomic_int finished; /* the writer's last word */
    int immediate;
    uint64_t stalls;

    apr_thread_mutex_t *mutex;
    apr_thread_cond_t *more; /* the writer waits for it */
    apr_thread_cond_t *room; /* the sampler waits for it */
    apr_thread_t *thread;

    au_output_sink *sink;
    au_mojo_zstd *zstd; /* NULL: not compressed */
    au_buf packed;
    au_error *error; /* the first one; written by the writer before `failed` */
    int (*give_up)(void *baton);
    void *baton;
};

/* ---- the writer's side -------------------------------------------------------------------------------------- */

static void fail(au_output *output, au_error *error)
{
    if (!error) {
        return;
    }
    if (atomic_load(&output->failed)) {
        au_error_clear(error);
        return;
    }
    output->error = error;
    atomic_store(&output->failed, 1);
}

/* The same for what the compressor says, which knows nothing of options. */
static void fail_packing(au_output *output, au_error *error)
{
    if (error && error->code == AU_ERR_IO && !error->hint) {
        error = au_error_hint(error, "run austin without --compress, and with a file name that does not end in .zst");
    }
    fail(output, error);
}

static void wake_sampler(au_output *output)
{
    if (atomic_load(&output->waiting)) {
        apr_thread_mutex_lock(output->mutex);
        apr_thread_cond_signal(output->room);
        apr_thread_mutex_unlock(output->mutex);
    }
}

static void write_packed(au_output *output)
{
    if (output->packed.len && !atomic_load(&output->failed)) {
        fail(output, output->sink->write(output->sink, output->packed.data, output->packed.len));
    }
    au_buf_reset(&output->packed);
}

/* Takes the next piece out of the ring; 0 when there is none. After an error bytes are taken out and dropped. */
static size_t take_piece(au_output *output)
{
    uint64_t tail = atomic_load(&output->tail);
    size_t length = (size_t)(atomic_load(&output->head) - tail);
    size_t start = (size_t)tail & (output->capacity - 1);
    if (length > output->capacity - start) {
        length = output->capacity - start;
    }
    if (length > PIECE_BYTES) {
        length = PIECE_BYTES;
    }
    if (length && !atomic_load(&output->failed)) {
        if (!output->zstd) {
            fail(output, output->sink->write(output->sink, output->ring + start, length));
        } else {
            fail_packing(output, au_mojo_zstd_push(output->zstd, output->ring + start, length, &output->packed));
            if (output->packed.len >= PIECE_BYTES) {
                write_packed(output);
            }
        }
    }
    atomic_store(&output->tail, tail + length);
    wake_sampler(output);
    return length;
}

/* Everything taken so far becomes readable for whoever opens the file now. */
static void settle(au_output *output)
{
    uint64_t tail = atomic_load(&output->tail);
    if (atomic_load(&output->settled) == tail) {
        return;
    }
    if (output->zstd && !atomic_load(&output->failed)) {
        fail_packing(output, au_mojo_zstd_flush(output->zstd, &output->packed));
        write_packed(output);
    }
    atomic_store(&output->settled, tail);
    wake_sampler(output);
}

/* What was there at the call, not what comes meanwhile: that waits for the next tick, or for half a ring of it. So the
 * number of small writes is bound by time alone, however the two threads take turns. */
static void drain(au_output *output)
{
    uint64_t goal = atomic_load(&output->head);
    apr_time_t last = apr_time_now();
    while (atomic_load(&output->tail) < goal && take_piece(output)) {
        apr_time_t now = apr_time_now();
        if (now - last >= apr_time_from_msec(AU_OUTPUT_TICK_MS) || now < last) {
            settle(output); /* a sampler that never lets the ring run dry must not put this off */
            last = now;
        }
    }
    settle(output);
}

static int worth_waking(const au_output *output, uint64_t head)
{
    size_t used = (size_t)(head - atomic_load(&output->tail));
    return used && (output->immediate || used >= output->capacity / 2);
}

static void sleep_a_tick(au_output *output)
{
    const apr_time_t tick = apr_time_from_msec(AU_OUTPUT_TICK_MS);
    apr_thread_mutex_lock(output->mutex);
    atomic_store(&output->asleep, 1);
    for (apr_time_t start = apr_time_now(), now = start; now >= start && now - start < tick; now = apr_time_now()) {
        uint64_t head = atomic_load(&output->head);
        int awaited = atomic_load(&output->waiting) && atomic_load(&output->settled) != head;
        if (worth_waking(output, head) || awaited || atomic_load(&output->closing)) {
            break;
        }
        (void)apr_thread_cond_timedwait(output->more, output->mutex, tick - (now - start));
    }
    atomic_store(&output->asleep, 0);
    apr_thread_mutex_unlock(output->mutex);
}

static void *APR_THREAD_FUNC write_on(apr_thread_t *thread, void *baton)
{
    au_output *output = baton;
    (void)thread;
    while (!atomic_load(&output->closing)) {
        drain(output);
        sleep_a_tick(output);
    }
    drain(output);
    if (output->zstd && atomic_load(&output->tail) && !atomic_load(&output->failed)) {
        fail_packing(output, au_mojo_zstd_end(output->zstd, &output->packed));
        write_packed(output);
    }
    fail(output, output->sink->close(output->sink));

    apr_thread_mutex_lock(output->mutex);
    atomic_store(&output->finished, 1);
    apr_thread_cond_signal(output->room);
    apr_thread_mutex_unlock(output->mutex);
    return NULL;
}

/* ---- the sampler's side ------------------------------------------------------------------------------------- */

static void wake_writer(au_output *output)
{
    if (atomic_load(&output->asleep)) {
        apr_thread_mutex_lock(output->mutex);
        apr_thread_cond_signal(output->more);
        apr_thread_mutex_unlock(output->mutex);
    }
}

typedef enum wait_for { WAIT_ROOM, WAIT_SETTLED, WAIT_FINISHED } wait_for;

static int is_there(const au_output *output, wait_for what, size_t bytes)
{
    switch (what) {
    case WAIT_ROOM:
        return atomic_load(&output->failed) ||
               output->capacity - (size_t)(atomic_load(&output->head) - atomic_load(&output->tail)) >= bytes;
    case WAIT_SETTLED:
        return atomic_load(&output->failed) || atomic_load(&output->settled) == atomic_load(&output->head);
    case WAIT_FINISHED:
        break;
    }
    return atomic_load(&output->finished);
}

/* 0, or -1 when the caller's patience has ended first. */
static int wait_until(au_output *output, wait_for what, size_t bytes)
{
    int gave_up = 0;
    apr_thread_mutex_lock(output->mutex);
    atomic_store(&output->waiting, 1);
    apr_thread_cond_signal(output->more);
    while (!is_there(output, what, bytes) && !gave_up) {
        (void)apr_thread_cond_timedwait(output->room, output->mutex, apr_time_from_msec(AU_OUTPUT_TICK_MS));
        gave_up = output->give_up && output->give_up(output->baton) && !is_there(output, what, bytes);
    }
    atomic_store(&output->waiting, 0);
    apr_thread_mutex_unlock(output->mutex);
    return gave_up ? -1 : 0;
}

static void copy_in(au_output *output, const uint8_t *bytes, size_t len)
{
    uint64_t head = atomic_load_explicit(&output->head, memory_order_relaxed);
    size_t start = (size_t)head & (output->capacity - 1);
    size_t first = len < output->capacity - start ? len : output->capacity - start;
    memcpy(output->ring + start, bytes, first);
    memcpy(output->ring, bytes + first, len - first);
    atomic_store(&output->head, head + len);
    if (worth_waking(output, head + len)) {
        wake_writer(output);
    }
}

int au_output_push(au_output *output, const void *bytes, size_t len)
{
    const uint8_t *next = bytes;
    int stalled = 0;
    while (len > 0 && !atomic_load(&output->failed)) {
        size_t piece = len < output->capacity ? len : output->capacity;
        if (!is_there(output, WAIT_ROOM, piece)) {
            output->stalls += !stalled;
            stalled = 1;
            if (wait_until(output, WAIT_ROOM, piece)) {
                return -1;
            }
            continue;
        }
        copy_in(output, next, piece);
        next += piece;
        len -= piece;
    }
    return atomic_load(&output->failed) ? -1 : 0;
}

int au_output_flush(au_output *output)
{
    return wait_until(output, WAIT_SETTLED, 0) || atomic_load(&output->failed) ? -1 : 0;
}

uint64_t au_output_stalls(const au_output *output)
{
    return output->stalls;
}

/* ---- life --------------------------------------------------------------------------------------------------- */

static void deinit(au_output *output)
{
    au_mojo_zstd_destroy(output->zstd);
    au_buf_deinit(&output->packed);
    free(output->ring);
    free(output);
}

static apr_status_t start_writer(au_output *output, apr_pool_t *pool)
{
    apr_status_t status = apr_thread_mutex_create(&output->mutex, APR_THREAD_MUTEX_DEFAULT, pool);
    if (status == APR_SUCCESS) {
        status = apr_thread_cond_create(&output->more, pool);
    }
    if (status == APR_SUCCESS) {
        status = apr_thread_cond_create(&output->room, pool);
    }
    if (status == APR_SUCCESS) {
        status = apr_thread_create(&output->thread, NULL, write_on, output, pool);
    }
    return status;
}

au_error *au_output_create(const au_output_options *options, au_output_sink *sink, apr_pool_t *pool, au_output **out)
{
    size_t wanted = options->ring_bytes ? options->ring_bytes : AU_OUTPUT_RING_BYTES;
    au_output *output = calloc(1, sizeof *output);
    if (!output) {
        return au_error_memory();
    }
    output->capacity = 1;
    while (output->capacity < wanted) {
        output->capacity *= 2;
    }
    output->ring = malloc(output->capacity);
    output->zstd = options->compress ? au_mojo_zstd_create(LEVEL) : NULL;
    if (!output->ring || (options->compress && !output->zstd)) {
        deinit(output);
        return au_error_memory();
    }
    memset(output->ring, 0, output->capacity); /* touched now, so that our size does not grow while we sample */
    output->immediate = options->immediate;
    output->give_up = options->give_up;
    output->baton = options->baton;
    output->sink = sink;

    apr_status_t status = start_writer(output, pool);
    if (status != APR_SUCCESS) {
        char text[128];
        deinit(output);
        return au_error_cause(
            au_error_create(AU_ERR_OS, (int)status, "cannot start the thread that writes the samples"), "%s",
            apr_strerror(status, text, sizeof text));
    }
    *out = output;
    return NULL;
}

au_error *au_output_close(au_output *output)
{
    atomic_store(&output->closing, 1);
    if (wait_until(output, WAIT_FINISHED, 0)) {
        /* The thread hangs in a write that may never return: it keeps its memory, the process is about to end. */
        (void)apr_thread_detach(output->thread);
        return au_message_not_taken();
    }
    apr_status_t ended;
    apr_thread_join(&ended, output->thread);
    au_error *error = output->error;
    deinit(output);
    return error;
}
