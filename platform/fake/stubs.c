/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/fake/internal.h"

size_t au__fake_suspend(au_proc *proc, const au_tid *tids, size_t n, uint8_t *outcomes)
{
    (void)proc, (void)tids;
    for (size_t i = 0; i < n; i++) {
        outcomes[i] = AU_UNSUPPORTED;
    }
    return 0;
}

void au__fake_resume(au_proc *proc, const au_tid *tids, size_t n)
{
    (void)proc, (void)tids, (void)n;
}

au_outcome au__fake_registers(au_proc *proc, au_tid tid, au_registers *out)
{
    (void)proc, (void)tid, (void)out;
    return AU_UNSUPPORTED;
}

au_outcome au__fake_unwind(au_proc *proc, au_tid tid, const au_registers *regs, au_native_frame *out, size_t cap,
                           size_t *n, au_unwind_end *end)
{
    (void)proc, (void)tid, (void)regs, (void)out, (void)cap, (void)n, (void)end;
    return AU_UNSUPPORTED;
}

au_error *au__fake_symbolise(au_proc *proc, au_symbol *symbols, size_t n)
{
    (void)proc, (void)symbols, (void)n;
    return au_error_create(AU_ERR_OS, 0, "naming native code is not available on this system");
}

au_outcome au__fake_kernel_stack(au_proc *proc, au_tid tid, char *buf, size_t cap, size_t *len)
{
    (void)proc, (void)tid, (void)buf, (void)cap, (void)len;
    return AU_UNSUPPORTED;
}
