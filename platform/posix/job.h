/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: who has the terminal. We and the launched program are two process groups of one session
 * (setpgid(2), tcsetpgrp(3)); the program's is the foreground one while it runs, so that the keyboard's signals reach
 * it alone; ours is what the shell knows as its job.
 */
#ifndef AU_PLATFORM_POSIX_JOB_H
#define AU_PLATFORM_POSIX_JOB_H

#include <sys/types.h>
#include <termios.h>

typedef struct au__job {
    int tty; /* the controlling terminal; -1 for none */
    pid_t group, ours;
    struct termios before, theirs;
    int before_known, theirs_known;
} au__job;

/** Opens the terminal and remembers its settings. */
void au__job_init(au__job *j);
void au__job_deinit(au__job *j);

/** Are we, or is the program, the foreground group? */
int au__job_we_are_foreground(const au__job *j);

/** Gives the terminal to a group; also from the background. */
void au__job_give(const au__job *j, pid_t group);

/** If we are in the foreground: the program gets the terminal, with the settings that it had when it was stopped. */
void au__job_hand_over(au__job *j);

/** The terminal comes back to us if the program had it; `restore` brings our settings back too. */
void au__job_take_back(au__job *j, int restore);

/** Stops our own group as the keyboard's Ctrl-Z would; returns when the shell lets us go on. */
void au__job_stop_ourselves(int signal_number);

#endif
