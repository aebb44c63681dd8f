/* SPDX-License-Identifier: Apache-2.0 */
/* The stubs alone: what a port sets for what its system cannot do. They need no system at all. */
#include <inttypes.h>

#include "platform/none/none.h"

static au_error *unsupported(const char *member)
{
    return au_error_create(AU_ERR_OS, 0, "%s is not available on this system", member);
}

au_error *au_none_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    (void)sys, (void)want, (void)out;
    return au_error_cause(au_error_create(AU_ERR_OS, 0, "Cannot attach to process %" PRId64, pid),
                          "this system has no port yet");
}

void au_none_close(au_proc *proc)
{
    (void)proc;
}

au_outcome au_none_status(au_proc *proc, au_proc_status *out)
{
    (void)proc, (void)out;
    return AU_UNSUPPORTED;
}

au_outcome au_none_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    (void)proc, (void)addr, (void)buf;
    return len == 0 ? AU_OK : AU_UNSUPPORTED;
}

size_t au_none_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    (void)proc;
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = AU_UNSUPPORTED;
    }
    return 0;
}

au_error *au_none_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    (void)proc, (void)fn, (void)baton;
    return unsupported("listing memory");
}

au_error *au_none_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    (void)proc, (void)fn, (void)baton;
    return unsupported("listing modules");
}

au_error *au_none_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                              au_module_source *source)
{
    (void)proc, (void)module_id, (void)offset, (void)buf, (void)len, (void)got, (void)source;
    return unsupported("reading a module");
}

au_error *au_none_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    (void)proc, (void)out, (void)cap, (void)n;
    return unsupported("listing threads");
}

size_t au_none_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    (void)proc;
    for (size_t i = 0; i < n; i++) {
        states[i].outcome = AU_UNSUPPORTED;
        states[i].slot = 0;
    }
    return 0;
}

au_outcome au_none_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    (void)proc, (void)kind, (void)value, (void)out;
    return AU_UNSUPPORTED;
}

au_outcome au_none_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    (void)proc, (void)tid, (void)buf, (void)cap;
    return AU_UNSUPPORTED;
}

au_outcome au_none_usage(au_proc *proc, au_usage *out)
{
    (void)proc, (void)out;
    return AU_UNSUPPORTED;
}

au_error *au_none_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    (void)sys, (void)fn, (void)baton;
    return unsupported("listing processes");
}

size_t au_none_suspend(au_proc *proc, const au_tid *tids, size_t n, uint8_t *outcomes)
{
    (void)proc, (void)tids;
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = AU_UNSUPPORTED;
    }
    return 0;
}

void au_none_resume(au_proc *proc, const au_tid *tids, size_t n)
{
    (void)proc, (void)tids, (void)n;
}

au_outcome au_none_registers(au_proc *proc, au_tid tid, au_registers *out)
{
    (void)proc, (void)tid, (void)out;
    return AU_UNSUPPORTED;
}

au_outcome au_none_unwind(au_proc *proc, au_tid tid, const au_registers *regs, au_native_frame *out, size_t cap,
                          size_t *n, au_unwind_end *end)
{
    (void)proc, (void)tid, (void)regs, (void)out, (void)cap, (void)n, (void)end;
    return AU_UNSUPPORTED;
}

au_error *au_none_symbolise(au_proc *proc, au_symbol *symbols, size_t n)
{
    (void)proc, (void)symbols, (void)n;
    return unsupported("naming native code");
}

au_outcome au_none_kernel_stack(au_proc *proc, au_tid tid, char *buf, size_t cap, size_t *len)
{
    (void)proc, (void)tid, (void)buf, (void)cap, (void)len;
    return AU_UNSUPPORTED;
}

void au_none_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    (void)sys, (void)pid;
    *out = (au_explanation){.right = AU_RIGHT_UNKNOWN, .uid = -1};
}
