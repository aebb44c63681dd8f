/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the app needs of an operating system besides a tracee: the port itself, launching a program, the terminal,
 * signals, and our own limits. Only `app` includes this. Each `platform/<os>` implements all of it.
 *
 * One thread (the main one) uses these; exceptions are said.
 */
#ifndef AU_PLATFORM_PLATFORM_H
#define AU_PLATFORM_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/proc_ops.h"

/** The system of this port: one static instance, nothing to free. */
au_sys *au_platform_sys(void);

/** What helps on this system, in words that follow on "to do: " or "with ". Constant. */
typedef struct au_remedies {
    const char *look_up_pids; /**< a command that lists the Pythons that run */
    const char *end_process;  /**< a command that ends the process whose number follows, whatever it does */
    const char *any_right;    /**< how to get the right to read any process */
    const char *no_right;     /**< ... for somebody who should have it and is refused */
    const char *open_files;   /**< we have too many files open ... */
    const char *all_files;    /**< ... or the whole system has */
    const char *memory;
    const char *tasks;     /**< no more threads or processes */
    const char *file_size; /**< a file may not become that large */
    const char *a_command; /**< what must be true of a program that is launched */
} au_remedies;

const au_remedies *au_platform_remedies(void);

/* ---- launching ---------------------------------------------------------------------------------------------- */

typedef struct au_child au_child;

typedef struct au_launch {
    const char *const *argv; /**< NULL-terminated; argv[0] is searched along PATH */
    int discard_stdout;      /**< the samples go to our stdout, so the program's own goes nowhere */
} au_launch;

typedef enum au_child_state {
    AU_CHILD_RUNNING = 0,
    AU_CHILD_STOPPED,  /**< by job control (Ctrl-Z): au_child_wait handles the terminal itself and reports this once */
    AU_CHILD_EXITED,   /**< `code` is its exit status */
    AU_CHILD_SIGNALLED /**< `code` is the signal; Windows: 2 (SIGINT) for what Ctrl-C or Ctrl-Break has ended */
} au_child_state;

typedef struct au_child_status {
    au_child_state state;
    int code;
} au_child_status;

/**
 * Starts a program in a process group of its own, in the foreground of the terminal if we are there, with the limits,
 * signal mask, dispositions and timer slack that we were started with. It begins to run at once. Fails with
 * AU_ERR_OS ("Cannot launch ...") when the program cannot be executed; the cause says why.
 *
 * On Windows it stays at our console, so that Ctrl-C reaches it, and a job object holds what it starts; it gets a
 * console without a window if we have none.
 */
au_error *au_child_launch(const au_launch *what, au_child **out);

au_pid au_child_pid(const au_child *child);

/**
 * Looks, without blocking, what became of the child; keeps job control going: when it stops, our own group takes the
 * terminal back and we stop ourselves as a shell's job would, and when we are continued the child gets the terminal
 * and goes on.
 */
au_child_status au_child_poll(au_child *child);

/** Blocks up to timeout_ms (-1: for ever) for the child to end, or an ending of ours. Returns what au_child_poll would.
 */
au_child_status au_child_wait(au_child *child, int timeout_ms);

typedef enum au_stop { AU_STOP_INTERRUPT, AU_STOP_TERMINATE, AU_STOP_HANGUP } au_stop;

/**
 * INTERRUPT and HANGUP go to its whole process group, TERMINATE to the child. A gone child is no error.
 *
 * On Windows INTERRUPT is a Ctrl-C, unless our own ending is one, which the child has got as well; where a Ctrl-C would
 * also hit others, and with TERMINATE and HANGUP, all that the job holds is ended at once.
 */
void au_child_signal(au_child *child, au_stop how);

/** Gives the terminal back to our group, restores its settings if the child left them changed and died, frees. */
void au_child_release(au_child *child);

/* ---- our own ends ------------------------------------------------------------------------------------------- */

/** Why the run shall end. */
typedef enum au_ending {
    AU_END_NONE = 0,
    AU_END_INTERRUPT, /**< SIGINT, Ctrl-C, Ctrl-Break: exit 254 */
    AU_END_TERMINATE, /**< SIGTERM; the end of the console, the session or the machine: exit 241 */
    AU_END_HANGUP,    /**< SIGHUP: exit 255 */
    AU_END_OTHER      /**< another one that is sent to end a process, such as SIGQUIT: exit 256 - its number */
} au_ending;

/**
 * Installs the handlers; each one remembers its reason, counts and wakes the sleeping sampler. Call once, on the main
 * thread. On Windows an AU_END_TERMINATE leaves less than five seconds: then the system ends us.
 */
void au_signals_init(void);

/** The first reason so far. Any thread. */
au_ending au_signals_ending(void);

/** The number of the signal behind it; 0: none, or the system has no signals. Any thread. */
int au_signals_number(void);

/** How many ending signals came so far (a second one means: do not wait). Any thread. */
unsigned au_signals_count(void);

/* ---- our own limits ----------------------------------------------------------------------------------------- */

/** Raises what we need for ourselves (open files, timer slack of the calling thread). Children started by
 *  au_child_launch get the original values, whether it is called before or after. Never fails: it does what it may. */
void au_limits_raise(void);

/** Physical memory of the machine in bytes; 0 if not known. */
uint64_t au_memory_total(void);

/* ---- terminal ----------------------------------------------------------------------------------------------- */

/**
 * Makes the arguments of main UTF-8 where they are not: on a system whose own are UTF-16. Call first. 0; 1: no memory.
 * What it makes is never freed.
 */
int au_arguments_init(int *argc, const char *const **argv);

enum { AU_FD_STDIN = 0, AU_FD_STDOUT = 1, AU_FD_STDERR = 2 };

/**
 * Fills the place of each standard descriptor that we were started without, so that no file of ours gets its number:
 * what is read from there or written to there would go into that file. Reading and writing fail as before, and a
 * launched program finds the descriptor closed. Call once, before anything is opened.
 */
void au_standard_descriptors_init(void);

int au_is_terminal(int fd);

/** Columns of the terminal behind fd; 80 if not known. */
int au_terminal_width(int fd);

/** Writes all bytes to a standard descriptor, whatever it takes. 0 or an errno-like number. Any thread. */
int au_write_all(int fd, const void *bytes, size_t len);

/** Makes `fd` (stdout, for samples) binary where the system knows a difference. */
void au_set_binary(int fd);

/** Does the path begin with a pipe, a device or a share, so that what is missing is no folder that could be made? */
int au_path_names_place(const char *path);

/** The usual code of what an OS error code says, where one condition has several: a reader that has gone. Any thread.
 */
int au_os_error_usual(int os_code);

/** Text of an OS error code of this system. Thread-safe; `buf` is returned. */
const char *au_os_error_text(int os_code, char *buf, size_t cap);

#endif
