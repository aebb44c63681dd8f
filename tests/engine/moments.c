/* SPDX-License-Identifier: Apache-2.0 */
/* The moment of a sample, where the thread moves just while its stack is copied. */
#include <stdio.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"

/* What happens while the stack is copied: the leaf is left, or called, or left and another one called in its place. */
typedef enum motion { LEAVES, CALLS, CALLS_ANOTHER } motion;

typedef struct moment {
    world *w;
    w_thread *t;
    w_frame leaf, another;
    w_code *made;
    au_buf wanted, text;
    au_addr place; /* of a frame that every copy of the stack has */
    uint32_t word; /* the first four bytes of the leaf's line table */
    motion motion;
    int quiet, copies, moved;
    size_t samples;
} moment;

/* What a sample shows, until the next one. */
static const char *text_of(moment *m, const au_sample *sample)
{
    au_buf_reset(&m->text);
    w_stack_text(sample, &m->text);
    return (const char *)m->text.data;
}

static int is_wanted(const moment *m, const char *text)
{
    return strcmp(text, (const char *)m->wanted.data) == 0;
}

#define MUST(m, condition, text) ck_assert_msg(condition, "%s, sample %zu: %s", (m)->w->label, (m)->samples, text)

/* Three frames and a leaf. */
static void begin(moment *m, w_run *run, int (*on_sample)(w_run *, const au_sample *), uint64_t passes)
{
    w_frame frames[4];
    m->t = world_thread(m->w, world_interp(m->w, 0), 0x7f0000001000, 4711);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        frames[i] = (w_frame){world_code(m->w, "a.py", name, 10 * i + 1, 50), 5 + i, W_PLAIN, 0};
    }
    m->leaf = frames[3];
    world_stack(m->w, m->t, frames, 4);
    w_run_init(run, m->w);
    run->baton = m;
    run->on_sample = on_sample;
    run->options.max_passes = passes;
    ck_assert_ptr_null(w_run_find(run));
}

static void go(moment *m, w_run *run, au_image_hook hook, uint64_t passes)
{
    au_image_set_hook(m->w->image, hook, m);
    w_run_go(run, passes);
    au_image_set_hook(m->w->image, NULL, NULL);
    ck_assert_uint_eq(m->samples, passes);
}

static void end(moment *m, w_run *run)
{
    au_buf_deinit(&m->wanted);
    au_buf_deinit(&m->text);
    w_run_deinit(run);
    world_destroy(m->w, 0);
}

/* The tracee moves after the first copy of its stack was made, as it does when that copy holds it up. */
static void hook_of_moment(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    moment *m = baton;
    (void)image, (void)serial;
    if (!m->quiet && m->copies == 1 && !m->moved) {
        m->moved = 1;
        if (m->motion != CALLS) {
            world_pop(m->w, m->t);
        }
        if (m->motion != LEAVES) {
            world_push(m->w, m->t, m->motion == CALLS ? m->leaf : m->another);
        }
    }
    m->copies += addr <= m->place && m->place < addr + len;
}

static int sample_of_moment(w_run *run, const au_sample *sample)
{
    moment *m = run->baton;
    const char *got = text_of(m, sample);
    MUST(m, is_wanted(m, got), got);
    if (m->moved && m->motion != LEAVES) {
        world_pop(m->w, m->t);
    }
    if (m->moved && m->motion != CALLS) {
        world_push(m->w, m->t, m->leaf);
    }
    m->moved = m->copies = 0;
    m->samples++;
    m->quiet = m->samples < 8 || m->samples % 3 == 0;
    int leaves = m->samples == 3 || (m->samples == 7 && m->motion == CALLS);
    if (leaves) {
        world_pop(m->w, m->t);
    } else if (m->samples == 4) { /* what was seen for the second time is known */
        world_push(m->w, m->t, m->leaf);
    }
    if (leaves || m->samples == 4) {
        au_buf_reset(&m->wanted);
        world_expect(m->w, m->t, &m->wanted);
    }
    return 0;
}

/*
 * What a sample shows is what ran before anything was copied: copying takes the frames' cache lines away from the
 * tracee, so that a return or a call amid the copies takes longer than usual, and whoever runs then would be seen too
 * often.
 */
START_TEST(moment_is_before_the_copies)
{
    enum { PASSES = 207 };
    moment m = {.w = world_create(world_builds[_i / 3]), .motion = (motion)(_i % 3), .quiet = 1};
    w_run run;
    m.another = (w_frame){world_code(m.w, "a.py", "g3", 91, 50), 5, W_PLAIN, 0};
    begin(&m, &run, sample_of_moment, PASSES);
    m.place = m.t->frames[m.t->count - 2].addr;
    world_expect(m.w, m.t, &m.wanted);
    go(&m, &run, hook_of_moment, PASSES);
    ck_assert_uint_eq(run.stats.errors, 0);
    end(&m, &run);
}
END_TEST

/* A leaf that is made anew for each sample, and has left when the second look is made. */
static int sample_of_new(w_run *run, const au_sample *sample)
{
    moment *m = run->baton;
    const char *got = text_of(m, sample);
    int named = strstr(got, "leaf") || strstr(got, "f3");
    MUST(m, named || (sample->flags & AU_SAMPLE_TORN), got);
    MUST(m, strstr(got, "f2") != NULL, got);
    if (m->samples >= 8) { /* what stands up to there is known */
        if (!m->moved) {
            world_pop(m->w, m->t);
        }
        char name[16];
        snprintf(name, sizeof name, "leaf%zu", m->samples);
        m->leaf.code = world_code(m->w, "new.py", name, 1, 50);
        world_push(m->w, m->t, m->leaf);
        m->quiet = 0;
    }
    m->moved = m->copies = 0;
    m->samples++;
    return 0;
}

START_TEST(moment_in_new_code_is_not_its_callers)
{
    enum { PASSES = 108 };
    moment m = {.w = world_create(world_builds[_i]), .motion = LEAVES, .quiet = 1};
    w_run run;
    begin(&m, &run, sample_of_new, PASSES);
    /* 3.10 is not told by one copy; from 3.14 on a frame that has returned has lost its code */
    if (m.w->minor > 10 && m.w->minor < 14) {
        m.place = m.t->frames[m.t->count - 2].addr;
        go(&m, &run, hook_of_moment, PASSES);
        ck_assert_uint_le(run.stats.errors, PASSES - 8);
    }
    end(&m, &run);
}
END_TEST

/*
 * A loop with a short call and more lines after it, in step with the looks: each time a word of the thread state is
 * read the call is being made, and each time the frames are copied it has returned and its caller has gone on, to the
 * same line, or around the loop to one before the call. What the call has left, below that line, never was.
 */
static void hook_of_loop(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    moment *m = baton;
    (void)image, (void)serial;
    int copy = addr <= m->place && m->place < addr + len;
    if (m->quiet || copy == m->moved) {
        return;
    }
    size_t caller = m->t->count - (copy ? 2 : 1);
    m->moved = copy;
    if (copy) {
        world_pop(m->w, m->t);
        world_set_unit(m->w, m->t, caller, m->samples % 2 ? 40 : 6);
    } else {
        world_set_unit(m->w, m->t, caller, 7);
        world_push(m->w, m->t, m->leaf);
    }
}

static int sample_of_loop(w_run *run, const au_sample *sample)
{
    moment *m = run->baton;
    const char *got = text_of(m, sample);
    int is_call = is_wanted(m, got);
    MUST(m, is_call || !strstr(got, "f3"), got);
    m->samples++;
    m->quiet = m->samples < 8;
    if (m->quiet) { /* one call after the other, by what can be seen of them */
        world_set_unit(m->w, m->t, m->t->count - 1, m->leaf.unit + (m->samples < 7 ? (int)m->samples % 2 : 0));
        au_buf_reset(&m->wanted);
        world_expect(m->w, m->t, &m->wanted);
    }
    return 0;
}

START_TEST(what_a_call_has_left_is_no_call)
{
    enum { PASSES = 208 };
    moment m = {.w = world_create(world_builds[_i]), .quiet = 1};
    w_run run;
    begin(&m, &run, sample_of_loop, PASSES);
    m.place = m.t->frames[1].addr;
    world_expect(m.w, m.t, &m.wanted);
    go(&m, &run, hook_of_loop, PASSES);
    end(&m, &run);
}
END_TEST

/*
 * C code calls a wrapper, which calls the leaf: both have ended when the stack is copied, and the wrapper stood at its
 * return by then. The thread's current frame was read before, so that the leaf is the moment, and the wrapper is shown
 * at its call.
 */
static void hook_of_wrapped(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    moment *m = baton;
    (void)image, (void)serial;
    if (!m->quiet && !m->moved && addr <= m->place && m->place < addr + len) {
        m->moved = 1;
        world_pop(m->w, m->t);
        world_set_unit(m->w, m->t, m->t->count - 1, 40);
        world_pop(m->w, m->t);
        world_pop(m->w, m->t); /* the entry from C */
    }
}

static int sample_of_wrapped(w_run *run, const au_sample *sample)
{
    moment *m = run->baton;
    const char *got = text_of(m, sample);
    int learns = m->samples < (m->w->minor < 13 ? 16 : 8); /* up to 3.12 that another cframe may be current, too */
    int as_wanted = is_wanted(m, got);
    MUST(m, as_wanted || (learns && m->moved), got);
    m->samples++;
    if (m->moved) {
        world_push(m->w, m->t, (w_frame){.owner = W_SHIM});
        world_push(m->w, m->t, m->another);
        world_push(m->w, m->t, m->leaf);
    }
    m->moved = 0;
    m->quiet = m->samples < 8;
    if (m->samples <= 8) { /* one call after the other */
        if (m->samples % 2) {
            world_pop(m->w, m->t);
        } else {
            world_push(m->w, m->t, m->leaf);
        }
        au_buf_reset(&m->wanted);
        world_expect(m->w, m->t, &m->wanted);
    }
    return 0;
}

START_TEST(a_call_from_c_that_has_ended)
{
    enum { PASSES = 127 };
    moment m = {.w = world_create(world_builds[_i]), .quiet = 1};
    w_run run;
    begin(&m, &run, sample_of_wrapped, PASSES);
    m.another = (w_frame){world_code(m.w, "a.py", "wrapper", 91, 50), 7, W_PLAIN, 0};
    world_pop(m.w, m.t);
    world_push(m.w, m.t, (w_frame){.owner = W_SHIM});
    world_push(m.w, m.t, m.another);
    world_push(m.w, m.t, m.leaf);
    m.place = m.t->frames[m.t->count - 1].addr;
    world_expect(m.w, m.t, &m.wanted);
    if (m.w->minor > 10) { /* there a caller that has returned is none any more */
        go(&m, &run, hook_of_wrapped, PASSES);
        ck_assert_uint_eq(run.stats.errors, 0);
    }
    end(&m, &run);
}
END_TEST

/*
 * A code object that runs when the frames are read, has been freed whenever it is read itself, with its line table used
 * for something else, and is made again just as it was: what is read of the dead one is nobody's.
 */
static void set_alive(moment *m, int alive)
{
    const au_addr table = m->leaf.code->table + m->w->l.bytes_data;
    world_code_refs(m->w, m->leaf.code, (uint32_t)alive);
    world_int(m->w, table, alive ? m->word : UINT32_C(0xf9f9f9f9));
}

static void hook_of_dead(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    moment *m = baton;
    (void)image, (void)serial;
    set_alive(m, addr <= m->place && m->place < addr + len);
}

static int sample_of_dead(w_run *run, const au_sample *sample)
{
    moment *m = run->baton;
    const char *got = text_of(m, sample);
    MUST(m, (sample->flags & AU_SAMPLE_TORN) || is_wanted(m, got), got);
    m->samples++;
    return 0;
}

START_TEST(dead_code_is_nobodys)
{
    enum { PASSES = 20 };
    moment m = {.w = world_create(world_builds[_i])};
    w_run run;
    begin(&m, &run, sample_of_dead, PASSES);
    m.word = (uint32_t)world_get(m.w, m.leaf.code->table + m.w->l.bytes_data);
    m.place = m.t->frames[m.t->count - 1].addr;
    world_expect(m.w, m.t, &m.wanted);
    go(&m, &run, hook_of_dead, PASSES);
    ck_assert_uint_eq(run.stats.torn, PASSES);
    end(&m, &run);
}
END_TEST

/* 3.10: a trace function works while its caller has not begun, or has ended; nobody is called by a cleared frame. */
START_TEST(traced_frames_are_callers)
{
    static const struct {
        int8_t state;
        int unit;
        int torn;
    } cases[] = {{-2, -1, 0}, {1, 9, 0}, {3, 9, 0}, {4, 9, 1}};
    enum { PASSES = 10 };
    moment m = {.w = world_create(world_builds[0]), .quiet = 1};
    w_run run;
    ck_assert_int_eq(m.w->minor, 10);
    begin(&m, &run, sample_of_dead, PASSES);
    size_t caller = m.t->count - 2;
    world_set_unit(m.w, m.t, caller, cases[_i].unit);
    au_addr state = m.t->frames[caller].addr + m.w->l.frame_state;
    world_word(m.w, state, (world_get(m.w, state) & ~UINT64_C(0xff)) | (uint8_t)cases[_i].state);
    world_expect(m.w, m.t, &m.wanted);
    go(&m, &run, NULL, PASSES);
    ck_assert_uint_eq(run.stats.errors, cases[_i].torn ? PASSES : 0);
    end(&m, &run);
}
END_TEST

/* A new code object has been replaced by another one, and its frame has ended, by the time that it is read. */
static void hook_of_replaced(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    moment *m = baton;
    (void)image, (void)serial;
    if (!m->quiet && !m->moved && addr <= m->made->addr && m->made->addr < addr + len) {
        m->moved = 1;
        world_pop(m->w, m->t);
        world_code_remake(m->w, m->made, "a.py", "other", 1, 0);
    }
}

static int sample_of_replaced(w_run *run, const au_sample *sample)
{
    moment *m = run->baton;
    const char *got = text_of(m, sample);
    MUST(m, !strstr(got, "other"), got);
    if (!m->quiet && !m->moved) {
        world_pop(m->w, m->t);
    }
    m->samples++;
    m->moved = 0;
    m->quiet = m->samples % 4 != 0; /* in between the same stack as ever, which is looked at in a shorter way */
    if (!m->quiet) {
        m->made = world_code(m->w, "a.py", "other", 1, 8);
        world_code_remake(m->w, m->made, "a.py", "first", 1, 0);
        world_push(m->w, m->t, (w_frame){m->made, 5, W_PLAIN, 0});
    }
    return 0;
}

START_TEST(replaced_code_is_not_named)
{
    enum { PASSES = 400 };
    moment m = {.w = world_create(world_builds[_i]), .quiet = 1};
    w_run run;
    begin(&m, &run, sample_of_replaced, PASSES);
    go(&m, &run, hook_of_replaced, PASSES);
    end(&m, &run);
}
END_TEST

/*
 * Tasks of an event loop: called through C, so that their caller never holds them, and each gives way to the next while
 * it is looked at. Once it is known who calls them one look is enough.
 */
typedef struct turns {
    moment m;
    w_frame tasks[2];
    int next;
    size_t shown[2], others, torn;
} turns;

static void take_turns(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    turns *u = baton;
    moment *m = &u->m;
    (void)image, (void)serial;
    if (!m->quiet && m->copies == 1 && !m->moved) {
        m->moved = 1;
        world_pop(m->w, m->t);
        world_push(m->w, m->t, u->tasks[u->next ^= 1]);
    }
    if (addr <= m->place && m->place < addr + len) {
        m->copies = (m->copies + 1) % 2; /* of each batch */
        m->moved = m->copies && m->moved;
    }
}

static int sample_of_turns(w_run *run, const au_sample *sample)
{
    turns *u = run->baton;
    const char *got = text_of(&u->m, sample);
    if (u->m.samples >= 100) {
        int task = strstr(got, "task1") != NULL;
        int any = strstr(got, "task") != NULL;
        u->torn += (sample->flags & AU_SAMPLE_TORN) != 0;
        u->shown[task] += any != 0;
        u->others += !any;
    }
    u->m.samples++;
    u->m.quiet = u->m.samples % 8 < 4; /* now and then one runs for long */
    u->m.copies = u->m.moved = 0;
    if (u->m.quiet) {
        world_pop(u->m.w, u->m.t);
        world_push(u->m.w, u->m.t, u->tasks[u->next ^= 1]);
    }
    return 0;
}

START_TEST(tasks_that_take_turns)
{
    enum { PASSES = 500 };
    turns u = {.m = {.w = world_create(world_builds[_i]), .quiet = 1}};
    world *w = u.m.w;
    w_run run;
    u.m.t = world_thread(w, world_interp(w, 0), 0x7f0000001000, 4711);
    w_frame frames[] = {{world_code(w, "a.py", "f0", 1, 50), 5, W_PLAIN, 0},
                        {world_code(w, "a.py", "loop", 61, 50), 6, W_PLAIN, 0},
                        {world_code(w, "a.py", "task0", 121, 50), 7, W_GENERATOR, 0},
                        {world_code(w, "a.py", "task1", 181, 50), 8, W_GENERATOR, 0}};
    u.tasks[0] = frames[2];
    u.tasks[1] = frames[3];
    world_stack(w, u.m.t, frames, 3);
    w_run_init(&run, w);
    run.baton = &u;
    run.on_sample = sample_of_turns;
    run.options.max_passes = PASSES;
    ck_assert_ptr_null(w_run_find(&run));
    u.m.place = u.m.t->frames[1].addr;
    au_image_set_hook(w->image, take_turns, &u);
    w_run_go(&run, PASSES);
    au_image_set_hook(w->image, NULL, NULL);
    ck_assert_uint_eq(u.others + u.torn, 0);
    ck_assert_uint_ge(u.shown[0], 150);
    ck_assert_uint_ge(u.shown[1], 150);
    au_buf_deinit(&u.m.text);
    w_run_deinit(&run);
    world_destroy(w, 0);
}
END_TEST

Suite *au_moments_suite(void)
{
    Suite *suite = suite_create("moments");
    TCase *tcase = tcase_create("moments");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, moment_is_before_the_copies, 0, WORLD_BUILDS * 3);
    tcase_add_loop_test(tcase, what_a_call_has_left_is_no_call, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, a_call_from_c_that_has_ended, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, dead_code_is_nobodys, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, traced_frames_are_callers, 0, 4);
    tcase_add_loop_test(tcase, replaced_code_is_not_named, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, tasks_that_take_turns, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, moment_in_new_code_is_not_its_callers, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
