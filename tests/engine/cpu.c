/* SPDX-License-Identifier: Apache-2.0 */
/* CPU mode against a scheduler that is known: how much of what is ready is written. */
#include <stdlib.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define NEVER (UINT64_C(1) << 62)

typedef enum phase { ON, LEAVING, READY, ASLEEP } phase; /* LEAVING: still on the CPU, and no longer ready */

/* One thread and its scheduler. Lengths are means: each is drawn between half and one and a half of it. */
typedef struct machine {
    uint64_t on_ns, leaving_ns, ready_ns, asleep_ns; /* after each other; 0: not at all */
    uint64_t tick_ns;                                /* how often the time of a thread on the CPU is counted */
    uint64_t interval_us;                            /* 0: 100 us */
    uint64_t freeze_at, freeze_ns;                   /* stands still as a whole, the profiler too */
    phase phase;
    uint64_t now, until;
    uint64_t cpu_ns, counted_ns, switches, waited_ns, ready_at;
    uint64_t seed;
    uint64_t from_ns;                                       /* CPU time at the first pass */
    uint64_t written_us, written_on_us;                     /* of samples; of those taken while it was on the CPU */
    uint64_t passed_us, unwritten_us, longest_unwritten_us; /* passes in a row without a sample */
    int sampled, uncounted;
} machine;

static world *w;
static w_thread *t;
static w_run run;

static uint64_t length(machine *m, uint64_t mean)
{
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return mean / 2 + (m->seed >> 33) % (mean + 1);
}

static void next_phase(machine *m)
{
    if (m->phase == ON && m->leaving_ns) {
        m->phase = LEAVING;
    } else if (m->phase == ON || m->phase == LEAVING) {
        m->counted_ns = m->cpu_ns;
        m->phase = m->asleep_ns ? ASLEEP : m->ready_ns ? READY : ON;
    } else if (m->phase == ASLEEP && m->ready_ns) {
        m->phase = READY;
    } else {
        m->waited_ns += m->phase == READY ? m->now - m->ready_at : 0;
        m->phase = ON;
        m->switches++;
    }
    m->ready_at = m->now;
    const uint64_t means[] = {m->on_ns, m->leaving_ns, m->ready_ns, m->asleep_ns};
    m->until = m->now + 1 + length(m, means[m->phase]);
}

static void advance(machine *m, uint64_t to)
{
    while (m->now < to) {
        uint64_t tick = (m->now / m->tick_ns + 1) * m->tick_ns;
        uint64_t step = m->until < tick ? m->until : tick;
        step = (step < to ? step : to) - m->now;
        m->cpu_ns += m->phase <= LEAVING ? step : 0;
        m->now += step;
        m->counted_ns = m->phase <= LEAVING && m->now == tick ? m->cpu_ns : m->counted_ns;
        if (m->now == m->until) {
            next_phase(m);
        }
    }
}

static void show(const machine *m)
{
    int ready = m->phase == ON || m->phase == READY;
    (void)au_image_set_thread(w->image, t->tid, ready ? AU_RUN_RUNNING : AU_RUN_ASLEEP, m->switches);
    (void)au_image_set_cpu(w->image, t->tid, m->uncounted ? 0 : m->counted_ns, m->uncounted ? 0 : m->waited_ns);
    au_image_set_process_cpu(w->image, m->uncounted ? 0 : m->counted_ns);
}

static void until_pass(void *baton, au_image *image, uint64_t deadline_ns)
{
    machine *m = baton;
    (void)image;
    if (m->freeze_ns && m->now >= m->freeze_at) {
        au_image_set_time(image, deadline_ns + m->freeze_ns);
        m->now = deadline_ns + m->freeze_ns;
        m->until += m->freeze_ns;
        m->freeze_ns = 0;
    }
    advance(m, deadline_ns);
    show(m);
}

static int on_sample(w_run *r, const au_sample *sample)
{
    machine *m = r->baton;
    m->written_us += sample->time_us;
    m->written_on_us += m->phase == ON ? sample->time_us : 0;
    m->sampled = 1;
    return 0;
}

static int on_pass(w_run *r)
{
    machine *m = r->baton;
    m->from_ns = r->passes == 1 ? m->cpu_ns : m->from_ns;
    m->unwritten_us = m->sampled ? 0 : m->unwritten_us + r->time_us - m->passed_us;
    m->longest_unwritten_us = m->unwritten_us > m->longest_unwritten_us ? m->unwritten_us : m->longest_unwritten_us;
    m->passed_us = r->time_us;
    m->sampled = 0;
    return 0;
}

static void go(int build, machine *m, uint64_t passes, uint64_t caps_off)
{
    w = world_create(world_builds[build]);
    t = world_basic(w);
    w_run_init(&run, w);
    if (caps_off) {
        au_image_set_caps(w->image, au_image_sys(w->image)->ops->caps & ~caps_off);
    }
    m->now = au_image_sys(w->image)->ops->now(au_image_sys(w->image));
    m->until = m->now + m->on_ns;
    m->cpu_ns = m->counted_ns = 1000 * MS;
    m->switches = 5;
    show(m);
    au_image_set_sleep_hook(w->image, until_pass, m);
    run.options.mode = AU_MODE_CPU;
    run.options.interval_us = m->interval_us ? m->interval_us : 100;
    run.on_sample = on_sample;
    run.on_pass = on_pass;
    run.baton = m;
    w_run_go(&run, passes);
}

/* CPU time of the passes, in us */
static double truth(const machine *m)
{
    return (double)(m->cpu_ns - m->from_ns) / 1000;
}

static void end(void)
{
    w_run_deinit(&run);
    world_destroy(w, 0);
}

#define MACHINE .tick_ns = 4 * MS, .seed = 3
#define ROOM_US (2 * 5000 + 33 * 100.0) /* how late it may be counted, and the loan; the wander of the passes */

/* Ready all the time, on the CPU for a half and a third of it, in slices of a scheduler's size and smaller. */
static const machine crowded_by[] = {{MACHINE, .on_ns = 4 * MS, .ready_ns = 4 * MS},
                                     {MACHINE, .on_ns = 4 * MS, .ready_ns = 8 * MS},
                                     {MACHINE, .on_ns = 1 * MS, .ready_ns = 3 * MS},
                                     {MACHINE, .on_ns = 60 * MS, .ready_ns = 60 * MS}};

START_TEST(crowded)
{
    machine m = crowded_by[_i % 4];
    go(_i / 4 * 8, &m, 50000, 0);
    ck_assert_double_le(truth(&m) - ROOM_US, (double)m.written_us);
    ck_assert_double_le((double)m.written_us, truth(&m) + ROOM_US);
    /* and mostly with the stack of where it runs, not of where it waits */
    ck_assert_double_ge((double)m.written_on_us, 0.7 * (double)m.written_us);
    end();
}
END_TEST

/* With long intervals too: what is lent for the wander of passes is not lent to a thread that waits. */
static const machine seldom_looked_at[] = {{MACHINE, .on_ns = 4 * MS, .ready_ns = 12 * MS, .interval_us = 1000},
                                           {MACHINE, .on_ns = 4 * MS, .ready_ns = 12 * MS, .interval_us = 10000},
                                           {MACHINE, .on_ns = 4 * MS, .ready_ns = 12 * MS, .interval_us = 100000}};

START_TEST(crowded_long_intervals)
{
    machine m = seldom_looked_at[_i];
    go(8, &m, 10000000 / m.interval_us, 0);
    double most = 2 * 5000 + 1.5 * (double)m.interval_us;
    ck_assert_double_ge(truth(&m), 2e6);
    ck_assert_double_le(truth(&m) - most, (double)m.written_us);
    ck_assert_double_le((double)m.written_us, truth(&m) + most);
    end();
}
END_TEST

/* Sleeping in between, and waiting for the CPU each time: bursts longer and much shorter than the interval. */
static const machine bursts_of[] = {{MACHINE, .on_ns = 3 * MS, .ready_ns = 2 * MS, .asleep_ns = 4 * MS},
                                    {MACHINE, .on_ns = 100 * US, .ready_ns = 50 * US, .asleep_ns = 100 * US},
                                    {MACHINE, .on_ns = 10 * US, .ready_ns = 10 * US, .asleep_ns = 12 * US},
                                    {MACHINE, .on_ns = 2 * US, .ready_ns = 5 * US, .asleep_ns = 8 * US}};

START_TEST(bursts)
{
    machine m = bursts_of[_i % 4];
    go(_i / 4 * 8, &m, 50000, 0);
    ck_assert_double_le(truth(&m) - ROOM_US, (double)m.written_us);
    ck_assert_double_le((double)m.written_us, truth(&m) + ROOM_US);
    end();
}
END_TEST

/* With a CPU to spare the account changes next to nothing: what meets it ready is written. */
static const machine alone_with[] = {{MACHINE, .on_ns = 3600000 * MS},
                                     {MACHINE, .on_ns = 5 * MS, .asleep_ns = 5 * MS},
                                     {MACHINE, .on_ns = 50 * US, .asleep_ns = 50 * US},
                                     {MACHINE, .on_ns = 20 * MS, .asleep_ns = 20 * MS, .interval_us = 50000}};

START_TEST(alone)
{
    machine m = alone_with[_i % 4];
    uint64_t passes = m.interval_us ? 500 : 50000;
    go(_i / 4 * 8, &m, passes, 0);
    uint64_t written = m.written_us;
    ck_assert_double_le(truth(&m) * (m.interval_us ? 0.85 : 0.99), (double)written);
    ck_assert_double_le((double)written, truth(&m) * (m.interval_us ? 1.15 : 1.01));
    end();
    m = alone_with[_i % 4];
    go(_i / 4 * 8, &m, passes, AU_CAP_THREAD_CPU);
    /* but for what is beyond the wander of the passes */
    ck_assert_uint_le(m.written_us, written);
    ck_assert_double_le((double)written, 1.001 * (double)m.written_us);
    end();
}
END_TEST

/* What a thread uses on its way to sleep is not lost: 1,500 times 50 us of 5 s. */
START_TEST(on_its_way_to_sleep)
{
    machine m = {MACHINE, .on_ns = 1600 * US, .leaving_ns = 50 * US, .asleep_ns = 1700 * US};
    go(_i * 8, &m, 50000, 0);
    ck_assert_double_ge((double)m.written_us, truth(&m) - 33 * 100 - 1000);
    ck_assert_double_le((double)m.written_us, truth(&m) + ROOM_US);
    end();
    machine again = {MACHINE, .on_ns = 1600 * US, .leaving_ns = 50 * US, .asleep_ns = 1700 * US};
    go(_i * 8, &again, 50000, AU_CAP_THREAD_CPU); /* it would be, without the account */
    ck_assert_double_le((double)again.written_us, truth(&again) - 40000);
    end();
}
END_TEST

/* Without CPU time what is ready is written: of a system that has none, or does not count. */
START_TEST(not_counted)
{
    machine m = {MACHINE, .on_ns = 4 * MS, .ready_ns = 4 * MS, .uncounted = _i == 0};
    m.freeze_at = 1100 * MS;
    m.freeze_ns = 60000 * MS;
    go(0, &m, 5000, _i ? AU_CAP_THREAD_CPU : 0);
    ck_assert_uint_ge(run.stats.duration_us, 60000000u);
    ck_assert_uint_eq(m.written_us, run.stats.duration_us);
    end();
}
END_TEST

/* A system that counts once a second, as Linux does on a CPU without ticks: from the second second on all is written.
 */
START_TEST(counted_late)
{
    machine m = {MACHINE, .on_ns = 3600000 * MS};
    m.tick_ns = 1000 * MS;
    go(8, &m, 20000, 0);
    uint64_t first = m.written_us;
    ck_assert_uint_le(m.longest_unwritten_us, 1000000);
    ck_assert_double_ge((double)first, truth(&m) - 1e6);
    end();
    m = (machine){MACHINE, .on_ns = 3600000 * MS};
    m.tick_ns = 1000 * MS;
    go(8, &m, 100000, 0);
    ck_assert_double_ge((double)(m.written_us - first), 0.999 * 80000 * 100);
    end();
}
END_TEST

/* A minute in which nothing ran is not written, and what comes after it is. */
START_TEST(suspended)
{
    machine m = {MACHINE, .on_ns = 3600000 * MS, .freeze_at = 2000 * MS, .freeze_ns = 60000 * MS};
    go(8, &m, 50000, 0);
    ck_assert_uint_ge(run.stats.duration_us, 60000000u);
    ck_assert_double_le((double)m.written_us, truth(&m) + ROOM_US);
    ck_assert_double_ge((double)m.written_us, truth(&m) - ROOM_US);
    end();
}
END_TEST

/* ---- several threads on one CPU, in turns, all of them ready all the time ---------------------------------------- */

enum { CROWD = 4, FIRST_TID = 0x5000 };

typedef struct one {
    w_thread *thread; /* NULL: has not begun */
    uint64_t cpu_ns, counted_ns, waited_ns, ready_at, switches;
    uint64_t written_us;
} one;

typedef struct crowd {
    one all[CROWD];
    uint64_t life_ns; /* of CPU time; then another one begins */
    int first_stays;  /* but not in the first place */
    size_t on;
    uint64_t now, until, seed;
    uint64_t dead_ns, written_us, written_on_us, from_ns;
    int born;
} crowd;

static uint64_t life(const crowd *c)
{
    return c->first_stays && !c->on ? NEVER : c->life_ns;
}

static void begin_stint(crowd *c)
{
    one *o = &c->all[c->on];
    if (!o->thread) { /* a thread enters its id when it begins to run */
        w_frame frames[1] = {{w->codes, 5, W_PLAIN, 0}};
        o->thread = world_thread(w, w->interps, UINT64_C(0x7fff20000000) + (uint64_t)c->born * 4096,
                                 FIRST_TID + (au_tid)c->born);
        world_stack(w, o->thread, frames, 1);
        c->born++;
    }
    o->waited_ns += c->now - o->ready_at;
    o->switches++;
    machine dice = {.seed = c->seed};
    c->until = c->now + length(&dice, 4 * MS);
    c->seed = dice.seed;
}

static void end_stint(crowd *c)
{
    one *o = &c->all[c->on];
    o->counted_ns = o->cpu_ns;
    o->ready_at = c->now;
    if (o->cpu_ns >= life(c)) {
        c->dead_ns += o->cpu_ns;
        world_thread_end(w, o->thread);
        *o = (one){.ready_at = c->now};
    }
    c->on = (c->on + 1) % CROWD;
}

static void crowd_until(void *baton, au_image *image, uint64_t deadline_ns)
{
    crowd *c = baton;
    while (c->now < deadline_ns) {
        one *o = &c->all[c->on];
        uint64_t tick = (c->now / (4 * MS) + 1) * (4 * MS), lives = life(c) - o->cpu_ns;
        uint64_t next = c->until < tick ? c->until : tick;
        next = next < c->now + lives ? next : c->now + lives;
        next = next < deadline_ns ? next : deadline_ns;
        o->cpu_ns += next - c->now;
        c->now = next;
        o->counted_ns = c->now == tick ? o->cpu_ns : o->counted_ns;
        if (c->now == c->until || o->cpu_ns >= life(c)) {
            end_stint(c);
            begin_stint(c);
        }
    }
    uint64_t sum = 1000 * MS + c->dead_ns;
    for (size_t i = 0; i < CROWD; i++) {
        const one *o = &c->all[i];
        sum += o->counted_ns;
        if (o->thread) {
            (void)au_image_set_thread(image, o->thread->tid, AU_RUN_RUNNING, o->switches);
            (void)au_image_set_cpu(image, o->thread->tid, o->counted_ns, o->waited_ns);
        }
    }
    au_image_set_process_cpu(image, sum);
}

static int on_sample_of_crowd(w_run *r, const au_sample *sample)
{
    crowd *c = r->baton;
    c->written_us += sample->time_us;
    for (size_t i = 0; i < CROWD; i++) {
        one *o = &c->all[i];
        if (o->thread && strtol(sample->thread, NULL, 16) == o->thread->tid) {
            o->written_us += sample->time_us;
            c->written_on_us += i == c->on ? sample->time_us : 0;
        }
    }
    return 0;
}

static void go_crowd(crowd *c, uint64_t interval_us, uint64_t duration_us)
{
    w = world_create(world_builds[8]);
    t = world_basic(w);
    w_run_init(&run, w);
    (void)au_image_set_thread(w->image, t->tid, AU_RUN_ASLEEP, 5);
    (void)au_image_set_cpu(w->image, t->tid, 1000 * MS, 0);
    c->seed = 7;
    c->from_ns = c->now = au_image_sys(w->image)->ops->now(au_image_sys(w->image));
    for (size_t i = 0; i < CROWD; i++) {
        c->all[i].ready_at = c->now;
    }
    begin_stint(c);
    au_image_set_process_cpu(w->image, 1000 * MS);
    au_image_set_sleep_hook(w->image, crowd_until, c);
    run.options.mode = AU_MODE_CPU;
    run.options.interval_us = interval_us;
    run.on_sample = on_sample_of_crowd;
    run.baton = c;
    w_run_go(&run, duration_us / interval_us);
}

static const uint64_t interval_of[] = {100, 1000, 10000, 100000};

/* However long threads live: together they are written with what they have used. */
START_TEST(short_lives)
{
    const uint64_t lives[] = {4 * MS, 10 * MS, 50 * MS};
    crowd c = {.life_ns = lives[_i / 4]};
    go_crowd(&c, interval_of[_i % 4], 6000000);
    double used = (double)(c.now - c.from_ns) / 1000;
    ck_assert_int_ge(c.born, 100);
    ck_assert_double_le(0.95 * used, (double)c.written_us);
    ck_assert_double_le((double)c.written_us, 1.05 * used);
    end();
}
END_TEST

/* And each with its own part, wherever it stands in the list. */
START_TEST(long_lives)
{
    crowd c = {.life_ns = NEVER};
    go_crowd(&c, interval_of[_i], 10000000);
    for (size_t i = 0; i < CROWD; i++) {
        double used = (double)c.all[i].cpu_ns / 1000, most = 2 * 5000 + 1.5 * (double)interval_of[_i];
        ck_assert_double_ge(used, 2e6);
        ck_assert_double_le(used - most, (double)c.all[i].written_us);
        ck_assert_double_le((double)c.all[i].written_us, used + most);
    }
    if (interval_of[_i] <= 1000) { /* mostly with the stack of where they run */
        ck_assert_double_ge((double)c.written_on_us, 0.7 * (double)c.written_us);
    }
    end();
}
END_TEST

/* Nor do those that come and go, and stand before it in the list, take what is its. */
START_TEST(beside_short_lives)
{
    crowd c = {.life_ns = 10 * MS, .first_stays = 1};
    go_crowd(&c, interval_of[_i], 10000000);
    double used = (double)c.all[0].cpu_ns / 1000, most = 2 * 5000 + 1.5 * (double)interval_of[_i];
    ck_assert_double_ge(used, 2e6);
    ck_assert_double_le(used - most, (double)c.all[0].written_us);
    ck_assert_double_le((double)c.all[0].written_us, used + most);
    end();
}
END_TEST

TCase *au_cpu_case(void)
{
    TCase *tcase = tcase_create("cpu");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, crowded, 0, 8);
    tcase_add_loop_test(tcase, crowded_long_intervals, 0, 3);
    tcase_add_loop_test(tcase, bursts, 0, 8);
    tcase_add_loop_test(tcase, alone, 0, 8);
    tcase_add_loop_test(tcase, on_its_way_to_sleep, 0, 2);
    tcase_add_loop_test(tcase, not_counted, 0, 2);
    tcase_add_test(tcase, counted_late);
    tcase_add_test(tcase, suspended);
    tcase_add_loop_test(tcase, short_lives, 0, 12);
    tcase_add_loop_test(tcase, long_lives, 0, 4);
    tcase_add_loop_test(tcase, beside_short_lives, 0, 4);
    return tcase;
}
