/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <stdio.h>

#include "app/messages.h"
#include "app/options.h"
#include "app/run.h"
#include "app/words.h"
#include "base/version.h"
#include "platform/platform.h"

static int fail(au_sign sign, au_error *error)
{
    au_console console;
    au_console_init(&console, AU_FD_STDERR);
    int status = (int)error->code;
    if (error->code == AU_ERR_USAGE) {
        au_message_show_usage(&console, error);
    } else {
        au_message_show(&console, sign, error);
    }
    au_error_clear(error);
    return status;
}

/* Shows one of the texts on standard output. */
static int show(au_action action)
{
    au_console console;
    au_buf out = {0};
    au_console_init(&console, AU_FD_STDOUT);
    int no_memory = action == AU_ACTION_HELP    ? au_options_help(&out, console.colour)
                    : action == AU_ACTION_USAGE ? au_options_usage(&out)
                                                : au_words_append(&out, "austin %s\n", AU_VERSION);
    int os_code = no_memory ? 0 : au_write_all(AU_FD_STDOUT, out.data, out.len);
    au_buf_deinit(&out);
    if (no_memory || os_code) {
        return fail(AU_SIGN_SKULL, no_memory ? au_error_memory() : au_message_no_text(os_code));
    }
    return 0;
}

int main(int argc, const char *const *argv)
{
    apr_pool_t *pool;
    au_standard_descriptors_init();
    if (au_arguments_init(&argc, &argv) || apr_initialize() != APR_SUCCESS ||
        apr_pool_create(&pool, NULL) != APR_SUCCESS) {
        static const char words[] = "austin: out of memory; end other programs, or raise the limit of memory\n";
        (void)au_write_all(AU_FD_STDERR, words, sizeof words - 1);
        return AU_ERR_MEMORY;
    }
    au_options options;
    au_error *error = au_options_parse(argc, argv, pool, &options);
    if (error) {
        return fail(error->code == AU_ERR_COMMAND ? AU_SIGN_GLASSES : AU_SIGN_SKULL, error);
    }
    if (options.action != AU_ACTION_SAMPLE) {
        return show(options.action);
    }
    /* No apr_terminate: it would take the pool from a writer that hangs in a write. The system takes it all back. */
    return au_run(&options, pool);
}
