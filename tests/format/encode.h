/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Writes samples with the writer, as a profiler would: definitions inside the sample, sent again under each PID, a
 * Stack repeat where the format allows one.
 */
#ifndef AU_TESTS_FORMAT_ENCODE_H
#define AU_TESTS_FORMAT_ENCODE_H

#include "base/error.h"
#include "format/mojo_sample.h"
#include "format/mojo_writer.h"

typedef struct encoder encoder;

/** With `repeats` it uses Stack repeat. The header is written. */
encoder *encoder_create(uint32_t key_limit, int repeats);
void encoder_destroy(encoder *e);
au_mojo_writer *encoder_writer(encoder *e);

/** To be used as handlers of a reader, with the encoder as the context. */
au_error *encode_metadata(void *context, uint64_t offset, const char *key, const char *value);
au_error *encode_sample(void *context, const au_mojo_sample *sample);

#endif
