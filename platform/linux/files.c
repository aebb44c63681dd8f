/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of proc(5): opening, reading, parsing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/linux/linux.h"

const char *au__linux_proc_root = "/proc";

int au__linux_open_at(linux_proc *lp, int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && lp->reserve >= 0) {
        close(lp->reserve);
        lp->reserve = -1;
        fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

int au__linux_open(linux_proc *lp, const char *name)
{
    return au__linux_open_at(lp, lp->dir, name);
}

void au__linux_close(linux_proc *lp, int fd)
{
    close(fd);
    if (lp->reserve < 0) {
        lp->reserve = fcntl(lp->dir, F_DUPFD_CLOEXEC, 0);
    }
}

static ssize_t read_text(int fd, char *buf, size_t cap)
{
    size_t len = 0;
    while (len < cap - 1) {
        ssize_t got = read(fd, buf + len, cap - 1 - len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    buf[len] = 0;
    return (ssize_t)len;
}

static ssize_t slurp_at(linux_proc *lp, int dir, const char *name, char *buf, size_t cap)
{
    int fd = au__linux_open_at(lp, dir, name);
    if (fd < 0) {
        return -1;
    }
    ssize_t len = read_text(fd, buf, cap);
    int saved = errno;
    au__linux_close(lp, fd);
    errno = saved;
    return len;
}

ssize_t au__linux_slurp(linux_proc *lp, const char *name, char *buf, size_t cap)
{
    return slurp_at(lp, lp->dir, name, buf, cap);
}

int au__linux_read_stat(linux_proc *lp, int dir, linux_stat *out)
{
    char text[2048];
    ssize_t len = slurp_at(lp, dir, "stat", text, sizeof text);
    return len > 0 ? au__linux_parse_stat(text, (size_t)len, out) : -1;
}

ssize_t au__linux_slurp_root(const char *name, char *buf, size_t cap)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", au__linux_proc_root, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t len = read_text(fd, buf, cap);
    int saved = errno;
    close(fd);
    errno = saved;
    return len;
}

const char *au__linux_stat_state(const char *text, size_t len)
{
    /* The command stands in brackets and may hold brackets, blanks and line feeds: the last one closes it. */
    const char *at = memrchr(text, ')', len);
    return at && at + 2 < text + len && at[1] == ' ' ? at + 2 : NULL;
}

int au__linux_parse_stat(const char *text, size_t len, linux_stat *out)
{
    memset(out, 0, sizeof *out);
    const char *at = au__linux_stat_state(text, len);
    if (!at) {
        return -1;
    }
    out->state = *at++;
    for (int field = 4; field <= 48; field++) {
        while (*at == ' ') {
            at++;
        }
        char *end;
        int negative = *at == '-';
        unsigned long long value = strtoull(negative ? at + 1 : at, &end, 10);
        if (end == at + negative) {
            return field > 22 ? 0 : -1;
        }
        at = end;
        switch (field) {
        case 4:
            out->parent = negative ? -(au_pid)value : (au_pid)value;
            break;
        case 22:
            out->start_ticks = value;
            break;
        case 26:
            out->start_code = value;
            break;
        case 27:
            out->end_code = value;
            break;
        case 28:
            out->start_stack = value;
            break;
        case 45:
            out->start_data = value;
            break;
        case 47:
            out->start_brk = value;
            break;
        case 48:
            out->arg_start = value;
            break;
        default:
            break;
        }
    }
    return 0;
}

uint64_t au__linux_ticks_ns(uint64_t ticks)
{
    long hz = sysconf(_SC_CLK_TCK);
    uint64_t per_second = hz > 0 ? (uint64_t)hz : 100;
    return ticks / per_second * 1000000000u + ticks % per_second * (1000000000u / per_second);
}

int64_t au__linux_status_number(const char *text, const char *name, int last)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') {
            line++;
        }
        if (strncmp(line, name, length) != 0 || line[length] != ':') {
            continue;
        }
        const char *at = line + length + 1;
        int64_t value = -1;
        for (;;) {
            while (*at == ' ' || *at == '\t') {
                at++;
            }
            if (*at < '0' || *at > '9') {
                return value;
            }
            char *end;
            value = (int64_t)strtoll(at, &end, 10);
            at = end;
            if (!last) {
                return value;
            }
        }
    }
    return -1;
}
