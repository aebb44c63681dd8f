/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a stream as they lie in it, one a line: byte offset, name, and each field with its name. */
#include <apr_strings.h>
#include <inttypes.h>

#include "format/mojo_event.h"
#include "query/query.h"

typedef struct events {
    au_query_output *out;
    au_mojo_parser parser;
} events;

static void *open_events(const au_query_options *options, au_query_output *out, apr_pool_t *pool)
{
    (void)options;
    events *e = apr_pcalloc(pool, sizeof *e);
    e->out = out;
    au_mojo_parser_init(&e->parser);
    return e;
}

static void print_event(events *e, const au_mojo_event *event)
{
    au_query_print(e->out, "%" PRIu64 "\t%s", event->offset, au_mojo_event_name(event->id));
    for (unsigned i = 0; i < event->count; i++) {
        const au_mojo_field *field = &event->fields[i];
        au_query_print(e->out, "\t%s=", au_mojo_field_name(event->id, e->parser.version, i));
        if (field->kind == AU_MOJO_FIELD_STRING) {
            au_query_print_name(e->out, field->text);
        } else if (field->overflow) {
            au_query_print(e->out, "%s(beyond 64 bits)", field->negative ? "-" : "");
        } else {
            au_query_print(e->out, "%s%" PRIu64, field->negative ? "-" : "", field->magnitude);
        }
    }
    au_query_print(e->out, "\n");
}

static au_error *broken(au_mojo_rule rule, uint64_t offset)
{
    return au_error_cause(au_error_create(AU_ERR_IO, 0, "the MOJO stream cannot be read on at byte %" PRIu64 " (%s)",
                                          offset, au_mojo_rule_name(rule)),
                          "%s", au_mojo_rule_text(rule));
}

static au_error *feed_events(void *state, const void *bytes, size_t len)
{
    events *e = state;
    au_mojo_parser_feed(&e->parser, bytes, len);
    for (;;) {
        const au_mojo_event *event;
        switch (au_mojo_parser_next(&e->parser, &event)) {
        case AU_MOJO_NEXT_MORE:
            return NULL;
        case AU_MOJO_NEXT_HEADER:
            au_query_print(e->out, "0\tMOJO\tversion=%" PRIu64 "\n", e->parser.version);
            break;
        case AU_MOJO_NEXT_EVENT:
            print_event(e, event);
            break;
        default:
            return e->parser.out_of_memory ? au_error_memory() : broken(e->parser.rule, e->parser.rule_offset);
        }
    }
}

static au_error *finish_events(void *state, au_query_end *end)
{
    events *e = state;
    end->unfinished |= au_mojo_parser_finish(&e->parser) != AU_MOJO_RULE_NONE;
    return NULL;
}

static void close_events(void *state)
{
    au_mojo_parser_deinit(&((events *)state)->parser);
}

const au_query_command au_query_events = {
    .name = "events",
    .synopsis = "events [FILE]",
    .help = "every event: byte offset, name, fields",
    .open = open_events,
    .feed = feed_events,
    .finish = finish_events,
    .close = close_events,
};
