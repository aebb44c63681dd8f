/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A recorder: wraps any system and keeps the ordered log of requests and answers. Members for native work are not
 * recorded; their capability bits are off.
 */
#ifndef AU_PLATFORM_FAKE_RECORDER_H
#define AU_PLATFORM_FAKE_RECORDER_H

#include "engine/proc_ops.h"
#include "platform/fake/log.h"

typedef struct au_recorder au_recorder;

/** `provenance`: lines "key=value"; copied. `inner` must outlive the recorder. NULL without memory. */
au_recorder *au_recorder_create(au_sys *inner, const char *provenance);

/** Close all handles first. */
void au_recorder_destroy(au_recorder *recorder);

au_sys *au_recorder_sys(au_recorder *recorder);

/** The log so far; the recorder's. */
const au_buf *au_recorder_log(const au_recorder *recorder);

/** Whether memory ran out while recording: the log is then cut. */
int au_recorder_failed(const au_recorder *recorder);

#endif
