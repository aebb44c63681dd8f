/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: what the two modes of the replayer share.
 */
#ifndef AU_PLATFORM_FAKE_REPLAY_H
#define AU_PLATFORM_FAKE_REPLAY_H

#include <stdatomic.h>

#include "platform/fake/internal.h"
#include "platform/fake/replayer.h"

struct au__last_proc;

struct au_replayer {
    au_sys sys;
    au_proc_ops table;
    au_replay_mode mode;
    const char *provenance;
    au_pid pid;
    uint64_t misses, time;
    /* ORDERED */
    au__cursor at;
    uint64_t handles;
    /* LAST */
    struct au__last_proc *procs;
    size_t n_procs;
    au__cursor processes, explained;
    atomic_int woken;
};

extern const au_proc_ops au__last_ops;

/** Reads the whole log into `procs`. -1 without memory. */
int au__last_build(au_replayer *replayer);
void au__last_deinit(au_replayer *replayer);

au_outcome au__get_status(au__cursor *content, au_proc_status *out);
au_outcome au__get_usage(au__cursor *content, au_usage *out);
void au__get_explanation(au__cursor *content, au_explanation *out);

/** The answer to one piece: brings `pages` up to date, and fills `buf` if not NULL. */
au_outcome au__get_memory(au__cursor *content, au__pages *pages, au_addr addr, void *buf, size_t len);
void au__skip_memory(au__cursor *content);
void au__copy_name(char *buf, size_t cap, const char *name);

#endif
