/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that stand but for the innermost instruction (standing.c), and the counter of code objects (counter.c). */
#include <stdlib.h>
#include <string.h>

#include "engine/stack.h"
#include "tests/engine/suites.h"
#include "tests/engine/world.h"
#include "tests/engine/world_internal.h"

enum { DEPTH = 6, UNITS = 50, PASSES = 600 };

typedef struct still {
    world *w;
    w_thread *t;
    w_code *codes[DEPTH + 1];
    size_t samples, repeated, pieces; /* pieces since the last sample */
    size_t of_sample[PASSES];         /* pieces that each one took */
    void (*change)(struct still *s);
    au_buf before;
} still;

static int on_sample(w_run *run, const au_sample *sample)
{
    still *s = run->baton;
    au_buf wanted = {0};
    au_buf got = {0};
    world_expect(s->w, s->t, &wanted);
    w_stack_text(sample, &got);
    ck_assert_str_eq((const char *)got.data, (const char *)wanted.data);
    /* told to be the same if, and only if, it is */
    int same = s->before.data && strcmp((const char *)s->before.data, (const char *)wanted.data) == 0;
    ck_assert_int_eq((sample->flags & AU_SAMPLE_SAME) != 0, same);
    ck_assert_uint_eq(sample->flags & (AU_SAMPLE_TORN | AU_SAMPLE_TRUNCATED), 0);
    au_buf_deinit(&s->before);
    s->before = wanted;
    au_buf_deinit(&got);
    s->repeated += (size_t)same;
    if (s->samples < PASSES) {
        s->of_sample[s->samples] = s->pieces;
    }
    s->pieces = 0;
    s->samples++;
    return 0;
}

static int on_pass(w_run *run)
{
    still *s = run->baton;
    if (s->change) {
        s->change(s);
    }
    return 0;
}

static void count_piece(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    still *s = baton;
    (void)image, (void)serial, (void)addr, (void)len;
    s->pieces++;
}

static void still_init(still *s, int build)
{
    memset(s, 0, sizeof *s);
    s->w = world_create(world_builds[build]);
    w_interp *interp = world_interp(s->w, 0);
    s->t = world_thread(s->w, interp, 0x7f0000001000, 4711);
    w_frame frames[DEPTH];
    for (int i = 0; i <= DEPTH; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        s->codes[i] = world_code(s->w, "a.py", name, 10 * i + 1, UNITS);
    }
    for (int i = 0; i < DEPTH; i++) {
        frames[i] = (w_frame){s->codes[i], 5 + i, W_PLAIN, 0};
    }
    world_stack(s->w, s->t, frames, DEPTH);
}

static void go(still *s, w_run *run)
{
    w_run_init(run, s->w);
    run->on_sample = on_sample;
    run->on_pass = on_pass;
    run->baton = s;
    run->options.max_passes = PASSES;
    au_error *error = w_run_find(run);
    ck_assert_ptr_null(error);
    au_image_set_hook(s->w->image, count_piece, s);
    w_run_go(run, PASSES);
    au_image_set_hook(s->w->image, NULL, NULL);
    ck_assert_uint_eq(s->samples, PASSES);
    ck_assert_uint_eq(run->stats.errors, 0);
}

static void still_deinit(still *s)
{
    au_buf_deinit(&s->before);
    world_destroy(s->w, 0);
}

static int by_number(const void *a, const void *b)
{
    const size_t *x = a;
    const size_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* The current frame, two looks, the thread state, and a word that proves all code, where a version has such a word. */
START_TEST(few_pieces)
{
    still s;
    w_run run;
    still_init(&s, _i);
    go(&s, &run);
    qsort(s.of_sample, PASSES, sizeof s.of_sample[0], by_number);
    size_t usual = s.of_sample[PASSES / 2];
    ck_assert_uint_ge(s.repeated, PASSES - 10);
    if (s.w->minor >= 14 || (s.w->minor == 13 && !s.w->free_threaded)) {
        ck_assert_uint_eq(usual, 5);
    } else {
        ck_assert_uint_le(usual, s.w->minor == 10 ? 2 * DEPTH + 8 : DEPTH + 8);
    }
    w_run_deinit(&run);
    still_deinit(&s);
}
END_TEST

static void next_unit(still *s)
{
    if (s->samples % 3) { /* so that some are repeats */
        world_set_unit(s->w, s->t, s->t->count - 1, 2 + (int)(s->samples * 7 % (UNITS - 2)));
    }
}

START_TEST(innermost_goes_on)
{
    still s;
    w_run run;
    still_init(&s, _i);
    s.change = next_unit;
    go(&s, &run);
    ck_assert_uint_ge(s.repeated, PASSES / 4);
    w_run_deinit(&run);
    still_deinit(&s);
}
END_TEST

/* One of the frames, from the outermost on: other code, another instruction, one more, one less. */
static void anything(still *s)
{
    size_t k = s->samples / 4;
    if (s->samples % 4) {
        return;
    }
    if (k % 3 == 0) {
        size_t i = k % s->t->count;
        if (s->t->frames[i].frame.owner == W_PLAIN) {
            world_set_unit(s->w, s->t, i, 2 + (int)(k % (UNITS - 2)));
        }
    } else if (k % 3 == 1 && s->t->count > DEPTH - 2) {
        world_pop(s->w, s->t);
        if (k % 2) { /* another one at its place */
            world_push(s->w, s->t, (w_frame){s->codes[(k + 1) % (DEPTH + 1)], 3, W_PLAIN, 0});
        }
    } else {
        world_push(s->w, s->t, (w_frame){s->codes[k % (DEPTH + 1)], 3, W_PLAIN, 0});
    }
}

START_TEST(any_change_is_seen)
{
    still s;
    w_run run;
    still_init(&s, _i);
    s.change = anything;
    go(&s, &run);
    ck_assert_uint_gt(s.repeated, PASSES / 3);
    w_run_deinit(&run);
    still_deinit(&s);
}
END_TEST

/* The frames stand, with all their words, and the memory of one of their code objects is another one's. */
static void remake(still *s)
{
    if (s->samples % 5 == 0) {
        char name[16];
        w_code *code = s->codes[s->samples / 5 % DEPTH];
        snprintf(name, sizeof name, "%c%d", 'g' + (int)(s->samples % 7), (int)(s->samples / 5 % DEPTH));
        world_code_remake(s->w, code, "a.py", name, code->first, 1);
    }
}

START_TEST(remade_code_is_seen)
{
    still s;
    w_run run;
    still_init(&s, _i);
    s.change = remake;
    go(&s, &run);
    ck_assert_uint_gt(s.repeated, PASSES / 2);
    w_run_deinit(&run);
    still_deinit(&s);
}
END_TEST

START_TEST(counter_is_found)
{
    still s;
    w_run run;
    still_init(&s, _i);
    go(&s, &run);
    uint32_t at = run.engine->remote.layout.interp_code_counter;
    ck_assert_uint_eq(at, s.w->minor == 13 && !s.w->free_threaded ? (uint32_t)WORLD_COUNTER : AU_ABSENT);
    w_run_deinit(&run);
    still_deinit(&s);
}
END_TEST

/* What one code object says is not enough, and what two say in different ways is nothing. */
START_TEST(counter_is_not_guessed)
{
    still s;
    w_run run;
    still_init(&s, _i);
    w_interp *interp = s.w->interps;
    for (int i = 0; i <= DEPTH && s.w->minor == 13; i++) { /* all in a place of their own, as by chance */
        uint32_t version = (uint32_t)world_get(s.w, s.codes[i]->addr + s.w->l.code_version);
        au_addr slot = interp->addr + WORLD_COUNTER + 8 + version % 4096 * 16;
        world_word(s.w, slot + 8, 0);
        world_word(s.w, slot + (au_addr)i * 4096 + 8, s.codes[i]->addr);
        world_word(s.w, slot + (au_addr)i * 4096, s.w->object_type);
    }
    go(&s, &run);
    ck_assert_uint_eq(run.engine->remote.layout.interp_code_counter, AU_ABSENT);
    w_run_deinit(&run);
    still_deinit(&s);
}
END_TEST

Suite *au_standing_suite(void)
{
    Suite *suite = suite_create("standing");
    TCase *tcase = tcase_create("standing");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, few_pieces, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, innermost_goes_on, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, any_change_is_seen, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, remade_code_is_seen, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, counter_is_found, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, counter_is_not_guessed, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
