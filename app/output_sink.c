/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_errno.h>
#include <apr_file_io.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>

#include "app/messages.h"
#include "app/output.h"
#include "platform/platform.h"

typedef struct file_sink {
    au_output_sink sink;
    const char *name; /* NULL: standard output */
    apr_file_t *file; /* NULL: likewise */
    apr_pool_t *pool;
    int regular;       /* a file, and no pipe or device: it can be emptied */
    int created;       /* by us */
    int kept;          /* written by the thread that pushes before the writer closes */
    apr_off_t written; /* of the writer's thread */
} file_sink;

/* Nothing can be found by a relative path when the current folder has been deleted (getcwd(3), ENOENT). */
static int folder_is_gone(const file_sink *sink, apr_status_t status)
{
    const char *root, *rest = sink->name;
    char *folder; /* of a pool that belongs to whoever opens: not to be asked for by the writer's thread */
    return sink->name && !sink->file && APR_STATUS_IS_ENOENT(status) &&
           APR_STATUS_IS_ERELATIVE(apr_filepath_root(&root, &rest, 0, sink->pool)) &&
           APR_STATUS_IS_ENOENT(apr_filepath_get(&folder, 0, sink->pool));
}

/* Then what is missing is not the folder: /proc takes no files, and a link may lead nowhere. */
static int folder_is_there(const file_sink *sink, apr_status_t status)
{
    apr_finfo_t info;
    char folder[4096];
    if (!sink->name || sink->file || !APR_STATUS_IS_ENOENT(status)) {
        return 0;
    }
    size_t length = (size_t)(apr_filepath_name_get(sink->name) - sink->name);
    if (length >= sizeof folder) {
        return 0;
    }
    memcpy(folder, sink->name, length);
    folder[length] = '\0';
    return apr_stat(&info, length ? folder : ".", APR_FINFO_TYPE, sink->pool) == APR_SUCCESS &&
           info.filetype == APR_DIR;
}

/* Some systems deny the right to write to a folder, where others say that it is one. */
static int is_folder(const file_sink *sink, apr_status_t status)
{
    apr_finfo_t info;
    return sink->name && !sink->file && APR_STATUS_IS_EACCES(status) &&
           apr_stat(&info, sink->name, APR_FINFO_TYPE, sink->pool) == APR_SUCCESS && info.filetype == APR_DIR;
}

static au_error *cannot(const char *act, const file_sink *sink, apr_status_t status)
{
    if (status >= APR_OS_START_SYSERR) { /* where those of the system are not its own (apr_errno.h) */
        status = APR_FROM_OS_ERROR(au_os_error_usual(APR_TO_OS_ERROR(status)));
    }
    return au_message_output_failed(&(au_output_failure){.act = act,
                                                         .path = sink->name,
                                                         .status = status,
                                                         .folder_gone = folder_is_gone(sink, status),
                                                         .folder_there = folder_is_there(sink, status),
                                                         .is_folder = is_folder(sink, status),
                                                         .readable = sink->kept && sink->written > 0});
}

static au_error *write_file(au_output_sink *base, const void *bytes, size_t len)
{
    file_sink *sink = (file_sink *)base;
    apr_size_t done = 0;
    apr_status_t status;
    if (sink->file) {
        status = apr_file_write_full(sink->file, bytes, len, &done);
    } else {
        int failed = au_write_all(AU_FD_STDOUT, bytes, len);
        status = failed ? APR_FROM_OS_ERROR(failed) : APR_SUCCESS;
        done = status == APR_SUCCESS ? len : 0;
    }
    sink->written += (apr_off_t)done;
    return status == APR_SUCCESS ? NULL : cannot("write to", sink, status);
}

/* Leaves a file in which nothing of worth was written as it was found: empty, or not there. If it is another one by now
 * that has the name, or somebody else has written to it, it is left alone. */
static void take_back(const file_sink *sink)
{
    apr_finfo_t ours, named;
    if (!sink->regular || sink->sink.occupied ||
        apr_file_info_get(&ours, APR_FINFO_IDENT | APR_FINFO_SIZE, sink->file) != APR_SUCCESS ||
        ours.size > sink->written || apr_file_trunc(sink->file, 0) != APR_SUCCESS) {
        return;
    }
    if (sink->created && apr_stat(&named, sink->name, APR_FINFO_LINK | APR_FINFO_IDENT, sink->pool) == APR_SUCCESS &&
        named.device == ours.device && named.inode == ours.inode) {
        (void)apr_file_remove(sink->name, sink->pool);
    }
}

static au_error *close_file(au_output_sink *base)
{
    file_sink *sink = (file_sink *)base;
    if (!sink->kept) {
        take_back(sink);
    }
    apr_status_t status = sink->file ? apr_file_close(sink->file) : APR_SUCCESS;
    return status == APR_SUCCESS ? NULL : cannot("finish", sink, status);
}

au_error *au_output_sink_keep(au_output_sink *base)
{
    file_sink *sink = (file_sink *)base;
    apr_status_t status = sink->sink.occupied ? apr_file_trunc(sink->file, 0) : APR_SUCCESS;
    if (status != APR_SUCCESS) {
        return cannot("empty", sink, status);
    }
    sink->kept = 1;
    return NULL;
}

/* Tells whether the file is ours. The last try is for a symbolic link to a file that is not there yet, and for one that
 * somebody has made between the first two. */
static apr_status_t open_file(file_sink *sink)
{
    const apr_int32_t how = APR_FOPEN_WRITE | APR_FOPEN_BINARY, make = APR_FOPEN_CREATE;
    apr_status_t status = apr_file_open(&sink->file, sink->name, how, APR_FPROT_OS_DEFAULT, sink->pool);
    if (APR_STATUS_IS_ENOENT(status)) {
        status = apr_file_open(&sink->file, sink->name, how | make | APR_FOPEN_EXCL, APR_FPROT_OS_DEFAULT, sink->pool);
        sink->created = status == APR_SUCCESS;
        if (APR_STATUS_IS_EEXIST(status)) {
            status = apr_file_open(&sink->file, sink->name, how | make, APR_FPROT_OS_DEFAULT, sink->pool);
        }
    }
    return status;
}

au_error *au_output_sink_open(const char *path, apr_pool_t *pool, au_output_sink **out)
{
    file_sink *sink = apr_pcalloc(pool, sizeof *sink);
    sink->sink.write = write_file;
    sink->sink.close = close_file;
    sink->name = path;
    sink->pool = pool;
    if (path) {
        apr_finfo_t info;
        apr_status_t status = open_file(sink);
        if (status != APR_SUCCESS) {
            return cannot("open", sink, status);
        }
        sink->regular = apr_file_info_get(&info, APR_FINFO_TYPE | APR_FINFO_SIZE, sink->file) == APR_SUCCESS &&
                        info.filetype == APR_REG;
        sink->sink.occupied = sink->regular && info.size > 0;
    } else {
        au_set_binary(AU_FD_STDOUT);
    }
    *out = &sink->sink;
    return NULL;
}
