/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The rules that a MOJO v4 stream keeps to, by name; docs/format.md explains each. The reader and the checker name the
 * rule that is broken, at a byte offset of the stream: that of the event's id; of the faulty field for `key.*`,
 * `varint.*`, `string.utf8` and `string.unterminated`; the length of the input for `truncated`; that of the Stack event
 * for what only shows when the sample ends.
 */
#ifndef AU_FORMAT_MOJO_RULES_H
#define AU_FORMAT_MOJO_RULES_H

#define AU_MOJO_RULES(X)                                                                                               \
    X(AU_MOJO_RULE_NONE, "none", "")                                                                                   \
    X(AU_MOJO_HEADER_MAGIC, "header.magic", "the stream does not start with the bytes MOJ")                            \
    X(AU_MOJO_HEADER_VERSION, "header.version", "the version is not one that is known here")                           \
    X(AU_MOJO_TRUNCATED, "truncated", "the input ends inside an event")                                                \
    X(AU_MOJO_STRING_UNTERMINATED, "string.unterminated", "the input ends inside a string")                            \
    X(AU_MOJO_STRING_UTF8, "string.utf8", "the string is not UTF-8")                                                   \
    X(AU_MOJO_VARINT_CANONICAL, "varint.canonical", "the number has needless bytes or is a negative zero")             \
    X(AU_MOJO_VARINT_LENGTH, "varint.length", "the number is longer than 10 bytes, or its value than 64 bits")         \
    X(AU_MOJO_EVENT_RESERVED, "event.reserved", "event 0 is reserved")                                                 \
    X(AU_MOJO_EVENT_UNKNOWN, "event.unknown", "there is no such event in this version")                                \
    X(AU_MOJO_EVENT_INVALID_FRAME, "event.invalid_frame", "Invalid frame is not emitted in version 4")                 \
    X(AU_MOJO_KEY_LENGTH, "key.length", "the key is longer than 4 bytes")                                              \
    X(AU_MOJO_KEY_NEGATIVE, "key.negative", "the key is negative")                                                     \
    X(AU_MOJO_STRING_KEY1, "string.key1", "string key 1 is reserved for <unknown>")                                    \
    X(AU_MOJO_STRING_UNDEFINED, "string.undefined", "the string is used before it is defined")                         \
    X(AU_MOJO_STRING_REDEFINED, "string.redefined", "the string key is defined again with another value")              \
    X(AU_MOJO_FRAME_UNDEFINED, "frame.undefined", "the frame is used before it is defined")                            \
    X(AU_MOJO_FRAME_REDEFINED, "frame.redefined", "the frame key is defined again with another content")               \
    X(AU_MOJO_FRAME_LOCATION, "frame.location", "a line or column is negative or ends before it starts")               \
    X(AU_MOJO_FRAME_NATIVE, "frame.native", "a frame of a native-looking file has an end line or columns")             \
    X(AU_MOJO_SAMPLE_OUTSIDE, "sample.outside", "the event follows no Stack event")                                    \
    X(AU_MOJO_SAMPLE_ORDER, "sample.order", "the event is out of order in its sample")                                 \
    X(AU_MOJO_SAMPLE_METRIC, "sample.metric", "the sample has no metric")                                              \
    X(AU_MOJO_METRIC_TWICE, "metric.twice", "the sample has this event twice")                                         \
    X(AU_MOJO_MODE_MIXED, "mode.mixed", "the sample has other metrics than the first one")                             \
    X(AU_MOJO_IDLE_MODE, "idle.mode", "Idle stack is only between a time and a memory metric")                         \
    X(AU_MOJO_METADATA_INSIDE, "metadata.inside", "Metadata is inside a sample")                                       \
    X(AU_MOJO_REPEAT_FIRST, "repeat.first", "there is no previous sample of this process and thread to repeat")        \
    X(AU_MOJO_TASK_ID, "task.id", "a task identifier is not positive")                                                 \
    X(AU_MOJO_TASK_SEQUENCE, "task.sequence", "the task identifiers before this one were never used")                  \
    X(AU_MOJO_TASK_FRAMES, "task.frames", "the task stack has fewer Frame references than it says")                    \
    X(AU_MOJO_TASK_REUSE, "task.reuse", "the task has gone before")                                                    \
    X(AU_MOJO_WAITER_UNKNOWN, "waiter.unknown", "a task of Task waiter was never reported")                            \
    X(AU_MOJO_WAITER_ZERO, "waiter.zero", "waiter 0 is not the only event of its run")                                 \
    X(AU_MOJO_RUNNING_UNKNOWN, "running.unknown", "the running task was never reported")

typedef enum au_mojo_rule {
#define AU_X(name, id, text) name,
    AU_MOJO_RULES(AU_X)
#undef AU_X
} au_mojo_rule;

enum { AU_MOJO_RULE_COUNT = AU_MOJO_RUNNING_UNKNOWN + 1 };

/** The rule's name, "sample.order". */
const char *au_mojo_rule_name(au_mojo_rule rule);

/** What it means that the rule is broken, half a sentence in English. */
const char *au_mojo_rule_text(au_mojo_rule rule);

#endif
