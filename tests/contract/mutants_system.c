/* SPDX-License-Identifier: Apache-2.0 */
/* Broken: lists, threads, the system, time, what is switched off. */
#include "tests/contract/mutants.h"

#include <stdlib.h>
#include <string.h>

#include "tests/contract/host.h"
#include "tests/contract/mutants_list.h"

#define MUTANT(name) void mutant_##name(au_proc_ops *t)

/* ---- lists --------------------------------------------------------------------------------------------------------
 */

typedef struct pass_on {
    au_region_fn region;
    au_module_fn module;
    au_process_fn process;
    void *baton;
    au_pid parent;
} pass_on;

static int named_only(void *baton, const au_region *region)
{
    pass_on *to = baton;
    return region->path ? to->region(to->baton, region) : 0;
}

static au_error *regions_named(au_proc *proc, au_region_fn fn, void *baton)
{
    pass_on to = {.region = fn, .baton = baton};
    return whole()->regions(proc, named_only, &to);
}

MUTANT(regions_skip_unnamed)
{
    t->regions = regions_named;
}

static int readable_only(void *baton, const au_region *region)
{
    pass_on *to = baton;
    return region->perms & AU_PERM_READ ? to->region(to->baton, region) : 0;
}

static au_error *regions_readable(au_proc *proc, au_region_fn fn, void *baton)
{
    pass_on to = {.region = fn, .baton = baton};
    return whole()->regions(proc, readable_only, &to);
}

MUTANT(regions_skip_guarded)
{
    t->regions = regions_readable;
}

static int deaf_region(void *baton, const au_region *region)
{
    pass_on *to = baton;
    (void)to->region(to->baton, region);
    return 0;
}

static au_error *regions_deaf(au_proc *proc, au_region_fn fn, void *baton)
{
    pass_on to = {.region = fn, .baton = baton};
    return whole()->regions(proc, deaf_region, &to);
}

MUTANT(regions_cannot_be_stopped)
{
    t->regions = regions_deaf;
}

static int all_rights(void *baton, const au_region *region)
{
    pass_on *to = baton;
    au_region copy = *region;
    copy.perms = AU_PERM_READ;
    return to->region(to->baton, &copy);
}

static au_error *regions_rights(au_proc *proc, au_region_fn fn, void *baton)
{
    pass_on to = {.region = fn, .baton = baton};
    return whole()->regions(proc, all_rights, &to);
}

MUTANT(regions_wrong_permissions)
{
    t->regions = regions_rights;
}

#define MODULES_MUTANT(name, change)                                                                                   \
    static int name##_each(void *baton, const au_module *module)                                                       \
    {                                                                                                                  \
        pass_on *to = baton;                                                                                           \
        au_module copy = *module;                                                                                      \
        change;                                                                                                        \
        return to->module(to->baton, &copy);                                                                           \
    }                                                                                                                  \
    static au_error *name##_list(au_proc *proc, au_module_fn fn, void *baton)                                          \
    {                                                                                                                  \
        pass_on to = {.module = fn, .baton = baton};                                                                   \
        return whole()->modules(proc, name##_each, &to);                                                               \
    }                                                                                                                  \
    MUTANT(name)                                                                                                       \
    {                                                                                                                  \
        t->modules = name##_list;                                                                                      \
    }

MODULES_MUTANT(modules_wrong_bias, copy.bias += 4096)
MODULES_MUTANT(modules_no_main, copy.is_main = 0)
MODULES_MUTANT(modules_all_main, copy.is_main = 1)
MODULES_MUTANT(modules_without_bss, copy.end = copy.base + 4096)
MODULES_MUTANT(modules_deleted, copy.deleted = 1)
MODULES_MUTANT(modules_wrong_bits, copy.bits = AU_BITS_32)

static int deaf_module(void *baton, const au_module *module)
{
    pass_on *to = baton;
    (void)to->module(to->baton, module);
    return 0;
}

static au_error *modules_deaf(au_proc *proc, au_module_fn fn, void *baton)
{
    pass_on to = {.module = fn, .baton = baton};
    return whole()->modules(proc, deaf_module, &to);
}

MUTANT(modules_cannot_be_stopped)
{
    t->modules = modules_deaf;
}

static au_error *module_start(au_proc *proc, uint64_t id, uint64_t offset, void *buf, size_t len, size_t *got,
                              au_module_source *source)
{
    return whole()->module_read(proc, id, offset < 4096 ? 0 : offset, buf, len, got, source);
}

MUTANT(module_read_ignores_offset)
{
    t->module_read = module_start;
}

static au_error *module_liar(au_proc *proc, uint64_t id, uint64_t offset, void *buf, size_t len, size_t *got,
                             au_module_source *source)
{
    au_error *error = whole()->module_read(proc, id, offset, buf, len, got, source);
    if (!error) {
        *source = *source == AU_SOURCE_MEMORY ? AU_SOURCE_FILE : AU_SOURCE_MEMORY;
    }
    return error;
}

MUTANT(module_read_wrong_source)
{
    t->module_read = module_liar;
}

static au_error *module_any(au_proc *proc, uint64_t id, uint64_t offset, void *buf, size_t len, size_t *got,
                            au_module_source *source)
{
    au_error *error = whole()->module_read(proc, id, offset, buf, len, got, source);
    if (error) {
        au_error_clear(error);
        *got = 0;
    }
    return NULL;
}

MUTANT(module_read_takes_any_id)
{
    t->module_read = module_any;
}

static au_error *module_full(au_proc *proc, uint64_t id, uint64_t offset, void *buf, size_t len, size_t *got,
                             au_module_source *source)
{
    au_error *error = whole()->module_read(proc, id, offset, buf, len, got, source);
    if (!error) {
        *got = len;
    }
    return error;
}

MUTANT(module_read_has_no_end)
{
    t->module_read = module_full;
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 */

static au_error *threads_fewer(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    au_error *error = whole()->threads(proc, out, cap, n);
    if (!error && *n > 3) {
        --*n;
    }
    return error;
}

MUTANT(threads_drop_one)
{
    t->threads = threads_fewer;
}

static au_error *threads_capped(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    au_error *error = whole()->threads(proc, out, cap, n);
    if (!error && *n > cap) {
        *n = cap;
    }
    return error;
}

MUTANT(threads_hide_the_rest)
{
    t->threads = threads_capped;
}

static au_error *threads_no_start(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    au_error *error = whole()->threads(proc, out, cap, n);
    for (size_t i = 0; !error && i < *n && i < cap; i++) {
        out[i].start_time_ns = 0;
    }
    return error;
}

MUTANT(threads_without_start)
{
    t->threads = threads_no_start;
}

static au_error *threads_kept(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    static au_thread first[16];
    static size_t count;
    static au_pid of;
    if (of != proc->pid) {
        au_error *error = whole()->threads(proc, first, 16, &count);
        if (error) {
            return error;
        }
        of = proc->pid;
    }
    for (size_t i = 0; i < count && i < cap; i++) {
        out[i] = first[i];
    }
    *n = count;
    return NULL;
}

MUTANT(threads_never_end)
{
    t->threads = threads_kept;
}

#define STATES_MUTANT(name, change)                                                                                    \
    static size_t name##_states(au_proc *proc, au_thread_state *states, size_t n)                                      \
    {                                                                                                                  \
        size_t ok = whole()->thread_states(proc, states, n);                                                           \
        for (size_t i = 0; i < n; i++) {                                                                               \
            au_thread_state *s = &states[i];                                                                           \
            if (s->wanted) {                                                                                           \
                change;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        return ok;                                                                                                     \
    }                                                                                                                  \
    MUTANT(name)                                                                                                       \
    {                                                                                                                  \
        t->thread_states = name##_states;                                                                              \
    }

STATES_MUTANT(states_stuck_switches, s->switches = 7)
STATES_MUTANT(states_counting_switches, {
    static uint64_t more;
    s->switches += ++more;
})
STATES_MUTANT(states_always_running, s->run = AU_RUN_RUNNING)
STATES_MUTANT(states_never_running, s->run = AU_RUN_ASLEEP)
STATES_MUTANT(states_never_stopped, s->run = s->run == AU_RUN_STOPPED ? AU_RUN_ASLEEP : s->run)
STATES_MUTANT(states_never_gone, {
    ok += s->outcome == AU_GONE;
    s->outcome = AU_OK;
})
STATES_MUTANT(states_count_all, ok = n)
STATES_MUTANT(cpu_unknown, s->cpu_ns = 0)
STATES_MUTANT(cpu_stuck, s->cpu_ns = 7000000)
STATES_MUTANT(cpu_is_microseconds, s->cpu_ns /= 1000)
STATES_MUTANT(cpu_of_anybody, {
    static uint64_t more;
    s->cpu_ns += s->wanted & AU_STATE_CPU ? ++more : 0;
})
STATES_MUTANT(cpu_unasked, s->cpu_ns = s->wanted & AU_STATE_CPU ? s->cpu_ns : 1)
STATES_MUTANT(waited_unasked, s->waited_ns = s->wanted & AU_STATE_WAITED ? s->waited_ns : 1)
STATES_MUTANT(waited_grows_asleep, {
    static uint64_t more;
    s->waited_ns += s->wanted & AU_STATE_WAITED ? ++more : 0;
})
STATES_MUTANT(waited_is_too_much,
              s->waited_ns = s->wanted & AU_STATE_WAITED ? s->waited_ns + 100 * s->cpu_ns : s->waited_ns)
STATES_MUTANT(cpu_goes_back, {
    static uint64_t less;
    s->cpu_ns += ((uint64_t)1 << 60) - (less += 1000000000u);
})

static size_t states_keep_slot(au_proc *proc, au_thread_state *states, size_t n)
{
    uint64_t slots[16] = {0};
    for (size_t i = 0; i < n && i < 16; i++) {
        slots[i] = states[i].slot;
    }
    size_t ok = whole()->thread_states(proc, states, n);
    for (size_t i = 0; i < n && i < 16; i++) {
        if (states[i].wanted == 0) {
            states[i].slot = slots[i];
        }
    }
    return ok;
}

MUTANT(states_keep_slots)
{
    t->thread_states = states_keep_slot;
}

static size_t states_first_only(au_proc *proc, au_thread_state *states, size_t n)
{
    return whole()->thread_states(proc, states, n < 1 ? n : 1);
}

MUTANT(states_first_only_m)
{
    t->thread_states = states_first_only;
}

static au_outcome id_same(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    (void)kind;
    (void)proc;
    *out = (au_tid)value;
    return AU_OK;
}

MUTANT(id_of_is_identity)
{
    t->thread_id_of = id_same;
}

static au_outcome id_main(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    au_outcome outcome = whole()->thread_id_of(proc, kind, value, out);
    if (outcome == AU_OK) {
        *out = proc->pid;
    }
    return outcome;
}

MUTANT(id_of_is_main_thread)
{
    t->thread_id_of = id_main;
}

static au_outcome id_touch(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    *out = 0;
    return whole()->thread_id_of(proc, kind, value, out);
}

MUTANT(id_of_touches_output)
{
    t->thread_id_of = id_touch;
}

static au_outcome name_process(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    (void)tid;
    return whole()->thread_name(proc, proc->pid, buf, cap);
}

MUTANT(thread_name_of_process)
{
    t->thread_name = name_process;
}

static au_outcome name_over(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    return whole()->thread_name(proc, tid, buf, cap == 5 ? 6 : cap);
}

MUTANT(thread_name_runs_over)
{
    t->thread_name = name_over;
}

/* ---- the process and the system ------------------------------------------------------------------------------------
 */

static au_outcome usage_none(au_proc *proc, au_usage *out)
{
    au_outcome outcome = whole()->usage(proc, out);
    out->resident_bytes = 0;
    return outcome;
}

MUTANT(usage_no_memory)
{
    t->usage = usage_none;
}

static au_outcome usage_idle(au_proc *proc, au_usage *out)
{
    au_outcome outcome = whole()->usage(proc, out);
    out->cpu_ns = 12345;
    return outcome;
}

MUTANT(usage_no_cpu)
{
    t->usage = usage_idle;
}

static int orphan(void *baton, const au_process *process)
{
    pass_on *to = baton;
    au_process copy = *process;
    copy.parent = 1;
    return to->process(to->baton, &copy);
}

static au_error *processes_orphans(au_sys *sys, au_process_fn fn, void *baton)
{
    pass_on to = {.process = fn, .baton = baton};
    return whole()->processes(sys, orphan, &to);
}

MUTANT(processes_wrong_parent)
{
    t->processes = processes_orphans;
}

static int old_only(void *baton, const au_process *process)
{
    pass_on *to = baton;
    return process->parent == to->parent ? 0 : to->process(to->baton, process);
}

static au_error *processes_old(au_sys *sys, au_process_fn fn, void *baton)
{
    pass_on to = {.process = fn, .baton = baton, .parent = host_pid()};
    return whole()->processes(sys, old_only, &to);
}

MUTANT(processes_miss_children)
{
    t->processes = processes_old;
}

static uint64_t now_back(au_sys *sys)
{
    static unsigned calls;
    return whole()->now(sys) - (++calls % 1000 == 0 ? 1000000u : 0);
}

MUTANT(now_goes_back)
{
    t->now = now_back;
}

static uint64_t now_micro(au_sys *sys)
{
    return whole()->now(sys) / 1000;
}

MUTANT(now_is_microseconds)
{
    t->now = now_micro;
}

static uint64_t now_stands(au_sys *sys)
{
    (void)sys;
    return 5000000000u;
}

MUTANT(now_stands_still)
{
    t->now = now_stands;
}

static uint64_t sleep_early(au_sys *sys, uint64_t deadline_ns)
{
    return whole()->sleep_until(sys, deadline_ns - 300000);
}

MUTANT(sleep_returns_early)
{
    t->sleep_until = sleep_early;
}

static uint64_t sleep_lies(au_sys *sys, uint64_t deadline_ns)
{
    (void)sys;
    return deadline_ns;
}

MUTANT(sleep_only_says_so)
{
    t->sleep_until = sleep_lies;
}

static uint64_t sleep_spins(au_sys *sys, uint64_t deadline_ns)
{
    uint64_t now;
    while ((now = whole()->now(sys)) < deadline_ns) {
    }
    return now;
}

MUTANT(sleep_spins_m)
{
    t->sleep_until = sleep_spins;
}

static uint64_t sleep_deaf(au_sys *sys, uint64_t deadline_ns)
{
    uint64_t now;
    do {
        now = whole()->sleep_until(sys, deadline_ns);
    } while (now < deadline_ns);
    return now;
}

MUTANT(sleep_ignores_wake)
{
    t->sleep_until = sleep_deaf;
}

static void wake_nobody(au_sys *sys)
{
    (void)sys;
}

MUTANT(wake_does_nothing)
{
    t->wake = wake_nobody;
}

static void wake_for_ever(au_sys *sys)
{
    whole()->wake(sys);
    mutant_table.sleep_until = sleep_lies;
}

MUTANT(wake_never_ends)
{
    t->wake = wake_for_ever;
}

static void explain_nothing(au_sys *sys, au_pid pid, au_explanation *out)
{
    (void)sys, (void)pid;
    *out = (au_explanation){.right = AU_RIGHT_UNKNOWN, .uid = -1};
}

MUTANT(explain_knows_nothing)
{
    t->explain = explain_nothing;
}

static void explain_guess(au_sys *sys, au_pid pid, au_explanation *out)
{
    (void)sys, (void)pid;
    *out = (au_explanation){.right = AU_RIGHT_NONE_MISSING};
}

MUTANT(explain_guesses)
{
    t->explain = explain_guess;
}

/* ---- what is switched off ------------------------------------------------------------------------------------------
 */

static size_t suspend_lies(au_proc *proc, const au_tid *tids, size_t n, uint8_t *outcomes)
{
    (void)proc, (void)tids;
    memset(outcomes, AU_OK, n);
    return n;
}

MUTANT(suspend_pretends)
{
    t->suspend = suspend_lies;
}

MUTANT(resume_not_set)
{
    t->resume = NULL;
}

static au_outcome registers_lie(au_proc *proc, au_tid tid, au_registers *out)
{
    (void)proc, (void)tid;
    memset(out, 0, sizeof *out);
    return AU_OK;
}

MUTANT(registers_pretend)
{
    t->registers = registers_lie;
}

static au_outcome unwind_lies(au_proc *proc, au_tid tid, const au_registers *regs, au_native_frame *out, size_t cap,
                              size_t *n, au_unwind_end *end)
{
    (void)proc, (void)tid, (void)regs, (void)out, (void)cap, (void)end;
    *n = 0;
    return AU_UNSUPPORTED;
}

MUTANT(unwind_touches_output)
{
    t->unwind = unwind_lies;
}

static au_error *symbolise_lies(au_proc *proc, au_symbol *symbols, size_t n)
{
    (void)proc, (void)symbols, (void)n;
    return NULL;
}

MUTANT(symbolise_pretends)
{
    t->symbolise = symbolise_lies;
}

static au_outcome kernel_stack_lies(au_proc *proc, au_tid tid, char *buf, size_t cap, size_t *len)
{
    (void)proc, (void)tid, (void)buf, (void)cap;
    *len = 0;
    return AU_OK;
}

MUTANT(kernel_stack_pretends)
{
    t->kernel_stack = kernel_stack_lies;
}
