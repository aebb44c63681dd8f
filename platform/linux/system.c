/* SPDX-License-Identifier: Apache-2.0 */
/* All processes, and what one of them uses. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "platform/linux/linux.h"

/* Another process's CPU clock is brought up to date at the scheduler's tick only; seen up to 179 ms old (6.18). */
#define CPU_GRANULARITY_NS 200000000u

au_error *au__linux_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    (void)sys;
    DIR *dir = opendir(au__linux_proc_root);
    if (!dir) {
        int saved = errno;
        return au_error_cause(au_error_create(AU_ERR_OS, saved, "Cannot list the processes in %s", au__linux_proc_root),
                              "%s", strerror(saved));
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') {
            continue;
        }
        char name[300], text[2048];
        snprintf(name, sizeof name, "%s/stat", entry->d_name);
        ssize_t len = au__linux_slurp_root(name, text, sizeof text);
        linux_stat stat;
        if (len <= 0 || au__linux_parse_stat(text, (size_t)len, &stat) != 0) {
            continue; /* ended meanwhile */
        }
        au_process process = {.pid = strtoll(entry->d_name, NULL, 10),
                              .parent = stat.parent,
                              .start_time_ns = au__linux_ticks_ns(stat.start_ticks)};
        if (fn(baton, &process)) {
            break;
        }
    }
    closedir(dir);
    return NULL;
}

au_outcome au__linux_usage(au_proc *proc, au_usage *out)
{
    linux_proc *lp = linux_of(proc);
    if (lp->gone) {
        return AU_GONE;
    }
    char text[128];
    ssize_t len = -1;
    for (int i = 0; i < 2; i++) {
        if (lp->statm < 0) {
            lp->statm = au__linux_open_at(lp, au__linux_body(lp), "statm");
        }
        len = lp->statm >= 0 ? pread(lp->statm, text, sizeof text - 1, 0) : -1;
        if (lp->statm < 0 || (len > 0 && strncmp(text, "0 ", 2) != 0)) {
            break;
        }
        close(lp->statm); /* no memory: the thread whose file it is has ended, another one may have it */
        lp->statm = -1;
    }
    /* The clock of a process is named by its pid (clock_getcpuclockid(3), Linux: ~pid << 3 | 2). */
    clockid_t clock = (clockid_t)(~(unsigned)proc->pid << 3 | 2);
    struct timespec cpu;
    if (len <= 0 || clock_gettime(clock, &cpu) != 0 || au__linux_gone(lp)) {
        return au__linux_gone(lp) || errno == ESRCH ? AU_GONE : AU_DENIED;
    }
    text[len] = 0;
    const char *resident = strchr(text, ' ');
    out->resident_bytes = resident ? strtoull(resident, NULL, 10) * lp->page_bytes : 0;
    out->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    out->cpu_granularity_ns = CPU_GRANULARITY_NS;
    return AU_OK;
}
