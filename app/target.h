/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What is sampled: a launched program or a process that was there before; how it is opened and, when it was launched,
 * how it is ended.
 */
#ifndef AU_APP_TARGET_H
#define AU_APP_TARGET_H

#include "app/messages.h"
#include "app/options.h"
#include "platform/platform.h"

typedef struct au_target {
    au_subject subject;
    au_sys *sys;
    au_child *child;        /**< NULL: attached */
    au_child_status status; /**< of the child, when it was last looked at */
    au_proc *proc;
    uint64_t launched_ns;
    uint64_t ended_ns; /**< when the child was first seen to have ended; 0: it runs */
} au_target;

/** A failure and the sign in front of it; `error` is NULL when all went well. The error's code is the exit status. */
typedef struct au_failure {
    au_error *error;
    au_sign sign;
} au_failure;

/** Launches the command or takes the PID of the options, and opens the process for reading. */
au_failure au_target_open(au_target *target, const au_options *options);

/**
 * Where programs cannot become others (AU_CAP_LAUNCHERS), what was launched or named may only stand for an interpreter:
 * the redirector of a virtual environment, a version chooser, an alias, or two of them in a row. If there is one
 * interpreter below it now, opens that one instead and returns it. NULL: there is none or more than one, and all stays
 * as it is. For au_elsewhere_fn.
 */
au_proc *au_target_follow(au_target *target, const au_options *options, const au_console *console);

/**
 * After au_engine_find has failed with `why`, and before it has ever worked: opens a launched program once more if it
 * still runs and only could not be read, as while it becomes another program. NULL: find again, in the new `proc`. Else
 * what is wrong, the caller's to clear.
 */
au_error *au_target_reopen(au_target *target, const au_options *options, au_error *why);

/** Why au_engine_find or au_engine_run did not work, in words for the user. Takes `why` over. */
au_failure au_target_explain(au_target *target, const au_options *options, au_error *why);

/** Looks after the child and its job control. Non-zero: it ended a while ago, and the engine should have noticed. */
int au_target_poll(au_target *target);

/** Gives a launched program a moment to end. True if it goes on. */
int au_target_settle(au_target *target);

/** True if the launched program is known to have died of the interrupt signal (Ctrl-C reaches it alone). */
int au_target_was_interrupted(const au_target *target);

/**
 * Ends a launched program: `how` first, after five seconds a request to terminate, and five seconds later we leave it
 * alone and say so. A second ending signal shortens each wait. Nothing happens to a process that was attached.
 */
void au_target_end(au_target *target, au_stop how, const au_console *console);

/** Closes the process and lets go of the child, which goes on if it has not ended. */
void au_target_close(au_target *target);

#endif
