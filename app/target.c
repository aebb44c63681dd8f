/* SPDX-License-Identifier: Apache-2.0 */
#include "app/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_MS = 5000,    /* for a program that was told to end */
    SLICE_MS = 50,         /* between two looks for another signal */
    LAST_MOMENTS_MS = 500, /* from the child's end until the engine must have noticed */
    RETRY_NS = 5000000,    /* between two looks at a child that cannot be read yet */
    MOST_BELOW = 4096,     /* processes below it that are looked at */
    INTERRUPT_SIGNAL = 2   /* SIGINT: POSIX.1-2017, utility kill */
};

static int has_ended(const au_target *target)
{
    return target->status.state == AU_CHILD_EXITED || target->status.state == AU_CHILD_SIGNALLED;
}

static uint64_t now_ns(const au_target *target)
{
    return target->sys->ops->now(target->sys);
}

/* Notes a new status; the first end counts. */
static void note(au_target *target, au_child_status status)
{
    target->status = status;
    if (has_ended(target) && target->ended_ns == 0) {
        target->ended_ns = now_ns(target);
    }
}

static au_failure failure(au_sign sign, au_error *error)
{
    return (au_failure){.error = error, .sign = sign};
}

/* Milliseconds from the launch to the end of the child, or until now. */
static uint64_t lived_ms(const au_target *target)
{
    uint64_t end = target->ended_ns ? target->ended_ns : now_ns(target);
    return (end - target->launched_ns) / 1000000;
}

static au_failure explain_gone(au_target *target, au_error *why)
{
    au_error_clear(why);
    (void)au_target_settle(target);
    au_error *error = au_message_ended_early(&target->subject, target->child ? lived_ms(target) : 0);
    au_sign sign = error->code == AU_ERR_PYTHON ? AU_SIGN_INVADER : target->child ? AU_SIGN_CROSS : AU_SIGN_STOP;
    return failure(sign, error);
}

au_failure au_target_explain(au_target *target, const au_options *options, au_error *why)
{
    au_explanation explanation = {.right = AU_RIGHT_UNKNOWN, .uid = -1};
    (void)au_target_poll(target);
    switch (why->code) {
    case AU_ERR_MEMORY:
        return failure(AU_SIGN_SKULL, why);
    case AU_ERR_GONE:
        return explain_gone(target, why);
    case AU_ERR_PERMISSION:
        target->sys->ops->explain(target->sys, target->subject.pid, &explanation);
        return failure(AU_SIGN_PADLOCK, au_message_not_permitted(&target->subject, &explanation, why));
    case AU_ERR_PYTHON:
    case AU_ERR_BINARY: /* a word size that we cannot read is a Python that we cannot sample */
        return failure(AU_SIGN_INVADER, au_message_not_python(&target->subject, options->timeout_ms, why));
    default:
        if (has_ended(target)) { /* whatever went wrong, that is why */
            return explain_gone(target, why);
        }
        return failure(target->child ? AU_SIGN_CROSS : AU_SIGN_STOP, au_message_attach_failed(&target->subject, why));
    }
}

/* Is the child there, and the time to look for an interpreter in it not over? */
static int may_retry(au_target *target, const au_options *options)
{
    (void)au_target_poll(target);
    return target->child && !has_ended(target) && au_signals_ending() == AU_END_NONE &&
           lived_ms(target) < options->timeout_ms;
}

/*
 * What we launched is ours to read, but for moments: while the kernel puts a program in its place, or as long as a
 * wrapper runs that may not be read, such as a shell without read permission. So for a child no right is missing before
 * the time is over.
 */
static au_error *open_process(au_target *target, const au_options *options)
{
    au_error *why;
    target->proc = NULL;
    while ((why = target->sys->ops->open(target->sys, target->subject.pid, AU_WANT_READ, &target->proc)) &&
           why->code == AU_ERR_PERMISSION && may_retry(target, options)) {
        au_error_clear(why);
        (void)target->sys->ops->sleep_until(target->sys, now_ns(target) + RETRY_NS);
    }
    if (why) {
        target->proc = NULL;
    }
    return why;
}

au_failure au_target_open(au_target *target, const au_options *options)
{
    *target = (au_target){.sys = au_platform_sys()};
    if (options->command) {
        au_launch launch = {.argv = options->command, .discard_stdout = options->output == NULL};
        target->subject.command = options->command[0];
        target->launched_ns = now_ns(target);
        au_error *why = au_child_launch(&launch, &target->child);
        if (why) {
            target->child = NULL;
            return failure(AU_SIGN_CROSS, au_message_launch_failed(&target->subject, why));
        }
        target->subject.pid = au_child_pid(target->child);
    } else {
        target->subject.pid = options->pid;
    }
    au_error *why = open_process(target, options);
    return why ? au_target_explain(target, options, why) : failure(AU_SIGN_NONE, NULL);
}

/* ---- programs that stand for an interpreter ----------------------------------------------------------------- */

typedef struct family {
    au_process *all;
    size_t count, cap;
    int no_memory;
} family;

static int add_process(void *baton, const au_process *process)
{
    family *f = baton;
    if (f->count == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 128;
        au_process *grown = realloc(f->all, cap * sizeof *grown);
        if (!grown) {
            f->no_memory = 1;
            return 1;
        }
        f->all = grown;
        f->cap = cap;
    }
    f->all[f->count++] = *process;
    return 0;
}

/* The number of a parent that has ended may be somebody else's by now: who was there later made nobody. */
static int is_child_of(const au_process *process, const au_process *parent)
{
    return process->parent == parent->pid && process->pid != parent->pid &&
           process->start_time_ns >= parent->start_time_ns;
}

/*
 * The one interpreter below `top`, opened; NULL: there is none, or more than one. What an interpreter has started
 * itself is not looked at. `below` is room for as many as `f` has.
 */
static au_proc *find_below(const au_target *target, const family *f, const au_process *top, const au_process **below)
{
    au_proc *found = NULL;
    size_t count = 0, looked = 0;
    below[count++] = top;
    for (; looked < count; looked++) {
        for (size_t i = 0; i < f->count && count < f->count; i++) {
            const au_process *process = &f->all[i];
            au_proc *proc = NULL;
            if (!is_child_of(process, below[looked]) || process == top || count >= MOST_BELOW) {
                continue;
            }
            au_error *error = target->sys->ops->open(target->sys, process->pid, AU_WANT_READ, &proc);
            if (error) {
                au_error_clear(error);
                continue;
            }
            if (!au_engine_is_python(target->sys, proc)) {
                target->sys->ops->close(proc);
                below[count++] = process;
            } else if (found) {
                target->sys->ops->close(proc);
                target->sys->ops->close(found);
                return NULL;
            } else {
                found = proc;
            }
        }
    }
    return found;
}

static au_proc *look_below(const au_target *target)
{
    family f = {0};
    au_proc *found = NULL;
    au_error_clear(target->sys->ops->processes(target->sys, add_process, &f));
    const au_process **below = f.no_memory || !f.count ? NULL : malloc(f.count * sizeof(const au_process *));
    for (size_t i = 0; below && i < f.count; i++) {
        if (f.all[i].pid == target->subject.pid) {
            found = find_below(target, &f, &f.all[i], below);
            break;
        }
    }
    free(below);
    free(f.all);
    return found;
}

au_proc *au_target_follow(au_target *target, const au_options *options, const au_console *console)
{
    (void)au_target_poll(target);
    au_proc *found = target->child && has_ended(target) ? NULL : look_below(target);
    if (found) {
        target->sys->ops->close(target->proc);
        target->proc = found;
        target->subject.pid = found->pid;
        if (!options->pipe) {
            au_message_say(console, AU_SIGN_SNAKE, "The interpreter is process %" PRId64 ", which was started by %s.",
                           found->pid, target->subject.command ? target->subject.command : "the one that was named");
        }
    }
    return found;
}

au_error *au_target_reopen(au_target *target, const au_options *options, au_error *why)
{
    if (!target->child || (why->code != AU_ERR_PERMISSION && why->code != AU_ERR_GONE) || !may_retry(target, options) ||
        (why->code == AU_ERR_GONE && !au_target_settle(target))) {
        return why;
    }
    au_error_clear(why);
    target->sys->ops->close(target->proc);
    return open_process(target, options);
}

int au_target_poll(au_target *target)
{
    if (target->child && !has_ended(target)) {
        note(target, au_child_poll(target->child));
    }
    return target->ended_ns && now_ns(target) - target->ended_ns > (uint64_t)LAST_MOMENTS_MS * 1000000;
}

int au_target_settle(au_target *target)
{
    if (target->child && !has_ended(target)) {
        note(target, au_child_wait(target->child, LAST_MOMENTS_MS));
    }
    return target->child && !has_ended(target);
}

int au_target_was_interrupted(const au_target *target)
{
    return target->child && target->status.state == AU_CHILD_SIGNALLED && target->status.code == INTERRUPT_SIGNAL;
}

/* True when the child has ended in time. Another signal from the user ends the waiting. */
static int ends_in_time(au_target *target)
{
    unsigned signals = au_signals_count();
    uint64_t deadline = now_ns(target) + (uint64_t)PATIENCE_MS * 1000000;
    while (!has_ended(target) && au_signals_count() == signals && now_ns(target) < deadline) {
        note(target, au_child_wait(target->child, SLICE_MS));
    }
    return has_ended(target);
}

void au_target_end(au_target *target, au_stop how, const au_console *console)
{
    if (!target->child || has_ended(target)) {
        return;
    }
    note(target, au_child_poll(target->child));
    if (has_ended(target)) {
        return;
    }
    au_child_signal(target->child, how);
    if (ends_in_time(target)) {
        return;
    }
    au_child_signal(target->child, AU_STOP_TERMINATE);
    if (!ends_in_time(target)) {
        au_message_say(console, AU_SIGN_WARNING,
                       "\"%s\" was asked to end, but still runs as process %" PRId64 ". It is left alone; '%s %" PRId64
                       "' ends it.",
                       target->subject.command, target->subject.pid, au_platform_remedies()->end_process,
                       target->subject.pid);
    }
}

void au_target_close(au_target *target)
{
    if (target->proc) {
        target->sys->ops->close(target->proc);
        target->proc = NULL;
    }
    if (target->child) {
        au_child_release(target->child);
        target->child = NULL;
    }
}
