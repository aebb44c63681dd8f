/* SPDX-License-Identifier: Apache-2.0 */
#include "app/messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "platform/platform.h"

/* ---- showing ------------------------------------------------------------------------------------------------ */

const char *au_sign_text(au_sign sign)
{
    static const char *const signs[] = {
        [AU_SIGN_NONE] = "",
        [AU_SIGN_GLASSES] = "\U0001F453",
        [AU_SIGN_INVADER] = "\U0001F47E",
        [AU_SIGN_NUMBERS] = "\U0001F522",
        [AU_SIGN_PADLOCK] = "\U0001F512",
        [AU_SIGN_CROSS] = "\u274C",
        [AU_SIGN_STOP] = "\U0001F6D1",
        [AU_SIGN_SKULL] = "\u2620\uFE0F",
        [AU_SIGN_WARNING] = "\u26A0\uFE0F",
        [AU_SIGN_CLOCK] = "\U0001F551",
        [AU_SIGN_SNAKE] = "\U0001F40D",
    };
    return signs[sign];
}

enum { SIGN_COLUMNS = 3 }; /* a sign is two columns wide, and a blank follows */

/* "message: cause." as one sentence. */
static void append_sentence(au_buf *out, const char *message, const char *cause)
{
    size_t start = out->len;
    (void)au_words_append(out, "%s%s%s", message, cause ? ": " : "", cause ? cause : "");
    while (out->len > start && out->data[out->len - 1] == ' ') { /* as the words of some systems end */
        out->len--;
    }
    if (out->len == start) {
        return;
    }
    uint8_t *first = &out->data[start];
    if (*first >= 'a' && *first <= 'z') {
        *first = (uint8_t)(*first - 'a' + 'A');
    }
    if (!strchr(".?!", out->data[out->len - 1])) {
        (void)au_words_append(out, ".");
    }
}

/* Wraps what `append_sentence` makes; a text without memory is a text that is not shown. */
static void wrap_sentence(au_buf *out, const char *message, const char *cause, size_t column, size_t width)
{
    au_buf sentence = {0};
    append_sentence(&sentence, message, cause);
    if (au_buf_append(&sentence, "", 1) == 0) {
        (void)au_words_wrap(out, (const char *)sentence.data, column, column, width);
    }
    au_buf_deinit(&sentence);
}

const char *au_message_shortage(int os_code)
{
    apr_status_t status = APR_FROM_OS_ERROR(os_code);
    if (APR_STATUS_IS_EMFILE(status)) {
        return au_platform_remedies()->open_files;
    }
    if (APR_STATUS_IS_ENFILE(status)) {
        return au_platform_remedies()->all_files;
    }
    if (APR_STATUS_IS_ENOMEM(status)) {
        return au_platform_remedies()->memory;
    }
    if (APR_STATUS_IS_EAGAIN(status)) {
        return au_platform_remedies()->tasks;
    }
    return NULL;
}

/* For an error that comes without a remedy of its own. */
static const char *remedy_of_kind(au_errcode code)
{
    switch (code) {
    case AU_ERR_USAGE:
        return NULL;
    case AU_ERR_PERMISSION:
        return au_platform_remedies()->any_right;
    case AU_ERR_GONE:
        return "start the program again, or look up the PID again";
    case AU_ERR_MEMORY:
        return au_platform_remedies()->memory;
    case AU_ERR_IO:
        return "choose another file, for example: -o profile.mojo";
    case AU_ERR_COMMAND:
    case AU_ERR_ENVIRONMENT:
        return "'austin --help' says what can be given";
    case AU_ERR_OS:
    case AU_ERR_VALUE:
    case AU_ERR_PYTHON:
    case AU_ERR_BINARY:
    case AU_ERR_OBJECT:
    case AU_ERR_MAPS:
        break;
    }
    return "try it again; if it fails again, please report it with this message, the system and the version of Python";
}

const char *au_message_hint(const au_error *error)
{
    const char *hint = error->hint ? error->hint : au_message_shortage(error->os_code);
    return hint ? hint : remedy_of_kind(error->code);
}

void au_message_show(const au_console *console, au_sign sign, const au_error *error)
{
    au_buf out = {0};
    const char *hint = au_message_hint(error);
    (void)au_words_append(&out, "\n%s ", au_sign_text(sign));
    wrap_sentence(&out, error->message, error->cause, SIGN_COLUMNS, console->width);
    if (hint) {
        (void)au_words_append(&out, "%*s", SIGN_COLUMNS, "");
        wrap_sentence(&out, hint, NULL, SIGN_COLUMNS, console->width);
    }
    (void)au_words_append(&out, "\n");
    au_console_put(console, &out);
    au_buf_deinit(&out);
}

void au_message_show_usage(const au_console *console, const au_error *error)
{
    au_buf out = {0};
    const char *hint = au_message_hint(error);
    (void)au_words_append(&out, "austin: %s%s%s%s%s\n", error->message, error->cause ? ": " : "",
                          error->cause ? error->cause : "", hint ? "; " : "", hint ? hint : "");
    for (size_t i = 0; i + 1 < out.len; i++) { /* words of the command line are in it: see au_words_wrap */
        if (out.data[i] < 0x20 || out.data[i] == 0x7F) {
            out.data[i] = '?';
        }
    }
    (void)au_words_append(&out, "'austin --help' lists the options, 'austin --usage' is the short form.\n");
    au_console_put(console, &out);
    au_buf_deinit(&out);
}

void au_message_say(const au_console *console, au_sign sign, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    au_buf out = {0};
    (void)au_words_append(&out, "%s ", au_sign_text(sign));
    (void)au_words_wrap(&out, text, SIGN_COLUMNS, SIGN_COLUMNS, console->width);
    au_console_put(console, &out);
    au_buf_deinit(&out);
}

/* ---- failures ----------------------------------------------------------------------------------------------- */

/* "program 'x'" or "process 12": how a sentence names what it is about. */
static const char *name_of(const au_subject *subject, char *buf, size_t cap)
{
    if (subject->command && subject->pid) {
        snprintf(buf, cap, "\"%s\" (PID %" PRId64 ")", subject->command, subject->pid);
    } else if (subject->command) {
        snprintf(buf, cap, "\"%s\"", subject->command);
    } else {
        snprintf(buf, cap, "process %" PRId64, subject->pid);
    }
    return buf;
}

static const char *cannot(const au_subject *subject)
{
    return subject->command ? "Cannot launch" : "Cannot attach to";
}

static int names_an_attempt(const char *text)
{
    return strncmp(text, "Cannot launch", 13) == 0 || strncmp(text, "Cannot attach", 13) == 0;
}

/* True if both messages begin with the same words, or say the same of a child that is opened, so that one of them is
 * enough. */
static int says_the_same(const char *a, const char *b)
{
    return strncmp(a, b, 13) == 0 || (names_an_attempt(a) && names_an_attempt(b));
}

/* Moves the words of `why` into the cause and the hint of `error`, and ends it. */
static au_error *because(au_error *error, au_error *why)
{
    if (!why) {
        return error;
    }
    if (!why->cause) {
        error = au_error_cause(error, "%s", why->message);
    } else if (says_the_same(why->message, error->message)) {
        error = au_error_cause(error, "%s", why->cause);
    } else {
        error = au_error_cause(error, "%s: %s", why->message, why->cause);
    }
    if (why->hint) {
        error = au_error_hint(error, "%s", why->hint);
    }
    au_error_clear(why);
    return error;
}

au_error *au_message_launch_failed(const au_subject *subject, au_error *why)
{
    char name[512];
    if (why->code == AU_ERR_MEMORY) {
        return why;
    }
    au_error *error = au_error_create(AU_ERR_OS, why->os_code, "Cannot launch %s", name_of(subject, name, sizeof name));
    error = because(error, why);
    const char *shortage = au_message_shortage(error->os_code);
    if (!error->hint) {
        error = au_error_hint(error, "%s", shortage ? shortage : au_platform_remedies()->a_command);
    }
    return error;
}

enum { NO_PYTHON_STARTS_THAT_SLOWLY_MS = 1000 };

au_error *au_message_ended_early(const au_subject *subject, uint64_t lived_ms)
{
    char name[512];
    name_of(subject, name, sizeof name);
    if (!subject->command) {
        return au_error_hint(
            au_error_create(AU_ERR_OS, 0, "Cannot attach to %s: it has ended, or there is no such process", name),
            "look up the PID again, for example with '%s'", au_platform_remedies()->look_up_pids);
    }
    if (lived_ms >= NO_PYTHON_STARTS_THAT_SLOWLY_MS) {
        au_error *error = au_error_create(AU_ERR_PYTHON, 0, "Cannot launch %s: it is not a Python program", name);
        error = au_error_cause(error, "it ended after %" PRIu64 ".%" PRIu64 " s, and no interpreter was seen in it",
                               lived_ms / 1000, lived_ms / 100 % 10);
        return au_error_hint(error, "if it starts Python as a child process, give that command to austin itself");
    }
    return au_error_hint(
        au_error_create(AU_ERR_OS, 0, "Cannot launch %s: it ended too quickly to be sampled", name),
        "run it without austin to see whether it works; a program must run for a moment before it can be sampled");
}

au_error *au_message_not_python(const au_subject *subject, uint64_t timeout_ms, au_error *why)
{
    char name[512];
    au_error *error = au_error_create(AU_ERR_PYTHON, 0, "%s %s: it is not a Python program that austin can sample",
                                      cannot(subject), name_of(subject, name, sizeof name));
    error = because(error, why);
    if (!error->hint) {
        error = au_error_hint(error,
                              "if it starts Python as a child process, give austin that command or PID; if the "
                              "interpreter needs more than %" PRIu64 " ms to appear, raise -t",
                              timeout_ms);
    }
    return error;
}

au_error *au_message_attach_failed(const au_subject *subject, au_error *why)
{
    char name[512];
    if (why->code == AU_ERR_MEMORY) {
        return why;
    }
    if (why->code == AU_ERR_GONE) {
        au_error_clear(why);
        return au_message_ended_early(subject, 0);
    }
    au_error *error =
        au_error_create(why->code, why->os_code, "%s %s", cannot(subject), name_of(subject, name, sizeof name));
    error = because(error, why);
    const char *shortage = au_message_shortage(error->os_code);
    if (!error->hint && shortage) {
        error = au_error_hint(error, "%s", shortage);
    } else if (!error->hint && !subject->command && error->code == AU_ERR_OS) {
        error =
            au_error_hint(error, "look up the PID again, for example with '%s'", au_platform_remedies()->look_up_pids);
    } else if (!error->hint) { /* a file or a value of the process, and none of ours */
        error = au_error_hint(error, "%s", remedy_of_kind(AU_ERR_OS));
    }
    return error;
}

/* ---- rights ------------------------------------------------------------------------------------------------- */

/* How to get the right to read any process, for somebody who does not have it yet. */
static au_error *get_right(au_error *error, const au_subject *subject, const au_explanation *explanation)
{
    if (explanation->in_container) {
        return au_error_hint(error, "start the container with: docker run --cap-add SYS_PTRACE; or run austin on the "
                                    "host");
    }
    if (explanation->is_root) {
        return au_error_hint(error, "you are root here, but without the capability CAP_SYS_PTRACE: run austin outside "
                                    "of this user namespace or sandbox");
    }
    return au_error_hint(error, "run austin as root: sudo austin -p %" PRId64, subject->pid);
}

/* Somebody who has that right is refused all the same. */
static au_error *right_is_of_no_use(au_error *error, const au_subject *subject, const au_explanation *explanation)
{
    if (explanation->right == AU_RIGHT_NAMESPACE) {
        error = au_error_cause(error,
                               "austin has the capability CAP_SYS_PTRACE, but it does not reach process %" PRId64
                               ", which is in another user namespace or protected by the system around",
                               subject->pid);
        return au_error_hint(error, "run austin where the process was started%s",
                             explanation->in_container ? ": in its own container, or on the host"
                                                       : ": outside of this user namespace or sandbox");
    }
    if (explanation->right == AU_RIGHT_SECCOMP) {
        error =
            au_error_cause(error, "austin has the capability CAP_SYS_PTRACE, but a filter of system calls (seccomp) "
                                  "does not let it read other processes");
        return au_error_hint(error, "run austin outside of the sandbox; a container can be started with: docker run "
                                    "--security-opt seccomp=unconfined");
    }
    error = au_error_cause(error,
                           "austin has the capability CAP_SYS_PTRACE, so something else protects process %" PRId64
                           ", such as a security module (AppArmor, SELinux) or a sandbox",
                           subject->pid);
    return au_error_hint(error,
                         "look for the refusal in the kernel's log (journalctl -k), or run austin outside of the "
                         "sandbox");
}

static au_error *missing_right(au_error *error, const au_subject *subject, const au_explanation *explanation)
{
    au_pid pid = subject->pid;
    if (explanation->may_trace && explanation->right != AU_RIGHT_PTRACE_SCOPE) {
        return right_is_of_no_use(error, subject, explanation);
    }
    switch (explanation->right) {
    case AU_RIGHT_OTHER_USER:
        if (explanation->uid < 0) { /* users have no numbers there */
            error = au_error_cause(error, "process %" PRId64 " belongs to another user", pid);
            return au_error_hint(error, "%s", au_platform_remedies()->any_right);
        }
        error = au_error_cause(error, "process %" PRId64 " belongs to the user with id %" PRId64 ", not to you", pid,
                               explanation->uid);
        return explanation->is_root
                   ? get_right(error, subject, explanation)
                   : au_error_hint(error, "run austin as that user, or as root: sudo austin -p %" PRId64, pid);
    case AU_RIGHT_PTRACE_SCOPE:
        error = au_error_cause(error, "kernel.yama.ptrace_scope is %d, which forbids reading %s", explanation->scope,
                               explanation->scope == 1   ? "processes that austin has not launched"
                               : explanation->scope == 2 ? "other processes without the capability CAP_SYS_PTRACE"
                                                         : "any other process until the next boot");
        if (explanation->scope >= 3) {
            return au_error_hint(error, "set kernel.yama.ptrace_scope to 2 or less in /etc/sysctl.d and boot again");
        }
        if (explanation->is_root) {
            return get_right(error, subject, explanation);
        }
        return au_error_hint(error,
                             "run it as root: sudo austin -p %" PRId64 "; or give austin the right once: sudo setcap "
                             "cap_sys_ptrace+ep \"$(command -v austin)\"%s",
                             pid, explanation->scope == 1 ? "; or let austin launch the program" : "");
    case AU_RIGHT_CAPABILITY:
        error = au_error_cause(error,
                               "process %" PRId64 " has capabilities that you do not have, or is in another user "
                               "namespace",
                               pid);
        return get_right(error, subject, explanation);
    case AU_RIGHT_NOT_DUMPABLE:
        error = au_error_cause(error,
                               "process %" PRId64 " has protected its memory (it is set-user-id or called "
                               "PR_SET_DUMPABLE)",
                               pid);
        return get_right(error, subject, explanation);
    case AU_RIGHT_SECCOMP:
        error = au_error_cause(error, "this system does not let austin read other processes at all%s",
                               explanation->in_container ? ": the container lacks the capability SYS_PTRACE" : "");
        return au_error_hint(error, "start the container with: docker run --cap-add SYS_PTRACE; or run austin on the "
                                    "host");
    case AU_RIGHT_HARDENED:
        error = au_error_cause(error,
                               "the program of process %" PRId64 " is signed with the hardened runtime or "
                               "protected by the system",
                               pid);
        return au_error_hint(error, "use a Python from python.org, Homebrew or uv instead of the system's");
    case AU_RIGHT_ROOT:
        error = au_error_cause(error, "this system lets only root read other processes");
        return au_error_hint(error, "run austin as root: sudo austin ...");
    case AU_RIGHT_ELEVATION:
        error =
            au_error_cause(error, "process %" PRId64 " runs with an administrator's rights, and austin does not", pid);
        return au_error_hint(error, "%s", au_platform_remedies()->any_right);
    case AU_RIGHT_PROTECTED:
        error = au_error_cause(error, "the system lets no program read process %" PRId64, pid);
        return au_error_hint(error, "%s", au_platform_remedies()->no_right);
    case AU_RIGHT_NAMESPACE: /* nobody without the capability */
    case AU_RIGHT_UNKNOWN:
    case AU_RIGHT_NONE_MISSING:
        break;
    }
    return error;
}

au_error *au_message_not_permitted(const au_subject *subject, const au_explanation *explanation, au_error *why)
{
    char name[512];
    au_error *error = au_error_create(AU_ERR_PERMISSION, why ? why->os_code : 0, "Insufficient permissions to read %s",
                                      name_of(subject, name, sizeof name));
    error = because(error, why);
    error = missing_right(error, subject, explanation);
    if (!error->hint) {
        error = au_error_hint(error, "%s",
                              explanation->in_container ? "start the container with: docker run --cap-add SYS_PTRACE"
                              : explanation->is_root    ? au_platform_remedies()->no_right
                                                        : au_platform_remedies()->any_right);
    }
    return error;
}

/* ---- output ------------------------------------------------------------------------------------------------- */

/* A full disk too, for this user. Not every system knows it. */
static int is_over_quota(apr_status_t status)
{
#ifdef EDQUOT
    return status == EDQUOT;
#else
    (void)status;
    return 0;
#endif
}

/* What to do when a name cannot be opened, or a place cannot be written to, for a reason of its own; else NULL. */
static const char *remedy_of_place(const au_output_failure *failure)
{
    apr_status_t status = failure->status;
    if (failure->folder_gone) {
        return "change to a folder that is there (cd), or give an absolute path";
    }
    if (failure->is_folder || status == EISDIR) {
        return "name a file in that folder, for example profile.mojo";
    }
    if (APR_STATUS_IS_EACCES(status) || status == EPERM || status == EROFS) {
        return "choose a file in a folder that you may write to";
    }
    if (APR_STATUS_IS_ENOENT(status) && au_path_names_place(failure->path)) {
        return "check the name: there is no such pipe, device or share";
    }
    if (APR_STATUS_IS_ENOENT(status) && failure->folder_there) {
        return "choose a file in another folder: in this one none can be made";
    }
    if (APR_STATUS_IS_ENOENT(status)) {
        return "create the folder first";
    }
    if (APR_STATUS_IS_ENOTDIR(status)) {
        return "choose another path: one of its folders is a file";
    }
    return NULL;
}

static const char name_a_file[] = "name a file (-o profile.mojo), or send standard output to a file or a pipe";

au_error *au_message_output_failed(const au_output_failure *failure)
{
    char text[128];
    apr_status_t status = failure->status;
    const char *kept = failure->readable ? "; what is there can be read up to its last whole sample" : "";
    const char *place = failure->path ? remedy_of_place(failure) : NULL;
    au_error *error = au_error_create(AU_ERR_IO, (int)APR_TO_OS_ERROR(status), "cannot %s %s", failure->act,
                                      failure->path ? failure->path : "standard output");
    error = au_error_cause(error, "%s",
                           failure->folder_gone ? "the current folder has been deleted"
                           : failure->is_folder ? "it is a folder"
                                                : apr_strerror(status, text, sizeof text));
    if (status == EFBIG) {
        return au_error_hint(error, "%s%s", au_platform_remedies()->file_size, kept);
    }
    if (APR_STATUS_IS_ENOSPC(status) || is_over_quota(status)) {
        return au_error_hint(error, "make room or choose another file%s", kept);
    }
    if (APR_STATUS_IS_EPIPE(status)) {
        return au_error_hint(error, "the program that was reading the samples has ended: see what it says, or write "
                                    "them to a file (-o profile.mojo)");
    }
    if (place) {
        return au_error_hint(error, "%s", place);
    }
    if (au_message_shortage(error->os_code)) {
        return error;
    }
    return au_error_hint(error, "%s%s", failure->path ? "choose another file" : name_a_file, kept);
}

au_error *au_message_no_text(int os_code)
{
    char text[128];
    au_error *error = au_error_create(AU_ERR_IO, os_code, "cannot write to standard output");
    error = au_error_cause(error, "%s", apr_strerror(APR_FROM_OS_ERROR(os_code), text, sizeof text));
    return au_error_hint(error, "let standard output be a terminal, a file with room, or a pipe that is read");
}

au_error *au_message_not_taken(void)
{
    return au_error_hint(
        au_error_create(AU_ERR_IO, 0, "gave up writing: whoever reads the samples takes none"),
        "the samples that were not taken are lost; write them to a file (-o profile.mojo) and read them from there");
}

/* ---- the rest ----------------------------------------------------------------------------------------------- */

au_error *au_message_no_keys(const au_subject *subject)
{
    char name[512];
    au_error *error = au_error_create(AU_ERR_VALUE, 0, "The stream of %s has used up all of its keys",
                                      name_of(subject, name, sizeof name));
    error = au_error_cause(error, "a MOJO stream can name 2^27 different places in the source, and no more");
    return au_error_hint(error, "what was sampled so far is complete; the program goes on. Take several shorter "
                                "profiles (-x)");
}

au_error *au_message_terminal_refused(void)
{
    au_error *error = au_error_create(AU_ERR_USAGE, 0, "samples would go to a terminal");
    error = au_error_cause(error, "they are binary, and there is no -o");
    return au_error_hint(error, "%s", name_a_file);
}

au_error *au_message_bad_environment(const char *name, const char *value, const char *reason)
{
    au_error *error = au_error_create(AU_ERR_ENVIRONMENT, 0, "the environment variable %s is \"%s\"", name, value);
    error = au_error_cause(error, "%s", reason);
    return au_error_hint(error, "give a number of bytes, for example %s=4096, or unset it", name);
}

const char *au_message_version(const au_python *python, char *buf, size_t cap)
{
    const char *threads = python->free_threaded ? "t" : "";
    if (python->micro_known) {
        snprintf(buf, cap, "%u.%u.%u%s", python->major, python->minor, python->micro, threads);
    } else {
        snprintf(buf, cap, "%u.%u.?%s", python->major, python->minor, threads);
    }
    return buf;
}

const char *au_message_release(const au_python *python, char *buf, size_t cap)
{
    /* Levels as in PY_VERSION_HEX: CPython, Include/patchlevel.h. 0 is "not known". */
    const char *level = python->release_level == 0xA   ? "alpha"
                        : python->release_level == 0xB ? "beta"
                        : python->release_level == 0xC ? "release candidate"
                                                       : NULL;
    if (!level) {
        return NULL;
    }
    snprintf(buf, cap, "%s %d", level, python->serial);
    return buf;
}
