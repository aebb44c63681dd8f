/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PE reader. The first byte of the input says how the rest is to be seen: bit 0 as a loaded image, bit 1 read in
 * small portions.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/object_bytes.h"

static void within(const au_obj *obj, const au_obj_range *range)
{
    if (range->vaddr >= obj->high_vaddr || range->size > obj->high_vaddr - range->vaddr) {
        abort();
    }
}

/** What is there must be found again, and be the same whatever was looked at in between. */
static void twice(au_obj *obj, const char *name)
{
    au_obj_range first = {0}, second = {0};
    au_obj_result a = au_obj_find_symbol(obj, name, &first);
    (void)au_obj_find_section(obj, name, &second);
    second = (au_obj_range){0};
    au_obj_result b = au_obj_find_symbol(obj, name, &second);
    if (a != b || memcmp(&first, &second, sizeof first) != 0) {
        abort();
    }
    if (a == AU_OBJ_OK) {
        within(obj, &first);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    static au_obj obj;
    bytes from = {data + 1, size - 1, data[0] >> 1 & 1};
    au_obj_source source = {.read = read_bytes, .baton = &from, .in_memory = data[0] & 1, .base = 0x180000000};
    if (au_obj_init(&obj, &source) != AU_OBJ_OK) {
        return 0;
    }
    if (obj.format == AU_OBJ_FORMAT_PE && (obj.long_bytes != 4 || obj.low_vaddr != 0 || obj.image_vaddr != 0)) {
        abort();
    }
    au_obj_range range;
    uint8_t id[20], content[64];
    char name[32];
    size_t len;
    uint64_t value;
    static const char *const sections[] = {"PyRuntime", "AsyncioDebug", "long_name_of_a_section"};
    for (size_t i = 0; i < 3; i++) {
        if (au_obj_find_section(&obj, sections[i], &range) == AU_OBJ_OK) {
            within(&obj, &range);
            (void)au_obj_read_vaddr(&obj, range.vaddr, content, sizeof content);
        }
    }
    static const char *const symbols[] = {"_PyRuntime", "Py_Version", "forwarded", "absent"};
    for (size_t i = 0; i < 4; i++) {
        twice(&obj, symbols[i]);
    }
    if (au_obj_build_id(&obj, id, sizeof id, &len) == AU_OBJ_OK && len > sizeof id) {
        abort();
    }
    if (au_obj_soname(&obj, name, sizeof name) == AU_OBJ_OK && !memchr(name, 0, sizeof name)) {
        abort();
    }
    (void)au_obj_debug_entry(&obj, &value);
    return 0;
}
