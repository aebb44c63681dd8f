/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * All cases of the contract suite: member, case, capabilities that it needs.
 */
#ifndef AU_TESTS_CONTRACT_CASES_LIST_H
#define AU_TESTS_CONTRACT_CASES_LIST_H

#include "tests/contract/world.h"

#define CONTRACT_CASES(X)                                                                                              \
    X("table", table, 0)                                                                                               \
    X("open", open, 0)                                                                                                 \
    X("open", open_missing, 0)                                                                                         \
    X("open", identity, 0)                                                                                             \
    X("open", identity_after_sleep, 0)                                                                                 \
    X("close", close, 0)                                                                                               \
    X("status", status, 0)                                                                                             \
    X("status", status_exec, 0)                                                                                        \
    X("status", status_end, 0)                                                                                         \
    X("read", read, 0)                                                                                                 \
    X("read", read_guarded, 0)                                                                                         \
    X("read_many", read_many, 0)                                                                                       \
    X("read_many", read_many_faults, 0)                                                                                \
    X("read_many", read_many_order, 0)                                                                                 \
    X("read_many", read_many_thousands, 0)                                                                             \
    X("regions", regions, 0)                                                                                           \
    X("modules", modules, 0)                                                                                           \
    X("module_read", module_read, 0)                                                                                   \
    X("threads", threads, AU_CAP_THREADS)                                                                              \
    X("thread_states", thread_states, AU_CAP_THREAD_STATES)                                                            \
    X("thread_states", switches, AU_CAP_THREAD_STATES | AU_CAP_SWITCHES)                                               \
    X("thread_states", thread_cpu, AU_CAP_THREAD_STATES | AU_CAP_THREAD_CPU)                                           \
    X("thread_states", states_end, AU_CAP_THREAD_STATES)                                                               \
    X("thread_states", states_stopped, AU_CAP_THREAD_STATES | AU_CAP_STATES_TOLD)                                      \
    X("thread_states", states_halted, AU_CAP_THREAD_STATES)                                                            \
    X("thread_id_of", thread_id_of, AU_CAP_THREAD_ID_OF)                                                               \
    X("thread_name", thread_name, AU_CAP_THREAD_NAME)                                                                  \
    X("usage", usage, AU_CAP_USAGE)                                                                                    \
    X("processes", processes, AU_CAP_PROCESSES)                                                                        \
    X("now", now, 0)                                                                                                   \
    X("sleep_until", sleep, 0)                                                                                         \
    X("wake", wake_before, 0)                                                                                          \
    X("wake", wake_during, 0)                                                                                          \
    X("explain", explain, 0)                                                                                           \
    X("suspend", switched_off, 0)                                                                                      \
    X("resume", switched_off, 0)                                                                                       \
    X("registers", switched_off, 0)                                                                                    \
    X("unwind", switched_off, 0)                                                                                       \
    X("symbolise", switched_off, 0)                                                                                    \
    X("kernel_stack", switched_off, 0)

#define AU_X(member, name, caps) const char *case_##name(world *w);
CONTRACT_CASES(AU_X)
#undef AU_X

#endif
