/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF reader. The first byte of the input says how the rest is to be seen: bit 0 as a loaded image, bit 1 loaded
 * somewhere else than at 0x400000, bit 2 read in small portions.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/object_bytes.h"

static void within(const au_obj *obj, const au_obj_range *range)
{
    if (range->vaddr < obj->low_vaddr || range->vaddr >= obj->high_vaddr ||
        range->size > obj->high_vaddr - range->vaddr) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    static au_obj obj;
    bytes from = {data + 1, size - 1, data[0] >> 2 & 1};
    au_obj_source source = {
        .read = read_bytes, .baton = &from, .in_memory = data[0] & 1, .base = data[0] & 2 ? 0x7f0000000000 : 0x400000};
    if (au_obj_init(&obj, &source) != AU_OBJ_OK) {
        return 0;
    }
    au_obj_range range;
    uint8_t id[20], content[64];
    char name[32];
    size_t len;
    uint64_t value;
    static const char *const names[] = {"PyRuntime", "AsyncioDebug", "_PyRuntime", "Py_Version"};
    for (size_t i = 0; i < 4; i++) {
        if (au_obj_find_section(&obj, names[i], &range) == AU_OBJ_OK) {
            within(&obj, &range);
            (void)au_obj_read_vaddr(&obj, range.vaddr, content, sizeof content);
        }
        if (au_obj_find_symbol(&obj, names[i], &range) == AU_OBJ_OK) {
            within(&obj, &range);
        }
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
