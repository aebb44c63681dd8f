/* SPDX-License-Identifier: Apache-2.0 */
/* The table. Members for native work keep the stubs of platform/none, and their capability bits are off. */
#include "platform/linux/linux.h"
#include "platform/none/none.h"

const au_proc_ops au__linux_ops = {
    .size = sizeof(au_proc_ops),
    .name = "linux",
    .caps = AU_CAP_THREADS | AU_CAP_THREAD_STATES | AU_CAP_SWITCHES | AU_CAP_THREAD_ID_OF | AU_CAP_THREAD_NAME |
            AU_CAP_USAGE | AU_CAP_PROCESSES | AU_CAP_MODULE_FILE | AU_CAP_THREAD_CPU | AU_CAP_STATES_TOLD,
    .open = au__linux_proc_open,
    .close = au__linux_proc_close,
    .status = au__linux_status,
    .read = au__linux_read,
    .read_many = au__linux_read_many,
    .regions = au__linux_regions,
    .modules = au__linux_modules,
    .module_read = au__linux_module_read,
    .threads = au__linux_threads,
    .thread_states = au__linux_thread_states,
    .thread_id_of = au__linux_thread_id_of,
    .thread_name = au__linux_thread_name,
    .usage = au__linux_usage,
    .processes = au__linux_processes,
    .suspend = au_none_suspend,
    .resume = au_none_resume,
    .registers = au_none_registers,
    .unwind = au_none_unwind,
    .symbolise = au_none_symbolise,
    .kernel_stack = au_none_kernel_stack,
    .now = au__linux_now,
    .sleep_until = au__linux_sleep_until,
    .wake = au__linux_wake,
    .explain = au__linux_explain,
};
