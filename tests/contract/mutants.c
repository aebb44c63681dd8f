/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/mutants.h"

#include "tests/contract/mutants_list.h"

/* The broken table replaces the handle's own, so that `open` is the only member that must know. */
au_proc_ops mutant_table;

au_error *mutant_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_error *error = whole()->open(sys, pid, want, out);
    if (!error) {
        (*out)->ops = &mutant_table;
    }
    return error;
}

au_sys *mutant_sys(const mutant *m)
{
    mutant_table = *whole();
    mutant_table.open = mutant_open;
    m->breaks(&mutant_table);
    return mutant_port_sys();
}

const mutant contract_mutants[] = {
#define AU_X(member, name, caps) {#name, member, caps, mutant_##name},
    CONTRACT_MUTANTS(AU_X)
#undef AU_X
};

const size_t contract_n_mutants = sizeof contract_mutants / sizeof contract_mutants[0];
