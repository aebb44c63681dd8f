/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The stubs of a port that can do nothing: what a port sets for a member whose ability its system lacks. Also the
 * smallest complete port; start a new one by copying this room.
 *
 * Every stub fails in the way that its member's contract allows: hot ones with AU_UNSUPPORTED, cold ones with an
 * AU_ERR_OS that names the member, and the clock works, because C11 has one.
 */
#ifndef AU_PLATFORM_NONE_NONE_H
#define AU_PLATFORM_NONE_NONE_H

#include "engine/proc_ops.h"

extern const au_proc_ops au_none_ops;

/** The system of this port, for tests; au_platform_sys() of a real port gives its own. */
au_sys *au_none_sys(void);

au_error *au_none_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out);
void au_none_close(au_proc *proc);
au_outcome au_none_status(au_proc *proc, au_proc_status *out);
au_outcome au_none_read(au_proc *proc, au_addr addr, void *buf, size_t len);
size_t au_none_read_many(au_proc *proc, au_piece *pieces, size_t n);
au_error *au_none_regions(au_proc *proc, au_region_fn fn, void *baton);
au_error *au_none_modules(au_proc *proc, au_module_fn fn, void *baton);
au_error *au_none_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                              au_module_source *source);
au_error *au_none_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n);
size_t au_none_thread_states(au_proc *proc, au_thread_state *states, size_t n);
au_outcome au_none_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out);
au_outcome au_none_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap);
au_outcome au_none_usage(au_proc *proc, au_usage *out);
au_error *au_none_processes(au_sys *sys, au_process_fn fn, void *baton);
size_t au_none_suspend(au_proc *proc, const au_tid *tids, size_t n, uint8_t *outcomes);
void au_none_resume(au_proc *proc, const au_tid *tids, size_t n);
au_outcome au_none_registers(au_proc *proc, au_tid tid, au_registers *out);
au_outcome au_none_unwind(au_proc *proc, au_tid tid, const au_registers *regs, au_native_frame *out, size_t cap,
                          size_t *n, au_unwind_end *end);
au_error *au_none_symbolise(au_proc *proc, au_symbol *symbols, size_t n);
au_outcome au_none_kernel_stack(au_proc *proc, au_tid tid, char *buf, size_t cap, size_t *len);
uint64_t au_none_now(au_sys *sys);
uint64_t au_none_sleep_until(au_sys *sys, uint64_t deadline_ns);
void au_none_wake(au_sys *sys);
void au_none_explain(au_sys *sys, au_pid pid, au_explanation *out);

#endif
