/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. sleep_until waits on a futex with an absolute deadline (futex(2), FUTEX_WAIT_BITSET: CLOCK_MONOTONIC): as cheap
 * as clock_nanosleep, and `wake` cannot be lost between the look at the word and the sleep, because the kernel looks
 * again. timerfd and ppoll were no cheaper where they were measured.
 */
#include <errno.h>
#include <linux/futex.h>
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

uint64_t au__linux_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    linux_sys *ls = (linux_sys *)sys;
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u > INT32_MAX ? INT32_MAX : deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u)};
    for (;;) {
        uint64_t now = au__linux_now(sys);
        if (__atomic_exchange_n(&ls->wake_word, 0, __ATOMIC_ACQ_REL) != 0 || now >= deadline_ns) {
            return now;
        }
        /* Ended by the deadline, by wake, or by a signal handler of ours (EINTR), which is no reason to return. */
        syscall(SYS_futex, &ls->wake_word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, FUTEX_BITSET_MATCH_ANY);
    }
}

void au__linux_wake(au_sys *sys)
{
    linux_sys *ls = (linux_sys *)sys;
    int saved = errno; /* this runs in signal handlers */
    __atomic_store_n(&ls->wake_word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &ls->wake_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
