/* SPDX-License-Identifier: Apache-2.0 */
/* Broken with the means of this system. */
#include <string.h>

#include "platform/win32/tracee.h"
#include "tests/contract/mutants_list.h"

#define MUTANT(name) void mutant_##name(au_proc_ops *t)

au_sys *mutant_port_sys(void)
{
    static win32_sys the_system;
    the_system.sys.ops = &mutant_table;
    au__win32_init(&the_system); /* once: what it holds, it holds for good */
    the_system.woken = 0;
    ResetEvent(the_system.event);
    return &the_system.sys;
}

static au_outcome read_by_number(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    SIZE_T got = 0;
    HANDLE process = OpenProcess(PROCESS_VM_READ, FALSE, (DWORD)proc->pid);
    BOOL read = process && ReadProcessMemory(process, (const void *)(uintptr_t)addr, buf, len, &got);
    if (process) {
        CloseHandle(process);
    }
    return read && got == len ? AU_OK : AU_FAULT;
}

MUTANT(open_accepts_reused_pid)
{
    t->read = read_by_number;
}

/** The handle stays open. */
static void close_no_handle(au_proc *proc)
{
    if (proc) {
        win32_of(proc)->handle = NULL;
        au__win32_proc_close(proc);
    }
}

MUTANT(close_does_nothing)
{
    t->close = close_no_handle;
}

/** Keeps a thread open for each one that is asked about; its close does not know of that. */
static size_t states_by_handle(au_proc *proc, au_thread_state *states, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)states[i].tid);
    }
    return au__win32_thread_states(proc, states, n);
}

MUTANT(close_leaks_slots)
{
    t->thread_states = states_by_handle;
}

/** As a port would that changes a page's protection to read it: what is mapped, is readable. */
static au_outcome read_mapped(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    MEMORY_BASIC_INFORMATION info;
    au_outcome outcome = au__win32_read(proc, addr, buf, len);
    if (outcome == AU_FAULT && VirtualQueryEx(win32_of(proc)->handle, (void *)(uintptr_t)addr, &info, sizeof info) &&
        info.State == MEM_COMMIT && (uintptr_t)info.BaseAddress + info.RegionSize - addr >= len) {
        memset(buf, 0, len);
        return AU_OK;
    }
    return outcome;
}

MUTANT(read_ignores_protection)
{
    t->read = read_mapped;
}

static size_t many_by_number(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = (uint32_t)read_by_number(proc, pieces[i].addr, pieces[i].buf, pieces[i].len);
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

MUTANT(open_read_many_takes_reused_pid)
{
    t->read_many = many_by_number;
}
