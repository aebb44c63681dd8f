/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/fake/faults.h"

#include <stdlib.h>
#include <string.h>

#include "platform/fake/internal.h"

enum { OLD_PAGE = 4096 };

typedef struct planned {
    au_fault fault;
    uint8_t page[OLD_PAGE]; /* AU_FAULT_OLD_PAGE */
    int has_page;
} planned;

struct au_faults {
    au_sys sys;
    au_proc_ops table;
    au_sys *inner;
    planned *plan;
    size_t n, cap;
    uint64_t calls[AU_MEMBERS];
    uint64_t pieces, fired, random;
    uint64_t clock_calls;
    int gone;
};

typedef struct faulty_proc {
    au_proc proc;
    au_faults *faults;
    au_proc *inner;
} faulty_proc;

static faulty_proc *faulty(au_proc *proc)
{
    return (faulty_proc *)proc;
}

static uint64_t next_random(au_faults *faults) /* xorshift64*, Vigna 2014 */
{
    faults->random ^= faults->random >> 12;
    faults->random ^= faults->random << 25;
    faults->random ^= faults->random >> 27;
    return faults->random * 0x2545f4914f6cdd1du;
}

static int in_range(uint64_t call, const au_fault *fault)
{
    return call >= fault->nth && call - fault->nth < (fault->times ? fault->times : 1);
}

static au_outcome outcome_of(const au_fault *fault)
{
    return fault->outcome == AU_OK ? AU_FAULT : fault->outcome;
}

/** Counts a call and says what it must give; AU_OK: go on. */
static au_outcome enter(au_faults *faults, au_member member)
{
    uint64_t call = faults->calls[member]++;
    for (size_t i = 0; i < faults->n; i++) {
        const au_fault *fault = &faults->plan[i].fault;
        if (fault->kind == AU_FAULT_FAIL && fault->member == member && in_range(call, fault)) {
            faults->fired++;
            return outcome_of(fault);
        }
    }
    return faults->gone && member != AU_MEMBER_NOW && member != AU_MEMBER_PROCESSES ? AU_GONE : AU_OK;
}

static au_error *error_of(au_outcome outcome, const char *what)
{
    switch (outcome) {
    case AU_GONE:
        return au_error_gone();
    case AU_DENIED:
        return au_error_create(AU_ERR_PERMISSION, 0, "Insufficient permissions for %s (injected)", what);
    default:
        return au_error_create(AU_ERR_OS, 0, "Cannot do %s (injected)", what);
    }
}

static au_error *flt_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_faults *faults = (au_faults *)sys;
    au_outcome outcome = enter(faults, AU_MEMBER_OPEN);
    if (outcome != AU_OK) {
        return error_of(outcome, "open");
    }
    faulty_proc *fp = calloc(1, sizeof *fp);
    if (!fp) {
        return au_error_memory();
    }
    au_error *error = faults->inner->ops->open(faults->inner, pid, want, &fp->inner);
    if (error) {
        free(fp);
        return error;
    }
    fp->proc = (au_proc){&faults->table, pid};
    fp->faults = faults;
    *out = &fp->proc;
    return NULL;
}

static void flt_close(au_proc *proc)
{
    if (proc) {
        faulty(proc)->inner->ops->close(faulty(proc)->inner);
        free(proc);
    }
}

static au_outcome flt_status(au_proc *proc, au_proc_status *out)
{
    au_outcome outcome = enter(faulty(proc)->faults, AU_MEMBER_STATUS);
    return outcome != AU_OK ? outcome : faulty(proc)->inner->ops->status(faulty(proc)->inner, out);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void serve_old_page(au_faults *faults, planned *plan, au_proc *inner, au_piece *piece)
{
    const au_fault *fault = &plan->fault;
    au_addr page = fault->addr / OLD_PAGE * OLD_PAGE;
    if (piece->addr >= page + OLD_PAGE || piece->addr + piece->len <= page) {
        return;
    }
    if (!plan->has_page) {
        plan->has_page = inner->ops->read(inner, page, plan->page, OLD_PAGE) == AU_OK;
    }
    if (plan->has_page && faults->pieces >= fault->piece &&
        faults->pieces - fault->piece < (fault->times ? fault->times : 1)) {
        au_addr from = piece->addr > page ? piece->addr : page;
        au_addr to = piece->addr + piece->len < page + OLD_PAGE ? piece->addr + piece->len : page + OLD_PAGE;
        memcpy((uint8_t *)piece->buf + (from - piece->addr), plan->page + (from - page), (size_t)(to - from));
        faults->fired++;
    }
}

static void mutate(au_faults *faults, const au_fault *fault, au_piece *piece)
{
    uint64_t one_in = fault->one_in ? fault->one_in : 1;
    uint8_t *bytes = piece->buf;
    for (uint32_t i = 0; i < piece->len; i++) {
        if (next_random(faults) % one_in == 0) {
            bytes[i] = (uint8_t)(bytes[i] ^ (1 + next_random(faults) % 255));
            faults->fired++;
        }
    }
}

/** After the inner system has served a piece. */
static void spoil(au_faults *faults, au_proc *inner, au_piece *piece)
{
    for (size_t i = 0; i < faults->n; i++) {
        planned *plan = &faults->plan[i];
        if (plan->fault.kind == AU_FAULT_GONE && faults->pieces >= plan->fault.piece && !faults->gone) {
            faults->gone = 1;
            faults->fired++;
        }
        if (faults->gone || piece->outcome != AU_OK || piece->len == 0) {
            continue;
        }
        if (plan->fault.kind == AU_FAULT_OLD_PAGE) {
            serve_old_page(faults, plan, inner, piece);
        } else if (plan->fault.kind == AU_FAULT_MUTATE && faults->pieces >= plan->fault.piece) {
            mutate(faults, &plan->fault, piece);
        }
    }
    if (faults->gone) {
        piece->outcome = AU_GONE;
    }
    faults->pieces++;
}

static size_t flt_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    au_faults *faults = faulty(proc)->faults;
    au_proc *inner = faulty(proc)->inner;
    uint64_t call = faults->calls[AU_MEMBER_READ];
    au_outcome outcome = enter(faults, AU_MEMBER_READ);
    if (outcome == AU_OK) {
        inner->ops->read_many(inner, pieces, n);
    }
    size_t keep = n;
    au_outcome rest = AU_FAULT;
    for (size_t i = 0; i < faults->n; i++) {
        const au_fault *fault = &faults->plan[i].fault;
        if (fault->kind == AU_FAULT_PIECES && in_range(call, fault) && fault->keep < keep) {
            keep = (size_t)fault->keep;
            rest = outcome_of(fault);
            faults->fired++;
        }
    }
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        if (outcome != AU_OK) {
            pieces[i].outcome = (uint32_t)outcome;
        } else if (i >= keep) {
            pieces[i].outcome = (uint32_t)rest;
            faults->pieces++;
        } else {
            spoil(faults, inner, &pieces[i]);
        }
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

static au_outcome flt_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    au_proc *inner = faulty(proc)->inner;
    if (len > UINT32_MAX) { /* no piece can hold it */
        return inner->ops->read(inner, addr, buf, len);
    }
    au_piece piece = {.addr = addr, .buf = buf, .len = (uint32_t)len};
    flt_read_many(proc, &piece, 1);
    return (au_outcome)piece.outcome;
}

/* ---- lists ---------------------------------------------------------------------------------------------------- */

/** Which item of this call is left out; UINT64_MAX for none. */
static uint64_t left_out(au_faults *faults, au_member member, uint64_t call)
{
    for (size_t i = 0; i < faults->n; i++) {
        const au_fault *fault = &faults->plan[i].fault;
        if (fault->kind == AU_FAULT_LIST && fault->member == member && in_range(call, fault)) {
            return fault->keep;
        }
    }
    return UINT64_MAX;
}

typedef struct filter {
    au_faults *faults;
    uint64_t skip, at;
    au_region_fn region;
    au_module_fn module;
    void *baton;
} filter;

static int is_left_out(filter *f)
{
    if (f->at++ == f->skip) {
        f->faults->fired++;
        return 1;
    }
    return 0;
}

static int filter_region(void *baton, const au_region *region)
{
    filter *f = baton;
    return is_left_out(f) ? 0 : f->region(f->baton, region);
}

static int filter_module(void *baton, const au_module *module)
{
    filter *f = baton;
    return is_left_out(f) ? 0 : f->module(f->baton, module);
}

static au_error *flt_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    au_faults *faults = faulty(proc)->faults;
    uint64_t call = faults->calls[AU_MEMBER_REGIONS];
    au_outcome outcome = enter(faults, AU_MEMBER_REGIONS);
    if (outcome != AU_OK) {
        return error_of(outcome, "regions");
    }
    filter f = {.faults = faults, .skip = left_out(faults, AU_MEMBER_REGIONS, call), .region = fn, .baton = baton};
    return faulty(proc)->inner->ops->regions(faulty(proc)->inner, filter_region, &f);
}

static au_error *flt_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    au_faults *faults = faulty(proc)->faults;
    uint64_t call = faults->calls[AU_MEMBER_MODULES];
    au_outcome outcome = enter(faults, AU_MEMBER_MODULES);
    if (outcome != AU_OK) {
        return error_of(outcome, "modules");
    }
    filter f = {.faults = faults, .skip = left_out(faults, AU_MEMBER_MODULES, call), .module = fn, .baton = baton};
    return faulty(proc)->inner->ops->modules(faulty(proc)->inner, filter_module, &f);
}

static au_error *flt_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                 au_module_source *source)
{
    au_outcome outcome = enter(faulty(proc)->faults, AU_MEMBER_MODULE_READ);
    return outcome != AU_OK
               ? error_of(outcome, "module_read")
               : faulty(proc)->inner->ops->module_read(faulty(proc)->inner, module_id, offset, buf, len, got, source);
}

static au_error *flt_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    au_faults *faults = faulty(proc)->faults;
    uint64_t call = faults->calls[AU_MEMBER_THREADS];
    au_outcome outcome = enter(faults, AU_MEMBER_THREADS);
    if (outcome != AU_OK) {
        return error_of(outcome, "threads");
    }
    size_t count = 0;
    au_error *error = faulty(proc)->inner->ops->threads(faulty(proc)->inner, out, cap, &count);
    uint64_t skip = left_out(faults, AU_MEMBER_THREADS, call);
    if (!error && skip < count) {
        if (skip < cap) {
            size_t have = count < cap ? count : cap;
            memmove(out + skip, out + skip + 1, (have - (size_t)skip - 1) * sizeof *out);
        }
        count--;
        faults->fired++;
    }
    if (!error) {
        *n = count;
    }
    return error;
}

/* ---- the rest ------------------------------------------------------------------------------------------------- */

static size_t flt_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    au_outcome outcome = enter(faulty(proc)->faults, AU_MEMBER_THREAD_STATES);
    size_t ok = faulty(proc)->inner->ops->thread_states(faulty(proc)->inner, states, n);
    for (size_t i = 0; i < n && outcome != AU_OK; i++) {
        ok -= states[i].outcome == AU_OK && states[i].wanted;
        states[i].outcome = states[i].wanted ? (uint32_t)outcome : states[i].outcome;
    }
    return ok;
}

static au_outcome flt_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    au_outcome outcome = enter(faulty(proc)->faults, AU_MEMBER_THREAD_ID_OF);
    return outcome != AU_OK ? outcome : faulty(proc)->inner->ops->thread_id_of(faulty(proc)->inner, kind, value, out);
}

static au_outcome flt_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    au_outcome outcome = enter(faulty(proc)->faults, AU_MEMBER_THREAD_NAME);
    return outcome != AU_OK ? outcome : faulty(proc)->inner->ops->thread_name(faulty(proc)->inner, tid, buf, cap);
}

static au_outcome flt_usage(au_proc *proc, au_usage *out)
{
    au_outcome outcome = enter(faulty(proc)->faults, AU_MEMBER_USAGE);
    return outcome != AU_OK ? outcome : faulty(proc)->inner->ops->usage(faulty(proc)->inner, out);
}

static au_error *flt_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    au_faults *faults = (au_faults *)sys;
    au_outcome outcome = enter(faults, AU_MEMBER_PROCESSES);
    return outcome != AU_OK ? error_of(outcome, "processes") : faults->inner->ops->processes(faults->inner, fn, baton);
}

static int64_t clock_offset(au_faults *faults)
{
    int64_t offset = 0;
    uint64_t call = faults->clock_calls++;
    for (size_t i = 0; i < faults->n; i++) {
        const au_fault *fault = &faults->plan[i].fault;
        if (fault->kind == AU_FAULT_CLOCK && call >= fault->nth) {
            offset += fault->jump_ns;
            faults->fired += call == fault->nth;
        }
    }
    return offset;
}

static uint64_t flt_now(au_sys *sys)
{
    au_faults *faults = (au_faults *)sys;
    faults->calls[AU_MEMBER_NOW]++;
    int64_t offset = clock_offset(faults);
    return faults->inner->ops->now(faults->inner) + (uint64_t)offset;
}

static uint64_t flt_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    au_faults *faults = (au_faults *)sys;
    int64_t offset = clock_offset(faults);
    uint64_t inner_deadline = deadline_ns - (uint64_t)offset;
    if (offset > 0 && (uint64_t)offset > deadline_ns) {
        inner_deadline = 0; /* the jump has passed it */
    }
    return faults->inner->ops->sleep_until(faults->inner, inner_deadline) + (uint64_t)offset;
}

static void flt_wake(au_sys *sys)
{
    au_sys *inner = ((au_faults *)sys)->inner;
    inner->ops->wake(inner);
}

static void flt_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    au_sys *inner = ((au_faults *)sys)->inner;
    inner->ops->explain(inner, pid, out);
}

static const au_proc_ops flt_ops = {
    .size = sizeof(au_proc_ops),
    .name = "faults",
    .open = flt_open,
    .close = flt_close,
    .status = flt_status,
    .read = flt_read,
    .read_many = flt_read_many,
    .regions = flt_regions,
    .modules = flt_modules,
    .module_read = flt_module_read,
    .threads = flt_threads,
    .thread_states = flt_thread_states,
    .thread_id_of = flt_thread_id_of,
    .thread_name = flt_thread_name,
    .usage = flt_usage,
    .processes = flt_processes,
    .suspend = au__fake_suspend,
    .resume = au__fake_resume,
    .registers = au__fake_registers,
    .unwind = au__fake_unwind,
    .symbolise = au__fake_symbolise,
    .kernel_stack = au__fake_kernel_stack,
    .now = flt_now,
    .sleep_until = flt_sleep_until,
    .wake = flt_wake,
    .explain = flt_explain,
};

au_faults *au_faults_create(au_sys *inner, uint64_t seed)
{
    au_faults *faults = calloc(1, sizeof *faults);
    if (faults) {
        faults->table = flt_ops;
        faults->table.caps = inner->ops->caps & AU__FAKE_CAPS;
        faults->sys.ops = &faults->table;
        faults->inner = inner;
        faults->random = seed * 2 + 1;
    }
    return faults;
}

void au_faults_destroy(au_faults *faults)
{
    if (faults) {
        free(faults->plan);
        free(faults);
    }
}

int au_faults_add(au_faults *faults, const au_fault *fault)
{
    if (faults->n == faults->cap) {
        size_t cap = faults->cap ? faults->cap * 2 : 4;
        planned *grown = realloc(faults->plan, cap * sizeof *grown);
        if (!grown) {
            return -1;
        }
        faults->plan = grown;
        faults->cap = cap;
    }
    planned *added = &faults->plan[faults->n++];
    memset(added, 0, sizeof *added);
    added->fault = *fault;
    return 0;
}

void au_faults_clear(au_faults *faults)
{
    faults->n = 0;
    faults->gone = 0;
}

au_sys *au_faults_sys(au_faults *faults)
{
    return &faults->sys;
}

uint64_t au_faults_fired(const au_faults *faults)
{
    return faults->fired;
}

uint64_t au_faults_calls(const au_faults *faults, au_member member)
{
    return faults->calls[member];
}
