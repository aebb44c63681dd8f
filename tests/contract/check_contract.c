/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/contract/host.h"
#include "tests/contract/suites.h"

int main(int argc, char **argv)
{
    host_be_tracee(argc, argv);
    Suite *suite = suite_create("contract");
    suite_add_tcase(suite, tcase_contract());
    suite_add_tcase(suite, tcase_fakes());
    host_suite(suite);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
