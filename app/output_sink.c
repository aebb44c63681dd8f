/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_errno.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include <errno.h>

#include "app/output.h"
#include "platform/platform.h"

typedef struct file_sink {
    au_output_sink sink;
    const char *name; /* for messages */
    apr_file_t *file; /* NULL: standard output */
} file_sink;

/* A full disk too, for this user. Not every system knows it. */
static int is_over_quota(apr_status_t status)
{
#ifdef EDQUOT
    return status == EDQUOT;
#else
    (void)status;
    return 0;
#endif
}

static au_error *cannot(const char *what, const file_sink *sink, apr_status_t status)
{
    char text[128];
    au_error *error = au_error_create(AU_ERR_IO, (int)APR_TO_OS_ERROR(status), "cannot %s %s", what, sink->name);
    error = au_error_cause(error, "%s", apr_strerror(status, text, sizeof text));
    if (status == EFBIG) {
        error = au_error_hint(error, "raise the limit of file sizes (ulimit -f) or choose another file system; what is "
                                     "there can be read up to its last whole sample");
    } else if (APR_STATUS_IS_ENOSPC(status) || is_over_quota(status)) {
        error = au_error_hint(error, "make room or choose another file; what is there can be read up to its last whole "
                                     "sample");
    } else if (APR_STATUS_IS_EPIPE(status)) {
        error = au_error_hint(error, "the program that was reading the samples has ended");
    } else if (APR_STATUS_IS_EACCES(status)) {
        error = au_error_hint(error, "choose a file in a folder that you may write to");
    } else if (APR_STATUS_IS_ENOENT(status) || APR_STATUS_IS_ENOTDIR(status)) {
        error = au_error_hint(error, "create the folder first");
    }
    return error;
}

static au_error *write_file(au_output_sink *base, const void *bytes, size_t len)
{
    file_sink *sink = (file_sink *)base;
    apr_status_t status = sink->file ? apr_file_write_full(sink->file, bytes, len, NULL)
                                     : (apr_status_t)au_write_all(AU_FD_STDOUT, bytes, len);
    return status == APR_SUCCESS ? NULL : cannot("write to", sink, status);
}

static au_error *close_file(au_output_sink *base)
{
    file_sink *sink = (file_sink *)base;
    apr_status_t status = sink->file ? apr_file_close(sink->file) : APR_SUCCESS;
    return status == APR_SUCCESS ? NULL : cannot("finish", sink, status);
}

au_error *au_output_sink_open(const char *path, apr_pool_t *pool, au_output_sink **out)
{
    file_sink *sink = apr_pcalloc(pool, sizeof *sink);
    sink->sink.write = write_file;
    sink->sink.close = close_file;
    sink->name = path ? path : "standard output";
    if (path) {
        apr_status_t status =
            apr_file_open(&sink->file, path, APR_FOPEN_WRITE | APR_FOPEN_CREATE | APR_FOPEN_TRUNCATE | APR_FOPEN_BINARY,
                          APR_FPROT_OS_DEFAULT, pool);
        if (status != APR_SUCCESS) {
            return cannot("open", sink, status);
        }
    } else {
        au_set_binary(AU_FD_STDOUT);
    }
    *out = &sink->sink;
    return NULL;
}
