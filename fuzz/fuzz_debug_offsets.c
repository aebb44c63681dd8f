/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug-offsets table. Input: eight bytes of section size, then what stands at the start of the runtime. What is
 * accepted must be usable: every offset small, pointers aligned, the fields of a frame inside it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/layout/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t section;
    uint64_t version = 0;
    au_layout l;
    if (size < sizeof section) {
        return 0;
    }
    memcpy(&section, data, sizeof section);
    if (au_layout_from_debug_offsets(data + 8, size - 8, section, data[7] & 1 ? 4 : 8, &l, &version) != AU_OFFSETS_OK) {
        return 0;
    }
    check(l.minor >= 13 && l.minor <= 15 && version >> 16 == (0x300 | l.minor));
#define AU_X(name) check(l.name == AU_ABSENT || l.name < (2u << 20));
    AU_LAYOUT_FIELDS(AU_X)
#undef AU_X
    const uint32_t pointers[] = {l.runtime_interpreters_head,
                                 l.interp_next,
                                 l.interp_threads_head,
                                 l.tstate_next,
                                 l.tstate_interp,
                                 l.tstate_frame,
                                 l.tstate_datastack_chunk,
                                 l.frame_previous,
                                 l.frame_executable,
                                 l.frame_ip,
                                 l.code_filename,
                                 l.code_qualname,
                                 l.code_linetable,
                                 l.object_type};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        check(pointers[i] != AU_ABSENT && pointers[i] % 8 == 0);
    }
    check(l.frame_previous < l.frame_localsplus && l.frame_executable < l.frame_localsplus &&
          l.frame_ip < l.frame_localsplus && l.frame_owner < l.frame_localsplus);
    check(l.frame_tlbc_index == AU_ABSENT || l.frame_tlbc_index < l.frame_localsplus);
    check(l.code_version < l.code_bytecode && l.code_firsttraceable < l.code_bytecode);
    return 0;
}
