/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The Check cases of this program, one function a file.
 */
#ifndef AU_TESTS_CONTRACT_SUITES_H
#define AU_TESTS_CONTRACT_SUITES_H

#include <check.h>

TCase *tcase_contract(void);
TCase *tcase_fakes(void);
TCase *tcase_linux(void);
TCase *tcase_launch(void);

#endif
