/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <stdlib.h>

#include "tests/app/suites.h"

int main(void)
{
    if (apr_initialize() != APR_SUCCESS) {
        return EXIT_FAILURE;
    }
    SRunner *runner = srunner_create(au_options_suite());
    srunner_add_suite(runner, au_texts_suite());
    srunner_add_suite(runner, au_emit_suite());
    srunner_add_suite(runner, au_output_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
