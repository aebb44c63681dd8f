/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/objfile/pe_bytes.h"

#include <stdio.h>
#include <string.h>

enum { HEADERS_SIZE = 0x400, EXPORTS_AT = PE_EXPORTS - PE_RDATA, ALIGN_FILE = 0x200, ALIGN_MEMORY = 0x1000 };

void pe_put(uint8_t *out, size_t at, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        out[at + i] = (uint8_t)(value >> (8 * i));
    }
}

static size_t get(const uint8_t *p)
{
    return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

static size_t aligned(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

static size_t optional_size(const pe_plan *plan)
{
    return plan->bits == 64 ? 240 : 224;
}

size_t pe_sections_at(const pe_plan *plan)
{
    return PE_OPTIONAL_AT + optional_size(plan);
}

/* The names in their order, as bytes without a sign, and where each leads to. */
enum { TO_FORWARDER = -1 };
static const struct {
    const char *name;
    int32_t rva;
} exports[] = {{"Py_Version", PE_VERSION},
               {"_PyRuntime", PE_RUNTIME},
               {"at_the_end", PE_RDATA - 1},
               {"forwarded", TO_FORWARDER},
               {"nowhere", 0},
               {"_not_asked_for", PE_TEXT},
               {"\xc3\xa9trange", PE_TEXT + 8}};
enum { EXPORT_COUNT = sizeof exports / sizeof exports[0] };

/** The export directory and all that belongs to it, at EXPORTS_AT of .rdata; returns the end. */
static size_t put_exports(const pe_plan *plan, uint8_t *rdata)
{
    /* "_not_asked_for" comes after "_PyRuntime"; the table above is by the address for the rest. */
    static const size_t order[EXPORT_COUNT] = {0, 1, 5, 2, 3, 4, 6};
    size_t more = plan->more_exports, count = more + EXPORT_COUNT;
    size_t functions = EXPORTS_AT + 40, names = functions + 4 * (EXPORT_COUNT + 2), ordinals = names + 4 * count;
    size_t text = ordinals + 2 * count;
    pe_put(rdata, EXPORTS_AT + 12, PE_RDATA + text, 4);
    pe_put(rdata, EXPORTS_AT + 16, 1, 4); /* the ordinal base, which says nothing about indices */
    pe_put(rdata, EXPORTS_AT + 20, EXPORT_COUNT + 2, 4);
    pe_put(rdata, EXPORTS_AT + 24, count, 4);
    pe_put(rdata, EXPORTS_AT + 28, PE_RDATA + functions, 4);
    pe_put(rdata, EXPORTS_AT + 32, PE_RDATA + names, 4);
    pe_put(rdata, EXPORTS_AT + 36, PE_RDATA + ordinals, 4);
    text += (size_t)sprintf((char *)rdata + text, "invented313.dll") + 1;
    size_t forwarder = text;
    text += (size_t)sprintf((char *)rdata + text, "other.symbol") + 1;
    for (size_t i = 0; i < count; i++) {
        size_t slot = plan->unsorted ? (i * 3 + 2) % count : i;
        size_t which = i < more ? 0 : order[i - more];
        pe_put(rdata, names + 4 * slot, PE_RDATA + text, 4);
        /* Functions are in the opposite order, behind two that have no name. */
        pe_put(rdata, ordinals + 2 * slot, i < more ? 0 : EXPORT_COUNT + 1 - which, 2);
        text += i < more ? (size_t)sprintf((char *)rdata + text, "A%06zu", i) + 1
                         : (size_t)sprintf((char *)rdata + text, "%s", exports[which].name) + 1;
    }
    pe_put(rdata, functions, PE_TEXT + 16, 4);
    pe_put(rdata, functions + 4, PE_TEXT + 32, 4);
    for (size_t i = 0; i < EXPORT_COUNT; i++) {
        uint64_t rva = exports[i].rva == TO_FORWARDER ? PE_RDATA + forwarder : (uint64_t)exports[i].rva;
        pe_put(rdata, functions + 4 * (EXPORT_COUNT + 1 - i), rva, 4);
    }
    return text;
}

/** Two entries that are none of ours, then the one with the PDB. */
static void put_debug(uint8_t *rdata)
{
    for (size_t i = 0; i < 3; i++) {
        size_t at = PE_DEBUG - PE_RDATA + i * 28;
        pe_put(rdata, at + 12, i == 2 ? 2 : 12 + i, 4);
        pe_put(rdata, at + 16, i == 2 ? 0x30 : 4, 4);
        pe_put(rdata, at + 20, PE_RSDS, 4);
        pe_put(rdata, at + 24, PE_RSDS - PE_RDATA + PE_RDATA_FILE, 4);
    }
    size_t at = PE_RSDS - PE_RDATA;
    memcpy(rdata + at, "RSDS", 4);
    for (uint8_t i = 0; i < 16; i++) {
        rdata[at + 4 + i] = (uint8_t)(0xb0 + i);
    }
    pe_put(rdata, at + 20, 3, 4);
    strcpy((char *)rdata + at + 24, "invented313.pdb");
}

static void section(uint8_t *out, size_t *at, const char *name, const uint32_t place[4])
{
    memcpy(out + *at, name, strlen(name));
    for (size_t i = 0; i < 4; i++) {
        pe_put(out, *at + 8 + 4 * i, place[i], 4);
    }
    pe_put(out, *at + 36, 0x40000040, 4);
    *at += PE_SECTION_HEADER;
}

size_t pe_file(const pe_plan *plan, uint8_t out[PE_BYTES_MAX])
{
    memset(out, 0, PE_BYTES_MAX);
    int wide = plan->bits == 64;
    memcpy(out, "MZ", 2);
    pe_put(out, 0x3c, PE_SIGNATURE_AT, 4);
    memcpy(out + PE_SIGNATURE_AT, "PE", 2);

    put_debug(out + PE_RDATA_FILE);
    size_t rdata_size = put_exports(plan, out + PE_RDATA_FILE);
    size_t raw_size = aligned(rdata_size, ALIGN_FILE), strings = PE_RDATA_FILE + raw_size + 18;

    pe_put(out, PE_COFF_AT, plan->machine ? plan->machine : wide ? 0x8664 : 0x14c, 2);
    pe_put(out, PE_COFF_AT + 2, PE_SECTION_COUNT, 2);
    pe_put(out, PE_COFF_AT + 8, PE_RDATA_FILE + raw_size, 4);
    pe_put(out, PE_COFF_AT + 12, 1, 4);
    pe_put(out, PE_COFF_AT + 16, optional_size(plan), 2);
    pe_put(out, PE_COFF_AT + 18, plan->program ? 0x0022 : 0x2022, 2);

    size_t at = PE_OPTIONAL_AT;
    pe_put(out, at, wide ? 0x20b : 0x10b, 2);
    pe_put(out, at + (wide ? 24 : 28), 0x180000000, wide ? 8 : 4);
    pe_put(out, at + 32, ALIGN_MEMORY, 4);
    pe_put(out, at + 36, ALIGN_FILE, 4);
    pe_put(out, at + 56, PE_RDATA + aligned(rdata_size, ALIGN_MEMORY), 4);
    pe_put(out, at + 60, HEADERS_SIZE, 4);
    at += wide ? 108 : 92;
    pe_put(out, at, 16, 4);
    pe_put(out, at + 4, PE_EXPORTS, 4);
    pe_put(out, at + 8, rdata_size - EXPORTS_AT, 4);
    pe_put(out, at + 4 + 6 * 8, PE_DEBUG, 4);
    pe_put(out, at + 8 + 6 * 8, 3 * 28, 4);

    at = pe_sections_at(plan);
    section(out, &at, ".text", (uint32_t[]){PE_TEXT_SIZE, PE_TEXT, 0x200, PE_TEXT_FILE});
    section(out, &at, ".data", (uint32_t[]){PE_DATA_SIZE, PE_DATA, 0x200, PE_DATA_FILE});
    section(out, &at, "PyRuntim", (uint32_t[]){PE_RUNTIME_SIZE, PE_RUNTIME, 0x200, PE_RUNTIME_FILE});
    section(out, &at, "AsyncioD", (uint32_t[]){PE_ASYNCIO_SIZE, PE_ASYNCIO, 0x200, PE_ASYNCIO_FILE});
    section(out, &at, "/12", (uint32_t[]){PE_LONG_SIZE, PE_LONG, 0x200, PE_LONG_FILE});
    section(out, &at, ".rdata", (uint32_t[]){(uint32_t)rdata_size, PE_RDATA, (uint32_t)raw_size, PE_RDATA_FILE});

    for (uint8_t i = 0; i < 0x50; i++) {
        out[PE_RUNTIME_FILE + i] = (uint8_t)(i + 1);
        out[PE_TEXT_FILE + i] = 0x90;
    }
    pe_put(out, PE_DATA_FILE + PE_VERSION - PE_DATA, 0x030d05f0, 4);
    static const char text[] = "unused.\0long_name_of_a_section";
    pe_put(out, strings, 4 + sizeof text, 4);
    memcpy(out + strings + 4, text, sizeof text);
    return strings + 4 + sizeof text;
}

size_t pe_memory(const pe_plan *plan, uint64_t base, uint8_t out[PE_BYTES_MAX])
{
    static uint8_t file[PE_BYTES_MAX];
    pe_file(plan, file);
    memset(out, 0, PE_BYTES_MAX);
    memcpy(out, file, HEADERS_SIZE);
    pe_put(out, PE_OPTIONAL_AT + (plan->bits == 64 ? 24 : 28), base, plan->bits == 64 ? 8 : 4);
    const uint8_t *header = file + pe_sections_at(plan);
    for (size_t i = 0; i < PE_SECTION_COUNT; i++, header += PE_SECTION_HEADER) {
        memcpy(out + get(header + 12), file + get(header + 20), get(header + 16));
    }
    return get(file + PE_OPTIONAL_AT + 56);
}
