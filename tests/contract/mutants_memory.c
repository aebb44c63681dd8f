/* SPDX-License-Identifier: Apache-2.0 */
/* Broken: the table, opening and closing, identity, memory. */
#include "tests/contract/mutants.h"

#include <stdlib.h>
#include <string.h>

#include "tests/contract/host.h"
#include "tests/contract/mutants_list.h"

#define MUTANT(name) void mutant_##name(au_proc_ops *t)

/* ---- the table, open, close ------------------------------------------------------------------------------------ */

MUTANT(wrong_size)
{
    t->size -= 8;
}

MUTANT(no_name)
{
    t->name = NULL;
}

MUTANT(missing_member)
{
    t->kernel_stack = NULL;
}

MUTANT(unknown_bit)
{
    t->caps |= (uint64_t)1 << 40;
}

static au_error *open_own(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    return pid > 0 && pid < 2000000000 ? mutant_open(sys, pid, want, out) : mutant_open(sys, host_pid(), want, out);
}

MUTANT(open_takes_anything)
{
    t->open = open_own;
}

static au_error *open_nameless(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_error *error = mutant_open(sys, pid, want, out);
    if (error) {
        au_error_clear(error);
        return au_error_create(AU_ERR_OS, 0, "no such process");
    }
    return NULL;
}

MUTANT(open_names_no_pid)
{
    t->open = open_nameless;
}

static au_error *open_other_pid(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_error *error = mutant_open(sys, pid, want, out);
    if (!error) {
        (*out)->pid++;
    }
    return error;
}

MUTANT(open_forgets_pid)
{
    t->open = open_other_pid;
}

static au_error *open_permission(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_error *error = mutant_open(sys, pid, want, out);
    if (error) {
        error->code = AU_ERR_PERMISSION;
    }
    return error;
}

MUTANT(open_wrong_code)
{
    t->open = open_permission;
}

/* ---- status ----------------------------------------------------------------------------------------------------- */

static au_outcome status_alive(au_proc *proc, au_proc_status *out)
{
    static au_proc_status last = {.page_bytes = 4096, .pointer_bytes = 8, .start_time_ns = 1};
    au_proc_status now;
    if (whole()->status(proc, &now) == AU_OK) {
        last = now;
    }
    last.state = AU_RUNNING;
    *out = last;
    return AU_OK;
}

MUTANT(status_never_ends)
{
    t->status = status_alive;
}

static au_outcome status_same(au_proc *proc, au_proc_status *out)
{
    au_outcome outcome = whole()->status(proc, out);
    out->generation = 0;
    return outcome;
}

MUTANT(status_misses_exec)
{
    t->status = status_same;
}

static au_outcome status_narrow(au_proc *proc, au_proc_status *out)
{
    au_outcome outcome = whole()->status(proc, out);
    out->pointer_bytes = 4;
    return outcome;
}

MUTANT(status_wrong_pointer)
{
    t->status = status_narrow;
}

static au_outcome status_gone_at_exec(au_proc *proc, au_proc_status *out)
{
    au_outcome outcome = whole()->status(proc, out);
    return outcome == AU_OK && out->generation ? AU_GONE : outcome;
}

MUTANT(status_exec_is_end)
{
    t->status = status_gone_at_exec;
}

static au_outcome status_new_start(au_proc *proc, au_proc_status *out)
{
    au_outcome outcome = whole()->status(proc, out);
    out->start_time_ns = whole()->now(au_platform_sys());
    return outcome;
}

MUTANT(status_start_moves)
{
    t->status = status_new_start;
}

/* ---- read ---------------------------------------------------------------------------------------------------------
 */

static au_outcome read_ok(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    au_outcome outcome = whole()->read(proc, addr, buf, len);
    return outcome == AU_FAULT ? AU_OK : outcome;
}

MUTANT(read_hides_fault)
{
    t->read = read_ok;
}

static au_outcome read_short(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    return whole()->read(proc, addr, buf, len > 5000 ? 5000 : len);
}

MUTANT(read_is_short)
{
    t->read = read_short;
}

static au_outcome read_long(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    return whole()->read(proc, addr, buf, len == 7 ? 8 : len);
}

MUTANT(read_is_long)
{
    t->read = read_long;
}

static au_outcome read_next(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    return whole()->read(proc, addr + 1, buf, len);
}

MUTANT(read_is_off_by_one)
{
    t->read = read_next;
}

static au_outcome read_fault_when_gone(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    au_outcome outcome = whole()->read(proc, addr, buf, len);
    return outcome == AU_GONE ? AU_FAULT : outcome;
}

MUTANT(status_read_hides_end)
{
    t->read = read_fault_when_gone;
}

/* ---- read_many ----------------------------------------------------------------------------------------------------
 */

static size_t many_stop(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t ok = 0, i = 0;
    for (; i < n; i++) {
        pieces[i].outcome = (uint32_t)whole()->read(proc, pieces[i].addr, pieces[i].buf, pieces[i].len);
        if (pieces[i].outcome != AU_OK) {
            break;
        }
        ok++;
    }
    for (; i < n; i++) {
        pieces[i].outcome = AU_FAULT;
    }
    return ok;
}

MUTANT(read_many_stops_at_fault)
{
    t->read_many = many_stop;
}

static size_t many_backwards(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t ok = 0;
    for (size_t i = n; i-- > 0;) {
        pieces[i].outcome = (uint32_t)whole()->read(proc, pieces[i].addr, pieces[i].buf, pieces[i].len);
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

MUTANT(read_many_out_of_order)
{
    t->read_many = many_backwards;
}

static size_t many_swapped(au_proc *proc, au_piece *pieces, size_t n)
{
    if (n < 3) {
        return whole()->read_many(proc, pieces, n);
    }
    size_t ok = whole()->read_many(proc, pieces + n - 1, 1); /* the last one first */
    return ok + whole()->read_many(proc, pieces, n - 1);
}

MUTANT(read_many_last_first)
{
    t->read_many = many_swapped;
}

static size_t many_first_1024(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t ok = whole()->read_many(proc, pieces, n < 1024 ? n : 1024);
    for (size_t i = 1024; i < n; i++) {
        pieces[i].outcome = AU_OK;
        ok++;
    }
    return ok;
}

MUTANT(read_many_forgets_the_rest)
{
    t->read_many = many_first_1024;
}

static size_t many_count(au_proc *proc, au_piece *pieces, size_t n)
{
    whole()->read_many(proc, pieces, n);
    return n;
}

MUTANT(read_many_counts_all)
{
    t->read_many = many_count;
}

static size_t many_blame(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t ok = whole()->read_many(proc, pieces, n);
    for (size_t i = n; i-- > 1;) {
        if (pieces[i].outcome == AU_FAULT && pieces[i - 1].outcome == AU_OK) {
            pieces[i].outcome = AU_OK; /* the one before is blamed */
            pieces[i - 1].outcome = AU_FAULT;
            break;
        }
    }
    return ok;
}

MUTANT(read_many_blames_another)
{
    t->read_many = many_blame;
}
