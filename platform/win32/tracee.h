/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: the structs behind `au_sys` and `au_proc` on Windows and what the members of the table share.
 *
 * How a process is held: by a handle. As long as one is open the process object stays, and with it its number, so that
 * neither a read nor a look at the list of processes can be of somebody else who was given the number (Win32,
 * "Process Handles and Identifiers"). A number that was remembered without a handle, such as a parent's, says nothing
 * by itself: it is believed only together with the time of creation.
 *
 * There is no exec on this system, so the generation of a process is 0 for good.
 */
#ifndef AU_PLATFORM_WIN32_TRACEE_H
#define AU_PLATFORM_WIN32_TRACEE_H

#include "platform/win32/win32.h"

typedef LONG(NTAPI *win32_query_system)(ULONG what, void *out, ULONG cap, ULONG *len);
typedef LONG(NTAPI *win32_query_process)(HANDLE process, ULONG what, void *out, ULONG cap, ULONG *len);
typedef LONG(NTAPI *win32_delay)(BOOLEAN alertable, LARGE_INTEGER *due);

/** What the system exports and no import library of every version has; a member is NULL where it is not there. */
typedef struct win32_calls {
    win32_query_system query_system;                                /* ntdll, NtQuerySystemInformation */
    win32_query_process query_process;                              /* ntdll, NtQueryInformationProcess */
    win32_delay delay;                                              /* ntdll, NtDelayExecution */
    HRESULT(WINAPI *thread_description)(HANDLE thread, PWSTR *out); /* Windows 10 1607 */
    BOOL(WINAPI *is_wow64_process2)(HANDLE process, USHORT *process_machine, USHORT *native_machine); /* 10 1511 */
} win32_calls;

const win32_calls *au__win32_calls(void);

/** One thread of a snapshot: SYSTEM_THREAD_INFORMATION (winternl.h; the reserved members as Windows fills them). */
typedef struct win32_thread_info {
    LARGE_INTEGER kernel_time, user_time, create_time;
    ULONG wait_time;
    void *start_address;
    HANDLE process_id, thread_id;
    LONG priority, base_priority;
    ULONG context_switches, state, wait_reason;
} win32_thread_info;

/** One process of a snapshot: SYSTEM_PROCESS_INFORMATION (likewise); its threads follow. */
typedef struct win32_process_info {
    ULONG next, thread_count;
    LARGE_INTEGER working_set_private;
    ULONG hard_faults, thread_peak;
    ULONGLONG cycle_time;
    LARGE_INTEGER create_time, user_time, kernel_time;
    USHORT name_len, name_cap;
    wchar_t *name;
    LONG base_priority;
    HANDLE id, parent;
    ULONG handle_count, session;
    ULONG_PTR rest[19];
    win32_thread_info threads[];
} win32_process_info;

/** The answer of one NtQuerySystemInformation; kept, so that the next one needs no memory. */
typedef struct win32_snapshot {
    uint8_t *bytes;
    ULONG cap, len;
} win32_snapshot;

enum { WIN32_STATE_RUNNING = 2 }; /* KTHREAD_STATE (wdm.h): of a thread on a CPU */

/** What is remembered of a thread where the system does not tell run states (threads.c). */
typedef struct win32_seen {
    DWORD tid; /* 0: free */
    uint64_t cpu_ns, since_ns, moved_ns;
} win32_seen;

typedef struct win32_sys {
    au_sys sys;
    volatile LONG ready;
    volatile LONG woken;
    HANDLE event; /* auto-reset, set by wake */
    HANDLE timer; /* NULL: cannot be had */
    LONGLONG frequency;
    int64_t late_ns; /* of the timer, a running mean */
    int delays;      /* the timer is so late that NtDelayExecution is used */
} win32_sys;

typedef struct win32_module {
    au_addr base, end;
    char *path;      /* owned; "" when it has no file */
    wchar_t *device; /* owned; the same as the system writes it */
    int is_main, bits, deleted;
    uint8_t build_id[20];
    size_t build_id_len;
    uint8_t *head; /* owned: its first bytes, which the system maps for reading only */
    size_t head_len;
} win32_module;

typedef struct win32_proc {
    au_proc proc;
    win32_sys *sys;
    HANDLE handle;
    unsigned gone : 1;
    uint32_t pointer_bytes, page_bytes;
    LONGLONG created;   /* FILETIME */
    au_addr image_base; /* of the executable; 0 if not known */

    win32_module *modules, *before; /* of the last list, and of the one before it while a list is made */
    size_t n_modules, cap_modules, n_before;
    uint64_t module_epoch; /* upper half of module ids */

    win32_snapshot snapshot;
    win32_seen *seen; /* open addressing; the capacity is a power of two */
    size_t seen_cap, seen_count;
} win32_proc;

static inline win32_proc *win32_of(au_proc *proc)
{
    return (win32_proc *)proc;
}

/** FILETIME (100 ns since 1601) to nanoseconds since 1970, on which all start times of this port are. 0 stays 0. */
uint64_t au__win32_filetime_ns(LONGLONG filetime);

/** Non-zero once the process has ended. */
int au__win32_gone(win32_proc *wp);

/** The error of a cold member whose call failed with `code`. */
au_error *au__win32_error(win32_proc *wp, DWORD code, const char *what);

/** Takes a snapshot of all processes and threads. 0, or an error of GetLastError. */
DWORD au__win32_snapshot(win32_snapshot *snapshot);
void au__win32_snapshot_free(win32_snapshot *snapshot);

/** Our process in a new snapshot of its own. NULL: it has gone, or there is none (*failed). */
const win32_process_info *au__win32_look(win32_proc *wp, DWORD *failed);

/** The next process of a snapshot after `at` (NULL: the first); NULL at the end. What it says lies in the snapshot. */
const win32_process_info *au__win32_next_process(const win32_snapshot *snapshot, const win32_process_info *at);

/** Does the system tell run states of threads (threads.c)? */
int au__win32_tells_states(void);

/** Opens a process with the fewest rights that do, with SeDebugPrivilege if that is what is missing. NULL and *code. */
HANDLE au__win32_open_process(DWORD pid, DWORD access, DWORD *code);

void au__win32_init(win32_sys *ws);

au_error *au__win32_proc_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out);
void au__win32_proc_close(au_proc *proc);
au_outcome au__win32_status(au_proc *proc, au_proc_status *out);
au_outcome au__win32_read(au_proc *proc, au_addr addr, void *buf, size_t len);
size_t au__win32_read_many(au_proc *proc, au_piece *pieces, size_t n);
au_error *au__win32_regions(au_proc *proc, au_region_fn fn, void *baton);
au_error *au__win32_modules(au_proc *proc, au_module_fn fn, void *baton);
au_error *au__win32_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                au_module_source *source);
void au__win32_modules_forget(win32_proc *wp);
au_error *au__win32_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n);
size_t au__win32_thread_states(au_proc *proc, au_thread_state *states, size_t n);
au_outcome au__win32_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out);
au_outcome au__win32_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap);
au_outcome au__win32_usage(au_proc *proc, au_usage *out);
au_error *au__win32_processes(au_sys *sys, au_process_fn fn, void *baton);
uint64_t au__win32_now(au_sys *sys);
uint64_t au__win32_sleep_until(au_sys *sys, uint64_t deadline_ns);
void au__win32_wake(au_sys *sys);
void au__win32_explain(au_sys *sys, au_pid pid, au_explanation *out);

#endif
