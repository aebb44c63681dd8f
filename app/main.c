/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <stdio.h>

#include "app/messages.h"
#include "app/options.h"
#include "app/run.h"
#include "app/words.h"
#include "base/version.h"
#include "platform/platform.h"

/* Shows one of the texts on standard output. */
static int show(au_action action)
{
    au_console console;
    au_buf out = {0};
    au_console_init(&console, AU_FD_STDOUT);
    int failed = action == AU_ACTION_HELP    ? au_options_help(&out, console.colour)
                 : action == AU_ACTION_USAGE ? au_options_usage(&out)
                                             : au_words_append(&out, "austin %s\n", AU_VERSION);
    if (!failed && au_write_all(AU_FD_STDOUT, out.data, out.len)) {
        failed = AU_ERR_IO;
    }
    au_buf_deinit(&out);
    return failed < 0 ? AU_ERR_MEMORY : failed;
}

static int fail_options(au_error *error)
{
    au_console console;
    au_console_init(&console, AU_FD_STDERR);
    int status = (int)error->code;
    if (error->code == AU_ERR_COMMAND) {
        au_message_show(&console, AU_SIGN_GLASSES, error);
    } else {
        au_message_show_usage(&console, error);
    }
    au_error_clear(error);
    return status;
}

int main(int argc, const char *const *argv)
{
    apr_pool_t *pool;
    au_standard_descriptors_init();
    if (apr_app_initialize(&argc, &argv, NULL) != APR_SUCCESS || apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        static const char words[] = "austin: out of memory; raise its limit (ulimit -v), or end other programs\n";
        (void)au_write_all(AU_FD_STDERR, words, sizeof words - 1);
        return AU_ERR_MEMORY;
    }
    au_options options;
    au_error *error = au_options_parse(argc, argv, pool, &options);
    if (error) {
        return fail_options(error);
    }
    if (options.action != AU_ACTION_SAMPLE) {
        return show(options.action);
    }
    /* No apr_terminate: it would take the pool from a writer that hangs in a write. The system takes it all back. */
    return au_run(&options, pool);
}
