/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, interpreters, names, run states and time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"
#include "tests/engine/world_internal.h"

static world *w;
static w_thread *t;
static w_run run;
static au_buf want;

static void must_be_zero(int failed)
{
    ck_assert_int_eq(failed, 0);
}

static void begin(int build)
{
    w = world_create(world_builds[build]);
    t = world_basic(w);
    memset(&want, 0, sizeof want);
    w_run_init(&run, w);
}

static void end(void)
{
    w_run_deinit(&run);
    ck_assert_uint_eq(au_image_open_handles(w->image), 0);
    world_destroy(w, 0);
    au_buf_deinit(&want);
}

static w_thread *another(w_interp *interp, unsigned n)
{
    w_thread *made = world_thread(w, interp, UINT64_C(0x7ffe00000000) + (uint64_t)n * 4096, (au_tid)n + 5000);
    w_frame frame = {w->codes, 1 + (int)(n % 50), W_PLAIN, 0};
    world_stack(w, made, &frame, 1);
    return made;
}

static const w_sample *sample_of(const char *thread, size_t from)
{
    for (size_t i = from; i < run.count; i++) {
        if (strcmp(run.samples[i].thread, thread) == 0) {
            return &run.samples[i];
        }
    }
    return NULL;
}

START_TEST(thousand)
{
    begin(_i);
    for (unsigned i = 0; i < 1000; i++) {
        another(w->interps, i);
    }
    w_run_go(&run, 3);
    ck_assert_uint_eq(run.count, 3003);
    for (size_t i = 0; i < 1001; i++) {
        const w_thread *which = w->threads; /* newest first, as in the list */
        for (size_t k = 0; k < i; k++) {
            which = which->next;
        }
        world_expect(w, which, &want);
        ck_assert_str_eq(run.samples[2002 + i].stack, (const char *)want.data);
        ck_assert_uint_eq(run.samples[2002 + i].state_id, run.samples[i].state_id);
        ck_assert_uint_eq(run.samples[2002 + i].time_us, run.samples[2002].time_us);
    }
    ck_assert_uint_eq(run.stats.errors, 0);
    ck_assert_uint_eq(run.stats.threads_seen, 1001);
    end();
}
END_TEST

/* A state is made before its thread begins: that is no thread, and has no name. */
START_TEST(not_begun)
{
    begin(_i);
    w_thread *unborn = world_thread(w, w->interps, 0, 0);
    w_run_go(&run, 5);
    ck_assert_uint_eq(run.count, 5);
    for (size_t i = 0; i < run.count; i++) {
        ck_assert_uint_eq(run.samples[i].state_id, run.samples[0].state_id);
    }
    ck_assert_uint_eq(unborn->ident, 0);
    end();
}
END_TEST

START_TEST(interpreters)
{
    begin(_i);
    for (int id = 1; id < 40; id++) {
        w_interp *sub = world_interp(w, id);
        for (unsigned k = 0; k < 3; k++) {
            another(sub, (unsigned)id * 3 + k);
        }
    }
    w_run_go(&run, 2);
    ck_assert_uint_eq(run.count, 2 * (39 * 3 + 1));
    unsigned seen[40] = {0};
    for (size_t i = 0; i < run.count; i++) {
        ck_assert_int_lt(run.samples[i].iid, 40);
        seen[run.samples[i].iid]++;
    }
    ck_assert_uint_eq(seen[0], 2);
    for (int id = 1; id < 40; id++) {
        ck_assert_uint_eq(seen[id], 6);
    }
    ck_assert_uint_eq(run.stats.interpreters_seen, 40);
    end();
}
END_TEST

/* Names: by threading, in either form of attributes; else the id in hexadecimal; MainThread without threading. */
START_TEST(names)
{
    begin(_i / 2);
    int style = _i % 2 ? W_NAME_DICT : W_NAME_VALUES;
    w_thread *named = another(w->interps, 1);
    w_thread *greek = another(w->interps, 2);
    another(w->interps, 3);
    world_threading(w, w->interps);
    world_name(w, w->interps, t, "Principal", style);
    world_name(w, w->interps, named, "worker-1", style);
    world_name(w, w->interps, greek, "\xce\xbd\xce\xae\xce\xbc\xce\xb1 \xf0\x9f\x90\x8d", style);
    w_run_go(&run, 3);
    ck_assert_uint_eq(run.count, 12);
    for (size_t i = 0; i < run.count; i++) { /* from the first sample on */
        static const char *const shown[] = {"138b", "\xce\xbd\xce\xae\xce\xbc\xce\xb1 \xf0\x9f\x90\x8d", "worker-1",
                                            "Principal"};
        ck_assert_str_eq(run.samples[i].thread, shown[i % 4]);
    }
    end();
}
END_TEST

START_TEST(main_thread)
{
    begin(_i);
    another(w->interps, 1);
    w_run_go(&run, 2);
    ck_assert_ptr_nonnull(sample_of("MainThread", 2));
    ck_assert_ptr_nonnull(sample_of("1389", 2));
    w_run_deinit(&run);
    w_run_init(&run, w);
    world_threading(w, w->interps); /* imported, and does not know the thread: its id */
    w_run_go(&run, 2);
    ck_assert_ptr_null(sample_of("MainThread", 0));
    ck_assert_ptr_nonnull(sample_of("10e1", 2));
    end();
}
END_TEST

/* In a sub-interpreter: its own threading first, then the main one's; an id that a thread of another kind has is not
 * the main thread. */
START_TEST(names_of_interpreters)
{
    begin(_i);
    w_interp *main_interp = w->interps;
    w_interp *sub = world_interp(w, 1);
    w_thread *own = another(sub, 1);
    w_thread *borrowed = another(sub, 2);
    world_threading(w, main_interp);
    world_threading(w, sub);
    world_name(w, sub, own, "own", W_NAME_VALUES);
    world_name(w, main_interp, borrowed, "borrowed", W_NAME_VALUES);
    w_run_go(&run, 2);
    ck_assert_ptr_nonnull(sample_of("own", 3));
    ck_assert_ptr_nonnull(sample_of("borrowed", 3));
    end();
}
END_TEST

static int rename_at(w_run *r)
{
    if (r->passes == 500) {
        world_rename(w, t, "after");
    }
    return 0;
}

START_TEST(renamed)
{
    begin(_i / 2);
    world_threading(w, w->interps);
    world_name(w, w->interps, t, "before", _i % 2 ? W_NAME_DICT : W_NAME_VALUES);
    run.on_pass = rename_at;
    w_run_go(&run, 1700); /* of a millisecond each */
    uint64_t at = 0;
    uint64_t since = 0;
    for (size_t i = 0; i < run.count; i++) {
        if (i >= 500 && strcmp(run.samples[i].thread, "before") == 0) {
            since += run.samples[i].time_us;
        }
        at += run.samples[i].time_us;
        ck_assert_str_eq(run.samples[i].thread, i < 500 ? "before" : run.samples[i].thread);
    }
    ck_assert_str_eq(run.samples[run.count - 1].thread, "after");
    ck_assert_uint_le(since, 1000000);
    ck_assert_uint_gt(at, 1500000);
    ck_assert_uint_eq(run.samples[0].state_id, run.samples[run.count - 1].state_id);
    end();
}
END_TEST

/* 3.10 without a way from the thread's handle to its id (musl): _native_id of threading. */
START_TEST(native_id_attribute)
{
    begin(0);
    w_thread *x = world_thread(w, w->interps, 0x7ffd00000000, 777);
    w_frame frame = {w->codes, 3, W_PLAIN, 0};
    world_stack(w, x, &frame, 1);
    /* forget the handle: it is now that of another thread state */
    x->ident = w->l.long_bytes == 4 ? 0x1000 : 0x7ffd00001000;
    world_long(w, x->addr + w->l.tstate_thread_id, x->ident);
    world_threading(w, w->interps);
    world_name(w, w->interps, x, "musl", _i ? W_NAME_DICT : W_NAME_VALUES);
    run.options.mode = AU_MODE_CPU;
    ck_assert_int_eq(au_image_set_thread(w->image, 777, AU_RUN_RUNNING, 5), 0);
    w_run_go(&run, 30);
    ck_assert_ptr_nonnull(sample_of("musl", 0)); /* written in -c, so its OS thread is known */
    end();
}
END_TEST

typedef struct heir {
    uint64_t first, second; /* state ids */
    size_t of_second;
} heir;

static int note_heir(w_run *r, const au_sample *sample)
{
    heir *h = r->baton;
    h->first = h->first ? h->first : sample->state_id;
    h->second = sample->state_id != h->first ? sample->state_id : h->second;
    h->of_second += sample->state_id == h->second;
    return 0;
}

static int inherit(w_run *r)
{
    if (r->passes == 20) {
        must_be_zero(au_image_remove_thread(w->image, t->tid));
        must_be_zero(au_image_add_thread(w->image, 7777, "python"));
        must_be_zero(au_image_set_thread(w->image, 7777, AU_RUN_RUNNING, 1));
        if (w->l.tstate_native_thread_id != AU_ABSENT) {
            world_long(w, t->addr + w->l.tstate_native_thread_id, 7777);
        } else {
            must_be_zero(au_image_add_id(w->image, AU_ID_PTHREAD, t->ident, 7777));
            world_word(w, t->addr + w->l.tstate_id, 7777);
        }
    }
    return 0;
}

/* A thread has ended, and another one has begun in the memory of its state and of its pthread. */
START_TEST(another_in_its_place)
{
    heir h = {0};
    begin(_i);
    run.on_sample = note_heir;
    run.on_pass = inherit;
    run.baton = &h;
    w_run_go(&run, 400);
    ck_assert_uint_ne(h.second, 0);
    ck_assert_uint_ge(h.of_second, 300);
    end();
}
END_TEST

/* ---- the list moves --------------------------------------------------------------------------------------------- */

typedef struct births {
    w_thread *alive[40];
    size_t n;
    unsigned next;
    uint64_t seed;
    size_t hidden;
} births;

static void be_born_and_die(births *b)
{
    b->seed = b->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    if ((b->seed >> 33 & 1) && b->n < 40) {
        b->alive[b->n++] = another(w->interps, 10 + b->next++);
    } else if (b->n) {
        size_t which = (size_t)(b->seed >> 34) % b->n;
        w_thread *gone = b->alive[which];
        b->alive[which] = b->alive[--b->n];
        world_thread_end(w, gone);
        /* its memory is used for something else */
        world_word(w, gone->addr + w->l.tstate_interp, UINT64_C(0xdddddddddddddddd));
        world_word(w, gone->addr + w->l.tstate_next, UINT64_C(0xdddddddddddddddd));
    }
}

static void list_hook(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    births *b = baton;
    (void)image;
    (void)addr;
    (void)len;
    if (serial % 97 == 0) {
        be_born_and_die(b);
    }
}

START_TEST(moving_list)
{
    births b = {.seed = 3};
    begin(_i);
    for (int i = 0; i < 10; i++) {
        b.alive[b.n++] = another(w->interps, 10 + b.next++);
    }
    run.options.max_passes = 800;
    ck_assert_ptr_null(w_run_find(&run));
    au_image_set_hook(w->image, list_hook, &b);
    w_run_go(&run, 800);
    au_image_set_hook(w->image, NULL, NULL);
    size_t of_main = 0;
    uint64_t time = 0;
    for (size_t i = 0; i < run.count; i++) {
        if (strcmp(run.samples[i].thread, "MainThread") == 0) {
            of_main++;
            time += run.samples[i].time_us;
        }
        ck_assert_uint_eq(run.samples[i].flags & AU_SAMPLE_TRUNCATED, 0);
    }
    /* the thread that lives through it all is in every pass, with all the time */
    ck_assert_uint_eq(of_main, run.stats.passes);
    ck_assert_uint_eq(time, run.stats.duration_us);
    ck_assert_uint_gt(run.stats.threads_seen, 20);
    end();
}
END_TEST

static int bear_one(w_run *r)
{
    births *b = r->baton;
    if (r->passes % 3 == 0) {
        b->alive[b->n++ % 40] = another(w->interps, 100 + b->next++);
    }
    return 0;
}

/* A new thread is in the very next pass, and the record of one that ended is never taken for it. */
START_TEST(births_are_seen)
{
    births b = {.seed = 1};
    begin(_i);
    run.on_pass = bear_one;
    run.baton = &b;
    w_run_go(&run, 31);
    ck_assert_uint_eq(run.count, 31 + 3 * (9 * 10 / 2) + 10);
    end();
}
END_TEST

/* The same memory becomes a thread state of another thread: another state_id, and its own name. */
static int reuse_state(w_run *r)
{
    if (r->passes == 5) {
        const au_layout *l = &w->l;
        world_long(w, t->addr + l->tstate_thread_id, 0x7ff000077000);
        if (l->tstate_native_thread_id != AU_ABSENT) {
            world_long(w, t->addr + l->tstate_native_thread_id, 9999);
        }
    }
    return 0;
}

START_TEST(reused_state)
{
    begin(_i);
    run.on_pass = reuse_state;
    w_run_go(&run, 30);
    ck_assert_str_eq(run.samples[0].thread, "MainThread");
    ck_assert_str_ne(run.samples[run.count - 1].thread, "MainThread");
    ck_assert_uint_ne(run.samples[0].state_id, run.samples[run.count - 1].state_id);
    end();
}
END_TEST

/* ---- who runs --------------------------------------------------------------------------------------------------- */

typedef struct runner {
    au_tid tid;
    unsigned turn;
    uint64_t on_us, off_us; /* as the tracee itself counts */
    uint64_t switches;
} runner;

static int take_turns(w_run *r)
{
    runner *x = r->baton;
    x->turn++;
    x->switches += x->turn % 2;
    (void)au_image_set_thread(w->image, x->tid, x->turn % 2 ? AU_RUN_RUNNING : AU_RUN_ASLEEP, x->switches);
    return 0;
}

/* -c: only what is on a CPU at the pass, with the pass' time. */
START_TEST(cpu_mode)
{
    begin(_i);
    w_thread *busy = another(w->interps, 1);
    w_thread *half = another(w->interps, 2);
    w_thread *idle = another(w->interps, 3);
    runner x = {half->tid, 1, 0, 0, 10};
    (void)busy;
    au_image_set_thread(w->image, t->tid, AU_RUN_ASLEEP, 4);
    au_image_set_thread(w->image, idle->tid, AU_RUN_ASLEEP, 4);
    au_image_set_thread(w->image, half->tid, AU_RUN_RUNNING, 10);
    run.options.mode = AU_MODE_CPU;
    run.on_pass = take_turns;
    run.baton = &x;
    w_run_go(&run, 400);
    size_t of_half = 0;
    size_t of_busy = 0;
    uint64_t time = 0;
    for (size_t i = 0; i < run.count; i++) {
        of_half += strcmp(run.samples[i].thread, "138a") == 0;
        of_busy += strcmp(run.samples[i].thread, "1389") == 0;
        time += strcmp(run.samples[i].thread, "1389") == 0 ? run.samples[i].time_us : 0;
    }
    ck_assert_uint_eq(of_busy, 400);
    ck_assert_uint_eq(of_half, 200);
    ck_assert_uint_eq(of_half + of_busy, run.count);
    ck_assert_uint_eq(time, run.stats.duration_us);
    end();
}
END_TEST

/* What stands is compared and no longer walked, and written all the same, with its time. */
enum { QUIET_PASSES = 10 };
static uint64_t reads_of_stack;

static void count_stack(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    const w_thread *which = baton;
    (void)image;
    (void)serial;
    for (size_t i = 0; i < which->count; i++) {
        reads_of_stack += addr <= which->frames[i].addr && which->frames[i].addr < addr + len;
    }
}

static int wake_at(w_run *r)
{
    if (r->passes == 60) { /* it runs a little, and sleeps again elsewhere */
        world_set_unit(w, t, t->count - 1, 33);
        au_image_set_thread(w->image, t->tid, AU_RUN_ASLEEP, 8);
    }
    return 0;
}

START_TEST(asleep)
{
    begin(_i);
    au_image_set_thread(w->image, t->tid, AU_RUN_ASLEEP, 7);
    run.on_pass = wake_at;
    run.options.max_passes = 100;
    ck_assert_ptr_null(w_run_find(&run));
    reads_of_stack = 0;
    world_expect(w, t, &want);
    char *first = strdup((const char *)want.data);
    au_image_set_hook(w->image, count_stack, t);
    w_run_go(&run, 100);
    world_expect(w, t, &want);
    ck_assert_uint_eq(run.count, 100);
    ck_assert_uint_le(reads_of_stack, (2 + QUIET_PASSES) * 4 * 2 + 100 * 2); /* two looks, until it is found quiet */
    uint64_t time = 0;
    for (size_t i = 0; i < 100; i++) {
        ck_assert_str_eq(run.samples[i].stack, i < 60 ? first : (const char *)want.data);
        ck_assert_int_eq((run.samples[i].flags & AU_SAMPLE_SAME) != 0, i != 0 && i != 60);
        time += run.samples[i].time_us;
    }
    ck_assert_uint_eq(time, run.stats.duration_us);
    free(first);
    end();
}
END_TEST

/* While the GIL does not change hands, only the thread that has it can have moved. */
static w_thread *sleeper;

static int hand_over(w_run *r)
{
    if (r->passes == 20) { /* one switch there: it runs and goes to sleep elsewhere */
        world_gil(w, w->interps, sleeper);
        world_set_unit(w, sleeper, sleeper->count - 1, 33);
    } else if (r->passes == 40) { /* there and back within a pass */
        world_gil(w, w->interps, t);
        world_set_unit(w, sleeper, sleeper->count - 1, 44);
        world_gil(w, w->interps, sleeper);
        world_gil(w, w->interps, t);
    } else if (r->passes == 46) { /* away and back: only the count tells */
        world_gil(w, w->interps, sleeper);
        world_set_unit(w, sleeper, sleeper->count - 1, 22);
        world_gil(w, w->interps, t);
    } else if (r->passes > 50) { /* the holder runs */
        world_set_unit(w, t, t->count - 1, 1 + (int)(r->passes % 20));
    }
    return 0;
}

START_TEST(gil)
{
    begin(_i);
    if (w->free_threaded) {
        end();
        return;
    }
    w_thread *third = another(w->interps, 1);
    sleeper = another(w->interps, 2);
    world_gil(w, w->interps, t);
    char *before[3] = {NULL, NULL, NULL};
    world_expect(w, third, &want);
    before[0] = strdup((const char *)want.data);
    world_expect(w, sleeper, &want);
    before[1] = strdup((const char *)want.data);
    run.on_pass = hand_over;
    run.options.max_passes = 100;
    ck_assert_ptr_null(w_run_find(&run));
    reads_of_stack = 0;
    au_image_set_hook(w->image, count_stack, third);
    w_run_go(&run, 100);
    ck_assert_uint_eq(run.count, 300);
    ck_assert_uint_le(reads_of_stack, 40); /* at first, and when it was not clear who had run */
    size_t moves = 0;
    for (size_t i = 0; i < run.count; i++) {
        const w_sample *s = &run.samples[i];
        size_t pass = i / 3;
        if (strcmp(s->thread, "1389") == 0) {
            ck_assert_str_eq(s->stack, before[0]);
        } else if (strcmp(s->thread, "138a") == 0) {
            ck_assert_int_eq(strcmp(s->stack, before[1]) == 0, pass < 20);
            moves += (s->flags & AU_SAMPLE_SAME) == 0;
        } else if (pass > 50) {
            ck_assert_uint_eq(s->flags & AU_SAMPLE_SAME, 0);
        }
    }
    ck_assert_uint_eq(moves, 4);
    world_expect(w, sleeper, &want);
    const w_sample *last = sample_of("138a", 290);
    ck_assert_ptr_nonnull(last);
    ck_assert_str_eq(last->stack, (const char *)want.data);
    free(before[0]);
    free(before[1]);
    end();
}
END_TEST

/* One OS thread with two thread states: in -c only the one that runs. */
START_TEST(two_states_of_one_thread)
{
    begin(_i);
    w_interp *sub = world_interp(w, 1);
    w_thread *inner = world_thread(w, sub, t->ident, t->tid);
    w_frame frame = {w->codes, 9, W_PLAIN, 0};
    world_stack(w, inner, &frame, 1);
    for (int sub_runs = 0; sub_runs < 2; sub_runs++) {
        const w_thread *active = sub_runs ? inner : t;
        const w_thread *other = sub_runs ? t : inner;
        if (w->l.tstate_state != AU_ABSENT && w->minor >= 13) {
            world_int(w, active->addr + w->l.tstate_state, 1);
            world_int(w, other->addr + w->l.tstate_state, 0);
        } else if (w->l.active_mask) {
            world_int(w, active->addr + w->l.tstate_status, 0x1b);
            world_int(w, other->addr + w->l.tstate_status, 0x0b);
        } else {
            world_word(w, w->runtime + w->l.runtime_tstate_current, active->addr);
        }
        w_run_deinit(&run);
        w_run_init(&run, w);
        w_run_go(&run, 3); /* wall: both */
        ck_assert_uint_eq(run.count, 6);
        w_run_deinit(&run);
        w_run_init(&run, w);
        run.options.mode = AU_MODE_CPU;
        w_run_go(&run, 5);
        ck_assert_uint_eq(run.count, 5);
        for (size_t i = 0; i < 5; i++) {
            ck_assert_int_eq(run.samples[i].iid, sub_runs);
        }
    }
    end();
}
END_TEST

/* ---- time ------------------------------------------------------------------------------------------------------- */

static int jump(w_run *r)
{
    uint64_t *seed = r->baton;
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    if (*seed >> 60 == 0) { /* the machine was asleep */
        au_sys *sys = au_image_sys(w->image);
        au_image_set_time(w->image, sys->ops->now(sys) + (*seed >> 30 & 0x3fffffffff));
    }
    return 0;
}

/* What the samples of a thread add up to is the run, also when every pass is late, and over clock jumps. */
START_TEST(sum_of_times)
{
    static const uint64_t drifts[] = {0, 100, 77777, 3000000};
    static const uint64_t intervals[] = {0, 100, 1000, 50};
    begin(_i % WORLD_BUILDS);
    int how = _i / WORLD_BUILDS;
    uint64_t seed = 5;
    au_image_set_drift(w->image, drifts[how] + (intervals[how] ? 0 : 1000));
    run.options.interval_us = intervals[how];
    run.on_pass = jump;
    run.baton = &seed;
    w_run_go(&run, 2000);
    uint64_t time = 0;
    ck_assert_uint_eq(run.count, 2000);
    for (size_t i = 0; i < run.count; i++) {
        time += run.samples[i].time_us;
    }
    ck_assert_uint_eq(time, run.stats.duration_us);
    ck_assert_uint_eq(time, run.time_us);
    ck_assert_uint_le(run.stats.last_ns / 1000 - run.stats.start_ns / 1000 - time, 1);
    if (how == 0) {
        ck_assert_uint_eq(run.stats.late, 0); /* flat out: there is no late */
    } else if (drifts[how] >= 3000000) {
        ck_assert_uint_ge(run.stats.late, 1990);
    }
    end();
}
END_TEST

/* On time: no pass is late, gaps are spread over half to one and a half intervals around the interval. */
START_TEST(gaps)
{
    begin(_i);
    run.options.interval_us = 1000;
    w_run_go(&run, 4000);
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    ck_assert_uint_eq(run.stats.late, 0);
    for (size_t i = 1; i < run.count; i++) {
        least = run.samples[i].time_us < least ? run.samples[i].time_us : least;
        most = run.samples[i].time_us > most ? run.samples[i].time_us : most;
    }
    ck_assert_uint_ge(least, 499);
    ck_assert_uint_le(least, 520);
    ck_assert_uint_ge(most, 1480);
    ck_assert_uint_le(most, 1501);
    ck_assert_uint_ge(run.time_us / run.count, 970);
    ck_assert_uint_le(run.time_us / run.count, 1030);
    end();
}
END_TEST

/* A late pass is not made up for: after a long one the next gaps are as long as ever. */
static int stall(w_run *r)
{
    if (r->passes == 50) {
        au_sys *sys = au_image_sys(w->image);
        au_image_set_time(w->image, sys->ops->now(sys) + 500000000);
    }
    return 0;
}

START_TEST(no_burst)
{
    begin(_i);
    run.on_pass = stall;
    w_run_go(&run, 100);
    size_t shorts = 0;
    for (size_t i = 52; i < run.count; i++) {
        shorts += run.samples[i].time_us < 499;
    }
    ck_assert_uint_eq(shorts, 0);
    ck_assert_uint_eq(run.stats.late, 1);
    end();
}
END_TEST

static int refuse(w_run *r, const au_sample *sample)
{
    (void)sample;
    return ++r->count == 7;
}

START_TEST(ends)
{
    begin(_i);
    run.on_sample = refuse;
    w_run_go(&run, 1000);
    ck_assert_int_eq((int)run.how, AU_RAN_SINK);
    run.count = 0;
    w_run_deinit(&run);
    w_run_init(&run, w);
    run.options.exposure_ns = 50000000;
    w_run_go(&run, 0);
    ck_assert_int_eq((int)run.how, AU_RAN_EXPOSURE);
    ck_assert_uint_ge(run.time_us, 48000);
    ck_assert_uint_le(run.time_us, 51600);
    w_run_deinit(&run);
    w_run_init(&run, w);
    run.options.max_passes = 10;
    ck_assert_ptr_null(w_run_find(&run));
    au_engine_stop(run.engine);
    w_run_go(&run, 10);
    ck_assert_int_eq((int)run.how, AU_RAN_STOPPED);
    end();
}
END_TEST

Suite *au_threads_suite(void)
{
    Suite *suite = suite_create("threads");
    TCase *tcase = tcase_create("threads");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, thousand, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, not_begun, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, interpreters, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, names, 0, WORLD_BUILDS * 2);
    tcase_add_loop_test(tcase, main_thread, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, names_of_interpreters, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, renamed, 0, WORLD_BUILDS * 2);
    tcase_add_loop_test(tcase, native_id_attribute, 0, 2);
    tcase_add_loop_test(tcase, moving_list, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, another_in_its_place, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, births_are_seen, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, reused_state, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, cpu_mode, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, asleep, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, gil, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, two_states_of_one_thread, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, sum_of_times, 0, WORLD_BUILDS * 4);
    tcase_add_loop_test(tcase, gaps, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, no_burst, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, ends, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, au_cpu_case());
    return suite;
}
