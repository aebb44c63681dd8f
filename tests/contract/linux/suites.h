/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AU_TESTS_CONTRACT_LINUX_SUITES_H
#define AU_TESTS_CONTRACT_LINUX_SUITES_H

#include <check.h>

TCase *tcase_linux(void);
TCase *tcase_launch(void);

#endif
