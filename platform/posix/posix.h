/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of platform/: what the POSIX part shares between its files, and what it leaves to each system.
 */
#ifndef AU_PLATFORM_POSIX_POSIX_H
#define AU_PLATFORM_POSIX_POSIX_H

#include <signal.h>
#include <stdint.h>

#include "platform/platform.h"

/* ---- each system provides ------------------------------------------------------------------------------------ */

/** Makes the calling thread's timers as exact as the system lets us; may do nothing. */
void au__posix_raise_timer(void);

/** Called around fork by the forking thread: a child shall not inherit what au__posix_raise_timer did. */
void au__posix_before_fork(void);
void au__posix_after_fork(void);

/* ---- shared between the files of platform/posix --------------------------------------------------------------- */

/** What we were started with; remembered by the first call, and again by nobody. */
void au__posix_remember_origin(void);

/** In the child, between fork and exec: limits, signal mask and dispositions as we were started with.
 * Async-signal-safe. */
void au__posix_restore_origin(void);

/**
 * Signals that end a process unless it handles them (signal(7)) and that are sent to it by somebody or by a timer or
 * limit, but SIGINT, SIGTERM and SIGHUP. Not those of a fault, which shall leave a core. Ends with 0.
 */
extern const int au__posix_other_endings[];

/** The signals that we handle or ignore for ourselves. Ends with 0. */
extern const int au__posix_our_signals[];

#endif
