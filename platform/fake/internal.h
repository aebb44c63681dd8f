/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: members for native work, which no fake has; the record of a log; remembered memory.
 */
#ifndef AU_PLATFORM_FAKE_INTERNAL_H
#define AU_PLATFORM_FAKE_INTERNAL_H

#include "base/buf.h"
#include "engine/proc_ops.h"
#include "platform/fake/log.h"

/* ---- members that no fake has ---------------------------------------------------------------------------------- */

size_t au__fake_suspend(au_proc *proc, const au_tid *tids, size_t n, uint8_t *outcomes);
void au__fake_resume(au_proc *proc, const au_tid *tids, size_t n);
au_outcome au__fake_registers(au_proc *proc, au_tid tid, au_registers *out);
au_outcome au__fake_unwind(au_proc *proc, au_tid tid, const au_registers *regs, au_native_frame *out, size_t cap,
                           size_t *n, au_unwind_end *end);
au_error *au__fake_symbolise(au_proc *proc, au_symbol *symbols, size_t n);
au_outcome au__fake_kernel_stack(au_proc *proc, au_tid tid, char *buf, size_t cap, size_t *len);

/** What stays of a wrapped table's capabilities: nothing that the stubs above stand for. */
#define AU__FAKE_CAPS                                                                                                  \
    (AU_CAP_THREADS | AU_CAP_THREAD_STATES | AU_CAP_SWITCHES | AU_CAP_THREAD_ID_OF | AU_CAP_THREAD_NAME |              \
     AU_CAP_USAGE | AU_CAP_PROCESSES | AU_CAP_MODULE_FILE | AU_CAP_THREAD_CPU | AU_CAP_LAUNCHERS | AU_CAP_STATES_TOLD)

/* ---- remembered memory: per byte not known, known, or faulted ---------------------------------------------------- */

typedef struct au__pages {
    struct au__page **slots; /* open addressing by page number */
    size_t cap, count;
} au__pages;

void au__pages_deinit(au__pages *pages);

/** What was read at `addr`. -1 without memory. */
int au__pages_put(au__pages *pages, au_addr addr, const void *bytes, size_t len);

/** A read there faulted. Only its first byte is known to be bad if the read crossed a page: so no more is noted than up
 *  to the end of that page. */
void au__pages_fault(au__pages *pages, au_addr addr, size_t len);

/** AU_OK if all bytes are known, AU_FAULT if one faulted, else AU_NOT_KNOWN. */
au_outcome au__pages_get(const au__pages *pages, au_addr addr, void *buf, size_t len);

/* ---- coding ----------------------------------------------------------------------------------------------------- */

void au__put_number(au_buf *buf, uint64_t value);
void au__put_signed(au_buf *buf, int64_t value);
void au__put_bytes(au_buf *buf, const void *bytes, size_t len);
void au__put_text(au_buf *buf, const char *text); /* NULL differs from "" */

/** A walk over bytes; `bad` is set, and stays, when they end too early. */
typedef struct au__cursor {
    const uint8_t *at, *end;
    int bad;
} au__cursor;

uint64_t au__get_number(au__cursor *from);
int64_t au__get_signed(au__cursor *from);
const uint8_t *au__get_bytes(au__cursor *from, size_t *len);

/** In the cursor's own memory, NUL-terminated there. */
const char *au__get_text(au__cursor *from);

/** Next record of a log: its kind and its content. 0 at the end, -1 when cut. */
int au__next_record(au__cursor *log, unsigned *kind, au__cursor *content);

/** Show a recorded list (1 before each item, 0 after the last) to a callback, which may stop early; NULL passes over
 * it. */
void au__show_regions(au__cursor *from, au_region_fn fn, void *baton);
void au__show_modules(au__cursor *from, au_module_fn fn, void *baton);
void au__show_processes(au__cursor *from, au_process_fn fn, void *baton);

/** An error as data. */
void au__put_error(au_buf *buf, const au_error *error);
au_error *au__get_error(au__cursor *from);

#endif
