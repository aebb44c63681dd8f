/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that the older tools of Austin's users read, one sample a line. As in austin-python's mojo2austin, kernel
 * frames and the frames of the running task are not part of it.
 */
#include <apr_strings.h>

#include "format/mojo_reader.h"
#include "query/query.h"

typedef struct collapsed {
    au_query_output *out;
    au_mojo_reader *reader;
    au_query_warnings warnings;
} collapsed;

static au_error *on_metadata(void *context, uint64_t offset, const char *key, const char *value)
{
    collapsed *c = context;
    (void)offset;
    au_query_print(c->out, "# ");
    au_query_print_name(c->out, key);
    au_query_print(c->out, ": ");
    au_query_print_name(c->out, value);
    au_query_print(c->out, "\n");
    return NULL;
}

static au_error *on_sample(void *context, const au_mojo_sample *sample)
{
    collapsed *c = context;
    au_query_print_text(c->out, "P");
    au_query_print_number(c->out, sample->pid);
    au_query_print_text(c->out, ";T");
    au_query_print_number(c->out, sample->iid);
    au_query_print_text(c->out, ":");
    au_query_print_name(c->out, sample->thread->text);
    for (size_t i = 0; i < sample->frame_count; i++) {
        const au_mojo_sample_frame *frame = sample->frames[i];
        if (frame->invalid) {
            au_query_print_text(c->out, ";:INVALID:");
            continue;
        }
        au_query_print_text(c->out, ";");
        au_query_print_name(c->out, frame->file->text);
        au_query_print_text(c->out, ":");
        au_query_print_name(c->out, frame->scope->text);
        au_query_print_text(c->out, ":");
        au_query_print_number(c->out, frame->line);
    }
    if (sample->gc) {
        au_query_print_text(c->out, ";:GC:");
    }
    au_query_print_text(c->out, " ");
    if (sample->has_time && sample->has_memory) {
        au_query_print_number(c->out, sample->time_us);
        au_query_print_text(c->out, sample->idle ? ",1," : ",0,");
        au_query_print_number(c->out, sample->memory_bytes);
    } else {
        au_query_print_number(c->out, sample->has_memory ? sample->memory_bytes : sample->time_us);
    }
    au_query_print_text(c->out, "\n");
    return NULL;
}

static void on_warning(void *context, uint64_t offset, au_mojo_rule rule)
{
    au_query_warn(&((collapsed *)context)->warnings, offset, rule);
}

static void *open_collapsed(const au_query_options *options, au_query_output *out, apr_pool_t *pool)
{
    (void)options;
    collapsed *c = apr_pcalloc(pool, sizeof *c);
    c->out = out;
    au_mojo_handlers handlers = {.context = c, .sample = on_sample, .metadata = on_metadata, .warning = on_warning};
    c->reader = au_mojo_reader_create(&handlers);
    return c->reader ? c : NULL;
}

static au_error *feed_collapsed(void *state, const void *bytes, size_t len)
{
    return au_mojo_reader_feed(((collapsed *)state)->reader, bytes, len);
}

static au_error *finish_collapsed(void *state, au_query_end *end)
{
    collapsed *c = state;
    int unfinished;
    au_error *error = au_mojo_reader_finish(c->reader, 0, &unfinished);
    end->unfinished |= unfinished;
    end->warnings = c->warnings;
    return error;
}

static void close_collapsed(void *state)
{
    au_mojo_reader_destroy(((collapsed *)state)->reader);
}

const au_query_command au_query_collapsed = {
    .name = "collapsed",
    .synopsis = "collapsed [FILE]",
    .help = "one line a sample, for flame graphs",
    .open = open_collapsed,
    .feed = feed_collapsed,
    .finish = finish_collapsed,
    .close = close_collapsed,
};
