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
 * On a machine with CPUs to spare every ready thread is covered, and written as if there were no account.
 *
 * Which thread, and which pass of a thread, is written needs no dice: each has an account of its own, and the gaps
 * between passes are random.
 */
#include "engine/internal.h"

#define MS INT64_C(1000000)

enum {
    LATE_MS = 5,   /* a tick of 4 ms, the usual one, and a little */
    STINT_MS = 5,  /* what a scheduler with others in line lets a thread run for, and a little */
    WANDER = 32,   /* intervals */
    KEPT_MS = 2000 /* what is counted and not written is remembered up to here */
};

#define NEVER_NS (INT64_C(1) << 61) /* more than any account covers */

static int64_t at_most(uint64_t value, int64_t most)
{
    return value < (uint64_t)most ? (int64_t)value : most;
}

static void pay_in(au_cpu_account *a, const au_thread_state *state)
{
    if (!a->counted_ns || state->cpu_ns < a->counted_ns) { /* the first look, or it is another thread now */
        *a = (au_cpu_account){.counted_ns = state->cpu_ns, .switches = state->switches};
        return;
    }
    int64_t gained = at_most(state->cpu_ns - a->counted_ns, KEPT_MS * MS);
    int stints = state->switches != a->switches;
    a->counted_ns = state->cpu_ns;
    a->switches = state->switches;
    a->owed_ns = a->owed_ns + gained < KEPT_MS * MS ? a->owed_ns + gained : KEPT_MS * MS;
    a->lent_ns = stints ? STINT_MS * MS : gained < a->lent_ns ? a->lent_ns - gained : 0;
}

unsigned au__cpu_wanted(const au_engine *e)
{
    return e->options.mode == AU_MODE_CPU && (e->remote.ops->caps & AU_CAP_THREAD_CPU) ? AU_STATE_CPU : 0;
}

static int64_t wander(const au_engine *e)
{
    return at_most(e->options.interval_us, KEPT_MS * MS) * 1000 * WANDER;
}

int au__cpu_owes(const au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    au_cpu_account *a = &rec->cpu;
    if (!au__cpu_wanted(e) || rec->state.outcome != AU_OK || rec->state.run != AU_RUN_ASLEEP || !rec->state.cpu_ns ||
        rec->state.cpu_ns <= a->counted_ns) {
        return 0;
    }
    pay_in(a, &rec->state);
    return a->owed_ns > wander(e) + at_most(time_us, NEVER_NS / 1000) * 1000;
}

int au__cpu_covers(const au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    au_cpu_account *a = &rec->cpu;
    if (!au__cpu_wanted(e) || !rec->state.cpu_ns) {
        return 1;
    }
    pay_in(a, &rec->state);
    int64_t room = LATE_MS * MS + wander(e) + a->lent_ns;
    /* Rounded: half of a pass may lack. That of an hour in which the machine was suspended is not covered. */
    return a->owed_ns + room > at_most(time_us, NEVER_NS / 500) * 500;
}

void au__cpu_written(const au_engine *e, au_thread_rec *rec, uint64_t time_us)
{
    if (au__cpu_wanted(e) && rec->state.cpu_ns) {
        rec->cpu.owed_ns -= (int64_t)(time_us * 1000); /* covered: no large number */
    }
}
