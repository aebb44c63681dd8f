/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/objfile/elf_bytes.h"

#include <string.h>

/*
 * Layout of the file (addresses in memory are the same but for the second segment, + PLAN_FILE_SHIFT):
 *   0x000 header, 0x040 program headers, 0x200 notes, 0x280 .dynsym, 0x400 strings, 0x500 GNU hash, 0x580 hash
 *   0x1000 .PyRuntime, 0x1400 .AsyncioDebug, 0x1800 dynamic
 *   0x2000 section headers, 0x2400 section names, 0x2500 .symtab, 0x2600 its strings
 */
enum {
    AT_NOTES = 0x200,
    AT_DYNSYM = 0x280,
    AT_STRINGS = 0x400,
    AT_GNU_HASH = 0x500,
    AT_HASH = 0x580,
    AT_SECTIONS = 0x2000,
    AT_NAMES = 0x2400,
    AT_SYMTAB = 0x2500,
    AT_SYMSTR = 0x2600,
    FILE_END = 0x2700
};

typedef struct writer {
    uint8_t *bytes;
    size_t at;
    int wide;
} writer;

static void put(writer *w, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        w->bytes[w->at++] = (uint8_t)(value >> (8 * i));
    }
}

static void word(writer *w, uint64_t value)
{
    put(w, value, w->wide ? 8 : 4);
}

static void segment(writer *w, uint32_t type, uint64_t offset, uint64_t vaddr, uint64_t filesz, uint64_t memsz)
{
    put(w, type, 4);
    if (w->wide) {
        put(w, 6, 4);
        put(w, offset, 8);
        put(w, vaddr, 8);
        put(w, vaddr, 8);
        put(w, filesz, 8);
        put(w, memsz, 8);
        put(w, type == 4 ? 4 : 0x1000, 8);
    } else {
        put(w, offset, 4);
        put(w, vaddr, 4);
        put(w, vaddr, 4);
        put(w, filesz, 4);
        put(w, memsz, 4);
        put(w, 6, 4);
        put(w, type == 4 ? 4 : 0x1000, 4);
    }
}

static void symbol(writer *w, uint32_t name, uint64_t value, uint64_t size, int defined)
{
    put(w, name, 4);
    if (w->wide) {
        put(w, 0x11, 1);
        put(w, 0, 1);
        put(w, defined ? 1 : 0, 2);
        put(w, value, 8);
        put(w, size, 8);
    } else {
        put(w, value, 4);
        put(w, size, 4);
        put(w, 0x11, 1);
        put(w, 0, 1);
        put(w, defined ? 1 : 0, 2);
    }
}

static void section(writer *w, uint32_t name, uint32_t type, uint64_t addr, uint64_t offset, uint64_t size,
                    uint32_t link, uint64_t entsize)
{
    put(w, name, 4);
    put(w, type, 4);
    word(w, 0);
    word(w, addr);
    word(w, offset);
    word(w, size);
    put(w, link, 4);
    put(w, 0, 4);
    word(w, 8);
    word(w, entsize);
}

static void text(writer *w, size_t at, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        w->bytes[at + i] = (uint8_t)bytes[i];
    }
}

static void entry(writer *w, uint64_t tag, uint64_t value)
{
    word(w, tag);
    word(w, value);
}

/* Strings of .dynsym: offsets 1, 12, 22, 33. */
static const char strings[] = "\0_PyRuntime\0Py_Version\0not_here_x\0libinvented.so.1";
static const char names[] = "\0.PyRuntime\0.AsyncioDebug\0.dynsym\0.symtab";

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++) {
        hash = hash * 33 + (uint8_t)*name;
    }
    return hash;
}

static size_t build(const elf_plan *plan, uint64_t relocation, uint8_t *out)
{
    memset(out, 0, ELF_BYTES_MAX);
    writer w = {out, 0, plan->bits == 64};
    uint64_t v = plan->vaddr;
    size_t symbol_size = w.wide ? 24 : 16;
    memcpy(out, "\177ELF", 4);
    out[4] = w.wide ? 2 : 1;
    out[5] = 1;
    out[6] = 1;
    w.at = 16;
    put(&w, v ? 2 : 3, 2);
    put(&w, w.wide ? 62 : 3, 2);
    put(&w, 1, 4);
    word(&w, v + 0x100);
    word(&w, 0x40);
    word(&w, plan->sections ? AT_SECTIONS : 0);
    put(&w, 0, 4);
    put(&w, w.wide ? 64 : 52, 2);
    put(&w, w.wide ? 56 : 32, 2);
    put(&w, 4, 2);
    put(&w, w.wide ? 64 : 40, 2);
    put(&w, plan->sections ? 7 : 0, 2);
    put(&w, plan->sections ? 5 : 0, 2);

    w.at = 0x40;
    segment(&w, 1, 0, v, 0x1000, 0x1000);
    segment(&w, 1, PLAN_RUNTIME - PLAN_FILE_SHIFT, v + PLAN_RUNTIME, 0x1000, PLAN_END - PLAN_RUNTIME);
    segment(&w, 2, PLAN_DYNAMIC - PLAN_FILE_SHIFT, v + PLAN_DYNAMIC, 0x100, 0x100);
    segment(&w, 4, AT_NOTES, v + AT_NOTES, 0x40, 0x40);

    w.at = AT_NOTES; /* another note first */
    put(&w, 4, 4);
    put(&w, 8, 4);
    put(&w, 1, 4);
    memcpy(out + w.at, "XYZ\0ABCDEFGH", 12);
    w.at += 12;
    put(&w, 4, 4);
    put(&w, 20, 4);
    put(&w, 3, 4);
    text(&w, w.at, "GNU", 4);
    for (uint8_t i = 0; i < 20; i++) {
        out[w.at + 4 + i] = (uint8_t)(0xa0 + i);
    }

    /* Symbols 1 to 3: undefined, then the two defined ones. The GNU table hashes from symbol 2 on, one bucket. */
    w.at = AT_DYNSYM + symbol_size;
    symbol(&w, 23, 0, 0, 0);
    symbol(&w, 1, v + PLAN_RUNTIME, PLAN_RUNTIME_SIZE, 1);
    symbol(&w, 12, v + 0x2300, 8, 1);
    text(&w, AT_STRINGS, strings, sizeof strings);
    w.at = AT_GNU_HASH;
    put(&w, 1, 4);
    put(&w, 2, 4);
    put(&w, 1, 4);
    put(&w, 6, 4);
    word(&w, UINT64_MAX);
    put(&w, 2, 4);
    put(&w, gnu_hash("_PyRuntime") & ~1u, 4);
    put(&w, gnu_hash("Py_Version") | 1u, 4);
    w.at = AT_HASH;
    put(&w, 1, 4);
    put(&w, 4, 4);
    put(&w, 3, 4);
    put(&w, 0, 4);
    put(&w, 0, 4);
    put(&w, 0, 4);
    put(&w, 2, 4);

    uint64_t r = v + relocation;
    w.at = PLAN_DYNAMIC - PLAN_FILE_SHIFT;
    if (plan->gnu_hash) {
        entry(&w, 0x6ffffef5u, r + AT_GNU_HASH);
    }
    if (plan->hash) {
        entry(&w, 4, r + AT_HASH);
    }
    entry(&w, 5, r + AT_STRINGS);
    entry(&w, 6, r + AT_DYNSYM);
    entry(&w, 10, sizeof strings);
    entry(&w, 11, symbol_size);
    entry(&w, 14, 34);
    entry(&w, 21, relocation ? 0x7000 : 0);

    if (plan->sections) {
        int tables = plan->dynsym_sections;
        text(&w, AT_NAMES, names, sizeof names);
        w.at = AT_SECTIONS;
        section(&w, 0, 0, 0, 0, 0, 0, 0);
        section(&w, 1, 1, v + PLAN_RUNTIME, PLAN_RUNTIME - PLAN_FILE_SHIFT, PLAN_RUNTIME_SIZE, 0, 0);
        section(&w, 12, 1, v + PLAN_ASYNCIO, PLAN_ASYNCIO - PLAN_FILE_SHIFT, PLAN_ASYNCIO_SIZE, 0, 0);
        section(&w, 26, tables ? 11 : 1, v + AT_DYNSYM, AT_DYNSYM, 4 * symbol_size, 4, symbol_size);
        section(&w, 0, 3, v + AT_STRINGS, AT_STRINGS, sizeof strings, 0, 0);
        section(&w, 0, 3, 0, AT_NAMES, sizeof names, 0, 0);
        section(&w, 34, tables ? 2 : 1, 0, AT_SYMTAB, 2 * symbol_size, 4, symbol_size);
        w.at = AT_SYMTAB + symbol_size;
        symbol(&w, 24, v + PLAN_LOCAL, 4, 1); /* "ot_here_x": a tail of another name, as linkers make them */
    }
    return FILE_END;
}

size_t elf_file(const elf_plan *plan, uint8_t out[ELF_BYTES_MAX])
{
    return build(plan, 0, out);
}

size_t elf_memory(const elf_plan *plan, uint64_t base, int relocated, uint8_t out[ELF_BYTES_MAX])
{
    static uint8_t file[ELF_BYTES_MAX];
    build(plan, relocated ? base - plan->vaddr : 0, file);
    memset(out, 0, ELF_BYTES_MAX);
    memcpy(out, file, 0x1000);
    memcpy(out + PLAN_RUNTIME, file + PLAN_RUNTIME - PLAN_FILE_SHIFT, 0x1000);
    return PLAN_END;
}
