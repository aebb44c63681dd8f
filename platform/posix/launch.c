/* SPDX-License-Identifier: Apache-2.0 */
/* Launching a program, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/posix/job.h"
#include "platform/posix/posix.h"

struct au_child {
    pid_t pid;
    int waited; /* its pid is no longer ours to signal */
    int stopped;
    au_child_status status;
    au__job job;
};

/* What the handlers tell: one byte a change, so that a wait can sleep on it. */
static int change_pipe[2] = {-1, -1};
static atomic_int continued;

static void on_change(int number)
{
    int saved = errno;
    if (number == SIGCONT) {
        atomic_store(&continued, 1);
    }
    ssize_t unused = write(change_pipe[1], "", 1); /* full is as good as one more */
    (void)unused;
    errno = saved;
}

/** A pipe whose ends are no standard descriptors and are closed by exec. */
static int make_pipe(int ends[2])
{
    int raw[2];
    if (pipe(raw) != 0) {
        return -1;
    }
    ends[0] = fcntl(raw[0], F_DUPFD_CLOEXEC, 3);
    ends[1] = fcntl(raw[1], F_DUPFD_CLOEXEC, 3);
    int saved = errno;
    close(raw[0]);
    close(raw[1]);
    if (ends[0] < 0 || ends[1] < 0) {
        for (int i = 0; i < 2; i++) {
            if (ends[i] >= 0) {
                close(ends[i]);
            }
            ends[i] = -1;
        }
        errno = saved;
        return -1;
    }
    return 0;
}

static int watch_children(void)
{
    if (change_pipe[0] < 0) {
        if (make_pipe(change_pipe) != 0) {
            return -1;
        }
        fcntl(change_pipe[0], F_SETFL, O_NONBLOCK);
        fcntl(change_pipe[1], F_SETFL, O_NONBLOCK);
    }
    struct sigaction action = {.sa_handler = on_change, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
    sigaction(SIGCONT, &action, NULL);
    return 0;
}

/** Between fork and exec: nothing here but what signal-safety(7) allows, and execvp, which asks for memory nowhere. */
static _Noreturn void become(const au_launch *what, const au__job *j, int foreground, int report)
{
    setpgid(0, 0);
    if (foreground) {
        au__job_give(j, getpid());
    }
    if (what->discard_stdout) { /* never closed: the first file that the program opens would take its place */
        int null = open("/dev/null", O_WRONLY);
        if (null >= 0 && null != 1) {
            dup2(null, 1);
            close(null);
        }
    }
    au__posix_restore_origin();
    execvp(what->argv[0], (char *const *)(uintptr_t)what->argv);
    int failed = errno;
    ssize_t unused = write(report, &failed, sizeof failed);
    (void)unused;
    _exit(127);
}

static au_error *cannot_launch(const char *name, int os_code)
{
    char text[256];
    au_error *error =
        au_error_cause(au_error_create(AU_ERR_OS, os_code, "Cannot launch %s", name), "%s",
                       os_code == ENOENT && !strchr(name, '/') ? "there is no such command along PATH"
                                                               : au_os_error_text(os_code, text, sizeof text));
    struct stat info;
    if (os_code == EACCES && stat(name, &info) == 0 && S_ISDIR(info.st_mode)) {
        return au_error_hint(error, "it is a folder: give the path of a program, or run it as: python3 %s", name);
    }
    switch (os_code) {
    case ENOENT:
        return au_error_hint(error, "check the name, or give the path of the program");
    case EACCES:
        return au_error_hint(error, "make it executable (chmod +x), or run it as: python3 %s", name);
    case ENOEXEC:
        return au_error_hint(error, "begin it with a line such as #!/usr/bin/env python3");
    default:
        return error;
    }
}

au_error *au_child_launch(const au_launch *what, au_child **out)
{
    const char *name = what->argv[0];
    au__posix_remember_origin();
    au_child *child = calloc(1, sizeof *child);
    if (!child) {
        return au_error_memory();
    }
    au__job_init(&child->job);
    int report[2] = {-1, -1};
    if (watch_children() != 0 || make_pipe(report) != 0) {
        int saved = errno;
        au__job_deinit(&child->job);
        free(child);
        return cannot_launch(name, saved);
    }
    int foreground = au__job_we_are_foreground(&child->job);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* no handler of ours runs in the child */
    au__posix_before_fork();
    pid_t pid = fork();
    if (pid == 0) {
        become(what, &child->job, foreground, report[1]);
    }
    int failed = pid < 0 ? errno : 0;
    au__posix_after_fork();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (pid > 0) {
        setpgid(pid, pid); /* both do it: whoever comes first */
        child->pid = child->job.group = pid;
        if (foreground) {
            au__job_give(&child->job, pid);
        }
        ssize_t got;
        do {
            got = read(report[0], &failed, sizeof failed);
        } while (got < 0 && errno == EINTR);
        if (got != (ssize_t)sizeof failed) {
            failed = 0; /* closed by a successful exec */
        } else {
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
            }
            au__job_take_back(&child->job, 0);
        }
    }
    close(report[0]);
    if (failed) {
        au__job_deinit(&child->job);
        free(child);
        return cannot_launch(name, failed);
    }
    *out = child;
    return NULL;
}

au_pid au_child_pid(const au_child *child)
{
    return child->pid;
}

static int is_keyboard_stop(int signal_number)
{
    return signal_number == SIGTSTP || signal_number == SIGTTIN || signal_number == SIGTTOU;
}

/** The program was stopped: by the terminal, or by somebody who will continue it. */
static void on_stop(au_child *child, int signal_number)
{
    au__job *j = &child->job;
    if (j->tty < 0 || !is_keyboard_stop(signal_number)) {
        child->stopped = 1;
        return;
    }
    if (signal_number == SIGTSTP || !au__job_we_are_foreground(j)) {
        au__job_take_back(j, 1);
        au__job_stop_ourselves(signal_number);
    }
    /* Continued, or it only wanted the terminal that we have meanwhile been given. */
    atomic_store(&continued, 0);
    au__job_hand_over(j);
    kill(-j->group, SIGCONT);
}

au_child_status au_child_poll(au_child *child)
{
    if (child->waited) {
        return child->status;
    }
    if (atomic_exchange(&continued, 0)) {
        au__job_hand_over(&child->job); /* the shell's `fg` */
    }
    int raw;
    pid_t got;
    do {
        got = waitpid(child->pid, &raw, WNOHANG | WUNTRACED | WCONTINUED);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        return (au_child_status){AU_CHILD_RUNNING, 0};
    }
    if (got < 0) { /* somebody else has waited for it: there is nothing more to learn */
        child->waited = 1;
        child->status = (au_child_status){AU_CHILD_EXITED, 0};
    } else if (WIFSTOPPED(raw)) {
        on_stop(child, WSTOPSIG(raw));
        return (au_child_status){AU_CHILD_STOPPED, WSTOPSIG(raw)};
    } else if (WIFCONTINUED(raw)) {
        child->stopped = 0;
        return (au_child_status){AU_CHILD_RUNNING, 0};
    } else {
        child->waited = 1;
        child->status = WIFSIGNALED(raw) ? (au_child_status){AU_CHILD_SIGNALLED, WTERMSIG(raw)}
                                         : (au_child_status){AU_CHILD_EXITED, WEXITSTATUS(raw)};
    }
    /* A program that ends well may mean the settings that it leaves (stty); one that failed does not. */
    au__job_take_back(&child->job, child->status.state == AU_CHILD_SIGNALLED || child->status.code != 0);
    return child->status;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

au_child_status au_child_wait(au_child *child, int timeout_ms)
{
    int64_t end = now_ms() + timeout_ms;
    unsigned signals = au_signals_count();
    for (;;) {
        char unused[64];
        while (read(change_pipe[0], unused, sizeof unused) > 0) {
        }
        au_child_status status = au_child_poll(child);
        if (status.state == AU_CHILD_EXITED || status.state == AU_CHILD_SIGNALLED) {
            return status;
        }
        int64_t left = timeout_ms < 0 ? -1 : end - now_ms();
        if ((timeout_ms >= 0 && left <= 0) || au_signals_count() != signals) {
            return status; /* an ending signal of ours: the caller decides how much longer */
        }
        struct pollfd change = {.fd = change_pipe[0], .events = POLLIN};
        /* A second at most: a change whose signal another thread's handler has yet to write is not missed for long. */
        poll(&change, 1, left < 0 || left > 1000 ? 1000 : (int)left);
    }
}

void au_child_signal(au_child *child, au_stop how)
{
    if (child->waited) {
        return;
    }
    switch (how) {
    case AU_STOP_INTERRUPT:
        kill(-child->job.group, SIGINT);
        break;
    case AU_STOP_HANGUP:
        kill(-child->job.group, SIGHUP);
        break;
    case AU_STOP_TERMINATE:
        kill(child->pid, SIGTERM);
        break;
    }
    if (child->stopped) {
        kill(-child->job.group, SIGCONT); /* a stopped program takes no signal */
    }
}

void au_child_release(au_child *child)
{
    if (!child) {
        return;
    }
    au__job_take_back(&child->job, 0);
    au__job_deinit(&child->job);
    free(child);
}
