/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Invented ELF images for the tests: a small shared object with everything that the reader looks for.
 */
#ifndef AU_TESTS_OBJFILE_ELF_BYTES_H
#define AU_TESTS_OBJFILE_ELF_BYTES_H

#include <stddef.h>
#include <stdint.h>

enum { ELF_BYTES_MAX = 16384 };

typedef struct elf_plan {
    int bits;            /* 32 or 64 */
    uint64_t vaddr;      /* of its first byte; the type is ET_EXEC if not 0 */
    int sections;        /* with section headers */
    int gnu_hash;        /* DT_GNU_HASH */
    int hash;            /* DT_HASH */
    int dynsym_sections; /* .dynsym and .symtab headers */
} elf_plan;

/* What is in each of them, as addresses from its first byte. */
enum {
    PLAN_RUNTIME = 0x2000,
    PLAN_RUNTIME_SIZE = 0x120,
    PLAN_ASYNCIO = 0x2400,
    PLAN_ASYNCIO_SIZE = 0x40,
    PLAN_LOCAL = 0x2480,
    PLAN_DYNAMIC = 0x2800,
    PLAN_END = 0x3000
};

/* As a file the second segment (from PLAN_RUNTIME on) is at PLAN_FILE_SHIFT less than in memory. */
enum { PLAN_FILE_SHIFT = 0x1000 };

/** Fills `out` with the file; returns its length. */
size_t elf_file(const elf_plan *plan, uint8_t out[ELF_BYTES_MAX]);

/** Fills `out` with the image as loaded at `base`, addresses of the dynamic section relocated if `relocated`. */
size_t elf_memory(const elf_plan *plan, uint64_t base, int relocated, uint8_t out[ELF_BYTES_MAX]);

#endif
