/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the tests of all formats share: an array as source, which can fail and be short, and questions to an object.
 */
#ifndef AU_TESTS_OBJFILE_SOURCE_H
#define AU_TESTS_OBJFILE_SOURCE_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "objfile/objfile.h"

typedef struct bytes {
    const uint8_t *data;
    size_t len;
    size_t reads;
    size_t portion;   /* no read gives more; 0: no limit */
    size_t fail_from; /* reads of this number (from 1) and the `fail_count - 1` after it fail; 0: none */
    size_t fail_count;
} bytes;

/** An au_obj_read_fn; the baton is a `bytes`. */
int read_bytes(void *baton, uint64_t offset, void *buf, size_t len, size_t *got);

/** Everything that can be asked, as it was answered. */
typedef struct answers {
    au_obj_result init;
    au_obj_result section_result[4], symbol_result[5], build_id_result, soname_result, content_result;
    au_obj_range section[4], symbol[5];
    uint8_t build_id[20];
    size_t build_id_len;
    char soname[64];
    uint8_t content[64]; /* of the first section */
} answers;

/** Opens it and asks everything; what is found must lie within what is loaded. */
void ask_everything(au_obj *obj, bytes *from, int in_memory, uint64_t base, answers *out);

/** Each answer of `got` is that of `truth`, or says that it failed; with `all` none may have failed. */
void expect_truth_or_failure(const answers *got, const answers *truth, int all);

/**
 * Asks about an image whose every read fails once, one alone and with all that follow, and about one that comes in
 * portions of each size. Returns how many reads could fail.
 */
size_t inject_faults(au_obj *obj, const uint8_t *data, size_t len, int in_memory, uint64_t base);

/** The tests of the PE reader. */
TCase *pe_cases(void);

#endif
