/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A replayer: serves a recorded log.
 *
 * AU_REPLAY_ORDERED serves the log exactly as it was: each request must be the next one in it. One that is not is
 * answered AU_NOT_KNOWN (hot members) or with an error that names both (cold ones), and counted; the log stays where it
 * is. For tests of the very same engine: tears and movement come back as they happened.
 *
 * AU_REPLAY_LAST serves its last state as a memory image: pages put together from all reads, lists as they were
 * answered last. Any request in any order; what no read has touched is AU_NOT_KNOWN, which differs from AU_FAULT, "was
 * not mapped". Time is invented: it begins at 1 s and sleep_until moves it. For tests that must survive a change of the
 * engine.
 */
#ifndef AU_PLATFORM_FAKE_REPLAYER_H
#define AU_PLATFORM_FAKE_REPLAYER_H

#include "engine/proc_ops.h"
#include "platform/fake/log.h"

typedef struct au_replayer au_replayer;

typedef enum au_replay_mode { AU_REPLAY_ORDERED, AU_REPLAY_LAST } au_replay_mode;

/** `log` is read only and must outlive the replayer. AU_ERR_VALUE when it is no log. */
au_error *au_replayer_create(const au_buf *log, au_replay_mode mode, au_replayer **out);
void au_replayer_destroy(au_replayer *replayer);

au_sys *au_replayer_sys(au_replayer *replayer);

/** The provenance lines of the log. */
const char *au_replayer_provenance(const au_replayer *replayer);

/** The pid of the first process that was opened in it; 0 for none. */
au_pid au_replayer_pid(const au_replayer *replayer);

/** ORDERED: requests that were not the next one. LAST: bytes that were asked for and never recorded, as pieces. */
uint64_t au_replayer_misses(const au_replayer *replayer);

/** ORDERED: whether everything in the log has been asked for. */
int au_replayer_at_end(const au_replayer *replayer);

#endif
