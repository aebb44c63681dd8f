/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts: the tables of real builds, tables that lie, and the static tables of 3.10 to 3.12. */
#include <stddef.h>
#include <string.h>

#include "tests/engine/layouts.h"
#include "tests/engine/suites.h"

/* Which fact each offset of an au_layout is, newest name first. NULL: checked by hand below. */
static const struct {
    const char *member;
    size_t at;
    const char *facts[4];
} members[] = {
#define M(name, ...)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(au_layout, name),                                                                              \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
    M(runtime_finalizing, "runtime_state.finalizing"),
    M(runtime_interpreters_head, "runtime_state.interpreters_head"),
    M(runtime_main_thread, "runtime_state.main_thread"),
    M(runtime_tstate_current, "runtime_state.gilstate_tstate_current"),
    M(runtime_gil, NULL),
    M(interp_gil, "interpreter_state.ceval_gil"),
    M(interp_next, "interpreter_state.next"),
    M(interp_id, "interpreter_state.id"),
    M(interp_threads_head, "interpreter_state.threads_head"),
    M(interp_modules, "interpreter_state.imports_modules"),
    M(interp_sysdict, "interpreter_state.sysdict"),
    M(interp_code_generation, "interpreter_state.code_object_generation"),
    M(interp_code_counter, NULL),
    M(tstate_next, "thread_state.next"),
    M(tstate_interp, "thread_state.interp"),
    M(tstate_frame, "thread_state.current_frame", "thread_state.frame"),
    M(tstate_cframe, "thread_state.cframe"),
    M(tstate_base_frame, "thread_state.base_frame"),
    M(tstate_thread_id, "thread_state.thread_id"),
    M(tstate_native_thread_id, "thread_state.native_thread_id"),
    M(tstate_id, NULL),
    M(tstate_datastack_chunk, "thread_state.datastack_chunk"),
    M(tstate_datastack_top, "thread_state.datastack_top"),
    M(tstate_status, "thread_state.status"),
    M(tstate_state, "thread_state.state"),
    M(cframe_current_frame, "cframe.current_frame"),
    M(frame_executable, "interpreter_frame.executable", "frame_object.f_code"),
    M(frame_previous, "interpreter_frame.previous", "frame_object.f_back"),
    M(frame_ip, "interpreter_frame.instr_ptr", "interpreter_frame.prev_instr", "frame_object.f_lasti"),
    M(frame_owner, "interpreter_frame.owner"),
    M(frame_stacktop, "interpreter_frame.stacktop"),
    M(frame_is_entry, "interpreter_frame.is_entry"),
    M(frame_tlbc_index, "interpreter_frame.tlbc_index"),
    M(frame_localsplus, "interpreter_frame.localsplus"),
    M(frame_state, "frame_object.f_state"),
    M(frame_function, NULL),
    M(gen_frame, "gen_object.gi_iframe"),
    M(code_filename, "code_object.filename"),
    M(code_name, "code_object.name"),
    M(code_qualname, "code_object.qualname"),
    M(code_linetable, "code_object.linetable"),
    M(code_firstlineno, "code_object.firstlineno"),
    M(code_framesize, NULL),
    M(code_version, NULL),
    M(code_firsttraceable, "code_object.firsttraceable"),
    M(code_bytecode, "code_object.co_code_adaptive", "code_object.co_code"),
    M(code_tlbc, "code_object.co_tlbc"),
    M(object_type, "pyobject.ob_type"),
    M(object_size, "bytes_object.ob_size"),
    M(type_name, "type_object.tp_name"),
    M(type_flags, "type_object.tp_flags"),
    M(type_basicsize, "type_object.tp_basicsize"),
    M(type_dictoffset, "type_object.tp_dictoffset"),
    M(type_cached_keys, "heap_type_object.ht_cached_keys"),
    M(bytes_data, "bytes_object.ob_sval"),
    M(str_length, "unicode_object.length"),
    M(str_state, "unicode_object.state"),
    M(str_ascii_data, "unicode_object.asciiobject_size"),
    M(str_compact_data, "unicode_object.compactunicodeobject_size"),
    M(str_any, "unicode_object.data_any"),
    M(str_wstr, "unicode_object.wstr"),
    M(dict_keys, "dict_object.ma_keys"),
    M(dict_values, "dict_object.ma_values"),
    M(keys_size, "dict_keys.dk_log2_size", "dict_keys.dk_size"),
    M(keys_log2_index_bytes, "dict_keys.dk_log2_index_bytes"),
    M(keys_kind, "dict_keys.dk_kind"),
    M(keys_nentries, "dict_keys.dk_nentries"),
    M(keys_indices, "dict_keys.dk_indices"),
    M(values_data, "dict_values.values"),
    M(values_valid, "dict_values.valid"),
    M(int_size, "long_object.lv_tag", "long_object.ob_size"),
    M(int_digits, "long_object.ob_digit"),
    M(module_dict, "module_object.md_dict"),
#undef M
};

enum { MEMBERS = sizeof members / sizeof members[0] };

static uint32_t member_of(const au_layout *layout, size_t i)
{
    uint32_t value;
    memcpy(&value, (const uint8_t *)layout + members[i].at, sizeof value);
    return value;
}

static int32_t expected(int build, size_t i)
{
    unsigned minor = layout_version(build) >> 16 & 0xff;
    const char *member = members[i].member;
    for (int k = 0; k < 4 && members[i].facts[k]; k++) {
        int32_t value = layout_value(build, members[i].facts[k]);
        if (minor == 10 && strncmp(member, "frame_", 6) == 0 && strncmp(members[i].facts[k], "frame_object", 12) != 0) {
            continue;
        }
        if (minor > 10 && strncmp(members[i].facts[k], "frame_object", 12) == 0) {
            continue;
        }
        if (value != LAYOUT_NONE) {
            return value;
        }
    }
    if (strcmp(member, "code_version") == 0 && minor >= 12) {
        return layout_free_threaded(build) ? 108 : 92; /* seen in 3.12.1, 3.13.0, 3.13.5t, 3.13.18, 3.14.10, 3.15.2 */
    }
    if (strcmp(member, "runtime_gil") == 0 && minor <= 11) {
        return layout_value(build, "runtime_state.gil_last_holder") - 8; /* pycore_gil.h: interval is before it */
    }
    if (strcmp(member, "tstate_id") == 0 && minor == 10) {
        return layout_long_bytes(build) == 4 ? 248 : 256; /* PyThreadState_GetID, 3.10.8 and 3.10.13 */
    }
    if (strcmp(member, "frame_function") == 0 && minor >= 11) {
        return minor == 11 ? 0 : 16; /* pycore_frame.h: f_func, from 3.12 f_funcobj */
    }
    if (strcmp(member, "code_framesize") == 0 && minor >= 12) {
        return layout_free_threaded(build) ? 92 : 76; /* co_framesize, behind co_nlocalsplus (cpython/code.h) */
    }
    return LAYOUT_NONE;
}

/* Members that are read in some versions only: the reader may leave out what it does not use. */
static int may_be_left_out(const char *member, unsigned minor)
{
    static const struct {
        const char *member;
        unsigned from, to; /* versions that use it */
    } rare[] = {
        {"type_dictoffset", 10, 15},  {"values_data", 11, 15},  {"values_valid", 13, 15},
        {"tstate_status", 12, 12},    {"tstate_state", 13, 15}, {"runtime_tstate_current", 10, 11},
        {"frame_localsplus", 11, 15},
    };
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++) {
        if (strcmp(member, rare[i].member) == 0) {
            return minor < rare[i].from || minor > rare[i].to;
        }
    }
    return 0;
}

static void check_members(int build, const au_layout *layout)
{
    unsigned minor = layout_version(build) >> 16 & 0xff;
    for (size_t i = 0; i < MEMBERS; i++) {
        uint32_t found = member_of(layout, i);
        int32_t want = expected(build, i);
        if (strcmp(members[i].member, "str_state") == 0) {
            continue; /* the word of it with the bits, see below */
        }
        if (found == AU_ABSENT && may_be_left_out(members[i].member, minor)) {
            continue;
        }
        /* glibc's mutex is longer on aarch64; the static tables are x86_64's, and this is a hint there */
        if (minor < 13 && strcmp(members[i].member, "runtime_tstate_current") == 0 &&
            strstr(layout_label(build), "aarch64")) {
            continue;
        }
        if (want == LAYOUT_NONE) {
            ck_assert_msg(found == AU_ABSENT, "%s: %s is %u, should be absent", layout_label(build), members[i].member,
                          found);
        } else {
            ck_assert_msg(found == (uint32_t)want, "%s: %s is %u, should be %d", layout_label(build), members[i].member,
                          found, want);
        }
    }
    ck_assert_uint_eq(layout->minor, minor);
    ck_assert_int_eq(layout->long_bytes, layout_long_bytes(build));
    ck_assert_int_eq(layout->free_threaded, layout_free_threaded(build));
    ck_assert_int_eq(layout->tagged, minor >= 14);
    ck_assert(layout->str_state == (unsigned)layout_value(build, "unicode_object.state") ||
              (layout->long_bytes == 4 && layout->free_threaded && minor >= 14));
    unsigned bits = (layout->str_state - (unsigned)layout_value(build, "unicode_object.state")) * 8;
    ck_assert_uint_eq(bits + layout->kind_bit, (unsigned)layout_value(build, "unicode_object.state_kind.bit"));
    ck_assert_uint_eq(bits + layout->compact_bit, (unsigned)layout_value(build, "unicode_object.state_compact.bit"));
    ck_assert_uint_eq(bits + layout->ascii_bit, (unsigned)layout_value(build, "unicode_object.state_ascii.bit"));
    int32_t ready = layout_value(build, "unicode_object.state_ready.bit");
    ck_assert_int_eq(layout->ready_bit, ready == LAYOUT_NONE ? -1 : ready);
    ck_assert_int_eq((int)layout->table, minor == 10 ? AU_TABLE_310 : AU_TABLE_311);
    int32_t owner = layout_value(build, "frame_owner.interpreter");
    if (owner == LAYOUT_NONE) {
        owner = layout_value(build, "frame_owner.cstack");
    }
    ck_assert_uint_eq(layout->shim_owner, owner == LAYOUT_NONE ? 255u : (unsigned)owner);
    if (minor > 10) {
        ck_assert_int_eq(layout->managed_dict, layout_value(build, "managed_dict_offset"));
    }
    if (minor == 12) {
        ck_assert_uint_eq(layout->active_mask, 1u << layout_value(build, "thread_state.status.active.bit"));
    }
    static const au_attr_style styles[] = {AU_ATTRS_DICTOFFSET, AU_ATTRS_311,    AU_ATTRS_312,
                                           AU_ATTRS_INLINE,     AU_ATTRS_INLINE, AU_ATTRS_INLINE};
    ck_assert_int_eq((int)layout->attrs, (int)styles[minor - 10]);
}

/* Every member of au_layout is on the list above. */
START_TEST(complete){
#define AU_X(name)                                                                                                     \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        while (i < MEMBERS && members[i].at != offsetof(au_layout, name)) {                                            \
            i++;                                                                                                       \
        }                                                                                                              \
        ck_assert_msg(i < MEMBERS, "%s is not compared", #name);                                                       \
    }
    AU_LAYOUT_FIELDS(AU_X)
#undef AU_X
} END_TEST

    START_TEST(builds)
{
    uint8_t table[AU_DEBUG_OFFSETS_MAX];
    uint64_t version = 0;
    memset(table, 0, sizeof table);
    size_t size = layout_table(_i, table);
    if (!size) {
        const au_layout *fixed = au_layout_static(layout_version(_i) >> 16 & 0xff, layout_long_bytes(_i));
        ck_assert(fixed != NULL);
        check_members(_i, fixed);
        ck_assert_int_eq(
            au_layout_from_debug_offsets(table, sizeof table, 0, layout_long_bytes(_i), &(au_layout){0}, &version),
            AU_OFFSETS_NO_COOKIE);
        return;
    }
    au_layout layout;
    ck_assert_int_eq(au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(_i), &layout, &version),
                     AU_OFFSETS_OK);
    ck_assert_uint_eq(version, layout_version(_i));
    check_members(_i, &layout);
    uint64_t own = (uint64_t)layout_value(_i, "runtime_state.size");
    /* the section may be larger than the state (alignment) but not smaller */
    ck_assert_int_eq(au_layout_from_debug_offsets(table, size, own, layout_long_bytes(_i), &layout, &version),
                     AU_OFFSETS_OK);
    ck_assert_int_eq(au_layout_from_debug_offsets(table, size, own + 64, layout_long_bytes(_i), &layout, &version),
                     AU_OFFSETS_OK);
    ck_assert_int_eq(au_layout_from_debug_offsets(table, size, own - 1, layout_long_bytes(_i), &layout, &version),
                     AU_OFFSETS_IMPLAUSIBLE);
    /* a longer copy changes nothing, a shorter one is not read */
    ck_assert_int_eq(au_layout_from_debug_offsets(table, sizeof table, own, layout_long_bytes(_i), &layout, &version),
                     AU_OFFSETS_OK);
    ck_assert_int_eq(au_layout_from_debug_offsets(table, size - 1, own, layout_long_bytes(_i), &layout, &version),
                     AU_OFFSETS_IMPLAUSIBLE);
}
END_TEST

static void put(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Builds with a table, one of each minor and kind, and two whose long has 4 bytes. */
static const char *const liars[] = {"3.13.18-x86_64", "3.13.18t-x86_64", "3.14.10-x86_64",   "3.14.10t-x86_64",
                                    "3.15.2-x86_64",  "3.15.2t-x86_64",  "3.13.5-win_amd64", "3.14.3-win_amd64"};

/* A table with one absurd word: refused if the reader uses the word, and never a layout with an absurd offset in it. */
START_TEST(lies)
{
    static const uint64_t absurd[] = {UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 32, 1 << 20, 0x7fffffff};
    int build = layout_find(liars[_i]);
    unsigned minor = layout_version(build) >> 16 & 0xff;
    uint8_t table[AU_DEBUG_OFFSETS_MAX];
    au_layout truth;
    au_layout layout;
    uint64_t version;
    int refused = 0;
    ck_assert_int_ge(build, 0);
    size_t size = layout_table(build, table);
    ck_assert_int_eq(au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(build), &truth, &version),
                     AU_OFFSETS_OK);
    for (size_t n = 0; layout_name(n); n++) {
        int place = layout_place(minor, layout_name(n));
        if (place < 24) {
            continue;
        }
        int big = strcmp(layout_name(n), "runtime_state.size") == 0;
        for (size_t k = 0; k < sizeof absurd / sizeof absurd[0]; k++) {
            uint8_t lie[AU_DEBUG_OFFSETS_MAX];
            memcpy(lie, table, sizeof lie);
            put(lie + place, absurd[k]);
            memset(&layout, 0xa5, sizeof layout);
            au_layout untouched = layout;
            uint64_t runtime_size = (uint64_t)layout_value(build, "runtime_state.size");
            switch (au_layout_from_debug_offsets(lie, size, big ? runtime_size : 0, layout_long_bytes(build), &layout,
                                                 &version)) {
            case AU_OFFSETS_OK: /* a word that is not used: then nothing may come of it */
                ck_assert_msg(memcmp(&layout, &truth, sizeof layout) == 0, "%s: %s = %llx is believed",
                              layout_label(build), layout_name(n), (unsigned long long)absurd[k]);
                break;
            case AU_OFFSETS_IMPLAUSIBLE:
                ck_assert_mem_eq(&layout, &untouched, sizeof layout);
                refused++;
                break;
            default:
                ck_abort_msg("%s: another verdict", layout_name(n));
            }
        }
    }
    ck_assert_int_ge(refused, 40 * 5);
}
END_TEST

/* Offsets outside their structure, and pointers that are not aligned. */
START_TEST(outside)
{
    static const char *const pointers[] = {"runtime_state.interpreters_head",
                                           "interpreter_state.next",
                                           "interpreter_state.threads_head",
                                           "thread_state.next",
                                           "thread_state.interp",
                                           "thread_state.current_frame",
                                           "thread_state.datastack_chunk",
                                           "interpreter_frame.previous",
                                           "interpreter_frame.executable",
                                           "interpreter_frame.instr_ptr",
                                           "code_object.filename",
                                           "code_object.qualname",
                                           "code_object.linetable",
                                           "pyobject.ob_type",
                                           "dict_object.ma_keys"};
    static const struct {
        const char *member, *size;
    } within[] = {
        {"runtime_state.interpreters_head", "runtime_state.size"},
        {"interpreter_state.id", "interpreter_state.size"},
        {"thread_state.current_frame", "thread_state.size"},
        {"interpreter_frame.owner", "interpreter_frame.size"},
        {"code_object.linetable", "code_object.size"},
        {"pyobject.ob_type", "pyobject.size"},
        {"unicode_object.state", "unicode_object.size"},
        {"dict_object.ma_keys", "dict_object.size"},
        {"bytes_object.ob_sval", "bytes_object.size"},
        {"long_object.ob_digit", "long_object.size"},
        {"type_object.tp_flags", "type_object.size"},
    };
    int build = layout_find(liars[_i]);
    unsigned minor = layout_version(build) >> 16 & 0xff;
    uint8_t table[AU_DEBUG_OFFSETS_MAX];
    uint8_t lie[AU_DEBUG_OFFSETS_MAX];
    au_layout layout;
    uint64_t version;
    size_t size = layout_table(build, table);
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        memcpy(lie, table, sizeof lie);
        put(lie + layout_place(minor, pointers[i]), (uint64_t)layout_value(build, pointers[i]) | 4);
        ck_assert_msg(au_layout_from_debug_offsets(lie, size, 0, layout_long_bytes(build), &layout, &version) ==
                          AU_OFFSETS_IMPLAUSIBLE,
                      "%s: unaligned %s is believed", layout_label(build), pointers[i]);
    }
    for (size_t i = 0; i < sizeof within / sizeof within[0]; i++) {
        memcpy(lie, table, sizeof lie);
        put(lie + layout_place(minor, within[i].member), (uint64_t)layout_value(build, within[i].size));
        ck_assert_msg(au_layout_from_debug_offsets(lie, size, 0, layout_long_bytes(build), &layout, &version) ==
                          AU_OFFSETS_IMPLAUSIBLE,
                      "%s: %s at the end of its structure is believed", layout_label(build), within[i].member);
    }
}
END_TEST

START_TEST(heads)
{
    uint8_t table[AU_DEBUG_OFFSETS_MAX];
    au_layout layout;
    uint64_t version = 0;
    int build = layout_find(liars[_i]);
    size_t size = layout_table(build, table);
    for (size_t len = 0; len < size; len++) {
        au_offsets_verdict v = au_layout_from_debug_offsets(table, len, 0, layout_long_bytes(build), &layout, &version);
        ck_assert_int_eq((int)v, len < 24 ? AU_OFFSETS_NO_COOKIE : AU_OFFSETS_IMPLAUSIBLE);
    }
    static const uint64_t versions[] = {0x030c07f0, 0x031000a0, 0x03ff00f0,           0x040d00f0,
                                        0x020d00f0, 0,          UINT64_C(0x1030d00f0)};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        put(table + 8, versions[i]);
        ck_assert_int_eq((int)au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(build), &layout, &version),
                         AU_OFFSETS_UNKNOWN_VERSION);
        ck_assert_uint_eq(version, versions[i]);
    }
    /* any release level of a known minor is taken */
    for (uint64_t level = 0xa0; level <= 0xf0; level += 0x10) {
        put(table + 8, (layout_version(build) & ~0xffu) | level);
        ck_assert_int_eq((int)au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(build), &layout, &version),
                         AU_OFFSETS_OK);
    }
    put(table + 16, 2);
    ck_assert_int_eq((int)au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(build), &layout, &version),
                     AU_OFFSETS_IMPLAUSIBLE);
    put(table + 16, !layout_free_threaded(build)); /* the object's size says something else */
    ck_assert_int_eq((int)au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(build), &layout, &version),
                     AU_OFFSETS_IMPLAUSIBLE);
    put(table + 16, (uint64_t)layout_free_threaded(build));
    table[0] ^= 1;
    ck_assert_int_eq((int)au_layout_from_debug_offsets(table, size, 0, layout_long_bytes(build), &layout, &version),
                     AU_OFFSETS_NO_COOKIE);
}
END_TEST

START_TEST(static_tables)
{
    for (unsigned minor = 0; minor < 40; minor++) {
        for (int long_bytes = 4; long_bytes <= 8; long_bytes += 4) {
            const au_layout *layout = au_layout_static(minor, long_bytes);
            ck_assert_int_eq(layout != NULL, minor >= 10 && minor <= 12);
            ck_assert(!layout || (layout->minor == minor && layout->long_bytes == long_bytes));
        }
    }
}
END_TEST

Suite *au_layout_suite(void)
{
    Suite *suite = suite_create("layout");
    TCase *tcase = tcase_create("layout");
    tcase_add_test(tcase, complete);
    tcase_add_loop_test(tcase, builds, 0, layout_count());
    tcase_add_loop_test(tcase, lies, 0, sizeof liars / sizeof liars[0]);
    tcase_add_loop_test(tcase, outside, 0, sizeof liars / sizeof liars[0]);
    tcase_add_loop_test(tcase, heads, 0, sizeof liars / sizeof liars[0]);
    tcase_add_test(tcase, static_tables);
    suite_add_tcase(suite, tcase);
    return suite;
}
