/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of tracees that stand still: each version, exact to the column. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"

static world *w;
static w_run run;
static au_buf want;

static void begin(int build)
{
    w = world_create(world_builds[build]);
    memset(&want, 0, sizeof want);
    w_run_init(&run, w);
}

static void end(void)
{
    w_run_deinit(&run);
    world_destroy(w, 0);
    au_buf_deinit(&want);
}

static const char *expected(const w_thread *t)
{
    world_expect(w, t, &want);
    return (const char *)want.data;
}

/* All samples show the stack as it stands. */
static void check_all(const w_thread *t, uint64_t passes)
{
    w_run_go(&run, passes);
    ck_assert_uint_eq(run.count, passes);
    for (size_t i = 0; i < run.count; i++) {
        ck_assert_str_eq(run.samples[i].stack, expected(t));
        ck_assert_uint_eq(run.samples[i].flags & ~(unsigned)AU_SAMPLE_SAME, 0);
        ck_assert_int_eq((run.samples[i].flags & AU_SAMPLE_SAME) != 0, i > 0);
    }
    ck_assert_uint_eq(run.stats.errors, 0);
    ck_assert_uint_eq(run.stats.samples, passes);
}

START_TEST(plain)
{
    begin(_i);
    w_thread *t = world_basic(w);
    w_frame frames[12];
    char name[32];
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "Class.<locals>.f%d", i);
        frames[i] = (w_frame){world_code(w, i & 1 ? "/srv/lib.py" : "/srv/app.py", name, 10 * i + 1, 30),
                              1 + (5 * i) % 28, W_PLAIN, 0};
    }
    world_stack(w, t, frames, 12);
    check_all(t, 20);
    end();
}
END_TEST

/* One after the other: every instruction of a code object. */
START_TEST(every_unit)
{
    begin(_i);
    w_thread *t = world_basic(w);
    const w_code *code = world_code(w, "/srv/long.py", "f", 100000, 600);
    w_frame frames[2] = {{code, 1, W_PLAIN, 0}, {code, 1, W_PLAIN, 0}};
    world_stack(w, t, frames, 2);
    run.options.max_passes = 1;
    for (int unit = 1; unit < 600; unit += 7) {
        world_set_unit(w, t, 1, unit);
        world_set_unit(w, t, 2, 600 - unit);
        w_run_go(&run, 1);
        ck_assert_str_eq(run.samples[run.count - 1].stack, expected(t));
        w_run_deinit(&run);
        w_run_init(&run, w);
    }
    end();
}
END_TEST

enum { LONG_UNITS = 4000 };

typedef struct tour {
    w_thread *t;
    uint32_t seed;
} tour;

/* The sample of this pass against what stands there; then the next unit, near or far. */
static int next_unit(w_run *r)
{
    tour *g = r->baton;
    if (strcmp(r->samples[r->count - 1].stack, expected(g->t)) != 0) {
        ck_abort_msg("%s: pass %u: %s, not %s", w->label, (unsigned)r->passes, r->samples[r->count - 1].stack,
                     (const char *)want.data);
    }
    g->seed = g->seed * 1664525 + 1013904223;
    uint32_t far = g->seed >> 8;
    world_set_unit(w, g->t, 1, (int)(1 + r->passes * 7 % (LONG_UNITS - 1)));
    world_set_unit(w, g->t, 2, (int)(1 + far % (LONG_UNITS - 1)));
    return 0;
}

/* In one run, so that thousands of places of one code object with a long table come to be known, some again. */
START_TEST(tour_of_a_long_function)
{
    begin(_i);
    w_thread *t = world_basic(w);
    const w_code *code = world_code(w, "/srv/long.py", "f", 100000, LONG_UNITS);
    w_frame frames[2] = {{code, 1, W_PLAIN, 0}, {code, 1, W_PLAIN, 0}};
    tour g = {t, 7};
    world_stack(w, t, frames, 2);
    run.on_pass = next_unit;
    run.baton = &g;
    w_run_go(&run, 3000);
    ck_assert_uint_eq(run.count, 3000);
    ck_assert_uint_eq(run.stats.errors, 0);
    ck_assert_uint_le(run.stats.code_misses, 2);
    end();
}
END_TEST

START_TEST(generators_and_shims)
{
    begin(_i);
    w_thread *t = world_basic(w);
    const w_code *f = world_code(w, "/srv/a.py", "f", 1, 20);
    const w_code *g = world_code(w, "/srv/a.py", "gen", 40, 20);
    w_frame frames[] = {
        {f, 3, W_PLAIN, 0}, {g, 4, W_GENERATOR, 0}, {g, 5, W_GENERATOR, 0}, {f, 6, W_PLAIN, 0}, {0, 0, W_SHIM, 0},
        {f, 7, W_PLAIN, 0}, {0, 0, W_SHIM, 0},      {g, 8, W_GENERATOR, 0}, {0, 0, W_SHIM, 0},  {f, 9, W_PLAIN, 0},
    };
    for (size_t n = 1; n <= sizeof frames / sizeof frames[0]; n++) {
        world_stack(w, t, frames, n);
        check_all(t, 3);
        w_run_deinit(&run);
        w_run_init(&run, w);
    }
    end();
}
END_TEST

/* A function that was just entered is shown, at its first line; one that is not begun and not the leaf is not. */
START_TEST(just_entered)
{
    begin(_i);
    w_thread *t = world_basic(w);
    const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
    const w_code *g = world_code(w, "/srv/a.py", "g", 70, 20);
    w_frame leaf[] = {{f, 3, W_PLAIN, 0}, {g, -1, W_PLAIN, 0}};
    world_stack(w, t, leaf, 2);
    check_all(t, 3);
    if (w->minor >= 11) {
        w_frame inner[] = {{f, 3, W_PLAIN, 0}, {g, -1, W_PLAIN, 0}, {f, 4, W_PLAIN, 0}};
        w_run_deinit(&run);
        w_run_init(&run, w);
        world_stack(w, t, inner, 3);
        check_all(t, 3);
        ck_assert_ptr_null(strstr(run.samples[0].stack, ":g:"));
    }
    end();
}
END_TEST

/* A frame of CPython's own code between two of a program is left out. */
static void is_not_shown(w_thread *t, const w_code *f, const w_code *own)
{
    w_frame frames[] = {{f, 3, W_PLAIN, 0}, {own, 1, W_PLAIN, 0}, {f, 5, W_PLAIN, 0}};
    w_frame visible[] = {frames[0], frames[2]};
    world_stack(w, t, visible, 2);
    char *without = strdup(expected(t));
    world_stack(w, t, frames, 3);
    w_run_go(&run, 3);
    ck_assert_str_eq(run.samples[0].stack, without);
    ck_assert_str_eq(run.samples[2].stack, without);
    ck_assert_uint_eq(run.stats.errors, 0);
    free(without);
}

/*
 * The frame that cleans up after a class call (3.12+): owner 0, code named __init__ in a file __init__; its table has
 * one byte that says "no location", or none.
 */
START_TEST(class_call)
{
    begin(_i / 2);
    w_thread *t = world_basic(w);
    if (w->minor < 13) {
        end();
        return; /* there is none */
    }
    const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
    w_code *shim = world_code(w, "__init__", "__init__", 1, 4);
    shim->table = world_bytes(w, "\xff", (size_t)_i % 2);
    world_word(w, shim->addr + w->l.code_linetable, shim->table);
    world_int(w, shim->addr + w->l.code_firsttraceable, 4);
    is_not_shown(t, f, shim);
    end();
}
END_TEST

/* An entry from C whose owner has been overwritten: its code is CPython's own, and is not shown. */
START_TEST(trampoline)
{
    begin(_i);
    w_thread *t = world_basic(w);
    if (w->minor >= 12) {
        const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
        const w_code *own = world_code(w, "<shim>", "<interpreter trampoline>", 1, 4);
        is_not_shown(t, f, own);
    }
    end();
}
END_TEST

/*
 * The entry from C in the middle has been overwritten: what is above it has no root that can be seen, also if it looks
 * like the entry below the first frame of all.
 */
START_TEST(entry_overwritten)
{
    begin(_i);
    w_thread *t = world_basic(w);
    if (w->minor >= 12) {
        const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
        const w_code *g = world_code(w, "/srv/a.py", "g", 70, 20);
        w_frame frames[] = {{f, 3, W_PLAIN, 0}, {0, 0, W_SHIM, 0}, {g, 5, W_PLAIN, 0}};
        world_stack(w, t, frames, 3);
        const w_placed *entry = &t->frames[t->count - 2];
        ck_assert_int_eq(entry->frame.owner, W_SHIM);
        world_word(w, entry->addr + w->l.frame_previous, t->base_frame);
        w_run_go(&run, 5);
        ck_assert_uint_eq(run.count, 5);
        for (size_t i = 0; i < run.count; i++) {
            ck_assert_msg(run.samples[i].flags & (AU_SAMPLE_TORN | AU_SAMPLE_TRUNCATED), "%s: %s is whole", w->label,
                          run.samples[i].stack);
        }
        /* one's own caller, through it */
        world_word(w, entry->addr + w->l.frame_previous, t->frames[t->count - 1].addr);
        w_run_deinit(&run);
        w_run_init(&run, w);
        w_run_go(&run, 5);
        for (size_t i = 0; i < run.count; i++) {
            ck_assert_uint_ne(run.samples[i].flags & (AU_SAMPLE_TORN | AU_SAMPLE_TRUNCATED), 0);
            ck_assert_uint_le(run.samples[i].frames, 2);
        }
    }
    end();
}
END_TEST

/* The first function of all has returned, and a destructor of its locals runs: it is called from below that. */
START_TEST(destructor_at_the_root)
{
    begin(_i);
    w_thread *t = world_basic(w);
    if (w->minor >= 12) {
        const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
        const w_code *g = world_code(w, "/srv/a.py", "__del__", 70, 20);
        const w_code *h = world_code(w, "/srv/a.py", "leaf", 90, 20);
        w_frame frames[] = {{f, 3, W_PLAIN, 0}, {0, 0, W_SHIM, 0}, {g, 5, W_PLAIN, 0}, {h, 7, W_PLAIN, 0}};
        world_stack(w, t, frames + 2, 2);
        char *visible = strdup(expected(t));
        world_stack(w, t, frames, 4);
        const w_placed *entry = &t->frames[t->count - 3];
        ck_assert_int_eq(entry->frame.owner, W_SHIM);
        world_word(w, entry->addr + w->l.frame_previous,
                   world_get(w, t->frames[t->count - 4].addr + w->l.frame_previous));
        w_run_go(&run, 5);
        ck_assert_uint_eq(run.count, 5);
        ck_assert_uint_eq(run.stats.errors, 0);
        for (size_t i = 0; i < run.count; i++) {
            ck_assert_str_eq(run.samples[i].stack, visible);
        }
        free(visible);
    }
    end();
}
END_TEST

/* 3.14+: a frame that has returned says NULL; its caller is intact and is the leaf. */
START_TEST(returned_leaf)
{
    begin(_i);
    w_thread *t = world_basic(w);
    if (!w->l.tagged) {
        end();
        return;
    }
    const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
    w_frame frames[] = {{f, 3, W_PLAIN, 0}, {f, 4, W_PLAIN, 0}, {f, 5, W_PLAIN, 0}};
    world_stack(w, t, frames, 2);
    char *shorter = strdup(expected(t));
    world_push(w, t, frames[2]);
    world_word(w, t->frames[t->count - 1].addr + w->l.frame_executable, 1);
    w_run_go(&run, 3);
    ck_assert_str_eq(run.samples[2].stack, shorter);
    ck_assert_uint_eq(run.stats.errors, 0);
    free(shorter);
    end();
}
END_TEST

/* Free-threaded 3.14+: threads run copies of the bytecode of their own. */
START_TEST(bytecode_copies)
{
    begin(_i);
    w_thread *t = world_basic(w);
    if (w->l.code_tlbc == AU_ABSENT) {
        end();
        return;
    }
    const w_code *f = world_code(w, "/srv/a.py", "f", 7, 20);
    const w_code *g = world_code(w, "/srv/a.py", "g", 70, 20);
    w_frame frames[] = {
        {f, 3, W_PLAIN, 0}, {f, 4, W_PLAIN, 1}, {g, 5, W_PLAIN, 2}, {f, 6, W_PLAIN, 2}, {g, 7, W_GENERATOR, 1}};
    world_stack(w, t, frames, 5);
    check_all(t, 5);
    w_run_deinit(&run);
    w_run_init(&run, w);
    /* an index whose copy is not there, or outside the array: no line, or torn */
    for (uint32_t index = 3; index < 2000000000; index = index * 7 + 1) {
        world_int(w, t->frames[2].addr + w->l.frame_tlbc_index, index);
        w_run_go(&run, 2);
        ck_assert_uint_eq(run.count, 2);
        ck_assert_uint_eq(run.samples[1].flags & AU_SAMPLE_TRUNCATED, 0);
        w_run_deinit(&run);
        w_run_init(&run, w);
    }
    end();
}
END_TEST

/* Depths around chunk borders and very deep ones, frame by frame; recursion through generators and C as well. */
static const struct {
    int depth, kind;
} depths[] = {{1, 0}, {10, 0}, {400, 0}, {163, 0}, {164, 0}, {10000, 0}, {400, 1}, {10000, 1}, {3000, 2}, {10000, 3}};

START_TEST(deep)
{
    begin(_i / 10);
    int depth = depths[_i % 10].depth;
    int kind = depths[_i % 10].kind;
    w_thread *t = world_basic(w);
    w_code *codes[7];
    w_frame *frames = calloc((size_t)depth, sizeof *frames);
    for (int i = 0; i < 7; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        codes[i] = world_code(w, "/srv/deep.py", name, 100 * i + 1, 60);
    }
    for (int i = 0; i < depth; i++) {
        frames[i] = (w_frame){codes[i % 7], 1 + i * 13 % 59, W_PLAIN, 0};
        if (kind == 1 && i % 5 == 3) {
            frames[i].owner = W_GENERATOR;
        } else if (kind == 2) {
            frames[i].owner = W_GENERATOR;
        } else if (kind == 3 && i % 3 == 1) {
            frames[i] = (w_frame){0, 0, W_SHIM, 0};
        }
    }
    world_stack(w, t, frames, (size_t)depth);
    check_all(t, 4);
    free(frames);
    end();
}
END_TEST

/* Names of every kind of string. */
START_TEST(names)
{
    static const uint32_t odd[][6] = {
        {'p', 'l', 'a', 'i', 'n', 0}, {0xe9, 0xff, 'x', 0},     {0x3b1, 0x4e2d, 0xd7ff, 0},
        {0x1f40d, 'x', 0x10ffff, 0},  {0xd800, 'x', 0xdfff, 0}, {0xfffd, 0x3b1, 0},
    };
    static const char *const shown[] = {"plain",
                                        "\xc3\xa9\xc3\xbfx",
                                        "\xce\xb1\xe4\xb8\xad\xed\x9f\xbf",
                                        "\xf0\x9f\x90\x8dx\xf4\x8f\xbf\xbf",
                                        ("\xef\xbf\xbd"
                                         "D800x\xef\xbf\xbd"
                                         "DFFF"),
                                        ("\xef\xbf\xbd"
                                         "FFFD\xce\xb1")};
    int form = _i % 3;
    begin(_i / 3);
    w_thread *t = world_basic(w);
    if (form == W_STR_WSTR && w->l.ready_bit < 0) {
        end();
        return;
    }
    for (int i = 0; i < 6; i++) {
        size_t n = 0;
        while (odd[i][n]) {
            n++;
        }
        w_code *f = world_code(w, "x", "x", 7, 20);
        f->scope_str = world_str32(w, odd[i], n, form);
        f->file_str = world_str32(w, odd[5 - i], 2, form);
        world_word(w, f->addr + w->l.code_filename, f->file_str);
        world_word(w, f->addr + (w->minor == 10 ? w->l.code_name : w->l.code_qualname), f->scope_str);
        w_frame frames[] = {{f, 3, W_PLAIN, 0}};
        world_stack(w, t, frames, 1);
        w_run_go(&run, 2);
        const char *scope = strchr(run.samples[1].stack, ':') + 1;
        ck_assert_msg(strncmp(scope, shown[i], strlen(shown[i])) == 0 && scope[strlen(shown[i])] == ':', "%s: %s",
                      w->label, run.samples[1].stack);
        ck_assert_uint_eq(run.samples[1].flags, AU_SAMPLE_SAME);
        w_run_deinit(&run);
        w_run_init(&run, w);
    }
    end();
}
END_TEST

/* A name and a table at the very end of a mapping, and names over 16 KiB. */
START_TEST(edges_of_memory)
{
    begin(_i);
    w_thread *t = world_basic(w);
    const au_layout *l = &w->l;
    w_code *f = world_code(w, "/srv/a.py", "edge", 7, 4);
    au_addr page = UINT64_C(0x7d0000000000);
    ck_assert_int_eq(au_image_map(w->image, page, 4096, AU_PERM_READ | AU_PERM_WRITE, NULL), 0);
    size_t len = (l->str_ascii_data + 5u + 7u) & ~7u;
    if (len < l->str_any + 8u) {
        len = l->str_any + 8u; /* the object itself is never smaller than what is read of it, but for the last words */
    }
    au_addr at = page + 4096 - len;
    ck_assert_int_eq(au_image_write(w->image, at, au_image_at(w->image, f->scope_str, len), len), 0);
    world_word(w, f->addr + (w->minor == 10 ? l->code_name : l->code_qualname), at);
    ck_assert_int_eq(au_image_map(w->image, page + 0x10000, 4096, AU_PERM_READ | AU_PERM_WRITE, NULL), 0);
    size_t table = (l->bytes_data + world_get(w, f->table + l->object_size) + 7u) & ~UINT64_C(7);
    at = page + 0x10000 + 4096 - table;
    ck_assert_int_eq(au_image_write(w->image, at, au_image_at(w->image, f->table, table), table), 0);
    world_word(w, f->addr + l->code_linetable, at);
    w_frame frames[] = {{f, 2, W_PLAIN, 0}};
    world_stack(w, t, frames, 1);
    check_all(t, 3);
    end();
}
END_TEST

START_TEST(short_string_at_edge)
{
    /* a one-character ASCII string is smaller than the largest string header: it may end where the memory does */
    begin(_i);
    w_thread *t = world_basic(w);
    const au_layout *l = &w->l;
    w_code *f = world_code(w, "/srv/a.py", "e", 7, 4);
    au_addr page = UINT64_C(0x7d0000000000);
    ck_assert_int_eq(au_image_map(w->image, page, 4096, AU_PERM_READ | AU_PERM_WRITE, NULL), 0);
    size_t len = (l->str_ascii_data + 2u + 15u) & ~15u; /* obmalloc gives multiples of 16 */
    au_addr at = page + 4096 - len;
    ck_assert_int_eq(au_image_write(w->image, at, au_image_at(w->image, f->scope_str, len), len), 0);
    world_word(w, f->addr + (w->minor == 10 ? l->code_name : l->code_qualname), at);
    w_frame frames[] = {{f, 2, W_PLAIN, 0}};
    world_stack(w, t, frames, 1);
    check_all(t, 3);
    end();
}
END_TEST

START_TEST(long_names)
{
    begin(_i);
    w_thread *t = world_basic(w);
    enum { CHARS = 100000 };
    uint32_t *chars = malloc(CHARS * sizeof *chars);
    for (size_t i = 0; i < CHARS; i++) {
        chars[i] = (uint32_t)(0x4e00 + i % 1000);
    }
    w_code *f = world_code(w, "/srv/a.py", "x", 7, 4);
    au_addr str = world_str32(w, chars, CHARS, W_STR_COMPACT);
    world_word(w, f->addr + (w->minor == 10 ? w->l.code_name : w->l.code_qualname), str);
    w_frame frames[] = {{f, 2, W_PLAIN, 0}};
    world_stack(w, t, frames, 1);
    w_run_go(&run, 3);
    const char *scope = strchr(run.samples[0].stack, ':') + 1;
    size_t len = (size_t)(strchr(scope, ':') - scope);
    ck_assert_uint_le(len, 16384);
    ck_assert_uint_gt(len, 16384 - 6);
    ck_assert_mem_eq(scope + len - 3, "\xe2\x80\xa6", 3);
    ck_assert_uint_eq(run.stats.errors, 0);
    free(chars);
    end();
}
END_TEST

/* No frames: the thread is a sample without any. */
START_TEST(no_frames)
{
    begin(_i);
    w_thread *t = world_basic(w);
    while (t->count) {
        world_pop(w, t);
    }
    w_run_go(&run, 3);
    ck_assert_uint_eq(run.count, 3);
    ck_assert_str_eq(run.samples[2].stack, "");
    ck_assert_uint_eq(run.stats.errors, 0);
    end();
}
END_TEST

typedef struct cframes {
    w_thread *t;
    au_addr near, far;
    size_t longest;
} cframes;

static void note_length(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    cframes *c = baton;
    (void)image;
    (void)serial;
    (void)addr;
    c->longest = len > c->longest ? len : c->longest;
}

/* Every few passes Python is entered or left for good: the cframe is then the other one. */
static int change_cframe(w_run *r)
{
    cframes *c = r->baton;
    if (r->passes % 5 == 0) {
        c->t->cframe = c->t->cframe == c->near ? c->far : c->near;
        world_word(w, c->t->addr + w->l.tstate_cframe, c->t->cframe);
    }
    return 0;
}

/* The cframe of a thread without Python is in its thread state, the others are on the C stack: what lies between the
 * two is never asked for. */
START_TEST(cframes_far_apart)
{
    begin(_i);
    w_thread *t = world_basic(w);
    if (w->l.tstate_cframe != AU_ABSENT) {
        cframes c = {.t = t, .near = t->cframe};
        (void)world_alloc(w, 1 << 20);
        c.far = world_alloc(w, 32);
        world_word(w, c.far + w->l.cframe_current_frame, world_get(w, c.near + w->l.cframe_current_frame));
        run.on_pass = change_cframe;
        run.baton = &c;
        au_image_set_hook(w->image, note_length, &c);
        w_run_go(&run, 1000);
        au_image_set_hook(w->image, NULL, NULL);
        ck_assert_uint_eq(run.count, 1000);
        ck_assert_str_eq(run.samples[999].stack, expected(t));
        ck_assert_uint_eq(run.stats.errors, 0);
        ck_assert_uint_gt(c.longest, 0);
        ck_assert_uint_le(c.longest, 64 << 10);
    }
    end();
}
END_TEST

Suite *au_stacks_suite(void)
{
    Suite *suite = suite_create("stacks");
    TCase *tcase = tcase_create("stacks");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, plain, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, every_unit, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, tour_of_a_long_function, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, generators_and_shims, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, just_entered, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, trampoline, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, entry_overwritten, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, destructor_at_the_root, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, class_call, 0, WORLD_BUILDS * 2);
    tcase_add_loop_test(tcase, returned_leaf, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, bytecode_copies, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, deep, 0, WORLD_BUILDS * 10);
    tcase_add_loop_test(tcase, names, 0, WORLD_BUILDS * 3);
    tcase_add_loop_test(tcase, edges_of_memory, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, short_string_at_edge, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, long_names, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, no_frames, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, cframes_far_apart, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    return suite;
}
