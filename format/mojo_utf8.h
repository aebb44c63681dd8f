/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * UTF-8 as RFC 3629 has it: shortest forms, no surrogates, nothing above U+10FFFF.
 *
 * Inside the room only. No state, any thread.
 */
#ifndef AU_FORMAT_MOJO_UTF8_H
#define AU_FORMAT_MOJO_UTF8_H

#include <stddef.h>
#include <stdint.h>

static inline int au__utf8_valid(const char *text, size_t length)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + length;
    while (at < end) {
        uint8_t lead = *at++;
        if (lead < 0x80) {
            continue;
        }
        /* RFC 3629, section 4: the second byte has a narrower range after some leads. */
        unsigned more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - at) < more || at[0] < low || at[0] > high) {
            return 0;
        }
        for (unsigned i = 1; i < more; i++) {
            if (at[i] < 0x80 || at[i] > 0xbf) {
                return 0;
            }
        }
        at += more;
    }
    return 1;
}

#endif
