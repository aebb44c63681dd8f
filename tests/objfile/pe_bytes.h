/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Invented PE images for the tests: a small DLL with everything that the reader looks for.
 */
#ifndef AU_TESTS_OBJFILE_PE_BYTES_H
#define AU_TESTS_OBJFILE_PE_BYTES_H

#include <stddef.h>
#include <stdint.h>

enum { PE_BYTES_MAX = 256 * 1024 };

typedef struct pe_plan {
    int bits;              /* 32 or 64 */
    int program;           /* not a DLL */
    uint16_t machine;      /* 0: the x86 of these bits */
    int unsorted;          /* the names of the exports are in no order */
    unsigned more_exports; /* so many more, which come first in order: "A000000" and so on */
} pe_plan;

/* RVAs of what is in each of them, and offsets of it in the file. */
enum {
    PE_SIGNATURE_AT = 0x80, /* both: headers are the same */
    PE_COFF_AT = PE_SIGNATURE_AT + 4,
    PE_OPTIONAL_AT = PE_COFF_AT + 20,
    PE_TEXT = 0x1000, /* 0x200 bytes of raw data, of which 0x123 are loaded */
    PE_TEXT_SIZE = 0x123,
    PE_TEXT_FILE = 0x400,
    PE_DATA = 0x2000, /* 0x200 bytes of raw data; the rest is zero */
    PE_DATA_SIZE = 0x900,
    PE_DATA_FILE = 0x600,
    PE_VERSION = 0x2010,
    PE_RUNTIME = 0x3000,
    PE_RUNTIME_SIZE = 0x150,
    PE_RUNTIME_FILE = 0x800,
    PE_ASYNCIO = 0x4000,
    PE_ASYNCIO_SIZE = 0x68,
    PE_ASYNCIO_FILE = 0xa00,
    PE_LONG = 0x5000, /* its name is in the string table */
    PE_LONG_SIZE = 0x44,
    PE_LONG_FILE = 0xc00,
    PE_RDATA = 0x6000, /* exports and debug directory; the last one, as long as is needed */
    PE_RDATA_FILE = 0xe00,
    PE_EXPORTS = PE_RDATA + 0x100,
    PE_DEBUG = PE_RDATA,
    PE_RSDS = PE_RDATA + 0x60
};

/** Offset of the section headers, and the number of the section of the runtime in them. */
size_t pe_sections_at(const pe_plan *plan);
enum { PE_SECTION_COUNT = 6, PE_RUNTIME_INDEX = 2, PE_LONG_INDEX = 4, PE_SECTION_HEADER = 40 };

/** Fills `out` with the file; returns its length. */
size_t pe_file(const pe_plan *plan, uint8_t out[PE_BYTES_MAX]);

/** Fills `out` with the image as loaded at `base`; the loader writes that into the headers. Returns its length. */
size_t pe_memory(const pe_plan *plan, uint64_t base, uint8_t out[PE_BYTES_MAX]);

/** Puts a little-endian number into an image. */
void pe_put(uint8_t *out, size_t at, uint64_t value, size_t size);

#endif
