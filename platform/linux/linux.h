/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: the structs behind `au_sys` and `au_proc` on Linux and what its files share.
 *
 * How a process is held. A pid is a number that can be given to somebody else, so three things that cannot are kept:
 *  - a pidfd (pidfd_open(2)): readable once the process has ended;
 *  - a descriptor of the directory /proc/PID: look-ups below it fail once that process is gone, whoever has the pid now
 *    (proc(5); the directory's inode refers to the kernel's own `struct pid`);
 *  - /proc/PID/mem and /proc/PID/pagemap, which stay bound to the address space they were opened on: after an exec
 *    they read as ended (fs/proc/base.c, mem_rw and fs/proc/task_mmu.c, pagemap_read: mmget_not_zero).
 * process_vm_readv(2) takes the number, so every call of it is followed by a look at the pidfd: not ended after the
 * read means that the number was ours during the read.
 *
 * The first thread may end before the others (leader.c). Then nothing that needs memory works under its number, and
 * `body` and `reader` stand for another thread.
 */
#ifndef AU_PLATFORM_LINUX_LINUX_H
#define AU_PLATFORM_LINUX_LINUX_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "engine/proc_ops.h"
#include "objfile/objfile.h"

/** Where proc(5) is mounted. A variable so that tests can make one up. */
extern const char *au__linux_proc_root;

enum { LINUX_BATCH = 1024 }; /* IOV_MAX: the most that process_vm_readv takes in one call */

typedef struct linux_sys {
    au_sys sys;
    uint32_t wake_word; /* 1 = wake has been called; without `epoll` the futex that sleep_until waits on */
    uint32_t ends;      /* how often a process that is open was seen to have ended */
    uint64_t woke_ns;   /* when a sleep ended and none of them had */
    int epoll;          /* waits for `event` and the pidfds of open processes; 0: none (yet), -1: cannot be had */
    int event;          /* eventfd(2), written by wake */
    int32_t owner;      /* the process that made both: a fork makes its own */
} linux_sys;

/** A module as the last call of `modules` saw it. */
typedef struct linux_module {
    au_addr base, end, bias;
    uint64_t inode;
    unsigned dev_major, dev_minor;
    au_addr first_end; /* end of the first mapping: names it in map_files */
    char *path;        /* owned; as in maps, without the mark of deletion */
    int deleted, is_main, bits;
    int fd;     /* its file; -1 not opened (yet) */
    int source; /* au_module_source once it is fixed */
} linux_module;

/** The kept-open files of one thread. */
typedef struct linux_slot {
    au_tid tid; /* 0: free */
    uint32_t serial;
    int schedstat, syscall, stat; /* -1: not kept open */
    uint64_t switches;            /* at which `asleep` was found out */
    int asleep;                   /* AU_RUN_ASLEEP or AU_RUN_STOPPED at `switches`; 0 not known */
    uint32_t next_free;
} linux_slot;

/** What a listing of threads remembers, so that a start time is read once a thread. */
typedef struct linux_known {
    au_tid tid; /* 0: free */
    uint64_t inode;
    uint64_t start_time_ns;
} linux_known;

typedef struct linux_proc {
    au_proc proc;
    linux_sys *sys;
    uint64_t alive_ns; /* when `pidfd` was looked at last and it lived */
    uint32_t ends;     /* sys->ends before that */
    int watched;       /* by sys->epoll */
    int pidfd, dir, mem, pagemap;
    int body;         /* directory of the thread that has the memory, when the first one has ended; else -1 */
    int64_t reader;   /* the number for process_vm_readv; -1: none that could be proven ours, read through `mem` */
    int reader_pidfd; /* of that thread when it is not the first; else -1 */
    int statm;        /* opened at the first `usage` */
    int reserve;      /* a descriptor to give up for a moment when there are no more */
    unsigned gone : 1;
    unsigned no_vm_readv : 1;   /* the call is not there or not allowed to us: read through `mem` */
    unsigned shares_memory : 1; /* with its parent (vfork, before its exec): `mem` does not tell an exec */
    unsigned foreign_ids : 1;   /* it lives in a PID namespace below ours */
    unsigned ids_known : 1;
    uint32_t generation;
    uint32_t pointer_bytes;
    uint32_t page_bytes;
    uint64_t start_ticks;
    uint64_t image_stamp;  /* mixed from what an exec changes in `stat` */
    uint64_t looked_at_ns; /* when `stat` was compared last */

    linux_module *modules;
    size_t n_modules, cap_modules;
    uint64_t module_epoch; /* upper half of module ids */

    linux_slot *slots;
    uint32_t n_slots, cap_slots, free_slot; /* free_slot: index + 1 of a list, 0 for none */
    uint32_t slot_serial;
    int fd_limit; /* kept-open files have numbers below this */

    linux_known *known; /* open addressing, cap is a power of two */
    size_t known_cap, known_count;

    int64_t pthread_tid_offset;     /* in struct pthread; -1 not known yet */
    uint64_t pthread_candidates[8]; /* bit i: offset 4*i may be it */
    int candidates_set;
    au_tid *namespaced; /* pairs: as the tracee sees it, as we see it */
    size_t n_namespaced, cap_namespaced;

    struct iovec local[LINUX_BATCH], remote[LINUX_BATCH];
} linux_proc;

extern const au_proc_ops au__linux_ops;

static inline linux_proc *linux_of(au_proc *proc)
{
    return (linux_proc *)proc;
}

/* ---- files of /proc ------------------------------------------------------------------------------------------ */

/** Opens a file below /proc/PID for reading, giving up the reserve when we have no descriptors left. -1 and errno. */
int au__linux_open(linux_proc *lp, const char *name);

/** The same below another directory. */
int au__linux_open_at(linux_proc *lp, int dir, const char *name);

/** Takes the reserve again after au__linux_open's file has been closed. */
void au__linux_close(linux_proc *lp, int fd);

/** Reads a small file below /proc/PID into `buf` and ends it with a NUL. Bytes, or -1 and errno. */
ssize_t au__linux_slurp(linux_proc *lp, const char *name, char *buf, size_t cap);

/** The same for a file below the proc root. */
ssize_t au__linux_slurp_root(const char *name, char *buf, size_t cap);

/** getdents64(2). */
typedef struct linux_dirent {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
} linux_dirent;

/** Fields of a `stat` file (proc(5)); what is not there stays 0. */
typedef struct linux_stat {
    char state;
    au_pid parent;
    uint64_t start_ticks, start_code, end_code, start_stack, start_data, start_brk, arg_start;
} linux_stat; /* start_code is 0 of a thread that has no memory (any more) (fs/proc/array.c, do_task_stat) */

int au__linux_parse_stat(const char *text, size_t len, linux_stat *out);

/** The place of the state's letter in such a text, which is all that is asked of a thread; NULL: there is none. */
const char *au__linux_stat_state(const char *text, size_t len);

/** The file `stat` in the directory of a process or thread. 0, or -1. */
int au__linux_read_stat(linux_proc *lp, int dir, linux_stat *out);

/** Clock ticks since boot to nanoseconds. */
uint64_t au__linux_ticks_ns(uint64_t ticks);

/** The number after "NAME:" in a `status` file; `last` takes the last one of the line. -1 if there is none. */
int64_t au__linux_status_number(const char *text, const char *name, int last);

/* ---- identity ------------------------------------------------------------------------------------------------ */

/** Looks at the pidfd. Non-zero once the process has ended. */
int au__linux_gone(linux_proc *lp);
/** After a read by number: may it have been of another process? */
int au__linux_maybe_gone(linux_proc *lp);

/** A thread of it that runs and has memory, by our numbers; 0 when there is none. */
au_tid au__linux_live_thread(linux_proc *lp);

/** Finds out who has the memory, the first thread or another, and sets `body` and `reader`. -1: nobody. */
int au__linux_choose(linux_proc *lp);

/** The directory below which files that belong to the memory (mem, maps, exe, root) are looked up. Cold. */
int au__linux_body(linux_proc *lp);

/** Non-zero when the thread behind `reader` has ended: what was read under its number may be somebody else's. */
int au__linux_reader_ended(linux_proc *lp);

/** The error of a cold member whose look below /proc failed with `os_code`. */
au_error *au__linux_error(linux_proc *lp, int os_code, const char *what);

/** Reads with nothing but `mem`; for open and for fallbacks. */
au_outcome au__linux_read_mem(linux_proc *lp, au_addr addr, void *buf, size_t len);

/** Opens (again) what is bound to one address space. */
int au__linux_bind_memory(linux_proc *lp);

/** The address space that we hold has ended: another program, or the end? */
au_outcome au__linux_rebind(linux_proc *lp);

/* ---- members ------------------------------------------------------------------------------------------------- */

au_error *au__linux_proc_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out);
void au__linux_proc_close(au_proc *proc);
au_outcome au__linux_status(au_proc *proc, au_proc_status *out);
au_outcome au__linux_read(au_proc *proc, au_addr addr, void *buf, size_t len);
size_t au__linux_read_many(au_proc *proc, au_piece *pieces, size_t n);
au_error *au__linux_regions(au_proc *proc, au_region_fn fn, void *baton);
au_error *au__linux_modules(au_proc *proc, au_module_fn fn, void *baton);
au_error *au__linux_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                au_module_source *source);
au_error *au__linux_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n);
size_t au__linux_thread_states(au_proc *proc, au_thread_state *states, size_t n);
au_outcome au__linux_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out);
au_outcome au__linux_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap);
au_outcome au__linux_usage(au_proc *proc, au_usage *out);
au_error *au__linux_processes(au_sys *sys, au_process_fn fn, void *baton);
uint64_t au__linux_now(au_sys *sys);
uint64_t au__linux_sleep_until(au_sys *sys, uint64_t deadline_ns);
void au__linux_wake(au_sys *sys);
/** From now on sleep_until looks whether the process has ended; closing the pidfd undoes it. Never fails. */
void au__linux_watch(linux_proc *lp);
void au__linux_explain(au_sys *sys, au_pid pid, au_explanation *out);

/** Frees what a member keeps in the handle. */
void au__linux_modules_forget(linux_proc *lp);
void au__linux_slots_forget(linux_proc *lp);

#endif
