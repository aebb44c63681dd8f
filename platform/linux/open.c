/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, identity, closing. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/linux/linux.h"
#include "platform/linux/maps.h"

/* Kept-open files leave this many descriptors to everybody else. */
enum { FD_HEADROOM = 64 };

/* How often `status` compares `stat`, which costs ten times what its other looks do, and more with many threads: seldom
 * where the end of the address space shows an exec anyway. */
#define IMAGE_LOOK_NS 10000000u
#define IMAGE_LOOK_SELDOM_NS 200000000u

static uint64_t image_stamp(const linux_stat *stat)
{
    const uint64_t parts[] = {stat->start_code, stat->end_code, stat->start_stack, stat->start_data, stat->start_brk};
    uint64_t mixed = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        mixed = (mixed ^ parts[i]) * 0x9e3779b97f4a7c15u;
        mixed ^= mixed >> 31;
    }
    return mixed;
}

/**
 * `stat` of who has the memory. -1: nobody, or in the moment of an exec, where the new memory is there but does not yet
 * say where its code begins (fs/binfmt_elf.c, load_elf_binary).
 */
static int read_image(linux_proc *lp, linux_stat *out)
{
    if (au__linux_read_stat(lp, lp->body >= 0 ? lp->body : lp->dir, out) == 0 && out->start_code != 0) {
        return 0;
    }
    if (au__linux_choose(lp) != 0) {
        return -1;
    }
    return au__linux_read_stat(lp, lp->body >= 0 ? lp->body : lp->dir, out) == 0 && out->start_code != 0 ? 0 : -1;
}

int au__linux_gone(linux_proc *lp)
{
    if (lp->gone) {
        return 1;
    }
    if (lp->pidfd >= 0) {
        struct pollfd look = {.fd = lp->pidfd, .events = POLLIN};
        lp->gone = poll(&look, 1, 0) == 1 && (look.revents & (POLLIN | POLLHUP)) != 0;
    } else { /* a kernel before 5.3 */
        linux_stat stat;
        lp->gone = au__linux_read_stat(lp, lp->dir, &stat) != 0 ||
                   ((stat.state == 'Z' || stat.state == 'X') && au__linux_live_thread(lp) == 0);
    }
    return lp->gone;
}

/*
 * Numbers are given in turn (kernel/pid.c, alloc_pid), so one comes back after all others only: hundreds of processes
 * have to be made meanwhile, be the limit as low as it can (pid_max, 301). That takes longer than this.
 */
#define SAME_NUMBER_NS 50000

int au__linux_maybe_gone(linux_proc *lp)
{
    const linux_sys *ls = lp->sys;
    uint64_t now = au__linux_now(&lp->sys->sys);
    if (lp->ends == ls->ends && !lp->gone &&
        (now - lp->alive_ns < SAME_NUMBER_NS || (lp->watched && now - ls->woke_ns < SAME_NUMBER_NS))) {
        return 0;
    }
    lp->ends = ls->ends;
    lp->alive_ns = now;
    return au__linux_gone(lp);
}

au_error *au__linux_error(linux_proc *lp, int os_code, const char *what)
{
    if (os_code == ENOENT || os_code == ESRCH || au__linux_gone(lp)) {
        return au_error_gone();
    }
    au_errcode code = os_code == EACCES || os_code == EPERM ? AU_ERR_PERMISSION : AU_ERR_OS;
    return au_error_cause(au_error_create(code, os_code, "Cannot read the %s of process %" PRId64, what, lp->proc.pid),
                          "%s", strerror(os_code));
}

int au__linux_bind_memory(linux_proc *lp)
{
    (void)au__linux_choose(lp);
    int body = lp->body >= 0 ? lp->body : lp->dir;
    int mem = au__linux_open_at(lp, body, "mem");
    if (mem < 0) {
        return -1;
    }
    int pagemap = au__linux_open_at(lp, body, "pagemap");
    if (pagemap >= 0) {
        /* The cheapest question about an address space: a length that is no multiple of 8 is EINVAL while it lives and
         * 0 when it has ended (fs/proc/task_mmu.c, pagemap_read). A kernel that answers otherwise is asked by `mem`. */
        char unused[4];
        if (pread(pagemap, unused, sizeof unused, 0) != -1 || errno != EINVAL) {
            close(pagemap);
            pagemap = -1;
        }
    }
    if (lp->mem >= 0) {
        close(lp->mem);
    }
    if (lp->pagemap >= 0) {
        close(lp->pagemap);
    }
    lp->mem = mem;
    lp->pagemap = pagemap;
    return 0;
}

/** Has the address space that we hold ended? */
static int memory_ended(linux_proc *lp)
{
    char unused[4];
    if (lp->pagemap >= 0) {
        return pread(lp->pagemap, unused, sizeof unused, 0) == 0;
    }
    return pread(lp->mem, unused, 1, 0) == 0;
}

au_outcome au__linux_rebind(linux_proc *lp)
{
    if (au__linux_gone(lp)) {
        return AU_GONE;
    }
    int bound = au__linux_bind_memory(lp);
    int saved = errno;
    linux_stat stat;
    if (bound != 0) {
        return saved == EACCES || saved == EPERM ? AU_DENIED : AU_GONE;
    }
    if (memory_ended(lp)) {
        return AU_GONE; /* on its way out: memory goes first, the pidfd says so a moment later */
    }
    lp->image_stamp = read_image(lp, &stat) == 0 ? image_stamp(&stat) : 0;
    lp->shares_memory = 0;
    lp->generation++;
    lp->pointer_bytes = 0; /* looked up by the next `status` */
    return AU_OK;
}

typedef struct class_search {
    linux_proc *lp;
    unsigned bytes;
    int readable, high;
} class_search;

static int look_at_class(void *baton, const au__maps_line *line)
{
    class_search *search = baton;
    if (!(line->perms & AU_PERM_READ) || (line->path && line->path[0] == '[')) {
        return 0;
    }
    uint8_t head[5];
    if (au__linux_read(&search->lp->proc, line->start, head, sizeof head) != AU_OK) {
        return 0;
    }
    search->readable = 1;
    search->high |= line->end > UINT32_MAX;
    if (line->offset == 0 && memcmp(head, "\177ELF", 4) == 0 && (head[4] == 1 || head[4] == 2)) {
        search->bytes = head[4] == 1 ? 4 : 8; /* EI_CLASS: all images of a process have the same */
        return 1;
    }
    return 0;
}

static long read_fd(void *baton, void *buf, size_t len)
{
    ssize_t got;
    do {
        got = read(*(int *)baton, buf, len);
    } while (got < 0 && errno == EINTR);
    return (long)got;
}

/** Reads its first ELF image: proves the right to read and tells the size of its pointers. 0 or an errno. */
static int find_class(linux_proc *lp)
{
    class_search search = {.lp = lp};
    int fd = au__linux_open_at(lp, au__linux_body(lp), "maps");
    if (fd < 0) {
        return errno;
    }
    size_t lines = 0;
    int result = au__maps_each(read_fd, &fd, look_at_class, &search, &lines);
    int saved = errno;
    au__linux_close(lp, fd);
    if (result < 0) {
        return result == -2 ? ENOMEM : saved;
    }
    if (lines == 0) {
        return ENOEXEC; /* no memory at all */
    }
    if (!search.readable) {
        return EPERM;
    }
    lp->pointer_bytes = search.bytes ? search.bytes : search.high ? 8 : 0;
    return 0;
}

static const char no_memory_text[] = "it has no memory of its own (a kernel thread, or just ending)";

static au_error *cannot_attach(au_errcode code, int os_code, au_pid pid, const char *cause)
{
    return au_error_cause(au_error_create(code, os_code, "Cannot attach to process %" PRId64, pid), "%s", cause);
}

static au_error *not_there(au_pid pid, int os_code)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "%" PRId64 "/status", pid);
    if (au__linux_slurp_root(name, text, sizeof text) > 0) {
        int64_t group = au__linux_status_number(text, "Tgid", 0);
        if (group > 0 && group != pid) {
            char cause[80];
            snprintf(cause, sizeof cause, "it is a thread of process %" PRId64, group);
            au_error *error = cannot_attach(AU_ERR_OS, os_code, pid, cause);
            return au_error_hint(error, "use -p %" PRId64, group);
        }
    }
    au_error *error = cannot_attach(AU_ERR_OS, os_code, pid, "there is no process of that number");
    return au_error_hint(error, "look for the right one with: ps -ef | grep python");
}

static au_error *denied(au_sys *sys, au_pid pid, int os_code)
{
    au_explanation why;
    au__linux_explain(sys, pid, &why);
    au_error *error =
        au_error_create(AU_ERR_PERMISSION, os_code, "Insufficient permissions to read process %" PRId64, pid);
    switch (why.right) {
    case AU_RIGHT_OTHER_USER:
        error = au_error_cause(error, "it belongs to another user (uid %" PRId64 ")", why.uid);
        break;
    case AU_RIGHT_PTRACE_SCOPE:
        error = au_error_cause(error, "kernel.yama.ptrace_scope is %d", why.scope);
        break;
    case AU_RIGHT_CAPABILITY:
        error = au_error_cause(error, "it holds capabilities that we lack, or lives in another user namespace");
        break;
    case AU_RIGHT_NOT_DUMPABLE:
        error = au_error_cause(error, "it is not dumpable (set-user-id, or it asked for that)");
        break;
    case AU_RIGHT_NAMESPACE:
        error = au_error_cause(error, "our CAP_SYS_PTRACE does not reach it: it lives in another user namespace");
        break;
    case AU_RIGHT_SECCOMP:
        error = au_error_cause(error, "this container may not trace (no CAP_SYS_PTRACE, or a seccomp filter)");
        break;
    default:
        error = au_error_cause(error, "%s", strerror(os_code));
        break;
    }
    if (why.may_trace) {
        return error; /* the right is there; what to do then depends on the system around, and is the app's to say */
    }
    if (why.in_container) {
        return au_error_hint(error, "start the container with: docker run --cap-add SYS_PTRACE ...");
    }
    if (why.right == AU_RIGHT_PTRACE_SCOPE && why.scope == 1) {
        return au_error_hint(error, "run with sudo, or allow it with: sudo sysctl kernel.yama.ptrace_scope=0, or: sudo "
                                    "setcap cap_sys_ptrace=ep \"$(command -v austin)\"");
    }
    if (why.right == AU_RIGHT_PTRACE_SCOPE && why.scope >= 3) {
        return au_error_hint(error,
                             "tracing is switched off until the next boot (kernel.yama.ptrace_scope=3): set it to "
                             "1 in /etc/sysctl.d and reboot, then run with sudo");
    }
    if (why.is_root) {
        return au_error_hint(error, "run where root has the capability CAP_SYS_PTRACE");
    }
    return au_error_hint(error, "run with sudo, or once: sudo setcap cap_sys_ptrace=ep \"$(command -v austin)\"");
}

static int fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT32_MAX) {
        return INT32_MAX;
    }
    return limit.rlim_cur > FD_HEADROOM ? (int)limit.rlim_cur - FD_HEADROOM : 0;
}

static linux_proc *create(au_sys *sys, au_pid pid)
{
    linux_proc *lp = calloc(1, sizeof *lp);
    if (!lp) {
        return NULL;
    }
    lp->proc.ops = &au__linux_ops;
    lp->proc.pid = pid;
    lp->sys = (linux_sys *)sys;
    lp->pidfd = lp->dir = lp->mem = lp->pagemap = lp->statm = lp->reserve = lp->body = lp->reader_pidfd = -1;
    lp->reader = pid;
    lp->pthread_tid_offset = -1;
    lp->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    lp->fd_limit = fd_limit();
    return lp;
}

/** Does it still share its parent's memory, as between vfork and exec? */
static int shares_memory(au_pid pid, au_pid parent)
{
#ifdef SYS_kcmp
    return parent > 0 && syscall(SYS_kcmp, (pid_t)pid, (pid_t)parent, KCMP_VM, 0, 0) == 0;
#else
    return 0;
#endif
}

static au_error *bind(au_sys *sys, linux_proc *lp)
{
    au_pid pid = lp->proc.pid;
#ifdef SYS_pidfd_open
    lp->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (lp->pidfd < 0 && errno != ENOSYS && errno != EPERM) {
        return errno == EMFILE || errno == ENFILE ? cannot_attach(AU_ERR_OS, errno, pid, strerror(errno))
                                                  : not_there(pid, errno);
    }
#endif
    char path[4096];
    snprintf(path, sizeof path, "%s/%" PRId64, au__linux_proc_root, pid);
    lp->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (lp->dir < 0) {
        return errno == ENOENT || errno == ESRCH ? not_there(pid, errno)
                                                 : cannot_attach(AU_ERR_OS, errno, pid, strerror(errno));
    }
    lp->reserve = fcntl(lp->dir, F_DUPFD_CLOEXEC, 0);

    /* The directory was opened after the pidfd: if the latter has not ended now, both are the same process. */
    linux_stat stat;
    errno = 0;
    if (au__linux_gone(lp) || au__linux_read_stat(lp, lp->dir, &stat) != 0) {
        return errno == EMFILE || errno == ENFILE ? cannot_attach(AU_ERR_OS, errno, pid, strerror(errno))
                                                  : cannot_attach(AU_ERR_OS, ESRCH, pid, "the process has ended");
    }
    if (lp->pidfd < 0) {
        char text[4096];
        if (au__linux_slurp(lp, "status", text, sizeof text) > 0 && au__linux_status_number(text, "Tgid", 0) != pid) {
            return not_there(pid, EINVAL);
        }
    }
    lp->start_ticks = stat.start_ticks;
    if (au__linux_bind_memory(lp) != 0) {
        int saved = errno;
        if (saved == EACCES || saved == EPERM) {
            return denied(sys, pid, saved);
        }
        if (saved != ESRCH && saved != ENOENT) {
            return cannot_attach(AU_ERR_OS, saved, pid, strerror(saved));
        }
        return au__linux_gone(lp) ? cannot_attach(AU_ERR_OS, saved, pid, "the process has ended")
                                  : cannot_attach(AU_ERR_BINARY, 0, pid, no_memory_text);
    }
    linux_stat image;
    lp->image_stamp = read_image(lp, &image) == 0 ? image_stamp(&image) : 0;
    lp->shares_memory = shares_memory(pid, stat.parent) ? 1 : 0;
    int failed = find_class(lp);
    if (failed) {
        if (au__linux_gone(lp) || failed == ESRCH || failed == ENOENT) {
            return cannot_attach(AU_ERR_OS, ESRCH, pid, "the process has ended");
        }
        if (failed == EACCES || failed == EPERM) {
            return denied(sys, pid, failed);
        }
        if (failed == ENOEXEC) {
            return cannot_attach(AU_ERR_BINARY, 0, pid, no_memory_text);
        }
        return failed == ENOMEM ? au_error_memory() : cannot_attach(AU_ERR_OS, failed, pid, strerror(failed));
    }
    if (lp->pointer_bytes > sizeof(void *)) {
        return cannot_attach(AU_ERR_BINARY, 0, pid, "it is a 64-bit process and this is a 32-bit profiler");
    }
    return NULL;
}

au_error *au__linux_proc_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    if (pid <= 0 || pid > INT32_MAX) {
        return not_there(pid, ESRCH);
    }
    if (want & AU_WANT_STOP) {
        return cannot_attach(AU_ERR_OS, ENOSYS, pid, "stopping is not available yet");
    }
    linux_proc *lp = create(sys, pid);
    if (!lp) {
        return au_error_memory();
    }
    au_error *error = bind(sys, lp);
    if (error) {
        au__linux_proc_close(&lp->proc);
        return error;
    }
    au__linux_watch(lp);
    *out = &lp->proc;
    return NULL;
}

void au__linux_proc_close(au_proc *proc)
{
    if (!proc) {
        return;
    }
    linux_proc *lp = linux_of(proc);
    au__linux_modules_forget(lp);
    au__linux_slots_forget(lp);
    free(lp->known);
    free(lp->namespaced);
    const int fds[] = {lp->pidfd, lp->dir, lp->mem, lp->pagemap, lp->statm, lp->reserve, lp->body, lp->reader_pidfd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    free(lp);
}

au_outcome au__linux_status(au_proc *proc, au_proc_status *out)
{
    linux_proc *lp = linux_of(proc);
    int exited = au__linux_gone(lp);
    if (exited) {
        /* Not yet waited for: still the owner of its pid. Afterwards the number may be anybody's. */
        if (faccessat(lp->dir, "stat", F_OK, 0) != 0) {
            return AU_GONE;
        }
    } else {
        if (memory_ended(lp)) {
            au_outcome outcome = au__linux_rebind(lp);
            if (outcome != AU_OK) {
                return outcome;
            }
        }
        uint64_t now = au__linux_now(NULL);
        if (lp->shares_memory || now - lp->looked_at_ns >= (lp->pagemap >= 0 ? IMAGE_LOOK_SELDOM_NS : IMAGE_LOOK_NS)) {
            lp->looked_at_ns = now;
            linux_stat stat;
            uint64_t stamp = read_image(lp, &stat) == 0 ? image_stamp(&stat) : 0;
            if (lp->image_stamp == 0) {
                lp->image_stamp = stamp; /* bound while the kernel was still filling it in */
            } else if (stamp && stamp != lp->image_stamp) {
                au_outcome outcome = au__linux_rebind(lp);
                if (outcome != AU_OK) {
                    return outcome;
                }
            }
        }
        if (lp->pointer_bytes == 0) {
            find_class(lp);
        }
    }
    out->state = exited ? AU_EXITED : AU_RUNNING;
    out->generation = lp->generation;
    out->pointer_bytes = lp->pointer_bytes;
    out->page_bytes = lp->page_bytes;
    out->start_time_ns = au__linux_ticks_ns(lp->start_ticks);
    out->list_stamp = (uint64_t)lp->generation + 1;
    return AU_OK;
}
