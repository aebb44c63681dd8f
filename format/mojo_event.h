/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * MOJO versions 1 to 4 as a sequence of raw events with byte offsets: no meaning, no state but the header. The reader
 * and the checker stand on this; `austin-query events` shows it as it is.
 *
 * Fed with pieces of any size. An event that is not whole yet is kept (a copy, as long as the event); work is
 * proportional to the input however it is cut. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_EVENT_H
#define AU_FORMAT_MOJO_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "format/mojo.h"
#include "format/mojo_rules.h"

enum { AU_MOJO_FIELDS_MAX = 7 };

typedef enum au_mojo_field_kind { AU_MOJO_FIELD_NUMBER, AU_MOJO_FIELD_KEY, AU_MOJO_FIELD_STRING } au_mojo_field_kind;

typedef struct au_mojo_field {
    au_mojo_field_kind kind;
    uint64_t offset;    /**< of the field's first byte in the stream */
    const char *text;   /**< of a string: its bytes and a NUL, valid until the next call */
    size_t length;      /**< of a string: bytes without the NUL; of a number: bytes of the varint */
    uint64_t magnitude; /**< of a number or key; UINT64_MAX if `overflow` */
    uint8_t negative;   /**< of a number or key: the sign bit */
    uint8_t canonical;  /**< of a number or key: no needless byte and no negative zero */
    uint8_t overflow;   /**< of a number or key: it has more than 64 bits */
} au_mojo_field;

typedef struct au_mojo_event {
    uint64_t offset; /**< of the event's id */
    uint64_t end;    /**< of the byte behind the event */
    uint8_t id;      /**< an au_mojo_event_id; never 0 */
    uint8_t count;   /**< of fields */
    au_mojo_field fields[AU_MOJO_FIELDS_MAX];
} au_mojo_event;

typedef struct au_mojo_parser {
    const uint8_t *fed; /**< borrowed input; not used while something is pending */
    size_t fed_len;
    au_buf pending;      /**< own copy of the bytes not taken when next() said that it needs more */
    size_t at;           /**< bytes of the input at hand that are taken */
    uint64_t offset;     /**< of the byte at `at` in the stream: an event boundary */
    const char *layout;  /**< of the current event; NULL before its id is seen */
    size_t field_at;     /**< where its current field starts, from the event's id */
    size_t scanned;      /**< bytes of the current string field that hold no NUL */
    au_mojo_event event; /**< under construction */
    uint64_t version;    /**< 0 before the header is read */
    au_mojo_field version_field;
    au_mojo_rule rule;    /**< why parsing has stopped, AU_MOJO_RULE_NONE while it goes on */
    uint64_t rule_offset; /**< where */
    int out_of_memory;
} au_mojo_parser;

void au_mojo_parser_init(au_mojo_parser *parser);
void au_mojo_parser_deinit(au_mojo_parser *parser);

/** Gives the next bytes; they must stay until next() returns AU_MOJO_NEXT_MORE. Only when it has, or at the start. */
void au_mojo_parser_feed(au_mojo_parser *parser, const void *bytes, size_t len);

typedef enum au_mojo_next {
    AU_MOJO_NEXT_MORE,   /**< all input is used up: feed or finish */
    AU_MOJO_NEXT_HEADER, /**< `version` and `version_field` are set; any version is handed out, once, before events */
    AU_MOJO_NEXT_EVENT,  /**< `event` is filled */
    AU_MOJO_NEXT_STOP    /**< broken: `rule` and `rule_offset` say why; or `out_of_memory`. Every further call is too */
} au_mojo_next;

/** One step. Versions below 1 and above 4 stop after their header with AU_MOJO_HEADER_VERSION. */
au_mojo_next au_mojo_parser_next(au_mojo_parser *parser, const au_mojo_event **event);

/**
 * The input is over. AU_MOJO_RULE_NONE if it ended at an event boundary, else what is missing (header.magic, truncated
 * or string.unterminated), also in `rule` and `rule_offset`.
 */
au_mojo_rule au_mojo_parser_finish(au_mojo_parser *parser);

/** The name of an event, "Frame reference"; "unknown" for an id that is not known. */
const char *au_mojo_event_name(unsigned id);

/** The name of a field of an event, "line_end". Version 1 has fewer fields of Stack and Frame than the others. */
const char *au_mojo_field_name(unsigned id, uint64_t version, unsigned field);

/** The signed value of a number; 0 and *value unchanged when it does not fit 64 bits. */
int au_mojo_field_value(const au_mojo_field *field, int64_t *value);

#endif
