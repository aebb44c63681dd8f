/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The engine: finds the interpreter in a tracee, walks its threads and frames, and hands samples to a sink.
 *
 * It knows CPython and no operating system; all it sees of a tracee comes through `au_proc_ops`. It knows no file
 * format either: the sink is the app's. One thread uses an engine; `au_engine_stop` may be called from any.
 */
#ifndef AU_ENGINE_ENGINE_H
#define AU_ENGINE_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/proc_ops.h"

typedef enum au_mode {
    AU_MODE_WALL, /**< every thread, every pass */
    AU_MODE_CPU   /**< only the threads that are on a CPU at the pass */
} au_mode;

/**
 * Where in the source a frame stands. Owned by the engine, stable while it is in a sample; two frames that stand at
 * the same instruction of the same code object share one. Strings are valid UTF-8 without NUL inside, at most 16 KiB.
 */
typedef struct au_location {
    const char *file;
    const char *scope;   /**< qualified name from 3.11 on, plain name before */
    uint32_t line;       /**< 1-based; 0 = unknown */
    uint32_t line_end;   /**< 0 = unknown */
    uint32_t column;     /**< 1-based byte column; 0 = unknown */
    uint32_t column_end; /**< 1-based, one past the last byte; 0 = unknown */
    uint32_t sink_key;   /**< the sink's own; 0 when new */
} au_location;

enum {
    AU_SAMPLE_SAME =
        1u << 0, /**< the frames are those of the previous sample that the sink took of this thread state */
    AU_SAMPLE_TORN = 1u << 1,     /**< moved while it was read: frames two looks agree on, ended by `<torn>` */
    AU_SAMPLE_TRUNCATED = 1u << 2 /**< could not be followed to its root: begins with `<truncated>` */
};

/** One thread at one moment. Everything lives during the call of the sink only, locations as said above. */
typedef struct au_sample {
    au_pid pid;
    int64_t iid;                /**< interpreter id; 0 = main */
    const char *thread;         /**< name, or the OS thread id in lower-case hexadecimal */
    size_t thread_length;       /**< bytes of it, without the NUL */
    uint64_t state_id;          /**< names the thread state; never used again for another one in this engine's life */
    unsigned flags;             /**< AU_SAMPLE_* */
    uint64_t time_us;           /**< since the pass before */
    au_location *const *frames; /**< outermost first */
    size_t frame_count;
} au_sample;

/** Takes samples. Return 0 to go on; anything else ends the run (AU_RAN_SINK). */
typedef struct au_sink {
    int (*sample)(struct au_sink *sink, const au_sample *sample);
    /** All samples of a pass were given; `time_us` as in them. NULL if not wanted. Return as above. */
    int (*pass)(struct au_sink *sink, uint64_t time_us);
} au_sink;

typedef struct au_engine_options {
    au_mode mode;
    uint64_t interval_us; /**< 0: flat out */
    uint64_t timeout_ms;  /**< how long to look for an interpreter */
    uint64_t exposure_ns; /**< end by itself after that long; 0 = no limit */
    uint32_t read_cap;    /**< upper bound in bytes of a read-ahead window; 0 = 4096 */
    uint64_t random_seed; /**< of the gaps; 0 = from the clock */
    uint64_t max_passes;  /**< tests and benchmarks: end after so many; 0 = no limit */
} au_engine_options;

/** What was found out about the tracee's Python. */
typedef struct au_python {
    unsigned major, minor, micro;
    int release_level; /**< 0xA alpha, 0xB beta, 0xC candidate, 0xF final */
    int serial;
    int micro_known; /**< 0: only major and minor are sure */
    int free_threaded;
    int bits;
    const char *other_runtime; /**< label of a second initialised runtime that is not sampled; NULL */
    const char *image;         /**< label of the image the runtime is in */
} au_python;

/** Counted by cause; a sample with two causes counts in both and once in `errors`. */
typedef struct au_stats {
    uint64_t start_ns, last_ns; /**< start of sampling, start of the last pass */
    uint64_t duration_us;       /**< what the times of the passes add up to */
    uint64_t passes;
    uint64_t late; /**< passes that were not done when the next one was due */
    uint64_t pass_min_us, pass_max_us, pass_sum_us;
    uint64_t samples; /**< given to the sink */
    uint64_t errors;  /**< samples torn, truncated or without a readable stack */
    uint64_t torn, truncated, unreadable;
    uint64_t retries;   /**< reads repeated because something moved */
    uint64_t list_torn; /**< thread or interpreter list that moved while it was read */
    uint64_t threads_seen, interpreters_seen;
    uint64_t code_hits, code_misses, code_evictions;
    uint64_t arena_growths;
    uint64_t rediscoveries;
} au_stats;

typedef enum au_ran {
    AU_RAN_TARGET_GONE, /**< it ended, or is no Python any more */
    AU_RAN_STOPPED,     /**< au_engine_stop */
    AU_RAN_EXPOSURE,    /**< exposure_ns or max_passes is over */
    AU_RAN_SINK         /**< the sink refused */
} au_ran;

typedef struct au_engine au_engine;

/** Called at most every 10 ms while looking and sampling; return non-zero to stop. */
typedef int (*au_poll_fn)(void *baton);

/** Called by au_engine_run between two passes, after it has found an interpreter again. `python` as of au_engine_find.
 */
typedef void (*au_found_fn)(void *baton, const au_python *python);

/**
 * Called by au_engine_find after a look that has found no interpreter: the process to look into instead, or NULL to go
 * on with `proc`. Closing `proc` is the caller's, here or later.
 */
typedef au_proc *(*au_elsewhere_fn)(void *baton, au_proc *proc);

/** The caller keeps `sys`, `sink` and the process that was found in last alive until destroy. */
au_error *au_engine_create(const au_engine_options *options, au_sys *sys, au_sink *sink, au_engine **out);

/** NULL is accepted. Does not close the process. */
void au_engine_destroy(au_engine *engine);

/** Asks the run (or the search) to end soon. Any thread; async-signal-safe. */
void au_engine_stop(au_engine *engine);

/** See au_poll_fn; NULL takes it away. */
void au_engine_set_poll(au_engine *engine, au_poll_fn poll, void *baton);

/** See au_found_fn; NULL takes it away. */
void au_engine_set_found(au_engine *engine, au_found_fn found, void *baton);

/** See au_elsewhere_fn; NULL takes it away. */
void au_engine_set_elsewhere(au_engine *engine, au_elsewhere_fn elsewhere, void *baton);

/**
 * Looks for an interpreter with a thread that has frames, again and again until timeout_ms is over, in `proc` or where
 * au_elsewhere_fn says.
 * AU_ERR_PYTHON: not a Python, or one we do not support (then the message holds the version or word size);
 * AU_ERR_GONE: it ended before. On success *python (owned by the engine) lives until the next find or destroy.
 */
au_error *au_engine_find(au_engine *engine, au_proc *proc, const au_python **python);

/** One look, without waiting: is there an interpreter that au_engine_find would find? Needs no engine. */
int au_engine_is_python(au_sys *sys, au_proc *proc);

/**
 * Samples until something in au_ran happens. When the tracee turns into another program (exec), looks for an
 * interpreter there for up to timeout_ms. An error is something that no retry helps against (memory).
 */
au_error *au_engine_run(au_engine *engine, au_ran *how);

const au_stats *au_engine_stats(const au_engine *engine);

#endif
