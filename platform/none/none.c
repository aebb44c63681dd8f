/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/none/none.h"

#include <stdatomic.h>
#include <time.h>

typedef struct none_sys {
    au_sys sys;
    atomic_int woken;
    _Atomic uint64_t last; /* C11's clock may be set back; ours must not */
} none_sys;

uint64_t au_none_now(au_sys *sys)
{
    none_sys *ns = (none_sys *)sys;
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    uint64_t time = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    uint64_t last = atomic_load(&ns->last);
    while (time > last && !atomic_compare_exchange_weak(&ns->last, &last, time)) {
    }
    return time > last ? time : last;
}

uint64_t au_none_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    /* Without threads or signals in C11 nothing can wake a sleeper: short naps that look for it. */
    none_sys *ns = (none_sys *)sys;
    uint64_t now;
    while ((now = au_none_now(sys)) < deadline_ns && !atomic_exchange(&ns->woken, 0)) {
        uint64_t nap = deadline_ns - now < 1000000u ? deadline_ns - now : 1000000u;
        struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)nap};
        nanosleep(&pause, NULL);
    }
    return now;
}

void au_none_wake(au_sys *sys)
{
    atomic_store(&((none_sys *)sys)->woken, 1);
}

const au_proc_ops au_none_ops = {
    .size = sizeof(au_proc_ops),
    .name = "none",
    .caps = 0,
    .open = au_none_open,
    .close = au_none_close,
    .status = au_none_status,
    .read = au_none_read,
    .read_many = au_none_read_many,
    .regions = au_none_regions,
    .modules = au_none_modules,
    .module_read = au_none_module_read,
    .threads = au_none_threads,
    .thread_states = au_none_thread_states,
    .thread_id_of = au_none_thread_id_of,
    .thread_name = au_none_thread_name,
    .usage = au_none_usage,
    .processes = au_none_processes,
    .suspend = au_none_suspend,
    .resume = au_none_resume,
    .registers = au_none_registers,
    .unwind = au_none_unwind,
    .symbolise = au_none_symbolise,
    .kernel_stack = au_none_kernel_stack,
    .now = au_none_now,
    .sleep_until = au_none_sleep_until,
    .wake = au_none_wake,
    .explain = au_none_explain,
};

au_sys *au_none_sys(void)
{
    static none_sys instance = {.sys = {&au_none_ops}};
    return &instance.sys;
}
