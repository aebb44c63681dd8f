/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * The versions that publish no offsets: 3.10 to 3.12.
 *
 * Source: offsetof() over Include/internal of CPython 3.10.13, 3.11.7 and 3.12.1, Linux x86_64, and of 3.10.8, 3.11.3
 * and 3.12.1 with a long of four bytes (LLP64), where thread ids and all that follows them lie closer together and the
 * GIL's mutex and condition variables are smaller. LP64 on aarch64 has the same numbers for all fields below but
 * runtime_tstate_current (glibc's mutex is 8 bytes longer there, and there are two before it), which is only a hint.
 * Within each of these minors no field below changed between the releases that were compared; find.c admits a table by
 * live checks, not by the version alone.
 */
#include "engine/layout/layout.h"

/* clang-format off: a line for each field */
#define COMMON_310                                                                                                     \
    .runtime_finalizing = 16, .runtime_interpreters_head = 32, .runtime_main_thread = 72, .runtime_gil = 352,          \
    .interp_gil = AU_ABSENT, .gil_tells = 1, .interp_next = 0, .interp_id = 24, .interp_threads_head = 8,              \
    .interp_modules = 856, .interp_sysdict = 872, .interp_code_generation = AU_ABSENT,                                 \
    .interp_code_counter = AU_ABSENT, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = 24,                       \
    .tstate_cframe = AU_ABSENT, .tstate_base_frame = AU_ABSENT, .tstate_thread_id = 176,                               \
    .tstate_native_thread_id = AU_ABSENT, .tstate_datastack_chunk = AU_ABSENT, .tstate_datastack_top = AU_ABSENT,      \
    .tstate_status = AU_ABSENT, .tstate_state = AU_ABSENT, .cframe_current_frame = AU_ABSENT, .frame_executable = 32,  \
    .frame_previous = 24, .frame_ip = 96, .frame_owner = AU_ABSENT, .frame_stacktop = AU_ABSENT,                       \
    .frame_is_entry = AU_ABSENT, .frame_tlbc_index = AU_ABSENT, .frame_localsplus = AU_ABSENT, .frame_state = 108,     \
    .frame_function = AU_ABSENT, .gen_frame = AU_ABSENT, .code_filename = 104, .code_name = 112,                       \
    .code_qualname = AU_ABSENT, .code_linetable = 120, .code_firstlineno = 40, .code_framesize = AU_ABSENT,            \
    .code_version = AU_ABSENT, .code_firsttraceable = AU_ABSENT, .code_bytecode = 48, .code_tlbc = AU_ABSENT,          \
    .object_type = 8, .object_size = 16, .type_name = 24, .type_flags = 168, .type_basicsize = 32,                     \
    .type_dictoffset = 288, .type_cached_keys = 872, .bytes_data = 32, .str_length = 16, .str_state = 32,              \
    .str_ascii_data = 48, .str_compact_data = 72, .str_any = 72, .str_wstr = 40, .dict_keys = 32, .dict_values = 40,   \
    .keys_size = 8, .keys_log2_index_bytes = AU_ABSENT, .keys_kind = AU_ABSENT, .keys_nentries = 32,                   \
    .keys_indices = 40, .values_data = AU_ABSENT, .values_valid = AU_ABSENT, .int_size = 16, .int_digits = 24,         \
    .module_dict = 16, .minor = 10, .shim_owner = 255, .attrs = AU_ATTRS_DICTOFFSET, .table = AU_TABLE_310,            \
    .managed_dict = 0, .kind_bit = 2, .compact_bit = 5, .ascii_bit = 6, .ready_bit = 7, .active_mask = 0

static const au_layout layout_310 = {
    COMMON_310,
    .runtime_tstate_current = 568,
    .tstate_id = 256,
    .long_bytes = 8,
};

static const au_layout layout_310_llp64 = {
    COMMON_310,
    .runtime_tstate_current = 496,
    .tstate_id = 248,
    .long_bytes = 4,
};

#define COMMON_311                                                                                                     \
    .runtime_finalizing = 24, .runtime_interpreters_head = 40, .runtime_main_thread = 80, .runtime_gil = 360,          \
    .interp_gil = AU_ABSENT, .gil_tells = 1, .interp_next = 0, .interp_id = 48, .interp_threads_head = 16,             \
    .interp_modules = 888, .interp_sysdict = 904, .interp_code_generation = AU_ABSENT,                                 \
    .interp_code_counter = AU_ABSENT, .tstate_next = 8, .tstate_interp = 16, .tstate_frame = AU_ABSENT,                \
    .tstate_cframe = 56, .tstate_base_frame = AU_ABSENT, .tstate_thread_id = 152, .tstate_id = AU_ABSENT,              \
    .tstate_status = AU_ABSENT, .tstate_state = AU_ABSENT, .cframe_current_frame = 8, .frame_executable = 32,          \
    .frame_previous = 48, .frame_ip = 56, .frame_owner = 69, .frame_stacktop = 64, .frame_is_entry = 68,               \
    .frame_tlbc_index = AU_ABSENT, .frame_localsplus = 72, .frame_state = AU_ABSENT, .frame_function = 0,              \
    .gen_frame = 80, .code_filename = 112, .code_name = 120, .code_qualname = 128, .code_linetable = 136,              \
    .code_firstlineno = 72, .code_framesize = AU_ABSENT, .code_version = AU_ABSENT, .code_firsttraceable = 168,        \
    .code_bytecode = 184, .code_tlbc = AU_ABSENT, .object_type = 8, .object_size = 16, .type_name = 24,                \
    .type_flags = 168, .type_basicsize = 32, .type_dictoffset = 288, .type_cached_keys = 872, .bytes_data = 32,        \
    .str_length = 16, .str_state = 32, .str_ascii_data = 48, .str_compact_data = 72, .str_any = 72, .str_wstr = 40,    \
    .dict_keys = 32, .dict_values = 40, .keys_size = 8, .keys_log2_index_bytes = 9, .keys_kind = 10,                   \
    .keys_nentries = 24, .keys_indices = 32, .values_data = 0, .values_valid = AU_ABSENT, .int_size = 16,              \
    .int_digits = 24, .module_dict = 16, .minor = 11, .shim_owner = 255, .attrs = AU_ATTRS_311, .table = AU_TABLE_311, \
    .managed_dict = -24, .kind_bit = 2, .compact_bit = 5, .ascii_bit = 6, .ready_bit = 7, .active_mask = 0

static const au_layout layout_311 = {
    COMMON_311,
    .runtime_tstate_current = 576,
    .tstate_native_thread_id = 160,
    .tstate_datastack_chunk = 296,
    .tstate_datastack_top = 304,
    .long_bytes = 8,
};

static const au_layout layout_311_llp64 = {
    COMMON_311,
    .runtime_tstate_current = 504,
    .tstate_native_thread_id = 156,
    .tstate_datastack_chunk = 288,
    .tstate_datastack_top = 296,
    .long_bytes = 4,
};

#define COMMON_312                                                                                                     \
    .runtime_finalizing = 24, .runtime_interpreters_head = 40, .runtime_main_thread = 64,                              \
    .runtime_tstate_current = AU_ABSENT, .runtime_gil = AU_ABSENT, .interp_gil = 384, .gil_tells = 1,                  \
    .interp_next = 0, .interp_id = 8, .interp_threads_head = 72, .interp_modules = 944, .interp_sysdict = 352,         \
    .interp_code_generation = AU_ABSENT, .interp_code_counter = AU_ABSENT, .tstate_next = 8, .tstate_interp = 16,      \
    .tstate_frame = AU_ABSENT, .tstate_cframe = 56, .tstate_base_frame = AU_ABSENT, .tstate_thread_id = 136,           \
    .tstate_id = AU_ABSENT, .tstate_status = 24, .tstate_state = AU_ABSENT, .cframe_current_frame = 0,                 \
    .frame_executable = 0, .frame_previous = 8, .frame_ip = 56, .frame_owner = 70, .frame_stacktop = 64,               \
    .frame_is_entry = AU_ABSENT, .frame_tlbc_index = AU_ABSENT, .frame_localsplus = 72, .frame_state = AU_ABSENT,      \
    .frame_function = 16, .gen_frame = 72, .code_filename = 112, .code_name = 120, .code_qualname = 128,               \
    .code_linetable = 136, .code_firstlineno = 68, .code_framesize = 76, .code_version = 92,                           \
    .code_firsttraceable = 176, .code_bytecode = 192, .code_tlbc = AU_ABSENT, .object_type = 8, .object_size = 16,     \
    .type_name = 24, .type_flags = 168, .type_basicsize = 32, .type_dictoffset = 288, .type_cached_keys = 880,         \
    .bytes_data = 32, .str_length = 16, .str_state = 32, .str_ascii_data = 40, .str_compact_data = 56, .str_any = 56,  \
    .str_wstr = AU_ABSENT, .dict_keys = 32, .dict_values = 40, .keys_size = 8, .keys_log2_index_bytes = 9,             \
    .keys_kind = 10, .keys_nentries = 24, .keys_indices = 32, .values_data = 0, .values_valid = AU_ABSENT,             \
    .int_size = 16, .int_digits = 24, .module_dict = 16, .minor = 12, .shim_owner = 3, .attrs = AU_ATTRS_312,          \
    .table = AU_TABLE_311, .managed_dict = -24, .kind_bit = 2, .compact_bit = 5, .ascii_bit = 6, .ready_bit = -1,      \
    .active_mask = 1u << 4

static const au_layout layout_312 = {
    COMMON_312,      .tstate_native_thread_id = 144, .tstate_datastack_chunk = 232, .tstate_datastack_top = 240,
    .long_bytes = 8,
};

static const au_layout layout_312_llp64 = {
    COMMON_312,      .tstate_native_thread_id = 140, .tstate_datastack_chunk = 224, .tstate_datastack_top = 232,
    .long_bytes = 4,
};
/* clang-format on */

const au_layout *au_layout_static(unsigned minor, int long_bytes)
{
    int is_short = long_bytes == 4;
    switch (minor) {
    case 10:
        return is_short ? &layout_310_llp64 : &layout_310;
    case 11:
        return is_short ? &layout_311_llp64 : &layout_311;
    case 12:
        return is_short ? &layout_312_llp64 : &layout_312;
    default:
        return NULL;
    }
}
