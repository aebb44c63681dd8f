/* SPDX-License-Identifier: Apache-2.0 */
/* All processes and their threads in one call, and what one process uses. */
#include "platform/win32/tracee.h" /* brings windows.h, which the next ones need */

#include <psapi.h>
#include <stdlib.h>
#include <string.h>

enum { SYSTEM_PROCESS_INFORMATION_CLASS = 5 };    /* winternl.h, SystemProcessInformation */
#define STATUS_LENGTH_MISMATCH ((LONG)0xC0000004) /* ntstatus.h, STATUS_INFO_LENGTH_MISMATCH */

/* Times of processes and threads are counted at the clock interrupt, 64 times a second (Win32, GetProcessTimes,
   GetSystemTimeAdjustment). */
#define CPU_GRANULARITY_NS 15625000u

enum { SNAPSHOT_FIRST = 256 * 1024, SNAPSHOT_MOST = 256 * 1024 * 1024 };

static FARPROC look_up(HMODULE module, const char *name)
{
    return module ? GetProcAddress(module, name) : NULL;
}

const win32_calls *au__win32_calls(void)
{
    static win32_calls calls;
    static volatile LONG known;
    if (!known) {
        HMODULE ntdll = GetModuleHandleW(L"ntdll.dll"), kernel = GetModuleHandleW(L"kernel32.dll");
        HMODULE base = GetModuleHandleW(L"kernelbase.dll");
        FARPROC description =
            look_up(kernel, "GetThreadDescription"); /* which of the two has it depends on the build */
        description = description ? description : look_up(base, "GetThreadDescription");
        /* Threads that come here at once write the same values. */
        *(FARPROC *)&calls.query_system = look_up(ntdll, "NtQuerySystemInformation");
        *(FARPROC *)&calls.query_process = look_up(ntdll, "NtQueryInformationProcess");
        *(FARPROC *)&calls.delay = look_up(ntdll, "NtDelayExecution");
        *(FARPROC *)&calls.thread_description = description;
        *(FARPROC *)&calls.is_wow64_process2 = look_up(kernel, "IsWow64Process2");
        InterlockedExchange(&known, 1);
    }
    return &calls;
}

DWORD au__win32_snapshot(win32_snapshot *snapshot)
{
    const win32_calls *calls = au__win32_calls();
    if (!calls->query_system) {
        return ERROR_PROC_NOT_FOUND;
    }
    for (;;) {
        if (snapshot->bytes) {
            ULONG len = 0;
            LONG status = calls->query_system(SYSTEM_PROCESS_INFORMATION_CLASS, snapshot->bytes, snapshot->cap, &len);
            if (status >= 0) {
                snapshot->len = len && len <= snapshot->cap ? len : snapshot->cap;
                return 0;
            }
            if (status != STATUS_LENGTH_MISMATCH || snapshot->cap >= SNAPSHOT_MOST) {
                snapshot->len = 0;
                return ERROR_GEN_FAILURE;
            }
        }
        ULONG cap = snapshot->cap ? snapshot->cap * 2 : SNAPSHOT_FIRST;
        uint8_t *grown = realloc(snapshot->bytes, cap);
        if (!grown) {
            return ERROR_NOT_ENOUGH_MEMORY;
        }
        snapshot->bytes = grown;
        snapshot->cap = cap;
    }
}

void au__win32_snapshot_free(win32_snapshot *snapshot)
{
    free(snapshot->bytes);
    memset(snapshot, 0, sizeof *snapshot);
}

/* An entry that lies in the snapshot as a whole, with its threads; NULL otherwise. */
static const win32_process_info *entry_at(const win32_snapshot *snapshot, size_t offset)
{
    if (offset > snapshot->len || snapshot->len - offset < sizeof(win32_process_info)) {
        return NULL;
    }
    const win32_process_info *entry = (const void *)(snapshot->bytes + offset);
    size_t room = (snapshot->len - offset - sizeof *entry) / sizeof entry->threads[0];
    return entry->thread_count <= room ? entry : NULL;
}

const win32_process_info *au__win32_next_process(const win32_snapshot *snapshot, const win32_process_info *at)
{
    if (!at) {
        return entry_at(snapshot, 0);
    }
    size_t offset = (size_t)((const uint8_t *)at - snapshot->bytes);
    return at->next ? entry_at(snapshot, offset + at->next) : NULL;
}

uint64_t au__win32_filetime_ns(LONGLONG filetime)
{
    const LONGLONG unix_epoch = 116444736000000000; /* 1970-01-01 (Win32, "Converting a time_t value to a FILETIME") */
    return filetime > unix_epoch ? (uint64_t)(filetime - unix_epoch) * 100 : (uint64_t)(filetime > 0);
}

au_error *au__win32_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    (void)sys;
    win32_snapshot snapshot = {0};
    DWORD code = au__win32_snapshot(&snapshot);
    if (code) {
        char text[256];
        au__win32_snapshot_free(&snapshot);
        return code == ERROR_NOT_ENOUGH_MEMORY
                   ? au_error_memory()
                   : au_error_cause(au_error_create(AU_ERR_OS, (int)code, "Cannot list the processes of this system"),
                                    "%s", au__win32_error_text(code, text, sizeof text));
    }
    for (const win32_process_info *at = NULL; (at = au__win32_next_process(&snapshot, at));) {
        au_process process = {.pid = (au_pid)(uintptr_t)at->id,
                              .parent = (au_pid)(uintptr_t)at->parent,
                              .start_time_ns = au__win32_filetime_ns(at->create_time.QuadPart)};
        if (process.pid != 0 && fn(baton, &process)) {
            break;
        }
    }
    au__win32_snapshot_free(&snapshot);
    return NULL;
}

static uint64_t filetime(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

au_outcome au__win32_usage(au_proc *proc, au_usage *out)
{
    win32_proc *wp = win32_of(proc);
    PROCESS_MEMORY_COUNTERS memory = {.cb = sizeof memory};
    FILETIME created, ended, kernel, user;
    if (wp->gone) {
        return AU_GONE;
    }
    if (!K32GetProcessMemoryInfo(wp->handle, &memory, sizeof memory) ||
        !GetProcessTimes(wp->handle, &created, &ended, &kernel, &user)) {
        return au__win32_gone(wp) ? AU_GONE : AU_DENIED;
    }
    if (au__win32_gone(wp)) {
        return AU_GONE;
    }
    uint64_t cpu = filetime(kernel) + filetime(user);
    if (!(proc->ops->caps & AU_CAP_STATES_TOLD)) { /* Wine, which gives our own times instead; not so in its list */
        DWORD failed;
        const win32_process_info *me = au__win32_look(wp, &failed);
        if (!me) {
            return au__win32_gone(wp) ? AU_GONE : AU_DENIED;
        }
        cpu = (uint64_t)(me->kernel_time.QuadPart + me->user_time.QuadPart);
    }
    out->resident_bytes = memory.WorkingSetSize;
    out->cpu_ns = cpu * 100;
    out->cpu_granularity_ns = CPU_GRANULARITY_NS;
    return AU_OK;
}
