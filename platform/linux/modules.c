/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions and modules, from /proc/PID/maps.
 *
 * A module begins at a mapping of offset 0 of a file that shows an ELF header there. The header's own PT_LOAD segments
 * say how far it reaches; mappings of the same file within belong to it. One of them must be executable, so that a
 * library which a program merely maps as data is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "platform/linux/linux.h"
#include "platform/linux/maps.h"

static long read_fd(void *baton, void *buf, size_t len)
{
    ssize_t got;
    do {
        got = read(*(int *)baton, buf, len);
    } while (got < 0 && errno == EINTR);
    return (long)got;
}

static au_error *each_line(linux_proc *lp, int (*fn)(void *baton, const au__maps_line *line), void *baton)
{
    int fd = au__linux_open_at(lp, au__linux_body(lp), "maps");
    if (fd < 0) {
        return au__linux_error(lp, errno, "memory map");
    }
    size_t lines = 0;
    int result = au__maps_each(read_fd, &fd, fn, baton, &lines);
    int saved = errno;
    au__linux_close(lp, fd);
    if (result == -2) {
        return au_error_memory();
    }
    if (result == -1) {
        return au__linux_error(lp, saved, "memory map");
    }
    /* Without an address space the file is empty: the end of the process, or the moment of an exec. */
    return lines || result ? NULL : au_error_gone();
}

typedef struct region_baton {
    au_region_fn fn;
    void *baton;
} region_baton;

static int show_region(void *baton, const au__maps_line *line)
{
    const region_baton *to = baton;
    au_region region = {.start = line->start,
                        .end = line->end,
                        .perms = line->perms,
                        .offset = line->offset,
                        .file_id = au__maps_file_id(line),
                        .path = line->path,
                        .deleted = line->deleted};
    return to->fn(to->baton, &region) ? 1 : 0;
}

au_error *au__linux_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    linux_proc *lp = linux_of(proc);
    if (au__linux_gone(lp)) {
        return au_error_gone();
    }
    region_baton to = {fn, baton};
    return each_line(lp, show_region, &to);
}

/* ---- modules ------------------------------------------------------------------------------------------------- */

typedef struct map_list {
    au__maps_line *lines; /* paths are owned */
    unsigned char *taken;
    size_t n, cap;
    int no_memory;
} map_list;

static int collect(void *baton, const au__maps_line *line)
{
    map_list *list = baton;
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 256;
        au__maps_line *grown = realloc(list->lines, cap * sizeof *grown);
        if (!grown) {
            list->no_memory = 1;
            return 1;
        }
        list->lines = grown;
        list->cap = cap;
    }
    au__maps_line *copy = &list->lines[list->n];
    *copy = *line;
    if (line->path) {
        copy->path = strdup(line->path);
        if (!copy->path) {
            list->no_memory = 1;
            return 1;
        }
    }
    list->n++;
    return 0;
}

static void list_deinit(map_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free((void *)(uintptr_t)list->lines[i].path);
    }
    free(list->lines);
    free(list->taken);
}

typedef struct memory_source {
    linux_proc *lp;
    au_addr base;
} memory_source;

static int read_memory(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    const memory_source *from = baton;
    au_addr addr = from->base + offset; /* wraps on purpose: segments below the mapping of offset 0 */
    size_t page = from->lp->page_bytes;
    size_t done = 0;
    if (au__linux_read(&from->lp->proc, addr, buf, len) == AU_OK) {
        done = len;
    }
    while (done < len) { /* up to the hole */
        size_t step = page - (size_t)((addr + done) % page);
        step = step < len - done ? step : len - done;
        if (au__linux_read(&from->lp->proc, addr + done, (char *)buf + done, step) != AU_OK) {
            break;
        }
        done += step;
    }
    *got = done;
    return done ? 0 : -1;
}

static int read_file(void *baton, uint64_t offset, void *buf, size_t len, size_t *got)
{
    ssize_t count;
    do {
        count = pread(*(int *)baton, buf, len, (off_t)offset);
    } while (count < 0 && errno == EINTR);
    *got = count > 0 ? (size_t)count : 0;
    return count < 0 ? -1 : 0;
}

/** Is what lies at `path` (from directory `dir`) the mapped file? 2: the very one; 1: the inode alone agrees. */
static int same_file(int dir, const char *path, const linux_module *module, struct stat *out)
{
    if (fstatat(dir, path, out, 0) != 0 || !S_ISREG(out->st_mode) || out->st_ino != module->inode) {
        return 0;
    }
    return major(out->st_dev) == module->dev_major && minor(out->st_dev) == module->dev_minor ? 2 : 1;
}

/** Opens only what `same_file` has seen; a path can become something else (a fifo that blocks) at any moment. */
static int open_seen(int dir, const char *path, const struct stat *seen)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat now;
    if (fd >= 0 && (fstat(fd, &now) != 0 || now.st_ino != seen->st_ino || now.st_dev != seen->st_dev)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/**
 * Overlay and btrfs file systems report another device number in maps than in stat. Then the first page in memory must
 * be the first page of the file: ELF header, segments and (nearly always) the build id are in it.
 */
static int same_content(linux_proc *lp, const linux_module *module, int fd)
{
    uint8_t in_memory[4096], in_file[4096];
    size_t got = 0;
    size_t len = sizeof in_memory;
    if (module->first_end - module->base < len) {
        len = (size_t)(module->first_end - module->base);
    }
    return read_file(&fd, 0, in_file, len, &got) == 0 && got >= 64 &&
           au__linux_read(&lp->proc, module->base, in_memory, got) == AU_OK && memcmp(in_memory, in_file, got) == 0;
}

static int try_path(linux_proc *lp, const linux_module *module, int dir, const char *path, int exact)
{
    struct stat seen;
    int same = same_file(dir, path, module, &seen);
    if (same == 0 && !exact) {
        return -1;
    }
    if (same == 0 && (fstatat(dir, path, &seen, 0) != 0 || !S_ISREG(seen.st_mode))) {
        return -1;
    }
    int fd = open_seen(dir, path, &seen);
    if (fd >= 0 && same != 2 && !exact && !same_content(lp, module, fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/**
 * The file of a module: at its path as we see it (a chroot shows in maps from our root), at its path below the
 * process's root (another mount namespace), through the mapping itself (map_files, for the privileged), through exe.
 */
static int open_file(linux_proc *lp, const linux_module *module)
{
    if (module->inode == 0 || !module->path) {
        return -1;
    }
    int fd = -1, body = au__linux_body(lp);
    if (module->path[0] == '/') {
        fd = try_path(lp, module, AT_FDCWD, module->path, 0);
        if (fd < 0) {
            size_t size = strlen(module->path) + sizeof "root";
            char *below = malloc(size);
            if (below) {
                snprintf(below, size, "root%s", module->path);
                fd = try_path(lp, module, body, below, 0);
                free(below);
            }
        }
    }
    if (fd < 0) {
        char name[64];
        snprintf(name, sizeof name, "map_files/%" PRIx64 "-%" PRIx64, module->base, module->first_end);
        fd = try_path(lp, module, body, name, 1);
    }
    if (fd < 0) {
        fd = try_path(lp, module, body, "exe", 0);
    }
    return fd;
}

/** Whether its file is still where maps says, as one of the two roots sees it. */
static int is_deleted(linux_proc *lp, const linux_module *module, int marked)
{
    if (module->inode == 0 || !module->path || module->path[0] != '/') {
        return marked;
    }
    struct stat seen;
    if (same_file(AT_FDCWD, module->path, module, &seen)) {
        return 0;
    }
    size_t size = strlen(module->path) + sizeof "root";
    char *below = malloc(size);
    if (!below) {
        return marked;
    }
    snprintf(below, size, "root%s", module->path);
    int there = same_file(au__linux_body(lp), below, module, &seen);
    free(below);
    return !there;
}

void au__linux_modules_forget(linux_proc *lp)
{
    for (size_t i = 0; i < lp->n_modules; i++) {
        if (lp->modules[i].fd >= 0) {
            close(lp->modules[i].fd);
        }
        free(lp->modules[i].path);
    }
    free(lp->modules);
    lp->modules = NULL;
    lp->n_modules = lp->cap_modules = 0;
}

static linux_module *add_module(linux_proc *lp)
{
    if (lp->n_modules == lp->cap_modules) {
        size_t cap = lp->cap_modules ? lp->cap_modules * 2 : 32;
        linux_module *grown = realloc(lp->modules, cap * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        lp->modules = grown;
        lp->cap_modules = cap;
    }
    linux_module *module = &lp->modules[lp->n_modules++];
    memset(module, 0, sizeof *module);
    module->fd = -1;
    return module;
}

static int same_inode(const au__maps_line *a, const au__maps_line *b)
{
    return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/** Marks the mappings of the module that begins at line `first`; returns its range. 0 when nothing is executable. */
static int claim(linux_proc *lp, map_list *list, size_t first, uint64_t low, uint64_t high, au_addr *base, au_addr *end)
{
    const au__maps_line *head = &list->lines[first];
    uint64_t page = lp->page_bytes;
    uint64_t limit = high > UINT64_MAX - page ? UINT64_MAX : (high + page - 1) / page * page;
    int executable = 0;
    *base = head->start;
    *end = head->end;
    /* Backwards too: segments in front of the one with offset 0. */
    for (size_t i = first; i-- > 0 && list->lines[i].end > low && same_inode(head, &list->lines[i]);) {
        if (list->taken[i]) {
            break;
        }
        *base = list->lines[i].start;
        executable |= (list->lines[i].perms & AU_PERM_EXEC) != 0;
    }
    for (size_t i = first; i < list->n && list->lines[i].start < limit; i++) {
        const au__maps_line *line = &list->lines[i];
        int anonymous = line->inode == 0 && line->start == *end;
        if (!(head->inode ? same_inode(head, line) : i == first) && !anonymous) {
            continue;
        }
        executable |= (line->perms & AU_PERM_EXEC) != 0;
        if (line->end > *end) {
            *end = anonymous && line->end > limit ? limit : line->end; /* bss; the heap may follow without a gap */
        }
    }
    if (!executable) {
        return 0;
    }
    for (size_t i = 0; i < list->n && head->inode; i++) {
        if (list->lines[i].start >= *base && list->lines[i].start < *end && same_inode(head, &list->lines[i])) {
            list->taken[i] = 1;
        }
    }
    return 1;
}

/** Looks whether an image begins at a line and describes it. -1 without memory. */
static int consider(linux_proc *lp, map_list *list, size_t index, au_obj *obj)
{
    const au__maps_line *line = &list->lines[index];
    int vdso = line->path && strcmp(line->path, "[vdso]") == 0;
    if (list->taken[index] || line->offset != 0 || (line->inode == 0 && !vdso)) {
        return 0;
    }
    linux_module probe = {.base = line->start,
                          .first_end = line->end,
                          .inode = line->inode,
                          .dev_major = line->dev_major,
                          .dev_minor = line->dev_minor,
                          .path = (char *)(uintptr_t)line->path,
                          .fd = -1};
    memory_source from = {lp, line->start};
    au_obj_source source = {.read = read_memory, .baton = &from, .in_memory = 1, .base = line->start};
    int readable = (line->perms & AU_PERM_READ) != 0;
    au_obj_result result = readable ? au_obj_init(obj, &source) : AU_OBJ_UNREADABLE;
    if (result == AU_OBJ_UNREADABLE || result == AU_OBJ_MALFORMED) {
        /* Not readable in memory, or its program headers are elsewhere than in front: the file knows. */
        probe.fd = open_file(lp, &probe);
        if (probe.fd < 0) {
            return 0;
        }
        source = (au_obj_source){.read = read_file, .baton = &probe.fd};
        result = au_obj_init(obj, &source);
    }
    au_addr bias = line->start - obj->image_vaddr, base, end;
    if (result != AU_OBJ_OK || !claim(lp, list, index, obj->low_vaddr + bias, obj->high_vaddr + bias, &base, &end)) {
        if (probe.fd >= 0) {
            close(probe.fd);
        }
        return 0;
    }
    linux_module *module = add_module(lp);
    if (!module) {
        if (probe.fd >= 0) {
            close(probe.fd);
        }
        return -1;
    }
    *module = probe;
    module->path = strdup(line->path ? line->path : "");
    module->base = base;
    module->end = end;
    module->bias = bias;
    module->bits = obj->bits;
    module->deleted = is_deleted(lp, module, line->deleted);
    return module->path ? 1 : -1;
}

static void init_from_memory(linux_proc *lp, const linux_module *module, memory_source *from, au_obj *obj,
                             au_obj_result *result)
{
    *from = (memory_source){lp, module->base};
    au_obj_source source = {.read = read_memory, .baton = from, .in_memory = 1, .base = module->base};
    *result = au_obj_init(obj, &source);
}

/**
 * The executable itself is the file behind /proc/PID/exe. When that is a dynamic loader that was run by name
 * (ld-linux.so python3), it is the program that the loader has told debuggers about: only an executable has DT_DEBUG
 * and only the loader fills it (glibc elf/rtld.c; gABI "Dynamic Section").
 */
static void find_main(linux_proc *lp, au_obj *obj)
{
    struct stat exe;
    char target[4096];
    int body = au__linux_body(lp);
    if (fstatat(body, "exe", &exe, 0) != 0) {
        return;
    }
    ssize_t length = readlinkat(body, "exe", target, sizeof target - 1);
    target[length > 0 ? length : 0] = 0;
    linux_module *main = NULL;
    for (size_t i = 0; i < lp->n_modules && !main; i++) {
        linux_module *module = &lp->modules[i];
        if (module->inode && module->inode == exe.st_ino &&
            ((major(exe.st_dev) == module->dev_major && minor(exe.st_dev) == module->dev_minor) ||
             strncmp(target, module->path, strlen(module->path)) == 0)) {
            main = module;
        }
    }
    if (!main) {
        return;
    }
    memory_source from;
    au_obj_result result;
    init_from_memory(lp, main, &from, obj, &result);
    if (result == AU_OBJ_OK && obj->type == AU_OBJ_TYPE_DYNAMIC && !au_obj_has_interpreter(obj)) {
        for (size_t i = 0; i < lp->n_modules; i++) {
            uint64_t debug = 0;
            init_from_memory(lp, &lp->modules[i], &from, obj, &result);
            if (&lp->modules[i] != main && result == AU_OBJ_OK && au_obj_debug_entry(obj, &debug) == AU_OBJ_OK &&
                debug != 0) {
                main = &lp->modules[i];
                break;
            }
        }
    }
    main->is_main = 1;
}

static void show_modules(linux_proc *lp, au_obj *obj, au_module_fn fn, void *baton)
{
    for (size_t i = 0; i < lp->n_modules; i++) {
        const linux_module *module = &lp->modules[i];
        au_module out = {.id = lp->module_epoch << 32 | (i + 1),
                         .base = module->base,
                         .end = module->end,
                         .bias = module->bias,
                         .path = module->path,
                         .deleted = module->deleted,
                         .is_main = module->is_main,
                         .bits = module->bits};
        memory_source from;
        au_obj_result result;
        init_from_memory(lp, module, &from, obj, &result);
        if (result != AU_OBJ_OK ||
            au_obj_build_id(obj, out.build_id, sizeof out.build_id, &out.build_id_len) != AU_OBJ_OK) {
            out.build_id_len = 0;
        }
        if (fn(baton, &out)) {
            break;
        }
    }
}

au_error *au__linux_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    linux_proc *lp = linux_of(proc);
    if (au__linux_gone(lp)) {
        return au_error_gone();
    }
    au__linux_modules_forget(lp);
    lp->module_epoch++;
    map_list list = {0};
    au_error *error = each_line(lp, collect, &list);
    au_obj *obj = malloc(sizeof *obj);
    list.taken = calloc(list.n ? list.n : 1, 1);
    int ready = obj && list.taken && !list.no_memory;
    if (!error && !ready) {
        error = au_error_memory();
    }
    for (size_t i = 0; ready && !error && i < list.n; i++) {
        if (consider(lp, &list, i, obj) < 0) {
            error = au_error_memory();
        }
    }
    if (ready && !error) {
        find_main(lp, obj);
        show_modules(lp, obj, fn, baton);
    }
    free(obj);
    list_deinit(&list);
    return error;
}

au_error *au__linux_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len, size_t *got,
                                au_module_source *source)
{
    linux_proc *lp = linux_of(proc);
    uint64_t index = (module_id & UINT32_MAX) - 1;
    if (module_id >> 32 != lp->module_epoch || index >= lp->n_modules) {
        return au_error_create(AU_ERR_VALUE, 0, "module %" PRIx64 " of process %" PRId64 " is not in the last list",
                               module_id, proc->pid);
    }
    if (au__linux_gone(lp)) {
        return au_error_gone();
    }
    linux_module *module = &lp->modules[index];
    if (module->source == AU_SOURCE_NONE) {
        if (module->fd < 0) {
            module->fd = open_file(lp, module);
        }
        module->source = module->fd >= 0 ? AU_SOURCE_FILE : AU_SOURCE_MEMORY;
    }
    size_t done = 0;
    if (module->source == AU_SOURCE_FILE) {
        while (done < len && offset + done <= INT64_MAX && offset + done >= offset) {
            size_t step = 0;
            if (read_file(&module->fd, offset + done, (char *)buf + done, len - done, &step) != 0) {
                int saved = errno;
                return au_error_cause(au_error_create(AU_ERR_IO, saved, "Cannot read %s", module->path), "%s",
                                      strerror(saved));
            }
            if (step == 0) {
                break;
            }
            done += step;
        }
    } else if (offset < module->end - module->base && len) {
        uint64_t left = module->end - module->base - offset;
        memory_source from = {lp, module->base};
        if (read_memory(&from, offset, buf, left < len ? (size_t)left : len, &done) != 0) {
            return au__linux_gone(lp)
                       ? au_error_gone()
                       : au_error_create(AU_ERR_IO, EFAULT,
                                         "Cannot read the memory of %s at %" PRIx64 " in process %" PRId64,
                                         module->path, module->base + offset, proc->pid);
        }
    }
    *got = done;
    *source = (au_module_source)module->source;
    return NULL;
}
