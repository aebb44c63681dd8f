/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What real builds of CPython look like (data/layouts.inc): offsets that were computed from their headers.
 */
#ifndef AU_TESTS_ENGINE_LAYOUTS_H
#define AU_TESTS_ENGINE_LAYOUTS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/layout/layout.h"

#define LAYOUT_NONE INT32_MIN

/** How many builds there are. */
int layout_count(void);

/** The label of a build: "3.14.10t-x86_64". Builds with the same offsets share one, their labels parted by a blank. */
const char *layout_label(int build);

/** The build with that label; -1: there is none. */
int layout_find(const char *label);

/** PY_VERSION_HEX. */
uint32_t layout_version(int build);
int layout_free_threaded(int build);

/** Bytes of C's long. */
int layout_long_bytes(int build);

/** An offset, "structure.member"; LAYOUT_NONE when this build has no such member. */
int32_t layout_value(int build, const char *name);

/** Where a word stands in the debug-offsets table of a minor; -1: not there. */
int layout_place(unsigned minor, const char *name);

/** The name of the n-th word or offset that is known of; NULL behind the last. */
const char *layout_name(size_t n);

/** Writes the build's debug-offsets table; returns its size, 0 for a build that has none. */
size_t layout_table(int build, uint8_t table[AU_DEBUG_OFFSETS_MAX]);

#endif
