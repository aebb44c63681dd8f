/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Who has been seen calling whom.
 *
 * Where a program moves faster than two looks can be had, one copy alone has to tell its innermost frames (calls.c,
 * au__chain_resolve). A cache line of the tracee that arrives late can bring two frames together in it that never met,
 * each of them sound by itself. Two looks that agree do not have that: so a call is believed in one copy only if it has
 * been seen in looks that agreed. A program makes the same calls again and again, so what is not known is soon learnt.
 */
#include "engine/stack.h"

enum { WAYS = 4, SETS = AU_LINKS / WAYS, UNHELD = 1 };

static uint32_t *set_of(au_links *links, au_addr caller, au_addr callee, uint32_t *tag)
{
    uint64_t hash = (caller * UINT64_C(0x9e3779b97f4a7c15)) ^ callee;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    *tag = (uint32_t)(hash >> 32 | 2) & ~(uint32_t)UNHELD; /* 0 is an empty place */
    return links->tags + (hash >> 8) % SETS * WAYS;
}

au_link au__links_find(au_links *links, au_addr caller, au_addr callee)
{
    uint32_t tag;
    const uint32_t *set = set_of(links, caller, callee, &tag);
    for (int i = 0; i < WAYS; i++) {
        if ((set[i] & ~(uint32_t)UNHELD) == tag) {
            return set[i] & UNHELD ? AU_LINK_UNHELD : AU_LINK_HELD;
        }
    }
    return AU_LINK_UNKNOWN;
}

void au__links_enter(au_links *links, au_addr caller, au_addr callee, int held)
{
    uint32_t tag;
    uint32_t *set = set_of(links, caller, callee, &tag);
    memmove(set + 1, set, (WAYS - 1) * sizeof *set); /* the oldest goes */
    set[0] = held ? tag : tag | UNHELD;
}
