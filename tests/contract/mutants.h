/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Broken copies of the table of this system, each with the member that it breaks: the suite's cases of that member must
 * fail.
 */
#ifndef AU_TESTS_CONTRACT_MUTANTS_H
#define AU_TESTS_CONTRACT_MUTANTS_H

#include "engine/proc_ops.h"

typedef struct mutant {
    const char *name;
    const char *member; /**< whose cases must notice */
    uint64_t caps;      /**< of the port, without which they cannot */
    void (*breaks)(au_proc_ops *table);
} mutant;

extern const mutant contract_mutants[];
extern const size_t contract_n_mutants;

/** A system that serves the mutant. One at a time. */
au_sys *mutant_sys(const mutant *m);

#endif
