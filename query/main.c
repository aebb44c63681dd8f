/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <apr_signal.h>

#include "query/query.h"

int main(int argc, const char *const *argv)
{
    const char *const *env = NULL;
    if (apr_app_initialize(&argc, &argv, &env) != APR_SUCCESS) {
        return AU_ERR_OS;
    }
    /* A reader that goes away is an error of writing, not the end of us. */
#ifdef SIGPIPE
    apr_signal_block(SIGPIPE);
#endif
    int status = au_query_main(argc, argv);
    apr_terminate();
    return status;
}
