/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The suites of the app's test program; one file each.
 */
#ifndef AU_TESTS_APP_SUITES_H
#define AU_TESTS_APP_SUITES_H

#include <check.h>

Suite *au_options_suite(void);
Suite *au_texts_suite(void);
Suite *au_emit_suite(void);
Suite *au_output_suite(void);

#endif
