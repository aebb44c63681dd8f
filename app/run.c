/* SPDX-License-Identifier: Apache-2.0 */
#include "app/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/emit.h"
#include "app/messages.h"
#include "app/output.h"
#include "app/stats.h"
#include "app/target.h"
#include "base/version.h"
#include "engine/engine.h"
#include "platform/platform.h"

/* Exit statuses of runs that were ended: 256 less the number of the signal, as Austin's users know them. */
enum { EXIT_INTERRUPTED = 254, EXIT_TERMINATED = 241, EXIT_HUNG_UP = 255 };

enum { READER_PATIENCE_NS = 2000000000 }; /* for a reader of the samples that takes none, once the run shall end */

typedef struct run {
    const au_options *options;
    au_console words; /* standard error */
    uint32_t read_cap;
    au_output_sink *sink; /* as long as `output` */
    au_output *output;
    au_emit *emit;
    au_target target;
    au_engine *engine;
    uint64_t ending_since_ns; /* 0: no signal yet */
    char announced[64];       /* the version that the user was told last */
} run;

/* Shows a failure and ends it; returns the exit status. */
static int report(const run *me, au_failure failure)
{
    int status = (int)failure.error->code;
    au_message_show(&me->words, failure.sign, failure.error);
    au_error_clear(failure.error);
    return status;
}

static int report_error(const run *me, au_sign sign, au_error *error)
{
    return report(me, (au_failure){.error = error, .sign = sign});
}

static int ending_status(au_ending ending)
{
    switch (ending) {
    case AU_END_INTERRUPT:
        return EXIT_INTERRUPTED;
    case AU_END_TERMINATE:
        return EXIT_TERMINATED;
    case AU_END_HANGUP:
        return EXIT_HUNG_UP;
    case AU_END_OTHER:
        return 256 - au_signals_number();
    case AU_END_NONE:
        break;
    }
    return 0;
}

/* ---- before anything starts --------------------------------------------------------------------------------- */

/* AUSTIN_PAGE_SIZE_CAP: an upper bound in bytes. Unset and empty are the same. */
static au_error *read_environment(run *me)
{
    static const char name[] = "AUSTIN_PAGE_SIZE_CAP";
    const char *value = getenv(name);
    if (!value || !*value) {
        return NULL;
    }
    uint64_t bytes = 0;
    for (const char *digit = value; *digit; digit++) {
        if (*digit < '0' || *digit > '9') {
            return au_message_bad_environment(name, value, "it must be a whole number above 0");
        }
        bytes = bytes * 10 + (uint64_t)(*digit - '0');
        if (bytes > UINT32_MAX) {
            return au_message_bad_environment(name, value, "it is too large");
        }
    }
    if (bytes == 0) {
        return au_message_bad_environment(name, value, "it must be a whole number above 0");
    }
    me->read_cap = (uint32_t)bytes;
    return NULL;
}

/* Samples that would go to a terminal: asks, if there is somebody to ask. 1: go on; 0: the user said no; -1: refused.
 */
static int may_write_to_terminal(const run *me)
{
    if (me->options->output || !au_is_terminal(AU_FD_STDOUT)) {
        return 1;
    }
    if (!au_is_terminal(AU_FD_STDIN)) {
        return -1;
    }
    au_console out;
    au_console_init(&out, AU_FD_STDOUT);
    au_message_say(&out, AU_SIGN_WARNING,
                   "The samples are binary and would go to this terminal. -o FILE writes them to a file. Go on all the "
                   "same? [y/N]");
    setvbuf(stdin, NULL, _IONBF, 0); /* what comes after the answer belongs to the launched program */
    int answer = getchar();
    for (int rest = answer; rest != '\n' && rest != EOF;) {
        rest = getchar();
    }
    return answer == 'y' || answer == 'Y';
}

/* ---- output ------------------------------------------------------------------------------------------------- */

static int push(void *baton, const void *bytes, size_t len)
{
    return au_output_push(((run *)baton)->output, bytes, len);
}

/*
 * Whoever reads our samples may take none, and then the sampler waits; a signal must end such a run too. The first one
 * gives the reader a moment, the second one does not.
 */
static int give_up_output(void *baton)
{
    run *me = baton;
    if (au_signals_ending() == AU_END_NONE) {
        return 0;
    }
    au_sys *sys = au_platform_sys();
    uint64_t now = sys->ops->now(sys);
    if (me->ending_since_ns == 0) {
        me->ending_since_ns = now;
    }
    return au_signals_count() > 1 || now - me->ending_since_ns > READER_PATIENCE_NS;
}

static au_error *begin_stream(run *me)
{
    const au_options *options = me->options;
    au_emit_end end = au_emit_header(me->emit);
    if (end == AU_EMIT_GOES_ON) {
        end = au_emit_metadata(me->emit, "austin", "%s", AU_VERSION);
    }
    if (end == AU_EMIT_GOES_ON) {
        end = au_emit_metadata(me->emit, "interval", "%" PRIu64, options->interval_us);
    }
    if (end == AU_EMIT_GOES_ON) {
        end = au_emit_metadata(me->emit, "mode", "%s", options->mode == AU_MODE_CPU ? "cpu" : "wall");
    }
    return end == AU_EMIT_NO_MEMORY ? au_error_memory() : NULL;
}

/* The start of the stream is written at once, so that an output that cannot take it ends us before anything starts. */
static au_error *begin_stream_at_once(run *me)
{
    au_error *error = begin_stream(me);
    if (!error && au_output_flush(me->output)) {
        au_output *output = me->output;
        me->output = NULL;
        error = au_output_close(output);
        return error ? error : au_message_not_taken();
    }
    return error;
}

static au_error *open_output(run *me, apr_pool_t *pool)
{
    const au_options *options = me->options;
    au_error *error = au_output_sink_open(options->output, pool, &me->sink);
    if (error) {
        return error;
    }
    au_signals_init(); /* not before: a pipe that waits for its reader is opened under the signals' usual effect */
    au_output_options how = {
        .compress = options->compress, .immediate = options->pipe, .give_up = give_up_output, .baton = me};
    error = au_output_create(&how, me->sink, pool, &me->output);
    if (error) {
        au_error_clear(me->sink->close(me->sink));
        return error;
    }
    me->emit = au_emit_create(AU_MOJO_KEY_LIMIT, push, me);
    if (!me->emit) {
        return au_error_memory();
    }
    return me->sink->occupied ? NULL : begin_stream_at_once(me);
}

/* An interpreter was found: the profile takes the place of what was in the file. A write that fails is found by the
 * first sample. */
static au_error *keep_output(run *me)
{
    au_error *error = au_output_sink_keep(me->sink);
    return error || !me->sink->occupied ? error : begin_stream(me);
}

/* ---- the interpreter ---------------------------------------------------------------------------------------- */

static void show_banner(const run *me)
{
    au_buf out = {0};
    (void)au_words_append(&out,
                          "\n       __\n"
                          "     _|  |_\n"
                          "   _|  |   |_      %saustin %s%s\n"
                          "  |__|_|_|___|     sampling profiler for CPython\n",
                          au_console_bold(&me->words), AU_VERSION, au_console_plain(&me->words));
    au_console_put(&me->words, &out);
    au_buf_deinit(&out);
}

/* The label of a file in metadata: what is not printable ASCII as %XX, since nothing says that a path is UTF-8. */
static au_emit_end label_metadata(run *me, const char *key, const char *label)
{
    au_buf text = {0};
    int failed = 0;
    for (const char *at = label; *at && !failed; at++) {
        unsigned char byte = (unsigned char)*at;
        failed = byte > 0x20 && byte < 0x7F && byte != '%' ? au_buf_append(&text, at, 1)
                                                           : au_words_append(&text, "%%%02X", byte);
    }
    failed = failed || au_buf_append(&text, "", 1);
    au_emit_end end = failed ? AU_EMIT_NO_MEMORY : au_emit_metadata(me->emit, key, "%s", (const char *)text.data);
    au_buf_deinit(&text);
    return end;
}

/* Says in the stream and on stderr which Python it is. A write that fails is found by the first sample. */
static void announce(run *me, const au_python *python)
{
    char version[64], level[64];
    const char *release = au_message_release(python, level, sizeof level);
    au_message_version(python, version, sizeof version);
    (void)au_emit_metadata(me->emit, "python", "%s", version);
    if (release) {
        (void)au_emit_metadata(me->emit, "python_release", "%s", release);
    }
    if (python->other_runtime) {
        (void)label_metadata(me, "other_runtime", python->other_runtime);
    }
    int known = strcmp(version, me->announced) == 0;
    snprintf(me->announced, sizeof me->announced, "%s", version);
    if (known) {
        return; /* found again in the same program, or in another one of that version: no news for the user */
    }

    if (!me->options->pipe) {
        (void)au_write_all(me->words.fd, "\n", 1);
        au_message_say(&me->words, AU_SIGN_SNAKE, "Python version: %s%s%s%s", version, release ? " " : "",
                       release ? release : "", python->free_threaded ? " (free-threaded)" : "");
    }
    if (release) {
        au_message_say(&me->words, AU_SIGN_WARNING,
                       "Python %s is a pre-release (%s): its inner layout may differ from the final one, and so may "
                       "what is sampled.",
                       version, release);
    }
    if (python->other_runtime) {
        au_message_say(&me->words, AU_SIGN_WARNING,
                       "There is a second Python runtime in the process, in %s. Only the one in %s is sampled.",
                       python->other_runtime, python->image ? python->image : "the executable");
    }
}

static au_proc *elsewhere(void *baton, au_proc *proc)
{
    run *me = baton;
    (void)proc;
    return au_target_follow(&me->target, me->options, &me->words);
}

static void found_again(void *baton, const au_python *python)
{
    announce(baton, python);
}

static void say_how_long(const run *me)
{
    if (me->options->exposure_ms && !me->options->pipe) {
        uint64_t ms = me->options->exposure_ms;
        char part[16] = "";
        if (ms % 1000) {
            snprintf(part, sizeof part, ".%03u", (unsigned)(ms % 1000));
        }
        au_message_say(&me->words, AU_SIGN_CLOCK, "Sampling for %" PRIu64 "%s second%s.", ms / 1000, part,
                       ms == 1000 ? "" : "s");
    }
}

static int poll_run(void *baton)
{
    run *me = baton;
    return au_target_poll(&me->target) || au_signals_ending() != AU_END_NONE;
}

/* Ends a launched program in the way in which we are ended. */
static void end_target(run *me)
{
    static const au_stop how[] = {[AU_END_NONE] = AU_STOP_INTERRUPT,
                                  [AU_END_INTERRUPT] = AU_STOP_INTERRUPT,
                                  [AU_END_TERMINATE] = AU_STOP_TERMINATE,
                                  [AU_END_HANGUP] = AU_STOP_HANGUP,
                                  [AU_END_OTHER] = AU_STOP_TERMINATE};
    au_target_end(&me->target, how[au_signals_ending()], &me->words);
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

/* Ends the stream, with the figures if there was a run. The first error of writing, or NULL. */
static au_error *close_stream(run *me, const au_stats *stats, uint64_t *stalls)
{
    if (!me->output) {
        return NULL;
    }
    *stalls = au_output_stalls(me->output);
    if (stats && me->emit && au_emit_ended(me->emit) != AU_EMIT_REFUSED) {
        (void)au_stats_metadata(me->emit, stats, *stalls); /* what fails here is reported by the output itself */
    }
    au_output *output = me->output;
    me->output = NULL;
    return au_output_close(output);
}

/* The exit status of a run that has sampled; ends the target where that is due. */
static int conclude(run *me, au_ran how)
{
    const au_stats *stats = au_engine_stats(me->engine);
    au_ending ending = au_signals_ending();
    uint64_t stalls = 0;
    int status = 0, goes_on = 0;

    au_error *write_error = close_stream(me, stats, &stalls);
    if (ending != AU_END_NONE || how == AU_RAN_EXPOSURE || (how == AU_RAN_SINK && write_error)) {
        status = ending != AU_END_NONE ? ending_status(ending) : EXIT_INTERRUPTED;
        end_target(me);
    } else if (how == AU_RAN_TARGET_GONE || how == AU_RAN_STOPPED) {
        goes_on = au_target_settle(&me->target);
        status = au_target_was_interrupted(&me->target) ? EXIT_INTERRUPTED : 0;
    }
    if (goes_on && !me->options->pipe) {
        au_message_say(&me->words, AU_SIGN_INVADER, "\"%s\" is no Python any more. It goes on as process %" PRId64 ".",
                       me->target.subject.command, me->target.subject.pid);
    }
    if (!me->options->pipe) {
        au_stats_show(&me->words, stats, stalls);
    }
    if (write_error) {
        /* The signal has the last word over a reader that takes nothing any more. */
        int io_status = report_error(me, AU_SIGN_SKULL, write_error);
        return ending != AU_END_NONE ? status : io_status;
    }
    if (how == AU_RAN_SINK && au_emit_ended(me->emit) == AU_EMIT_NO_KEYS) {
        return report_error(me, AU_SIGN_SKULL, au_message_no_keys(&me->target.subject));
    }
    if (how == AU_RAN_SINK && au_emit_ended(me->emit) == AU_EMIT_NO_MEMORY) {
        return report_error(me, AU_SIGN_SKULL, au_error_memory());
    }
    return status;
}

/* A failure after the launch and before the first sample: what was launched is of no use to anybody then. */
static int abandon(run *me, au_failure failure)
{
    uint64_t stalls;
    int status;
    au_ending ending = au_signals_ending();
    au_error_clear(close_stream(me, NULL, &stalls));
    if (ending != AU_END_NONE || au_target_was_interrupted(&me->target)) {
        au_error_clear(failure.error); /* it is what the user wanted */
        status = ending != AU_END_NONE ? ending_status(ending) : EXIT_INTERRUPTED;
    } else {
        status = report(me, failure);
    }
    end_target(me);
    return status;
}

static au_error *find_python(run *me, const au_python **python)
{
    au_error *error;
    while ((error = au_engine_find(me->engine, me->target.proc, python))) {
        error = au_target_reopen(&me->target, me->options, error);
        if (error) {
            return error;
        }
    }
    return NULL;
}

static int sample(run *me)
{
    const au_options *options = me->options;
    au_engine_options how = {.mode = options->mode,
                             .interval_us = options->interval_us,
                             .timeout_ms = options->timeout_ms,
                             .exposure_ns = options->exposure_ms * 1000000,
                             .read_cap = me->read_cap};
    au_error *error = au_engine_create(&how, me->target.sys, au_emit_sink(me->emit), &me->engine);
    if (error) {
        return abandon(me, (au_failure){.error = error, .sign = AU_SIGN_SKULL});
    }
    au_engine_set_poll(me->engine, poll_run, me);
    au_engine_set_found(me->engine, found_again, me);
    if (me->target.sys->ops->caps & AU_CAP_LAUNCHERS) {
        au_engine_set_elsewhere(me->engine, elsewhere, me);
    }

    const au_python *python = NULL;
    error = find_python(me, &python);
    if (error) {
        return abandon(me, au_target_explain(&me->target, options, error));
    }
    error = keep_output(me);
    if (error) {
        return abandon(me, (au_failure){.error = error, .sign = AU_SIGN_SKULL});
    }
    announce(me, python);
    say_how_long(me);

    au_ran ran = AU_RAN_STOPPED;
    error = au_engine_run(me->engine, &ran);
    if (error && error->code == AU_ERR_GONE) {
        au_error_clear(error); /* the end of the target is the usual end of a run */
        error = NULL;
        ran = AU_RAN_TARGET_GONE;
    }
    if (error) {
        uint64_t stalls = 0;
        au_error_clear(close_stream(me, au_engine_stats(me->engine), &stalls));
        return report_error(me, AU_SIGN_SKULL, error);
    }
    return conclude(me, ran);
}

int au_run(const au_options *options, apr_pool_t *pool)
{
    run me = {.options = options};
    au_console_init(&me.words, AU_FD_STDERR);

    au_error *error = read_environment(&me);
    if (error) {
        return report_error(&me, AU_SIGN_SKULL, error);
    }
    int allowed = may_write_to_terminal(&me);
    if (allowed <= 0) {
        return allowed == 0 ? 0 : report_error(&me, AU_SIGN_WARNING, au_message_terminal_refused());
    }
    error = open_output(&me, pool);
    if (error) {
        uint64_t stalls;
        au_error_clear(close_stream(&me, NULL, &stalls));
        au_emit_destroy(me.emit);
        return report_error(&me, AU_SIGN_SKULL, error);
    }
    if (!options->pipe) {
        show_banner(&me);
    }
    au_limits_raise();
    au_failure failure = au_target_open(&me.target, options);
    int status = failure.error ? abandon(&me, failure) : sample(&me);

    au_engine_destroy(me.engine);
    au_target_close(&me.target);
    au_emit_destroy(me.emit);
    return status;
}
