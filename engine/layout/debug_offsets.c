/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Reads `_Py_DebugOffsets`: the first member of `_PyRuntime` from 3.13 on. An eight-byte cookie, then little-endian
 * 64-bit words. Source of the positions: Include/internal/pycore_runtime.h of 3.13.0 and .18,
 * Include/internal/pycore_debug_offsets.h of 3.14.3, .8, .10 and 3.15.0, .2. Sizes of structures are not compared
 * with constants, and offsets are never assumed from the minor where the table has them: both change within a minor.
 */
#include <string.h>

#include "engine/layout/layout.h"

/* Where a field stands in each minor's table; 0: not there (no field stands at 0, the cookie does). */
typedef struct entry {
    size_t member;       /* offsetof in au_layout */
    uint16_t at[3];      /* 3.13, 3.14, 3.15 */
    uint16_t size_at[3]; /* the size of the structure that it must lie in */
} entry;

#define F(member) offsetof(au_layout, member)
#define RUNTIME                                                                                                        \
    {                                                                                                                  \
        24, 24, 24                                                                                                     \
    }
#define INTERP                                                                                                         \
    {                                                                                                                  \
        48, 48, 48                                                                                                     \
    }
#define TSTATE                                                                                                         \
    {                                                                                                                  \
        152, 176, 176                                                                                                  \
    }
#define FRAME                                                                                                          \
    {                                                                                                                  \
        224, 248, 312                                                                                                  \
    }
#define CODE                                                                                                           \
    {                                                                                                                  \
        272, 312, 376                                                                                                  \
    }
#define OBJECT                                                                                                         \
    {                                                                                                                  \
        352, 400, 464                                                                                                  \
    }
#define TYPE                                                                                                           \
    {                                                                                                                  \
        368, 416, 480                                                                                                  \
    }
#define BYTES                                                                                                          \
    {                                                                                                                  \
        512, 592, 688                                                                                                  \
    }
#define STR                                                                                                            \
    {                                                                                                                  \
        536, 616, 712                                                                                                  \
    }
#define DICT                                                                                                           \
    {                                                                                                                  \
        448, 528, 624                                                                                                  \
    }
#define LONG                                                                                                           \
    {                                                                                                                  \
        488, 568, 664                                                                                                  \
    }
#define NO_SIZE                                                                                                        \
    {                                                                                                                  \
        0, 0, 0                                                                                                        \
    }

static const entry entries[] = {
    {F(runtime_finalizing), {32, 32, 32}, RUNTIME},
    {F(runtime_interpreters_head), {40, 40, 40}, RUNTIME},
    {F(interp_id), {56, 56, 56}, INTERP},
    {F(interp_next), {64, 64, 64}, INTERP},
    {F(interp_threads_head), {72, 72, 72}, INTERP},
    {F(interp_modules), {88, 96, 96}, INTERP},
    {F(interp_sysdict), {96, 104, 104}, INTERP},
    {F(interp_code_generation), {0, 160, 160}, INTERP},
    {F(interp_gil), {112, 120, 120}, INTERP},
    {F(tstate_next), {168, 192, 192}, TSTATE},
    {F(tstate_interp), {176, 200, 200}, TSTATE},
    {F(tstate_frame), {184, 208, 208}, TSTATE},
    {F(tstate_base_frame), {0, 0, 216}, TSTATE},
    {F(tstate_thread_id), {192, 216, 240}, TSTATE},
    {F(tstate_native_thread_id), {200, 224, 248}, TSTATE},
    {F(tstate_datastack_chunk), {208, 232, 256}, TSTATE},
    {F(tstate_status), {216, 240, 264}, TSTATE},
    {F(frame_previous), {232, 256, 320}, FRAME},
    {F(frame_executable), {240, 264, 328}, FRAME},
    {F(frame_ip), {248, 272, 336}, FRAME},
    {F(frame_owner), {264, 288, 352}, FRAME},
    {F(frame_tlbc_index), {0, 304, 368}, NO_SIZE},
    {F(code_filename), {280, 320, 384}, CODE},
    {F(code_name), {288, 328, 392}, CODE},
    {F(code_qualname), {296, 336, 400}, CODE},
    {F(code_linetable), {304, 344, 408}, CODE},
    {F(code_firstlineno), {312, 352, 416}, CODE},
    {F(code_bytecode), {344, 384, 448}, NO_SIZE},
    {F(code_tlbc), {0, 392, 456}, NO_SIZE},
    {F(object_type), {360, 408, 472}, OBJECT},
    {F(type_name), {376, 424, 488}, TYPE},
    {F(type_flags), {392, 440, 504}, TYPE},
    {F(type_basicsize), {0, 0, 512}, TYPE},
    {F(type_dictoffset), {0, 0, 520}, TYPE},
    {F(type_cached_keys), {0, 0, 536}, NO_SIZE},
    {F(bytes_data), {528, 608, 704}, BYTES},
    {F(str_state), {544, 624, 720}, STR},
    {F(str_length), {552, 632, 728}, STR},
    {F(str_ascii_data), {560, 640, 736}, NO_SIZE},
    {F(str_compact_data), {0, 0, 744}, NO_SIZE},
    {F(dict_keys), {456, 536, 632}, DICT},
    {F(dict_values), {464, 544, 640}, DICT},
    {F(int_size), {496, 576, 672}, LONG},
    {F(int_digits), {504, 584, 680}, LONG},
};

/* Words that are needed but are no member of au_layout. */
static const uint16_t localspluses[3] = {256, 280, 344};
static const uint16_t localsplusnames[3] = {328, 368, 432};
static const uint16_t object_sizes[3] = OBJECT;
static const uint16_t tables[3] = {AU_DEBUG_OFFSETS_313, AU_DEBUG_OFFSETS_314, AU_DEBUG_OFFSETS_315};

/* In no table: the main thread's id in _PyRuntime, the attach state behind the status word. */
static const uint32_t main_threads[3] = {656, 832, 960};
static const uint32_t state_after_status[3] = {8, 12, 16};

enum { MOST = 1 << 20 }; /* no offset or size is that large, save the sizes of the two big states */

static uint64_t word_at(const uint8_t *bytes, size_t at)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | bytes[at + (size_t)i];
    }
    return value;
}

/* All that is read is a word or a pointer, but for these. */
static uint32_t alignment(size_t member, uint32_t long_bytes)
{
    switch (member) {
    case F(frame_owner):
    case F(bytes_data):
    case F(str_ascii_data):
    case F(str_compact_data):
    case F(code_bytecode):
        return 1;
    case F(frame_tlbc_index):
    case F(tstate_status):
    case F(code_firstlineno):
    case F(str_state):
    case F(int_digits):
        return 4;
    case F(tstate_thread_id):
    case F(tstate_native_thread_id):
        return long_bytes;
    default:
        return 8;
    }
}

static int plausible(const uint8_t *bytes, const entry *e, int v, int long_bytes)
{
    uint64_t offset = word_at(bytes, e->at[v]);
    if (offset >= MOST || offset % alignment(e->member, (uint32_t)long_bytes)) {
        return 0;
    }
    if (e->size_at[v]) {
        uint64_t size = word_at(bytes, e->size_at[v]);
        if (size == 0 || size >= MOST || offset >= size) {
            return 0;
        }
    }
    return 1;
}

static void clear_layout(au_layout *layout)
{
    memset(layout, 0, sizeof *layout);
#define AU_X(name) layout->name = AU_ABSENT;
    AU_LAYOUT_FIELDS(AU_X)
#undef AU_X
}

/* What no table says: constants of each minor, relative to a published neighbour where there is one. */
static void add_constants(au_layout *layout, const uint8_t *bytes, int v)
{
    int gil_free = layout->free_threaded;
    uint32_t object_size = (uint32_t)word_at(bytes, object_sizes[v]);
    layout->object_size = object_size;
    layout->module_dict = object_size;
    layout->runtime_main_thread = main_threads[v];
    layout->tstate_state = layout->tstate_status + state_after_status[v];
    layout->tstate_datastack_top = layout->tstate_datastack_chunk + 8;
    layout->frame_localsplus = (uint32_t)word_at(bytes, localspluses[v]);
    layout->code_version = (uint32_t)word_at(bytes, localsplusnames[v]) - 4;
    layout->code_framesize = layout->code_firstlineno + 8; /* co_nlocalsplus stands between (cpython/code.h) */
    layout->frame_function = 16;
    layout->gil_tells = !gil_free;
    layout->gen_frame = object_size + 56;
    if (v == 0) {
        layout->frame_stacktop = layout->frame_localsplus - 8;
    }
    if (!gil_free) {
        layout->frame_tlbc_index = AU_ABSENT;
        layout->code_tlbc = AU_ABSENT;
    }
    layout->code_firsttraceable = (layout->code_tlbc != AU_ABSENT ? layout->code_tlbc : layout->code_bytecode) - 16;
    if (v < 2) {
        layout->type_basicsize = layout->type_flags - 136;
        layout->type_dictoffset = layout->type_flags + 120;
        layout->type_cached_keys = gil_free ? 896 : 880;
        layout->str_compact_data = layout->str_ascii_data + 16;
    }
    layout->str_any = layout->str_compact_data;
    layout->keys_size = 8;
    layout->keys_log2_index_bytes = 9;
    layout->keys_kind = 10;
    layout->keys_nentries = 24;
    layout->keys_indices = 32;
    layout->values_data = 8;
    layout->values_valid = 3;
    layout->managed_dict = gil_free ? -8 : -24;
    layout->attrs = AU_ATTRS_INLINE;
    layout->table = AU_TABLE_311;
    layout->tagged = v >= 1;
    layout->shim_owner = 3;
    layout->ready_bit = -1;
    /* free-threaded 3.14+ has a whole byte for `interned` before the other bits; compilers for LLP64 begin bits of
       another type in a word of their own */
    unsigned before = !gil_free || v < 1 ? 2 : layout->long_bytes == 8 ? 8 : 0;
    layout->str_state += before ? 0 : 4;
    layout->kind_bit = before;
    layout->compact_bit = before + 3;
    layout->ascii_bit = before + 4;
}

/* What is looked at in the copy of a structure's head must lie in what is copied of it. */
static int copies_hold(const au_layout *l)
{
    uint32_t frame = l->frame_localsplus;
    return l->frame_previous + 8 <= frame && l->frame_executable + 8 <= frame && l->frame_ip + 8 <= frame &&
           (l->frame_tlbc_index == AU_ABSENT || l->frame_tlbc_index + 4 <= frame) && l->code_bytecode >= 64 &&
           l->code_firsttraceable < l->code_bytecode && l->code_framesize + 4 <= l->code_bytecode &&
           (l->code_tlbc == AU_ABSENT || l->code_tlbc < l->code_bytecode) && l->str_length + 8 <= l->str_ascii_data &&
           l->str_state + 4 <= l->str_ascii_data && l->str_ascii_data <= l->str_any && l->dict_keys < l->dict_values &&
           l->int_size < l->int_digits && l->object_size + 8 <= l->bytes_data && l->type_basicsize < MOST;
}

au_offsets_verdict au_layout_from_debug_offsets(const uint8_t *bytes, size_t len, uint64_t runtime_size, int long_bytes,
                                                au_layout *layout, uint64_t *hexversion)
{
    if (len < 24 || memcmp(bytes, "xdebugpy", 8) != 0) {
        return AU_OFFSETS_NO_COOKIE;
    }
    *hexversion = word_at(bytes, 8);
    unsigned major = (unsigned)(*hexversion >> 24 & 0xff);
    unsigned minor = (unsigned)(*hexversion >> 16 & 0xff);
    if (*hexversion >> 32 || major != 3 || minor < 13 || minor > 15) {
        return AU_OFFSETS_UNKNOWN_VERSION;
    }
    int v = (int)minor - 13;
    if (len < tables[v]) {
        return AU_OFFSETS_IMPLAUSIBLE;
    }
    uint64_t free_threaded = word_at(bytes, 16);
    uint64_t own_size = word_at(bytes, 24);
    if (free_threaded > 1 || own_size < tables[v] || (runtime_size && own_size > runtime_size)) {
        return AU_OFFSETS_IMPLAUSIBLE;
    }
    uint64_t object_size = word_at(bytes, object_sizes[v]);
    if (object_size != (free_threaded ? 32u : 16u)) {
        return AU_OFFSETS_IMPLAUSIBLE;
    }
    au_layout found;
    clear_layout(&found);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        const entry *e = &entries[i];
        if (!e->at[v]) {
            continue;
        }
        if (!plausible(bytes, e, v, long_bytes)) {
            return AU_OFFSETS_IMPLAUSIBLE;
        }
        uint32_t offset = (uint32_t)word_at(bytes, e->at[v]);
        memcpy((uint8_t *)&found + e->member, &offset, sizeof offset);
    }
    /* co_version is right before it, and is read out of the copied head of a code object */
    uint64_t names = word_at(bytes, localsplusnames[v]);
    if (names < 8 || names % 8 || names >= found.code_bytecode) {
        return AU_OFFSETS_IMPLAUSIBLE;
    }
    found.minor = minor;
    found.long_bytes = long_bytes;
    found.free_threaded = (int)free_threaded;
    add_constants(&found, bytes, v);
    /* the frame's fields must fit before its locals */
    if (found.frame_localsplus > 512 || found.frame_localsplus < 24 || found.frame_owner >= found.frame_localsplus ||
        found.tstate_datastack_chunk > 4096 || found.code_bytecode > 1024 || found.str_ascii_data > 256) {
        return AU_OFFSETS_IMPLAUSIBLE;
    }
    if (!copies_hold(&found)) {
        return AU_OFFSETS_IMPLAUSIBLE;
    }
    *layout = found;
    return AU_OFFSETS_OK;
}
