/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole engine on an invented tracee whose memory is changed: before it is looked for, while it is, and between any
 * two pieces of a batch. Input: one byte chooses the build, one the shape, then changes of 12 bytes each:
 *
 *     before which piece (2 bytes, 0xffff: before anything), where (2: what structure and which byte of it), value (8)
 *
 * Whatever it holds, nothing may crash or hang, and the counters must add up.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A fuzz target is one source file; the builder of invented tracees is the engine tests'. */
#include "tests/engine/layouts.c"       /* NOLINT(bugprone-suspicious-include) */
#include "tests/engine/world.c"         /* NOLINT(bugprone-suspicious-include) */
#include "tests/engine/world_module.c"  /* NOLINT(bugprone-suspicious-include) */
#include "tests/engine/world_objects.c" /* NOLINT(bugprone-suspicious-include) */
#include "tests/engine/world_run.c"     /* NOLINT(bugprone-suspicious-include) */
#include "tests/engine/world_threads.c" /* NOLINT(bugprone-suspicious-include) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHANGE = 12, PLACES = 40, BEFORE = 0xffff };

typedef struct state {
    world *w;
    const uint8_t *changes;
    size_t left;
    struct {
        au_addr at;
        size_t len;
    } places[PLACES];
    size_t place_count;
    uint64_t pieces, samples, torn, truncated;
} state;

static void place(state *s, au_addr at, size_t len)
{
    if (at && s->place_count < PLACES) {
        s->places[s->place_count].at = at;
        s->places[s->place_count++].len = len;
    }
}

static unsigned half(const uint8_t *p)
{
    return (unsigned)p[0] | (unsigned)p[1] << 8;
}

static void apply(state *s, const uint8_t *change)
{
    unsigned where = half(change + 2);
    size_t n = where % s->place_count;
    size_t at = (size_t)(where / PLACES) * 4 % s->places[n].len;
    uint64_t value;
    memcpy(&value, change + 4, sizeof value);
    uint8_t *to = au_image_at(s->w->image, s->places[n].at + at, 8);
    if (!to) {
        return;
    }
    uint64_t was;
    memcpy(&was, to, 8);
    switch (value >> 62) { /* plain bytes, a difference, a pointer to a structure, a flipped bit */
    case 0:
        break;
    case 1:
        value = was + (uint64_t)((int64_t)(value << 40) >> 40);
        break;
    case 2:
        value = s->places[value % s->place_count].at + (value >> 8 & 0x3f8);
        break;
    default:
        value = was ^ UINT64_C(1) << (value & 63);
    }
    memcpy(to, &value, 8);
}

static void moved(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    state *s = baton;
    (void)image;
    (void)serial;
    (void)addr;
    (void)len;
    s->pieces++;
    while (s->left && half(s->changes) <= s->pieces) {
        apply(s, s->changes);
        s->changes += CHANGE;
        s->left--;
    }
    if (s->pieces > 20000000) {
        abort(); /* hangs */
    }
}

static int seen(w_run *run, const au_sample *sample)
{
    state *s = run->baton;
    s->samples++;
    s->torn += (sample->flags & AU_SAMPLE_TORN) != 0;
    s->truncated += (sample->flags & AU_SAMPLE_TRUNCATED) != 0;
    must(sample->thread != NULL && sample->frame_count < 1000000, "sample");
    for (size_t i = 0; i < sample->frame_count; i++) {
        must(strlen(sample->frames[i]->file) <= 16384 && strlen(sample->frames[i]->scope) <= 16384, "location");
    }
    return 0;
}

static void places_of(state *s, w_thread *t)
{
    world *w = s->w;
    const au_layout *l = &w->l;
    place(s, t->addr, 512);
    for (size_t i = 0; i < t->count; i++) {
        place(s, t->frames[i].addr, 120);
    }
    place(s, t->cframe, 16);
    place(s, t->chunk_count ? t->chunks[0].addr : 0, 512);
    place(s, t->object ? t->object - 64 : 0, 256);
    for (const w_code *c = w->codes; c; c = c->next) {
        place(s, c->addr, 256);
        place(s, c->scope_str, 80);
        place(s, c->table, 64);
    }
    place(s, w->runtime, l->minor >= 13 ? 1024 : 128);
    place(s, w->interps->addr + l->interp_threads_head, 8);
    place(s, w->interps->addr + l->interp_next, 16);
    place(s, w->interps->addr + l->interp_modules, 8);
    place(s, w->interps->active, 64);
    place(s, w->interps->keys, 64);
    place(s, w->code_type, 64);
    place(s, w->thread_type, 1024);
    place(s, w->thread_keys, 128);
    place(s, w->heap - 4096, 4096);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    state s = {.changes = data + 2, .left = (size - 2) / CHANGE};
    w_run run;
    s.w = world_create(world_builds[data[0] % WORLD_BUILDS]);
    w_thread *t = world_basic(s.w);
    w_frame frames[6] = {{0}};
    for (int i = 0; i < 6; i++) {
        char name[8] = {'f', (char)('0' + i)};
        const w_code *code = i < 3 ? world_code(s.w, "/srv/a.py", name, 10 * i + 1, 30) : frames[i - 3].code;
        frames[i] = (w_frame){code, 1 + 3 * i, (data[1] >> i & 1) ? W_GENERATOR : W_PLAIN, i % 3};
    }
    if (data[1] & 64) {
        frames[4].owner = W_SHIM;
    }
    world_stack(s.w, t, frames, 6);
    world_threading(s.w, s.w->interps);
    world_name(s.w, s.w->interps, t, "Name", data[1] & 128 ? W_NAME_DICT : W_NAME_VALUES);
    places_of(&s, t);
    while (s.left && half(s.changes) == BEFORE) {
        apply(&s, s.changes);
        s.changes += CHANGE;
        s.left--;
    }
    w_run_init(&run, s.w);
    run.options.timeout_ms = 3;
    run.options.max_passes = 4;
    run.options.exposure_ns = 2000000000;
    run.on_sample = seen;
    run.baton = &s;
    au_image_set_hook(s.w->image, moved, &s);
    au_error *error = w_run_find(&run);
    if (error) {
        au_error_clear(error);
    } else {
        error = au_engine_run(run.engine, &run.how);
        const au_stats *stats = au_engine_stats(run.engine);
        must(error == NULL, "run");
        must(stats->samples == s.samples && stats->torn == s.torn && stats->truncated == s.truncated, "counters");
        must(stats->errors <= s.torn + s.truncated + stats->unreadable, "errors");
    }
    w_run_deinit(&run);
    world_destroy(s.w, 0);
    return 0;
}
