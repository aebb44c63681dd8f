/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * CPU mode: which of the threads that run or wait for a CPU have one?
 *
 * No port is asked that, since no system answers it cheaply: "runs" means "on a CPU or ready for one", and where more
 * threads are ready than there are CPUs that is too much. What can be had with the run state is the thread's CPU time.
 * It is late while the thread is on a CPU, so it does not tell about a single pass, but what is counted in the end is
 * right. So each thread has an account: what the system counts is paid in, a sample written takes out its pass' time,
 * and a thread that is ready is written as long as its account covers it.
 *
 * It may be overdrawn, by
 *  - how late the system counts as a rule. One that is later (a slow tick; Linux counts a CPU without ticks once a
 *    second) pays all the more at once, and what was not written the first time keeps the account covered from then on;
 *  - what whole passes put at random into an account that is right in the mean: a thread that runs in bursts shorter
 *    than the interval is met, and written with a whole interval, or not. That wanders up and down by half of sqrt(N)
 *    intervals in N passes, and should seldom meet the lower end, where it is cut;
 *  - a stint. On a busy machine the account stands at its lower end, and samples would be covered when a stint has been
 *    counted, often when it is over: their stacks would be those of the wait. So when the thread is given a CPU, which
 *    the count of switches tells, a stint is lent to it, and what is counted of it goes to pay that back.
 *
 * So the sum over a thread is at most its CPU time and this room, whatever the ratio of its bursts to the interval is.
 * It is not much less either: a thread that goes to sleep is no longer ready while it still has the CPU, to set its
 * timer for instance, and so is a little short each time. What has come together of that, beyond what is random, is
 * written when it has just gone to sleep again, with the stack that it went to sleep with.
 *
 * What is lent for the random part is many intervals, and a thread that is ready all the time would keep it for good.
 * But its passes are not random: it is met each time, and what must be left out of them is what it has waited for a
 * CPU, which the system counts when a wait is over. So there is a second account, of waits: paid in is what is counted
 * as waited, taken out is what was left out. While that and the wait that may be going on, which is since when nothing
 * of the thread has changed, are enough for another pass, nothing is lent for the random part.
 *
 * A thread that ends takes with it what was lent to it, and of one that lives for less than an interval no account can
 * be made up. So there is a third, of the process: what it has used, threads that have ended included, against all that
 * was written of it. Its room is that of the threads that are ready. What it lacks is kept back from each thread that
 * has been in a crowd and would be written on credit; from where that does not do, such a thread is not written.
 *
 * On a machine with CPUs to spare every ready thread is covered, and written as if there were no account.
 *
 * Which thread, and which pass of a thread, is written needs no dice: each has an account of its own, and the gaps
 * between passes are random.
 */
#include "engine/internal.h"

#define MS INT64_C(1000000)

enum {
    LATE_MS = 5,    /* a tick of 4 ms, the usual one, and a little */
    STINT_MS = 5,   /* what a scheduler with others in line lets a thread run for, and a little */
    WANDER = 32,    /* intervals */
    KEPT_MS = 2000, /* what is counted and not written is remembered up to here */
    POOL_MS = 50,
    POOL = 8,       /* intervals; and of the process up to here, since it has threads that are none of ours */
    CROWDED = 4,    /* who has waited for more than one part of this of its CPU time is in a crowd */
    MOST_READY = 16 /* that are lent to at once */
};

#define NEVER_NS (INT64_C(1) << 61) /* more than any account covers */

static int64_t at_most(uint64_t value, int64_t most)
{
    return value < (uint64_t)most ? (int64_t)value : most;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t intervals(const au_engine *e, int count)
{
    return at_most(e->options.interval_us, KEPT_MS * MS) * 1000 * count;
}

static int64_t time_of(uint64_t time_us)
{
    return at_most(time_us, NEVER_NS / 1000) * 1000;
}

static void pay_in(const au_engine *e, au_cpu_account *a, const au_thread_state *state, int64_t time_ns)
{
    if (!a->counted_ns || state->cpu_ns < a->counted_ns) { /* the first look, or it is another thread now */
        int64_t before =
            a->counted_ns ? 0 : max(a->owed_ns, -KEPT_MS * MS); /* written when there was nothing counted yet */
        *a = (au_cpu_account){.counted_ns = state->cpu_ns,
                              .waited_ns = state->waited_ns,
                              .switches = state->switches,
                              .owed_ns = before + at_most(state->cpu_ns, min(time_ns, KEPT_MS * MS) - before),
                              .waits_ns = at_most(state->waited_ns, min(time_ns, KEPT_MS * MS))};
        return;
    }
    int64_t gained = at_most(state->cpu_ns - a->counted_ns, KEPT_MS * MS);
    int64_t waited = state->waited_ns > a->waited_ns ? at_most(state->waited_ns - a->waited_ns, KEPT_MS * MS) : 0;
    int stints = state->switches != a->switches;
    a->stands_ns = gained || stints ? 0 : min(a->stands_ns + time_ns, KEPT_MS * MS);
    a->counted_ns = state->cpu_ns;
    a->waited_ns = state->waited_ns;
    a->switches = state->switches;
    a->owed_ns = min(a->owed_ns + gained, KEPT_MS * MS);
    a->waits_ns = min(a->waits_ns + waited, (LATE_MS + STINT_MS) * MS + intervals(e, 2));
    a->lent_ns = stints ? STINT_MS * MS : max(a->lent_ns - gained, 0);
}

static void look_at_pool(au_engine *e)
{
    au_cpu_pool *pool = &e->cpu;
    au_usage usage;
    int64_t ready = 0;
    pool->pass = e->stats.passes + 1;
    pool->room_ns = NEVER_NS;
    if (!(e->remote.ops->caps & AU_CAP_USAGE) || e->remote.ops->usage(e->remote.proc, &usage) != AU_OK) {
        return;
    }
    for (size_t i = 0; i < e->thread_count && ready < MOST_READY; i++) {
        ready += e->threads[i]->state.run == AU_RUN_RUNNING;
    }
    pool->room_ns = ready * (LATE_MS + STINT_MS) * MS;
    if (!pool->counted_ns || usage.cpu_ns < pool->counted_ns) {
        pool->owed_ns = 0;
    } else {
        pool->owed_ns += at_most(usage.cpu_ns - pool->counted_ns, NEVER_NS);
        pool->owed_ns = min(pool->owed_ns, POOL_MS * MS + intervals(e, POOL));
        pool->owed_ns = max(pool->owed_ns, -KEPT_MS * MS - intervals(e, WANDER));
    }
    pool->counted_ns = usage.cpu_ns;
}

/* How much more has been written of the process than it has used, beyond its room. Negative: so much is left of it. */
static int64_t pool_lacks(au_engine *e)
{
    if (e->cpu.pass != e->stats.passes + 1) {
        look_at_pool(e);
    }
    return -e->cpu.owed_ns - e->cpu.room_ns;
}

unsigned au__cpu_wanted(const au_engine *e)
{
    return e->options.mode == AU_MODE_CPU && (e->remote.ops->caps & AU_CAP_THREAD_CPU) ? AU_STATE_CPU | AU_STATE_WAITED
                                                                                       : 0;
}

int au__cpu_owes(const au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    au_cpu_account *a = &rec->cpu;
    if (!au__cpu_wanted(e) || rec->state.outcome != AU_OK || rec->state.run != AU_RUN_ASLEEP || !rec->state.cpu_ns ||
        rec->state.cpu_ns <= a->counted_ns) {
        return 0;
    }
    pay_in(e, a, &rec->state, time_of(time_us));
    return a->owed_ns > intervals(e, WANDER) + time_of(time_us);
}

int au__cpu_covers(au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    au_cpu_account *a = &rec->cpu;
    if (!au__cpu_wanted(e)) {
        return 1;
    }
    if (!e->cpu.counted_ns) {
        look_at_pool(e);
    }
    if (!rec->state.cpu_ns) {
        return 1;
    }
    int64_t time_ns = time_of(time_us), half = time_ns / 2; /* rounded: half of a pass may lack */
    pay_in(e, a, &rec->state, time_ns);
    int64_t covered = a->owed_ns + LATE_MS * MS + a->lent_ns;
    int may_wait = a->waits_ns + a->stands_ns >= half;
    int64_t lacks = -NEVER_NS;
    if (a->owed_ns < half && rec->state.waited_ns > rec->state.cpu_ns / CROWDED) {
        lacks = pool_lacks(e);
    }
    covered += (may_wait ? 0 : intervals(e, WANDER)) - max(lacks, 0);
    /* kept back first, since a thread whose turn it is is written then, and whoever is first in the list otherwise */
    if (covered > half && lacks < e->cpu.room_ns / 4 - half) {
        return 1;
    }
    a->waits_ns -= may_wait ? min(time_ns, KEPT_MS * MS) : 0;
    return 0;
}

void au__cpu_written(au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    if (au__cpu_wanted(e)) {
        rec->cpu.owed_ns = max(rec->cpu.owed_ns - time_of(time_us), -NEVER_NS);
        e->cpu.owed_ns = max(e->cpu.owed_ns - time_of(time_us), -NEVER_NS);
    }
}
