/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tests/objfile/pe_bytes.h"
#include "tests/objfile/source.h"

static uint8_t image[PE_BYTES_MAX];
static au_obj obj;
static bytes from;

static const uint64_t base = 0x6fffdeadb0000;

static au_obj_result open_bytes(size_t len, int in_memory)
{
    from = (bytes){.data = image, .len = len};
    au_obj_source source = {.read = read_bytes, .baton = &from, .in_memory = in_memory, .base = base};
    return au_obj_init(&obj, &source);
}

static size_t make(const pe_plan *plan, int in_memory)
{
    return in_memory ? pe_memory(plan, base, image) : pe_file(plan, image);
}

static void open_plan(const pe_plan *plan, int in_memory)
{
    ck_assert_int_eq(open_bytes(make(plan, in_memory), in_memory), AU_OBJ_OK);
}

static void expect_section(const char *name, uint64_t vaddr, uint64_t size)
{
    au_obj_range range = {0};
    ck_assert_int_eq(au_obj_find_section(&obj, name, &range), AU_OBJ_OK);
    ck_assert_uint_eq(range.vaddr, vaddr);
    ck_assert_uint_eq(range.size, size);
}

static void expect_symbol(const char *name, uint64_t vaddr)
{
    au_obj_range range = {0, 99};
    ck_assert_msg(au_obj_find_symbol(&obj, name, &range) == AU_OBJ_OK, "%s is not found", name);
    ck_assert_uint_eq(range.vaddr, vaddr);
    ck_assert_uint_eq(range.size, 0);
}

static void expect_no_symbol(const char *name, au_obj_result result)
{
    au_obj_range range;
    ck_assert_int_eq(au_obj_find_symbol(&obj, name, &range), result);
}

static void expect_no_section(const char *name, au_obj_result result)
{
    au_obj_range range;
    ck_assert_int_eq(au_obj_find_section(&obj, name, &range), result);
}

static void expect_build_id(void)
{
    uint8_t id[32];
    size_t len = 0;
    ck_assert_int_eq(au_obj_build_id(&obj, id, sizeof id, &len), AU_OBJ_OK);
    ck_assert_uint_eq(len, 20);
    for (uint8_t i = 0; i < 16; i++) {
        ck_assert_uint_eq(id[i], 0xb0u + i);
    }
    ck_assert_int_eq(memcmp(id + 16, "\3\0\0\0", 4), 0);
    ck_assert_int_eq(au_obj_build_id(&obj, id, 5, &len), AU_OBJ_OK);
    ck_assert_uint_eq(len, 5);
}

/** All facts of a sound image: both word sizes, a DLL and a program, names in order and not, file and memory. */
START_TEST(invented)
{
    for (int bits = 32; bits <= 64; bits += 32) {
        for (int variety = 0; variety < 8; variety++) {
            int in_memory = variety >> 2;
            pe_plan plan = {.bits = bits, .program = variety & 1, .unsorted = variety >> 1 & 1};
            open_plan(&plan, in_memory);
            ck_assert_int_eq(obj.format, AU_OBJ_FORMAT_PE);
            ck_assert_int_eq(obj.bits, bits);
            ck_assert_int_eq(obj.long_bytes, 4);
            ck_assert_int_eq(obj.type, plan.program ? AU_OBJ_TYPE_EXEC : AU_OBJ_TYPE_DYNAMIC);
            ck_assert_int_eq(obj.cpu, bits == 64 ? AU_OBJ_CPU_X86_64 : AU_OBJ_CPU_X86);
            ck_assert_uint_eq(obj.machine, bits == 64 ? 0x8664 : 0x14c);
            ck_assert_uint_eq(obj.low_vaddr, 0);
            ck_assert_uint_eq(obj.high_vaddr, PE_RDATA + 0x1000);
            ck_assert_uint_eq(obj.image_vaddr, 0);

            expect_section("PyRuntime", PE_RUNTIME, PE_RUNTIME_SIZE);
            expect_section("AsyncioDebug", PE_ASYNCIO, PE_ASYNCIO_SIZE);
            expect_section(".data", PE_DATA, PE_DATA_SIZE);
            expect_no_section("PyRunt", AU_OBJ_NOT_FOUND);
            expect_section("PyRuntim_", PE_RUNTIME, PE_RUNTIME_SIZE); /* eight characters are all there is */
            expect_no_section("", AU_OBJ_NOT_FOUND);
            if (in_memory) {
                expect_no_section("long_name_of_a_section", AU_OBJ_NOT_FOUND); /* the string table is not loaded */
            } else {
                expect_section("long_name_of_a_section", PE_LONG, PE_LONG_SIZE);
            }

            expect_symbol("_PyRuntime", PE_RUNTIME);
            expect_symbol("Py_Version", PE_VERSION);
            expect_symbol("at_the_end", PE_RDATA - 1);
            expect_symbol("_not_asked_for", PE_TEXT);
            expect_symbol("\xc3\xa9trange", PE_TEXT + 8);
            static const char *const none[] = {"forwarded", "nowhere", "", "_PyRuntim", "_PyRuntime_", "A", "\xff"};
            for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
                expect_no_symbol(none[i], AU_OBJ_NOT_FOUND);
            }
            expect_build_id();
            char name[32];
            ck_assert_int_eq(au_obj_soname(&obj, name, sizeof name), AU_OBJ_OK);
            ck_assert_str_eq(name, "invented313.dll");
            ck_assert_int_eq(au_obj_soname(&obj, name, 16), AU_OBJ_OK);
            ck_assert_int_eq(au_obj_soname(&obj, name, 15), AU_OBJ_MALFORMED);
            ck_assert_str_eq(name, "");
            ck_assert_int_eq(au_obj_soname(&obj, name, 0), AU_OBJ_NOT_FOUND);
            uint64_t entry;
            ck_assert_int_eq(au_obj_debug_entry(&obj, &entry), AU_OBJ_NOT_FOUND);
            ck_assert_int_eq(au_obj_has_interpreter(&obj), 0);
        }
    }
}
END_TEST

START_TEST(processors)
{
    static const struct {
        uint16_t machine;
        au_obj_cpu cpu;
    } cases[] = {{0x8664, AU_OBJ_CPU_X86_64},
                 {0xaa64, AU_OBJ_CPU_AARCH64},
                 {0x14c, AU_OBJ_CPU_X86},
                 {0x1c4, AU_OBJ_CPU_ARM},
                 {0x200, AU_OBJ_CPU_OTHER}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pe_plan plan = {.bits = 64, .machine = cases[i].machine};
        open_plan(&plan, 0);
        ck_assert_int_eq(obj.cpu, cases[i].cpu);
        ck_assert_uint_eq(obj.machine, cases[i].machine);
    }
}
END_TEST

START_TEST(content_at_vaddr)
{
    pe_plan plan = {.bits = 64};
    uint8_t buf[0x400];
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        open_plan(&plan, in_memory);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_VERSION, buf, 4), AU_OBJ_OK);
        ck_assert_int_eq(memcmp(buf, "\xf0\x05\x0d\x03", 4), 0);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_RUNTIME + 5, buf, 16), AU_OBJ_OK);
        ck_assert_uint_eq(buf[0], 6);
        ck_assert_uint_eq(buf[15], 21);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, 0, buf, 2), AU_OBJ_OK); /* the headers are loaded too */
        ck_assert_int_eq(memcmp(buf, "MZ", 2), 0);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_DATA, buf, 0x200), AU_OBJ_OK);
        /* What follows the raw data is zero in memory, and nothing in the file. */
        au_obj_result rest = in_memory ? AU_OBJ_OK : AU_OBJ_NOT_FOUND;
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_DATA, buf, 0x201), rest);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_DATA + 0x200, buf, 1), rest);
        /* So is what pads them. */
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_TEXT, buf, PE_TEXT_SIZE), AU_OBJ_OK);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_TEXT, buf, PE_TEXT_SIZE + 1), rest);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_TEXT - 1, buf, 2), rest);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, obj.high_vaddr - 1, buf, 2), AU_OBJ_NOT_FOUND);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, obj.high_vaddr, buf, 1), AU_OBJ_NOT_FOUND);
        ck_assert_int_eq(au_obj_read_vaddr(&obj, UINT64_MAX - 3, buf, 16), AU_OBJ_NOT_FOUND);
    }
    /* Raw data that the file has not. */
    size_t len = pe_file(&plan, image);
    pe_put(image, pe_sections_at(&plan) + 20, 0xfffff000, 4);
    ck_assert_int_eq(open_bytes(len, 0), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_TEXT, buf, 16), AU_OBJ_UNREADABLE);
}
END_TEST

/** As many names as a large library has: in order they are found with few reads, and a name that is not there too. */
START_TEST(many_exports)
{
    enum { FEW = 34 }; /* two windows for each of 14 steps, and some; to look at all of them takes 36 more */
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        for (int unsorted = 0; unsorted < 2; unsorted++) {
            pe_plan plan = {.bits = 64, .more_exports = 12000, .unsorted = unsorted};
            open_plan(&plan, in_memory);
            for (unsigned i = 0; i < 12000; i += 37) {
                char name[16];
                snprintf(name, sizeof name, "A%06u", i);
                from.reads = 0;
                expect_symbol(name, PE_TEXT + 16);
                ck_assert_uint_lt(from.reads, unsorted ? 60000 : FEW);
            }
            expect_symbol("_PyRuntime", PE_RUNTIME);
            from.reads = 0;
            expect_symbol("\xc3\xa9trange", PE_TEXT + 8); /* bytes have no sign */
            ck_assert_uint_lt(from.reads, unsorted ? 60000 : FEW);
            from.reads = 0;
            expect_no_symbol("A012000", AU_OBJ_NOT_FOUND);
            ck_assert_uint_lt(from.reads, unsorted ? 60000 : 100);
            /* Soon nothing can be read any more: that is not tried for each name. */
            from = (bytes){.data = image, .len = from.len, .fail_from = 4, .fail_count = SIZE_MAX};
            expect_no_symbol("A000001", AU_OBJ_UNREADABLE);
            ck_assert_uint_lt(from.reads, FEW);
        }
    }
}
END_TEST

/* ---- lies -------------------------------------------------------------------------------------------------------- */

/** A number in a header, and what becomes of it. */
typedef struct lie {
    size_t at;
    uint64_t value;
    size_t size;
    au_obj_result init, runtime, symbol, build_id, soname;
} lie;

START_TEST(lies)
{
    const au_obj_result OK = AU_OBJ_OK, NONE = AU_OBJ_NOT_FOUND, BAD = AU_OBJ_MALFORMED, GAP = AU_OBJ_UNREADABLE;
    const au_obj_result NOT = AU_OBJ_NOT_RECOGNISED, ROM = AU_OBJ_UNSUPPORTED;
    pe_plan plan = {.bits = 64};
    size_t o = PE_OPTIONAL_AT, h = pe_sections_at(&plan), runtime = h + PE_RUNTIME_INDEX * PE_SECTION_HEADER;
    size_t e = PE_RDATA_FILE + PE_EXPORTS - PE_RDATA, d = PE_RDATA_FILE + 2 * 28;
    const lie cases[] = {
        {0x3c, 0xfffffff0, 4, NOT, NOT, NOT, NOT, NOT},
        {0x3c, 0x84, 4, NOT, NOT, NOT, NOT, NOT},
        {PE_SIGNATURE_AT, 0x454e, 2, NOT, NOT, NOT, NOT, NOT},
        {PE_COFF_AT + 2, 1025, 2, BAD, NOT, NOT, NOT, NOT},
        {PE_COFF_AT + 2, 1024, 2, OK, OK, OK, OK, OK}, /* more than there are, behind those that are asked for */
        {PE_COFF_AT + 2, 0, 2, OK, NONE, BAD, BAD, BAD},
        {PE_COFF_AT + 16, 0, 2, BAD, NOT, NOT, NOT, NOT},
        {PE_COFF_AT + 16, 111, 2, BAD, NOT, NOT, NOT, NOT},
        {PE_COFF_AT + 16, 112, 2, OK, NONE, NONE, NONE, NONE}, /* no directories, and section headers elsewhere */
        {PE_COFF_AT + 16, 0xffff, 2, OK, GAP, GAP, GAP, GAP},
        {o, 0x107, 2, ROM, NOT, NOT, NOT, NOT},
        {o, 0x30b, 2, BAD, NOT, NOT, NOT, NOT},
        {o + 56, 0, 4, BAD, NOT, NOT, NOT, NOT},
        {o + 56, PE_RUNTIME, 4, OK, BAD, BAD, BAD, BAD},
        {o + 56, PE_RUNTIME + PE_RUNTIME_SIZE - 1, 4, OK, BAD, BAD, BAD, BAD},
        {o + 56, 0xffffffff, 4, OK, OK, OK, OK, OK},
        {o + 60, 0xffffffff, 4, OK, OK, GAP, GAP, GAP}, /* "all of it is headers" */
        {o + 108, 0xffffffff, 4, OK, OK, OK, OK, OK},   /* bounded by the size of the header */
        {o + 108, 6, 4, OK, OK, OK, NONE, OK},
        {o + 108, 0, 4, OK, OK, NONE, NONE, NONE},
        {o + 112, 0, 4, OK, OK, NONE, OK, NONE},
        {o + 112, 0xfffffff0, 4, OK, OK, BAD, OK, BAD},
        {o + 112, PE_RDATA - 20, 4, OK, OK, BAD, OK, BAD},
        {o + 112 + 48, 0xfffffff0, 4, OK, OK, OK, BAD, OK},
        {o + 112 + 52, 2 * 28, 4, OK, OK, OK, NONE, OK},
        {o + 112 + 52, 0xffffffff, 4, OK, OK, OK, OK, OK},
        {runtime, 0x51, 1, OK, NONE, OK, OK, OK},
        {runtime + 7, 0x4e, 1, OK, NONE, OK, OK, OK},
        {runtime + 8, 0xffffffff, 4, OK, BAD, OK, OK, OK},
        {runtime + 8, 0, 4, OK, OK, OK, OK, OK},
        {runtime + 12, 0xfffff000, 4, OK, BAD, OK, OK, OK},
        {e + 12, 0, 4, OK, OK, OK, OK, NONE},
        {e + 12, 0xffffff00, 4, OK, OK, OK, OK, BAD},
        {e + 20, 0, 4, OK, OK, BAD, OK, OK},
        {e + 20, 0xffffffff, 4, OK, OK, OK, OK, OK},
        {e + 24, 0, 4, OK, OK, NONE, OK, OK},
        {e + 24, 0x10001, 4, OK, OK, BAD, OK, OK},
        {e + 24, 0xffffffff, 4, OK, OK, BAD, OK, OK},
        {e + 28, 0xffffff00, 4, OK, OK, BAD, OK, OK},
        {e + 32, 0xffffff00, 4, OK, OK, BAD, OK, OK},
        {e + 36, 0xffffff00, 4, OK, OK, BAD, OK, OK},
        {d + 12, 3, 4, OK, OK, OK, NONE, OK},
        {d + 16, 23, 4, OK, OK, OK, NONE, OK},
        {d + 24, 0xffffff00, 4, OK, OK, OK, GAP, OK},
        {d + 24, 0, 4, OK, OK, OK, NONE, OK},
        {PE_RDATA_FILE + PE_RSDS - PE_RDATA, 0x4e, 1, OK, OK, OK, NONE, OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const lie *c = &cases[i];
        size_t len = pe_file(&plan, image);
        pe_put(image, c->at, c->value, c->size);
        au_obj_result init = open_bytes(len, 0);
        au_obj_range range;
        uint8_t id[20];
        char name[32];
        size_t id_len;
        au_obj_result got[] = {init, au_obj_find_section(&obj, "PyRuntime", &range),
                               au_obj_find_symbol(&obj, "_PyRuntime", &range),
                               au_obj_build_id(&obj, id, sizeof id, &id_len), au_obj_soname(&obj, name, sizeof name)};
        au_obj_result want[] = {c->init, c->runtime, c->symbol, c->build_id, c->soname};
        static const char *const what[] = {"init", "section", "symbol", "build id", "soname"};
        for (size_t k = 0; k < 5; k++) {
            ck_assert_msg(got[k] == want[k], "0x%llx at 0x%zx: %s gives %d instead of %d", (unsigned long long)c->value,
                          c->at, what[k], (int)got[k], (int)want[k]);
        }
        ck_assert_uint_lt(from.reads, 2000);
    }
}
END_TEST

/** An image in memory: debug information that is not loaded, and one that lies about its size. */
START_TEST(lies_in_memory)
{
    pe_plan plan = {.bits = 64};
    uint8_t id[20];
    size_t id_len;
    size_t len = pe_memory(&plan, base, image);
    pe_put(image, PE_DEBUG + 2 * 28 + 20, 0, 4);
    ck_assert_int_eq(open_bytes(len, 1), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_build_id(&obj, id, sizeof id, &id_len), AU_OBJ_NOT_FOUND);
    pe_put(image, PE_DEBUG + 2 * 28 + 20, obj.high_vaddr - 8, 4);
    ck_assert_int_eq(open_bytes(len, 1), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_build_id(&obj, id, sizeof id, &id_len), AU_OBJ_MALFORMED);
    pe_put(image, PE_DEBUG + 2 * 28 + 20, 0xfffffe00, 4);
    pe_put(image, PE_OPTIONAL_AT + 56, 0xffffffff, 4);
    ck_assert_int_eq(open_bytes(len, 1), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_build_id(&obj, id, sizeof id, &id_len), AU_OBJ_UNREADABLE);
    expect_symbol("_PyRuntime", PE_RUNTIME);
    char name[16];
    pe_put(image, PE_EXPORTS + 12, 0xfffffe00, 4);
    ck_assert_int_eq(open_bytes(len, 1), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_soname(&obj, name, sizeof name), AU_OBJ_UNREADABLE);
    ck_assert_str_eq(name, "");
    /* Where the file has its symbols, there is something else in memory, even if it looks like a string table. */
    pe_put(image, PE_COFF_AT + 8, PE_DATA, 4);
    pe_put(image, PE_COFF_AT + 12, 0, 4);
    pe_put(image, PE_DATA, 0x100, 4);
    strcpy((char *)image + PE_DATA + 12, "long_name_of_a_section");
    ck_assert_int_eq(open_bytes(len, 1), AU_OBJ_OK);
    expect_no_section("long_name_of_a_section", AU_OBJ_NOT_FOUND);
}
END_TEST

/** No more entries than any image has are looked at: the record behind the 64th is not found. */
START_TEST(many_debug_entries)
{
    pe_plan plan = {.bits = 64};
    uint8_t id[20];
    size_t id_len;
    for (size_t before = 63; before < 65; before++) {
        size_t len = pe_memory(&plan, base, image);
        pe_put(image, PE_OPTIONAL_AT + 112 + 48, PE_DATA, 4);
        pe_put(image, PE_OPTIONAL_AT + 112 + 52, 0xffffffff, 4);
        memset(image + PE_DATA, 0, PE_DATA_SIZE);
        memcpy(image + PE_DATA + before * 28, image + PE_DEBUG + 2 * 28, 28);
        ck_assert_int_eq(open_bytes(len, 1), AU_OBJ_OK);
        ck_assert_int_eq(au_obj_build_id(&obj, id, sizeof id, &id_len), before < 64 ? AU_OBJ_OK : AU_OBJ_NOT_FOUND);
    }
}
END_TEST

/** Sizes and names that are not there. */
START_TEST(odd_sections)
{
    pe_plan plan = {.bits = 64};
    size_t len = pe_file(&plan, image), runtime = pe_sections_at(&plan) + PE_RUNTIME_INDEX * PE_SECTION_HEADER;
    pe_put(image, runtime + 8, 0, 4);
    ck_assert_int_eq(open_bytes(len, 0), AU_OBJ_OK);
    expect_section("PyRuntime", PE_RUNTIME, 0x200); /* of the raw data */
    uint8_t buf[0x200];
    ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_RUNTIME, buf, sizeof buf), AU_OBJ_OK);
    pe_put(image, runtime, 0, 8);
    ck_assert_int_eq(open_bytes(len, 0), AU_OBJ_OK);
    expect_no_section("", AU_OBJ_NOT_FOUND);
    expect_no_section("PyRuntime", AU_OBJ_NOT_FOUND);
    /* Where two overlap the first one counts, whatever was asked before. */
    len = pe_file(&plan, image);
    size_t other = pe_sections_at(&plan) + PE_LONG_INDEX * PE_SECTION_HEADER;
    pe_put(image, other + 12, PE_RUNTIME + 0x140, 4);
    image[PE_RUNTIME_FILE + 0x144] = 1;
    image[PE_LONG_FILE + 4] = 2;
    image[PE_LONG_FILE + 0x20] = 3;
    ck_assert_int_eq(open_bytes(len, 0), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_RUNTIME + 0x160, buf, 1), AU_OBJ_OK);
    ck_assert_uint_eq(buf[0], 3);
    ck_assert_int_eq(au_obj_read_vaddr(&obj, PE_RUNTIME + 0x144, buf, 1), AU_OBJ_OK);
    ck_assert_uint_eq(buf[0], 1);
}
END_TEST

/** Names in the string table: what is no number, and what leaves the table. */
START_TEST(long_names)
{
    pe_plan plan = {.bits = 64};
    static const struct {
        const char *name;
        int found;
    } cases[] = {{"/12", 1},  {"/0000012", 1}, {"/9", 0}, {"/4", 0},       {"/0", 0},  {"/", 0},
                 {"/12x", 0}, {"/x12", 0},     {"12", 0}, {"/9999999", 0}, {"//12", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t len = pe_file(&plan, image);
        uint8_t *name = image + pe_sections_at(&plan) + PE_LONG_INDEX * PE_SECTION_HEADER;
        memset(name, 0, 8);
        memcpy(name, cases[i].name, strlen(cases[i].name));
        ck_assert_int_eq(open_bytes(len, 0), AU_OBJ_OK);
        expect_no_section("long_name_of_a_section", cases[i].found ? AU_OBJ_OK : AU_OBJ_NOT_FOUND);
        expect_section("PyRuntime", PE_RUNTIME, PE_RUNTIME_SIZE);
    }
    /* The size of the table is no name, even if it looks like one. */
    for (int i = 0; i < 2; i++) {
        size_t whole = pe_file(&plan, image), table = whole - 4 - 8 - sizeof "long_name_of_a_section";
        pe_put(image, table, 0x6261, 4);
        pe_put(image, pe_sections_at(&plan) + PE_LONG_INDEX * PE_SECTION_HEADER, i ? 0x302f : 0x2f, 8);
        ck_assert_int_eq(open_bytes(whole, 0), AU_OBJ_OK);
        expect_no_section("ab", AU_OBJ_NOT_FOUND);
    }
    /* The table ends one byte before the name does; the table is not there; a count leads far beyond it. */
    size_t len = pe_file(&plan, image), strings = len - 4 - 8 - sizeof "long_name_of_a_section";
    for (int i = 0; i < 3; i++) {
        pe_file(&plan, image);
        if (i == 0) {
            pe_put(image, strings, 4 + 8 + sizeof "long_name_of_a_section" - 1, 4);
        } else {
            pe_put(image, PE_COFF_AT + (i == 1 ? 8 : 12), i == 1 ? 0 : 0xffffffff, 4);
        }
        ck_assert_int_eq(open_bytes(len, 0), AU_OBJ_OK);
        expect_no_section("long_name_of_a_section", AU_OBJ_NOT_FOUND);
    }
}
END_TEST

/** A name without an end, one that cannot be found, and an index that there is not hide no other symbol. */
START_TEST(bad_names)
{
    pe_plan plan = {.bits = 64};
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        size_t len = make(&plan, in_memory), e = in_memory ? PE_EXPORTS : PE_RDATA_FILE + PE_EXPORTS - PE_RDATA;
        size_t names = e + 40 + 4 * 9, ordinals = names + 4 * 7;
        pe_put(image, names + 4 * 3, 0xfffffff0, 4); /* the middle one, where the search begins */
        ck_assert_int_eq(open_bytes(len, in_memory), AU_OBJ_OK);
        expect_symbol("_PyRuntime", PE_RUNTIME);
        expect_symbol("\xc3\xa9trange", PE_TEXT + 8);
        expect_no_symbol("absent", AU_OBJ_MALFORMED);
        make(&plan, in_memory);
        pe_put(image, ordinals + 2, 9, 2);
        ck_assert_int_eq(open_bytes(len, in_memory), AU_OBJ_OK);
        expect_no_symbol("_PyRuntime", AU_OBJ_MALFORMED);
        expect_symbol("Py_Version", PE_VERSION);
        pe_put(image, ordinals + 2, 8, 2);
        ck_assert_int_eq(open_bytes(len, in_memory), AU_OBJ_OK);
        expect_symbol("_PyRuntime", PE_VERSION);
        pe_put(image, e + 40 + 4 * 8, obj.high_vaddr, 4);
        ck_assert_int_eq(open_bytes(len, in_memory), AU_OBJ_OK);
        expect_no_symbol("Py_Version", AU_OBJ_MALFORMED);
    }
}
END_TEST

/** Each byte of headers and tables replaced by some that hurt, in a file and in memory. */
START_TEST(each_byte)
{
    static const uint8_t evil[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    static uint8_t good[PE_BYTES_MAX];
    answers got;
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        for (int bits = 32; bits <= 64; bits += 32) {
            pe_plan plan = {.bits = bits};
            size_t len = make(&plan, in_memory), accepted = 0;
            memcpy(good, image, len);
            for (size_t at = 0; at < len; at++) {
                if (good[at] == 0 && (at & 3) > 1 && at > 0x400) {
                    continue; /* padding, mostly */
                }
                for (size_t e = 0; e < sizeof evil; e++) {
                    image[at] = evil[e];
                    bytes source = {.data = image, .len = len};
                    ask_everything(&obj, &source, in_memory, base, &got);
                    accepted += got.init == AU_OBJ_OK;
                    ck_assert_uint_lt(source.reads, 20000); /* no walk that a header can make endless */
                    image[at] = good[at];
                }
            }
            ck_assert_uint_gt(accepted, 1000);
        }
    }
}
END_TEST

START_TEST(cut_anywhere)
{
    answers truth, got;
    for (int bits = 32; bits <= 64; bits += 32) {
        pe_plan plan = {.bits = bits};
        size_t whole = pe_file(&plan, image);
        bytes source = {.data = image, .len = whole};
        ask_everything(&obj, &source, 0, base, &truth);
        for (size_t len = 0; len < whole; len++) {
            source = (bytes){.data = image, .len = len};
            ask_everything(&obj, &source, 0, base, &got);
            expect_truth_or_failure(&got, &truth, 0);
            ck_assert_int_eq(got.init == AU_OBJ_OK, len >= PE_OPTIONAL_AT + 112 + 56 - (bits == 32 ? 16 : 0));
        }
    }
}
END_TEST

/** Reads that fail and reads that are short. */
START_TEST(faults)
{
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        for (int bits = 32; bits <= 64; bits += 32) {
            for (int unsorted = 0; unsorted < 2; unsorted++) {
                pe_plan plan = {.bits = bits, .unsorted = unsorted};
                size_t len = make(&plan, in_memory);
                ck_assert_uint_gt(inject_faults(&obj, image, len, in_memory, base), 5);
            }
        }
    }
}
END_TEST

TCase *pe_cases(void)
{
    TCase *tcase = tcase_create("pe");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, invented);
    tcase_add_test(tcase, processors);
    tcase_add_test(tcase, content_at_vaddr);
    tcase_add_test(tcase, many_exports);
    tcase_add_test(tcase, lies);
    tcase_add_test(tcase, lies_in_memory);
    tcase_add_test(tcase, many_debug_entries);
    tcase_add_test(tcase, odd_sections);
    tcase_add_test(tcase, long_names);
    tcase_add_test(tcase, bad_names);
    tcase_add_test(tcase, each_byte);
    tcase_add_test(tcase, cut_anywhere);
    tcase_add_test(tcase, faults);
    return tcase;
}
