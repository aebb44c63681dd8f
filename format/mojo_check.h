/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The strict check of MOJO version 4: every rule of docs/format.md that a stream breaks, each with its byte offset.
 * What a writer of today may not send is a finding here, also where the reader would bear it.
 *
 * The check goes on behind what it can pass over; behind an event that is not known, an endless number or a wrong
 * header nothing can be told any more, and it ends there. Fed in pieces of any size. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_CHECK_H
#define AU_FORMAT_MOJO_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/mojo_rules.h"

typedef struct au_mojo_finding {
    uint64_t offset;
    au_mojo_rule rule;
    int warning; /**< not a violation: the stream conforms in spite of it */
} au_mojo_finding;

typedef struct au_mojo_checker au_mojo_checker;

/**
 * `found` gets the findings in the order of their offsets; those of a sample when it is over.
 *
 * With `unfinished` the stream is first cut after its last whole sample: a last sample that lacks a metric or is cut,
 * and an event that is cut, are left out, and what only they break is no finding. NULL when there is no memory.
 */
au_mojo_checker *au_mojo_checker_create(int unfinished, void (*found)(void *context, const au_mojo_finding *finding),
                                        void *context);
void au_mojo_checker_destroy(au_mojo_checker *checker);

/** The next bytes. The only error is the lack of memory. */
AU_MUST_USE au_error *au_mojo_checker_feed(au_mojo_checker *checker, const void *bytes, size_t len);

/** The input is over. `*violations` and `*warnings` are the counts of findings. */
AU_MUST_USE au_error *au_mojo_checker_finish(au_mojo_checker *checker, uint64_t *violations, uint64_t *warnings);

/** True for the rules whose breach is a warning only. */
int au_mojo_rule_is_warning(au_mojo_rule rule);

#endif
