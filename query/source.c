/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <errno.h>
#include <string.h>

#include "format/mojo_input.h"
#include "query/query.h"

enum { PIECE = 64 * 1024 };

typedef struct target {
    const au_query_command *command;
    void *state;
    au_query_output *out;
} target;

static au_error *hand_on(void *context, const void *bytes, size_t len)
{
    target *to = context;
    au_error *error = to->command->feed(to->state, bytes, len);
    if (!error && to->out->error) {
        error = au_query_flush(to->out); /* nobody reads any more: no use to go on */
    }
    return error;
}

static const char *remedy(apr_status_t status)
{
    if (APR_STATUS_IS_ENOENT(status)) {
        return "Give the file that austin -o wrote, or - for a pipe.";
    }
    if (APR_STATUS_IS_EACCES(status)) {
        return "Ask its owner for the right to read it, or read it as root (sudo).";
    }
    if (status == EISDIR) {
        return "Give a file, not a directory.";
    }
    return "Copy the file to another disk and read the copy, or record it again.";
}

static au_error *io_error(const char *what, const char *file, apr_status_t status)
{
    char why[120];
    au_error *error = au_error_create(AU_ERR_IO, (int)status, "cannot %s %s", what, file);
    return au_error_hint(au_error_cause(error, "%s", apr_strerror(status, why, sizeof why)), "%s", remedy(status));
}

static au_error *open_file(const char *name, apr_pool_t *pool, apr_file_t **file)
{
    if (strcmp(name, "-") == 0) {
        apr_status_t status = apr_file_open_stdin(file, pool);
        return status == APR_SUCCESS ? NULL : io_error("read", "standard input", status);
    }
    apr_status_t status = apr_file_open(file, name, APR_FOPEN_READ | APR_FOPEN_BINARY, APR_FPROT_OS_DEFAULT, pool);
    return status == APR_SUCCESS ? NULL : io_error("open", name, status);
}

static au_error *pump(apr_file_t *file, const char *name, au_mojo_input *input, char *piece)
{
    for (;;) {
        /* A pipe gives what it has, so that what follows a live run is not held up. */
        apr_size_t len = PIECE;
        apr_status_t status = apr_file_read(file, piece, &len);
        if (APR_STATUS_IS_EOF(status)) {
            return NULL;
        }
        if (status != APR_SUCCESS && !APR_STATUS_IS_EINTR(status)) {
            return io_error("read", name, status);
        }
        au_error *error = status == APR_SUCCESS ? au_mojo_input_push(input, piece, len) : NULL;
        if (error) {
            return error;
        }
    }
}

au_error *au_query_run(const au_query_command *command, const au_query_options *options, au_query_output *out,
                       apr_pool_t *pool, au_query_end *end)
{
    memset(end, 0, sizeof *end);
    const char *name = strcmp(options->file, "-") == 0 ? "standard input" : options->file;
    apr_file_t *file;
    au_error *error = open_file(options->file, pool, &file);
    if (error) {
        return error;
    }
    void *state = command->open(options, out, pool);
    if (!state) {
        return au_error_memory();
    }
    target to = {.command = command, .state = state, .out = out};
    au_mojo_input *input = au_mojo_input_create(hand_on, &to);
    error = input ? pump(file, name, input, apr_palloc(pool, PIECE)) : au_error_memory();
    if (!error) {
        error = au_mojo_input_finish(input, &end->unfinished);
    }
    if (!error) {
        error = command->finish(state, end);
    }
    au_mojo_input_destroy(input);
    command->close(state);
    au_error *write_error = au_query_flush(out);
    if (write_error) {
        au_error_clear(error);
        error = write_error;
    }
    return error;
}

void au_query_warn(au_query_warnings *warnings, uint64_t offset, au_mojo_rule rule)
{
    if (!warnings->count++) {
        warnings->first_offset = offset;
        warnings->first_rule = rule;
    }
}
