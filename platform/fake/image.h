/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * An invented tracee for tests: map ranges, write bytes, add threads and modules, and hand au_image_sys() to the
 * engine.
 *
 *     au_image *image = au_image_create(1234);
 *     au_image_map(image, 0x10000, 0x2000, AU_PERM_READ | AU_PERM_WRITE, NULL);
 *     au_image_word(image, 0x10008, 0x10100);
 *     au_sys *sys = au_image_sys(image);
 *
 * Time stands still unless it is moved: `now` gives what was set, `sleep_until` moves it to the deadline.
 * Functions that return int give 0, or -1 when the address is not mapped or there is no memory. Not thread-safe, but
 * for `wake`.
 */
#ifndef AU_PLATFORM_FAKE_IMAGE_H
#define AU_PLATFORM_FAKE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/proc_ops.h"

typedef struct au_image au_image;

/** One process of that pid; 64-bit, little-endian, running. NULL without memory. */
au_image *au_image_create(au_pid pid);
void au_image_destroy(au_image *image);

/** The system in which this is the only process. Lives as long as the image. */
au_sys *au_image_sys(au_image *image);

/* ---- memory --------------------------------------------------------------------------------------------------- */

/** Maps a zeroed range that overlaps no other. `path` (copied) may be NULL. Without AU_PERM_READ it faults. */
int au_image_map(au_image *image, au_addr start, size_t size, unsigned perms, const char *path);

/** Unmaps the whole range that begins at `start`. */
int au_image_unmap(au_image *image, au_addr start);

/** More facts about the range that begins at `start`. */
int au_image_describe(au_image *image, au_addr start, uint64_t offset, uint64_t file_id, int deleted);

/** Host memory of [addr, addr+len), to be looked at and changed; NULL unless it lies in one range. */
void *au_image_at(au_image *image, au_addr addr, size_t len);

int au_image_write(au_image *image, au_addr addr, const void *bytes, size_t len);
int au_image_byte(au_image *image, au_addr addr, uint8_t value);
int au_image_half(au_image *image, au_addr addr, uint16_t value);
int au_image_int(au_image *image, au_addr addr, uint32_t value);
int au_image_word(au_image *image, au_addr addr, uint64_t value);

/* ---- facts ---------------------------------------------------------------------------------------------------- */

int au_image_add_thread(au_image *image, au_tid tid, const char *name);
int au_image_remove_thread(au_image *image, au_tid tid);

/** Run state and switch count of a thread. */
int au_image_set_thread(au_image *image, au_tid tid, au_run_state run, uint64_t switches);

/** Its CPU time, 0 is "not counted", and how long it has waited for a CPU. Both are 0 as long as this is not called. */
int au_image_set_cpu(au_image *image, au_tid tid, uint64_t cpu_ns, uint64_t waited_ns);

/** CPU time of the process; as long as this is not called it is the time. */
void au_image_set_process_cpu(au_image *image, uint64_t cpu_ns);

/** thread_id_of(kind, value) is `tid`, from now on. */
int au_image_add_id(au_image *image, au_id_kind kind, uint64_t value, au_tid tid);

/** Copies everything; `facts->id` is set by the image. `file` (copied) is what module_read serves; NULL: memory. */
int au_image_add_module(au_image *image, const au_module *facts, const void *file, size_t file_len);

void au_image_set_pointer_bytes(au_image *image, uint32_t bytes);
void au_image_set_caps(au_image *image, uint64_t caps);

/** Ends the process. */
void au_image_exit(au_image *image);

/** The process becomes another program: memory, modules and ids are emptied, the generation goes up. */
void au_image_exec(au_image *image);

void au_image_set_time(au_image *image, uint64_t now_ns);

/** Each `now` and `sleep_until` returns that much more than asked: a clock that goes on by itself, a late timer. */
void au_image_set_drift(au_image *image, uint64_t ns_per_call);

/* ---- movement ------------------------------------------------------------------------------------------------- */

/**
 * Called before each piece is served, also within one batch: `serial` counts pieces from 0 over the image's life. It
 * may change the image in any way: this is how a test moves memory between two pieces of one batch.
 */
typedef void (*au_image_hook)(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len);
void au_image_set_hook(au_image *image, au_image_hook hook, void *baton);

/** Called before each sleep_until; a place to let the tracee go on. */
typedef void (*au_image_sleep_hook)(void *baton, au_image *image, uint64_t deadline_ns);
void au_image_set_sleep_hook(au_image *image, au_image_sleep_hook hook, void *baton);

/** How many pieces (a `read` is one) and how many calls of read and read_many were served. */
uint64_t au_image_pieces(const au_image *image);
uint64_t au_image_reads(const au_image *image);

/** Handles that are open now: a test's check for leaks. */
size_t au_image_open_handles(const au_image *image);

#endif
