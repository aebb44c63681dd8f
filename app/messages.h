/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * All words of a run. Each failure becomes an error with what happened to what, why, and what to do about it; the few
 * words that Austin's users search for ("Cannot launch", "too quickly", "Cannot attach", "not a Python", "Insufficient
 * permissions") are kept.
 *
 * The functions that take an error `why` take it over and put its words into the one that they return; its `code` is
 * the exit status.
 */
#ifndef AU_APP_MESSAGES_H
#define AU_APP_MESSAGES_H

#include <apr_errno.h>

#include "app/words.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/proc_ops.h"

/** The sign in front of a message. */
typedef enum au_sign {
    AU_SIGN_NONE,
    AU_SIGN_GLASSES, /**< neither command nor PID */
    AU_SIGN_INVADER, /**< not a Python */
    AU_SIGN_NUMBERS, /**< a version or word size that we do not know */
    AU_SIGN_PADLOCK, /**< a right is missing */
    AU_SIGN_CROSS,   /**< could not launch */
    AU_SIGN_STOP,    /**< could not attach */
    AU_SIGN_SKULL,   /**< anything else */
    AU_SIGN_WARNING,
    AU_SIGN_CLOCK,
    AU_SIGN_SNAKE
} au_sign;

const char *au_sign_text(au_sign sign);

/** Shows "sign message: cause. hint." between two empty lines. */
void au_message_show(const au_console *console, au_sign sign, const au_error *error);

/** Shows what is wrong with the command line and points to --help and --usage. */
void au_message_show_usage(const au_console *console, const au_error *error);

/** One line (or more, when wrapped) of news with a sign. */
void au_message_say(const au_console *console, au_sign sign, const char *format, ...) AU_PRINTF(3, 4);

/**
 * What to do when the system has no more of something (descriptors, threads, memory), whatever it was wanted for; NULL
 * if `os_code`, an errno-like number, says nothing of that kind.
 */
const char *au_message_shortage(int os_code);

/**
 * What to do about `error` as it is shown: its own hint, or that for a shortage, or what helps with its kind. NULL for
 * AU_ERR_USAGE alone, which is shown with a pointer to the list of options. It belongs to `error`.
 */
const char *au_message_hint(const au_error *error);

/** What is sampled: a launched program or a process that was there before. */
typedef struct au_subject {
    const char *command; /**< NULL: attached */
    au_pid pid;          /**< 0: not launched yet */
} au_subject;

au_error *au_message_launch_failed(const au_subject *subject, au_error *why);

/** The launched program, or the process, has ended before an interpreter was found. `lived_ms` of the former. */
au_error *au_message_ended_early(const au_subject *subject, uint64_t lived_ms);

/** AU_ERR_PYTHON; `why` says what was looked for or found. */
au_error *au_message_not_python(const au_subject *subject, uint64_t timeout_ms, au_error *why);

/** `why` is AU_ERR_PERMISSION; `explanation` says which right is missing. */
au_error *au_message_not_permitted(const au_subject *subject, const au_explanation *explanation, au_error *why);

/** Any other reason. */
au_error *au_message_attach_failed(const au_subject *subject, au_error *why);

/** An output that takes no samples. */
typedef struct au_output_failure {
    const char *act;     /**< what was tried, as in "cannot write to FILE" */
    const char *path;    /**< NULL: standard output */
    apr_status_t status; /**< why not */
    int folder_gone;     /**< the path is relative, and the current folder is not there any more */
    int readable;        /**< what was written before stays, and can be read */
    int folder_there;    /**< what is missing is not the folder of the path */
    int is_folder;       /**< the path itself is one */
} au_output_failure;

/** AU_ERR_IO. */
au_error *au_message_output_failed(const au_output_failure *failure);

/** AU_ERR_IO: a text that was asked for, such as the help, could not be shown. */
au_error *au_message_no_text(int os_code);

/** AU_ERR_IO: the reader at the other end takes nothing, and the user has waited enough. */
au_error *au_message_not_taken(void);

/** The stream's keys are used up; `command` goes on. */
au_error *au_message_no_keys(const au_subject *subject);

/** Standard output is a terminal and nobody can be asked whether that is meant. */
au_error *au_message_terminal_refused(void);

/** AUSTIN_PAGE_SIZE_CAP cannot be. */
au_error *au_message_bad_environment(const char *name, const char *value, const char *reason);

/** "3.12.4", "3.13.?", "3.14.0t"; `buf` is returned. */
const char *au_message_version(const au_python *python, char *buf, size_t cap);

/** "beta 2" for what is not a final release, NULL else; `buf` is returned. */
const char *au_message_release(const au_python *python, char *buf, size_t cap);

#endif
