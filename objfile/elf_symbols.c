/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol look-up. A symbol table as the dynamic linker sees it has hash tables beside it (DT_HASH of the gABI, "Hash
 * Table"; DT_GNU_HASH of GNU binutils, elflink.c and glibc's dl-lookup.c), which answer in a few reads also from a
 * memory image. Section headers give the same table for a scan, and .symtab, which is in the file only.
 */
#include "objfile/elf.h"

typedef struct elf_symbols {
    uint64_t offset; /* of the table in the source */
    uint64_t entsize;
    uint64_t strings, strings_end;
} elf_symbols;

/** Is symbol `index` a defined one of that name? 1 yes, 0 no, -1 cannot be read. */
static int symbol_is(au_obj *obj, const elf_symbols *table, uint64_t index, const char *name, au_obj_range *out)
{
    size_t size = obj->bits == 64 ? 24 : 16;
    if (index > UINT32_MAX || table->offset > UINT64_MAX - index * table->entsize) {
        return -1;
    }
    const uint8_t *p = au__obj_view(obj, &obj->table, table->offset + index * table->entsize, size);
    if (!p) {
        return -1;
    }
    uint32_t name_at = au__le32(p);
    uint16_t section = obj->bits == 64 ? au__le16(p + 6) : au__le16(p + 14);
    uint64_t value = obj->bits == 64 ? au__le64(p + 8) : au__le32(p + 4);
    uint64_t length = obj->bits == 64 ? au__le64(p + 16) : au__le32(p + 8);
    if (section == 0 || name_at == 0 || name_at >= table->strings_end - table->strings ||
        !au__obj_string_is(obj, table->strings + name_at, table->strings_end, name)) {
        return 0;
    }
    if (value < obj->low_vaddr || value >= obj->high_vaddr) {
        return 0;
    }
    out->vaddr = value;
    out->size = length <= obj->high_vaddr - value ? length : 0;
    return 1;
}

static uint32_t word_at(au_obj *obj, uint64_t offset, int *bad)
{
    const uint8_t *p = au__obj_view(obj, &obj->table, offset, 4);
    if (!p) {
        *bad = 1;
        return 0;
    }
    return au__le32(p);
}

static au_obj_result find_by_gnu_hash(au_obj *obj, const elf_symbols *table, uint64_t at, const char *name,
                                      au_obj_range *out)
{
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++) {
        hash = hash * 33 + (uint8_t)*c;
    }
    int bad = 0;
    uint32_t buckets = word_at(obj, at, &bad);
    uint32_t first = word_at(obj, at + 4, &bad);
    uint32_t bloom = word_at(obj, at + 8, &bad);
    if (bad || buckets == 0) {
        return AU_OBJ_MALFORMED;
    }
    uint64_t bucket_at = at + 16 + (uint64_t)bloom * (obj->bits == 64 ? 8 : 4);
    uint64_t chain_at = bucket_at + (uint64_t)buckets * 4;
    uint64_t index = word_at(obj, bucket_at + (uint64_t)(hash % buckets) * 4, &bad);
    if (bad) {
        return AU_OBJ_MALFORMED;
    }
    if (index < first) {
        return AU_OBJ_NOT_FOUND;
    }
    for (int steps = 0; steps < 65536; steps++, index++) {
        uint32_t entry = word_at(obj, chain_at + (index - first) * 4, &bad);
        if (bad) {
            return AU_OBJ_MALFORMED;
        }
        if ((entry | 1) == (hash | 1)) {
            int is = symbol_is(obj, table, index, name, out);
            if (is != 0) {
                return is > 0 ? AU_OBJ_OK : AU_OBJ_MALFORMED;
            }
        }
        if (entry & 1) {
            return AU_OBJ_NOT_FOUND;
        }
    }
    return AU_OBJ_MALFORMED;
}

static au_obj_result find_by_hash(au_obj *obj, const elf_symbols *table, uint64_t at, const char *name,
                                  au_obj_range *out)
{
    uint32_t hash = 0;
    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (uint8_t)*c;
        uint32_t high = hash & 0xf0000000u;
        hash = (hash ^ (high >> 24)) & ~high;
    }
    int bad = 0;
    uint32_t buckets = word_at(obj, at, &bad);
    uint32_t chains = word_at(obj, at + 4, &bad);
    if (bad || buckets == 0) {
        return AU_OBJ_MALFORMED;
    }
    uint64_t chain_at = at + 8 + (uint64_t)buckets * 4;
    uint32_t index = word_at(obj, at + 8 + (uint64_t)(hash % buckets) * 4, &bad);
    for (int steps = 0; steps < 65536; steps++) {
        if (bad || index >= chains) {
            return AU_OBJ_MALFORMED;
        }
        if (index == 0) {
            return AU_OBJ_NOT_FOUND;
        }
        int is = symbol_is(obj, table, index, name, out);
        if (is != 0) {
            return is > 0 ? AU_OBJ_OK : AU_OBJ_MALFORMED;
        }
        index = word_at(obj, chain_at + (uint64_t)index * 4, &bad);
    }
    return AU_OBJ_MALFORMED; /* a chain in a circle */
}

static au_obj_result find_dynamic(au_obj *obj, const char *name, au_obj_range *out)
{
    unsigned has = au__elf_dynamic(obj);
    const unsigned needed = DYN_SYMTAB | DYN_STRTAB | DYN_STRSZ;
    if ((has & needed) != needed) {
        return AU_OBJ_NOT_FOUND;
    }
    const au_obj_elf *elf = &obj->elf;
    size_t size = obj->bits == 64 ? 24 : 16;
    elf_symbols table = {.entsize = elf->syment ? elf->syment : size};
    if (table.entsize < size || table.entsize > 256 || au__elf_locate(obj, elf->symtab, size, &table.offset) != 0 ||
        au__elf_locate(obj, elf->strtab, elf->strsz, &table.strings) != 0 || table.strings > UINT64_MAX - elf->strsz) {
        return AU_OBJ_MALFORMED;
    }
    table.strings_end = table.strings + elf->strsz;
    uint64_t at;
    au_obj_result result = AU_OBJ_MALFORMED;
    if ((has & DYN_GNU_HASH) && au__elf_locate(obj, elf->gnu_hash, 16, &at) == 0) {
        result = find_by_gnu_hash(obj, &table, at, name, out);
    }
    if (result == AU_OBJ_MALFORMED && (has & DYN_HASH) && au__elf_locate(obj, elf->hash, 8, &at) == 0) {
        result = find_by_hash(obj, &table, at, name, out);
    }
    return result;
}

static au_obj_result find_in_sections(au_obj *obj, uint32_t type, const char *name, au_obj_range *out)
{
    size_t size = obj->bits == 64 ? 24 : 16;
    uint64_t left = ELF_MAX_SYMBOLS; /* over all sections, so that many headers of one table cost no more than one */
    for (uint64_t i = 1; i < obj->elf.shnum; i++) {
        elf_section section, strings;
        if (au__elf_section(obj, i, &section) != 0) {
            return AU_OBJ_NOT_FOUND;
        }
        if (section.type != type || section.link >= obj->elf.shnum ||
            au__elf_section(obj, section.link, &strings) != 0) {
            continue;
        }
        if (section.entsize < size || section.entsize > 256 || strings.offset > UINT64_MAX - strings.size) {
            continue;
        }
        elf_symbols table = {.offset = section.offset,
                             .entsize = section.entsize,
                             .strings = strings.offset,
                             .strings_end = strings.offset + strings.size};
        uint64_t count = section.size / section.entsize;
        if (count > left) {
            count = left;
        }
        left -= count;
        for (uint64_t s = 1; s < count; s++) {
            int is = symbol_is(obj, &table, s, name, out);
            if (is > 0) {
                return AU_OBJ_OK;
            }
            if (is < 0) {
                break;
            }
        }
    }
    return AU_OBJ_NOT_FOUND;
}

au_obj_result au__elf_find_symbol(au_obj *obj, const char *name, au_obj_range *out)
{
    if (name[0] == 0) {
        return AU_OBJ_NOT_FOUND;
    }
    au_obj_result result = find_dynamic(obj, name, out);
    if (result == AU_OBJ_OK) {
        return result;
    }
    /* A sound hash table that does not have it has the last word about exported symbols. */
    if (result != AU_OBJ_NOT_FOUND || !(au__elf_dynamic(obj) & (DYN_HASH | DYN_GNU_HASH))) {
        au_obj_range found;
        if (find_in_sections(obj, ELF_SHT_DYNSYM, name, &found) == AU_OBJ_OK) {
            *out = found;
            return AU_OBJ_OK;
        }
    }
    return find_in_sections(obj, ELF_SHT_SYMTAB, name, out);
}
