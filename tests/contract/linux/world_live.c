/* SPDX-License-Identifier: Apache-2.0 */
/* A live process: a fork of the test, so that all addresses are known in both. It is driven by bytes through a pipe. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/platform.h"
#include "tests/contract/host.h"
#include "tests/contract/world.h"

typedef struct facts {
    au_addr data, guarded;
    au_tid spinner, sleeper, extra;
    uint64_t spinner_pthread, sleeper_pthread;
} facts;

typedef struct live {
    pid_t pid, reused;
    int command, answer;
} live;

static volatile int ready, stop_extra;
static int poke_pipe[2];

static void *spin(void *unused)
{
    (void)unused;
    *(volatile au_tid *)&((facts *)unused)->spinner = syscall(SYS_gettid);
    __sync_fetch_and_add(&ready, 1);
    for (volatile unsigned long i = 0;; i++) {
    }
    return NULL;
}

static void *sleep_on(void *baton)
{
    prctl(PR_SET_NAME, "contract-nm");
    ((facts *)baton)->sleeper = syscall(SYS_gettid);
    __sync_fetch_and_add(&ready, 1);
    char unused;
    while (read(poke_pipe[0], &unused, 1) == 1) {
    }
    return NULL;
}

static void *wait_for_end(void *baton)
{
    ((facts *)baton)->extra = syscall(SYS_gettid);
    __sync_fetch_and_add(&ready, 1);
    while (!stop_extra) {
        usleep(500);
    }
    return NULL;
}

static void reply(int to)
{
    ssize_t unused = write(to, "", 1);
    (void)unused;
}

static _Noreturn void tracee(int commands, int answers)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static facts f;
    pthread_t threads[3];
    ready = 0;
    if (pipe(poke_pipe) != 0 || pthread_create(&threads[0], NULL, spin, &f) ||
        pthread_create(&threads[1], NULL, sleep_on, &f) || pthread_create(&threads[2], NULL, wait_for_end, &f)) {
        _exit(1);
    }
    while (ready != 3) {
        usleep(100);
    }
    f.spinner_pthread = (uint64_t)threads[0];
    f.sleeper_pthread = (uint64_t)threads[1];
    /* A reservation without rights, in its middle the data, then the hole. */
    uint8_t *room = mmap(NULL, 64 * WORLD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *data = room + 16 * WORLD_PAGE;
    mprotect(data, WORLD_DATA, PROT_READ | PROT_WRITE);
    for (size_t i = 0; i < WORLD_DATA; i++) {
        data[i] = world_byte(i);
    }
    munmap(data + WORLD_DATA, WORLD_PAGE);
    f.data = (uintptr_t)data;
    f.guarded = (uintptr_t)room;
    if (write(answers, &f, sizeof f) != sizeof f) {
        _exit(1);
    }
    char command;
    while (read(commands, &command, 1) == 1) {
        switch (command) {
        case 'p': {
            ssize_t unused = write(poke_pipe[1], "", 1);
            (void)unused;
            usleep(5000);
            break;
        }
        case 't':
            stop_extra = 1;
            pthread_join(threads[2], NULL);
            break;
        case 'x':
            execlp("sleep", "sleep", "60", (char *)NULL);
            _exit(1);
        default:
            _exit(0);
        }
        reply(answers);
    }
    _exit(0);
}

static void command(world *w, char what)
{
    live *l = w->own;
    char unused;
    if (write(l->command, &what, 1) == 1 && read(l->answer, &unused, 1) < 0) {
        return;
    }
}

static void live_poke(world *w)
{
    command(w, 'p');
}

static void live_end_thread(world *w)
{
    command(w, 't');
}

static void live_stop(world *w)
{
    kill((pid_t)w->pid, SIGSTOP);
    waitpid((pid_t)w->pid, NULL, WUNTRACED);
    usleep(2000); /* the last thread stops a little after the first has reported */
}

static void live_go_on(world *w)
{
    kill((pid_t)w->pid, SIGCONT);
}

static void live_exec(world *w)
{
    command(w, 'x'); /* the answer is the end of the pipe, closed by exec */
    usleep(20000);
}

static void reap(live *l)
{
    if (l->pid) {
        kill(l->pid, SIGKILL);
        waitpid(l->pid, NULL, 0);
        l->pid = 0;
    }
}

static void live_end(world *w)
{
    reap(w->own);
}

/** clone3 with set_tid (Linux 5.5, for the privileged): a new process of the old number, a fork of ours. */
static int live_reuse(world *w)
{
    live *l = w->own;
    pid_t wanted = (pid_t)w->pid;
    reap(l);
#ifdef SYS_clone3
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size,
            cgroup;
    } args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted, .set_tid_size = 1};
    for (int tries = 0; tries < 50; tries++) {
        long pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid == 0) {
            for (;;) {
                pause();
            }
        }
        if (pid > 0) {
            l->reused = (pid_t)pid;
            return 0;
        }
        if (errno != EEXIST && errno != EAGAIN) {
            break;
        }
        usleep(1000);
    }
#endif
    return -1;
}

static size_t live_handles(world *w)
{
    (void)w;
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) {
        n++;
    }
    if (dir) {
        closedir(dir);
    }
    return n;
}

static void live_destroy(world *w)
{
    live *l = w->own;
    reap(l);
    if (l->reused) {
        kill(l->reused, SIGKILL);
        waitpid(l->reused, NULL, 0);
    }
    close(l->command);
    close(l->answer);
    free(l);
}

int world_live(world *w)
{
    int commands[2], answers[2];
    live *l = calloc(1, sizeof *l);
    if (!l || pipe2(commands, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) {
        return -1;
    }
    l->pid = fork();
    if (l->pid == 0) {
        close(commands[1]);
        close(answers[0]);
        tracee(commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    l->command = commands[1];
    l->answer = answers[0];
    facts f;
    if (l->pid < 0 || read(l->answer, &f, sizeof f) != sizeof f) {
        return -1;
    }
    usleep(2000); /* its main thread goes to sleep on the pipe */
    *w = (world){.sys = au_platform_sys(),
                 .pid = l->pid,
                 .parent = getpid(),
                 .is_real = 1,
                 .data = f.data,
                 .hole = f.data + WORLD_DATA,
                 .guarded = f.guarded,
                 .main = l->pid,
                 .spinner = f.spinner,
                 .sleeper = f.sleeper,
                 .extra = f.extra,
                 .spinner_pthread = f.spinner_pthread,
                 .sleeper_pthread = f.sleeper_pthread,
                 .sleeper_name = "contract-nm",
                 .symbol = "contract_marker",
                 .symbol_at = host_marker(),
                 .magic = host_magic,
                 .poke = live_poke,
                 .end_thread = live_end_thread,
                 .stop = live_stop,
                 .go_on = live_go_on,
                 .exec = live_exec,
                 .end = live_end,
                 .reuse = live_reuse,
                 .handles = live_handles,
                 .destroy = live_destroy,
                 .own = l};
    return 0;
}
