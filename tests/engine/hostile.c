/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that lies: absurd pointers, lengths and links everywhere. Nothing crashes, everything ends, nothing is shown
 * as whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"

static world *w;
static w_thread *t;
static w_run run;
static au_buf want;

static void begin(int build)
{
    w = world_create(world_builds[build]);
    t = world_basic(w);
    memset(&want, 0, sizeof want);
    w_frame frames[4];
    char name[8];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "f%d", i & 7);
        frames[i] =
            (w_frame){world_code(w, "/srv/a.py", name, 10 * i + 1, 30), 2 + i, i == 2 ? W_GENERATOR : W_PLAIN, 0};
    }
    world_stack(w, t, frames, 4);
    w_run_init(&run, w);
}

static void end(void)
{
    w_run_deinit(&run);
    world_destroy(w, 0);
    au_buf_deinit(&want);
}

/* A stack without a root begins with <truncated>, then come the frames that could be followed. */
START_TEST(rootless)
{
    static const uint64_t roots[] = {0x10000000, 0x7fffffffe000, UINT64_MAX, 0x1234567, 8, UINT64_C(1) << 60};
    static const char cut[] = "<austin>:<truncated>:0:0:0:0;";
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        begin(_i);
        size_t outermost = t->frames[0].addr ? 0 : 1; /* the entry from C, if this version has a frame for it */
        world_expect(w, t, &want);
        world_word(w, t->frames[outermost].addr + w->l.frame_previous, roots[i]);
        w_run_go(&run, 4);
        ck_assert_uint_eq(run.count, 4);
        for (size_t k = 0; k < run.count; k++) {
            ck_assert_uint_eq(run.samples[k].flags & ~(unsigned)AU_SAMPLE_SAME, AU_SAMPLE_TRUNCATED);
            ck_assert_msg(strncmp(run.samples[k].stack, cut, sizeof cut - 1) == 0, "%s: %s", w->label,
                          run.samples[k].stack);
            const char *shown = run.samples[k].stack + sizeof cut - 1;
            const char *all = (const char *)want.data;
            /* a frame whose link cannot be an address may go with it */
            ck_assert_msg(strcmp(shown, all) == 0 || (w->minor < 12 && strcmp(shown, strstr(all, "/srv/a.py:f1")) == 0),
                          "%s: %s", w->label, shown);
        }
        ck_assert_uint_eq(run.stats.truncated, 4);
        ck_assert_uint_eq(run.stats.errors, 4);
        end();
    }
}
END_TEST

/* From 3.12 on a chain ends in an entry frame; one that ends in a function was cut. */
START_TEST(cut_chain)
{
    begin(_i);
    if (w->minor >= 12) {
        world_word(w, t->frames[2].addr + w->l.frame_previous, 0);
        w_run_go(&run, 3);
        ck_assert_uint_eq(run.stats.truncated, 3);
        ck_assert_ptr_nonnull(strstr(run.samples[2].stack, "<truncated>:0:0:0:0;/srv/a.py:f1:"));
    }
    end();
}
END_TEST

START_TEST(cycles)
{
    for (size_t from = 1; from < 5; from++) {
        for (size_t to = from; to < 5; to++) {
            begin(_i);
            world_word(w, t->frames[from].addr + w->l.frame_previous, t->frames[to].addr);
            uint64_t before = au_image_pieces(w->image);
            w_run_go(&run, 3);
            ck_assert_uint_eq(run.count, 3);
            ck_assert_uint_ne(run.samples[2].flags & (AU_SAMPLE_TORN | AU_SAMPLE_TRUNCATED), 0);
            ck_assert_uint_eq(run.stats.errors, 3);
            ck_assert_uint_lt(au_image_pieces(w->image) - before, 200000);
            end();
        }
    }
}
END_TEST

/* Lists that lead back into themselves, at once or after a while: found out soon, not when a list cannot be longer. */
START_TEST(rings)
{
    for (int which = 0; which < 4; which++) {
        begin(_i);
        w_thread *second = world_thread(w, w->interps, UINT64_C(0x7fff22340000), 4322);
        w_interp *main = w->interps;
        w_interp *sub = world_interp(w, 1);
        world_thread(w, sub, UINT64_C(0x7fff32340000), 4323);
        run.options.exposure_ns = 1000000000;
        run.options.max_passes = 3;
        ck_assert_ptr_null(w_run_find(&run));
        const struct {
            au_addr at, to;
        } links[] = {{sub->addr + w->l.interp_next, sub->addr},
                     {main->addr + w->l.interp_next, sub->addr},
                     {t->addr + w->l.tstate_next, t->addr},
                     {t->addr + w->l.tstate_next, second->addr}};
        world_word(w, links[which].at, links[which].to);
        uint64_t before = au_image_pieces(w->image);
        w_run_go(&run, 3);
        ck_assert_uint_eq(run.stats.samples, 0);
        ck_assert_msg(au_image_pieces(w->image) - before < 100000, "%s: ring %d takes %llu reads", w->label, which,
                      (unsigned long long)(au_image_pieces(w->image) - before));
        end();
    }
}
END_TEST

/* Every word of every structure, one after the other, becomes something absurd. */
START_TEST(absurd_words)
{
    static const uint64_t absurd[] = {0, 1, UINT64_MAX, UINT64_C(0x7fffffff), UINT64_C(0x4141414141414140)};
    const int n = sizeof absurd / sizeof absurd[0];
    int build = _i / n;
    uint64_t value = absurd[_i % n];
    begin(build);
    world_threading(w, w->interps);
    world_name(w, w->interps, t, "Name", W_NAME_VALUES);
    w_run_deinit(&run);
    const w_code *code = t->frames[2].frame.code;
    const struct {
        au_addr at;
        size_t len;
    } parts[] = {
        {t->addr, 320},
        {t->frames[1].addr, 88},
        {t->frames[3].addr, 112},
        {t->frames[4].addr, 112},
        {code->addr, 240},
        {code->scope_str, 72},
        {code->file_str, 72},
        {code->table, 48},
        {t->chunk_count ? t->chunks[0].addr : t->addr, 24},
        {w->code_type, 48},
        {t->object - 32, 96},
        {w->interps->keys, 48},
        {w->interps->active, 64},
        {w->thread_type + 160, 24},
        {w->thread_keys, 64},
        {w->runtime + w->l.runtime_interpreters_head, 8},
        {w->interps->addr + w->l.interp_threads_head, 8},
        {w->interps->addr + w->l.interp_next, 16},
        {w->interps->addr + w->l.interp_modules, 8},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (size_t at = 0; at < parts[i].len; at += 8) {
            uint64_t was = world_get(w, parts[i].at + at);
            uint64_t before = au_image_pieces(w->image);
            w_run_init(&run, w);
            run.options.timeout_ms = 20;
            run.options.exposure_ns = 1000000000;
            run.options.max_passes = 2;
            world_word(w, parts[i].at + at, value);
            au_error *error = w_run_find(&run);
            if (!error) {
                w_run_go(&run, 2);
            }
            au_error_clear(error);
            ck_assert_msg(au_image_pieces(w->image) - before < 3000000, "%s: part %zu + %zu = %llx takes %llu reads",
                          w->label, i, at, (unsigned long long)value,
                          (unsigned long long)(au_image_pieces(w->image) - before));
            w_run_deinit(&run);
            world_word(w, parts[i].at + at, was);
        }
    }
    w_run_init(&run, w);
    world_expect(w, t, &want);
    w_run_go(&run, 2); /* all as it was */
    ck_assert_str_eq(run.samples[1].stack, (const char *)want.data);
    end();
}
END_TEST

/* The same after it was found, from one pass to the next. */
typedef struct vandal {
    uint64_t seed, was;
    au_addr at;
    au_addr places[16];
    size_t lens[16];
    size_t n;
} vandal;

static int break_one(w_run *r)
{
    vandal *v = r->baton;
    if (v->at) {
        world_word(r->w, v->at, v->was);
    }
    v->seed = v->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    size_t part = (size_t)(v->seed >> 33) % v->n;
    v->at = v->places[part] + (v->seed >> 40) % (v->lens[part] / 8) * 8;
    v->was = world_get(r->w, v->at);
    uint64_t value = v->seed & 4 ? v->seed : v->seed & 8 ? v->was ^ (UINT64_C(1) << (v->seed >> 58)) : v->was + 8;
    world_word(r->w, v->at, value);
    return 0;
}

START_TEST(vandalised)
{
    begin(_i);
    world_threading(w, w->interps);
    world_name(w, w->interps, t, "Name", W_NAME_DICT);
    const w_code *code = t->frames[2].frame.code;
    vandal v = {.seed = 42 + (uint64_t)_i, .n = 10};
    const au_addr places[10] = {t->addr,           t->frames[1].addr,
                                t->frames[3].addr, code->addr,
                                code->scope_str,   code->table,
                                w->interps->keys,  t->object - 32,
                                code->file_str,    t->chunk_count ? t->chunks[0].addr : t->addr};
    const size_t lens[10] = {320, 88, 88, 240, 64, 48, 64, 96, 64, 24};
    memcpy(v.places, places, sizeof places);
    memcpy(v.lens, lens, sizeof lens);
    run.baton = &v;
    run.on_pass = break_one;
    run.options.exposure_ns = UINT64_C(20000000000);
    uint64_t before = au_image_pieces(w->image);
    w_run_go(&run, 800);
    ck_assert_uint_gt(run.stats.errors, 0);
    ck_assert_uint_eq(run.stats.errors, run.stats.torn + run.stats.truncated);
    ck_assert_uint_lt((au_image_pieces(w->image) - before) / run.stats.passes, 20000);
    end();
}
END_TEST

Suite *au_hostile_suite(void)
{
    Suite *suite = suite_create("hostile");
    TCase *tcase = tcase_create("links");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, rootless, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, cut_chain, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, cycles, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, rings, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("words");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, absurd_words, 0, WORLD_BUILDS * 5);
    tcase_add_loop_test(tcase, vandalised, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, au_mutations_case());
    return suite;
}
