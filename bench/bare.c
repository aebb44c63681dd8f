/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor: a loop of the timer call that the sampler sleeps with (epoll_pwait2(2) on the target's pidfd and an
 * eventfd, see platform/linux/clock.c) and one process_vm_readv(2), and nothing else.
 *
 *     bare PID ADDRESS BYTES INTERVAL_US PASSES
 *
 * Prints passes done, failed reads, CPU microseconds of the loop and wall microseconds.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv */
#endif
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { EPOLL_PWAIT2 = 441 }; /* older headers lack SYS_epoll_pwait2 */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: bare PID ADDRESS BYTES INTERVAL_US PASSES\n");
        return 64;
    }
    const pid_t pid = (pid_t)strtol(argv[1], NULL, 10);
    const uintptr_t address = (uintptr_t)strtoull(argv[2], NULL, 0);
    const size_t bytes = strtoull(argv[3], NULL, 10);
    const uint64_t interval = strtoull(argv[4], NULL, 10) * 1000;
    const uint64_t passes = strtoull(argv[5], NULL, 10);
    const int fds[] = {(int)syscall(SYS_pidfd_open, pid, 0), eventfd(0, 0)};
    const int epoll = epoll_create1(0);
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event) != 0) {
            return 1;
        }
    }
    char *buffer = malloc(bytes);
    if (!buffer) {
        return 1;
    }
    const struct iovec here = {buffer, bytes};
    const struct iovec there = {(void *)address, bytes};
    uint64_t failed = 0;
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    const uint64_t began = now_ns();
    const uint64_t used = cpu_us();
    uint64_t deadline = began;
    for (uint64_t i = 0; i < passes; i++) {
        deadline += interval;
        uint64_t now = now_ns();
        if (deadline < now) {
            deadline = now; /* late: go on from here, no burst */
        }
        while (now < deadline) {
            struct epoll_event events[8];
            const struct timespec pause = {.tv_sec = (time_t)((deadline - now) / 1000000000u),
                                           .tv_nsec = (long)((deadline - now) % 1000000000u)};
            syscall(EPOLL_PWAIT2, epoll, events, 8, &pause, NULL, 0);
            now = now_ns();
        }
        failed += process_vm_readv(pid, &here, 1, &there, 1, 0) != (ssize_t)bytes;
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", passes, failed, cpu_us() - used,
           (now_ns() - began) / 1000);
    free(buffer);
    return 0;
}
