/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module that an invented runtime is in: an ELF shared object of one segment (gABI, chapters 4 and 5), whole, or
 * with nothing left to find it by but what the dynamic linker needs. Where C's long has four bytes it is a PE library
 * (Microsoft, "PE Format"), with the section, or with nothing but what it exports.
 */
#include "tests/engine/layouts.h"
#include "tests/engine/world_internal.h"

enum {
    VERSION_VADDR = 0x2000,
    HEADERS = 64,
    PROGRAM_HEADER = 56,
    STRINGS = 192,
    SYMBOLS = 256,
    SYMBOL = 24,
    HASH = 352,
    SECTIONS = 512,
    DYNAMIC = 768,
    SIZE = 1024
};

/* Offsets of the names in it are used below. */
static const char strings[] = "\0.PyRuntime\0.symtab\0.strtab\0Py_Version\0_PyRuntime";
enum { NAME_PYRUNTIME = 1, NAME_SYMTAB = 12, NAME_STRTAB = 20, NAME_PY_VERSION = 28, NAME__PYRUNTIME = 39 };

static void le(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static void section(uint8_t *at, uint32_t name, uint32_t type, uint64_t addr, uint64_t offset, uint64_t size,
                    uint32_t link, uint64_t entsize)
{
    le(at, name, 4);
    le(at + 4, type, 4);
    le(at + 16, addr, 8);
    le(at + 24, offset, 8);
    le(at + 32, size, 8);
    le(at + 40, link, 4);
    le(at + 56, entsize, 8);
}

static void symbol(uint8_t *elf, int index, uint32_t name, uint64_t value, uint64_t size)
{
    uint8_t *at = elf + SYMBOLS + SYMBOL * index;
    le(at, name, 4);
    at[4] = 1 << 4 | 1; /* STB_GLOBAL, STT_OBJECT */
    le(at + 6, 1, 2);
    le(at + 8, value, 8);
    le(at + 16, size, 8);
}

/* One load segment from the first byte on. `sections`: how many headers it says there are. */
static void header(const world *w, uint8_t *elf, unsigned segments, unsigned sections)
{
    static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    memset(elf, 0, SIZE);
    memcpy(elf, magic, sizeof magic);
    le(elf + 16, 3, 2);
    le(elf + 18, 62, 2);
    le(elf + 32, HEADERS, 8);
    le(elf + 54, PROGRAM_HEADER, 2);
    le(elf + 56, segments, 2);
    if (sections) {
        le(elf + 40, SECTIONS, 8);
        le(elf + 58, 64, 2);
        le(elf + 60, sections, 2);
        le(elf + 62, 3, 2);
    }
    le(elf + HEADERS, 1, 4);
    le(elf + HEADERS + 32, SIZE, 8);
    le(elf + HEADERS + 40, W_RUNTIME_VADDR + w->runtime_size, 8);
    memcpy(elf + STRINGS, strings, sizeof strings);
}

/* .PyRuntime, and a symbol table with Py_Version from 3.11 on. */
static void with_sections(const world *w, uint8_t *elf)
{
    header(w, elf, 1, 4);
    symbol(elf, 1, NAME_PY_VERSION, VERSION_VADDR, 4);
    section(elf + SECTIONS + 64, NAME_PYRUNTIME, 1, W_RUNTIME_VADDR, 0, w->runtime_size, 0, 0);
    section(elf + SECTIONS + 128, NAME_SYMTAB, 2, 0, SYMBOLS, w->minor == 10 ? 24 : 48, 3, 24);
    section(elf + SECTIONS + 192, NAME_STRTAB, 3, 0, STRINGS, sizeof strings, 0, 0);
}

/* The hash of a name in DT_GNU_HASH (glibc, elf/dl-lookup.c). */
static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++) {
        hash = hash * 33 + (uint8_t)*name;
    }
    return hash;
}

/* Nothing but dynamic symbols. `added` is what the dynamic linker put on top of the addresses. */
static void with_dynamic(const world *w, uint8_t *elf, unsigned sections, uint64_t added, unsigned options)
{
    const uint32_t name = options & W_MODULE_OTHER_NAME ? NAME_PYRUNTIME : NAME__PYRUNTIME;
    const int symbols = w->minor == 10 ? 1 : 2;
    const int gnu = (options & W_MODULE_GNU_HASH) != 0;
    header(w, elf, 2, sections);
    le(elf + HEADERS + PROGRAM_HEADER, 2, 4); /* PT_DYNAMIC */
    le(elf + HEADERS + PROGRAM_HEADER + 8, DYNAMIC, 8);
    le(elf + HEADERS + PROGRAM_HEADER + 16, DYNAMIC, 8);
    le(elf + HEADERS + PROGRAM_HEADER + 32, 96, 8);
    le(elf + HEADERS + PROGRAM_HEADER + 40, 96, 8);
    symbol(elf, 1, name, W_RUNTIME_VADDR, w->runtime_size);
    symbol(elf, 2, NAME_PY_VERSION, VERSION_VADDR, 4);
    uint8_t *hash = elf + HASH;
    if (gnu) { /* one bucket, symbols from 1 on, a Bloom filter that lets all through */
        le(hash, 1, 4);
        le(hash + 4, 1, 4);
        le(hash + 8, 1, 4);
        le(hash + 16, UINT64_MAX, 8);
        le(hash + 24, 1, 4);
        le(hash + 28, (gnu_hash(strings + name) & ~1u) | (symbols == 1), 4);
        le(hash + 32, gnu_hash("Py_Version") | 1, 4);
    } else { /* one bucket, a chain through all */
        le(hash, 1, 4);
        le(hash + 4, (uint64_t)symbols + 1, 4);
        le(hash + 8, 1, 4);
        le(hash + 16, symbols == 1 ? 0 : 2, 4);
    }
    const uint64_t entries[][2] = {{gnu ? 0x6ffffef5 : 4, HASH + added}, /* DT_GNU_HASH or DT_HASH */
                                   {6, SYMBOLS + added},                 /* DT_SYMTAB */
                                   {5, STRINGS + added},                 /* DT_STRTAB */
                                   {10, sizeof strings},                 /* DT_STRSZ */
                                   {11, SYMBOL}};                        /* DT_SYMENT */
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        le(elf + DYNAMIC + 16 * i, entries[i][0], 8);
        le(elf + DYNAMIC + 16 * i + 8, entries[i][1], 8);
    }
}

enum {
    PE_AT = 64,
    PE_OPTIONAL = PE_AT + 24,
    PE_OPTIONAL_SIZE = 112 + 16 * 8,
    PE_SECTIONS = PE_OPTIONAL + PE_OPTIONAL_SIZE,
    PE_EXPORTS = 512,
    PE_FUNCTIONS = 560,
    PE_NAMES = 576,
    PE_ORDINALS = 592,
    PE_STRINGS = 600
};

/* All of it lies in what the headers say is theirs, so that RVAs are file offsets. */
static void as_pe(const world *w, uint8_t *pe, int has_section, unsigned options)
{
    static const char names[] = "Py_Version\0_PyRuntime\0.PyRuntime";
    const int first = w->minor == 10 ? 1 : 0; /* 3.10 exports no version */
    memset(pe, 0, SIZE);
    memcpy(pe, "MZ", 2);
    le(pe + 0x3c, PE_AT, 4);
    memcpy(pe + PE_AT, "PE", 2);
    le(pe + PE_AT + 4, 0x8664, 2);
    le(pe + PE_AT + 6, (uint64_t)has_section, 2);
    le(pe + PE_AT + 20, PE_OPTIONAL_SIZE, 2);
    le(pe + PE_AT + 22, 0x2022, 2); /* a library, of 64 bits */
    le(pe + PE_OPTIONAL, 0x20b, 2);
    le(pe + PE_OPTIONAL + 24, 0x180000000, 8); /* where it is not */
    le(pe + PE_OPTIONAL + 56, W_RUNTIME_VADDR + w->runtime_size, 4);
    le(pe + PE_OPTIONAL + 60, SIZE, 4);
    le(pe + PE_OPTIONAL + 108, 16, 4);
    le(pe + PE_OPTIONAL + 112, PE_EXPORTS, 4);
    le(pe + PE_OPTIONAL + 116, SIZE - PE_EXPORTS, 4);
    if (has_section) {
        memcpy(pe + PE_SECTIONS, "PyRuntim", 8);
        le(pe + PE_SECTIONS + 8, w->runtime_size, 4);
        le(pe + PE_SECTIONS + 12, W_RUNTIME_VADDR, 4);
    }
    le(pe + PE_EXPORTS + 20, 2, 4);
    le(pe + PE_EXPORTS + 24, (uint64_t)(2 - first), 4);
    le(pe + PE_EXPORTS + 28, PE_FUNCTIONS, 4);
    le(pe + PE_EXPORTS + 32, PE_NAMES, 4);
    le(pe + PE_EXPORTS + 36, PE_ORDINALS, 4);
    le(pe + PE_FUNCTIONS, VERSION_VADDR, 4);
    le(pe + PE_FUNCTIONS + 4, W_RUNTIME_VADDR, 4);
    memcpy(pe + PE_STRINGS, names, sizeof names);
    const uint64_t runtime_name = PE_STRINGS + (options & W_MODULE_OTHER_NAME ? 22 : 11);
    int n = 0;
    if (options & W_MODULE_OTHER_NAME) { /* sorted: a full stop is before a letter */
        le(pe + PE_NAMES + 4 * n, runtime_name, 4);
        le(pe + PE_ORDINALS + 2 * n++, 1, 2);
    }
    if (!first) {
        le(pe + PE_NAMES + 4 * n, PE_STRINGS, 4);
        le(pe + PE_ORDINALS + 2 * n++, 0, 2);
    }
    if (!(options & W_MODULE_OTHER_NAME)) {
        le(pe + PE_NAMES + 4 * n, runtime_name, 4);
        le(pe + PE_ORDINALS + 2 * n, 1, 2);
    }
}

void world_module(world *w, int is_main, const char *path, w_module_form form, unsigned options)
{
    uint8_t elf[SIZE];
    int loaded = form == W_MODULE_BARE || form == W_MODULE_DELETED;
    if (w->l.long_bytes == 4) {
        as_pe(w, elf, form == W_MODULE_SECTIONS, options);
    } else if (form == W_MODULE_SECTIONS) {
        with_sections(w, elf);
    } else {
        with_dynamic(w, elf, form == W_MODULE_DELETED ? 4 : 0, options & W_MODULE_RELOCATED ? w->bias : 0, options);
    }
    au_module module = {.base = w->bias,
                        .end = w->bias + W_RUNTIME_VADDR + w->runtime_size,
                        .bias = w->bias,
                        .path = path,
                        .deleted = form == W_MODULE_DELETED,
                        .is_main = is_main,
                        .bits = AU_BITS_64};
    must(au_image_add_module(w->image, &module, loaded ? NULL : elf, sizeof elf) == 0, "module");
    if (loaded) { /* what a segment brings; the section headers that it speaks of are none of it */
        must(au_image_map(w->image, w->bias, 4096, AU_PERM_READ, path) == 0, "map");
        must(au_image_write(w->image, w->bias, elf, sizeof elf) == 0, "write");
        must(w->l.long_bytes == 4 ||
                 au_image_write(w->image, w->bias + SECTIONS, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) == 0,
             "write");
    }
    must(au_image_map(w->image, w->bias + VERSION_VADDR, 4096, AU_PERM_READ, path) == 0, "map");
    world_word(w, w->bias + VERSION_VADDR, layout_version(w->build));
}
