/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes through the strict checker. What must hold: findings come in order and name a place in the input, the cut
 * into pieces changes nothing, and what passes the check is read without a warning or an error.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/mojo_check.h"
#include "format/mojo_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct verdict {
    uint64_t hash, last, size, violations, warnings, handed;
} verdict;

static void on_finding(void *context, const au_mojo_finding *finding)
{
    verdict *v = context;
    if (finding->offset < v->last || finding->offset > v->size ||
        finding->warning != au_mojo_rule_is_warning(finding->rule)) {
        abort();
    }
    v->last = finding->offset;
    v->handed++;
    v->hash = (v->hash ^ (finding->offset << 8 | (uint64_t)finding->rule)) * UINT64_C(0x9e3779b97f4a7c15);
}

static verdict check(const uint8_t *data, size_t size, size_t piece, int unfinished)
{
    verdict v = {.size = size};
    au_mojo_checker *checker = au_mojo_checker_create(unfinished, on_finding, &v);
    au_error *error = checker ? NULL : au_error_memory();
    for (size_t at = 0; at < size && !error;) {
        size_t take = piece && piece < size - at ? piece : size - at;
        uint8_t *copy = malloc(take);
        memcpy(copy, data + at, take);
        error = au_mojo_checker_feed(checker, copy, take);
        free(copy);
        at += take;
    }
    if (!error) {
        error = au_mojo_checker_finish(checker, &v.violations, &v.warnings);
    }
    if (error || v.handed != v.violations + v.warnings) {
        abort();
    }
    au_mojo_checker_destroy(checker);
    return v;
}

static void no_warning(void *context, uint64_t offset, au_mojo_rule rule)
{
    (void)context;
    (void)offset;
    (void)rule;
    abort();
}

/* Numbers beyond 64 bits break no rule, but our reader does not take them. */
static void must_read(const uint8_t *data, size_t size)
{
    au_mojo_handlers handlers = {.warning = no_warning};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    au_error *error = reader ? au_mojo_reader_feed(reader, data, size) : au_error_memory();
    int unfinished;
    if (!error) {
        error = au_mojo_reader_finish(reader, 1, &unfinished);
    }
    if (error && !strstr(error->message, "varint.length")) {
        abort();
    }
    au_error_clear(error);
    au_mojo_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    verdict whole = check(data, size, 0, 0);
    verdict pieces = check(data, size, 1 + (size ? data[size - 1] % 13U : 0), 0);
    if (whole.hash != pieces.hash || whole.violations != pieces.violations || whole.warnings != pieces.warnings) {
        abort();
    }
    verdict cut = check(data, size, 0, 1);
    if (!whole.violations && cut.violations) {
        abort();
    }
    if (!whole.violations) {
        must_read(data, size);
    }
    return 0;
}
