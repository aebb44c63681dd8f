/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * How a contract case is written: EXPECT leaves the case with a text when something does not hold. A case opens with
 * OPEN; the runner closes what a failing case leaves open.
 */
#ifndef AU_TESTS_CONTRACT_CASES_H
#define AU_TESTS_CONTRACT_CASES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/world.h"

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)
#define EXPECT(condition, text)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            return text " (" #condition ", " __FILE__ ":" TEXT_OF(__LINE__) ")";                                       \
        }                                                                                                              \
    } while (0)

/** The handle of the running case. */
extern au_proc *contract_open;

#define OPEN(w)                                                                                                        \
    do {                                                                                                               \
        au_error *error_ = (w)->sys->ops->open((w)->sys, (w)->pid, AU_WANT_READ, &contract_open);                      \
        if (error_) {                                                                                                  \
            contract_open = NULL;                                                                                      \
            snprintf(contract_text, sizeof contract_text, "open: %s", error_->message);                                \
            au_error_clear(error_);                                                                                    \
            return contract_text;                                                                                      \
        }                                                                                                              \
    } while (0)

extern char contract_text[512];

#define OPS(p) ((p)->ops)

/** Closes what OPEN opened. */
static inline void shut(void)
{
    au_proc *p = contract_open;
    contract_open = NULL;
    if (p) {
        p->ops->close(p);
    }
}

/** Clears an error and says whether there was one. */
static inline int failed(au_error *error)
{
    au_error_clear(error);
    return error != NULL;
}

static inline int is_pattern(const uint8_t *bytes, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != world_byte(at + i)) {
            return 0;
        }
    }
    return 1;
}

#endif
