/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mojo_event.h"

#include <string.h>

#include "format/mojo_varint.h"

const char *au_mojo_rule_name(au_mojo_rule rule)
{
    static const char *const names[] = {
#define AU_X(name, id, text) id,
        AU_MOJO_RULES(AU_X)
#undef AU_X
    };
    return (unsigned)rule < AU_MOJO_RULE_COUNT ? names[rule] : "unknown";
}

const char *au_mojo_rule_text(au_mojo_rule rule)
{
    static const char *const texts[] = {
#define AU_X(name, id, text) text,
        AU_MOJO_RULES(AU_X)
#undef AU_X
    };
    return (unsigned)rule < AU_MOJO_RULE_COUNT ? texts[rule] : "";
}

/* Layouts: 's' is a string, 'k' a key, 'n' another number. Field names go with them, separated by blanks. */
typedef struct event_shape {
    const char *name;
    const char *layout;
    const char *fields;
    uint8_t since; /* the version that introduced the event */
} event_shape;

static const event_shape shapes[] = {
    [AU_MOJO_METADATA] = {"Metadata", "ss", "key value", 1},
    [AU_MOJO_STACK] = {"Stack", "nns", "pid iid thread", 1},
    [AU_MOJO_FRAME] = {"Frame", "kkknnnn", "key filename_key scope_key line line_end column column_end", 1},
    [AU_MOJO_INVALID_FRAME] = {"Invalid frame", "", "", 1},
    [AU_MOJO_FRAME_REF] = {"Frame reference", "k", "frame_key", 1},
    [AU_MOJO_KERNEL_FRAME] = {"Kernel frame", "s", "symbol", 1},
    [AU_MOJO_GC] = {"Garbage collector", "", "", 1},
    [AU_MOJO_IDLE] = {"Idle stack", "", "", 1},
    [AU_MOJO_TIME] = {"Time metric", "n", "value", 1},
    [AU_MOJO_MEMORY] = {"Memory metric", "n", "value", 1},
    [AU_MOJO_STRING] = {"String", "ks", "key value", 1},
    [AU_MOJO_STRING_REF] = {"String reference", "k", "string_key", 1},
    [AU_MOJO_STACK_REPEAT] = {"Stack repeat", "", "", 4},
    [AU_MOJO_TASK_STACK] = {"Task stack", "nkn", "task_id name_key frame_count", 4},
    [AU_MOJO_TASK_WAITER] = {"Task waiter", "nn", "task_id waiter_id", 4},
    [AU_MOJO_RUNNING_TASK] = {"Running task", "n", "task_id", 4},
};

enum { SHAPE_COUNT = sizeof shapes / sizeof shapes[0] };

/* Version 1 has neither interpreter id nor end line and columns, version 2 no interpreter id. */
static const event_shape stack_before_3 = {"Stack", "ns", "pid thread", 1};
static const event_shape frame_before_2 = {"Frame", "kkkn", "key filename_key scope_key line", 1};

static const event_shape *shape_of(unsigned id, uint64_t version)
{
    if (id == AU_MOJO_STACK && version < 3) {
        return &stack_before_3;
    }
    if (id == AU_MOJO_FRAME && version < 2) {
        return &frame_before_2;
    }
    return id > 0 && id < SHAPE_COUNT && shapes[id].since <= version ? &shapes[id] : NULL;
}

const char *au_mojo_event_name(unsigned id)
{
    return id > 0 && id < SHAPE_COUNT ? shapes[id].name : "unknown";
}

const char *au_mojo_field_name(unsigned id, uint64_t version, unsigned field)
{
    static _Thread_local char name[24];
    const event_shape *shape = shape_of(id, version);
    const char *at = shape ? shape->fields : "";
    for (; field && *at; at++) {
        field -= *at == ' ';
    }
    size_t length = strcspn(at, " ");
    if (length >= sizeof name) {
        length = sizeof name - 1;
    }
    memcpy(name, at, length);
    name[length] = 0;
    return name;
}

int au_mojo_field_value(const au_mojo_field *field, int64_t *value)
{
    if (field->magnitude <= INT64_MAX) {
        *value = field->negative ? -(int64_t)field->magnitude : (int64_t)field->magnitude;
        return 1;
    }
    if (!field->overflow && field->negative && field->magnitude == UINT64_C(1) << 63) {
        *value = INT64_MIN;
        return 1;
    }
    return 0;
}

void au_mojo_parser_init(au_mojo_parser *parser)
{
    memset(parser, 0, sizeof *parser);
}

void au_mojo_parser_deinit(au_mojo_parser *parser)
{
    au_buf_deinit(&parser->pending);
    au_mojo_parser_init(parser);
}

void au_mojo_parser_feed(au_mojo_parser *parser, const void *bytes, size_t len)
{
    au_buf *pending = &parser->pending;
    if (pending->len == 0) {
        parser->fed = bytes;
        parser->fed_len = len;
        parser->at = 0;
        return;
    }
    if (parser->at) {
        memmove(pending->data, pending->data + parser->at, pending->len - parser->at);
        pending->len -= parser->at;
        parser->at = 0;
    }
    if (au_buf_append(pending, bytes, len)) {
        parser->out_of_memory = 1;
    }
}

static au_mojo_next stop(au_mojo_parser *parser, au_mojo_rule rule, uint64_t offset)
{
    parser->rule = rule;
    parser->rule_offset = offset;
    return AU_MOJO_NEXT_STOP;
}

typedef enum field_status { FIELD_DONE, FIELD_MORE, FIELD_STOP } field_status;

static field_status parse_number(au_mojo_parser *parser, const uint8_t *bytes, size_t len, au_mojo_field *field)
{
    au__varint number;
    switch (au__varint_get(bytes + parser->field_at, len - parser->field_at, &number)) {
    case AU__VARINT_OK:
        field->magnitude = number.magnitude;
        field->negative = number.negative;
        field->canonical = number.canonical;
        field->overflow = number.overflow;
        field->length = number.length;
        parser->field_at += number.length;
        return FIELD_DONE;
    case AU__VARINT_SHORT:
        return FIELD_MORE;
    default:
        stop(parser, AU_MOJO_VARINT_LENGTH, field->offset);
        return FIELD_STOP;
    }
}

static field_status parse_string(au_mojo_parser *parser, const uint8_t *bytes, size_t len, au_mojo_field *field)
{
    size_t from = parser->field_at + parser->scanned;
    const uint8_t *nul = from < len ? memchr(bytes + from, 0, len - from) : NULL;
    if (!nul) {
        parser->scanned = len - parser->field_at;
        return FIELD_MORE;
    }
    field->length = (size_t)(nul - (bytes + parser->field_at));
    /* The bytes may still move while the event is not whole: the place is kept, the pointer set at the end. */
    field->magnitude = parser->field_at;
    parser->field_at += field->length + 1;
    parser->scanned = 0;
    return FIELD_DONE;
}

static field_status parse_fields(au_mojo_parser *parser, const uint8_t *bytes, size_t len)
{
    au_mojo_event *event = &parser->event;
    while (parser->layout[event->count]) {
        au_mojo_field *field = &event->fields[event->count];
        char kind = parser->layout[event->count];
        memset(field, 0, sizeof *field);
        field->offset = parser->offset + parser->field_at;
        field->kind = kind == 's' ? AU_MOJO_FIELD_STRING : kind == 'k' ? AU_MOJO_FIELD_KEY : AU_MOJO_FIELD_NUMBER;
        field_status status =
            kind == 's' ? parse_string(parser, bytes, len, field) : parse_number(parser, bytes, len, field);
        if (status != FIELD_DONE) {
            return status;
        }
        event->count++;
    }
    return FIELD_DONE;
}

static field_status parse_header(au_mojo_parser *parser, const uint8_t *bytes, size_t len)
{
    static const char magic[3] = {'M', 'O', 'J'};
    if (memcmp(bytes, magic, len < 3 ? len : 3) != 0) {
        stop(parser, AU_MOJO_HEADER_MAGIC, 0);
        return FIELD_STOP;
    }
    if (len < 3) {
        return FIELD_MORE;
    }
    parser->field_at = 3;
    parser->version_field.kind = AU_MOJO_FIELD_NUMBER;
    parser->version_field.offset = 3;
    return parse_number(parser, bytes, len, &parser->version_field);
}

static field_status parse_event(au_mojo_parser *parser, const uint8_t *bytes, size_t len)
{
    au_mojo_event *event = &parser->event;
    if (!parser->layout) {
        unsigned id = bytes[0];
        const event_shape *shape = shape_of(id, parser->version);
        if (!shape) {
            stop(parser, id == 0 ? AU_MOJO_EVENT_RESERVED : AU_MOJO_EVENT_UNKNOWN, parser->offset);
            return FIELD_STOP;
        }
        parser->layout = shape->layout;
        parser->field_at = 1;
        parser->scanned = 0;
        event->offset = parser->offset;
        event->id = (uint8_t)id;
        event->count = 0;
    }
    field_status status = parse_fields(parser, bytes, len);
    if (status == FIELD_DONE) {
        event->end = parser->offset + parser->field_at;
        for (unsigned i = 0; i < event->count; i++) {
            au_mojo_field *field = &event->fields[i];
            if (field->kind == AU_MOJO_FIELD_STRING) {
                field->text = (const char *)bytes + field->magnitude;
                field->magnitude = 0;
            }
        }
    }
    return status;
}

/* Keeps what is not taken: the caller's bytes go away. */
static au_mojo_next need_more(au_mojo_parser *parser)
{
    au_buf *pending = &parser->pending;
    if (pending->len) {
        if (parser->at == pending->len) {
            au_buf_reset(pending);
            parser->at = 0;
        }
    } else if (parser->fed_len > parser->at) {
        if (au_buf_append(pending, parser->fed + parser->at, parser->fed_len - parser->at)) {
            parser->out_of_memory = 1;
            return AU_MOJO_NEXT_STOP;
        }
        parser->at = 0;
    } else {
        parser->at = 0;
    }
    parser->fed = NULL;
    parser->fed_len = 0;
    return AU_MOJO_NEXT_MORE;
}

au_mojo_next au_mojo_parser_next(au_mojo_parser *parser, const au_mojo_event **event)
{
    if (parser->rule != AU_MOJO_RULE_NONE || parser->out_of_memory) {
        return AU_MOJO_NEXT_STOP;
    }
    int header = parser->version == 0;
    if (!header && (parser->version > AU_MOJO_VERSION || parser->version_field.negative)) {
        return stop(parser, AU_MOJO_HEADER_VERSION, 3);
    }
    const uint8_t *bytes = parser->pending.len ? parser->pending.data : parser->fed;
    size_t len = (parser->pending.len ? parser->pending.len : parser->fed_len) - parser->at;
    if (len == 0) {
        return need_more(parser);
    }
    bytes += parser->at;
    switch (header ? parse_header(parser, bytes, len) : parse_event(parser, bytes, len)) {
    case FIELD_MORE:
        return need_more(parser);
    case FIELD_STOP:
        return AU_MOJO_NEXT_STOP;
    default:
        break;
    }
    parser->at += parser->field_at;
    parser->offset += parser->field_at;
    parser->layout = NULL;
    if (header) {
        parser->version = parser->version_field.magnitude;
        if (parser->version == 0) {
            return stop(parser, AU_MOJO_HEADER_VERSION, 3);
        }
        return AU_MOJO_NEXT_HEADER;
    }
    *event = &parser->event;
    return AU_MOJO_NEXT_EVENT;
}

au_mojo_rule au_mojo_parser_finish(au_mojo_parser *parser)
{
    if (parser->rule != AU_MOJO_RULE_NONE) {
        return parser->rule;
    }
    size_t left = parser->pending.len - (parser->pending.len ? parser->at : 0);
    uint64_t length = parser->offset + left;
    if (parser->version == 0) {
        /* A version of 0 has stopped already, so the header is not whole. */
        stop(parser, length < 3 ? AU_MOJO_HEADER_MAGIC : AU_MOJO_TRUNCATED, length < 3 ? 0 : length);
    } else if (left) {
        const au_mojo_field *field = &parser->event.fields[parser->event.count];
        if (parser->layout[parser->event.count] == 's') {
            stop(parser, AU_MOJO_STRING_UNTERMINATED, field->offset);
        } else {
            stop(parser, AU_MOJO_TRUNCATED, length);
        }
    }
    return parser->rule;
}
