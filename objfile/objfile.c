/* SPDX-License-Identifier: Apache-2.0 */
#include "objfile/objfile.h"

#include <string.h>

#include "objfile/reader.h"

static const struct au_obj_reader *const au__readers[] = {&au__obj_elf_reader, &au__obj_pe_reader};

const uint8_t *au__obj_view(au_obj *obj, au_obj_window *window, uint64_t offset, size_t len)
{
    if (len > sizeof window->bytes || offset > UINT64_MAX - len) {
        return NULL;
    }
    if (offset >= window->offset && offset + len <= window->offset + window->len) {
        return window->bytes + (offset - window->offset);
    }
    window->offset = offset;
    window->len = 0;
    size_t want = sizeof window->bytes;
    if (want > UINT64_MAX - offset) {
        want = (size_t)(UINT64_MAX - offset);
    }
    size_t got = 0;
    /* A source that cannot serve a whole window (the last bytes before a hole) may still serve what is needed. */
    if (obj->source.read(obj->source.baton, offset, window->bytes, want, &got) != 0 || got < len) {
        got = 0;
        if (obj->source.read(obj->source.baton, offset, window->bytes, len, &got) != 0) {
            return NULL;
        }
    }
    window->len = got <= sizeof window->bytes ? got : 0;
    return window->len >= len ? window->bytes : NULL;
}

au_obj_result au__obj_copy(au_obj *obj, uint64_t offset, void *buf, size_t len)
{
    size_t done = 0;
    while (done < len) {
        size_t got = 0;
        if (obj->source.read(obj->source.baton, offset + done, (uint8_t *)buf + done, len - done, &got) != 0 ||
            got == 0 || got > len - done) {
            return AU_OBJ_UNREADABLE;
        }
        done += got;
    }
    return AU_OBJ_OK;
}

int au__obj_string_is(au_obj *obj, uint64_t offset, uint64_t limit, const char *name)
{
    size_t need = strlen(name) + 1;
    if (offset >= limit || limit - offset < need) {
        return 0;
    }
    const uint8_t *bytes = au__obj_view(obj, &obj->strings, offset, need);
    return bytes && memcmp(bytes, name, need) == 0;
}

au_obj_result au_obj_init(au_obj *obj, const au_obj_source *source)
{
    memset(obj, 0, offsetof(au_obj, table));
    memset(&obj->elf, 0, sizeof obj->elf);
    memset(&obj->pe, 0, sizeof obj->pe);
    obj->table.len = obj->strings.len = 0;
    obj->table.offset = obj->strings.offset = 0;
    obj->source = *source;

    uint8_t head[64];
    size_t got = 0;
    if (source->read(source->baton, 0, head, sizeof head, &got) != 0) {
        return AU_OBJ_UNREADABLE;
    }
    if (got > sizeof head) {
        return AU_OBJ_UNREADABLE;
    }
    for (size_t i = 0; i < sizeof au__readers / sizeof au__readers[0]; i++) {
        au_obj_result result = au__readers[i]->init(obj, head, got);
        if (result != AU_OBJ_NOT_RECOGNISED) {
            obj->reader = result == AU_OBJ_OK ? au__readers[i] : NULL;
            return result;
        }
    }
    return AU_OBJ_NOT_RECOGNISED;
}

au_obj_result au_obj_find_section(au_obj *obj, const char *logical_name, au_obj_range *out)
{
    return obj->reader ? obj->reader->find_section(obj, logical_name, out) : AU_OBJ_NOT_RECOGNISED;
}

au_obj_result au_obj_find_symbol(au_obj *obj, const char *name, au_obj_range *out)
{
    return obj->reader ? obj->reader->find_symbol(obj, name, out) : AU_OBJ_NOT_RECOGNISED;
}

au_obj_result au_obj_build_id(au_obj *obj, uint8_t *buf, size_t cap, size_t *len)
{
    return obj->reader ? obj->reader->build_id(obj, buf, cap, len) : AU_OBJ_NOT_RECOGNISED;
}

au_obj_result au_obj_soname(au_obj *obj, char *buf, size_t cap)
{
    return obj->reader ? obj->reader->soname(obj, buf, cap) : AU_OBJ_NOT_RECOGNISED;
}

au_obj_result au_obj_read_vaddr(au_obj *obj, uint64_t vaddr, void *buf, size_t len)
{
    return obj->reader ? obj->reader->read_vaddr(obj, vaddr, buf, len) : AU_OBJ_NOT_RECOGNISED;
}

const char *au_obj_result_text(au_obj_result result)
{
    switch (result) {
    case AU_OBJ_OK:
        return "ok";
    case AU_OBJ_NOT_FOUND:
        return "not found";
    case AU_OBJ_NOT_RECOGNISED:
        return "not an object file of a known format";
    case AU_OBJ_UNSUPPORTED:
        return "an object file of a kind that is not supported";
    case AU_OBJ_MALFORMED:
        return "a malformed object file";
    case AU_OBJ_UNREADABLE:
        return "an object file that cannot be read";
    }
    return "unknown result";
}
