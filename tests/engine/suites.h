/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The suites of the engine's test program; one file each. Run from the tree's root: data is in tests/engine/data.
 */
#ifndef AU_TESTS_ENGINE_SUITES_H
#define AU_TESTS_ENGINE_SUITES_H

#include <check.h>

Suite *au_linetable_suite(void);
Suite *au_text_suite(void);
Suite *au_layout_suite(void);
Suite *au_find_suite(void);
Suite *au_stacks_suite(void);
Suite *au_moving_suite(void);
Suite *au_moments_suite(void);
Suite *au_succession_suite(void);
Suite *au_threads_suite(void);
Suite *au_hostile_suite(void);
Suite *au_recorded_suite(void);
Suite *au_parts_suite(void);
Suite *au_standing_suite(void);

/** Part of the find suite. */
TCase *au_exec_case(void);

/** Part of the threads suite. */
TCase *au_cpu_case(void);

/** Part of the hostile suite. */
TCase *au_mutations_case(void);

#endif
