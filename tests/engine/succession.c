/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters and whole runtimes that come where another one has been, to the last byte. */
#include <stdlib.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"
#include "tests/engine/world_internal.h"

static world *w;
static w_thread *t;
static w_run run;

static void begin(int build)
{
    w = world_create(world_builds[build]);
    t = world_basic(w);
    w_run_init(&run, w);
}

static void end(void)
{
    w_run_deinit(&run);
    ck_assert_uint_eq(au_image_open_handles(w->image), 0);
    world_destroy(w, 0);
}

/*
 * A sub-interpreter ends, and the next one is where it was, to the last byte: thread state, code objects with their
 * numbers and strings, what it counts. Only its id is another one.
 */
typedef struct successor {
    w_interp *interp;
    w_code *code;
    int moment; /* pieces that are still read after the 20th pass before it comes; -1: none any more */
} successor;

static void succeed(const successor *next)
{
    const au_layout *l = &w->l;
    uint32_t counter = w->next_version;
    uint64_t generation =
        l->interp_code_generation == AU_ABSENT ? 0 : world_get(w, next->interp->addr + l->interp_code_generation);
    uint64_t version = l->code_version == AU_ABSENT ? 0 : world_get(w, next->code->addr + l->code_version);
    world_code_remake(w, next->code, "/srv/younger.py", "youn", 1, 1);
    if (l->code_version != AU_ABSENT) {
        world_int(w, next->code->addr + l->code_version, (uint32_t)version);
    }
    if (l->interp_code_generation != AU_ABSENT) {
        world_word(w, next->interp->addr + l->interp_code_generation, generation);
    }
    w->next_version = counter;
    world_count_code(w, next->interp, NULL);
    world_word(w, next->interp->addr + l->interp_id, 2);
}

static int succeed_between(w_run *r)
{
    successor *next = r->baton;
    if (r->passes == 20 && next->moment-- == 0) {
        succeed(next);
    }
    return 0;
}

static void succeed_within(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    successor *next = baton;
    (void)image;
    (void)serial;
    (void)addr;
    (void)len;
    if (run.passes >= 20 && next->moment >= 0 && next->moment-- == 0) {
        succeed(next);
    }
}

enum { SUCCESSION_MOMENTS = 16 };

START_TEST(interpreter_in_its_place)
{
    int moment = _i % SUCCESSION_MOMENTS;
    begin(_i / SUCCESSION_MOMENTS);
    successor next = {world_interp(w, 1), world_code(w, "/srv/elderly.py", "elde", 1, 30), moment};
    w_thread *inner = world_thread(w, next.interp, t->ident, t->tid);
    w_frame frame = {next.code, 3, W_PLAIN, 0};
    world_stack(w, inner, &frame, 1);
    run.on_pass = succeed_between;
    run.baton = &next;
    au_image_set_hook(w->image, succeed_within, &next);
    w_run_go(&run, 60);
    au_image_set_hook(w->image, NULL, NULL);
    size_t before = 0, after = 0;
    for (size_t i = 0; i < run.count; i++) {
        const w_sample *sample = &run.samples[i];
        if (sample->iid == 0 || (sample->flags & AU_SAMPLE_TORN)) {
            continue;
        }
        int elder = strstr(sample->stack, "elde") != NULL, younger = strstr(sample->stack, "youn") != NULL;
        ck_assert_msg(elder != younger && sample->iid == (elder ? 1 : 2), "%s: %lld has %s", w->label,
                      (long long)sample->iid, sample->stack);
        ck_assert_int_eq(younger, after || younger); /* never back */
        before += (size_t)elder;
        after += (size_t)younger;
    }
    if (moment == 0) { /* seen at the heads of the lists, before a stack is read */
        ck_assert_uint_eq(before, 20);
        ck_assert_uint_eq(after, 40);
    }
    ck_assert_uint_ge(before, 20);
    ck_assert_uint_le(before, 21);
    ck_assert_uint_ge(after, 37);
    end();
}
END_TEST

/* The runtime is finalized and initialized again: the main interpreter is another one, with the same id and address. */
static int end_runtime(w_run *r)
{
    if (r->passes == 20) {
        world_word(w, w->runtime + w->l.runtime_interpreters_head, 0);
        world_word(w, t->addr + w->l.tstate_interp, 0);
    }
    return 0;
}

static void begin_again(void *baton, au_image *image, uint64_t deadline_ns)
{
    successor *next = baton;
    (void)image;
    (void)deadline_ns;
    if (run.passes == 20 && ++next->moment == 40) {
        succeed(next);
        world_word(w, next->interp->addr + w->l.interp_id, 0);
        world_word(w, t->addr + w->l.tstate_interp, next->interp->addr);
        world_word(w, w->runtime + w->l.runtime_interpreters_head, next->interp->addr);
    }
}

START_TEST(runtime_begun_again)
{
    begin(_i);
    successor next = {w->interps, world_code(w, "/srv/elderly.py", "elde", 1, 30), 0};
    w_frame frame = {next.code, 3, W_PLAIN, 0};
    world_stack(w, t, &frame, 1);
    run.on_pass = end_runtime;
    run.baton = &next;
    au_image_set_sleep_hook(w->image, begin_again, &next);
    w_run_go(&run, 60);
    au_image_set_sleep_hook(w->image, NULL, NULL);
    ck_assert_uint_gt(run.count, 50);
    for (size_t i = 0; i < run.count; i++) {
        const char *name = i < 20 ? "elde" : "youn";
        ck_assert_msg(strstr(run.samples[i].stack, name) != NULL, "%s: sample %zu has %s", w->label, i,
                      run.samples[i].stack);
    }
    end();
}
END_TEST

/*
 * The same, so fast that there is always an interpreter when it is looked for: what the runtime says of itself while it
 * ends and begins, and moving stacks meanwhile, are all there is to be seen.
 */
static int begin_again_unseen(w_run *r)
{
    successor *next = r->baton;
    uint32_t initialized = w->l.runtime_finalizing - (w->minor == 10 ? 4 : 8);
    if (r->passes == 1) {
        world_int(w, w->runtime + initialized, 1);
    } else if (r->passes == 20) {
        world_int(w, w->runtime + initialized, 0);
        world_word(w, w->runtime + w->l.runtime_finalizing, t->addr);
    } else if (r->passes == 36) {
        succeed(next);
        world_word(w, next->interp->addr + w->l.interp_id, 0);
        world_int(w, w->runtime + initialized, next->moment ? 1 : 0);
        world_word(w, w->runtime + w->l.runtime_finalizing, 0);
    }
    if (r->passes >= 20 && r->passes < 50) {
        if (t->count > 2) {
            world_pop(w, t);
        } else {
            world_push(w, t, (w_frame){next->code, 4, W_PLAIN, 0});
        }
    }
    return 0;
}

START_TEST(runtime_begun_again_unseen)
{
    begin(_i / 2);
    successor next = {w->interps, world_code(w, "/srv/elderly.py", "elde", 1, 30), _i % 2};
    w_frame frame = {next.code, 3, W_PLAIN, 0};
    world_stack(w, t, &frame, 1);
    run.on_pass = begin_again_unseen;
    run.baton = &next;
    w_run_go(&run, 100);
    ck_assert_uint_gt(run.count, 80);
    for (size_t i = 0; i < run.count; i++) {
        const char *name = i < 36 ? "elde" : "youn";
        if (i >= 36 && i < 41) {
            continue; /* the runtime is looked at each 4 ms */
        }
        ck_assert_msg(strstr(run.samples[i].stack, name) != NULL || (run.samples[i].flags & AU_SAMPLE_TORN),
                      "%s: sample %zu has %s", w->label, i, run.samples[i].stack);
    }
    ck_assert_ptr_nonnull(strstr(run.samples[run.count - 1].stack, "youn"));
    end();
}
END_TEST

/*
 * And so fast that not even that is seen: what the interpreter counts of its code objects is less than it was, and that
 * tells, even where the new code object has the number of the old one. Where nothing is counted, that number tells.
 */
static int begin_again_with_less(w_run *r)
{
    successor *next = r->baton;
    if (r->passes == 20) {
        succeed(next);
        world_word(w, next->interp->addr + w->l.interp_id, 0);
        w->next_version -= 20;
        world_count_code(w, next->interp, NULL);
        if (w->l.interp_code_generation != AU_ABSENT) {
            world_word(w, next->interp->addr + w->l.interp_code_generation, 3);
        } else if (w->l.code_version != AU_ABSENT && (w->minor != 13 || w->free_threaded)) {
            world_int(w, next->code->addr + w->l.code_version, w->next_version);
        }
    }
    return 0;
}

START_TEST(runtime_begun_again_tells_by_its_count)
{
    begin(_i / 2);
    successor next = {w->interps, world_code(w, "/srv/elderly.py", "elde", 1, 30), 0};
    /* 3.13: two code objects say where it is counted */
    w_frame frames[] = {{world_code(w, "/srv/outer.py", "outer", 1, 30), 3, W_PLAIN, 0}, {next.code, 3, W_PLAIN, 0}};
    world_stack(w, t, frames, 2);
    run.on_pass = begin_again_with_less;
    run.baton = &next;
    if (_i % 2) { /* flat out nothing is asked for as it was the last time */
        run.options.interval_us = 0;
    }
    w_run_go(&run, 60);
    ck_assert_uint_gt(run.count, 50);
    for (size_t i = 0; i < run.count; i++) {
        const char *name = i < 20 ? "elde" : "youn";
        ck_assert_msg(i == 20 || strstr(run.samples[i].stack, name) || (run.samples[i].flags & AU_SAMPLE_TORN),
                      "%s: sample %zu has %s", w->label, i, run.samples[i].stack);
    }
    ck_assert_ptr_nonnull(strstr(run.samples[run.count - 1].stack, "youn"));
    end();
}
END_TEST

Suite *au_succession_suite(void)
{
    Suite *suite = suite_create("succession");
    TCase *tcase = tcase_create("succession");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, runtime_begun_again, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, runtime_begun_again_unseen, 0, WORLD_BUILDS * 2);
    tcase_add_loop_test(tcase, runtime_begun_again_tells_by_its_count, 0, WORLD_BUILDS * 2);
    tcase_add_loop_test(tcase, interpreter_in_its_place, 0, WORLD_BUILDS * SUCCESSION_MOMENTS);
    suite_add_tcase(suite, tcase);
    return suite;
}
