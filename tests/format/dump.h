/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A stream's content as text, one fact a line, fields between tabs; tests/live/mojo.py writes the same. Samples are
 * added by hand or come from the reader.
 */
#ifndef AU_TESTS_FORMAT_DUMP_H
#define AU_TESTS_FORMAT_DUMP_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/mojo_rules.h"
#include "format/mojo_sample.h"

/** Check tells its parent of every assertion that holds, which is slow where there are millions. This one does not. */
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            ck_abort_msg("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                                         \
        }                                                                                                              \
    } while (0)

typedef struct dump dump;

dump *dump_create(void);
void dump_destroy(dump *d);

/** To be used as handlers of a reader, with the dump as the context. */
au_error *dump_metadata(void *context, uint64_t offset, const char *key, const char *value);
au_error *dump_sample(void *context, const au_mojo_sample *sample);
void dump_warning(void *context, uint64_t offset, au_mojo_rule rule);

/** How many warnings, and the first one. */
unsigned dump_warnings(const dump *d);
au_mojo_rule dump_first_warning(const dump *d);

/** The whole text, ended by a NUL; valid until the dump goes. `stream` gives the head: version, bytes, events. */
const char *dump_text(dump *d, const uint8_t *stream, size_t len);

/** The samples alone, without the head and the metadata. */
const char *dump_samples_text(dump *d);

/** Reads a stream in pieces of `piece` bytes (0: all at once) into a dump. The error of the reader, owned by the
 * caller. */
au_error *dump_read(dump *d, const uint8_t *stream, size_t len, size_t piece, int complete, int *unfinished);

/** The findings of the checker, one a line: "violation", offset, rule. The caller frees the buffer. */
void dump_findings(const uint8_t *stream, size_t len, size_t piece, int unfinished, au_buf *out);

/** A whole file, ended by a NUL that is not counted. Fails the test if it cannot be read. */
void load_file(const char *path, au_buf *out);

#endif
