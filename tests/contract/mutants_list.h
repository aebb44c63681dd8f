/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * All mutants: the member whose cases must notice, the capabilities without which nobody could, and the function
 * mutant_<name> that breaks the table.
 */
#ifndef AU_TESTS_CONTRACT_MUTANTS_LIST_H
#define AU_TESTS_CONTRACT_MUTANTS_LIST_H

#include "engine/proc_ops.h"
#include "platform/platform.h"

#define CONTRACT_MUTANTS(X)                                                                                            \
    X("table", wrong_size, 0)                                                                                          \
    X("table", no_name, 0)                                                                                             \
    X("table", missing_member, 0)                                                                                      \
    X("table", unknown_bit, 0)                                                                                         \
    X("open", open_takes_anything, 0)                                                                                  \
    X("open", open_names_no_pid, 0)                                                                                    \
    X("open", open_forgets_pid, 0)                                                                                     \
    X("open", open_wrong_code, 0)                                                                                      \
    X("open", open_accepts_reused_pid, 0)                                                                              \
    X("open", open_read_many_takes_reused_pid, 0)                                                                      \
    X("close", close_does_nothing, 0)                                                                                  \
    X("close", close_leaks_slots, 0)                                                                                   \
    X("status", status_never_ends, 0)                                                                                  \
    X("status", status_misses_exec, 0)                                                                                 \
    X("status", status_wrong_pointer, 0)                                                                               \
    X("status", status_exec_is_end, 0)                                                                                 \
    X("status", status_start_moves, 0)                                                                                 \
    X("status", status_read_hides_end, 0)                                                                              \
    X("read", read_hides_fault, 0)                                                                                     \
    X("read", read_is_short, 0)                                                                                        \
    X("read", read_is_long, 0)                                                                                         \
    X("read", read_ignores_protection, 0)                                                                              \
    X("read", read_is_off_by_one, 0)                                                                                   \
    X("read_many", read_many_stops_at_fault, 0)                                                                        \
    X("read_many", read_many_out_of_order, 0)                                                                          \
    X("read_many", read_many_last_first, 0)                                                                            \
    X("read_many", read_many_forgets_the_rest, 0)                                                                      \
    X("read_many", read_many_counts_all, 0)                                                                            \
    X("read_many", read_many_blames_another, 0)                                                                        \
    X("regions", regions_skip_unnamed, 0)                                                                              \
    X("regions", regions_skip_guarded, 0)                                                                              \
    X("regions", regions_cannot_be_stopped, 0)                                                                         \
    X("regions", regions_wrong_permissions, 0)                                                                         \
    X("modules", modules_wrong_bias, 0)                                                                                \
    X("modules", modules_no_main, 0)                                                                                   \
    X("modules", modules_all_main, 0)                                                                                  \
    X("modules", modules_without_bss, 0)                                                                               \
    X("modules", modules_deleted, 0)                                                                                   \
    X("modules", modules_wrong_bits, 0)                                                                                \
    X("modules", modules_cannot_be_stopped, 0)                                                                         \
    X("module_read", module_read_ignores_offset, 0)                                                                    \
    X("module_read", module_read_wrong_source, 0)                                                                      \
    X("module_read", module_read_takes_any_id, 0)                                                                      \
    X("module_read", module_read_has_no_end, 0)                                                                        \
    X("threads", threads_drop_one, 0)                                                                                  \
    X("threads", threads_hide_the_rest, 0)                                                                             \
    X("threads", threads_without_start, 0)                                                                             \
    X("threads", threads_never_end, 0)                                                                                 \
    X("thread_states", states_stuck_switches, AU_CAP_SWITCHES)                                                         \
    X("thread_states", states_counting_switches, AU_CAP_SWITCHES)                                                      \
    X("thread_states", states_always_running, 0)                                                                       \
    X("thread_states", states_never_running, 0)                                                                        \
    X("thread_states", states_never_stopped, AU_CAP_STATES_TOLD)                                                       \
    X("thread_states", states_never_gone, 0)                                                                           \
    X("thread_states", states_count_all, 0)                                                                            \
    X("thread_states", cpu_unknown, AU_CAP_THREAD_CPU)                                                                 \
    X("thread_states", cpu_stuck, AU_CAP_THREAD_CPU)                                                                   \
    X("thread_states", cpu_is_microseconds, AU_CAP_THREAD_CPU)                                                         \
    X("thread_states", cpu_of_anybody, AU_CAP_THREAD_CPU)                                                              \
    X("thread_states", waited_unasked, AU_CAP_THREAD_CPU)                                                              \
    X("thread_states", waited_grows_asleep, AU_CAP_THREAD_CPU)                                                         \
    X("thread_states", waited_is_too_much, AU_CAP_THREAD_CPU)                                                          \
    X("thread_states", cpu_unasked, AU_CAP_THREAD_CPU)                                                                 \
    X("thread_states", cpu_goes_back, AU_CAP_THREAD_CPU)                                                               \
    X("thread_states", states_keep_slots, 0)                                                                           \
    X("thread_states", states_first_only_m, 0)                                                                         \
    X("thread_id_of", id_of_is_identity, 0)                                                                            \
    X("thread_id_of", id_of_is_main_thread, 0)                                                                         \
    X("thread_id_of", id_of_touches_output, 0)                                                                         \
    X("thread_name", thread_name_of_process, 0)                                                                        \
    X("thread_name", thread_name_runs_over, 0)                                                                         \
    X("usage", usage_no_memory, 0)                                                                                     \
    X("usage", usage_no_cpu, 0)                                                                                        \
    X("processes", processes_wrong_parent, 0)                                                                          \
    X("processes", processes_miss_children, 0)                                                                         \
    X("now", now_goes_back, 0)                                                                                         \
    X("now", now_is_microseconds, 0)                                                                                   \
    X("now", now_stands_still, 0)                                                                                      \
    X("sleep_until", sleep_returns_early, 0)                                                                           \
    X("sleep_until", sleep_only_says_so, 0)                                                                            \
    X("sleep_until", sleep_spins_m, 0)                                                                                 \
    X("wake", sleep_ignores_wake, 0)                                                                                   \
    X("wake", wake_does_nothing, 0)                                                                                    \
    X("wake", wake_never_ends, 0)                                                                                      \
    X("explain", explain_knows_nothing, 0)                                                                             \
    X("explain", explain_guesses, 0)                                                                                   \
    X("suspend", suspend_pretends, 0)                                                                                  \
    X("table", resume_not_set, 0)                                                                                      \
    X("registers", registers_pretend, 0)                                                                               \
    X("unwind", unwind_touches_output, 0)                                                                              \
    X("symbolise", symbolise_pretends, 0)                                                                              \
    X("kernel_stack", kernel_stack_pretends, 0)

#define AU_X(member, name, caps) void mutant_##name(au_proc_ops *t);
CONTRACT_MUTANTS(AU_X)
#undef AU_X

/** The table of this system as it should be. */
static inline const au_proc_ops *whole(void)
{
    return au_platform_sys()->ops;
}

/** The table that is served now, and an `open` that puts it into the handle. */
extern au_proc_ops mutant_table;
au_error *mutant_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out);

/** A system of this port's own kind that serves mutant_table, as new. */
au_sys *mutant_port_sys(void);

#endif
