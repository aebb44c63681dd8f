/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: their ids, states and CPU times come with one call for all of the system, so that a pass over a thousand
 * threads costs one.
 *
 * A system that tells run states says of the thread that asks that it runs. One that does not (Wine leaves the member
 * 0) is taken at its CPU times: a thread whose time has grown of late runs. Those times are handed out there as well,
 * since they are what the thread has used. Where states are told they are not: Windows charges whoever has the CPU at a
 * clock interrupt, so that a thread which runs for less, right after each one, has used nothing for good.
 */
#include <stdlib.h>
#include <string.h>

#include "platform/win32/tracee.h"

/* KTHREAD_STATE and KWAIT_REASON (wdm.h). */
enum {
    STATE_READY = 1,
    STATE_STANDBY = 3,
    STATE_TERMINATED = 4,
    STATE_WAITING = 5,
    STATE_DEFERRED_READY = 7,
    REASON_SUSPENDED = 5,
    REASON_WR_SUSPENDED = 12
};

/* A thread that has used CPU within so long runs: two of the clock's ticks and the time between two looks. */
#define RECENT_NS 40000000u
/* So long after the first look nothing is known of a thread that stands still. */
#define LOOK_LONG_NS 25000000u

const win32_process_info *au__win32_look(win32_proc *wp, DWORD *failed)
{
    *failed = au__win32_snapshot(&wp->snapshot);
    if (*failed) {
        return NULL;
    }
    for (const win32_process_info *at = NULL; (at = au__win32_next_process(&wp->snapshot, at));) {
        if ((au_pid)(uintptr_t)at->id == wp->proc.pid) {
            return au__win32_gone(wp) ? NULL : at; /* the handle was open all the time: nobody else has the number */
        }
    }
    return NULL;
}

au_error *au__win32_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    win32_proc *wp = win32_of(proc);
    DWORD failed;
    const win32_process_info *me = au__win32_look(wp, &failed);
    if (!me) {
        return failed ? au__win32_error(wp, failed, "threads") : au_error_gone();
    }
    size_t count = 0;
    for (ULONG i = 0; i < me->thread_count; i++) {
        const win32_thread_info *thread = &me->threads[i];
        if (thread->state == STATE_TERMINATED) {
            continue;
        }
        if (count < cap) {
            out[count] = (au_thread){.tid = (au_tid)(uintptr_t)thread->thread_id,
                                     .start_time_ns = au__win32_filetime_ns(thread->create_time.QuadPart)};
        }
        count++;
    }
    *n = count;
    return NULL;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* We run, so our state is told to be that, or none is. */
int au__win32_tells_states(void)
{
    DWORD pid = GetCurrentProcessId(), tid = GetCurrentThreadId();
    win32_snapshot snapshot = {0};
    int told = 0;
    (void)au__win32_snapshot(&snapshot); /* empty, where it fails */
    for (const win32_process_info *at = NULL; (at = au__win32_next_process(&snapshot, at));) {
        for (ULONG i = 0; (DWORD)(uintptr_t)at->id == pid && i < at->thread_count; i++) {
            told |= (DWORD)(uintptr_t)at->threads[i].thread_id == tid && at->threads[i].state == WIN32_STATE_RUNNING;
        }
    }
    au__win32_snapshot_free(&snapshot);
    return told;
}

static uint64_t cpu_of(const win32_thread_info *thread)
{
    return (uint64_t)(thread->kernel_time.QuadPart + thread->user_time.QuadPart) * 100;
}

static win32_seen *seen_slot(win32_seen *table, size_t cap, DWORD tid)
{
    size_t at = (tid * 2654435761u) & (cap - 1);
    while (table[at].tid && table[at].tid != tid) {
        at = (at + 1) & (cap - 1);
    }
    return &table[at];
}

/** Keeps what is remembered of the threads of `me` and drops the rest, with room for twice as many. */
static int make_room(win32_proc *wp, const win32_process_info *me)
{
    size_t cap = 64;
    while (cap < (size_t)me->thread_count * 4) {
        cap *= 2;
    }
    win32_seen *table = calloc(cap, sizeof *table);
    if (!table) {
        return -1;
    }
    size_t count = 0;
    for (ULONG i = 0; wp->seen_cap && i < me->thread_count; i++) {
        DWORD tid = (DWORD)(uintptr_t)me->threads[i].thread_id;
        const win32_seen *old = seen_slot(wp->seen, wp->seen_cap, tid);
        if (tid && old->tid == tid) {
            *seen_slot(table, cap, tid) = *old;
            count++;
        }
    }
    free(wp->seen);
    wp->seen = table;
    wp->seen_cap = cap;
    wp->seen_count = count;
    return 0;
}

static win32_seen *remember(win32_proc *wp, const win32_process_info *me, DWORD tid)
{
    if (wp->seen_count * 2 >= wp->seen_cap && make_room(wp, me) != 0) {
        return NULL;
    }
    win32_seen *seen = seen_slot(wp->seen, wp->seen_cap, tid);
    wp->seen_count += !seen->tid;
    return seen;
}

static au_run_state state_by_time(win32_proc *wp, const win32_process_info *me, const win32_thread_info *thread,
                                  uint64_t now)
{
    win32_seen *seen = remember(wp, me, (DWORD)(uintptr_t)thread->thread_id);
    uint64_t cpu = cpu_of(thread);
    if (!seen) {
        return AU_RUN_UNKNOWN;
    }
    if (!seen->tid || cpu < seen->cpu_ns) { /* the first look, or another thread has the number */
        *seen = (win32_seen){.tid = (DWORD)(uintptr_t)thread->thread_id, .cpu_ns = cpu, .since_ns = now};
        return AU_RUN_UNKNOWN;
    }
    if (cpu > seen->cpu_ns) {
        seen->cpu_ns = cpu;
        seen->moved_ns = now;
    }
    if (seen->moved_ns && now - seen->moved_ns < RECENT_NS) {
        return AU_RUN_RUNNING;
    }
    return now - seen->since_ns < LOOK_LONG_NS ? AU_RUN_UNKNOWN : AU_RUN_ASLEEP;
}

static au_run_state state_told(const win32_thread_info *thread)
{
    switch (thread->state) {
    case STATE_READY:
    case WIN32_STATE_RUNNING:
    case STATE_STANDBY:
    case STATE_DEFERRED_READY:
        return AU_RUN_RUNNING;
    case STATE_WAITING:
        return thread->wait_reason == REASON_SUSPENDED || thread->wait_reason == REASON_WR_SUSPENDED ? AU_RUN_STOPPED
                                                                                                     : AU_RUN_ASLEEP;
    default:
        return AU_RUN_ASLEEP; /* its stack is being brought back to memory, say */
    }
}

static const win32_thread_info *find_thread(const win32_process_info *me, au_thread_state *state)
{
    size_t hint = (size_t)state->slot - 1;
    if (state->slot && hint < me->thread_count && (au_tid)(uintptr_t)me->threads[hint].thread_id == state->tid) {
        return &me->threads[hint];
    }
    for (ULONG i = 0; i < me->thread_count; i++) {
        if ((au_tid)(uintptr_t)me->threads[i].thread_id == state->tid) {
            state->slot = (uint64_t)i + 1;
            return &me->threads[i];
        }
    }
    return NULL;
}

size_t au__win32_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    win32_proc *wp = win32_of(proc);
    const win32_process_info *me = NULL;
    DWORD failed = 0;
    const int told = (proc->ops->caps & AU_CAP_STATES_TOLD) != 0;
    int looked = 0;
    uint64_t now = 0;
    size_t good = 0;
    for (size_t i = 0; i < n; i++) {
        au_thread_state *state = &states[i];
        if (!state->wanted) {
            state->slot = 0;
            state->outcome = AU_OK;
            continue;
        }
        if (!looked) {
            looked = 1;
            me = au__win32_look(wp, &failed);
            now = au__win32_now(&wp->sys->sys);
        }
        const win32_thread_info *thread = me ? find_thread(me, state) : NULL;
        if (!thread || !state->tid || thread->state == STATE_TERMINATED) {
            state->outcome = failed ? AU_DENIED : AU_GONE;
            continue;
        }
        state->outcome = AU_OK;
        good++;
        if (state->wanted & AU_STATE_RUN) {
            state->run = told ? state_told(thread) : state_by_time(wp, me, thread, now);
        }
        if (state->wanted & AU_STATE_SWITCHES) {
            state->switches = thread->context_switches;
        }
        if (state->wanted & AU_STATE_CPU) {
            state->cpu_ns = told ? 0 : cpu_of(thread);
        }
        if (state->wanted & AU_STATE_WAITED) {
            state->waited_ns = 0;
        }
    }
    return good;
}

/* ---- one thread -------------------------------------------------------------------------------------------------- */

/** Opens a thread of this process; NULL if there is none of that number. */
static HANDLE open_thread(const win32_proc *wp, au_tid tid)
{
    HANDLE thread = tid > 0 && tid <= UINT32_MAX
                        ? OpenThread(THREAD_QUERY_LIMITED_INFORMATION | SYNCHRONIZE, FALSE, (DWORD)tid)
                        : NULL;
    if (thread && (GetThreadId(thread) != (DWORD)tid || (au_pid)GetProcessIdOfThread(thread) != wp->proc.pid ||
                   WaitForSingleObject(thread, 0) == WAIT_OBJECT_0)) {
        CloseHandle(thread);
        thread = NULL;
    }
    return thread;
}

au_outcome au__win32_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    win32_proc *wp = win32_of(proc);
    (void)
        kind; /* a thread has one number here, and Python takes that (Python/thread_nt.h, PyThread_get_thread_ident) */
    if (au__win32_gone(wp)) {
        return AU_GONE;
    }
    HANDLE thread = value <= UINT32_MAX ? open_thread(wp, (au_tid)value) : NULL;
    if (!thread) {
        return au__win32_gone(wp) ? AU_GONE : AU_NOT_KNOWN;
    }
    CloseHandle(thread);
    *out = (au_tid)value;
    return AU_OK;
}

au_outcome au__win32_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    win32_proc *wp = win32_of(proc);
    const win32_calls *calls = au__win32_calls();
    if (cap == 0) {
        return AU_FAULT;
    }
    HANDLE thread = open_thread(wp, tid);
    if (!thread) {
        return AU_GONE;
    }
    PWSTR wide = NULL;
    char *name = calls->thread_description && calls->thread_description(thread, &wide) >= 0 && wide
                     ? au__win32_utf8(wide)
                     : NULL;
    LocalFree(wide);
    CloseHandle(thread);
    size_t len = name ? strlen(name) : 0;
    if (len >= cap) {
        for (len = cap - 1; len > 0 && ((unsigned char)name[len] & 0xC0) == 0x80; len--) { /* not within a character */
        }
    }
    if (name) {
        memcpy(buf, name, len);
    }
    buf[len] = 0;
    free(name);
    return AU_OK;
}
