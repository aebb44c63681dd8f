/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/format/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(vectors_suite());
    srunner_add_suite(runner, writer_suite());
    srunner_add_suite(runner, reader_suite());
    srunner_add_suite(runner, checker_suite());
    srunner_add_suite(runner, random_suite());
    srunner_add_suite(runner, input_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
