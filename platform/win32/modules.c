/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mapped and which images are loaded. Both come from VirtualQueryEx: the loader's own list in the tracee, which
 * Toolhelp and psapi read, is not there yet while a process starts, and does not have what a program has loaded without
 * the loader (single-file builds that unpack a DLL into memory). An image is an allocation that the system has mapped
 * as one, or private memory with code in it that begins with the headers of one.
 */
#include "platform/win32/tracee.h" /* brings windows.h, which the next ones need */

#include <psapi.h>
#include <stdlib.h>
#include <string.h>

#include "objfile/objfile.h"

enum { PATH_CHARS = 32768 }; /* the longest path of the system (Win32, "Maximum Path Length Limitation") */

static unsigned perms_of(DWORD protect, DWORD type)
{
    static const unsigned char of[] = {AU_PERM_READ,
                                       AU_PERM_READ | AU_PERM_WRITE,
                                       AU_PERM_READ | AU_PERM_WRITE, /* PAGE_WRITECOPY */
                                       AU_PERM_EXEC,
                                       AU_PERM_READ | AU_PERM_EXEC,
                                       AU_PERM_READ | AU_PERM_WRITE | AU_PERM_EXEC,
                                       AU_PERM_READ | AU_PERM_WRITE | AU_PERM_EXEC};
    unsigned perms = 0;
    for (unsigned i = 0; i < sizeof of; i++) { /* PAGE_READONLY 2, ... PAGE_EXECUTE_WRITECOPY 0x80 (winnt.h) */
        perms |= protect & (2u << i) ? of[i] : 0;
    }
    if (protect & PAGE_GUARD) {
        perms &= ~(unsigned)(AU_PERM_READ | AU_PERM_WRITE | AU_PERM_EXEC); /* the first touch is the program's own */
    }
    return type == MEM_MAPPED ? perms | AU_PERM_SHARED : perms;
}

/** The path that the file behind an address has in the namespace of the system's devices; "" if there is none. */
static void device_path(const win32_proc *wp, au_addr addr, wchar_t *out)
{
    DWORD len = K32GetMappedFileNameW(wp->handle, (void *)(uintptr_t)addr, out, PATH_CHARS - 1);
    out[len < PATH_CHARS ? len : 0] = 0;
}

/** As users write it: "\Device\HarddiskVolume3\x" is "C:\x", if C: is what that device is called. For free(). */
static char *dos_path(const wchar_t *path)
{
    static const wchar_t network[] = L"\\Device\\Mup\\", object[] = L"\\??\\";
    wchar_t device[512], *joined = NULL;
    char *utf8;
    if (wcsncmp(path, object, 4) == 0) {
        return au__win32_utf8(path + 4);
    }
    size_t rest = 0;
    wchar_t drive[3] = L"A:";
    for (; drive[0] <= L'Z' && !rest; drive[0]++) {
        if (QueryDosDeviceW(drive, device, sizeof device / sizeof device[0])) {
            size_t len = wcslen(device);
            if (len && wcsncmp(path, device, len) == 0 && path[len] == L'\\') {
                rest = len;
                break;
            }
        }
    }
    size_t chars = wcslen(path) + 3;
    if (rest && (joined = malloc(chars * sizeof *joined))) {
        joined[0] = drive[0];
        joined[1] = L':';
        wcscpy(joined + 2, path + rest);
    } else if (wcsncmp(path, network, 12) == 0 && (joined = malloc(chars * sizeof *joined))) {
        wcscpy(joined, L"\\\\");
        wcscpy(joined + 2, path + 12);
    }
    utf8 = au__win32_utf8(joined ? joined : path);
    free(joined);
    return utf8;
}

static uint64_t hash_of(const wchar_t *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++) {
        hash = (hash ^ (uint64_t)*text) * 1099511628211u;
    }
    return hash | 1;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/** The next committed range at or after *at; 0 at the end, -1 on failure (GetLastError). */
static int next_range(const win32_proc *wp, au_addr *at, MEMORY_BASIC_INFORMATION *info)
{
    for (;;) {
        if (!VirtualQueryEx(wp->handle, (void *)(uintptr_t)*at, info, sizeof *info)) {
            return GetLastError() == ERROR_INVALID_PARAMETER ? 0 : -1; /* past the highest address of a program */
        }
        au_addr end = (uintptr_t)info->BaseAddress + info->RegionSize;
        if (end <= *at) {
            return 0;
        }
        *at = end;
        if (info->State == MEM_COMMIT) {
            return 1;
        }
    }
}

au_error *au__win32_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    win32_proc *wp = win32_of(proc);
    if (au__win32_gone(wp)) {
        return au_error_gone();
    }
    wchar_t *path = malloc(PATH_CHARS * sizeof *path);
    if (!path) {
        return au_error_memory();
    }
    MEMORY_BASIC_INFORMATION info;
    void *allocation = NULL;
    char *label = NULL;
    uint64_t file_id = 0;
    au_error *error = NULL;
    au_addr at = 0;
    int more = 0, seen = 0;
    while ((more = next_range(wp, &at, &info)) > 0) {
        seen = 1;
        if (info.AllocationBase != allocation) {
            allocation = info.AllocationBase;
            free(label);
            label = NULL;
            file_id = 0;
            if (info.Type != MEM_PRIVATE) {
                device_path(wp, (uintptr_t)info.BaseAddress, path);
                if (path[0] && !(label = dos_path(path))) {
                    error = au_error_memory();
                    break;
                }
                file_id = path[0] ? hash_of(path) : 0;
            }
        }
        au_region region = {.start = (uintptr_t)info.BaseAddress,
                            .end = at,
                            .perms = perms_of(info.Protect, info.Type),
                            .offset = file_id ? (uintptr_t)info.BaseAddress - (uintptr_t)allocation : 0,
                            .file_id = file_id,
                            .path = label};
        if (fn(baton, &region)) {
            break;
        }
    }
    DWORD code = GetLastError();
    free(label);
    free(path);
    if (!error && (more < 0 || !seen)) {
        error = au__win32_error(wp, more < 0 ? code : ERROR_INVALID_PARAMETER, "memory map");
    }
    return error;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static void free_module(win32_module *m)
{
    free(m->path);
    free(m->device);
    free(m->head);
}

static void free_modules(win32_module *modules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free_module(&modules[i]);
    }
    free(modules);
}

void au__win32_modules_forget(win32_proc *wp)
{
    free_modules(wp->modules, wp->n_modules);
    wp->modules = NULL;
    wp->n_modules = wp->cap_modules = 0;
}

/** As many of the bytes of [addr, addr+len) as can be read from its beginning on. */
static size_t read_some(win32_proc *wp, au_addr addr, void *buf, size_t len)
{
    if (au__win32_read(&wp->proc, addr, buf, len) == AU_OK) {
        return len;
    }
    size_t done = 0;
    while (done < len) {
        size_t step = wp->page_bytes - (size_t)((addr + done) % wp->page_bytes);
        step = step < len - done ? step : len - done;
        if (au__win32_read(&wp->proc, addr + done, (uint8_t *)buf + done, step) != AU_OK) {
            break;
        }
        done += step;
    }
    return done;
}

typedef struct image_bytes {
    win32_proc *wp;
    au_addr base;
} image_bytes;

static int read_image(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    image_bytes *image = baton;
    *got = offset <= UINT64_MAX - image->base ? read_some(image->wp, image->base + offset, buf, len) : 0;
    return *got ? 0 : -1;
}

/** An allocation as the walk has seen it. */
typedef struct allocation {
    au_addr base, end;
    DWORD type;
    int has_code;
} allocation;

static au_error *no_memory(win32_module *m)
{
    free_module(m);
    return au_error_memory();
}

static wchar_t *copy_wide(const wchar_t *text)
{
    size_t bytes = (wcslen(text) + 1) * sizeof *text;
    wchar_t *copy = malloc(bytes);
    if (copy) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

static au_error *add_module(win32_proc *wp, win32_module *m)
{
    if (wp->n_modules == wp->cap_modules) {
        size_t cap = wp->cap_modules ? wp->cap_modules * 2 : 64;
        win32_module *grown = realloc(wp->modules, cap * sizeof *grown);
        if (!grown) {
            return no_memory(m);
        }
        wp->modules = grown;
        wp->cap_modules = cap;
    }
    wp->modules[wp->n_modules++] = *m;
    return NULL;
}

/** Is it the image of the last list at that place? The file of one that is mapped cannot change. */
static int take_over(win32_proc *wp, const allocation *a, const wchar_t *device, win32_module *out)
{
    for (size_t i = 0; i < wp->n_before && device[0]; i++) {
        win32_module *m = &wp->before[i];
        if (m->base == a->base && m->end >= a->end && m->device && wcscmp(m->device, device) == 0) {
            *out = *m;
            memset(m, 0, sizeof *m);
            return 1;
        }
    }
    return 0;
}

/** Adds the image that an allocation is; nothing happens if it is none. `device` is room for a path. */
static au_error *add_image(win32_proc *wp, const allocation *a, wchar_t *device)
{
    uint8_t magic[2];
    win32_module m = {0};
    if (a->type != MEM_IMAGE && !(a->type == MEM_PRIVATE && a->has_code)) {
        return NULL;
    }
    device[0] = 0;
    if (a->type == MEM_IMAGE) {
        device_path(wp, a->base, device);
        if (take_over(wp, a, device, &m)) {
            return add_module(wp, &m);
        }
    }
    if (au__win32_read(&wp->proc, a->base, magic, sizeof magic) != AU_OK || magic[0] != 'M' || magic[1] != 'Z') {
        return NULL;
    }
    image_bytes bytes = {wp, a->base};
    au_obj_source source = {.read = read_image, .baton = &bytes, .in_memory = 1, .base = a->base};
    au_obj obj;
    if (au_obj_init(&obj, &source) != AU_OBJ_OK || obj.high_vaddr > UINT64_MAX - a->base) {
        return NULL;
    }
    m = (win32_module){.base = a->base, .end = a->base + obj.high_vaddr, .bits = obj.bits};
    m.end = a->end > m.end ? a->end : m.end;
    m.is_main = m.base == wp->image_base;
    if (au_obj_build_id(&obj, m.build_id, sizeof m.build_id, &m.build_id_len) != AU_OBJ_OK) {
        m.build_id_len = 0;
    }
    m.path = dos_path(device);
    m.device = copy_wide(device);
    if (!m.path || !m.device) {
        return no_memory(&m);
    }
    if (a->type == MEM_IMAGE) {
        m.head = malloc(wp->page_bytes);
        if (!m.head) {
            return no_memory(&m);
        }
        m.head_len = read_some(wp, a->base, m.head, wp->page_bytes);
    }
    wchar_t *wide = m.path[0] ? au__win32_wide(m.path) : NULL;
    m.deleted = wide && GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES && GetLastError() == ERROR_FILE_NOT_FOUND;
    free(wide);
    return add_module(wp, &m);
}

static au_error *collect_images(win32_proc *wp, wchar_t *path)
{
    MEMORY_BASIC_INFORMATION info;
    allocation a = {0};
    au_error *error = NULL;
    au_addr at = 0;
    int more, seen = 0;
    while (!error && (more = next_range(wp, &at, &info)) > 0) {
        seen = 1;
        if ((uintptr_t)info.AllocationBase != a.base) {
            error = a.base ? add_image(wp, &a, path) : NULL;
            a = (allocation){.base = (uintptr_t)info.AllocationBase, .type = info.Type};
        }
        a.end = at;
        a.has_code |= (perms_of(info.Protect, info.Type) & AU_PERM_EXEC) != 0;
    }
    if (error) {
        return error;
    }
    if (more < 0 || !seen) {
        return au__win32_error(wp, more < 0 ? GetLastError() : ERROR_INVALID_PARAMETER, "list of images");
    }
    return a.base ? add_image(wp, &a, path) : NULL;
}

au_error *au__win32_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    win32_proc *wp = win32_of(proc);
    if (au__win32_gone(wp)) {
        return au_error_gone();
    }
    wp->before = wp->modules;
    wp->n_before = wp->n_modules;
    wp->modules = NULL;
    wp->n_modules = wp->cap_modules = 0;
    wp->module_epoch++;
    wchar_t *path = malloc(PATH_CHARS * sizeof *path);
    au_error *error = path ? collect_images(wp, path) : au_error_memory();
    free(path);
    free_modules(wp->before, wp->n_before);
    wp->before = NULL;
    wp->n_before = 0;
    if (error) {
        return error;
    }
    if (au__win32_gone(wp)) {
        return au_error_gone();
    }
    for (size_t i = 0; i < wp->n_modules; i++) {
        const win32_module *m = &wp->modules[i];
        au_module out = {.id = wp->module_epoch << 32 | i,
                         .base = m->base,
                         .end = m->end,
                         .bias = m->base, /* addresses of this format count from the base (objfile.h) */
                         .path = m->path,
                         .deleted = m->deleted,
                         .is_main = m->is_main,
                         .bits = m->bits,
                         .build_id_len = m->build_id_len};
        memcpy(out.build_id, m->build_id, sizeof out.build_id);
        if (fn(baton, &out)) {
            break;
        }
    }
    return NULL;
}

au_error *au__win32_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                au_module_source *source)
{
    win32_proc *wp = win32_of(proc);
    if (au__win32_gone(wp)) {
        return au_error_gone();
    }
    size_t index = (uint32_t)module_id;
    if (module_id >> 32 != wp->module_epoch || index >= wp->n_modules) {
        return au_error_create(AU_ERR_VALUE, 0, "Process %lld has no such module (any more)", (long long)proc->pid);
    }
    const win32_module *m = &wp->modules[index];
    uint64_t size = m->end - m->base;
    size_t most = offset >= size ? 0 : size - offset < len ? (size_t)(size - offset) : len;
    if (most && offset < m->head_len) {
        *got = m->head_len - (size_t)offset < most ? m->head_len - (size_t)offset : most;
        memcpy(buf, m->head + offset, *got);
        *got += *got < most ? read_some(wp, m->base + offset + *got, (uint8_t *)buf + *got, most - *got) : 0;
    } else {
        *got = most ? read_some(wp, m->base + offset, buf, most) : 0;
    }
    *source = AU_SOURCE_MEMORY;
    return au__win32_gone(wp) ? au_error_gone() : NULL;
}
