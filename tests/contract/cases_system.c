/* SPDX-License-Identifier: Apache-2.0 */
/* Contract cases: threads, the system, time, and what is switched off. */
#include "tests/contract/cases.h"
#include "tests/contract/cases_list.h"
#include "tests/contract/host.h"

enum { BOTH = AU_STATE_RUN | AU_STATE_SWITCHES };

const char *case_threads(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_thread list[16], again[16];
    size_t n = 0, m = 0;
    EXPECT(!failed(OPS(p)->threads(p, list, 16, &n)), "threads failed");
    EXPECT(n >= 4 && n <= 4 + w->strangers && n <= 16, "not all threads are listed");
    int main_seen = 0, spinner = 0, sleeper = 0, extra = 0;
    for (size_t i = 0; i < n; i++) {
        main_seen += list[i].tid == w->main;
        spinner += list[i].tid == w->spinner;
        sleeper += list[i].tid == w->sleeper;
        extra += list[i].tid == w->extra;
        EXPECT(list[i].start_time_ns != 0, "a thread without a start");
    }
    EXPECT(main_seen == 1 && spinner == 1 && sleeper == 1 && extra == 1, "a thread is missing or listed twice");
    EXPECT(!failed(OPS(p)->threads(p, again, 2, &m)) && m == n, "with too little room the number is not the whole one");
    EXPECT(again[0].tid == list[0].tid && again[1].start_time_ns == list[1].start_time_ns, "a second list differs");
    EXPECT(!failed(OPS(p)->threads(p, NULL, 0, &m)) && m == n, "asking for the number alone fails");
    w->end_thread(w);
    EXPECT(!failed(OPS(p)->threads(p, list, 16, &n)), "threads failed after an end");
    EXPECT(n >= 3 && n <= 3 + w->strangers && n <= 16, "a thread that has ended is still counted");
    for (size_t i = 0; i < n; i++) {
        EXPECT(list[i].tid != w->extra, "a thread that has ended is still listed");
    }
    shut();
    return NULL;
}

static const char *look(au_proc *p, au_tid tid, au_thread_state *state)
{
    state->tid = tid;
    state->wanted = BOTH;
    state->outcome = 99;
    size_t ok = OPS(p)->thread_states(p, state, 1);
    EXPECT(ok == (state->outcome == AU_OK), "the count is not that of the good ones");
    return NULL;
}

#define LOOK(p, tid, state)                                                                                            \
    do {                                                                                                               \
        const char *text_ = look(p, tid, state);                                                                       \
        if (text_) {                                                                                                   \
            return text_;                                                                                              \
        }                                                                                                              \
    } while (0)

enum { LATE_LOOKS = 400, LATE_NS = 5000000 };

/** States of a port that is late by its nature may need some looks until they are the expected ones. */
static size_t look_until(au_proc *p, au_thread_state *states, size_t n, const au_run_state *expected)
{
    for (int looks = 1;; looks++) {
        size_t ok = OPS(p)->thread_states(p, states, n), right = 0;
        for (size_t i = 0; i < n; i++) {
            right += states[i].run == expected[i];
        }
        if ((OPS(p)->caps & AU_CAP_STATES_TOLD) || right == n || looks == LATE_LOOKS) {
            return ok;
        }
        host_pause_ns(LATE_NS);
    }
}

static const au_run_state busy_and_asleep[] = {AU_RUN_RUNNING, AU_RUN_ASLEEP};

const char *case_thread_states(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_thread_state states[3] = {{.tid = w->spinner, .wanted = BOTH, .outcome = 99},
                                 {.tid = w->sleeper, .wanted = BOTH, .outcome = 99},
                                 {.tid = 2147483000, .wanted = BOTH, .outcome = 99}};
    EXPECT(OPS(p)->thread_states(p, states, 3) == 2, "not two of three");
    if (!(OPS(p)->caps & AU_CAP_STATES_TOLD)) {
        EXPECT(states[0].outcome == AU_OK && states[1].outcome == AU_OK, "the good ones are not good");
        EXPECT(look_until(p, states, 2, busy_and_asleep) == 2, "a later look fails");
    }
    EXPECT(states[0].outcome == AU_OK && states[0].run == AU_RUN_RUNNING, "a busy thread does not run");
    EXPECT(states[1].outcome == AU_OK && states[1].run == AU_RUN_ASLEEP, "a sleeping thread is not asleep");
    EXPECT(states[2].outcome == AU_GONE, "a thread that is not there is not gone");
    for (int i = 0; i < 5; i++) {
        EXPECT(look_until(p, states, 2, busy_and_asleep) == 2, "a second look fails");
        EXPECT(states[0].run == AU_RUN_RUNNING && states[1].run == AU_RUN_ASLEEP, "a second look sees other states");
    }
    for (int i = 0; i < 2; i++) {
        states[i].wanted = 0;
    }
    OPS(p)->thread_states(p, states, 2);
    EXPECT(states[0].slot == 0 && states[1].slot == 0, "letting go leaves a slot");
    shut();
    return NULL;
}

const char *case_switches(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_thread_state sleeper = {0};
    LOOK(p, w->sleeper, &sleeper);
    uint64_t before = sleeper.switches;
    EXPECT(sleeper.outcome == AU_OK && before > 0, "a thread that has run was never switched in");
    sleeper.wanted = AU_STATE_SWITCHES;
    EXPECT(OPS(p)->thread_states(p, &sleeper, 1) == 1 && sleeper.switches == before, "the count of a sleeper moves");
    w->poke(w);
    EXPECT(OPS(p)->thread_states(p, &sleeper, 1) == 1 && sleeper.switches > before,
           "a thread has run and the count stands");
    LOOK(p, w->sleeper, &sleeper);
    EXPECT(sleeper.run == AU_RUN_ASLEEP, "asleep again is not asleep");
    shut();
    return NULL;
}

/* A busy thread's CPU time grows with the clock; a sleeper's stands, whoever else runs, and grows when it has run. Who
   sleeps waits for no CPU, and CPU time and waits together are not more than there was time. */
const char *case_thread_cpu(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    const unsigned all = BOTH | AU_STATE_CPU | AU_STATE_WAITED;
    au_thread_state states[2] = {{.tid = w->spinner, .wanted = all}, {.tid = w->sleeper, .wanted = all}};
    int exact = (OPS(p)->caps & AU_CAP_SWITCHES) != 0;
    EXPECT(look_until(p, states, 2, busy_and_asleep) == 2 && states[0].run == AU_RUN_RUNNING,
           "no states with CPU time");
    uint64_t busy = states[0].cpu_ns, idle = states[1].cpu_ns, switches = states[1].switches;
    uint64_t waited = states[0].waited_ns, idle_waited = states[1].waited_ns;
    EXPECT(idle > 0, "a thread that has run has used no CPU"); /* the busy one's may lag by a tick, so be 0 here */
    uint64_t start = w->sys->ops->now(w->sys);
    uint64_t passed = w->sys->ops->sleep_until(w->sys, start + 400000000u) - start;
    states[1].wanted = AU_STATE_SWITCHES | AU_STATE_CPU | AU_STATE_WAITED;
    EXPECT(OPS(p)->thread_states(p, states, 2) == 2, "a second look fails");
    EXPECT((!exact || states[1].switches == switches) && states[1].cpu_ns == idle, "a sleeper uses CPU");
    EXPECT(states[1].waited_ns == idle_waited, "a sleeper waits for a CPU");
    EXPECT(states[0].waited_ns >= waited, "time waited goes back");
    EXPECT(!w->is_real || states[0].cpu_ns - busy + states[0].waited_ns - waited < passed * 2,
           "a busy thread has used and waited for more than the time");
    EXPECT(!w->is_real || states[0].cpu_ns - busy > passed / 50, "a busy thread uses next to no CPU");
    EXPECT(!w->is_real || states[0].cpu_ns - busy < passed * 3, "a busy thread uses more CPU than there is");
    EXPECT(states[0].cpu_ns >= busy, "CPU time goes back");
    busy = states[0].cpu_ns;
    w->poke(w);
    states[1].wanted = all;
    EXPECT(look_until(p, states, 2, busy_and_asleep) == 2 && states[1].run == AU_RUN_ASLEEP,
           "asleep again is not asleep");
    EXPECT(states[1].cpu_ns > idle, "a thread has run and its CPU time stands");
    EXPECT(states[0].cpu_ns >= busy, "CPU time goes back");
    idle = states[1].cpu_ns;
    states[1].wanted = AU_STATE_CPU;
    EXPECT(OPS(p)->thread_states(p, states + 1, 1) == 1 && states[1].cpu_ns == idle, "CPU time alone is another one");
    states[1].wanted = BOTH;
    states[1].cpu_ns = states[1].waited_ns = 77;
    EXPECT(OPS(p)->thread_states(p, states + 1, 1) == 1 && states[1].cpu_ns == 77, "CPU time without being asked");
    EXPECT(states[1].waited_ns == 77, "time waited without being asked");
    shut();
    return NULL;
}

const char *case_states_end(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_thread_state extra = {0}, sleeper = {0};
    LOOK(p, w->extra, &extra);
    LOOK(p, w->sleeper, &sleeper);
    EXPECT(extra.outcome == AU_OK && sleeper.outcome == AU_OK, "no state of a living thread");
    w->end_thread(w);
    LOOK(p, w->extra, &extra);
    for (int tries = 0; extra.outcome == AU_OK && tries < 1000; tries++) { /* who waits is told before it is gone */
        host_pause_ns(1000000);
        LOOK(p, w->extra, &extra);
    }
    EXPECT(extra.outcome == AU_GONE, "a thread has ended and is not gone");
    LOOK(p, w->sleeper, &sleeper);
    EXPECT(sleeper.outcome == AU_OK, "the end of one thread takes another with it");
    shut();
    return NULL;
}

const char *case_states_stopped(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_thread_state spinner = {0}, sleeper = {0};
    LOOK(p, w->spinner, &spinner);
    LOOK(p, w->sleeper, &sleeper);
    w->stop(w);
    LOOK(p, w->spinner, &spinner);
    LOOK(p, w->sleeper, &sleeper);
    w->go_on(w);
    EXPECT(spinner.outcome == AU_OK && spinner.run == AU_RUN_STOPPED, "a stopped busy thread is not stopped");
    EXPECT(sleeper.outcome == AU_OK && sleeper.run == AU_RUN_STOPPED, "a stopped sleeping thread is not stopped");
    au_thread_state after = {0};
    LOOK(p, w->spinner, &after);
    EXPECT(after.run == AU_RUN_RUNNING, "a continued thread does not run");
    shut();
    return NULL;
}

/** Also where nobody tells that a thread is stopped: it does not run, and runs again. */
const char *case_states_halted(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    static const au_run_state running[] = {AU_RUN_RUNNING};
    au_thread_state spinner = {.tid = w->spinner, .wanted = BOTH};
    EXPECT(look_until(p, &spinner, 1, running) == 1 && spinner.run == AU_RUN_RUNNING, "a busy thread does not run");
    const au_run_state halted[] = {(OPS(p)->caps & AU_CAP_STATES_TOLD) ? AU_RUN_STOPPED : AU_RUN_ASLEEP};
    w->stop(w);
    size_t ok = look_until(p, &spinner, 1, halted);
    w->go_on(w);
    EXPECT(ok == 1 && spinner.run == halted[0], "a stopped thread runs");
    for (int tries = 0; spinner.run == AU_RUN_STOPPED && tries < 1000; tries++) { /* the last goes on after the first */
        EXPECT(OPS(p)->thread_states(p, &spinner, 1) == 1, "a look after a stop fails");
        host_pause_ns(spinner.run == AU_RUN_STOPPED ? 1000000 : 0);
    }
    EXPECT(look_until(p, &spinner, 1, running) == 1 && spinner.run == AU_RUN_RUNNING, "a continued one does not");
    shut();
    return NULL;
}

const char *case_thread_id_of(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_tid tid = 0;
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_PTHREAD, w->spinner_pthread, &tid) == AU_OK && tid == w->spinner,
           "a pthread is not its thread");
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_PTHREAD, w->sleeper_pthread, &tid) == AU_OK && tid == w->sleeper,
           "another pthread is not its thread");
    tid = -7;
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_PTHREAD, w->data, &tid) == AU_NOT_KNOWN, "any memory is taken for a pthread");
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_PTHREAD, w->hole, &tid) == AU_NOT_KNOWN, "a hole is taken for a pthread");
    EXPECT(tid == -7, "a failing look-up touches its output");
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_NAMESPACED, (uint64_t)w->sleeper, &tid) == AU_OK && tid == w->sleeper,
           "in one namespace an id is not itself");
    EXPECT(OPS(p)->thread_id_of(p, AU_ID_NAMESPACED, 2147483000, &tid) == AU_NOT_KNOWN, "a thread that is not there");
    shut();
    return NULL;
}

const char *case_thread_name(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    char name[64], small[6] = {'#', '#', '#', '#', '#', '#'};
    memset(name, '#', sizeof name);
    EXPECT(OPS(p)->thread_name(p, w->sleeper, name, sizeof name) == AU_OK, "no name");
    EXPECT(strcmp(name, w->sleeper_name) == 0, "another name");
    EXPECT(OPS(p)->thread_name(p, w->sleeper, small, 5) == AU_OK, "no name in little room");
    EXPECT(small[5] == '#' && small[4] == 0 && memcmp(small, w->sleeper_name, 4) == 0, "not cut to fit");
    EXPECT(OPS(p)->thread_name(p, 2147483000, name, sizeof name) == AU_GONE, "a name of nobody");
    shut();
    return NULL;
}

const char *case_usage(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    au_usage before = {0}, after = {0};
    EXPECT(OPS(p)->usage(p, &before) == AU_OK, "no usage");
    EXPECT(before.resident_bytes >= WORLD_DATA, "less memory than is in use");
    EXPECT(before.resident_bytes < (uint64_t)1 << 40, "absurd memory");
    EXPECT(before.cpu_granularity_ns > 0, "no granularity");
    uint64_t start = w->sys->ops->now(w->sys);
    w->sys->ops->sleep_until(w->sys, start + 400000000u);
    EXPECT(OPS(p)->usage(p, &after) == AU_OK, "no usage the second time");
    EXPECT(after.cpu_ns > before.cpu_ns, "a busy process uses no CPU");
    shut();
    return NULL;
}

typedef struct process_look {
    world *w;
    int found, right, shown;
} process_look;

static int look_at_process(void *baton, const au_process *process)
{
    process_look *l = baton;
    l->shown++;
    if (process->pid == l->w->pid) {
        l->found++;
        l->right = process->parent == l->w->parent && process->start_time_ns != 0;
    }
    return 0;
}

static int stop_at_first_process(void *baton, const au_process *process)
{
    (void)process;
    ++*(int *)baton;
    return 1;
}

const char *case_processes(world *w)
{
    process_look l = {.w = w};
    EXPECT(!failed(w->sys->ops->processes(w->sys, look_at_process, &l)), "processes failed");
    EXPECT(l.found == 1, "a process is missing or listed twice");
    EXPECT(l.right, "wrong parent or no start time");
    int seen = 0;
    EXPECT(!failed(w->sys->ops->processes(w->sys, stop_at_first_process, &seen)) && seen == 1, "cannot be stopped");
    return NULL;
}

const char *case_now(world *w)
{
    uint64_t last = w->sys->ops->now(w->sys), first = last;
    EXPECT(last > 0, "no time");
    for (int i = 0; i < 20000; i++) {
        uint64_t now = w->sys->ops->now(w->sys);
        EXPECT(now >= last, "time goes back");
        last = now;
    }
    uint64_t real_start = w->is_real ? host_utc_ns() : 0, real_end = 0;
    uint64_t from = w->sys->ops->now(w->sys);
    if (w->is_real) {
        host_pause_ns(30000000);
        real_end = host_utc_ns();
    }
    uint64_t passed = w->sys->ops->now(w->sys) - from;
    if (w->is_real) {
        EXPECT(passed >= 25000000 && passed <= 2 * (real_end - real_start) + 100000000, "these are no nanoseconds");
    }
    EXPECT(last > first, "time stands still");
    return NULL;
}

const char *case_sleep(world *w)
{
    au_sys *sys = w->sys;
    for (int i = 0; i < 20; i++) {
        uint64_t deadline = sys->ops->now(sys) + 500000u;
        uint64_t back = sys->ops->sleep_until(sys, deadline);
        EXPECT(back >= deadline, "back before the deadline");
        EXPECT(sys->ops->now(sys) >= deadline, "it says that time has passed which has not");
    }
    /* A busy machine may take the CPU away at any point, or count what it does itself as ours: once of three is enough.
     */
    int spins = 1, waits = 1;
    for (int i = 0; i < 3 && (spins || waits); i++) {
        uint64_t start = sys->ops->now(sys), cpu = host_cpu_ns();
        uint64_t back = sys->ops->sleep_until(sys, start + 100000000u);
        EXPECT(back >= start + 100000000u, "back before a long deadline");
        spins &= w->is_real && host_cpu_ns() - cpu >= 5000000;
        start = sys->ops->now(sys);
        back = sys->ops->sleep_until(sys, start - 1000);
        EXPECT(back >= start, "back before it went to sleep");
        waits &= back - start >= 50000000;
    }
    EXPECT(!spins, "it spins");
    EXPECT(!waits, "a deadline in the past is waited for");
    return NULL;
}

const char *case_wake_before(world *w)
{
    au_sys *sys = w->sys;
    sys->ops->wake(sys);
    uint64_t start = sys->ops->now(sys);
    uint64_t back = sys->ops->sleep_until(sys, start + 1500000000u);
    EXPECT(back - start < 1000000000u, "a wake before the sleep is lost");
    start = sys->ops->now(sys);
    back = sys->ops->sleep_until(sys, start + 20000000u);
    EXPECT(back >= start + 20000000u, "one wake ends two sleeps");
    return NULL;
}

static void wake_later(void *baton)
{
    host_pause_ns(50000000);
    au_sys *sys = baton;
    sys->ops->wake(sys);
}

const char *case_wake_during(world *w)
{
    au_sys *sys = w->sys;
    host_thread *thread = host_start(wake_later, sys);
    EXPECT(thread, "no thread");
    uint64_t start = sys->ops->now(sys);
    uint64_t back = sys->ops->sleep_until(sys, start + 2000000000u);
    host_join(thread);
    /* On an invented clock the sleep is over before the wake: let that not end another one. */
    EXPECT(!w->is_real || back - start < 1500000000u, "a sleeper cannot be woken");
    sys->ops->sleep_until(sys, sys->ops->now(sys) + 1000);
    return NULL;
}

const char *case_explain(world *w)
{
    au_explanation why;
    memset(&why, 0x7f, sizeof why);
    w->sys->ops->explain(w->sys, w->pid, &why);
    EXPECT(why.right == AU_RIGHT_NONE_MISSING, "a right is said to be missing that is not");
    memset(&why, 0x7f, sizeof why);
    w->sys->ops->explain(w->sys, 2147483000, &why);
    EXPECT(why.right == AU_RIGHT_UNKNOWN && why.uid == -1, "something is known of a process that is not there");
    return NULL;
}

/** Members whose bit is off must say so, and touch nothing. */
const char *case_switched_off(world *w)
{
    OPEN(w);
    au_proc *p = contract_open;
    uint64_t caps = OPS(p)->caps;
    au_tid tids[2] = {w->spinner, w->sleeper};
    if (!(caps & AU_CAP_SUSPEND)) {
        uint8_t outcomes[2] = {0, 0};
        EXPECT(OPS(p)->suspend(p, tids, 2, outcomes) == 0, "suspend succeeds without its bit");
        EXPECT(outcomes[0] == AU_UNSUPPORTED && outcomes[1] == AU_UNSUPPORTED, "suspend does not say that it cannot");
        OPS(p)->resume(p, tids, 2);
        EXPECT(!(caps & AU_CAP_SELF_RELEASE), "it lets go of what it cannot stop");
    }
    au_registers registers = {.count = 77};
    if (!(caps & AU_CAP_REGISTERS)) {
        EXPECT(OPS(p)->registers(p, w->spinner, &registers) == AU_UNSUPPORTED && registers.count == 77,
               "registers without its bit");
    }
    if (!(caps & AU_CAP_UNWIND)) {
        au_native_frame frames[2];
        size_t n = 77;
        au_unwind_end end = AU_UNWIND_COMPLETE;
        EXPECT(OPS(p)->unwind(p, w->spinner, &registers, frames, 2, &n, &end) == AU_UNSUPPORTED && n == 77,
               "unwind without its bit");
    }
    if (!(caps & AU_CAP_SYMBOLISE)) {
        au_symbol symbol = {.addr = w->symbol_at};
        EXPECT(failed(OPS(p)->symbolise(p, &symbol, 1)) && symbol.name == NULL, "symbolise without its bit");
    }
    if (!(caps & AU_CAP_KERNEL_STACK)) {
        char text[16] = "untouched";
        size_t len = 77;
        EXPECT(OPS(p)->kernel_stack(p, w->spinner, text, sizeof text, &len) == AU_UNSUPPORTED && len == 77 &&
                   strcmp(text, "untouched") == 0,
               "kernel_stack without its bit");
    }
    shut();
    return NULL;
}
