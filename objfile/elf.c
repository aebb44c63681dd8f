/* SPDX-License-Identifier: Apache-2.0 */
#include "objfile/elf.h"

#include <stdio.h>
#include <string.h>

int au__elf_segment(au_obj *obj, uint32_t index, elf_segment *out)
{
    size_t size = obj->bits == 64 ? 56 : 32;
    if (index >= obj->elf.phnum) {
        return -1;
    }
    uint64_t offset = obj->elf.phoff + (uint64_t)index * obj->elf.phentsize;
    const uint8_t *p = offset >= obj->elf.phoff ? au__obj_view(obj, &obj->table, offset, size) : NULL;
    if (!p) {
        return -1;
    }
    out->type = au__le32(p);
    if (obj->bits == 64) {
        out->offset = au__le64(p + 8);
        out->vaddr = au__le64(p + 16);
        out->filesz = au__le64(p + 32);
        out->memsz = au__le64(p + 40);
        out->align = au__le64(p + 48);
    } else {
        out->offset = au__le32(p + 4);
        out->vaddr = au__le32(p + 8);
        out->filesz = au__le32(p + 16);
        out->memsz = au__le32(p + 20);
        out->align = au__le32(p + 28);
    }
    return 0;
}

int au__elf_section(au_obj *obj, uint64_t index, elf_section *out)
{
    size_t size = obj->bits == 64 ? 64 : 40;
    uint64_t offset = obj->elf.shoff + index * obj->elf.shentsize;
    if (offset < obj->elf.shoff) {
        return -1;
    }
    const uint8_t *p = au__obj_view(obj, &obj->table, offset, size);
    if (!p) {
        return -1;
    }
    out->name = au__le32(p);
    out->type = au__le32(p + 4);
    if (obj->bits == 64) {
        out->addr = au__le64(p + 16);
        out->offset = au__le64(p + 24);
        out->size = au__le64(p + 32);
        out->link = au__le32(p + 40);
        out->entsize = au__le64(p + 56);
    } else {
        out->addr = au__le32(p + 12);
        out->offset = au__le32(p + 16);
        out->size = au__le32(p + 20);
        out->link = au__le32(p + 24);
        out->entsize = au__le32(p + 36);
    }
    return 0;
}

/** e_phnum and e_shnum of PN_XNUM and 0 mean "see section header 0" (gABI, "Special Sections"). */
static void read_extended_counts(au_obj *obj)
{
    elf_section first;
    if (obj->elf.shoff == 0 || obj->source.in_memory || au__elf_section(obj, 0, &first) != 0) {
        return;
    }
    if (obj->elf.shnum == 0) {
        obj->elf.shnum = first.size;
    }
    if (obj->elf.shstrndx == ELF_SHN_XINDEX) {
        obj->elf.shstrndx = first.link;
    }
}

static au_obj_result read_segments(au_obj *obj)
{
    int loads = 0;
    uint64_t first_offset = UINT64_MAX;
    for (uint32_t i = 0; i < obj->elf.phnum; i++) {
        elf_segment segment;
        if (au__elf_segment(obj, i, &segment) != 0) {
            return AU_OBJ_UNREADABLE;
        }
        switch (segment.type) {
        case ELF_PT_LOAD:
            if (segment.memsz == 0) {
                break;
            }
            if (segment.filesz > segment.memsz || segment.vaddr > UINT64_MAX - segment.memsz ||
                segment.offset > UINT64_MAX - segment.filesz) {
                return AU_OBJ_MALFORMED;
            }
            if (!loads || segment.vaddr < obj->low_vaddr) {
                obj->low_vaddr = segment.vaddr;
            }
            /* Not always the one of the lowest address: tools that edit ELF files put their segment in front. Unsigned:
             * an offset larger than the address wraps, and adding the bias undoes it. */
            if (segment.filesz && segment.offset < first_offset) {
                first_offset = segment.offset;
                obj->image_vaddr = segment.vaddr - segment.offset;
            }
            if (!loads || segment.vaddr + segment.memsz > obj->high_vaddr) {
                obj->high_vaddr = segment.vaddr + segment.memsz;
            }
            loads++;
            break;
        case ELF_PT_DYNAMIC:
            obj->elf.dyn_offset = obj->source.in_memory ? segment.vaddr : segment.offset;
            obj->elf.dyn_size = obj->source.in_memory ? segment.memsz : segment.filesz;
            break;
        case ELF_PT_INTERP:
            obj->elf.has_interp = 1;
            break;
        default:
            break;
        }
    }
    if (!loads && obj->type != AU_OBJ_TYPE_OTHER) {
        return AU_OBJ_MALFORMED; /* a program or library without anything to load */
    }
    if (obj->source.in_memory && obj->elf.dyn_size) {
        uint64_t where;
        if (au__elf_locate(obj, obj->elf.dyn_offset, 1, &where) != 0) {
            obj->elf.dyn_size = 0;
        } else {
            obj->elf.dyn_offset = where;
        }
    }
    return AU_OBJ_OK;
}

static au_obj_cpu cpu_of(uint32_t machine)
{
    switch (machine) {
    case ELF_EM_X86_64:
        return AU_OBJ_CPU_X86_64;
    case ELF_EM_AARCH64:
        return AU_OBJ_CPU_AARCH64;
    case ELF_EM_386:
        return AU_OBJ_CPU_X86;
    case ELF_EM_ARM:
        return AU_OBJ_CPU_ARM;
    default:
        return AU_OBJ_CPU_OTHER;
    }
}

static au_obj_result elf_init(au_obj *obj, const uint8_t *head, size_t len)
{
    if (len < 16 || memcmp(head, "\177ELF", 4) != 0) {
        return AU_OBJ_NOT_RECOGNISED;
    }
    obj->format = AU_OBJ_FORMAT_ELF;
    if (head[5] == ELF_BIG) {
        return AU_OBJ_UNSUPPORTED;
    }
    if ((head[4] != ELF_CLASS32 && head[4] != ELF_CLASS64) || head[5] != ELF_LITTLE) {
        return AU_OBJ_MALFORMED;
    }
    int wide = head[4] == ELF_CLASS64;
    if (len < (wide ? 64u : 52u)) {
        return AU_OBJ_MALFORMED;
    }
    obj->bits = wide ? 64 : 32;
    obj->long_bytes = wide ? 8 : 4;
    uint16_t type = au__le16(head + 16);
    obj->type = type == ELF_ET_EXEC ? AU_OBJ_TYPE_EXEC : type == ELF_ET_DYN ? AU_OBJ_TYPE_DYNAMIC : AU_OBJ_TYPE_OTHER;
    obj->machine = au__le16(head + 18);
    obj->cpu = cpu_of(obj->machine);

    au_obj_elf *elf = &obj->elf;
    elf->phoff = wide ? au__le64(head + 32) : au__le32(head + 28);
    elf->shoff = wide ? au__le64(head + 40) : au__le32(head + 32);
    const uint8_t *tail = head + (wide ? 54 : 42);
    elf->phentsize = au__le16(tail);
    elf->phnum = au__le16(tail + 2);
    elf->shentsize = au__le16(tail + 4);
    elf->shnum = au__le16(tail + 6);
    elf->shstrndx = au__le16(tail + 8);

    if (elf->phnum && (elf->phentsize < (wide ? 56u : 32u) || elf->phentsize > 256)) {
        return AU_OBJ_MALFORMED;
    }
    if (elf->phnum > ELF_MAX_SEGMENTS) {
        return AU_OBJ_MALFORMED;
    }
    if (elf->shentsize < (wide ? 64u : 40u) || elf->shentsize > 256 || obj->source.in_memory) {
        elf->shoff = 0; /* no usable section headers; the object is used without them */
    }
    if (elf->shoff == 0) {
        elf->shnum = 0;
    }
    read_extended_counts(obj);
    if (elf->shnum > ELF_MAX_SECTIONS) {
        elf->shnum = ELF_MAX_SECTIONS;
    }
    return read_segments(obj);
}

int au__elf_locate(au_obj *obj, uint64_t vaddr, uint64_t len, uint64_t *offset)
{
    if (obj->source.in_memory) {
        uint64_t bias = obj->source.base - obj->image_vaddr;
        if (vaddr < obj->low_vaddr || vaddr >= obj->high_vaddr) {
            vaddr -= bias; /* the loader has made it a run-time address */
        }
        if (vaddr < obj->low_vaddr || vaddr >= obj->high_vaddr || obj->high_vaddr - vaddr < len) {
            return -1;
        }
        *offset = vaddr - obj->image_vaddr;
        return 0;
    }
    for (uint32_t i = 0; i < obj->elf.phnum; i++) {
        elf_segment segment;
        if (au__elf_segment(obj, i, &segment) != 0) {
            return -1;
        }
        if (segment.type == ELF_PT_LOAD && vaddr >= segment.vaddr && vaddr - segment.vaddr < segment.filesz &&
            segment.filesz - (vaddr - segment.vaddr) >= len) {
            *offset = segment.offset + (vaddr - segment.vaddr);
            return 0;
        }
    }
    return -1;
}

unsigned au__elf_dynamic(au_obj *obj)
{
    au_obj_elf *elf = &obj->elf;
    if (elf->dynamic_read) {
        return elf->dynamic_has;
    }
    elf->dynamic_read = 1;
    size_t entry = obj->bits == 64 ? 16 : 8;
    uint64_t count = elf->dyn_size / entry;
    if (count > ELF_MAX_DYNAMIC) {
        count = ELF_MAX_DYNAMIC;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *p = au__obj_view(obj, &obj->table, elf->dyn_offset + i * entry, entry);
        if (!p) {
            break;
        }
        uint64_t tag = obj->bits == 64 ? au__le64(p) : au__le32(p);
        uint64_t value = obj->bits == 64 ? au__le64(p + 8) : au__le32(p + 4);
        if (tag == ELF_DT_NULL) {
            break;
        }
        switch (tag) {
        case ELF_DT_SYMTAB:
            elf->symtab = value;
            elf->dynamic_has |= DYN_SYMTAB;
            break;
        case ELF_DT_STRTAB:
            elf->strtab = value;
            elf->dynamic_has |= DYN_STRTAB;
            break;
        case ELF_DT_STRSZ:
            elf->strsz = value;
            elf->dynamic_has |= DYN_STRSZ;
            break;
        case ELF_DT_SYMENT:
            elf->syment = value;
            break;
        case ELF_DT_HASH:
            elf->hash = value;
            elf->dynamic_has |= DYN_HASH;
            break;
        case ELF_DT_GNU_HASH:
            elf->gnu_hash = value;
            elf->dynamic_has |= DYN_GNU_HASH;
            break;
        case ELF_DT_SONAME:
            elf->soname = value;
            elf->dynamic_has |= DYN_SONAME;
            break;
        case ELF_DT_DEBUG:
            elf->debug = value;
            elf->dynamic_has |= DYN_DEBUG;
            break;
        default:
            break;
        }
    }
    return elf->dynamic_has;
}

static au_obj_result elf_find_section(au_obj *obj, const char *logical_name, au_obj_range *out)
{
    char name[64];
    int length = snprintf(name, sizeof name, ".%s", logical_name);
    if (length < 0 || (size_t)length >= sizeof name) {
        return AU_OBJ_NOT_FOUND;
    }
    elf_section names;
    if (obj->elf.shoff == 0 || obj->elf.shstrndx >= obj->elf.shnum ||
        au__elf_section(obj, obj->elf.shstrndx, &names) != 0 || names.offset > UINT64_MAX - names.size) {
        return AU_OBJ_NOT_FOUND;
    }
    for (uint64_t i = 1; i < obj->elf.shnum; i++) {
        elf_section section;
        if (au__elf_section(obj, i, &section) != 0) {
            break;
        }
        if (section.name < names.size &&
            au__obj_string_is(obj, names.offset + section.name, names.offset + names.size, name)) {
            /* An address outside of what is loaded is a lie, or the section of a separate debug file. */
            if (section.addr < obj->low_vaddr || section.addr >= obj->high_vaddr ||
                section.size > obj->high_vaddr - section.addr) {
                return AU_OBJ_MALFORMED;
            }
            out->vaddr = section.addr;
            out->size = section.size;
            return AU_OBJ_OK;
        }
    }
    return AU_OBJ_NOT_FOUND;
}

/** Notes of one segment: name size, description size, type, name, description, each padded (gABI, "Note Section"). */
static au_obj_result build_id_of(au_obj *obj, uint64_t offset, uint64_t size, uint64_t align, uint8_t *buf, size_t cap,
                                 size_t *len)
{
    uint64_t pad = align == 8 ? 7 : 3;
    uint64_t at = 0;
    for (int notes = 0; notes < 1024 && size >= 12 && at <= size - 12; notes++) {
        const uint8_t *p = au__obj_view(obj, &obj->strings, offset + at, 12);
        if (!p) {
            return AU_OBJ_UNREADABLE;
        }
        uint64_t name_size = au__le32(p), desc_size = au__le32(p + 4);
        uint32_t type = au__le32(p + 8);
        uint64_t name_at = at + 12;
        uint64_t desc_at = (name_at + name_size + pad) & ~pad;
        if (desc_at > size || desc_size > size - desc_at) {
            return AU_OBJ_MALFORMED;
        }
        if (type == ELF_NT_GNU_BUILD_ID && name_size == 4 && desc_size > 0) {
            const uint8_t *name = au__obj_view(obj, &obj->strings, offset + name_at, 4);
            if (name && memcmp(name, "GNU", 4) == 0) {
                size_t take = desc_size < cap ? (size_t)desc_size : cap;
                const uint8_t *id = au__obj_view(obj, &obj->strings, offset + desc_at, take);
                if (!id) {
                    return AU_OBJ_UNREADABLE;
                }
                memcpy(buf, id, take);
                *len = take;
                return AU_OBJ_OK;
            }
        }
        at = (desc_at + desc_size + pad) & ~pad;
    }
    return AU_OBJ_NOT_FOUND;
}

static au_obj_result elf_build_id(au_obj *obj, uint8_t *buf, size_t cap, size_t *len)
{
    for (uint32_t i = 0; i < obj->elf.phnum; i++) {
        elf_segment segment;
        if (au__elf_segment(obj, i, &segment) != 0) {
            return AU_OBJ_UNREADABLE;
        }
        if (segment.type != ELF_PT_NOTE) {
            continue;
        }
        uint64_t offset = segment.offset;
        if (obj->source.in_memory && au__elf_locate(obj, segment.vaddr, segment.filesz, &offset) != 0) {
            continue;
        }
        if (offset > UINT64_MAX - segment.filesz) {
            continue;
        }
        if (build_id_of(obj, offset, segment.filesz, segment.align, buf, cap, len) == AU_OBJ_OK) {
            return AU_OBJ_OK;
        }
    }
    return AU_OBJ_NOT_FOUND;
}

static au_obj_result elf_soname(au_obj *obj, char *buf, size_t cap)
{
    unsigned has = au__elf_dynamic(obj);
    if (!(has & DYN_SONAME) || !(has & DYN_STRTAB) || !(has & DYN_STRSZ) || cap == 0) {
        return AU_OBJ_NOT_FOUND;
    }
    uint64_t strings;
    if (obj->elf.soname >= obj->elf.strsz || au__elf_locate(obj, obj->elf.strtab, obj->elf.strsz, &strings) != 0) {
        return AU_OBJ_MALFORMED;
    }
    uint64_t at = strings + obj->elf.soname;
    uint64_t left = obj->elf.strsz - obj->elf.soname;
    for (size_t i = 0; i < cap && i < left; i++) {
        const uint8_t *p = au__obj_view(obj, &obj->strings, at + i, 1);
        if (!p) {
            return AU_OBJ_UNREADABLE;
        }
        buf[i] = (char)*p;
        if (*p == 0) {
            return AU_OBJ_OK;
        }
    }
    buf[0] = 0;
    return AU_OBJ_MALFORMED;
}

static au_obj_result elf_read_vaddr(au_obj *obj, uint64_t vaddr, void *buf, size_t len)
{
    uint64_t offset;
    if (au__elf_locate(obj, vaddr, len, &offset) != 0) {
        return AU_OBJ_NOT_FOUND;
    }
    return au__obj_copy(obj, offset, buf, len);
}

int au_obj_has_interpreter(const au_obj *obj)
{
    return obj->elf.has_interp;
}

au_obj_result au_obj_debug_entry(au_obj *obj, uint64_t *out)
{
    if (obj->format != AU_OBJ_FORMAT_ELF || !(au__elf_dynamic(obj) & DYN_DEBUG)) {
        return AU_OBJ_NOT_FOUND;
    }
    *out = obj->elf.debug;
    return AU_OBJ_OK;
}

const struct au_obj_reader au__obj_elf_reader = {
    .init = elf_init,
    .find_section = elf_find_section,
    .find_symbol = au__elf_find_symbol,
    .build_id = elf_build_id,
    .soname = elf_soname,
    .read_vaddr = elf_read_vaddr,
};
