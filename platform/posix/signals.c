/* SPDX-License-Identifier: Apache-2.0 */
/* The signals that end our run. */
#include <errno.h>
#include <stdatomic.h>

#include "platform/posix/posix.h"

static atomic_int first_reason; /* au_ending */
static atomic_uint ending_signals;

static void on_ending(int number)
{
    int saved = errno;
    int none = AU_END_NONE;
    int reason = number == SIGINT ? AU_END_INTERRUPT : number == SIGHUP ? AU_END_HANGUP : AU_END_TERMINATE;
    atomic_compare_exchange_strong(&first_reason, &none, reason);
    atomic_fetch_add(&ending_signals, 1u);
    au_sys *sys = au_platform_sys();
    sys->ops->wake(sys);
    errno = saved;
}

void au_signals_init(void)
{
    au__posix_remember_origin();
    struct sigaction action = {.sa_handler = on_ending, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        struct sigaction before;
        /* Started with a hangup ignored (nohup): so be it. The other two are asked for and always obeyed. */
        if (ending[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN) {
            continue;
        }
        sigaction(ending[i], &action, NULL);
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
    return (au_ending)atomic_load(&first_reason);
}

unsigned au_signals_count(void)
{
    return atomic_load(&ending_signals);
}
