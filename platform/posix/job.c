/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/posix/job.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

void au__job_init(au__job *j)
{
    memset(j, 0, sizeof *j);
    j->ours = getpgrp();
    int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    j->tty = tty >= 0 ? fcntl(tty, F_DUPFD_CLOEXEC, 3) : -1; /* not in the place of a closed standard descriptor */
    if (tty >= 0) {
        close(tty);
    }
    j->before_known = j->tty >= 0 && tcgetattr(j->tty, &j->before) == 0;
}

void au__job_deinit(au__job *j)
{
    if (j->tty >= 0) {
        close(j->tty);
    }
    j->tty = -1;
}

int au__job_we_are_foreground(const au__job *j)
{
    return j->tty >= 0 && tcgetpgrp(j->tty) == j->ours;
}

void au__job_give(const au__job *j, pid_t group)
{
    /* From the background this would stop us with SIGTTOU, unless that is blocked (tcsetpgrp(3)). */
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    tcsetpgrp(j->tty, group);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void set_terminal(const au__job *j, const struct termios *settings)
{
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    tcsetattr(j->tty, TCSADRAIN, settings);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void au__job_hand_over(au__job *j)
{
    if (!au__job_we_are_foreground(j)) {
        return;
    }
    if (j->theirs_known) {
        set_terminal(j, &j->theirs);
        j->theirs_known = 0;
    }
    au__job_give(j, j->group);
}

void au__job_take_back(au__job *j, int restore)
{
    if (j->tty < 0 || tcgetpgrp(j->tty) != j->group) {
        return; /* somebody else has it by now; it is not ours to take */
    }
    j->theirs_known = tcgetattr(j->tty, &j->theirs) == 0;
    if (restore && j->before_known) {
        set_terminal(j, &j->before);
    }
    au__job_give(j, j->ours);
}

void au__job_stop_ourselves(int signal_number)
{
    /* The others of our group first, we ignoring it; then this thread by a signal to itself, which is taken before
     * pthread_kill returns: a signal to the process could be taken by another thread some time later. A group that
     * nobody could continue is not stopped by these signals at all (POSIX, "orphaned process group"). */
    struct sigaction before, ignore = {.sa_handler = SIG_IGN}, stop = {.sa_handler = SIG_DFL};
    sigset_t open, mask;
    sigaction(signal_number, &ignore, &before);
    kill(0, signal_number);
    if (before.sa_handler != SIG_IGN) {
        sigaction(signal_number, &stop, NULL);
        sigemptyset(&open);
        sigaddset(&open, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &open, &mask);
        pthread_kill(pthread_self(), signal_number);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
    }
    sigaction(signal_number, &before, NULL);
}
