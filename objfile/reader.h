/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: what a format's reader provides, and the bounded access to the source that all share.
 */
#ifndef AU_OBJFILE_READER_H
#define AU_OBJFILE_READER_H

#include "objfile/objfile.h"

struct au_obj_reader {
    /** `head` holds the first `len` bytes. AU_OBJ_NOT_RECOGNISED passes the object on to the next reader. */
    au_obj_result (*init)(au_obj *obj, const uint8_t *head, size_t len);
    au_obj_result (*find_section)(au_obj *obj, const char *logical_name, au_obj_range *out);
    au_obj_result (*find_symbol)(au_obj *obj, const char *name, au_obj_range *out);
    au_obj_result (*build_id)(au_obj *obj, uint8_t *buf, size_t cap, size_t *len);
    au_obj_result (*soname)(au_obj *obj, char *buf, size_t cap);
    au_obj_result (*read_vaddr)(au_obj *obj, uint64_t vaddr, void *buf, size_t len);
};

extern const struct au_obj_reader au__obj_elf_reader;
extern const struct au_obj_reader au__obj_pe_reader;

/**
 * Shows `len` bytes (at most a window) at `offset` of the source. NULL when they are not all there. Valid until the
 * next call with the same window.
 */
const uint8_t *au__obj_view(au_obj *obj, au_obj_window *window, uint64_t offset, size_t len);

/** Copies exactly `len` bytes at `offset` of the source. */
au_obj_result au__obj_copy(au_obj *obj, uint64_t offset, void *buf, size_t len);

/** Whether the NUL-terminated string at `offset` is `name`; a string that leaves [offset, limit) is not. */
int au__obj_string_is(au_obj *obj, uint64_t offset, uint64_t limit, const char *name);

static inline uint16_t au__le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | (uint16_t)(p[1] << 8));
}

static inline uint32_t au__le32(const uint8_t *p)
{
    return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}

static inline uint64_t au__le64(const uint8_t *p)
{
    return (uint64_t)au__le32(p) | ((uint64_t)au__le32(p + 4) << 32);
}

#endif
