/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of an invented CPython and its runtime. */
#include "tests/engine/layouts.h"
#include "tests/engine/world_internal.h"

const char *const world_builds[] = {"3.10.13-x86_64", "3.11.7-x86_64", "3.12.1-x86_64", "3.13.18-x86_64",
                                    "3.13.18t-x86_64", "3.14.10-x86_64", "3.14.10t-x86_64", "3.15.2-x86_64",
                                    "3.15.2t-x86_64",
                                    /* whose long has four bytes */
                                    "3.10.8-win_amd64", "3.11.3-win_amd64", "3.12.1-win_amd64", "3.13.5-win_amd64",
                                    "3.13.5t-win_amd64-derived", "3.14.3-win_amd64", "3.14.3t-win_amd64-derived"};
_Static_assert(sizeof world_builds / sizeof world_builds[0] == WORLD_BUILDS, "WORLD_BUILDS");

enum { HEAP_STEP = 1 << 20 };

/* ---- memory ---------------------------------------------------------------------------------------------------- */

au_addr world_alloc(world *w, size_t size)
{
    size = (size + 15u) & ~(size_t)15;
    if (w->heap + size > w->heap_end) {
        size_t step = size + 64 > HEAP_STEP ? size + 4096 : HEAP_STEP;
        w->heap = w->heap_end + 65536;
        must(au_image_map(w->image, w->heap, step, AU_PERM_READ | AU_PERM_WRITE, NULL) == 0, "map");
        w->heap_end = w->heap + step;
    }
    au_addr at = w->heap;
    w->heap += size;
    return at;
}

void world_word(world *w, au_addr at, uint64_t value)
{
    must(au_image_word(w->image, at, value) == 0, "write");
}

void world_int(world *w, au_addr at, uint32_t value)
{
    must(au_image_int(w->image, at, value) == 0, "write");
}

void world_long(world *w, au_addr at, uint64_t value)
{
    if (w->l.long_bytes == 4) {
        world_int(w, at, (uint32_t)value);
    } else {
        world_word(w, at, value);
    }
}

uint64_t world_get(world *w, au_addr at)
{
    uint64_t value;
    const void *from = au_image_at(w->image, at, 8);
    must(from != NULL, "read");
    memcpy(&value, from, 8);
    return value;
}

/* ---- the runtime ----------------------------------------------------------------------------------------------- */

world *world_create_in(au_image *image, const char *label, int nth, int is_main, const char *path)
{
    world *w = calloc(1, sizeof *w);
    must(w != NULL, "calloc");
    w->image = image;
    w->label = label;
    w->build = layout_find(label);
    must(w->build >= 0, label);
    w->minor = layout_version(w->build) >> 16 & 0xff;
    w->free_threaded = layout_free_threaded(w->build);
    w->bias = UINT64_C(0x555500000000) + ((au_addr)(unsigned)nth << 32);
    w->runtime = w->bias + W_RUNTIME_VADDR;
    w->runtime_size = (uint64_t)layout_value(w->build, "runtime_state.size");
    w->heap = w->heap_end = UINT64_C(0x7f0000000000) + ((au_addr)(unsigned)nth << 36);
    w->next_version = 100;
    w->next_chunk = (uint64_t)(unsigned)nth << 12;
    must(au_image_map(image, w->runtime, (size_t)((w->runtime_size + 4095) & ~UINT64_C(4095)),
                      AU_PERM_READ | AU_PERM_WRITE, path) == 0,
         "map");
    must(au_image_describe(image, w->runtime, 0x100000, 77, 0) == 0, "describe");
    uint8_t table[AU_DEBUG_OFFSETS_MAX];
    size_t size = layout_table(w->build, table);
    if (size) {
        uint64_t version;
        must(au_layout_from_debug_offsets(table, size, w->runtime_size, layout_long_bytes(w->build), &w->l, &version) ==
                 AU_OFFSETS_OK,
             "layout");
        must(au_image_write(image, w->runtime, table, size) == 0, "write");
    } else {
        w->l = *au_layout_static(w->minor, layout_long_bytes(w->build));
    }
    if (is_main >= 0) {
        world_module(w, is_main, path, W_MODULE_SECTIONS, 0);
    }
    w->object_type = world_alloc(w, 1024);
    w->code_type = world_alloc(w, 1024);
    au_addr name = world_alloc(w, 16);
    must(au_image_write(image, name, "code", 5) == 0, "write");
    world_word(w, w->code_type + w->l.type_name, name);
    au_addr other = world_alloc(w, 16);
    must(au_image_write(image, other, "type", 5) == 0, "write");
    world_word(w, w->object_type + w->l.type_name, other);
    world_word(w, w->object_type + w->l.object_type, w->object_type);
    return w;
}

world *world_create(const char *label)
{
    char path[64];
    au_image *image = au_image_create(4321);
    must(image != NULL, "image");
    int build = layout_find(label);
    must(build >= 0, label);
    snprintf(path, sizeof path, "/usr/bin/python3.%u", layout_version(build) >> 16 & 0xff);
    return world_create_in(image, label, 0, 1, path);
}

void world_destroy(world *w, int keep_image)
{
    for (w_code *c = w->codes, *next; c; c = next) {
        next = c->next;
        free(c->file);
        free(c->scope);
        free(c);
    }
    for (w_thread *t = w->threads, *next; t; t = next) {
        next = t->next;
        free(t->frames);
        free(t->chunks);
        free(t->spare);
        free(t);
    }
    for (w_interp *i = w->interps, *next; i; i = next) {
        next = i->next;
        free(i);
    }
    if (!keep_image) {
        au_image_destroy(w->image);
    }
    free(w);
}

w_thread *world_basic(world *w)
{
    w_interp *interp = world_interp(w, 0);
    w_thread *t = world_thread(w, interp, UINT64_C(0x7fff12345000), 4321);
    w_frame frames[1] = {{world_code(w, "/srv/app.py", "<module>", 1, 60), 5, W_PLAIN, 0}};
    world_word(w, w->runtime + w->l.runtime_main_thread, UINT64_MAX); /* what is behind a short one is none of it */
    world_long(w, w->runtime + w->l.runtime_main_thread, t->ident);
    world_stack(w, t, frames, 1);
    return t;
}
