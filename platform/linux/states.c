/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run states. Per thread two files of /proc/PID/task/TID are kept open and read again at offset 0:
 *  - schedstat: its third number counts how often the thread was given a CPU (kernel, Documentation/scheduler/
 *    sched-stats.rst). Its first, the run time, is brought up to date at the scheduler's tick and when the thread
 * leaves the CPU: no change proves nothing, but in the long run it is exact.
 *  - syscall: "running" while the thread is on a CPU or ready for one, else the call that it sleeps in
 *    (proc(5); kernel fs/proc/base.c, proc_pid_syscall).
 * Both stay bound to the thread: once it has ended they read as ESRCH, whoever has its number now.
 * A thread that is not running sleeps or is stopped; `stat` tells which, and is read only when the thread has been
 * switched in since it was found out last.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/linux/linux.h"

typedef enum thread_file { FILE_SCHEDSTAT, FILE_SYSCALL, FILE_STAT } thread_file;

static const char *const file_names[] = {"schedstat", "syscall", "stat"};

static int *fd_of(linux_slot *slot, thread_file which)
{
    return which == FILE_SCHEDSTAT ? &slot->schedstat : which == FILE_SYSCALL ? &slot->syscall : &slot->stat;
}

static void slot_close(linux_slot *slot)
{
    for (int i = FILE_SCHEDSTAT; i <= FILE_STAT; i++) {
        int *fd = fd_of(slot, (thread_file)i);
        if (*fd >= 0) {
            close(*fd);
        }
        *fd = -1;
    }
}

void au__linux_slots_forget(linux_proc *lp)
{
    for (uint32_t i = 0; i < lp->n_slots; i++) {
        slot_close(&lp->slots[i]);
    }
    free(lp->slots);
    lp->slots = NULL;
    lp->n_slots = lp->cap_slots = lp->free_slot = 0;
}

static linux_slot *slot_find(linux_proc *lp, au_tid tid, uint64_t handle)
{
    uint32_t index = (uint32_t)handle - 1;
    if (handle == 0 || index >= lp->n_slots) {
        return NULL;
    }
    linux_slot *slot = &lp->slots[index];
    return slot->tid == tid && slot->serial == (uint32_t)(handle >> 32) ? slot : NULL;
}

static linux_slot *slot_create(linux_proc *lp, au_tid tid, uint64_t *handle)
{
    uint32_t index;
    if (lp->free_slot) {
        index = lp->free_slot - 1;
        lp->free_slot = lp->slots[index].next_free;
    } else {
        if (lp->n_slots == lp->cap_slots) {
            uint32_t cap = lp->cap_slots ? lp->cap_slots * 2 : 64;
            linux_slot *grown = realloc(lp->slots, cap * sizeof *grown);
            if (!grown) {
                return NULL;
            }
            lp->slots = grown;
            lp->cap_slots = cap;
        }
        index = lp->n_slots++;
    }
    linux_slot *slot = &lp->slots[index];
    memset(slot, 0, sizeof *slot);
    slot->tid = tid;
    slot->serial = ++lp->slot_serial;
    slot->schedstat = slot->syscall = slot->stat = -1;
    *handle = (uint64_t)slot->serial << 32 | (index + 1);
    return slot;
}

static void slot_release(linux_proc *lp, linux_slot *slot)
{
    slot_close(slot);
    slot->tid = 0;
    slot->next_free = lp->free_slot;
    lp->free_slot = (uint32_t)(slot - lp->slots) + 1;
}

/** Reads a file of a thread, kept open when there is room for that. Bytes (>0), 0 for "has ended", -1 and errno. */
static ssize_t read_thread_file(linux_proc *lp, linux_slot *slot, thread_file which, char *buf, size_t cap)
{
    int *kept = fd_of(slot, which);
    int fd = *kept;
    if (fd < 0) {
        /* Bound to a moment: if another file is already kept, the thread behind the number may have changed. */
        char name[64];
        snprintf(name, sizeof name, "task/%" PRId64 "/%s", slot->tid, file_names[which]);
        fd = au__linux_open(lp, name);
        if (fd < 0) {
            return errno == ENOENT || errno == ESRCH ? 0 : -1;
        }
    }
    ssize_t got;
    do {
        got = pread(fd, buf, cap - 1, 0);
    } while (got < 0 && errno == EINTR);
    int saved = errno;
    if (fd != *kept) {
        if (fd < lp->fd_limit && which != FILE_STAT) {
            *kept = fd;
        } else {
            au__linux_close(lp, fd);
        }
    }
    if (got < 0) {
        errno = saved;
        return saved == ESRCH || saved == ENOENT ? 0 : -1;
    }
    buf[got] = 0;
    return got;
}

/** The numbers of `schedstat`: CPU time, time waited, times switched in. */
static int parse_schedstat(const char *text, uint64_t out[3])
{
    for (int i = 0; i < 3; i++) {
        int digits = 0;
        out[i] = 0;
        for (; *text >= '0' && *text <= '9'; text++, digits++) {
            out[i] = out[i] * 10 + (uint64_t)(*text - '0');
        }
        if (!digits || (i < 2 && *text++ != ' ')) {
            return -1;
        }
    }
    return 0;
}

static au_run_state run_of_letter(char letter)
{
    switch (letter) {
    case 'R':
        return AU_RUN_RUNNING;
    case 'T':
    case 't':
        return AU_RUN_STOPPED;
    case 'Z':
    case 'X':
    case 'x':
        return AU_RUN_GONE;
    default:
        return AU_RUN_ASLEEP;
    }
}

static au_outcome outcome_of(ssize_t got)
{
    if (got == 0) {
        return AU_GONE;
    }
    return errno == EACCES || errno == EPERM ? AU_DENIED : AU_UNSUPPORTED;
}

static au_outcome run_by_stat(linux_proc *lp, linux_slot *slot, au_run_state *run)
{
    char text[1024];
    ssize_t got = read_thread_file(lp, slot, FILE_STAT, text, sizeof text);
    if (got <= 0) {
        return outcome_of(got);
    }
    const char *letter = au__linux_stat_state(text, (size_t)got);
    if (!letter) {
        return AU_UNSUPPORTED;
    }
    *run = run_of_letter(*letter);
    return *run == AU_RUN_GONE ? AU_GONE : AU_OK;
}

static void counts(au_thread_state *state, const uint64_t numbers[3], int counted)
{
    if (state->wanted & AU_STATE_SWITCHES) {
        state->switches = numbers[2];
    }
    if (state->wanted & AU_STATE_CPU) {
        state->cpu_ns = counted ? numbers[0] : 0;
    }
    if (state->wanted & AU_STATE_WAITED) {
        state->waited_ns = counted ? numbers[1] : 0;
    }
}

static au_outcome one_state(linux_proc *lp, linux_slot *slot, au_thread_state *state)
{
    char text[256];
    uint64_t numbers[3] = {0};
    ssize_t got = read_thread_file(lp, slot, FILE_SCHEDSTAT, text, sizeof text);
    int counted = got > 0 && parse_schedstat(text, numbers) == 0;
    uint64_t switches = numbers[2];
    if (got == 0) {
        return AU_GONE;
    }
    if (!counted && (state->wanted & AU_STATE_SWITCHES)) {
        return got < 0 ? outcome_of(got) : AU_UNSUPPORTED;
    }
    if (!(state->wanted & AU_STATE_RUN)) {
        counts(state, numbers, counted);
        return AU_OK;
    }
    au_run_state run = AU_RUN_UNKNOWN;
    au_outcome outcome = AU_OK;
    got = read_thread_file(lp, slot, FILE_SYSCALL, text, sizeof text);
    if (got == 0) {
        return AU_GONE;
    }
    if (got > 0 && strncmp(text, "running", 7) == 0) {
        run = AU_RUN_RUNNING;
        slot->asleep = 0;
    } else if (got > 0 && counted && slot->asleep && slot->switches == switches) {
        run = (au_run_state)slot->asleep;
    } else { /* newly asleep, or a kernel without that file */
        outcome = run_by_stat(lp, slot, &run);
        slot->asleep = run == AU_RUN_ASLEEP || run == AU_RUN_STOPPED ? (int)run : 0;
        slot->switches = switches;
    }
    if (outcome == AU_OK) {
        state->run = run;
        counts(state, numbers, counted);
    }
    return outcome;
}

size_t au__linux_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    linux_proc *lp = linux_of(proc);
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        au_thread_state *state = &states[i];
        linux_slot *slot = slot_find(lp, state->tid, state->slot);
        if (state->wanted == 0) {
            if (slot) {
                slot_release(lp, slot);
            }
            state->slot = 0;
            state->outcome = AU_OK;
            ok++;
            continue;
        }
        if (lp->gone) {
            state->run = AU_RUN_GONE;
            state->outcome = AU_GONE;
            continue;
        }
        if (!slot) {
            slot = slot_create(lp, state->tid, &state->slot);
        }
        au_outcome outcome = slot ? one_state(lp, slot, state) : AU_UNSUPPORTED;
        if (outcome == AU_GONE) {
            /* What is open is of a thread that has ended; should the number live again, it is another one. */
            state->run = AU_RUN_GONE;
            slot_release(lp, slot);
            state->slot = 0;
        }
        state->outcome = (uint32_t)outcome;
        ok += outcome == AU_OK;
    }
    return ok;
}
