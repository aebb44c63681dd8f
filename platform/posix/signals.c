/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that end our run. */
#include <errno.h>
#include <stdatomic.h>

#include "platform/posix/posix.h"

static atomic_int first; /* the number of the signal */
static atomic_uint ending_signals;

static void on_ending(int number)
{
    int saved = errno;
    int none = 0;
    atomic_compare_exchange_strong(&first, &none, number);
    atomic_fetch_add(&ending_signals, 1u);
    au_sys *sys = au_platform_sys();
    sys->ops->wake(sys);
    errno = saved;
}

static int is_ignored(int number)
{
    struct sigaction before;
    return sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
}

void au_signals_init(void)
{
    au__posix_remember_origin();
    struct sigaction action = {.sa_handler = on_ending, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        /* Started with a hangup ignored (nohup): so be it. The other two are asked for and always obeyed. */
        if (ending[i] != SIGHUP || !is_ignored(SIGHUP)) {
            sigaction(ending[i], &action, NULL);
        }
    }
    /* What would have been our death, with an unfinished file, is an end like any other. */
    for (const int *other = au__posix_other_endings; *other; other++) {
        if (!is_ignored(*other)) {
            sigaction(*other, &action, NULL);
        }
    }
    sigset_t open;
    sigemptyset(&open);
    for (int i = 0; i < 3; i++) {
        sigaddset(&open, ending[i]);
    }
    sigprocmask(SIG_UNBLOCK, &open, NULL);

    /* A reader that goes away, or a file at the limit of its size (setrlimit(2), RLIMIT_FSIZE: EFBIG), is an error of
     * the write, not our death. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

au_ending au_signals_ending(void)
{
    switch (atomic_load(&first)) {
    case 0:
        return AU_END_NONE;
    case SIGINT:
        return AU_END_INTERRUPT;
    case SIGTERM:
        return AU_END_TERMINATE;
    case SIGHUP:
        return AU_END_HANGUP;
    default:
        return AU_END_OTHER;
    }
}

int au_signals_number(void)
{
    return atomic_load(&first);
}

unsigned au_signals_count(void)
{
    return atomic_load(&ending_signals);
}
