/* SPDX-License-Identifier: Apache-2.0 */
/** @file The suites of this program, one a file. */
#ifndef AU_TESTS_FORMAT_SUITES_H
#define AU_TESTS_FORMAT_SUITES_H

#include <check.h>

Suite *vectors_suite(void);
Suite *writer_suite(void);
Suite *reader_suite(void);
Suite *checker_suite(void);
Suite *random_suite(void);
Suite *input_suite(void);

#endif
