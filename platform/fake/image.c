/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/fake/image.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/internal.h"

typedef struct range {
    au_addr start;
    size_t size;
    unsigned perms;
    uint64_t offset, file_id;
    int deleted;
    char *path;
    uint8_t *bytes;
} range;

typedef struct thread {
    au_tid tid;
    uint64_t start_ns, switches, cpu_ns, waited_ns;
    au_run_state run;
    char name[32];
} thread;

typedef struct id_pair {
    au_id_kind kind;
    uint64_t value;
    au_tid tid;
} id_pair;

typedef struct module {
    au_module facts;
    char *path;
    uint8_t *file;
    size_t file_len;
} module;

struct au_image {
    au_sys sys;
    au_proc_ops table; /* own copy: capabilities can be switched off */
    au_pid pid;
    int exited, cpu_set;
    uint64_t cpu_ns;
    uint32_t generation, pointer_bytes;
    range *ranges; /* in rising order */
    size_t n_ranges, cap_ranges;
    thread *threads;
    size_t n_threads, cap_threads;
    id_pair *ids;
    size_t n_ids, cap_ids;
    module *modules; /* in rising order of base */
    size_t n_modules, cap_modules;
    uint64_t module_epoch, births;
    uint64_t time, drift;
    atomic_int woken;
    au_image_hook hook;
    void *hook_baton;
    au_image_sleep_hook sleep_hook;
    void *sleep_baton;
    uint64_t pieces, reads;
    size_t handles;
};

typedef struct image_proc {
    au_proc proc;
    au_image *image;
} image_proc;

static au_image *image_of(au_proc *proc)
{
    return ((image_proc *)proc)->image;
}

/** Room for one more item; the array may move. */
static void *one_more(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return items;
    }
    size_t more = *cap ? *cap * 2 : 16;
    void *grown = realloc(items, more * size);
    if (grown) {
        *cap = more;
    }
    return grown;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/** Index of the first range that ends after `addr`. */
static size_t range_from(const au_image *image, au_addr addr)
{
    size_t low = 0, high = image->n_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (image->ranges[middle].start + image->ranges[middle].size > addr) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

int au_image_map(au_image *image, au_addr start, size_t size, unsigned perms, const char *path)
{
    size_t at = range_from(image, start);
    if (size == 0 || size > UINT64_MAX - start || (at < image->n_ranges && image->ranges[at].start < start + size)) {
        return -1;
    }
    range *ranges = one_more(image->ranges, image->n_ranges, &image->cap_ranges, sizeof *ranges);
    if (!ranges) {
        return -1;
    }
    image->ranges = ranges;
    range made = {.start = start, .size = size, .perms = perms};
    made.bytes = calloc(1, size);
    made.path = path ? strdup(path) : NULL;
    if (!made.bytes || (path && !made.path)) {
        free(made.bytes);
        free(made.path);
        return -1;
    }
    memmove(ranges + at + 1, ranges + at, (image->n_ranges - at) * sizeof *ranges);
    ranges[at] = made;
    image->n_ranges++;
    return 0;
}

static range *range_at(au_image *image, au_addr start)
{
    size_t at = range_from(image, start);
    return at < image->n_ranges && image->ranges[at].start == start ? &image->ranges[at] : NULL;
}

int au_image_unmap(au_image *image, au_addr start)
{
    range *gone = range_at(image, start);
    if (!gone) {
        return -1;
    }
    free(gone->bytes);
    free(gone->path);
    size_t index = (size_t)(gone - image->ranges);
    memmove(gone, gone + 1, (image->n_ranges - index - 1) * sizeof *gone);
    image->n_ranges--;
    return 0;
}

int au_image_describe(au_image *image, au_addr start, uint64_t offset, uint64_t file_id, int deleted)
{
    range *what = range_at(image, start);
    if (!what) {
        return -1;
    }
    what->offset = offset;
    what->file_id = file_id;
    what->deleted = deleted;
    return 0;
}

void *au_image_at(au_image *image, au_addr addr, size_t len)
{
    size_t at = range_from(image, addr);
    if (at == image->n_ranges || addr < image->ranges[at].start ||
        image->ranges[at].size - (addr - image->ranges[at].start) < len) {
        return NULL;
    }
    return image->ranges[at].bytes + (addr - image->ranges[at].start);
}

int au_image_write(au_image *image, au_addr addr, const void *bytes, size_t len)
{
    void *to = au_image_at(image, addr, len);
    if (!to) {
        return -1;
    }
    memcpy(to, bytes, len);
    return 0;
}

static int write_number(au_image *image, au_addr addr, uint64_t value, size_t len)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    return au_image_write(image, addr, bytes, len);
}

int au_image_byte(au_image *image, au_addr addr, uint8_t value)
{
    return write_number(image, addr, value, 1);
}

int au_image_half(au_image *image, au_addr addr, uint16_t value)
{
    return write_number(image, addr, value, 2);
}

int au_image_int(au_image *image, au_addr addr, uint32_t value)
{
    return write_number(image, addr, value, 4);
}

int au_image_word(au_image *image, au_addr addr, uint64_t value)
{
    return write_number(image, addr, value, 8);
}

static au_outcome serve(au_image *image, au_addr addr, void *buf, size_t len)
{
    if (image->hook) {
        image->hook(image->hook_baton, image, image->pieces, addr, len);
    }
    image->pieces++;
    if (image->exited) {
        return AU_GONE;
    }
    if (len > UINT64_MAX - addr) {
        return AU_FAULT;
    }
    /* Ranges that touch are one memory to a reader. */
    for (size_t done = 0; done < len;) {
        size_t at = range_from(image, addr + done);
        if (at == image->n_ranges || addr + done < image->ranges[at].start ||
            !(image->ranges[at].perms & AU_PERM_READ)) {
            return AU_FAULT;
        }
        const range *from = &image->ranges[at];
        size_t skip = (size_t)(addr + done - from->start);
        size_t take = from->size - skip < len - done ? from->size - skip : len - done;
        memcpy((uint8_t *)buf + done, from->bytes + skip, take);
        done += take;
    }
    return AU_OK;
}

static au_outcome image_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    au_image *image = image_of(proc);
    image->reads++;
    return serve(image, addr, buf, len);
}

static size_t image_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    au_image *image = image_of(proc);
    size_t ok = 0;
    image->reads++;
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = (uint32_t)serve(image, pieces[i].addr, pieces[i].buf, pieces[i].len);
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

static au_error *image_regions(au_proc *proc, au_region_fn fn, void *baton)
{
    au_image *image = image_of(proc);
    if (image->exited) {
        return au_error_gone();
    }
    for (size_t i = 0; i < image->n_ranges; i++) {
        const range *r = &image->ranges[i];
        au_region region = {.start = r->start,
                            .end = r->start + r->size,
                            .perms = r->perms,
                            .offset = r->offset,
                            .file_id = r->file_id,
                            .path = r->path,
                            .deleted = r->deleted};
        if (fn(baton, &region)) {
            break;
        }
    }
    return NULL;
}

/* ---- modules -------------------------------------------------------------------------------------------------- */

int au_image_add_module(au_image *image, const au_module *facts, const void *file, size_t file_len)
{
    module *modules = one_more(image->modules, image->n_modules, &image->cap_modules, sizeof *modules);
    if (!modules) {
        return -1;
    }
    image->modules = modules;
    module made = {.facts = *facts, .file_len = file_len};
    made.path = strdup(facts->path ? facts->path : "");
    made.file = file ? malloc(file_len ? file_len : 1) : NULL;
    if (!made.path || (file && !made.file)) {
        free(made.path);
        free(made.file);
        return -1;
    }
    if (file) {
        memcpy(made.file, file, file_len);
    }
    size_t at = image->n_modules;
    while (at > 0 && modules[at - 1].facts.base > facts->base) {
        modules[at] = modules[at - 1];
        at--;
    }
    modules[at] = made;
    image->n_modules++;
    image->module_epoch++;
    return 0;
}

static au_error *image_modules(au_proc *proc, au_module_fn fn, void *baton)
{
    au_image *image = image_of(proc);
    if (image->exited) {
        return au_error_gone();
    }
    for (size_t i = 0; i < image->n_modules; i++) {
        au_module facts = image->modules[i].facts;
        facts.id = image->module_epoch << 32 | (i + 1);
        facts.path = image->modules[i].path;
        if (fn(baton, &facts)) {
            break;
        }
    }
    return NULL;
}

static au_error *image_module_read(au_proc *proc, uint64_t module_id, uint64_t offset, void *buf, size_t len,
                                   size_t *got, au_module_source *source)
{
    au_image *image = image_of(proc);
    uint64_t index = (module_id & UINT32_MAX) - 1;
    if (image->exited) {
        return au_error_gone();
    }
    if (module_id >> 32 != image->module_epoch || index >= image->n_modules) {
        return au_error_create(AU_ERR_VALUE, 0, "module %" PRIx64 " of process %" PRId64 " is not in the last list",
                               module_id, proc->pid);
    }
    const module *m = &image->modules[index];
    uint64_t size = m->file ? m->file_len : m->facts.end - m->facts.base;
    uint64_t left = offset < size ? size - offset : 0;
    size_t take = left < len ? (size_t)left : len;
    if (m->file) {
        memcpy(buf, m->file + (take ? offset : 0), take);
    } else {
        size_t whole = take;
        while (take && serve(image, m->facts.base + offset, buf, take) != AU_OK) {
            take--;
        }
        if (whole && !take) {
            return au_error_create(AU_ERR_IO, 0, "Cannot read the memory of %s at %" PRIx64, m->path,
                                   m->facts.base + offset);
        }
    }
    *got = take;
    *source = m->file ? AU_SOURCE_FILE : AU_SOURCE_MEMORY;
    return NULL;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

static thread *find_thread(au_image *image, au_tid tid)
{
    for (size_t i = 0; i < image->n_threads; i++) {
        if (image->threads[i].tid == tid) {
            return &image->threads[i];
        }
    }
    return NULL;
}

int au_image_add_thread(au_image *image, au_tid tid, const char *name)
{
    thread *threads = one_more(image->threads, image->n_threads, &image->cap_threads, sizeof *threads);
    if (!threads) {
        return -1;
    }
    image->threads = threads;
    thread *made = &threads[image->n_threads++];
    *made = (thread){.tid = tid, .start_ns = 1000 + ++image->births, .run = AU_RUN_ASLEEP, .switches = 1};
    size_t len = name ? strlen(name) : 0;
    memcpy(made->name, name ? name : "", len < sizeof made->name - 1 ? len : sizeof made->name - 1);
    return 0;
}

int au_image_remove_thread(au_image *image, au_tid tid)
{
    thread *gone = find_thread(image, tid);
    if (!gone) {
        return -1;
    }
    size_t index = (size_t)(gone - image->threads);
    memmove(gone, gone + 1, (image->n_threads - index - 1) * sizeof *gone);
    image->n_threads--;
    return 0;
}

int au_image_set_thread(au_image *image, au_tid tid, au_run_state run, uint64_t switches)
{
    thread *which = find_thread(image, tid);
    if (!which) {
        return -1;
    }
    which->run = run;
    which->switches = switches;
    return 0;
}

int au_image_set_cpu(au_image *image, au_tid tid, uint64_t cpu_ns, uint64_t waited_ns)
{
    thread *which = find_thread(image, tid);
    if (!which) {
        return -1;
    }
    which->cpu_ns = cpu_ns;
    which->waited_ns = waited_ns;
    return 0;
}

void au_image_set_process_cpu(au_image *image, uint64_t cpu_ns)
{
    image->cpu_set = 1;
    image->cpu_ns = cpu_ns;
}

int au_image_add_id(au_image *image, au_id_kind kind, uint64_t value, au_tid tid)
{
    for (size_t i = 0; i < image->n_ids; i++) {
        if (image->ids[i].kind == kind && image->ids[i].value == value) {
            image->ids[i].tid = tid;
            return 0;
        }
    }
    id_pair *ids = one_more(image->ids, image->n_ids, &image->cap_ids, sizeof *ids);
    if (!ids) {
        return -1;
    }
    image->ids = ids;
    ids[image->n_ids++] = (id_pair){kind, value, tid};
    return 0;
}

static au_error *image_threads(au_proc *proc, au_thread *out, size_t cap, size_t *n)
{
    au_image *image = image_of(proc);
    if (image->exited) {
        return au_error_gone();
    }
    for (size_t i = 0; i < image->n_threads && i < cap; i++) {
        out[i] = (au_thread){image->threads[i].tid, image->threads[i].start_ns};
    }
    *n = image->n_threads;
    return NULL;
}

static size_t image_thread_states(au_proc *proc, au_thread_state *states, size_t n)
{
    au_image *image = image_of(proc);
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        au_thread_state *state = &states[i];
        if (state->wanted == 0) {
            state->slot = 0;
            state->outcome = AU_OK;
            ok++;
            continue;
        }
        const thread *which = image->exited ? NULL : find_thread(image, state->tid);
        /* The slot is the thread's start: one that has its number now is not the one that was asked for. */
        if (!which || (state->slot && state->slot != which->start_ns)) {
            state->run = AU_RUN_GONE;
            state->outcome = AU_GONE;
            state->slot = 0;
            continue;
        }
        state->slot = which->start_ns;
        if (state->wanted & AU_STATE_SWITCHES) {
            state->switches = which->switches;
        }
        if (state->wanted & AU_STATE_RUN) {
            state->run = which->run;
        }
        if (state->wanted & AU_STATE_CPU) {
            state->cpu_ns = which->cpu_ns;
        }
        if (state->wanted & AU_STATE_WAITED) {
            state->waited_ns = which->waited_ns;
        }
        state->outcome = AU_OK;
        ok++;
    }
    return ok;
}

static au_outcome image_thread_id_of(au_proc *proc, au_id_kind kind, uint64_t value, au_tid *out)
{
    au_image *image = image_of(proc);
    if (image->exited) {
        return AU_GONE;
    }
    for (size_t i = 0; i < image->n_ids; i++) {
        if (image->ids[i].kind == kind && image->ids[i].value == value && find_thread(image, image->ids[i].tid)) {
            *out = image->ids[i].tid;
            return AU_OK;
        }
    }
    if (kind == AU_ID_NAMESPACED && value <= INT64_MAX && find_thread(image, (au_tid)value)) {
        *out = (au_tid)value;
        return AU_OK;
    }
    return AU_NOT_KNOWN;
}

static au_outcome image_thread_name(au_proc *proc, au_tid tid, char *buf, size_t cap)
{
    au_image *image = image_of(proc);
    const thread *which = image->exited ? NULL : find_thread(image, tid);
    if (!which) {
        return AU_GONE;
    }
    if (cap) {
        size_t len = strlen(which->name) < cap - 1 ? strlen(which->name) : cap - 1;
        memcpy(buf, which->name, len);
        buf[len] = 0;
    }
    return AU_OK;
}

/* ---- process and system --------------------------------------------------------------------------------------- */

static au_error *image_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au_image *image = (au_image *)sys;
    if (pid != image->pid || image->exited) {
        return au_error_cause(au_error_create(AU_ERR_OS, 0, "Cannot attach to process %" PRId64, pid),
                              "there is no process of that number");
    }
    if (want & AU_WANT_STOP) {
        return au_error_cause(au_error_create(AU_ERR_OS, 0, "Cannot attach to process %" PRId64, pid),
                              "an image cannot be stopped");
    }
    image_proc *made = calloc(1, sizeof *made);
    if (!made) {
        return au_error_memory();
    }
    made->proc = (au_proc){&image->table, pid};
    made->image = image;
    image->handles++;
    *out = &made->proc;
    return NULL;
}

static void image_close(au_proc *proc)
{
    if (proc) {
        image_of(proc)->handles--;
        free(proc);
    }
}

static au_outcome image_status(au_proc *proc, au_proc_status *out)
{
    const au_image *image = image_of(proc);
    *out = (au_proc_status){.state = image->exited ? AU_EXITED : AU_RUNNING,
                            .generation = image->generation,
                            .pointer_bytes = image->pointer_bytes,
                            .page_bytes = 4096,
                            .start_time_ns = 1,
                            .list_stamp = image->generation + 1u};
    return AU_OK;
}

static au_outcome image_usage(au_proc *proc, au_usage *out)
{
    au_image *image = image_of(proc);
    if (image->exited) {
        return AU_GONE;
    }
    *out = (au_usage){.cpu_ns = image->cpu_set ? image->cpu_ns : image->time, .cpu_granularity_ns = 1};
    for (size_t i = 0; i < image->n_ranges; i++) {
        out->resident_bytes += image->ranges[i].size;
    }
    return AU_OK;
}

static au_error *image_processes(au_sys *sys, au_process_fn fn, void *baton)
{
    const au_image *image = (au_image *)sys;
    au_process process = {.pid = image->pid, .parent = 1, .start_time_ns = 1};
    if (!image->exited) {
        (void)fn(baton, &process);
    }
    return NULL;
}

static uint64_t image_now(au_sys *sys)
{
    au_image *image = (au_image *)sys;
    image->time += image->drift;
    return image->time;
}

static uint64_t image_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    au_image *image = (au_image *)sys;
    if (image->sleep_hook) {
        image->sleep_hook(image->sleep_baton, image, deadline_ns);
    }
    if (!atomic_exchange(&image->woken, 0) && image->time < deadline_ns) {
        image->time = deadline_ns;
    }
    image->time += image->drift;
    return image->time;
}

static void image_wake(au_sys *sys)
{
    atomic_store(&((au_image *)sys)->woken, 1);
}

static void image_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    *out =
        (au_explanation){.right = pid == ((au_image *)sys)->pid ? AU_RIGHT_NONE_MISSING : AU_RIGHT_UNKNOWN, .uid = -1};
}

static const au_proc_ops image_ops = {
    .size = sizeof(au_proc_ops),
    .name = "image",
    .caps = AU_CAP_THREADS | AU_CAP_THREAD_STATES | AU_CAP_SWITCHES | AU_CAP_THREAD_ID_OF | AU_CAP_THREAD_NAME |
            AU_CAP_USAGE | AU_CAP_PROCESSES | AU_CAP_MODULE_FILE | AU_CAP_THREAD_CPU | AU_CAP_STATES_TOLD,
    .open = image_open,
    .close = image_close,
    .status = image_status,
    .read = image_read,
    .read_many = image_read_many,
    .regions = image_regions,
    .modules = image_modules,
    .module_read = image_module_read,
    .threads = image_threads,
    .thread_states = image_thread_states,
    .thread_id_of = image_thread_id_of,
    .thread_name = image_thread_name,
    .usage = image_usage,
    .processes = image_processes,
    .suspend = au__fake_suspend,
    .resume = au__fake_resume,
    .registers = au__fake_registers,
    .unwind = au__fake_unwind,
    .symbolise = au__fake_symbolise,
    .kernel_stack = au__fake_kernel_stack,
    .now = image_now,
    .sleep_until = image_sleep_until,
    .wake = image_wake,
    .explain = image_explain,
};

au_image *au_image_create(au_pid pid)
{
    au_image *image = calloc(1, sizeof *image);
    if (image) {
        image->table = image_ops;
        image->sys.ops = &image->table;
        image->pid = pid;
        image->pointer_bytes = 8;
        image->time = 1000000000u;
    }
    return image;
}

static void empty(au_image *image)
{
    while (image->n_ranges) {
        au_image_unmap(image, image->ranges[image->n_ranges - 1].start);
    }
    for (size_t i = 0; i < image->n_modules; i++) {
        free(image->modules[i].path);
        free(image->modules[i].file);
    }
    image->n_modules = 0;
    image->module_epoch++;
    image->n_ids = 0;
}

void au_image_destroy(au_image *image)
{
    if (!image) {
        return;
    }
    empty(image);
    free(image->ranges);
    free(image->modules);
    free(image->threads);
    free(image->ids);
    free(image);
}

au_sys *au_image_sys(au_image *image)
{
    return &image->sys;
}

void au_image_set_pointer_bytes(au_image *image, uint32_t bytes)
{
    image->pointer_bytes = bytes;
}

void au_image_set_caps(au_image *image, uint64_t caps)
{
    image->table.caps = caps;
}

void au_image_exit(au_image *image)
{
    image->exited = 1;
}

void au_image_exec(au_image *image)
{
    empty(image);
    image->generation++;
}

void au_image_set_time(au_image *image, uint64_t now_ns)
{
    image->time = now_ns;
}

void au_image_set_drift(au_image *image, uint64_t ns_per_call)
{
    image->drift = ns_per_call;
}

void au_image_set_hook(au_image *image, au_image_hook hook, void *baton)
{
    image->hook = hook;
    image->hook_baton = baton;
}

void au_image_set_sleep_hook(au_image *image, au_image_sleep_hook hook, void *baton)
{
    image->sleep_hook = hook;
    image->sleep_baton = baton;
}

uint64_t au_image_pieces(const au_image *image)
{
    return image->pieces;
}

uint64_t au_image_reads(const au_image *image)
{
    return image->reads;
}

size_t au_image_open_handles(const au_image *image)
{
    return image->handles;
}
