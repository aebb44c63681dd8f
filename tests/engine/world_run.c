/* SPDX-License-Identifier: Apache-2.0 */
/* What must come out of an invented CPython, and the engine run on it. */
#include "tests/engine/world_internal.h"

/* ---- what must come out ---------------------------------------------------------------------------------------- */

static void append(au_buf *out, const char *text)
{
    must(au_buf_append(out, text, strlen(text)) == 0, "append");
}

static void append_place(au_buf *out, const char *file, const char *scope, const uint32_t n[4])
{
    char numbers[64];
    if (out->len) {
        append(out, ";");
    }
    append(out, file);
    append(out, ":");
    append(out, scope);
    snprintf(numbers, sizeof numbers, ":%u:%u:%u:%u", n[0], n[1], n[2], n[3]);
    append(out, numbers);
}

void world_expect(world *w, const w_thread *t, au_buf *out)
{
    size_t innermost = t->count;
    while (innermost && t->frames[innermost - 1].frame.owner == W_SHIM) {
        innermost--;
    }
    out->len = 0;
    for (size_t i = 0; i < innermost; i++) {
        const w_frame *f = &t->frames[i].frame;
        if (f->owner == W_SHIM) {
            continue;
        }
        int unit = f->unit;
        if (w->minor >= 11 && unit < 1 && f->owner == W_PLAIN && i + 1 < innermost) {
            continue; /* not begun and not the leaf */
        }
        uint32_t line = (uint32_t)w__line_of(w, f->code->first, unit);
        uint32_t n[4] = {line, 0, 0, 0};
        if (unit < 0 || (w->minor >= 11 && unit < 1)) {
            n[0] = (uint32_t)f->code->first;
            n[1] = w->minor >= 11 ? n[0] : 0;
        } else if (w->minor >= 11) {
            n[1] = line;
            switch (unit % 4) {
            case 0:
                n[2] = (uint32_t)(unit % 100 + 1);
                n[3] = (uint32_t)(unit % 100 + 8);
                break;
            case 1:
                n[1] = line + 2;
                n[2] = 10;
                n[3] = 300;
                break;
            case 2:
                break;
            default:
                n[0] = n[1] = 0;
            }
        }
        append_place(out, f->code->file, f->code->scope, n);
    }
    must(au_buf_append(out, "", 1) == 0, "append");
}

void w_stack_text(const au_sample *sample, au_buf *out)
{
    out->len = 0;
    for (size_t i = 0; i < sample->frame_count; i++) {
        const au_location *at = sample->frames[i];
        const uint32_t n[4] = {at->line, at->line_end, at->column, at->column_end};
        append_place(out, at->file, at->scope, n);
    }
    must(au_buf_append(out, "", 1) == 0, "append");
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static int take_sample(au_sink *sink, const au_sample *sample)
{
    w_run *run = (w_run *)sink;
    if (run->on_sample) {
        return run->on_sample(run, sample);
    }
    run->samples = grown(run->samples, &run->cap, run->count + 1, sizeof *run->samples);
    au_buf text = {0};
    w_stack_text(sample, &text);
    run->samples[run->count++] = (w_sample){.thread = copy_text(sample->thread),
                                            .stack = (char *)text.data,
                                            .iid = sample->iid,
                                            .state_id = sample->state_id,
                                            .time_us = sample->time_us,
                                            .flags = sample->flags,
                                            .frames = sample->frame_count};
    return 0;
}

static int take_pass(au_sink *sink, uint64_t time_us)
{
    w_run *run = (w_run *)sink;
    run->passes++;
    run->time_us += time_us;
    return run->on_pass ? run->on_pass(run) : 0;
}

void w_run_init(w_run *run, world *w)
{
    memset(run, 0, sizeof *run);
    run->sink = (au_sink){take_sample, take_pass};
    run->options = (au_engine_options){.interval_us = 1000, .timeout_ms = 100, .random_seed = 7};
    run->w = w;
}

void w_run_deinit(w_run *run)
{
    au_engine_destroy(run->engine);
    if (run->proc) {
        run->proc->ops->close(run->proc);
    }
    for (size_t i = 0; i < run->count; i++) {
        free(run->samples[i].thread);
        free(run->samples[i].stack);
    }
    free(run->samples);
}

au_error *w_run_find(w_run *run)
{
    au_sys *sys = run->sys ? run->sys : au_image_sys(run->w->image);
    au_error *error = au_engine_create(&run->options, sys, &run->sink, &run->engine);
    if (!error) {
        error = sys->ops->open(sys, 4321, AU_WANT_READ, &run->proc);
    }
    return error ? error : au_engine_find(run->engine, run->proc, &run->python);
}

void w_run_go(w_run *run, uint64_t passes)
{
    if (!run->engine) {
        run->options.max_passes = passes;
        au_error *error = w_run_find(run);
        if (error) {
            fprintf(stderr, "world: %s: %s: %s\n", run->w->label, error->message, error->cause ? error->cause : "");
            abort();
        }
    }
    au_error *error = au_engine_run(run->engine, &run->how);
    must(error == NULL, "run");
    run->stats = *au_engine_stats(run->engine);
    must(run->stats.late <= run->stats.passes, "late passes are passes");
}
