/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * From CPython's string kinds to what MOJO can carry: valid UTF-8 without NUL.
 *
 * A lone surrogate or a NUL becomes U+FFFD followed by its four hexadecimal digits, U+FFFD itself becomes U+FFFD and
 * "FFFD", so that no two names fall together; every other character is unchanged.
 */
#ifndef AU_ENGINE_TEXT_H
#define AU_ENGINE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { AU_TEXT_MAX = 16 * 1024 /**< bytes of a name; a longer one is cut at a character and ends in U+2026 */ };

/**
 * Appends `count` characters of `width` bytes each (1: Latin-1 or ASCII, 2: UCS-2, 4: UCS-4, little-endian) as UTF-8,
 * at most AU_TEXT_MAX bytes. With `pairs`, two surrogates in the right order are one character (UTF-16). `more` says
 * that the string goes on behind `count`. 0 on success, -1 when there is no memory, -2 when a character is none (above
 * U+10FFFF): then nothing was appended.
 */
int au_text_append(au_buf *out, const uint8_t *chars, size_t count, unsigned width, int pairs, int more);

#endif
