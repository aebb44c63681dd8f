/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "objfile/objfile.h"
#include "tests/objfile/elf_bytes.h"
#include "tests/objfile/source.h"

static uint8_t image[ELF_BYTES_MAX];
static au_obj obj;

static au_obj_result open_file(bytes *from, const elf_plan *plan)
{
    *from = (bytes){.data = image, .len = elf_file(plan, image)};
    au_obj_source source = {.read = read_bytes, .baton = from};
    return au_obj_init(&obj, &source);
}

static void expect_range(au_obj_result result, const au_obj_range *range, uint64_t vaddr, uint64_t size)
{
    ck_assert_int_eq(result, AU_OBJ_OK);
    ck_assert_uint_eq(range->vaddr, vaddr);
    ck_assert_uint_eq(range->size, size);
}

static void expect_common(uint64_t v)
{
    au_obj_range range = {0};
    uint8_t id[32];
    size_t len = 0;
    char soname[32];
    expect_range(au_obj_find_symbol(&obj, "_PyRuntime", &range), &range, v + PLAN_RUNTIME, PLAN_RUNTIME_SIZE);
    expect_range(au_obj_find_symbol(&obj, "Py_Version", &range), &range, v + 0x2300, 8);
    ck_assert_int_eq(au_obj_find_symbol(&obj, "not_here_x", &range), AU_OBJ_NOT_FOUND); /* undefined in it */
    ck_assert_int_eq(au_obj_find_symbol(&obj, "_PyRuntim", &range), AU_OBJ_NOT_FOUND);
    ck_assert_int_eq(au_obj_find_symbol(&obj, "", &range), AU_OBJ_NOT_FOUND);
    ck_assert_int_eq(au_obj_build_id(&obj, id, sizeof id, &len), AU_OBJ_OK);
    ck_assert_uint_eq(len, 20);
    ck_assert_uint_eq(id[0], 0xa0);
    ck_assert_uint_eq(id[19], 0xa0 + 19);
    ck_assert_int_eq(au_obj_build_id(&obj, id, 5, &len), AU_OBJ_OK);
    ck_assert_uint_eq(len, 5);
    ck_assert_int_eq(au_obj_soname(&obj, soname, sizeof soname), AU_OBJ_OK);
    ck_assert_str_eq(soname, "libinvented.so.1");
    ck_assert_int_eq(au_obj_soname(&obj, soname, 5), AU_OBJ_MALFORMED);
}

/** Every way to find a symbol, both word sizes, both kinds of address. */
START_TEST(invented_files)
{
    for (int bits = 32; bits <= 64; bits += 32) {
        for (int way = 0; way < 4; way++) {
            for (int exec = 0; exec < 2; exec++) {
                elf_plan plan = {.bits = bits,
                                 .vaddr = exec ? 0x400000 : 0,
                                 .sections = 1,
                                 .gnu_hash = way == 0,
                                 .hash = way == 1 || way == 0,
                                 .dynsym_sections = way != 3};
                if (way == 3) {
                    plan.hash = 1; /* hash alone, no symbol sections */
                }
                bytes from;
                ck_assert_int_eq(open_file(&from, &plan), AU_OBJ_OK);
                ck_assert_int_eq(obj.format, AU_OBJ_FORMAT_ELF);
                ck_assert_int_eq(obj.bits, bits);
                ck_assert_int_eq(obj.long_bytes, bits / 8);
                ck_assert_int_eq(obj.type, exec ? AU_OBJ_TYPE_EXEC : AU_OBJ_TYPE_DYNAMIC);
                ck_assert_int_eq(obj.cpu, bits == 64 ? AU_OBJ_CPU_X86_64 : AU_OBJ_CPU_X86);
                ck_assert_uint_eq(obj.low_vaddr, plan.vaddr);
                ck_assert_uint_eq(obj.high_vaddr, plan.vaddr + PLAN_END);
                ck_assert_uint_eq(obj.image_vaddr, plan.vaddr);
                expect_common(plan.vaddr);
                au_obj_range range = {0};
                expect_range(au_obj_find_section(&obj, "PyRuntime", &range), &range, plan.vaddr + PLAN_RUNTIME,
                             PLAN_RUNTIME_SIZE);
                expect_range(au_obj_find_section(&obj, "AsyncioDebug", &range), &range, plan.vaddr + PLAN_ASYNCIO,
                             PLAN_ASYNCIO_SIZE);
                ck_assert_int_eq(au_obj_find_section(&obj, "PyRunt", &range), AU_OBJ_NOT_FOUND);
                ck_assert_int_eq(au_obj_find_symbol(&obj, "ot_here_x", &range),
                                 plan.dynsym_sections ? AU_OBJ_OK : AU_OBJ_NOT_FOUND); /* in .symtab only */
            }
        }
    }
}
END_TEST

START_TEST(no_sections)
{
    elf_plan plan = {.bits = 64, .gnu_hash = 1};
    bytes from;
    au_obj_range range;
    ck_assert_int_eq(open_file(&from, &plan), AU_OBJ_OK);
    ck_assert_int_eq(au_obj_find_section(&obj, "PyRuntime", &range), AU_OBJ_NOT_FOUND);
    expect_common(0);
}
END_TEST

/** A loaded image, with and without a loader that relocates the dynamic section (glibc does, musl does not). */
START_TEST(invented_memory)
{
    for (int bits = 32; bits <= 64; bits += 32) {
        for (int relocated = 0; relocated < 2; relocated++) {
            for (int exec = 0; exec < 2; exec++) {
                elf_plan plan = {.bits = bits, .vaddr = exec ? 0x400000 : 0, .sections = 1, .gnu_hash = 1};
                uint64_t base = exec ? plan.vaddr : bits == 64 ? 0x7f1234560000 : 0x56780000;
                bytes from = {.data = image, .len = elf_memory(&plan, base, relocated, image)};
                au_obj_source source = {.read = read_bytes, .baton = &from, .in_memory = 1, .base = base};
                ck_assert_int_eq(au_obj_init(&obj, &source), AU_OBJ_OK);
                expect_common(plan.vaddr);
                au_obj_range range;
                ck_assert_int_eq(au_obj_find_section(&obj, "PyRuntime", &range), AU_OBJ_NOT_FOUND);
            }
        }
    }
}
END_TEST

START_TEST(content_at_vaddr)
{
    elf_plan plan = {.bits = 64, .vaddr = 0x10000, .sections = 1, .gnu_hash = 1};
    bytes from;
    ck_assert_int_eq(open_file(&from, &plan), AU_OBJ_OK);
    image[PLAN_RUNTIME - PLAN_FILE_SHIFT + 5] = 0x5a;
    uint8_t buf[16];
    ck_assert_int_eq(au_obj_read_vaddr(&obj, 0x10000 + PLAN_RUNTIME, buf, 16), AU_OBJ_OK);
    ck_assert_uint_eq(buf[5], 0x5a);
    ck_assert_int_eq(au_obj_read_vaddr(&obj, 0x10000 + 0x1800, buf, 16), AU_OBJ_NOT_FOUND); /* between the segments */
    ck_assert_int_eq(au_obj_read_vaddr(&obj, UINT64_MAX - 3, buf, 16), AU_OBJ_NOT_FOUND);
}
END_TEST

START_TEST(other_formats)
{
    static const struct {
        const char *head;
        au_obj_result result;
    } cases[] = {{"MZ\x90\0", AU_OBJ_NOT_RECOGNISED},         {"\xcf\xfa\xed\xfe", AU_OBJ_NOT_RECOGNISED},
                 {"\xca\xfe\xba\xbe", AU_OBJ_NOT_RECOGNISED}, {"\177ELF\2\2\1", AU_OBJ_UNSUPPORTED},
                 {"\177ELF\1\2\1", AU_OBJ_UNSUPPORTED},       {"\177ELF\3\1\1", AU_OBJ_MALFORMED},
                 {"\177ELF\2\3\1", AU_OBJ_MALFORMED},         {"#!/bin/sh\n", AU_OBJ_NOT_RECOGNISED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(image, 0, 4096);
        memcpy(image, cases[i].head, strlen(cases[i].head));
        bytes from = {.data = image, .len = 4096};
        au_obj_source source = {.read = read_bytes, .baton = &from};
        ck_assert_int_eq(au_obj_init(&obj, &source), cases[i].result);
        au_obj_range range;
        ck_assert_int_ne(au_obj_find_symbol(&obj, "_PyRuntime", &range), AU_OBJ_OK);
        ck_assert(au_obj_result_text(cases[i].result)[0] != 0);
    }
    bytes none = {.data = image};
    au_obj_source source = {.read = read_bytes, .baton = &none};
    ck_assert_int_eq(au_obj_init(&obj, &source), AU_OBJ_NOT_RECOGNISED);
}
END_TEST

/** Each byte of headers and tables replaced by some that hurt, in a file and in memory. */
START_TEST(lying_headers)
{
    static const uint8_t evil[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    static uint8_t good[ELF_BYTES_MAX];
    for (int memory = 0; memory < 2; memory++) {
        for (int bits = 32; bits <= 64; bits += 32) {
            elf_plan plan = {.bits = bits, .sections = 1, .gnu_hash = 1, .hash = 1, .dynsym_sections = 1};
            uint64_t base = 0x70000000;
            size_t len = memory ? elf_memory(&plan, base, 1, good) : elf_file(&plan, good);
            for (size_t at = 0; at < len; at++) {
                if (good[at] == 0 && at > 0x200 && (at & 7)) {
                    continue; /* padding, mostly */
                }
                for (size_t e = 0; e < sizeof evil; e++) {
                    memcpy(image, good, len);
                    image[at] = evil[e];
                    bytes from = {.data = image, .len = len};
                    answers got;
                    ask_everything(&obj, &from, memory, base, &got);
                    ck_assert_uint_lt(from.reads, 200000); /* no walk that a header can make endless */
                }
            }
        }
    }
}
END_TEST

START_TEST(cut_anywhere)
{
    elf_plan plan = {.bits = 64, .sections = 1, .gnu_hash = 1, .dynsym_sections = 1};
    size_t whole = elf_file(&plan, image);
    for (size_t len = 0; len < whole; len++) {
        bytes from = {.data = image, .len = len};
        answers got;
        ask_everything(&obj, &from, 0, 0, &got);
    }
}
END_TEST

/** Reads that fail and reads that are short; the hash tables are there, and are not. */
START_TEST(faults)
{
    for (int memory = 0; memory < 2; memory++) {
        for (int bits = 32; bits <= 64; bits += 32) {
            for (int hashes = memory; hashes < 2; hashes++) {
                elf_plan plan = {.bits = bits, .sections = 1, .gnu_hash = hashes, .hash = hashes, .dynsym_sections = 1};
                uint64_t base = 0x70000000;
                size_t len = memory ? elf_memory(&plan, base, 1, image) : elf_file(&plan, image);
                ck_assert_uint_gt(inject_faults(&obj, image, len, memory, base), 5);
            }
        }
    }
}
END_TEST

static int read_stream(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    FILE *file = baton;
    *got = 0;
    if (offset > 1u << 30 || fseek(file, (long)offset, SEEK_SET) != 0) {
        return -1;
    }
    *got = fread(buf, 1, len, file);
    return 0;
}

int objfile_marker = 7; /* a symbol of this program */

/** This very program: its own symbol, by the address that the linker gave it. */
START_TEST(own_file)
{
#ifdef _WIN32
    FILE *file = NULL; /* Wine would show its own */
#else
    FILE *file = fopen("/proc/self/exe", "rb");
#endif
    if (!file) {
        printf("objfile: own_file NOT RUN: no /proc/self/exe here\n");
        return;
    }
    au_obj_source source = {.read = read_stream, .baton = file};
    ck_assert_int_eq(au_obj_init(&obj, &source), AU_OBJ_OK);
    ck_assert_int_eq(obj.bits, (int)sizeof(void *) * 8);
    au_obj_range marker, other;
    ck_assert_int_eq(au_obj_find_symbol(&obj, "objfile_marker", &marker), AU_OBJ_OK);
    ck_assert_uint_eq(marker.size, sizeof objfile_marker);
    ck_assert_int_eq(au_obj_find_symbol(&obj, "au_obj_init", &other), AU_OBJ_OK);
    /* Distances do not depend on where we are loaded. */
    ck_assert_uint_eq(marker.vaddr - other.vaddr,
                      (uint64_t)(uintptr_t)&objfile_marker - (uint64_t)(uintptr_t)&au_obj_init);
    int value = 0;
    ck_assert_int_eq(au_obj_read_vaddr(&obj, marker.vaddr, &value, sizeof value), AU_OBJ_OK);
    ck_assert_int_eq(value, 7);
    ck_assert_int_eq(au_obj_find_section(&obj, "text", &other), AU_OBJ_OK);
    fclose(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("objfile");
    TCase *tcase = tcase_create("elf");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, invented_files);
    tcase_add_test(tcase, no_sections);
    tcase_add_test(tcase, invented_memory);
    tcase_add_test(tcase, content_at_vaddr);
    tcase_add_test(tcase, other_formats);
    tcase_add_test(tcase, lying_headers);
    tcase_add_test(tcase, cut_anywhere);
    tcase_add_test(tcase, faults);
    tcase_add_test(tcase, own_file);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, pe_cases());
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
