/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes whose first thread has ended while others run (pthread_exit(3) from main). The kernel keeps that thread as
 * a zombie until the last one ends, and takes its memory away at once (kernel/exit.c, exit_mm): /proc/PID/mem cannot be
 * opened, maps is empty, exe leads nowhere, process_vm_readv of the pid is ESRCH. The memory is still there, under the
 * directory and the number of any thread that runs: /proc/PID/task/TID has the same files (proc(5)), but for map_files.
 *
 * A thread's number can be given away while the process lives, so it is used only together with a pidfd of that very
 * thread (pidfd_open(2), PIDFD_THREAD, Linux 6.9), looked at after each read. Before 6.9 reads go through `mem`, which
 * is bound to the address space whoever opened it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/linux/linux.h"

/* pidfd_open(2): the value of O_EXCL; headers before 6.9 lack the name. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

enum { TRIES = 8 }; /* threads that end while they are chosen */

static int has_memory(linux_proc *lp, int dir)
{
    linux_stat stat;
    return au__linux_read_stat(lp, dir, &stat) == 0 && stat.start_code != 0 && stat.state != 'Z' && stat.state != 'X';
}

static int open_task(linux_proc *lp, const char *tid)
{
    char name[64];
    snprintf(name, sizeof name, "task/%s", tid);
    return openat(lp->dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int task_has_memory(linux_proc *lp, const char *tid)
{
    int dir = open_task(lp, tid);
    int has = dir >= 0 && has_memory(lp, dir);
    if (dir >= 0) {
        close(dir);
    }
    return has;
}

au_tid au__linux_live_thread(linux_proc *lp)
{
    int fd = au__linux_open(lp, "task");
    if (fd < 0) {
        return 0;
    }
    au_tid found = 0;
    _Alignas(linux_dirent) char buf[4096]; /* no memory is asked for: this is called from hot members */
    long got;
    while (!found && (got = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0) {
        for (long at = 0; at < got && !found;) {
            const linux_dirent *entry = (const linux_dirent *)(const void *)(buf + at);
            at += entry->length;
            if (entry->name[0] >= '1' && entry->name[0] <= '9' && task_has_memory(lp, entry->name)) {
                found = strtoll(entry->name, NULL, 10);
            }
        }
    }
    au__linux_close(lp, fd);
    return found;
}

static void let_go(linux_proc *lp)
{
    if (lp->body >= 0) {
        close(lp->body);
    }
    if (lp->reader_pidfd >= 0) {
        close(lp->reader_pidfd);
    }
    lp->body = lp->reader_pidfd = -1;
    lp->reader = lp->proc.pid;
}

int au__linux_choose(linux_proc *lp)
{
    if (has_memory(lp, lp->dir)) { /* also after an exec by another thread, which then has the first one's number */
        let_go(lp);
        return 0;
    }
    for (int i = 0; i < TRIES; i++) {
        au_tid tid = au__linux_live_thread(lp);
        if (tid == 0) {
            break;
        }
        char name[32];
        snprintf(name, sizeof name, "%" PRId64, tid);
        int body = open_task(lp, name);
        int pidfd = -1;
#ifdef SYS_pidfd_open
        pidfd = (int)syscall(SYS_pidfd_open, (pid_t)tid, PIDFD_THREAD);
#endif
        /* The pidfd was opened after the directory: if the latter's thread lives now, both are the same one. */
        if (body >= 0 && has_memory(lp, body)) {
            let_go(lp);
            lp->body = body;
            lp->reader_pidfd = pidfd;
            lp->reader = pidfd >= 0 ? tid : -1;
            return 0;
        }
        if (body >= 0) {
            close(body);
        }
        if (pidfd >= 0) {
            close(pidfd);
        }
    }
    let_go(lp); /* it ends, or one thread is in the midst of an exec and will be the first one */
    return -1;
}

int au__linux_body(linux_proc *lp)
{
    if (!has_memory(lp, lp->body >= 0 ? lp->body : lp->dir)) {
        (void)au__linux_choose(lp);
    }
    return lp->body >= 0 ? lp->body : lp->dir;
}

int au__linux_reader_ended(linux_proc *lp)
{
    if (lp->reader_pidfd < 0) {
        return 0;
    }
    struct pollfd look = {.fd = lp->reader_pidfd, .events = POLLIN};
    return poll(&look, 1, 0) == 1 && (look.revents & (POLLIN | POLLHUP)) != 0;
}
