/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The only door between the engine and a tracee.
 *
 * A port (Linux, macOS, Windows, a recording, an injected fault) is one constant `au_proc_ops` table. The engine is
 * handed a system (`au_sys`), opens processes through it, and from then on sees bytes, ids and times; it includes no
 * OS header and never learns which port serves it.
 *
 * PORTING GUIDE
 * -------------
 * 1. Copy `platform/none`, the smallest complete port. Every member must be set; a member whose ability the system
 *    lacks keeps the stub of `none` and its capability bit stays off. The engine asks the bit, never the name.
 * 2. Derive your own structs: the first member of yours is `au_sys` respectively `au_proc`, so the pointers convert.
 * 3. Run the contract suite (`tests/contract`) against your table. It has one case or more a member, names the bits
 *    that are off, and fails for a copy of the table with any one member broken.
 *
 * RULES FOR ALL MEMBERS
 * ---------------------
 * - Nothing here writes into a tracee. There is no member for it and there will be none.
 * - One `au_proc` is used by one thread at a time. `wake` is the exception: any thread, also a signal handler.
 * - Members marked HOT allocate nothing, take no lock, log nothing and return an `au_outcome`. The others return an
 *   error that names the pid, path or address, and are called now and then, never once per sample.
 * - Outputs come last and are untouched when a member fails, unless it says otherwise.
 * - Identity: `open` binds to one process, not to a number. When that process has gone and its pid was given to
 *   another one, every member says AU_GONE. An exec keeps the identity and raises `au_proc_status.generation`.
 * - Addresses, file offsets and host pointers are different types of number: `au_addr`, `uint64_t offset`, `void *`.
 */
#ifndef AU_ENGINE_PROC_OPS_H
#define AU_ENGINE_PROC_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** An address in the tracee. Never dereferenced, never a host pointer. */
typedef uint64_t au_addr;

/** Process and thread ids as our own PID namespace sees them. */
typedef int64_t au_pid;
typedef int64_t au_tid;

/** What became of one hot call or one piece of it. */
typedef enum au_outcome {
    AU_OK = 0,
    AU_FAULT,      /**< the address is not mapped or not readable (now) */
    AU_GONE,       /**< the process or thread has ended, or is not the one that was opened */
    AU_DENIED,     /**< the right was there at `open` and is not any more, or never was */
    AU_NOT_KNOWN,  /**< a recording has no answer for this: differs from "not mapped" */
    AU_UNSUPPORTED /**< the port cannot do this: its capability bit is off */
} au_outcome;

/** Capability bits: a member is usable when its bit is set. Members without a bit here work in every port. */
enum {
    AU_CAP_THREADS = 1u << 0,       /**< threads */
    AU_CAP_THREAD_STATES = 1u << 1, /**< thread_states: run state */
    AU_CAP_SWITCHES = 1u << 2,      /**< thread_states: `switches` is exact */
    AU_CAP_THREAD_ID_OF = 1u << 3,  /**< thread_id_of */
    AU_CAP_THREAD_NAME = 1u << 4,   /**< thread_name */
    AU_CAP_USAGE = 1u << 5,         /**< usage */
    AU_CAP_PROCESSES = 1u << 6,     /**< processes */
    AU_CAP_SUSPEND = 1u << 7,       /**< suspend, resume */
    AU_CAP_SELF_RELEASE = 1u << 8,  /**< the system itself resumes what we stopped when we die (ptrace does) */
    AU_CAP_REGISTERS = 1u << 9,     /**< registers */
    AU_CAP_UNWIND = 1u << 10,       /**< unwind */
    AU_CAP_SYMBOLISE = 1u << 11,    /**< symbolise */
    AU_CAP_KERNEL_STACK = 1u << 12, /**< kernel_stack */
    AU_CAP_MODULE_FILE = 1u << 13,  /**< module_read can serve a module's file, not only its memory */
    AU_CAP_THREAD_CPU = 1u << 14,   /**< thread_states: `cpu_ns`, `waited_ns` */
    AU_CAP_LAUNCHERS = 1u << 15,    /**< no member, but a fact: a program cannot become another one here, so that what
                                         stands for an interpreter (of a virtual environment, say) is its parent */
    AU_CAP_STATES_TOLD = 1u << 16   /**< thread_states: the system itself tells run states, at once and all of them. A
                                         port without it judges by what threads have used: it says AU_RUN_UNKNOWN until
                                         it has seen a thread for a while, is late by some clock ticks, and takes a
                                         stopped thread for one that sleeps */
};

/** What `open` shall be able to do later. */
enum {
    AU_WANT_READ = 1u << 0, /**< read memory and all the facts */
    AU_WANT_STOP = 1u << 1  /**< suspend, registers, unwind */
};

struct au_proc_ops;

/** A system: what processes are opened through. A port's own struct begins with this. */
typedef struct au_sys {
    const struct au_proc_ops *ops;
} au_sys;

/** One open process. A port's own struct begins with this. */
typedef struct au_proc {
    const struct au_proc_ops *ops;
    au_pid pid;
} au_proc;

/** One piece of a batched read: where from, where to, how much, and what became of it. */
typedef struct au_piece {
    au_addr addr;
    void *buf;
    uint32_t len;
    uint32_t outcome; /**< au_outcome, set by read_many; `buf` is undefined unless AU_OK */
} au_piece;

enum { AU_RUNNING = 0, AU_EXITED = 1 };

typedef struct au_proc_status {
    int state;              /**< AU_RUNNING or AU_EXITED */
    uint32_t generation;    /**< 0 at open; goes up when the process has become another program by exec */
    uint32_t pointer_bytes; /**< of the current image: 4 or 8; 0 if not known */
    uint32_t page_bytes;
    uint64_t start_time_ns; /**< on the port's own clock; with the pid it identifies the process */
    uint64_t list_stamp;    /**< changes when modules or regions may have changed by exec; 0 if the port cannot tell */
} au_proc_status;

enum { AU_PERM_READ = 1, AU_PERM_WRITE = 2, AU_PERM_EXEC = 4, AU_PERM_SHARED = 8 };

/** A range of mapped memory. Strings live during the callback only. */
typedef struct au_region {
    au_addr start, end; /**< end is exclusive */
    unsigned perms;     /**< AU_PERM_* */
    uint64_t offset;    /**< in the backing file */
    uint64_t file_id;   /**< same number for regions of the same file; 0 for none */
    const char *path;   /**< as the system writes it; NULL for none. A label, not to be opened by the engine */
    int deleted;        /**< the file is no longer at that path */
} au_region;

enum { AU_BITS_UNKNOWN = 0, AU_BITS_32 = 32, AU_BITS_64 = 64 };

/** A loaded image (executable or library). Strings live during the callback only. */
typedef struct au_module {
    uint64_t id;          /**< names it towards module_read, until the next call of `modules` */
    au_addr base, end;    /**< lowest and past-highest address of its mappings */
    au_addr bias;         /**< run-time address minus the address in the file (load bias); 0 for ET_EXEC */
    const char *path;     /**< label; "" for an image that has no file */
    int deleted;          /**< its file is not at that path any more, or is another one */
    int is_main;          /**< the executable itself */
    int bits;             /**< AU_BITS_* of this image */
    uint8_t build_id[20]; /**< GNU build id, Mach-O UUID or PDB GUID+age, cut at 20 bytes */
    size_t build_id_len;  /**< 0 if it has none */
} au_module;

/** Where module_read got its bytes from. */
typedef enum au_module_source {
    AU_SOURCE_NONE = 0,
    AU_SOURCE_FILE,  /**< offsets are file offsets */
    AU_SOURCE_MEMORY /**< offsets count from `base`; what is not loaded (section headers) is absent */
} au_module_source;

typedef struct au_thread {
    au_tid tid;
    uint64_t start_time_ns; /**< tells a reused id from the old one; 0 if the port cannot tell */
} au_thread;

/** Run states of a thread. */
typedef enum au_run_state {
    AU_RUN_UNKNOWN = 0,
    AU_RUN_RUNNING, /**< on a CPU or ready for one */
    AU_RUN_ASLEEP,
    AU_RUN_STOPPED,
    AU_RUN_GONE
} au_run_state;

/** What to fetch: a state costs more than a switch count on some systems. */
enum { AU_STATE_SWITCHES = 1, AU_STATE_RUN = 2, AU_STATE_CPU = 4, AU_STATE_WAITED = 8 };

/**
 * In and out of thread_states. `slot` is the port's own (a kept-open file, say): zero it for a thread not seen before
 * and hand the same struct in again; give it back with wanted = 0 to let go of what is behind it.
 */
typedef struct au_thread_state {
    au_tid tid;
    uint32_t wanted; /**< AU_STATE_*; 0 lets go of `slot` */
    uint32_t outcome;
    au_run_state run;  /**< if wanted */
    uint64_t switches; /**< if wanted: how often the thread was switched in. Asleep then, and the same number now,
                            proves that it has not run in between. Read BEFORE `run` when both are wanted */
    uint64_t cpu_ns;   /**< if wanted: CPU time of the thread as the system has counted it, 0 if it does not. Late while
                            the thread is on a CPU, by a tick or by many; right when it is not. Never goes back, and
                            of the same moment as `switches` */
    uint64_t waited_ns; /**< if wanted: how long the thread was ready and had no CPU, 0 if the system does not tell. A
                            wait is counted when it is over. Never goes back, of the same moment as `switches` */
    uint64_t slot;
} au_thread_state;

typedef enum au_id_kind {
    AU_ID_PTHREAD,   /**< what Python takes for a thread's identity: a pthread_t of the tracee; where threads have but
                          one number, that */
    AU_ID_NAMESPACED /**< a thread id as the tracee's own PID namespace numbers it */
} au_id_kind;

typedef struct au_usage {
    uint64_t resident_bytes;
    uint64_t cpu_ns;
    uint64_t cpu_granularity_ns; /**< how stale cpu_ns may be */
} au_usage;

typedef struct au_process {
    au_pid pid, parent;
    uint64_t start_time_ns;
} au_process;

/** Registers of a stopped thread, tagged with the CPU, so that unwinding runs on recorded images too. */
typedef enum au_cpu { AU_CPU_UNKNOWN = 0, AU_CPU_X86_64, AU_CPU_AARCH64, AU_CPU_X86, AU_CPU_ARM } au_cpu;
typedef struct au_registers {
    au_cpu cpu;
    uint32_t count;
    uint64_t value[34]; /**< in DWARF register order of that CPU, then pc */
} au_registers;

typedef struct au_native_frame {
    au_addr pc;  /**< of the outer frames: the return address */
    au_addr cfa; /**< canonical frame address; 0 if not known */
} au_native_frame;

typedef enum au_unwind_end {
    AU_UNWIND_COMPLETE = 0,
    AU_UNWIND_NO_INFO,
    AU_UNWIND_BAD_MEMORY,
    AU_UNWIND_FULL
} au_unwind_end;

typedef struct au_symbol {
    au_addr addr;     /**< in: what to look up (one byte less than a return address) */
    const char *name; /**< out: NULL if not known; lives until the next call */
    const char *module;
    uint64_t offset; /**< out: bytes into the symbol */
} au_symbol;

/** Which right is missing: data. The words are the app's. */
typedef enum au_right {
    AU_RIGHT_UNKNOWN = 0,
    AU_RIGHT_NONE_MISSING,
    AU_RIGHT_OTHER_USER,   /**< the process belongs to `uid`, we are somebody else and not privileged */
    AU_RIGHT_PTRACE_SCOPE, /**< Yama: `scope` is 1, 2 or 3 */
    AU_RIGHT_CAPABILITY,   /**< the process has more capabilities than we have, or another user namespace */
    AU_RIGHT_NOT_DUMPABLE, /**< it made itself undumpable (set-id, PR_SET_DUMPABLE) */
    AU_RIGHT_NAMESPACE,    /**< we have the capability, but not in the user namespace of the process */
    AU_RIGHT_SECCOMP,      /**< the system call itself is refused to us (container without SYS_PTRACE) */
    AU_RIGHT_HARDENED,     /**< macOS: hardened runtime or SIP */
    AU_RIGHT_ROOT,         /**< macOS: needs root in any case */
    AU_RIGHT_ELEVATION,    /**< it runs with an administrator's rights, we do not */
    AU_RIGHT_PROTECTED     /**< a protected process, which no program may read */
} au_right;

typedef struct au_explanation {
    au_right right;
    int64_t uid; /**< owner of the process; -1 if not known */
    int scope;   /**< AU_RIGHT_PTRACE_SCOPE: kernel.yama.ptrace_scope */
    int in_container;
    int is_root;   /**< we are user 0, or elevated: that is not what is missing */
    int may_trace; /**< Linux: we have CAP_SYS_PTRACE: neither is that */
} au_explanation;

/** Return 0 to go on, anything else to stop the enumeration (which is no error). */
typedef int (*au_region_fn)(void *baton, const au_region *region);
typedef int (*au_module_fn)(void *baton, const au_module *module);
typedef int (*au_process_fn)(void *baton, const au_process *process);

typedef struct au_proc_ops {
    size_t size;      /**< sizeof(au_proc_ops): catches a table built against another version of this header */
    const char *name; /**< for messages and tests: "linux", "none", "replay" */
    uint64_t caps;    /**< AU_CAP_* */

    /**
     * Opens a process. The errors tell the cases apart by code: AU_ERR_GONE or AU_ERR_OS (no such pid),
     * AU_ERR_PERMISSION (with a hint), AU_ERR_BINARY (a bitness we cannot read). AU_WANT_READ is proven by reading,
     * not assumed. On success *out is the caller's to close.
     */
    au_error *(*open)(au_sys *sys, au_pid pid, unsigned want, au_proc **out);

    /** Lets go of whatever is stopped and frees the handle. NULL is accepted. Never blocks. */
    void (*close)(au_proc *proc);

    /** HOT-ish (one cheap system call): is it there, is it still the same program? */
    au_outcome (*status)(au_proc *proc, au_proc_status *out);

    /** HOT. All `len` bytes, or the outcome that says why not (then `buf` is undefined). len 0 is AU_OK. */
    au_outcome (*read)(au_proc *proc, au_addr addr, void *buf, size_t len);

    /**
     * HOT. Serves the pieces strictly in array order, each with its own outcome; a fault does not stop the rest.
     * Any n. Returns how many are AU_OK. That the order holds is what a consistency check is made of.
     */
    size_t (*read_many)(au_proc *proc, au_piece *pieces, size_t n);

    /** All mapped ranges in rising order, also unnamed ones. */
    au_error *(*regions)(au_proc *proc, au_region_fn fn, void *baton);

    /** All loaded images in rising order of base; the engine asks the object-file readers about their content. */
    au_error *(*modules)(au_proc *proc, au_module_fn fn, void *baton);

    /**
     * Random access to a module: its file while that very file can be opened, else its memory. Reads at most `len`
     * bytes; *got may be less at the end. The source is fixed per module id.
     */
    au_error *(*module_read)(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                             au_module_source *source);

    /** OS threads. Fills up to `cap`, sets *n to how many there are (may exceed cap: call again with more room). */
    au_error *(*threads)(au_proc *proc, au_thread *out, size_t cap, size_t *n);

    /** HOT. Run state and switch count of the given threads in one call; see au_thread_state. Returns how many AU_OK.
     */
    size_t (*thread_states)(au_proc *proc, au_thread_state *states, size_t n);

    /** A pthread handle or a namespaced id to our own view's thread id. AU_NOT_KNOWN if no thread matches. */
    au_outcome (*thread_id_of)(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out);

    /** The OS's name of a thread, NUL-terminated, cut to fit. */
    au_outcome (*thread_name)(au_proc *proc, au_tid tid, char *buf, size_t cap);

    /** HOT. Resident memory and CPU time of the process. */
    au_outcome (*usage)(au_proc *proc, au_usage *out);

    /** One snapshot of all processes of the system. */
    au_error *(*processes)(au_sys *sys, au_process_fn fn, void *baton);

    /**
     * Stops the given threads, each with its outcome in outcomes[i]; pairs strictly with `resume` over the same
     * array, from the same OS thread, for the shortest time possible.
     */
    size_t (*suspend)(au_proc *proc, const au_tid *tids, size_t n, uint8_t *outcomes);
    void (*resume)(au_proc *proc, const au_tid *tids, size_t n);

    /** Registers of a stopped thread. */
    au_outcome (*registers)(au_proc *proc, au_tid tid, au_registers *out);

    /** Native frames of a stopped thread, innermost first. Fills up to `cap`; *n is what was filled. */
    au_outcome (*unwind)(au_proc *proc, au_tid tid, const au_registers *regs, au_native_frame *out, size_t cap,
                         size_t *n, au_unwind_end *end);

    /** Addresses to names, in a batch; never once per sample. */
    au_error *(*symbolise)(au_proc *proc, au_symbol *symbols, size_t n);

    /** Kernel frames of a thread as text lines, innermost first. */
    au_outcome (*kernel_stack)(au_proc *proc, au_tid tid, char *buf, size_t cap, size_t *len);

    /** HOT. Monotonic nanoseconds. Never goes back. */
    uint64_t (*now)(au_sys *sys);

    /**
     * HOT. Sleeps until `now` reaches `deadline_ns`, or until `wake`. Never spins. A deadline in the past returns at
     * once. Returns the time on return.
     */
    uint64_t (*sleep_until)(au_sys *sys, uint64_t deadline_ns);

    /** Ends the current or the next sleep_until. Any thread; async-signal-safe. */
    void (*wake)(au_sys *sys);

    /** Looks at this host and says which right is missing for `pid`. Never fails: AU_RIGHT_UNKNOWN is an answer. */
    void (*explain)(au_sys *sys, au_pid pid, au_explanation *out);
} au_proc_ops;

#endif
