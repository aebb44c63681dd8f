/* SPDX-License-Identifier: Apache-2.0 */
/* Coding of logs, and the memory that a log tells of. */
#include "platform/fake/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/internal.h"

enum { PAGE = 4096 };

typedef struct au__page {
    uint64_t number;
    uint8_t bytes[PAGE];
    uint8_t known[PAGE / 8], faulted[PAGE / 8];
} au__page;

/* ---- memory --------------------------------------------------------------------------------------------------- */

static au__page **page_slot(au__page **slots, size_t cap, uint64_t number)
{
    size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 24) & (cap - 1);
    while (slots[at] && slots[at]->number != number) {
        at = (at + 1) & (cap - 1);
    }
    return &slots[at];
}

static au__page *page_for(au__pages *pages, uint64_t number)
{
    if (pages->count * 2 >= pages->cap) {
        size_t cap = pages->cap ? pages->cap * 2 : 256;
        au__page **slots = calloc(cap, sizeof *slots);
        if (!slots) {
            return NULL;
        }
        for (size_t i = 0; i < pages->cap; i++) {
            if (pages->slots[i]) {
                *page_slot(slots, cap, pages->slots[i]->number) = pages->slots[i];
            }
        }
        free(pages->slots);
        pages->slots = slots;
        pages->cap = cap;
    }
    au__page **slot = page_slot(pages->slots, pages->cap, number);
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        if (*slot) {
            (*slot)->number = number;
            pages->count++;
        }
    }
    return *slot;
}

void au__pages_deinit(au__pages *pages)
{
    for (size_t i = 0; i < pages->cap; i++) {
        free(pages->slots[i]);
    }
    free(pages->slots);
    *pages = (au__pages){0};
}

static int put(au__pages *pages, au_addr addr, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        au_addr at = addr + done;
        size_t skip = (size_t)(at % PAGE);
        size_t take = PAGE - skip < len - done ? PAGE - skip : len - done;
        au__page *page = page_for(pages, at / PAGE);
        if (!page) {
            return -1;
        }
        if (bytes) {
            memcpy(page->bytes + skip, (const uint8_t *)bytes + done, take);
        }
        for (size_t i = skip; i < skip + take; i++) {
            uint8_t bit = (uint8_t)(1u << (i % 8));
            if (bytes) {
                page->known[i / 8] |= bit;
                page->faulted[i / 8] &= (uint8_t)~bit;
            } else {
                page->faulted[i / 8] |= bit;
                page->known[i / 8] &= (uint8_t)~bit;
            }
        }
        done += take;
    }
    return 0;
}

int au__pages_put(au__pages *pages, au_addr addr, const void *bytes, size_t len)
{
    return put(pages, addr, bytes, len);
}

void au__pages_fault(au__pages *pages, au_addr addr, size_t len)
{
    size_t rest = PAGE - (size_t)(addr % PAGE);
    (void)put(pages, addr, NULL, len < rest ? len : rest);
}

au_outcome au__pages_get(const au__pages *pages, au_addr addr, void *buf, size_t len)
{
    au_outcome outcome = AU_OK;
    if (len > UINT64_MAX - addr) {
        return AU_FAULT;
    }
    for (size_t done = 0; done < len;) {
        au_addr at = addr + done;
        size_t skip = (size_t)(at % PAGE);
        size_t take = PAGE - skip < len - done ? PAGE - skip : len - done;
        const au__page *page = pages->cap ? *page_slot(pages->slots, pages->cap, at / PAGE) : NULL;
        for (size_t i = skip; i < skip + take; i++) {
            if (page && (page->faulted[i / 8] >> (i % 8) & 1)) {
                return AU_FAULT;
            }
            if (!page || !(page->known[i / 8] >> (i % 8) & 1)) {
                outcome = AU_NOT_KNOWN;
            }
        }
        if (page && outcome == AU_OK) {
            memcpy((uint8_t *)buf + done, page->bytes + skip, take);
        }
        done += take;
    }
    return outcome;
}

/* ---- coding --------------------------------------------------------------------------------------------------- */

void au__put_number(au_buf *buf, uint64_t value)
{
    uint8_t bytes[10];
    size_t len = 0;
    do {
        bytes[len++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    (void)au_buf_append(buf, bytes, len); /* a cut log is noticed by its reader */
}

void au__put_signed(au_buf *buf, int64_t value)
{
    au__put_number(buf, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void au__put_bytes(au_buf *buf, const void *bytes, size_t len)
{
    au__put_number(buf, len);
    if (len) {
        (void)au_buf_append(buf, bytes, len);
    }
}

void au__put_text(au_buf *buf, const char *text)
{
    au__put_bytes(buf, text, text ? strlen(text) + 1 : 0);
}

uint64_t au__get_number(au__cursor *from)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (from->at >= from->end) {
            break;
        }
        uint8_t byte = *from->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            return value;
        }
    }
    from->bad = 1;
    return 0;
}

int64_t au__get_signed(au__cursor *from)
{
    uint64_t raw = au__get_number(from);
    return (int64_t)(raw >> 1 ^ (raw & 1 ? UINT64_MAX : 0));
}

const uint8_t *au__get_bytes(au__cursor *from, size_t *len)
{
    uint64_t size = au__get_number(from);
    if (from->bad || size > (uint64_t)(from->end - from->at)) {
        from->bad = 1;
        *len = 0;
        return NULL;
    }
    const uint8_t *bytes = from->at;
    from->at += size;
    *len = (size_t)size;
    return bytes;
}

const char *au__get_text(au__cursor *from)
{
    size_t len;
    const uint8_t *bytes = au__get_bytes(from, &len);
    if (len && bytes[len - 1] != 0) {
        from->bad = 1;
        return NULL;
    }
    return len ? (const char *)bytes : NULL;
}

int au__next_record(au__cursor *log, unsigned *kind, au__cursor *content)
{
    if (log->at >= log->end) {
        return 0;
    }
    *kind = (unsigned)au__get_number(log);
    size_t len;
    const uint8_t *bytes = au__get_bytes(log, &len);
    if (log->bad) {
        return -1;
    }
    *content = (au__cursor){bytes, bytes + len, 0};
    return 1;
}

void au__show_regions(au__cursor *from, au_region_fn fn, void *baton)
{
    int stopped = 0;
    while (au__get_number(from) == 1) {
        au_region region = {0};
        region.start = au__get_number(from);
        region.end = au__get_number(from);
        region.perms = (unsigned)au__get_number(from);
        region.offset = au__get_number(from);
        region.file_id = au__get_number(from);
        region.path = au__get_text(from);
        region.deleted = (int)au__get_number(from);
        stopped = stopped || from->bad || !fn || fn(baton, &region);
    }
}

void au__show_modules(au__cursor *from, au_module_fn fn, void *baton)
{
    int stopped = 0;
    while (au__get_number(from) == 1) {
        au_module module = {0};
        module.id = au__get_number(from);
        module.base = au__get_number(from);
        module.end = au__get_number(from);
        module.bias = au__get_number(from);
        module.path = au__get_text(from);
        module.deleted = (int)au__get_number(from);
        module.is_main = (int)au__get_number(from);
        module.bits = (int)au__get_number(from);
        size_t len;
        const uint8_t *id = au__get_bytes(from, &len);
        module.build_id_len = len < sizeof module.build_id ? len : sizeof module.build_id;
        if (len) {
            memcpy(module.build_id, id, module.build_id_len);
        }
        stopped = stopped || from->bad || !fn || fn(baton, &module);
    }
}

void au__show_processes(au__cursor *from, au_process_fn fn, void *baton)
{
    int stopped = 0;
    while (au__get_number(from) == 1) {
        au_process process = {0};
        process.pid = au__get_signed(from);
        process.parent = au__get_signed(from);
        process.start_time_ns = au__get_number(from);
        stopped = stopped || from->bad || !fn || fn(baton, &process);
    }
}

void au__put_error(au_buf *buf, const au_error *error)
{
    au__put_number(buf, error ? 1 : 0);
    if (error) {
        au__put_number(buf, error->code);
        au__put_signed(buf, error->os_code);
        au__put_text(buf, error->message);
        au__put_text(buf, error->cause);
        au__put_text(buf, error->hint);
    }
}

au_error *au__get_error(au__cursor *from)
{
    if (au__get_number(from) == 0) {
        return NULL;
    }
    au_errcode code = (au_errcode)au__get_number(from);
    int os_code = (int)au__get_signed(from);
    const char *message = au__get_text(from), *cause = au__get_text(from), *hint = au__get_text(from);
    if (code == AU_ERR_GONE) {
        return au_error_gone();
    }
    au_error *error = au_error_create(code, os_code, "%s", message ? message : "recorded error");
    if (cause) {
        error = au_error_cause(error, "%s", cause);
    }
    return hint ? au_error_hint(error, "%s", hint) : error;
}

/* ---- files ---------------------------------------------------------------------------------------------------- */

static au_error *file_error(const char *what, const char *path, int os_code)
{
    return au_error_cause(au_error_create(AU_ERR_IO, os_code, "Cannot %s %s", what, path), "%s", strerror(os_code));
}

au_error *au_log_save(const au_buf *log, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (!file) {
        return file_error("open", path, errno);
    }
    size_t put = fwrite(log->data, 1, log->len, file);
    int failed = put != log->len ? errno : 0;
    if (fclose(file) != 0 && !failed) {
        failed = errno;
    }
    return failed ? file_error("write", path, failed) : NULL;
}

au_error *au_log_load(au_buf *log, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return file_error("open", path, errno);
    }
    au_buf_reset(log);
    uint8_t chunk[16384];
    size_t got;
    int no_memory = 0;
    while (!no_memory && (got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        no_memory = au_buf_append(log, chunk, got) != 0;
    }
    int failed = ferror(file) ? errno : 0;
    fclose(file);
    return no_memory ? au_error_memory() : failed ? file_error("read", path, failed) : NULL;
}
