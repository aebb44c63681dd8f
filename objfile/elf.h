/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: ELF constants (gABI, "Object Files" and "Program Loading"; GNU extensions from glibc's elf.h),
 * and what elf.c and elf_symbols.c share. Own names, because <elf.h> is a Linux header and this room builds everywhere.
 */
#ifndef AU_OBJFILE_ELF_H
#define AU_OBJFILE_ELF_H

#include "objfile/reader.h"

enum {
    ELF_CLASS32 = 1,
    ELF_CLASS64 = 2,
    ELF_LITTLE = 1,
    ELF_BIG = 2,
    ELF_ET_EXEC = 2,
    ELF_ET_DYN = 3,
    ELF_EM_386 = 3,
    ELF_EM_ARM = 40,
    ELF_EM_X86_64 = 62,
    ELF_EM_AARCH64 = 183,
    ELF_PT_LOAD = 1,
    ELF_PT_DYNAMIC = 2,
    ELF_PT_INTERP = 3,
    ELF_PT_NOTE = 4,
    ELF_PN_XNUM = 0xffff,
    ELF_SHN_XINDEX = 0xffff,
    ELF_SHT_SYMTAB = 2,
    ELF_SHT_NOBITS = 8,
    ELF_SHT_DYNSYM = 11,
    ELF_NT_GNU_BUILD_ID = 3
};

enum {
    ELF_DT_NULL = 0,
    ELF_DT_HASH = 4,
    ELF_DT_STRTAB = 5,
    ELF_DT_SYMTAB = 6,
    ELF_DT_STRSZ = 10,
    ELF_DT_SYMENT = 11,
    ELF_DT_SONAME = 14,
    ELF_DT_DEBUG = 21
};
#define ELF_DT_GNU_HASH 0x6ffffef5u

/** Bits of au_obj_elf.dynamic_has. */
enum {
    DYN_SYMTAB = 1 << 0,
    DYN_STRTAB = 1 << 1,
    DYN_STRSZ = 1 << 2,
    DYN_HASH = 1 << 3,
    DYN_GNU_HASH = 1 << 4,
    DYN_SONAME = 1 << 5,
    DYN_DEBUG = 1 << 6
};

/** More than any linker writes; walks end here whatever a header says. */
enum { ELF_MAX_SEGMENTS = 4096, ELF_MAX_SECTIONS = 1 << 20, ELF_MAX_SYMBOLS = 1 << 24, ELF_MAX_DYNAMIC = 4096 };

typedef struct elf_segment {
    uint32_t type;
    uint64_t offset, vaddr, filesz, memsz, align;
} elf_segment;

typedef struct elf_section {
    uint32_t name, type, link;
    uint64_t addr, offset, size, entsize;
} elf_section;

int au__elf_segment(au_obj *obj, uint32_t index, elf_segment *out);
int au__elf_section(au_obj *obj, uint64_t index, elf_section *out);

/** Where the content of [vaddr, vaddr+len) is in the source. */
int au__elf_locate(au_obj *obj, uint64_t vaddr, uint64_t len, uint64_t *offset);

/** Reads the dynamic section once; returns DYN_* of what it has. */
unsigned au__elf_dynamic(au_obj *obj);

au_obj_result au__elf_find_symbol(au_obj *obj, const char *name, au_obj_range *out);

#endif
