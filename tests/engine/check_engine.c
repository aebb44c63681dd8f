/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/engine/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(au_linetable_suite());
    srunner_add_suite(runner, au_text_suite());
    srunner_add_suite(runner, au_layout_suite());
    srunner_add_suite(runner, au_find_suite());
    srunner_add_suite(runner, au_stacks_suite());
    srunner_add_suite(runner, au_moving_suite());
    srunner_add_suite(runner, au_moments_suite());
    srunner_add_suite(runner, au_succession_suite());
    srunner_add_suite(runner, au_threads_suite());
    srunner_add_suite(runner, au_hostile_suite());
    srunner_add_suite(runner, au_recorded_suite());
    srunner_add_suite(runner, au_parts_suite());
    srunner_add_suite(runner, au_standing_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
