/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records a live run for tests/engine/recorded.c:  au_record PID LOG PROVENANCE
 * Attaches through the recorder, finds the interpreter, makes a few passes, saves the log, and prints the last stack of
 * each thread, one line each: IID|THREAD|FILE|SCOPE|LINE|LINE_END|COLUMN|COLUMN_END|FILE|...
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "platform/fake/log.h"
#include "platform/fake/recorder.h"
#include "platform/platform.h"

enum { PASSES = 3 };

static au_engine *engine;

static int print_sample(au_sink *sink, const au_sample *s)
{
    (void)sink;
    if (au_engine_stats(engine)->passes + 1 < PASSES) { /* whole ones, before this */
        return 0;
    }
    printf("%lld|%s", (long long)s->iid, s->thread);
    for (size_t i = 0; i < s->frame_count; i++) {
        const au_location *l = s->frames[i];
        printf("|%s|%s|%u|%u|%u|%u", l->file, l->scope, l->line, l->line_end, l->column, l->column_end);
    }
    putchar('\n');
    return 0;
}

static int failed(au_error *error)
{
    if (!error) {
        return 0;
    }
    fprintf(stderr, "au_record: %s (%s)\n", error->message, error->cause ? error->cause : "");
    au_error_clear(error);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: au_record PID LOG PROVENANCE\n");
        return 64;
    }
    au_recorder *recorder = au_recorder_create(au_platform_sys(), argv[3]);
    if (!recorder) {
        return 4;
    }
    au_sys *sys = au_recorder_sys(recorder);
    au_proc *proc;
    const au_python *python;
    au_ran how;
    au_sink sink = {print_sample, NULL};
    au_engine_options options = {.interval_us = 2000, .timeout_ms = 2000, .max_passes = PASSES, .random_seed = 1};
    if (failed(sys->ops->open(sys, atoll(argv[1]), AU_WANT_READ, &proc)) ||
        failed(au_engine_create(&options, sys, &sink, &engine)) || failed(au_engine_find(engine, proc, &python)) ||
        failed(au_engine_run(engine, &how))) {
        return 1;
    }
    au_engine_destroy(engine);
    sys->ops->close(proc);
    int bad = au_recorder_failed(recorder) || failed(au_log_save(au_recorder_log(recorder), argv[2]));
    au_recorder_destroy(recorder);
    return bad;
}
