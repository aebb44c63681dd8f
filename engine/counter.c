/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * 3.13: the counter that numbers an interpreter's code objects (Objects/codeobject.c, init_code: co_version).
 *
 * While it stands still no code object has been made, so that none can have taken the place of one that is known: one
 * word for all of them. No table says where it is. It stands before a table of functions and their code objects that is
 * indexed by the version's low bits (Include/internal/pycore_function.h, struct _py_func_state), so each code object
 * that is in its place there says where the counter is; two that agree are believed. Free-threaded builds do not fill
 * the table (Objects/funcobject.c, _PyFunction_SetVersion).
 */
#include <stdlib.h>

#include "engine/stack.h"

enum {
    TRIES = 64,      /* code objects */
    SLOTS = 1 << 12, /* FUNC_VERSION_CACHE_SIZE */
    SLOT = 16,       /* func, code */
    WINDOW = 128 * 1024
};

/* Where this code object says the counter is; 0: nowhere. */
static uint32_t told_by(const uint8_t *window, const au_code *code)
{
    uint32_t slot = code->version % SLOTS * SLOT + 8;
    for (uint32_t at = slot + 8; at + 8 <= WINDOW; at += 8) {
        if (au__u64(window + at) != code->addr || !au__plausible(au__u64(window + at - 8))) {
            continue;
        }
        uint32_t counter = at - slot - 8;
        if (au__u32(window + counter) > code->version && au__u32(window + counter + 4) == 0) {
            return counter;
        }
    }
    return 0;
}

void au__counter_find(au_engine *e, const au_interp_rec *interp, const au_code *code)
{
    au_layout *l = &e->remote.layout;
    if (l->minor != 13 || l->free_threaded || l->interp_code_counter != AU_ABSENT || !code->version ||
        code->addr == e->counter_code || e->counter_tries >= TRIES) {
        return;
    }
    e->counter_tries++;
    uint8_t *window = malloc(WINDOW);
    uint32_t at = window && au__read(&e->remote, interp->addr, window, WINDOW) == AU_OK ? told_by(window, code) : 0;
    free(window);
    if (!at) {
        return;
    }
    if (at == e->counter_at) {
        l->interp_code_counter = at;
    }
    e->counter_at = at;
    e->counter_code = code->addr;
}
