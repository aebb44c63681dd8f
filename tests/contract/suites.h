/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The Check cases of this program that every system has, one function a file.
 */
#ifndef AU_TESTS_CONTRACT_SUITES_H
#define AU_TESTS_CONTRACT_SUITES_H

#include <check.h>

TCase *tcase_contract(void);
TCase *tcase_fakes(void);

#endif
