/* SPDX-License-Identifier: Apache-2.0 */
/* What we were started with, what we change for ourselves, and how a child gets the former back. */
#include <limits.h>
#include <sys/resource.h>

#include "platform/posix/posix.h"

/* Not every system has them all. */
#if defined(SIGPWR)
#define AU_SIGPWR SIGPWR,
#else
#define AU_SIGPWR
#endif
#if defined(SIGPOLL)
#define AU_SIGPOLL SIGPOLL,
#else
#define AU_SIGPOLL
#endif
#if defined(SIGSTKFLT)
#define AU_SIGSTKFLT SIGSTKFLT,
#else
#define AU_SIGSTKFLT
#endif
#define OTHER_ENDINGS                                                                                                  \
    SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, AU_SIGPWR AU_SIGPOLL AU_SIGSTKFLT 0

const int au__posix_other_endings[] = {OTHER_ENDINGS};
const int au__posix_our_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGXFSZ,
                                     SIGTTOU, SIGCHLD, SIGCONT, SIGTSTP, OTHER_ENDINGS};
enum { OUR_SIGNALS = sizeof au__posix_our_signals / sizeof au__posix_our_signals[0] - 1 };

static struct {
    int remembered;
    sigset_t mask;
    struct sigaction actions[OUR_SIGNALS];
    struct rlimit files;
    int files_known;
} origin;

void au__posix_remember_origin(void)
{
    if (origin.remembered) {
        return;
    }
    origin.remembered = 1;
    sigprocmask(SIG_SETMASK, NULL, &origin.mask);
    for (int i = 0; i < OUR_SIGNALS; i++) {
        sigaction(au__posix_our_signals[i], NULL, &origin.actions[i]);
    }
    origin.files_known = getrlimit(RLIMIT_NOFILE, &origin.files) == 0;
}

void au__posix_restore_origin(void)
{
    for (int i = 0; i < OUR_SIGNALS; i++) {
        /* A handler cannot outlive exec anyway; ignored stays ignored (nohup). */
        struct sigaction action = origin.actions[i];
        if (action.sa_handler != SIG_IGN) {
            action.sa_handler = SIG_DFL;
            action.sa_flags = 0;
        }
        sigaction(au__posix_our_signals[i], &action, NULL);
    }
    if (origin.files_known) {
        setrlimit(RLIMIT_NOFILE, &origin.files);
    }
    sigprocmask(SIG_SETMASK, &origin.mask, NULL);
}

void au_limits_raise(void)
{
    au__posix_remember_origin();
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
#if defined(__APPLE__)
        if (files.rlim_cur > OPEN_MAX) {
            files.rlim_cur = OPEN_MAX; /* setrlimit(2) of macOS refuses more */
        }
#endif
        setrlimit(RLIMIT_NOFILE, &files);
    }
    au__posix_raise_timer();
}

/* They are bytes, and so are the names of files. */
int au_arguments_init(int *argc, const char *const **argv)
{
    (void)argc, (void)argv;
    return 0;
}
