/* SPDX-License-Identifier: Apache-2.0 */
/* Broken with the means of this system. */
#include <string.h>
#include <sys/uio.h>

#include "platform/linux/linux.h"
#include "tests/contract/mutants_list.h"

#define MUTANT(name) void mutant_##name(au_proc_ops *t)

au_sys *mutant_port_sys(void)
{
    static linux_sys the_system;
    memset(&the_system, 0, sizeof the_system);
    the_system.sys.ops = &mutant_table;
    return &the_system.sys;
}

static au_outcome read_by_number(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    struct iovec local = {buf, len}, remote = {(void *)(uintptr_t)addr, len};
    return process_vm_readv((pid_t)proc->pid, &local, 1, &remote, 1, 0) == (ssize_t)len ? AU_OK : AU_FAULT;
}

MUTANT(open_accepts_reused_pid)
{
    t->read = read_by_number;
}

/** All descriptors stay open; the memory goes, or a leak checker would say so. */
static void close_no_files(au_proc *proc)
{
    if (proc) {
        linux_proc *lp = linux_of(proc);
        lp->n_slots = 0;
        lp->pidfd = lp->dir = lp->mem = lp->pagemap = lp->statm = lp->reserve = -1;
        au__linux_proc_close(proc);
    }
}

MUTANT(close_does_nothing)
{
    t->close = close_no_files;
}

static void close_but_slots(au_proc *proc)
{
    if (proc) {
        linux_of(proc)->n_slots = 0;
        au__linux_proc_close(proc);
    }
}

MUTANT(close_leaks_slots)
{
    t->close = close_but_slots;
}

static au_outcome read_mem(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    return au__linux_gone(linux_of(proc)) ? AU_GONE : au__linux_read_mem(linux_of(proc), addr, buf, len);
}

MUTANT(read_ignores_protection)
{
    t->read = read_mem;
}

static size_t many_gone(au_proc *proc, au_piece *pieces, size_t n)
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
    t->read_many = many_gone;
}
