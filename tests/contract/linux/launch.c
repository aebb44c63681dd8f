/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching, job control, signals, limits. Each test runs in a process of its own that plays the profiler, since these
 * things belong to a whole process. Those with a terminal have three of them: the test, which types and reads at the
 * master side; a shell, which owns the session and does what a shell does for a job; and the profiler, which launches a
 * program with au_child_launch.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "platform/platform.h"
#include "tests/contract/linux/suites.h"

/* ---- without a terminal ---------------------------------------------------------------------------------------- */

/** Runs `fn` in a fork, in a session without terminal, with its standard output caught; returns the exit status. */
static int in_fork(int (*fn)(void), char *out, size_t cap)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        _exit(fn());
    }
    close(ends[1]);
    size_t len = 0;
    ssize_t got;
    while (len < cap - 1 && (got = read(ends[0], out + len, cap - 1 - len)) > 0) {
        len += (size_t)got;
    }
    out[len] = 0;
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static au_child *launch(const char *const *argv, int discard)
{
    au_child *child = NULL;
    au_error *error = au_child_launch(&(au_launch){argv, discard}, &child);
    if (error) {
        printf("%s\n", error->message);
        fflush(stdout);
        _exit(99);
    }
    return child;
}

static int run_shell(const char *script, int discard)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    au_child *child = launch(argv, discard);
    au_child_status status = au_child_wait(child, 10000);
    au_child_release(child);
    return status.state == AU_CHILD_EXITED ? status.code : status.state == AU_CHILD_SIGNALLED ? 200 + status.code : 90;
}

static int ends_with_7(void)
{
    return run_shell("echo hello; exit 7", 0);
}

static int ends_by_signal(void)
{
    return run_shell("kill -TERM $$", 0);
}

static int says_nothing(void)
{
    return run_shell("echo unwanted; echo unwanted >/dev/stdout", 1);
}

static const char show_descriptors[] = "cd /proc/$$/fd; for n in 0 1 2; do [ -e $n ] && echo $n; done; true";

/** What the caller closed stays closed for the program, and none of our files comes in its place. */
static int lacks_descriptors(void)
{
    close(0);
    close(2);
    au_standard_descriptors_init();
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    char unused;
    if (file <= 2 || read(0, &unused, 1) != -1 || write(2, "x", 1) != -1 || au_write_all(2, "x", 1) == 0) {
        return 80;
    }
    return run_shell(show_descriptors, 0);
}

/** Samples to a standard output that is not there are an error; the program's own is thrown away all the same. */
static int lacks_output(void)
{
    int shown = dup(1);
    close(1);
    au_standard_descriptors_init();
    if (open("/proc/self/status", O_RDONLY | O_CLOEXEC) <= 2 || au_write_all(1, "x", 1) == 0) {
        return 80;
    }
    char script[200];
    snprintf(script, sizeof script, "x=$(readlink /proc/$$/fd/1); echo $x >&%d; cat /proc/self/status", shown);
    return run_shell(script, 1);
}

START_TEST(exit_codes)
{
    char out[4096];
    ck_assert_int_eq(in_fork(ends_with_7, out, sizeof out), 7);
    ck_assert_str_eq(out, "hello\n");
    ck_assert_int_eq(in_fork(ends_by_signal, out, sizeof out), 200 + SIGTERM);
    ck_assert_int_eq(in_fork(says_nothing, out, sizeof out), 0);
    ck_assert_str_eq(out, "");
    ck_assert_int_eq(in_fork(lacks_descriptors, out, sizeof out), 0);
    ck_assert_str_eq(out, "1\n");
    ck_assert_int_eq(in_fork(lacks_output, out, sizeof out), 0);
    ck_assert_str_eq(out, "/dev/null\n");
}
END_TEST

static const char *what_to_launch;

static int launches_that(void)
{
    const char *const argv[] = {what_to_launch, NULL};
    au_child *child = NULL;
    au_error *error = au_child_launch(&(au_launch){argv, 0}, &child);
    if (!error) {
        return 1;
    }
    printf("%s\n", error->message);
    fflush(stdout);
    int right = error->code == AU_ERR_OS && child == NULL && waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
    au_error_clear(error);
    return right ? 0 : 2;
}

START_TEST(cannot_launch)
{
    char out[4096], path[] = "/tmp/au-launch-XXXXXX";
    what_to_launch = "no-such-command-here";
    ck_assert_int_eq(in_fork(launches_that, out, sizeof out), 0);
    ck_assert_ptr_nonnull(strstr(out, "Cannot launch no-such-command-here"));
    what_to_launch = "/nowhere/at/all";
    ck_assert_int_eq(in_fork(launches_that, out, sizeof out), 0);
    ck_assert_ptr_nonnull(strstr(out, "Cannot launch /nowhere/at/all"));
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    what_to_launch = path; /* not executable */
    ck_assert_int_eq(in_fork(launches_that, out, sizeof out), 0);
    ck_assert_ptr_nonnull(strstr(out, "Cannot launch /tmp/au-launch-"));
    unlink(path);
}
END_TEST

/** The program gets limits, signals and timer slack as we had them, though we have changed ours. */
static int changes_itself(void)
{
    struct rlimit files = {100, 2000};
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_TIMERSLACK, 70000UL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGHUP, &ignore, NULL); /* as nohup does */
    signal(SIGINT, SIG_DFL);          /* a shell may have started us in the background */
    signal(SIGQUIT, SIG_DFL);
    au_limits_raise();
    au_signals_init();
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur != 2000 || prctl(PR_GET_TIMERSLACK) != 1) {
        return 50;
    }
    int code = run_shell("ulimit -n; cat /proc/$$/timerslack_ns; exec grep -E 'Sig(Blk|Ign)' /proc/self/status", 0);
    return prctl(PR_GET_TIMERSLACK) == 1 ? code : 51;
}

START_TEST(origin)
{
    char out[4096];
    ck_assert_int_eq(in_fork(changes_itself, out, sizeof out), 0);
    ck_assert_msg(strncmp(out, "100\n70000\n", 10) == 0, "limits of ours reach the program: %s", out);
    ck_assert_msg(strstr(out, "SigBlk:\t0000000000000000") && strstr(out, "SigIgn:\t0000000000000001"), /* SIGHUP */
                  "signals of ours reach the program: %s", out);
}
END_TEST

static long ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int is_waited_for(au_child *child)
{
    if (getpgid((pid_t)au_child_pid(child)) != (pid_t)au_child_pid(child)) {
        return 1;
    }
    long start = ms();
    if (au_child_wait(child, 150).state != AU_CHILD_RUNNING || ms() - start < 140 || ms() - start > 5000) {
        return 2;
    }
    if (au_child_poll(child).state != AU_CHILD_RUNNING) {
        return 3;
    }
    kill((pid_t)au_child_pid(child), SIGSTOP);
    usleep(50000);
    int first = (int)au_child_poll(child).state, second = (int)au_child_poll(child).state; /* told once */
    if (first != AU_CHILD_STOPPED || second != AU_CHILD_RUNNING) {
        return 4;
    }
    start = ms();
    au_child_signal(child, AU_STOP_TERMINATE); /* must reach it though it is stopped */
    au_child_status status = au_child_wait(child, -1);
    if (status.state != AU_CHILD_SIGNALLED || status.code != SIGTERM || ms() - start > 900) {
        return 5;
    }
    au_child_signal(child, AU_STOP_INTERRUPT); /* nobody any more */
    status = au_child_poll(child);
    return status.state == AU_CHILD_SIGNALLED && status.code == SIGTERM ? 0 : 6;
}

static int waits(void)
{
    const char *const argv[] = {"sleep", "30", NULL};
    au_child *child = launch(argv, 0);
    int failed = is_waited_for(child);
    if (failed) {
        kill((pid_t)au_child_pid(child), SIGKILL); /* stopped as it may be */
    }
    au_child_release(child);
    return failed;
}

START_TEST(waiting)
{
    char out[64];
    ck_assert_int_eq(in_fork(waits, out, sizeof out), 0);
}
END_TEST

static int is_signalled(void)
{
    au_signals_init();
    au_sys *sys = au_platform_sys();
    if (au_signals_ending() != AU_END_NONE || au_signals_count() != 0) {
        return 1;
    }
    int seen[2];
    if (pipe(seen) != 0) {
        return 4;
    }
    pid_t us = getpid(), killer = fork();
    if (killer == 0) {
        char unused;
        usleep(60000);
        kill(us, SIGTERM);
        if (read(seen[0], &unused, 1) == 1) { /* two that are pending are not taken in the order of their coming */
            usleep(60000);
            kill(us, SIGINT);
        }
        _exit(0);
    }
    uint64_t start = sys->ops->now(sys);
    uint64_t back = sys->ops->sleep_until(sys, start + 3000000000u);
    if (back - start > 2000000000u || au_signals_ending() != AU_END_TERMINATE) {
        return 2;
    }
    start = sys->ops->now(sys);
    if (write(seen[1], "", 1) != 1) {
        return 4;
    }
    back = sys->ops->sleep_until(sys, start + 3000000000u);
    if (back - start > 2000000000u || au_signals_ending() != AU_END_TERMINATE || au_signals_count() != 2) {
        return 3;
    }
    int ends[2];
    if (pipe(ends) != 0) {
        return 4;
    }
    close(ends[0]);
    if (write(ends[1], "x", 1) != -1 || errno != EPIPE || au_write_all(ends[1], "x", 1) != EPIPE) {
        return 5;
    }
    char path[] = "/tmp/au-limit-XXXXXX";
    int file = mkstemp(path);
    unlink(path);
    struct rlimit size = {10, 10};
    setrlimit(RLIMIT_FSIZE, &size);
    return au_write_all(file, "0123456789", 10) == 0 && au_write_all(file, "x", 1) == EFBIG ? 0 : 6;
}

START_TEST(signals)
{
    char out[64];
    ck_assert_int_eq(in_fork(is_signalled, out, sizeof out), 0);
}
END_TEST

/* ---- at a terminal ---------------------------------------------------------------------------------------------- */

typedef struct terminal {
    int master;
    int events, orders; /* from and to the shell */
    pid_t shell;
    char seen[8192];
    size_t len;
} terminal;

static void tell(int fd, char what, int value)
{
    int message[2] = {what, value};
    ssize_t unused = write(fd, message, sizeof message);
    (void)unused;
}

/** The profiler: launches, samples nothing, ends with the program. Exit: 10 + number of ending signals it got. */
static _Noreturn void profiler(const char *script)
{
    au_limits_raise();
    au_signals_init();
    const char *const argv[] = {"sh", "-c", script, NULL};
    au_child *child = launch(argv, 0);
    au_sys *sys = au_platform_sys();
    for (;;) {
        sys->ops->sleep_until(sys, sys->ops->now(sys) + 2000000u);
        au_child_status status = au_child_poll(child);
        if (status.state == AU_CHILD_EXITED || status.state == AU_CHILD_SIGNALLED) {
            break;
        }
        if (au_signals_ending() != AU_END_NONE) {
            au_child_signal(child, AU_STOP_INTERRUPT);
            au_child_wait(child, 3000);
            break;
        }
    }
    au_child_release(child);
    _exit(10 + (int)au_signals_count());
}

static _Noreturn void shell(const char *slave, const char *script, int events, int orders)
{
    setsid();
    int tty = open(slave, O_RDWR);
    ioctl(tty, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++) {
        dup2(tty, fd);
    }
    if (tty > 2) {
        close(tty);
    }
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        close(events);
        close(orders);
        profiler(script);
    }
    setpgid(job, job);
    tcsetpgrp(0, job);
    tell(events, 'J', job);
    int status;
    while (waitpid(job, &status, WUNTRACED) == job) {
        tcsetpgrp(0, getpgrp());
        if (!WIFSTOPPED(status)) {
            break;
        }
        tell(events, 'S', WSTOPSIG(status));
        char order;
        if (read(orders, &order, 1) != 1) {
            _exit(1);
        }
        if (order == 'f') {
            tcsetpgrp(0, job);
        }
        kill(-job, SIGCONT);
        tell(events, 'C', order);
    }
    struct termios settings;
    tcgetattr(0, &settings);
    tell(events, 'T', (settings.c_lflag & ECHO ? 1 : 0) | (settings.c_lflag & ICANON ? 2 : 0));
    tell(events, 'X', WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
    char order;
    ssize_t unused = read(orders, &order, 1);
    (void)unused;
    _exit(0);
}

static void begin(terminal *t, const char *script)
{
    memset(t, 0, sizeof *t);
    int events[2], orders[2];
    t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert(t->master >= 0 && grantpt(t->master) == 0 && unlockpt(t->master) == 0);
    ck_assert(pipe(events) == 0 && pipe(orders) == 0);
    char slave[128];
    ck_assert_int_eq(ptsname_r(t->master, slave, sizeof slave), 0);
    t->shell = fork();
    if (t->shell == 0) {
        close(events[0]);
        close(orders[1]);
        close(t->master);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        shell(slave, script, events[1], orders[0]);
    }
    close(events[1]);
    close(orders[0]);
    t->events = events[0];
    t->orders = orders[1];
}

/** Reads what the terminal shows until `text` has been seen `times` times. */
static void expect(terminal *t, const char *text, int times)
{
    long end = ms() + 10000;
    for (;;) {
        int found = 0;
        for (const char *at = t->seen; (at = strstr(at, text)); at += strlen(text)) {
            found++;
        }
        if (found >= times) {
            return;
        }
        struct pollfd look = {.fd = t->master, .events = POLLIN};
        ck_assert_msg(ms() < end && t->len < sizeof t->seen - 1, "waited for '%s', the terminal shows: %s", text,
                      t->seen);
        if (poll(&look, 1, 100) == 1) {
            ssize_t got = read(t->master, t->seen + t->len, sizeof t->seen - 1 - t->len);
            t->len += got > 0 ? (size_t)got : 0;
        }
    }
}

static int event(terminal *t, char what)
{
    struct pollfd look = {.fd = t->events, .events = POLLIN};
    int message[2] = {0, 0};
    ck_assert_msg(poll(&look, 1, 10000) == 1, "no event %c; the terminal shows: %s", what, t->seen);
    ck_assert_int_eq(read(t->events, message, sizeof message), sizeof message);
    ck_assert_msg(message[0] == what, "event %c (%d) instead of %c; the terminal shows: %s", message[0], message[1],
                  what, t->seen);
    return message[1];
}

static void type(terminal *t, const char *keys)
{
    ck_assert_int_eq(write(t->master, keys, strlen(keys)), (ssize_t)strlen(keys));
}

static void order(terminal *t, char what)
{
    ck_assert_int_eq(write(t->orders, &what, 1), 1);
}

static void finish(terminal *t)
{
    order(t, 'q');
    close(t->orders);
    close(t->events);
    close(t->master);
    waitpid(t->shell, NULL, 0);
}

#define READER "echo ready; while read l; do echo \"line:$l.\"; [ \"$l\" = end ] && exit 0; done; echo no-more"

START_TEST(input_works)
{
    terminal t;
    begin(&t, READER);
    event(&t, 'J');
    expect(&t, "ready", 1);
    type(&t, "hello\n");
    expect(&t, "line:hello.", 1);
    type(&t, "end\n");
    expect(&t, "line:end.", 1);
    ck_assert_int_eq(event(&t, 'T'), 3);
    ck_assert_int_eq(event(&t, 'X'), 10);
    finish(&t);
}
END_TEST

START_TEST(ctrl_z_and_back)
{
    terminal t;
    begin(&t, READER);
    pid_t job = event(&t, 'J');
    expect(&t, "ready", 1);
    for (int round = 1; round <= 3; round++) {
        type(&t, "\x1a");
        ck_assert_int_eq(event(&t, 'S'), SIGTSTP);
        int group = 0;
        ck_assert_int_eq(ioctl(t.master, TIOCGPGRP, &group), 0);
        ck_assert_int_eq(group, t.shell); /* the shell has its terminal back */
        order(&t, 'f');
        ck_assert_int_eq(event(&t, 'C'), 'f');
        type(&t, "again\n");
        expect(&t, "line:again.", round);
        ck_assert_int_eq(ioctl(t.master, TIOCGPGRP, &group), 0);
        ck_assert_int_ne(group, job); /* the program's own group has it, not the profiler's */
        ck_assert_int_ne(group, t.shell);
    }
    type(&t, "end\n");
    event(&t, 'T');
    ck_assert_int_eq(event(&t, 'X'), 10);
    finish(&t);
}
END_TEST

/** `bg`: the program goes on without the terminal, is stopped when it wants to read, and gets it with `fg`. */
START_TEST(background_and_back)
{
    terminal t;
    begin(&t, READER);
    event(&t, 'J');
    expect(&t, "ready", 1);
    type(&t, "\x1a");
    ck_assert_int_eq(event(&t, 'S'), SIGTSTP);
    order(&t, 'b');
    ck_assert_int_eq(event(&t, 'C'), 'b');
    ck_assert_int_eq(event(&t, 'S'), SIGTTIN); /* it reads, in the background: the job stops as a job does */
    order(&t, 'f');
    ck_assert_int_eq(event(&t, 'C'), 'f');
    type(&t, "end\n");
    expect(&t, "line:end.", 1);
    event(&t, 'T');
    ck_assert_int_eq(event(&t, 'X'), 10);
    finish(&t);
}
END_TEST

/** Ctrl-C reaches the program alone, and once. */
START_TEST(ctrl_c_alone)
{
    terminal t;
    begin(&t,
          "n=0; trap 'n=$((n+1)); echo \"int-$n.\"' INT; echo ready; while [ $n -lt 2 ]; do sleep 0.05; done; exit 0");
    event(&t, 'J');
    expect(&t, "ready", 1);
    type(&t, "\x03");
    expect(&t, "int-1.", 1);
    usleep(200000);
    ck_assert_ptr_null(strstr(t.seen, "int-2."));
    type(&t, "\x03");
    expect(&t, "int-2.", 1);
    event(&t, 'T');
    ck_assert_int_eq(event(&t, 'X'), 10); /* no signal came to the profiler */
    finish(&t);
}
END_TEST

START_TEST(kill_the_profiler)
{
    terminal t;
    begin(&t, "trap 'echo told.; exit 0' INT; echo ready; while :; do sleep 0.05; done");
    pid_t job = event(&t, 'J');
    expect(&t, "ready", 1);
    kill(job, SIGINT);
    expect(&t, "told.", 1);
    event(&t, 'T');
    ck_assert_int_eq(event(&t, 'X'), 11);
    finish(&t);
}
END_TEST

START_TEST(terminal_sane_after_crash)
{
    static const char *const crashes[] = {"stty raw -echo; echo ready; kill -SEGV $$",
                                          "stty raw -echo; echo ready; exit 1"};
    for (int i = 0; i < 2; i++) {
        terminal t;
        begin(&t, crashes[i]);
        event(&t, 'J');
        expect(&t, "ready", 1);
        ck_assert_int_eq(event(&t, 'T'), 3); /* echo and whole lines, as before */
        ck_assert_int_eq(event(&t, 'X'), 10);
        finish(&t);
    }
    terminal t; /* one that ends well means it */
    begin(&t, "stty -echo; echo ready; exit 0");
    event(&t, 'J');
    expect(&t, "ready", 1);
    ck_assert_int_eq(event(&t, 'T'), 2);
    event(&t, 'X');
    finish(&t);
}
END_TEST

/** The profiler dies of a signal that cannot be caught: the shell gets the terminal, and the program lives. */
START_TEST(profiler_crashes)
{
    terminal t;
    begin(&t, "echo ready; sleep 0.5; echo alive. >&2; sleep 0.1");
    pid_t job = event(&t, 'J');
    expect(&t, "ready", 1);
    kill(job, SIGKILL);
    ck_assert_int_eq(event(&t, 'T'), 3);
    ck_assert_int_eq(event(&t, 'X'), 1000 + SIGKILL);
    expect(&t, "alive.", 1);
    int group = 0;
    ck_assert_int_eq(ioctl(t.master, TIOCGPGRP, &group), 0);
    ck_assert_int_eq(group, t.shell);
    finish(&t);
}
END_TEST

START_TEST(small_things)
{
    char text[128];
    ck_assert_ptr_eq(au_os_error_text(ENOENT, text, sizeof text), text);
    ck_assert_str_eq(text, "No such file or directory");
    ck_assert(au_os_error_text(99999, text, sizeof text)[0] != 0);
    ck_assert_uint_gt(au_memory_total(), (uint64_t)16 << 20);
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(au_is_terminal(ends[0]), 0);
    ck_assert_int_eq(au_terminal_width(ends[0]), 80);
    ck_assert_int_eq(au_write_all(ends[1], "abc", 3), 0);
    ck_assert_int_eq(read(ends[0], text, sizeof text), 3);
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    struct winsize size = {.ws_row = 10, .ws_col = 123};
    ck_assert(master >= 0 && ioctl(master, TIOCSWINSZ, &size) == 0);
    ck_assert_int_eq(au_is_terminal(master), 1);
    ck_assert_int_eq(au_terminal_width(master), 123);
    close(master);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

TCase *tcase_launch(void)
{
    TCase *tcase = tcase_create("launch");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, exit_codes);
    tcase_add_test(tcase, cannot_launch);
    tcase_add_test(tcase, origin);
    tcase_add_test(tcase, waiting);
    tcase_add_test(tcase, signals);
    tcase_add_test(tcase, input_works);
    tcase_add_test(tcase, ctrl_z_and_back);
    tcase_add_test(tcase, background_and_back);
    tcase_add_test(tcase, ctrl_c_alone);
    tcase_add_test(tcase, kill_the_profiler);
    tcase_add_test(tcase, terminal_sane_after_crash);
    tcase_add_test(tcase, profiler_crashes);
    tcase_add_test(tcase, small_things);
    return tcase;
}
