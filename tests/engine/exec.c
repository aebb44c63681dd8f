/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process becomes another Python by exec while it is sampled. From the first pass after it nothing of the old one
 * may be shown, though the new one has other things at the very same addresses: no stack, no code object, no name, no
 * thread state. The new one is found by itself and sampled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/layouts.h"
#include "tests/engine/suites.h"
#include "tests/engine/world.h"

enum { EXEC_AT = 12, EXEC_MOMENTS = 11, PASSES = 80, PAUSE_SLEEPS = 6 };

typedef struct becoming {
    world *old, *new;
    const char *next;             /* label of the build that comes */
    int nth;                      /* 0: at the addresses of the old one */
    int pause;                    /* sleeps until the new one is there; 0: at once */
    uint64_t exec_at;             /* pass at whose end the exec is */
    size_t old_samples, found_at; /* samples by the time when the new one is announced */
    unsigned found, found_minor;
    int done;
} becoming;

static w_run run;

/* Two threads in code of that file; the names of all things tell whose they are. */
static void populate(world *w, const char *file, const char *prefix)
{
    char name[32];
    w_frame frames[3];
    w_thread *t = world_basic(w);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s_f%d", prefix, i);
        frames[i] = (w_frame){world_code(w, file, name, 10 * i + 1, 30), 2 + i, i == 1 ? W_GENERATOR : W_PLAIN, 0};
    }
    world_stack(w, t, frames, 3);
    w_thread *second = world_thread(w, w->interps, UINT64_C(0x7fff22340000), 4400);
    world_stack(w, second, frames, 2);
    world_threading(w, w->interps);
    snprintf(name, sizeof name, "%s_main", prefix);
    world_name(w, w->interps, t, name, W_NAME_VALUES);
    snprintf(name, sizeof name, "%s_second", prefix);
    world_name(w, w->interps, second, name, W_NAME_DICT);
}

static void new_one(becoming *b)
{
    b->new = world_create_in(b->old->image, b->next, b->nth, 1, "/opt/python");
    populate(b->new, "/srv/new.py", "new");
}

static int on_pass(w_run *r)
{
    becoming *b = r->baton;
    if (r->passes == b->exec_at) {
        b->old_samples = r->count;
        (void)au_image_remove_thread(b->old->image, 4400); /* exec ends all threads but the one, which takes the pid */
        au_image_exec(b->old->image);
        b->done = 1;
        if (!b->pause) {
            new_one(b);
        }
    }
    return 0;
}

static void on_sleep(void *baton, au_image *image, uint64_t deadline_ns)
{
    becoming *b = baton;
    (void)image;
    (void)deadline_ns;
    if (b->done && !b->new && --b->pause == 0) {
        new_one(b);
    }
}

static void announced(void *baton, const au_python *python)
{
    becoming *b = baton;
    b->found++;
    b->found_minor = python->minor;
    b->found_at = run.count;
}

static void become(int from, int to, int nth, int pause, unsigned moment)
{
    becoming b = {.next = world_builds[to], .nth = nth, .pause = pause, .exec_at = EXEC_AT + moment};
    au_buf want = {0};
    b.old = world_create(world_builds[from]);
    populate(b.old, "/srv/old.py", "old");
    w_run_init(&run, b.old);
    run.on_pass = on_pass;
    run.baton = &b;
    au_image_set_sleep_hook(b.old->image, on_sleep, &b);
    run.options.max_passes = PASSES;
    ck_assert_ptr_null(w_run_find(&run));
    au_engine_set_found(run.engine, announced, &b);
    w_run_go(&run, PASSES);
    ck_assert_uint_eq(b.found, 1); /* the first one was the caller's own finding */
    ck_assert_uint_eq(b.found_minor, b.new->minor);
    ck_assert_uint_eq(b.found_at, b.old_samples);
    ck_assert_msg(b.new != NULL, "%s never became %s", b.old->label, b.next);
    ck_assert_int_eq((int)run.how, AU_RAN_EXPOSURE);
    ck_assert_uint_eq(run.stats.rediscoveries, 1);
    ck_assert_uint_eq(run.python->minor, b.new->minor);
    ck_assert_int_eq(run.python->free_threaded, b.new->free_threaded);
    ck_assert_str_eq(run.python->image, "/opt/python");
    ck_assert_uint_eq(b.old_samples, b.exec_at * 2);
    uint64_t last_old = 0;
    size_t named = 0;
    for (size_t i = 0; i < run.count; i++) {
        const w_sample *s = &run.samples[i];
        int is_new = i >= b.old_samples;
        const char *other = is_new ? "old" : "new";
        if (strstr(s->stack, other) || strstr(s->thread, other)) {
            ck_abort_msg("%s to %s: sample %zu, %s exec, is of '%s' in %s", b.old->label, b.next, i,
                         is_new ? "after" : "before", s->thread, s->stack);
        }
        ck_assert_uint_eq(s->flags & (AU_SAMPLE_TORN | AU_SAMPLE_TRUNCATED), 0);
        if (!is_new) {
            last_old = s->state_id > last_old ? s->state_id : last_old;
            continue;
        }
        ck_assert_uint_gt(s->state_id, last_old);
        if (i < b.old_samples + 2) {
            ck_assert_uint_eq(s->flags & AU_SAMPLE_SAME, 0);
        }
        named += !strcmp(s->thread, "new_main") || !strcmp(s->thread, "new_second");
        ck_assert_ptr_nonnull(strstr(s->stack, "/srv/new.py:new_f"));
    }
    /* the passes up to the moment when the exec is noticed are lost, the others are not */
    ck_assert_uint_gt(run.count - b.old_samples, PASSES - b.exec_at);
    /* it is noticed by the process' generation, long before failing passes alone would tell (LOST_MS of engine.c) */
    ck_assert_uint_lt(run.samples[b.old_samples].time_us, pause ? 150000 : 15000);
    ck_assert_uint_gt(named, (run.count - b.old_samples) / 2);
    world_expect(b.new, b.new->threads->next, &want);
    const w_sample *last = &run.samples[run.count - 1];
    if (strcmp(last->thread, "new_main") != 0) {
        last--;
    }
    ck_assert_str_eq(last->thread, "new_main");
    ck_assert_str_eq(last->stack, (const char *)want.data);
    w_run_deinit(&run);
    au_buf_deinit(&want);
    ck_assert_uint_eq(au_image_open_handles(b.old->image), 0);
    world_destroy(b.new, 1);
    world_destroy(b.old, 0);
}

/* Each build becomes each of another version, elsewhere in memory and at the same addresses, at every moment between
 * two questions for the process' state (POLL_MS of engine.c). */
START_TEST(at_once)
{
    for (int to = 0; to < WORLD_BUILDS; to++) {
        if (strncmp(world_builds[to], world_builds[_i], 4) != 0) {
            for (unsigned moment = 0; moment < EXEC_MOMENTS; moment++) {
                become(_i, to, 0, 0, moment);
                become(_i, to, 1, 0, moment);
            }
        }
    }
}
END_TEST

/* The loader works for a while before there is a Python. */
START_TEST(after_a_while)
{
    for (int to = 0; to < WORLD_BUILDS; to++) { /* the same build, too */
        become(_i, to, to == _i ? 0 : to % 2, PAUSE_SLEEPS, (unsigned)to);
    }
}
END_TEST

/* Exec into what is no Python ends the run, and nothing is shown of what was. */
START_TEST(no_python)
{
    becoming b = {.next = world_builds[_i], .pause = 1000000, .exec_at = EXEC_AT};
    b.old = world_create(world_builds[_i]);
    populate(b.old, "/srv/old.py", "old");
    w_run_init(&run, b.old);
    run.on_pass = on_pass;
    run.baton = &b;
    au_image_set_sleep_hook(b.old->image, on_sleep, &b);
    w_run_go(&run, 1000);
    ck_assert_int_eq((int)run.how, AU_RAN_TARGET_GONE);
    ck_assert_uint_eq(run.count, b.old_samples);
    w_run_deinit(&run);
    world_destroy(b.old, 0);
}
END_TEST

TCase *au_exec_case(void)
{
    TCase *tcase = tcase_create("exec");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, at_once, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, after_a_while, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, no_python, 0, WORLD_BUILDS);
    return tcase;
}
