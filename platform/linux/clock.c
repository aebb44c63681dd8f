/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. sleep_until waits in epoll_pwait2(2) (Linux 5.11), which takes nanoseconds, and is told by the way when a
 * process that is open ends: then a read by number needs no question of its own whether the number is still that
 * process' (au__linux_maybe_gone). Older kernels wait on a futex with an absolute deadline (futex(2),
 * FUTEX_WAIT_BITSET). One is as cheap as the other. `wake` cannot be lost between the look at the word and the sleep:
 * the event stays, and the kernel looks at the futex again.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/linux/linux.h"

#if !defined(SYS_futex) && defined(SYS_futex_time64)
#define SYS_futex SYS_futex_time64
#endif

uint64_t au__linux_now(au_sys *sys)
{
    (void)sys;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A system call's number; it is the same for all architectures (kernel, scripts/syscall.tbl), but older headers lack
 * it. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

enum { EVENT_WAKE, EVENT_END };

static int watch(linux_sys *ls, int fd, uint32_t what, uint32_t mode)
{
    struct epoll_event event = {.events = EPOLLIN | mode, .data.u32 = what};
    return epoll_ctl(ls->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void make_epoll(linux_sys *ls)
{
    static const struct timespec no_time;
    struct epoll_event none;
    ls->owner = (int32_t)getpid();
    ls->epoll = epoll_create1(EPOLL_CLOEXEC);
    ls->event = ls->epoll < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ls->event >= 0 && watch(ls, ls->event, EVENT_WAKE, EPOLLET) == 0 &&
        syscall(SYS_epoll_pwait2, ls->epoll, &none, 1, &no_time, NULL, 0) >= 0) {
        return;
    }
    if (ls->event >= 0) {
        close(ls->event);
    }
    if (ls->epoll >= 0) {
        close(ls->epoll);
    }
    ls->epoll = ls->event = -1;
}

void au__linux_watch(linux_proc *lp)
{
    linux_sys *ls = lp->sys;
    if (ls->epoll == 0 || ls->owner != (int32_t)getpid()) {
        make_epoll(ls);
    }
    lp->ends = ls->ends;
    lp->watched = ls->epoll >= 0 && lp->pidfd >= 0 && watch(ls, lp->pidfd, EVENT_END, EPOLLONESHOT) == 0;
}

/* Until `deadline_ns`, or until something comes; the time after it. */
static uint64_t wait_for_events(linux_sys *ls, uint64_t now, uint64_t deadline_ns)
{
    struct epoll_event events[8];
    uint64_t left = deadline_ns - now;
    const struct timespec pause = {.tv_sec = (time_t)(left / 1000000000u > INT32_MAX ? INT32_MAX : left / 1000000000u),
                                   .tv_nsec = (long)(left % 1000000000u)};
    int n = (int)syscall(SYS_epoll_pwait2, ls->epoll, events, 8, &pause, NULL, 0);
    now = au__linux_now(&ls->sys);
    if (n == 0) {
        ls->woke_ns = now;
    }
    for (int i = 0; i < n; i++) {
        ls->ends += events[i].data.u32 == EVENT_END; /* a wake is an edge, and its word is looked at by the caller */
    }
    return now;
}

static void wait_for_futex(linux_sys *ls, uint64_t deadline_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u > INT32_MAX ? INT32_MAX : deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u)};
    syscall(SYS_futex, &ls->wake_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

uint64_t au__linux_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    linux_sys *ls = (linux_sys *)sys;
    uint64_t now = au__linux_now(sys);
    for (;;) {
        if (__atomic_exchange_n(&ls->wake_word, 0, __ATOMIC_ACQ_REL) != 0 || now >= deadline_ns) {
            return now;
        }
        /* Ended by the deadline, by wake, or by a signal handler of ours (EINTR), which is no reason to return. */
        if (ls->epoll > 0) {
            now = wait_for_events(ls, now, deadline_ns);
        } else {
            wait_for_futex(ls, deadline_ns);
            now = au__linux_now(sys);
        }
    }
}

void au__linux_wake(au_sys *sys)
{
    static const uint64_t one = 1;
    linux_sys *ls = (linux_sys *)sys;
    int saved = errno; /* this runs in signal handlers */
    __atomic_store_n(&ls->wake_word, 1, __ATOMIC_RELEASE);
    if (ls->epoll > 0 && write(ls->event, &one, sizeof one) == (ssize_t)sizeof one) {
        errno = saved;
        return;
    }
    syscall(SYS_futex, &ls->wake_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
