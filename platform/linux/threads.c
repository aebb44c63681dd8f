/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: the list, names, and other numberings to ours. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/linux/linux.h"

static linux_known *known_find(linux_known *table, size_t cap, au_tid tid)
{
    size_t at = (size_t)((uint64_t)tid * 0x9e3779b97f4a7c15u >> 32) & (cap - 1);
    while (table[at].tid && table[at].tid != tid) {
        at = (at + 1) & (cap - 1);
    }
    return &table[at];
}

/** Start of a thread; its directory's inode number is made anew for a reused id, so the text is read once a thread. */
static uint64_t start_of(linux_proc *lp, au_tid tid)
{
    char name[64], text[1024];
    linux_stat stat;
    snprintf(name, sizeof name, "task/%" PRId64 "/stat", tid);
    ssize_t len = au__linux_slurp(lp, name, text, sizeof text);
    return len > 0 && au__linux_parse_stat(text, (size_t)len, &stat) == 0 ? au__linux_ticks_ns(stat.start_ticks) : 0;
}

typedef struct listing {
    linux_known *items;
    size_t n, cap;
} listing;

static int list_tasks(linux_proc *lp, listing *list)
{
    int fd = au__linux_open(lp, "task");
    if (fd < 0) {
        return errno;
    }
    int failed = 0;
    _Alignas(linux_dirent) char buf[32768];
    for (;;) {
        long got = syscall(SYS_getdents64, fd, buf, sizeof buf);
        if (got <= 0) {
            failed = got < 0 ? errno : 0;
            break;
        }
        for (long at = 0; at < got;) {
            linux_dirent *entry = (linux_dirent *)(void *)(buf + at);
            at += entry->length;
            if (entry->name[0] < '1' || entry->name[0] > '9') {
                continue;
            }
            if (list->n == list->cap) {
                size_t cap = list->cap ? list->cap * 2 : 64;
                linux_known *grown = realloc(list->items, cap * sizeof *grown);
                if (!grown) {
                    failed = ENOMEM;
                    break;
                }
                list->items = grown;
                list->cap = cap;
            }
            list->items[list->n++] = (linux_known){.tid = strtoll(entry->name, NULL, 10), .inode = entry->inode};
        }
        if (failed) {
            break;
        }
    }
    au__linux_close(lp, fd);
    return failed;
}

au_error *au__linux_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    linux_proc *lp = linux_of(proc);
    if (au__linux_gone(lp)) {
        return au_error_gone();
    }
    listing list = {0};
    int failed = list_tasks(lp, &list);
    if (!failed && list.n == 0) {
        failed = ESRCH;
    }
    size_t table_cap = 64;
    while (table_cap < list.n * 2) {
        table_cap *= 2;
    }
    linux_known *table = failed ? NULL : calloc(table_cap, sizeof *table);
    if (failed || !table) {
        free(list.items);
        return failed && failed != ENOMEM ? au__linux_error(lp, failed, "list of threads") : au_error_memory();
    }
    size_t count = 0;
    for (size_t i = 0; i < list.n; i++) {
        linux_known *item = &list.items[i];
        const linux_known *before = lp->known_cap ? known_find(lp->known, lp->known_cap, item->tid) : NULL;
        if (before && before->tid && before->inode == item->inode) {
            item->start_time_ns = before->start_time_ns;
        } else {
            item->start_time_ns = start_of(lp, item->tid);
        }
        if (item->start_time_ns == 0) {
            continue; /* ended since the listing */
        }
        *known_find(table, table_cap, item->tid) = *item;
        if (count < cap) {
            out[count] = (au_thread){item->tid, item->start_time_ns};
        }
        count++;
    }
    free(list.items);
    free(lp->known);
    lp->known = table;
    lp->known_cap = table_cap;
    lp->known_count = count;
    *n = count;
    return NULL;
}

au_outcome au__linux_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    linux_proc *lp = linux_of(proc);
    char name[64], text[64];
    snprintf(name, sizeof name, "task/%" PRId64 "/comm", tid);
    ssize_t len = lp->gone ? 0 : au__linux_slurp(lp, name, text, sizeof text);
    if (len <= 0) {
        return len < 0 && (errno == EACCES || errno == EPERM) ? AU_DENIED : AU_GONE;
    }
    if (text[len - 1] == '\n') {
        len--;
    }
    if (cap) {
        size_t take = (size_t)len < cap - 1 ? (size_t)len : cap - 1;
        memcpy(buf, text, take);
        buf[take] = 0;
    }
    return AU_OK;
}

/* ---- ids ----------------------------------------------------------------------------------------------------- */

/** The id of our thread `tid` as the tracee's own namespace numbers it: the last number of NSpid. */
static int64_t namespaced_id(linux_proc *lp, au_tid tid)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "task/%" PRId64 "/status", tid);
    if (au__linux_slurp(lp, name, text, sizeof text) <= 0) {
        return -1;
    }
    int64_t id = au__linux_status_number(text, "NSpid", 1);
    return id > 0 ? id : tid; /* kernels before 4.1 have no such line */
}

static int task_exists(linux_proc *lp, au_tid tid)
{
    char name[64];
    snprintf(name, sizeof name, "task/%" PRId64, tid);
    return faccessat(lp->dir, name, F_OK, 0) == 0;
}

static void learn_namespace(linux_proc *lp)
{
    char text[4096];
    if (!lp->ids_known && au__linux_slurp(lp, "status", text, sizeof text) > 0) {
        lp->ids_known = 1;
        /* One number: it lives in the namespace that this /proc shows. */
        const char *line = strstr(text, "\nNSpid:");
        int numbers = 0;
        for (const char *at = line ? line + 7 : ""; *at && *at != '\n'; at++) {
            numbers += *at >= '0' && *at <= '9' && !(at[-1] >= '0' && at[-1] <= '9');
        }
        lp->foreign_ids = numbers > 1;
    }
}

static au_outcome from_namespaced(linux_proc *lp, int64_t id, au_tid *out)
{
    if (id <= 0 || id > INT32_MAX) {
        return AU_NOT_KNOWN;
    }
    learn_namespace(lp);
    if (!lp->foreign_ids) {
        if (!task_exists(lp, id)) {
            return au__linux_gone(lp) ? AU_GONE : AU_NOT_KNOWN;
        }
        *out = id;
        return AU_OK;
    }
    for (size_t i = 0; i < lp->n_namespaced; i++) {
        if (lp->namespaced[2 * i] == id && namespaced_id(lp, lp->namespaced[2 * i + 1]) == id) {
            *out = lp->namespaced[2 * i + 1];
            return AU_OK;
        }
    }
    /* Not remembered, or another thread has the number by now: look at all of them. */
    listing list = {0};
    int failed = list_tasks(lp, &list);
    lp->n_namespaced = 0;
    au_outcome outcome = failed == ENOENT || failed == ESRCH ? AU_GONE : AU_NOT_KNOWN;
    if (!failed && list.n > lp->cap_namespaced) {
        au_tid *grown = realloc(lp->namespaced, list.n * 2 * sizeof *grown);
        if (grown) {
            lp->namespaced = grown;
            lp->cap_namespaced = list.n;
        }
    }
    for (size_t i = 0; !failed && i < list.n; i++) {
        int64_t theirs = namespaced_id(lp, list.items[i].tid);
        if (theirs > 0 && lp->n_namespaced < lp->cap_namespaced) {
            lp->namespaced[2 * lp->n_namespaced] = theirs;
            lp->namespaced[2 * lp->n_namespaced + 1] = list.items[i].tid;
            lp->n_namespaced++;
        }
        if (theirs == id) {
            *out = list.items[i].tid;
            outcome = AU_OK;
        }
    }
    free(list.items);
    return outcome;
}

enum { PTHREAD_WINDOW = 2048 };

/* Where `tid` is in struct pthread: glibc x86_64 2.36 and 2.43 (nptl/descr.h), musl 1.2 x86_64 (pthread_impl.h).
 * Guesses, believed when what is there is a thread of the process. */
static const uint16_t pthread_guesses[] = {0x2d0, 0x30};

static int32_t word_in(const uint8_t *window, size_t offset)
{
    int32_t value;
    memcpy(&value, window + offset, sizeof value);
    return value;
}

/** Offsets whose word names a thread of the process, in every pthread seen so far; the lowest of what remains. */
static au_outcome search_pthread(linux_proc *lp, const uint8_t *window, size_t len, au_tid *out)
{
    uint64_t found[8] = {0};
    for (size_t offset = 0; offset + 4 <= len; offset += 4) {
        au_tid tid;
        if (word_in(window, offset) > 1 && from_namespaced(lp, word_in(window, offset), &tid) == AU_OK) {
            found[offset / 256] |= (uint64_t)1 << (offset / 4 % 64);
        }
    }
    int candidates = 0;
    size_t lowest = 0;
    for (size_t offset = 0; offset + 4 <= len; offset += 4) {
        uint64_t bit = (uint64_t)1 << (offset / 4 % 64);
        if ((found[offset / 256] & bit) && (!lp->candidates_set || (lp->pthread_candidates[offset / 256] & bit))) {
            lowest = candidates++ ? lowest : offset;
        } else {
            found[offset / 256] &= ~bit;
        }
    }
    if (!candidates) {
        return AU_NOT_KNOWN;
    }
    memcpy(lp->pthread_candidates, found, sizeof found);
    lp->candidates_set = 1;
    if (candidates == 1) {
        lp->pthread_tid_offset = (int64_t)lowest;
    }
    return from_namespaced(lp, word_in(window, lowest), out);
}

static au_outcome from_pthread(linux_proc *lp, au_addr pthread, au_tid *out)
{
    int32_t tid;
    au_outcome outcome;
    if (lp->pthread_tid_offset >= 0) {
        outcome = au__linux_read(&lp->proc, pthread + (uint64_t)lp->pthread_tid_offset, &tid, sizeof tid);
        if (outcome == AU_OK) {
            outcome = from_namespaced(lp, tid, out);
        }
        return outcome == AU_FAULT ? AU_NOT_KNOWN : outcome;
    }
    for (size_t i = 0; i < sizeof pthread_guesses / sizeof pthread_guesses[0]; i++) {
        outcome = au__linux_read(&lp->proc, pthread + pthread_guesses[i], &tid, sizeof tid);
        if (outcome == AU_GONE || outcome == AU_DENIED) {
            return outcome;
        }
        if (outcome == AU_OK && tid > 1 && from_namespaced(lp, tid, out) == AU_OK) {
            lp->pthread_tid_offset = pthread_guesses[i];
            return AU_OK;
        }
    }
    uint8_t window[PTHREAD_WINDOW];
    size_t len = sizeof window;
    while (len >= 256 && au__linux_read(&lp->proc, pthread, window, len) != AU_OK) {
        len /= 2; /* it may lie at the end of its mapping */
    }
    return len >= 256 ? search_pthread(lp, window, len, out) : AU_NOT_KNOWN;
}

au_outcome au__linux_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    linux_proc *lp = linux_of(proc);
    if (au__linux_gone(lp)) {
        return AU_GONE;
    }
    if (kind == AU_ID_PTHREAD) {
        return from_pthread(lp, value, out);
    }
    return from_namespaced(lp, value > INT32_MAX ? -1 : (int64_t)value, out);
}
