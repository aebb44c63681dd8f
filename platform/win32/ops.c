/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table. Members for native work keep the stubs of platform/none, and their capability bits are off. So is that of
 * exact switch counts: the system counts them, but nothing says that the count and the state are of one moment.
 *
 * There are two of it, alike but for what is known of threads: a system that tells run states, as Windows does, and one
 * that does not, as Wine, where they are judged by CPU times (threads.c).
 */
#include "platform/none/none.h"
#include "platform/win32/tracee.h"

#define CAPS                                                                                                           \
    (AU_CAP_THREADS | AU_CAP_THREAD_STATES | AU_CAP_THREAD_ID_OF | AU_CAP_THREAD_NAME | AU_CAP_USAGE |                 \
     AU_CAP_PROCESSES | AU_CAP_LAUNCHERS)

#define TABLE(of_threads)                                                                                              \
    {                                                                                                                  \
        .size = sizeof(au_proc_ops), .name = "windows", .caps = CAPS | (of_threads), .open = au__win32_proc_open,      \
        .close = au__win32_proc_close, .status = au__win32_status, .read = au__win32_read,                             \
        .read_many = au__win32_read_many, .regions = au__win32_regions, .modules = au__win32_modules,                  \
        .module_read = au__win32_module_read, .threads = au__win32_threads, .thread_states = au__win32_thread_states,  \
        .thread_id_of = au__win32_thread_id_of, .thread_name = au__win32_thread_name, .usage = au__win32_usage,        \
        .processes = au__win32_processes, .suspend = au_none_suspend, .resume = au_none_resume,                        \
        .registers = au_none_registers, .unwind = au_none_unwind, .symbolise = au_none_symbolise,                      \
        .kernel_stack = au_none_kernel_stack, .now = au__win32_now, .sleep_until = au__win32_sleep_until,              \
        .wake = au__win32_wake, .explain = au__win32_explain,                                                          \
    }

static const au_proc_ops states_told = TABLE(AU_CAP_STATES_TOLD), states_judged = TABLE(AU_CAP_THREAD_CPU);

au_sys *au_platform_sys(void)
{
    static win32_sys instance;
    if (!instance.sys.ops) { /* threads that come here at once write the same */
        instance.sys.ops = au__win32_tells_states() ? &states_told : &states_judged;
    }
    return &instance.sys;
}
