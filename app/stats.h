/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The figures at the end of a run: as metadata for readers, and as text for people.
 */
#ifndef AU_APP_STATS_H
#define AU_APP_STATS_H

#include "app/emit.h"
#include "app/words.h"
#include "engine/engine.h"

/**
 * Writes the end metadata: first the four that Austin's readers know (duration, sampling, saturation, errors), then
 * those of ours that are not 0: torn, truncated, unreadable, stalls. Returns what au_emit_metadata does.
 */
au_emit_end au_stats_metadata(au_emit *emit, const au_stats *stats, uint64_t stalls);

/** Shows the figures; without samples one line that says so. */
void au_stats_show(const au_console *console, const au_stats *stats, uint64_t stalls);

#endif
