/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Reads MOJO versions 1 to 4 as it comes, in pieces of any size, and hands out whole samples and metadata in the order
 * of the stream. No file, no thread.
 *
 * Tolerant, but it never guesses. What leaves the rest of the stream clear is a warning: Invalid frames are kept; of
 * two definitions of a key the last one counts; a key is looked up among the definitions sent under the PID of the
 * latest Stack event first and then in the whole stream; sample events without a sample are passed over; events out of
 * order still count; of two metrics of a kind the last one counts. What does not is an error that names the byte: an
 * event or version that is not known, a key that is not defined, an endless number, a repeat of nothing or behind
 * frames. An input that ends early is not an error before the caller says that it was complete.
 *
 * A sample is handed out when the event after it shows that it is over, so a live stream lags by one sample.
 *
 * Memory grows with what the stream defines (each distinct text and frame once) and the stacks of its threads. A
 * hostile stream costs time and memory in proportion to its own length. Not thread-safe.
 */
#ifndef AU_FORMAT_MOJO_READER_H
#define AU_FORMAT_MOJO_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/mojo_rules.h"
#include "format/mojo_sample.h"

/** Each may be NULL. An error that a callback returns ends the reading and comes out of feed() or finish(). */
typedef struct au_mojo_handlers {
    void *context;
    au_error *(*sample)(void *context, const au_mojo_sample *sample);
    au_error *(*metadata)(void *context, uint64_t offset, const char *key, const char *value);
    void (*warning)(void *context, uint64_t offset, au_mojo_rule rule);
} au_mojo_handlers;

typedef struct au_mojo_reader au_mojo_reader;

/** NULL when there is no memory. */
au_mojo_reader *au_mojo_reader_create(const au_mojo_handlers *handlers);
void au_mojo_reader_destroy(au_mojo_reader *reader);

/** The next bytes. After an error the reader is of no use but to be destroyed, and gives the error again. */
AU_MUST_USE au_error *au_mojo_reader_feed(au_mojo_reader *reader, const void *bytes, size_t len);

/**
 * The input is over. Hands out the last sample if it is whole: it has a metric, both in a stream of both, and it is not
 * cut. `*unfinished` says whether anything was cut or left out; with `complete` that is an error instead.
 */
AU_MUST_USE au_error *au_mojo_reader_finish(au_mojo_reader *reader, int complete, int *unfinished);

/** The version of the stream; 0 before its header is read. */
uint64_t au_mojo_reader_version(const au_mojo_reader *reader);

/** How many distinct texts and frames there are so far: their ids are below that. */
uint32_t au_mojo_reader_texts(const au_mojo_reader *reader);
uint32_t au_mojo_reader_frames(const au_mojo_reader *reader);

#endif
