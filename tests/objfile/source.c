/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/objfile/source.h"

#include <string.h>

int read_bytes(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    bytes *from = baton;
    from->reads++;
    *got = 0;
    if (from->fail_from && from->reads >= from->fail_from && from->reads - from->fail_from < from->fail_count) {
        return -1;
    }
    if (offset >= from->len) {
        return offset > from->len; /* at the end: nothing; past it: an error */
    }
    *got = from->len - offset < len ? (size_t)(from->len - offset) : len;
    if (from->portion && *got > from->portion) {
        *got = from->portion;
    }
    memcpy(buf, from->data + offset, *got);
    return 0;
}

static void expect_within(const au_obj *obj, const au_obj_range *range)
{
    ck_assert_uint_ge(range->vaddr, obj->low_vaddr);
    ck_assert_uint_lt(range->vaddr, obj->high_vaddr);
    ck_assert_uint_le(range->size, obj->high_vaddr - range->vaddr);
}

void ask_everything(au_obj *obj, bytes *from, int in_memory, uint64_t base, answers *out)
{
    static const char *const sections[] = {"PyRuntime", "AsyncioDebug", "long_name_of_a_section", "nothing"};
    static const char *const symbols[] = {"_PyRuntime", "Py_Version", "ot_here_x", "forwarded", "absent"};
    memset(out, 0, sizeof *out);
    au_obj_source source = {.read = read_bytes, .baton = from, .in_memory = in_memory, .base = base};
    out->init = au_obj_init(obj, &source);
    for (size_t i = 0; i < 4; i++) {
        out->section_result[i] = au_obj_find_section(obj, sections[i], &out->section[i]);
        if (out->section_result[i] == AU_OBJ_OK) {
            expect_within(obj, &out->section[i]);
        }
    }
    for (size_t i = 0; i < 5; i++) {
        out->symbol_result[i] = au_obj_find_symbol(obj, symbols[i], &out->symbol[i]);
        if (out->symbol_result[i] == AU_OBJ_OK) {
            expect_within(obj, &out->symbol[i]);
        }
    }
    out->build_id_result = au_obj_build_id(obj, out->build_id, sizeof out->build_id, &out->build_id_len);
    if (out->build_id_result == AU_OBJ_OK) {
        ck_assert_uint_le(out->build_id_len, sizeof out->build_id);
    }
    out->soname_result = au_obj_soname(obj, out->soname, sizeof out->soname);
    if (out->soname_result == AU_OBJ_OK) {
        ck_assert_ptr_nonnull(memchr(out->soname, 0, sizeof out->soname));
    }
    uint64_t at = out->section_result[0] == AU_OBJ_OK ? out->section[0].vaddr : out->symbol[0].vaddr;
    out->content_result = au_obj_read_vaddr(obj, at, out->content, sizeof out->content);
    uint64_t value;
    (void)au_obj_debug_entry(obj, &value);
}

/** A failed read may hide what is there; what is not there it cannot show. */
static int compare(au_obj_result got, au_obj_result truth, const void *a, const void *b, size_t len, int all)
{
    if (got != AU_OBJ_OK) {
        return !all || got == truth;
    }
    return truth == AU_OBJ_OK && memcmp(a, b, len) == 0;
}

void expect_truth_or_failure(const answers *got, const answers *truth, int all)
{
    ck_assert(!all || got->init == truth->init);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_msg(compare(got->section_result[i], truth->section_result[i], &got->section[i], &truth->section[i],
                              sizeof got->section[i], all),
                      "section %zu: %d instead of %d", i, (int)got->section_result[i], (int)truth->section_result[i]);
    }
    for (size_t i = 0; i < 5; i++) {
        ck_assert_msg(compare(got->symbol_result[i], truth->symbol_result[i], &got->symbol[i], &truth->symbol[i],
                              sizeof got->symbol[i], all),
                      "symbol %zu: %d instead of %d", i, (int)got->symbol_result[i], (int)truth->symbol_result[i]);
    }
    ck_assert(compare(got->build_id_result, truth->build_id_result, got->build_id, truth->build_id,
                      sizeof got->build_id, all));
    ck_assert(compare(got->soname_result, truth->soname_result, got->soname, truth->soname, sizeof got->soname, all));
    /* Where to look for the content is another answer, which may have failed. */
    if (got->section_result[0] == truth->section_result[0] && got->symbol_result[0] == truth->symbol_result[0]) {
        ck_assert(compare(got->content_result, truth->content_result, got->content, truth->content, sizeof got->content,
                          all));
    }
}

/** How many of them are no success. */
static size_t not_ok(const answers *a)
{
    size_t count = a->init != AU_OBJ_OK;
    count += a->build_id_result != AU_OBJ_OK;
    count += a->soname_result != AU_OBJ_OK;
    count += a->content_result != AU_OBJ_OK;
    for (size_t i = 0; i < 4; i++) {
        count += a->section_result[i] != AU_OBJ_OK;
    }
    for (size_t i = 0; i < 5; i++) {
        count += a->symbol_result[i] != AU_OBJ_OK;
    }
    return count;
}

size_t inject_faults(au_obj *obj, const uint8_t *data, size_t len, int in_memory, uint64_t base)
{
    static answers truth, got;
    bytes from = {.data = data, .len = len};
    ask_everything(obj, &from, in_memory, base, &truth);
    ck_assert_int_eq(truth.init, AU_OBJ_OK);
    size_t reads = from.reads, failed = 0;
    for (size_t n = 1; n <= reads; n++) {
        for (int forever = 0; forever < 2; forever++) {
            from = (bytes){.data = data, .len = len, .fail_from = n, .fail_count = forever ? SIZE_MAX : 1};
            ask_everything(obj, &from, in_memory, base, &got);
            ck_assert_uint_ge(from.reads, n);
            ck_assert_uint_lt(from.reads, 10 * reads + 100);
            expect_truth_or_failure(&got, &truth, 0);
        }
        /* Twice, because a window that cannot be had is asked for again, and smaller. */
        from = (bytes){.data = data, .len = len, .fail_from = n, .fail_count = 2};
        ask_everything(obj, &from, in_memory, base, &got);
        expect_truth_or_failure(&got, &truth, 0);
        failed += not_ok(&got) > not_ok(&truth);
    }
    ck_assert_uint_gt(failed, 0); /* a failure that nothing shows would be no fault */
    for (size_t portion = 1; portion <= 512; portion++) {
        from = (bytes){.data = data, .len = len, .portion = portion};
        ask_everything(obj, &from, in_memory, base, &got);
        /* Nothing is looked at in pieces larger than 64 bytes. */
        expect_truth_or_failure(&got, &truth, portion >= 64);
    }
    return reads;
}
