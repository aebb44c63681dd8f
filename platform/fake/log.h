/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The log of a run: what an engine asked through proc_ops and what it was answered, in order.
 *
 * FORMAT (all numbers LEB128, low 7 bits first; signed ones zigzag; text and bytes: length, then content; text carries
 * a NUL that its length counts, length 0 is "no text")
 *
 *   "AULOG 1\n"   magic and version
 *   text          provenance: lines "key=value" (version, OS, CPU, command)
 *   number        capability bits of the recorded table
 *   records to the end:
 *     number      kind (au_log_kind)
 *     bytes       content, so that an unknown kind can be passed over:
 *                   the handle's number (0 for members of the system), the request, the answer
 *
 * A handle's number is 1 for the first `open`, then 2, and so on. Bytes that equal what the log last told of the same
 * addresses are not stored again (flag 1 in place of 0 before them), so that a log of many passes stays small and still
 * tells every change. Not encrypted, not compressed: it holds the tracee's memory, so record nothing secret.
 */
#ifndef AU_PLATFORM_FAKE_LOG_H
#define AU_PLATFORM_FAKE_LOG_H

#include "base/buf.h"
#include "base/error.h"

typedef enum au_log_kind {
    AU_LOG_OPEN = 1,
    AU_LOG_CLOSE,
    AU_LOG_STATUS,
    AU_LOG_READ,
    AU_LOG_READ_MANY,
    AU_LOG_REGIONS,
    AU_LOG_MODULES,
    AU_LOG_MODULE_READ,
    AU_LOG_THREADS,
    AU_LOG_THREAD_STATES,
    AU_LOG_THREAD_ID_OF,
    AU_LOG_THREAD_NAME,
    AU_LOG_USAGE,
    AU_LOG_PROCESSES,
    AU_LOG_NOW,
    AU_LOG_SLEEP_UNTIL,
    AU_LOG_EXPLAIN
} au_log_kind;

/** Whole files. */
au_error *au_log_save(const au_buf *log, const char *path);
au_error *au_log_load(au_buf *log, const char *path);

#endif
