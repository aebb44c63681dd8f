/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PE images: Microsoft, "PE Format"; section names in quotes below are chapters of it. A loader overwrites ImageBase in
 * the headers that it maps, so it is of no use to know where an image was meant to be: addresses in the file are RVAs
 * here, which count from the base, and the load bias is the base. An image in memory lies there by RVAs, in the file by
 * the raw data of its sections.
 */
#include <string.h>

#include "objfile/reader.h"

enum {
    LFANEW = 0x3c,      /* "Signature": where the headers are */
    COFF_SIZE = 4 + 20, /* the signature and the "COFF File Header" */
    OPTIONAL_SIZE = 64, /* as far as SizeOfHeaders: the same in both kinds but for what is not of interest */
    SECTION_SIZE = 40,
    SYMBOL_SIZE = 18,
    EXPORTS_SIZE = 40,
    DEBUG_SIZE = 28,
    RSDS_SIZE = 4 + 16 + 4,
    MAGIC_ROM = 0x107,
    MAGIC_32 = 0x10b,
    MAGIC_64 = 0x20b,
    IS_DLL = 0x2000,
    DEBUG_CODEVIEW = 2,
    DIRECTORY_EXPORT = 0,
    DIRECTORY_DEBUG = 6
};

/*
 * More than any image has; walks end here whatever a header says. Sections: "COFF File Header" gives 96 as the loader's
 * limit. Exports: an index into the addresses, as names have it, is of 16 bits.
 */
enum { MAX_SECTIONS = 1024, MAX_DEBUG_ENTRIES = 64, MAX_EXPORTS = 1 << 16 };

typedef struct pe_section {
    char name[8]; /* no NUL if it is full */
    uint32_t virtual_size, rva, raw_size, raw_offset;
} pe_section;

typedef struct pe_exports {
    uint32_t name, function_count, name_count, functions, names, ordinals;
} pe_exports;

static au_obj_result read_section(au_obj *obj, uint32_t index, pe_section *out)
{
    const uint8_t *p = au__obj_view(obj, &obj->table, obj->pe.sections + (uint64_t)index * SECTION_SIZE, SECTION_SIZE);
    if (!p) {
        return AU_OBJ_UNREADABLE;
    }
    memcpy(out->name, p, sizeof out->name);
    out->virtual_size = au__le32(p + 8);
    out->rva = au__le32(p + 12);
    out->raw_size = au__le32(p + 16);
    out->raw_offset = au__le32(p + 20);
    return AU_OBJ_OK;
}

/** Where the content of [rva, rva+len) is in the source; AU_OBJ_NOT_FOUND where there is none. */
static au_obj_result locate(au_obj *obj, uint64_t rva, uint64_t len, uint64_t *offset)
{
    au_obj_pe *pe = &obj->pe;
    if (rva > obj->high_vaddr || len > obj->high_vaddr - rva) {
        return AU_OBJ_NOT_FOUND;
    }
    if (obj->source.in_memory || rva + len <= pe->headers_size) {
        *offset = rva;
        return AU_OBJ_OK;
    }
    /*
     * Tables and what they point at are mostly in one section: a search in them need not look for it each time. Each
     * question begins anew (forget_section), because where sections overlap the answer would depend on the one before.
     */
    for (uint32_t i = 0; rva < pe->last_rva || rva - pe->last_rva >= pe->last_size; i++) {
        pe_section section;
        if (i >= pe->section_count) {
            return AU_OBJ_NOT_FOUND;
        }
        if (read_section(obj, i, &section) != AU_OBJ_OK) {
            return AU_OBJ_UNREADABLE;
        }
        /* Raw data is padded to the alignment of the file; what it lacks is zero in memory ("Section Table"). */
        uint32_t size =
            section.virtual_size && section.virtual_size < section.raw_size ? section.virtual_size : section.raw_size;
        if (rva >= section.rva && rva - section.rva < size) {
            pe->last_rva = section.rva;
            pe->last_size = size;
            pe->last_offset = section.raw_offset;
        }
    }
    if (len > pe->last_size - (rva - pe->last_rva)) {
        return AU_OBJ_NOT_FOUND;
    }
    *offset = pe->last_offset + (rva - pe->last_rva);
    return AU_OBJ_OK;
}

static void forget_section(au_obj *obj)
{
    obj->pe.last_size = 0;
}

/** Shows what a header or a table points at: it is wrong when there is nothing. */
static au_obj_result view_rva(au_obj *obj, uint64_t rva, size_t len, const uint8_t **out)
{
    uint64_t offset;
    au_obj_result result = locate(obj, rva, len, &offset);
    if (result != AU_OBJ_OK) {
        return result == AU_OBJ_NOT_FOUND ? AU_OBJ_MALFORMED : result;
    }
    *out = au__obj_view(obj, &obj->table, offset, len);
    return *out ? AU_OBJ_OK : AU_OBJ_UNREADABLE;
}

/** "Machine Types". */
static au_obj_cpu cpu_of(uint32_t machine)
{
    switch (machine) {
    case 0x8664:
        return AU_OBJ_CPU_X86_64;
    case 0xaa64:
        return AU_OBJ_CPU_AARCH64;
    case 0x14c:
        return AU_OBJ_CPU_X86;
    case 0x1c4:
        return AU_OBJ_CPU_ARM;
    default:
        return AU_OBJ_CPU_OTHER;
    }
}

/** One entry of "Optional Header Data Directories", which are at `offset`; nothing if there are not so many. */
static au_obj_result read_directory(au_obj *obj, uint64_t offset, uint32_t count, uint32_t index, uint32_t *rva,
                                    uint32_t *size)
{
    if (index >= count) {
        return AU_OBJ_OK;
    }
    const uint8_t *p = au__obj_view(obj, &obj->table, offset + (uint64_t)index * 8, 8);
    if (!p) {
        return AU_OBJ_UNREADABLE;
    }
    *rva = au__le32(p);
    *size = au__le32(p + 4);
    return AU_OBJ_OK;
}

/** "Optional Header": what is in it depends on its magic, and how much of it there is on its size. */
static au_obj_result read_optional(au_obj *obj, uint64_t offset, uint32_t size)
{
    const uint8_t *p = au__obj_view(obj, &obj->table, offset, OPTIONAL_SIZE);
    if (!p) {
        return AU_OBJ_UNREADABLE;
    }
    uint32_t magic = au__le16(p), directories = magic == MAGIC_64 ? 112 : 96;
    if (magic != MAGIC_32 && magic != MAGIC_64) {
        return magic == MAGIC_ROM ? AU_OBJ_UNSUPPORTED : AU_OBJ_MALFORMED;
    }
    obj->bits = magic == MAGIC_64 ? 64 : 32;
    obj->high_vaddr = au__le32(p + 56);
    obj->pe.headers_size = au__le32(p + 60);
    if (size < directories || !obj->high_vaddr) {
        return AU_OBJ_MALFORMED;
    }
    p = au__obj_view(obj, &obj->table, offset + directories - 4, 4);
    if (!p) {
        return AU_OBJ_UNREADABLE;
    }
    uint32_t count = au__le32(p), room = (size - directories) / 8;
    count = count < room ? count : room;
    au_obj_result result =
        read_directory(obj, offset + directories, count, DIRECTORY_EXPORT, &obj->pe.exports, &obj->pe.exports_size);
    if (result == AU_OBJ_OK) {
        result = read_directory(obj, offset + directories, count, DIRECTORY_DEBUG, &obj->pe.debug, &obj->pe.debug_size);
    }
    return result;
}

static au_obj_result pe_init(au_obj *obj, const uint8_t *head, size_t len)
{
    if (len < LFANEW + 4 || head[0] != 'M' || head[1] != 'Z') {
        return AU_OBJ_NOT_RECOGNISED;
    }
    uint64_t at = au__le32(head + LFANEW);
    const uint8_t *p = au__obj_view(obj, &obj->table, at, COFF_SIZE);
    if (!p || memcmp(p, "PE\0\0", 4) != 0) {
        return AU_OBJ_NOT_RECOGNISED; /* a program for DOS: anything may be there */
    }
    obj->format = AU_OBJ_FORMAT_PE;
    obj->machine = au__le16(p + 4);
    obj->cpu = cpu_of(obj->machine);
    obj->type = au__le16(p + 22) & IS_DLL ? AU_OBJ_TYPE_DYNAMIC : AU_OBJ_TYPE_EXEC;
    obj->long_bytes = 4; /* Microsoft, "Abstract Data Models": LLP64, so in 64-bit programs as well */
    obj->pe.section_count = au__le16(p + 6);
    uint32_t symbols = au__le32(p + 12), symbol_count = au__le32(p + 16), optional_size = au__le16(p + 20);
    /* "COFF String Table": it follows the symbols, which are not loaded. */
    obj->pe.strings = symbols && !obj->source.in_memory ? symbols + (uint64_t)symbol_count * SYMBOL_SIZE : 0;
    obj->pe.sections = at + COFF_SIZE + optional_size;
    if (obj->pe.section_count > MAX_SECTIONS) {
        return AU_OBJ_MALFORMED;
    }
    return read_optional(obj, at + COFF_SIZE, optional_size);
}

/**
 * Eight characters are all that a header holds. Of a longer name Microsoft's linker keeps these ("Section Table");
 * GNU's and LLVM's may write "/" and its decimal offset in the string table of the file, as object files do.
 */
static int is_named(au_obj *obj, const pe_section *section, const char *name)
{
    if (strncmp(section->name, name, sizeof section->name) == 0) {
        return 1;
    }
    if (section->name[0] != '/' || !obj->pe.strings) {
        return 0;
    }
    uint32_t at = 0;
    size_t i = 1;
    for (; i < sizeof section->name && section->name[i] >= '0' && section->name[i] <= '9'; i++) {
        at = at * 10 + (uint32_t)(section->name[i] - '0');
    }
    if (i < sizeof section->name && section->name[i]) {
        return 0;
    }
    const uint8_t *p = au__obj_view(obj, &obj->strings, obj->pe.strings, 4);
    uint32_t size = p ? au__le32(p) : 0; /* of all, with these four bytes, where no name is */
    return at >= 4 && au__obj_string_is(obj, obj->pe.strings + at, obj->pe.strings + size, name);
}

static au_obj_result pe_find_section(au_obj *obj, const char *logical_name, au_obj_range *out)
{
    if (!*logical_name) {
        return AU_OBJ_NOT_FOUND;
    }
    for (uint32_t i = 0; i < obj->pe.section_count; i++) {
        pe_section section;
        if (read_section(obj, i, &section) != AU_OBJ_OK) {
            return AU_OBJ_UNREADABLE;
        }
        if (is_named(obj, &section, logical_name)) {
            uint32_t size = section.virtual_size ? section.virtual_size : section.raw_size;
            if (section.rva >= obj->high_vaddr || size > obj->high_vaddr - section.rva) {
                return AU_OBJ_MALFORMED;
            }
            *out = (au_obj_range){.vaddr = section.rva, .size = size};
            return AU_OBJ_OK;
        }
    }
    return AU_OBJ_NOT_FOUND;
}

/* ---- exports ----------------------------------------------------------------------------------------------------- */

/** "Export Directory Table". */
static au_obj_result read_exports(au_obj *obj, pe_exports *out)
{
    if (!obj->pe.exports) {
        return AU_OBJ_NOT_FOUND;
    }
    const uint8_t *p;
    forget_section(obj);
    au_obj_result result = view_rva(obj, obj->pe.exports, EXPORTS_SIZE, &p);
    if (result != AU_OBJ_OK) {
        return result;
    }
    *out = (pe_exports){.name = au__le32(p + 12),
                        .function_count = au__le32(p + 20),
                        .name_count = au__le32(p + 24),
                        .functions = au__le32(p + 28),
                        .names = au__le32(p + 32),
                        .ordinals = au__le32(p + 36)};
    return AU_OBJ_OK;
}

/** Compares `name` with the exported name at `index`, as strcmp does. */
static au_obj_result compare_export(au_obj *obj, const pe_exports *exports, uint32_t index, const char *name,
                                    int *order)
{
    const uint8_t *p;
    uint64_t offset;
    au_obj_result result = view_rva(obj, exports->names + (uint64_t)index * 4, 4, &p);
    if (result == AU_OBJ_OK) {
        result = locate(obj, au__le32(p), 1, &offset);
    }
    if (result != AU_OBJ_OK) {
        return result == AU_OBJ_NOT_FOUND ? AU_OBJ_MALFORMED : result;
    }
    for (;; name++, offset++) {
        p = au__obj_view(obj, &obj->strings, offset, 1);
        if (!p) {
            return AU_OBJ_UNREADABLE;
        }
        *order = (int)(uint8_t)*name - (int)*p;
        if (*order || !*name) {
            return AU_OBJ_OK;
        }
    }
}

/**
 * The index of a name. "Export Name Pointer Table": they are in order, for a binary search; nothing proves it, so what
 * is not found this way is looked for among all.
 */
static au_obj_result find_name(au_obj *obj, const pe_exports *exports, const char *name, uint32_t *index)
{
    uint32_t low = 0, high = exports->name_count;
    au_obj_result result = AU_OBJ_OK;
    int order = 0;
    if (high > MAX_EXPORTS) {
        return AU_OBJ_MALFORMED;
    }
    while (low < high && result == AU_OBJ_OK) {
        *index = low + (high - low) / 2;
        result = compare_export(obj, exports, *index, name, &order);
        if (result == AU_OBJ_OK && order == 0) {
            return AU_OBJ_OK;
        }
        if (order < 0) {
            high = *index;
        } else {
            low = *index + 1;
        }
    }
    au_obj_result missing = AU_OBJ_NOT_FOUND;
    for (*index = 0; *index < exports->name_count; ++*index) {
        result = compare_export(obj, exports, *index, name, &order);
        if (result == AU_OBJ_UNREADABLE || (result == AU_OBJ_OK && order == 0)) {
            return result;
        }
        missing = result == AU_OBJ_OK ? missing : result;
    }
    return missing;
}

/** "Export Address Table": by an index that belongs to the name. */
static au_obj_result pe_find_symbol(au_obj *obj, const char *name, au_obj_range *out)
{
    pe_exports exports;
    uint32_t index = 0;
    const uint8_t *p;
    au_obj_result result = read_exports(obj, &exports);
    if (result == AU_OBJ_OK) {
        result = find_name(obj, &exports, name, &index);
    }
    if (result == AU_OBJ_OK) {
        result = view_rva(obj, exports.ordinals + (uint64_t)index * 2, 2, &p);
    }
    if (result != AU_OBJ_OK) {
        return result;
    }
    uint32_t ordinal = au__le16(p);
    if (ordinal >= exports.function_count) {
        return AU_OBJ_MALFORMED;
    }
    result = view_rva(obj, exports.functions + (uint64_t)ordinal * 4, 4, &p);
    if (result != AU_OBJ_OK) {
        return result;
    }
    uint32_t rva = au__le32(p);
    if (rva >= obj->high_vaddr) {
        return AU_OBJ_MALFORMED;
    }
    if (!rva || (rva >= obj->pe.exports && rva - obj->pe.exports < obj->pe.exports_size)) {
        return AU_OBJ_NOT_FOUND; /* a forwarder: the text there names another library's symbol */
    }
    *out = (au_obj_range){.vaddr = rva};
    return AU_OBJ_OK;
}

static au_obj_result pe_soname(au_obj *obj, char *buf, size_t cap)
{
    pe_exports exports;
    uint64_t offset;
    au_obj_result result = read_exports(obj, &exports);
    if (result != AU_OBJ_OK) {
        return result;
    }
    if (!exports.name || cap == 0) {
        return AU_OBJ_NOT_FOUND;
    }
    result = locate(obj, exports.name, 1, &offset);
    for (size_t i = 0; i < cap && result == AU_OBJ_OK; i++) {
        const uint8_t *p = au__obj_view(obj, &obj->strings, offset + i, 1);
        if (!p) {
            result = AU_OBJ_UNREADABLE;
            break;
        }
        buf[i] = (char)*p;
        if (!*p) {
            return AU_OBJ_OK;
        }
    }
    buf[0] = 0;
    return result == AU_OBJ_UNREADABLE ? result : AU_OBJ_MALFORMED;
}

/* ---- identity ---------------------------------------------------------------------------------------------------- */

/**
 * "Debug Directory": the entry of the type CodeView points at the record that names the PDB, for which "RSDS", a GUID,
 * an age of 4 bytes and a path are the form (LLVM, llvm/DebugInfo/CodeView/CVDebugRecord.h).
 */
static au_obj_result pe_build_id(au_obj *obj, uint8_t *buf, size_t cap, size_t *len)
{
    forget_section(obj);
    uint32_t count = obj->pe.debug ? obj->pe.debug_size / DEBUG_SIZE : 0;
    for (uint32_t i = 0; i < count && i < MAX_DEBUG_ENTRIES; i++) {
        const uint8_t *p;
        au_obj_result result = view_rva(obj, obj->pe.debug + (uint64_t)i * DEBUG_SIZE, DEBUG_SIZE, &p);
        if (result != AU_OBJ_OK) {
            return result;
        }
        uint32_t rva = au__le32(p + 20), raw = au__le32(p + 24);
        if (au__le32(p + 12) != DEBUG_CODEVIEW || au__le32(p + 16) < RSDS_SIZE) {
            continue;
        }
        if (obj->source.in_memory) {
            result = view_rva(obj, rva, RSDS_SIZE, &p);
        } else {
            p = au__obj_view(obj, &obj->table, raw, RSDS_SIZE);
            result = p ? AU_OBJ_OK : AU_OBJ_UNREADABLE;
        }
        if (result != AU_OBJ_OK) {
            return result;
        }
        if (memcmp(p, "RSDS", 4) == 0) {
            *len = cap < RSDS_SIZE - 4 ? cap : RSDS_SIZE - 4;
            memcpy(buf, p + 4, *len);
            return AU_OBJ_OK;
        }
    }
    return AU_OBJ_NOT_FOUND;
}

static au_obj_result pe_read_vaddr(au_obj *obj, uint64_t vaddr, void *buf, size_t len)
{
    uint64_t offset;
    forget_section(obj);
    au_obj_result result = locate(obj, vaddr, len, &offset);
    return result == AU_OBJ_OK ? au__obj_copy(obj, offset, buf, len) : result;
}

const struct au_obj_reader au__obj_pe_reader = {
    .init = pe_init,
    .find_section = pe_find_section,
    .find_symbol = pe_find_symbol,
    .build_id = pe_build_id,
    .soname = pe_soname,
    .read_vaddr = pe_read_vaddr,
};
