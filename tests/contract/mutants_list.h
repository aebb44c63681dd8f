/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * All mutants: the member whose cases must notice, and the function mutant_<name> that breaks the table.
 */
#ifndef AU_TESTS_CONTRACT_MUTANTS_LIST_H
#define AU_TESTS_CONTRACT_MUTANTS_LIST_H

#include "engine/proc_ops.h"

#define CONTRACT_MUTANTS(X)                                                                                            \
    X("table", wrong_size)                                                                                             \
    X("table", no_name)                                                                                                \
    X("table", missing_member)                                                                                         \
    X("table", unknown_bit)                                                                                            \
    X("open", open_takes_anything)                                                                                     \
    X("open", open_names_no_pid)                                                                                       \
    X("open", open_forgets_pid)                                                                                        \
    X("open", open_wrong_code)                                                                                         \
    X("open", open_accepts_reused_pid)                                                                                 \
    X("open", open_read_many_takes_reused_pid)                                                                         \
    X("close", close_does_nothing)                                                                                     \
    X("close", close_leaks_slots)                                                                                      \
    X("status", status_never_ends)                                                                                     \
    X("status", status_misses_exec)                                                                                    \
    X("status", status_wrong_pointer)                                                                                  \
    X("status", status_exec_is_end)                                                                                    \
    X("status", status_start_moves)                                                                                    \
    X("status", status_read_hides_end)                                                                                 \
    X("read", read_hides_fault)                                                                                        \
    X("read", read_is_short)                                                                                           \
    X("read", read_is_long)                                                                                            \
    X("read", read_ignores_protection)                                                                                 \
    X("read", read_is_off_by_one)                                                                                      \
    X("read_many", read_many_stops_at_fault)                                                                           \
    X("read_many", read_many_out_of_order)                                                                             \
    X("read_many", read_many_last_first)                                                                               \
    X("read_many", read_many_forgets_the_rest)                                                                         \
    X("read_many", read_many_counts_all)                                                                               \
    X("read_many", read_many_blames_another)                                                                           \
    X("regions", regions_skip_unnamed)                                                                                 \
    X("regions", regions_skip_guarded)                                                                                 \
    X("regions", regions_cannot_be_stopped)                                                                            \
    X("regions", regions_wrong_permissions)                                                                            \
    X("modules", modules_wrong_bias)                                                                                   \
    X("modules", modules_no_main)                                                                                      \
    X("modules", modules_all_main)                                                                                     \
    X("modules", modules_without_bss)                                                                                  \
    X("modules", modules_deleted)                                                                                      \
    X("modules", modules_wrong_bits)                                                                                   \
    X("modules", modules_cannot_be_stopped)                                                                            \
    X("module_read", module_read_ignores_offset)                                                                       \
    X("module_read", module_read_wrong_source)                                                                         \
    X("module_read", module_read_takes_any_id)                                                                         \
    X("module_read", module_read_has_no_end)                                                                           \
    X("threads", threads_drop_one)                                                                                     \
    X("threads", threads_hide_the_rest)                                                                                \
    X("threads", threads_without_start)                                                                                \
    X("threads", threads_never_end)                                                                                    \
    X("thread_states", states_stuck_switches)                                                                          \
    X("thread_states", states_counting_switches)                                                                       \
    X("thread_states", states_always_running)                                                                          \
    X("thread_states", states_never_running)                                                                           \
    X("thread_states", states_never_stopped)                                                                           \
    X("thread_states", states_never_gone)                                                                              \
    X("thread_states", states_count_all)                                                                               \
    X("thread_states", cpu_unknown)                                                                                    \
    X("thread_states", cpu_stuck)                                                                                      \
    X("thread_states", cpu_is_microseconds)                                                                            \
    X("thread_states", cpu_of_anybody)                                                                                 \
    X("thread_states", waited_unasked)                                                                                 \
    X("thread_states", waited_grows_asleep)                                                                            \
    X("thread_states", waited_is_too_much)                                                                             \
    X("thread_states", cpu_unasked)                                                                                    \
    X("thread_states", cpu_goes_back)                                                                                  \
    X("thread_states", states_keep_slots)                                                                              \
    X("thread_states", states_first_only_m)                                                                            \
    X("thread_id_of", id_of_is_identity)                                                                               \
    X("thread_id_of", id_of_is_main_thread)                                                                            \
    X("thread_id_of", id_of_touches_output)                                                                            \
    X("thread_name", thread_name_of_process)                                                                           \
    X("thread_name", thread_name_runs_over)                                                                            \
    X("usage", usage_no_memory)                                                                                        \
    X("usage", usage_no_cpu)                                                                                           \
    X("processes", processes_wrong_parent)                                                                             \
    X("processes", processes_miss_children)                                                                            \
    X("now", now_goes_back)                                                                                            \
    X("now", now_is_microseconds)                                                                                      \
    X("now", now_stands_still)                                                                                         \
    X("sleep_until", sleep_returns_early)                                                                              \
    X("sleep_until", sleep_only_says_so)                                                                               \
    X("sleep_until", sleep_spins_m)                                                                                    \
    X("wake", sleep_ignores_wake)                                                                                      \
    X("wake", wake_does_nothing)                                                                                       \
    X("wake", wake_never_ends)                                                                                         \
    X("explain", explain_knows_nothing)                                                                                \
    X("explain", explain_guesses)                                                                                      \
    X("suspend", suspend_pretends)                                                                                     \
    X("table", resume_not_set)                                                                                         \
    X("registers", registers_pretend)                                                                                  \
    X("unwind", unwind_touches_output)                                                                                 \
    X("symbolise", symbolise_pretends)                                                                                 \
    X("kernel_stack", kernel_stack_pretends)

#define AU_X(member, name) void mutant_##name(au_proc_ops *t);
CONTRACT_MUTANTS(AU_X)
#undef AU_X

/** The table that is served now, and an `open` that puts it into the handle. */
extern au_proc_ops mutant_table;
au_error *mutant_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out);

#endif
