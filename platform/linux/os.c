/* SPDX-License-Identifier: Apache-2.0 */
/* The system of this port, and what platform/posix leaves to each port (platform/posix/posix.h): one file, so that a
 * linker that takes the one takes the other. */
#include <sys/prctl.h>
#include <unistd.h>

#include "platform/linux/linux.h"
#include "platform/posix/posix.h"

static unsigned long au__original_slack_ns;
static int au__raised;

void au__posix_raise_timer(void)
{
    int slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    if (!au__raised && slack > 1 && prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) == 0) {
        au__original_slack_ns = (unsigned long)slack;
        au__raised = 1;
    }
}

/*
 * A child takes the slack of the thread that forks as its value and as its default (prctl(2), PR_SET_TIMERSLACK), so
 * the thread itself must have the original one at that moment.
 */
void au__posix_before_fork(void)
{
    if (au__raised) {
        prctl(PR_SET_TIMERSLACK, au__original_slack_ns, 0, 0, 0);
    }
}

void au__posix_after_fork(void)
{
    if (au__raised) {
        prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    }
}

uint64_t au_memory_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

au_sys *au_platform_sys(void)
{
    static linux_sys instance = {.sys = {&au__linux_ops}};
    return &instance.sys;
}
