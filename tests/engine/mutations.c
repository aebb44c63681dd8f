/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invented images, each changed at random and read through a fault injector that does more of it: words of the
 * structures are replaced before the search, after it and between passes; bytes change on their way; reads, lists and
 * members fail; the process goes away. Nothing may crash, hang or read without end, what comes out must be text of the
 * allowed kind, and the counters must add up.
 *
 *     AUSTIN_MUTATIONS=N          how many images, over all builds (default 1,800)
 *     AUSTIN_MUTATIONS_FROM=N     number of the first one (default 0): a long run can be had in pieces
 *     CK_RUN_CASE=mutations       nothing but this, CK_FORK=no: without a limit of time
 *
 * An image is made from its number alone, so the one that failed (its number is printed) can be had again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/faults.h"
#include "tests/engine/suites.h"
#include "tests/engine/world.h"

enum { DEFAULT_COUNT = 1800, SAME_SHAPE = 500, PLACES = 64, CHANGES = 64, PASSES = 4, PIECES_MAX = 3000000 };

typedef struct place {
    au_addr at;
    size_t len;
} place;

typedef struct mutant {
    w_run run; /* first: callbacks get this one */
    world *w;
    w_thread *threads[2];
    place places[PLACES];
    size_t place_count;
    place undo[CHANGES]; /* address and what was there */
    size_t undo_count;
    uint64_t number, random;
    int between_passes;
    uint64_t pieces;
    uint64_t samples, torn, truncated;
    /* of the whole run */
    uint64_t found, all_samples, all_parts, fired;
    size_t unmutated;
} mutant;

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t draw(mutant *m, uint64_t below)
{
    /* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
    uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

/* Check's own assertions tell a pipe about each success. */
static void require(const mutant *m, int ok, const char *what)
{
    if (!ok) {
        ck_abort_msg("%s: image %" PRIu64 ": %s", m->w->label, m->number, what);
    }
}

/* ---- the image -------------------------------------------------------------------------------------------------- */

static void add_place(mutant *m, au_addr at, size_t len)
{
    if (at && m->place_count < PLACES) {
        m->places[m->place_count++] = (place){at, len};
    }
}

static void find_places(mutant *m)
{
    world *w = m->w;
    const au_layout *l = &w->l;
    m->place_count = 0;
    for (size_t k = 0; k < 2; k++) {
        const w_thread *t = m->threads[k];
        add_place(m, t->addr, 512);
        for (size_t i = 0; i < t->count && i < 8; i++) {
            add_place(m, t->frames[i].addr, 120);
        }
        add_place(m, t->cframe, 16);
        add_place(m, t->chunk_count ? t->chunks[0].addr : 0, 256);
        add_place(m, t->object ? t->object - 64 : 0, 256);
    }
    for (const w_code *c = w->codes; c; c = c->next) {
        add_place(m, c->addr, 256);
        add_place(m, c->scope_str, 80);
        add_place(m, c->file_str, 80);
        add_place(m, c->table, 64);
    }
    add_place(m, w->runtime, l->minor >= 13 ? 1024 : 128);
    add_place(m, w->runtime + l->runtime_interpreters_head, 8);
    add_place(m, w->runtime + l->runtime_main_thread, 8);
    for (const w_interp *i = w->interps; i; i = i->next) {
        add_place(m, i->addr + l->interp_threads_head, 8);
        add_place(m, i->addr + l->interp_next, 16);
        add_place(m, i->addr + l->interp_modules, 8);
        add_place(m, i->addr + l->interp_sysdict, 8);
        add_place(m, i->active, 64);
        add_place(m, i->keys, 64);
    }
    add_place(m, w->code_type, 64);
    add_place(m, w->thread_type, 1024);
    add_place(m, w->thread_keys, 128);
}

/* A world whose shape depends on `shape`: depth, kinds of frames, one thread or two, one interpreter or two. */
static void make_world(mutant *m, int build, uint64_t shape)
{
    m->random = shape * 2 + 1;
    m->w = world_create(world_builds[build]);
    world *w = m->w;
    m->threads[0] = world_basic(w);
    w_interp *home = w->interps;
    w_interp *second = draw(m, 2) ? world_interp(w, 1) : home;
    m->threads[1] = world_thread(w, second, UINT64_C(0x7fff22340000), 4322);
    for (size_t k = 0; k < 2; k++) {
        w_frame frames[12] = {{0}};
        size_t depth = 1 + (size_t)draw(m, k ? 5 : 12);
        for (size_t i = 0; i < depth; i++) {
            char name[16];
            snprintf(name, sizeof name, i % 3 ? "f%zu" : "T\xc3\xbc.f%zu", i);
            const w_code *code = i < 4 ? world_code(w, "/srv/a.py", name, 10 * (int)i + 1, 30) : frames[i - 4].code;
            w_owner owner = draw(m, 4) == 0 ? W_GENERATOR : i && i + 1 < depth && draw(m, 5) == 0 ? W_SHIM : W_PLAIN;
            frames[i] = (w_frame){code, 1 + (int)draw(m, 28), owner, (int)draw(m, 3)};
        }
        world_stack(w, m->threads[k], frames, depth);
    }
    world_threading(w, home);
    world_name(w, home, m->threads[0], "MainThread", draw(m, 2) ? W_NAME_DICT : W_NAME_VALUES);
    if (second == home) {
        world_name(w, home, m->threads[1], "W\xc3\xb6rker", draw(m, 2) ? W_NAME_DICT : W_NAME_VALUES);
    }
    find_places(m);
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void change_word(mutant *m)
{
    const place *p = &m->places[draw(m, m->place_count)];
    au_addr at = p->at + draw(m, p->len / 4) * 4;
    if (m->undo_count == CHANGES || !au_image_at(m->w->image, at, 8)) {
        return;
    }
    uint64_t was = world_get(m->w, at);
    uint64_t value;
    const place *other = &m->places[draw(m, m->place_count)];
    switch (draw(m, 8)) {
    case 0:
        value = draw(m, UINT64_MAX);
        break;
    case 1:
        value = UINT64_MAX >> draw(m, 64);
        break;
    case 2:
        value = was + draw(m, 4096) - 2048;
        break;
    case 3:
        value = other->at;
        break;
    case 4:
        value = other->at + draw(m, other->len / 8 + 1) * 8;
        break;
    case 5:
        value = draw(m, 512);
        break;
    case 6:
        value = (was & ~UINT64_C(0xffffffff)) | draw(m, UINT64_C(1) << 32);
        break;
    default:
        value = was ^ UINT64_C(1) << draw(m, 64);
    }
    m->undo[m->undo_count++] = (place){at, (size_t)was};
    world_word(m->w, at, value);
}

static void undo_all(mutant *m)
{
    while (m->undo_count) {
        m->undo_count--;
        world_word(m->w, m->undo[m->undo_count].at, m->undo[m->undo_count].len);
    }
}

static void add_fault(mutant *m, au_faults *faults, const au_fault *fault)
{
    require(m, au_faults_add(faults, fault) == 0, "no memory");
}

static void plan(mutant *m, au_faults *faults)
{
    static const au_outcome outcomes[] = {AU_FAULT, AU_GONE, AU_DENIED, AU_NOT_KNOWN};
    if (draw(m, 2)) {
        add_fault(m, faults,
                  &(au_fault){.kind = AU_FAULT_MUTATE,
                              .piece = draw(m, 3) ? draw(m, 400) : 0,
                              .one_in = UINT64_C(8) << draw(m, 11)});
    }
    if (draw(m, 8) == 0) {
        add_fault(m, faults,
                  &(au_fault){.kind = AU_FAULT_PIECES,
                              .nth = draw(m, 200),
                              .times = draw(m, 50),
                              .keep = draw(m, 6),
                              .outcome = outcomes[draw(m, 4)]});
    }
    if (draw(m, 8) == 0) {
        const place *p = &m->places[draw(m, m->place_count)];
        add_fault(m, faults,
                  &(au_fault){.kind = AU_FAULT_OLD_PAGE, .addr = p->at, .piece = draw(m, 400), .times = draw(m, 60)});
    }
    if (draw(m, 16) == 0) {
        add_fault(m, faults, &(au_fault){.kind = AU_FAULT_GONE, .piece = draw(m, 600)});
    }
    if (draw(m, 16) == 0) {
        add_fault(m, faults,
                  &(au_fault){.kind = AU_FAULT_FAIL,
                              .member = (au_member)draw(m, AU_MEMBERS),
                              .nth = draw(m, 12),
                              .times = draw(m, 8),
                              .outcome = outcomes[draw(m, 4)]});
    }
    if (draw(m, 16) == 0) {
        static const au_member lists[] = {AU_MEMBER_THREADS, AU_MEMBER_REGIONS, AU_MEMBER_MODULES};
        add_fault(m, faults,
                  &(au_fault){.kind = AU_FAULT_LIST,
                              .member = lists[draw(m, 3)],
                              .nth = draw(m, 3),
                              .times = draw(m, 5),
                              .keep = draw(m, 3)});
    }
    if (draw(m, 32) == 0) {
        add_fault(m, faults,
                  &(au_fault){.kind = AU_FAULT_CLOCK,
                              .nth = draw(m, 30),
                              .jump_ns = (int64_t)draw(m, UINT64_C(4000000000)) - 1000000000});
    }
}

/* ---- what comes out --------------------------------------------------------------------------------------------- */

/* Valid UTF-8 (RFC 3629), at most 16 KiB and the mark of a cut. */
static int is_text(const char *text)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t len = strlen(text);
    size_t i = 0;
    while (i < len) {
        uint32_t c = p[i];
        size_t more = c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 9;
        if (more > len - i - 1) {
            return 0;
        }
        c = more ? c & (0x3fu >> more) : c;
        for (size_t k = 1; k <= more; k++) {
            if ((p[i + k] & 0xc0) != 0x80) {
                return 0;
            }
            c = c << 6 | (p[i + k] & 0x3fu);
        }
        if ((more == 2 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) || (more == 3 && (c < 0x10000 || c > 0x10ffff))) {
            return 0;
        }
        i += 1 + more;
    }
    return len <= 16 * 1024 + 3;
}

static int take(w_run *run, const au_sample *sample)
{
    mutant *m = (mutant *)run;
    m->samples++;
    m->torn += (sample->flags & AU_SAMPLE_TORN) != 0;
    m->truncated += (sample->flags & AU_SAMPLE_TRUNCATED) != 0;
    require(m, sample->thread && is_text(sample->thread), "name of a thread");
    require(m, sample->frame_count < 1000000, "too deep");
    for (size_t i = 0; i < sample->frame_count; i++) {
        const au_location *at = sample->frames[i];
        require(m, is_text(at->file) && is_text(at->scope), "name of a frame");
        require(m,
                at->line <= INT32_MAX && at->line_end <= INT32_MAX && at->column <= INT32_MAX &&
                    at->column_end <= INT32_MAX,
                "numbers of a frame");
    }
    return 0;
}

static int passed(w_run *run)
{
    mutant *m = (mutant *)run;
    for (int i = 0; i < m->between_passes; i++) {
        change_word(m);
    }
    return 0;
}

static void count_piece(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    mutant *m = baton;
    (void)image;
    (void)serial;
    (void)addr;
    (void)len;
    require(m, ++m->pieces < PIECES_MAX, "reads without end");
}

static void look(mutant *m, au_sys *sys, int changes_after)
{
    m->samples = m->torn = m->truncated = m->pieces = 0;
    w_run_init(&m->run, m->w);
    m->run.sys = sys;
    m->run.options.timeout_ms = 2;
    m->run.options.max_passes = PASSES;
    m->run.options.exposure_ns = 2000000000;
    m->run.options.mode = m->number % 5 == 4 ? AU_MODE_CPU : AU_MODE_WALL;
    m->run.on_sample = take;
    m->run.on_pass = passed;
    au_error *error = w_run_find(&m->run);
    if (error) {
        require(m, error->message && *error->message, "an error without words");
        au_error_clear(error);
    } else {
        m->found++;
        for (int i = 0; i < changes_after; i++) {
            change_word(m);
        }
        error = au_engine_run(m->run.engine, &m->run.how);
        require(m, error == NULL, "the run failed");
        const au_stats *stats = au_engine_stats(m->run.engine);
        require(m, stats->samples == m->samples, "counter of samples");
        require(m, stats->torn == m->torn && stats->truncated == m->truncated, "counters of parts");
        require(m,
                stats->errors >= m->torn && stats->errors >= m->truncated &&
                    stats->errors <= m->torn + m->truncated + stats->unreadable,
                "counter of errors");
    }
    w_run_deinit(&m->run);
    m->all_samples += m->samples;
    m->all_parts += m->torn + m->truncated;
}

/* The image as it was: all of both stacks, else the changes were not undone and the rest is worth nothing. */
static void look_at_original(mutant *m)
{
    au_buf want[2] = {{0}};
    w_run run;
    w_run_init(&run, m->w);
    w_run_go(&run, 1);
    require(m, run.count == 2, "the original does not show two threads");
    for (size_t k = 0; k < 2; k++) {
        world_expect(m->w, m->threads[k], &want[k]);
    }
    for (size_t i = 0; i < 2; i++) {
        require(m,
                !strcmp(run.samples[i].stack, (char *)want[0].data) ||
                    !strcmp(run.samples[i].stack, (char *)want[1].data),
                "the original shows another stack");
    }
    au_buf_deinit(&want[0]);
    au_buf_deinit(&want[1]);
    w_run_deinit(&run);
    m->unmutated++;
}

static void one_image(mutant *m, uint64_t number)
{
    m->number = number;
    m->random = number * UINT64_C(0xd1342543de82ef95) + 1;
    au_faults *faults = au_faults_create(au_image_sys(m->w->image), m->random | 1);
    require(m, faults != NULL, "no memory");
    plan(m, faults);
    uint64_t when = draw(m, 4); /* words change: before, after the search, between passes */
    int words = (int)(1 + draw(m, 6));
    m->between_passes = when == 2 ? 1 + words / 2 : 0;
    for (int i = 0; when != 1 && when != 2 && i < words; i++) {
        change_word(m);
    }
    look(m, au_faults_sys(faults), when == 1 ? words : 0);
    m->fired += au_faults_fired(faults);
    au_faults_destroy(faults);
    require(m, au_image_open_handles(m->w->image) == 0, "a handle is left open");
    undo_all(m);
    au_image_set_time(m->w->image, 1000000000);
}

START_TEST(mutated)
{
    uint64_t from = setting("AUSTIN_MUTATIONS_FROM", 0);
    uint64_t to = from + setting("AUSTIN_MUTATIONS", DEFAULT_COUNT);
    mutant *m = calloc(1, sizeof *m);
    uint64_t count = 0;
    uint64_t shape = UINT64_MAX;
    ck_assert_ptr_nonnull(m);
    uint64_t first = from + ((uint64_t)_i + WORLD_BUILDS - from % WORLD_BUILDS) % WORLD_BUILDS;
    for (uint64_t number = first; number < to; number += WORLD_BUILDS, count++) {
        if (number / WORLD_BUILDS / SAME_SHAPE != shape) {
            if (m->w) {
                world_destroy(m->w, 0);
            }
            shape = number / WORLD_BUILDS / SAME_SHAPE;
            make_world(m, _i, shape);
            look_at_original(m);
            au_image_set_hook(m->w->image, count_piece, m);
        }
        one_image(m, number);
    }
    if (m->w) {
        au_image_set_hook(m->w->image, NULL, NULL);
        look_at_original(m);
        ck_assert_uint_gt(m->found, 0);
        ck_assert(m->all_samples > 0 || count < 100);
        ck_assert(m->all_parts > 0 || count < 100);
        ck_assert(m->found < count || count < 100);
        world_destroy(m->w, 0);
    }
    if (getenv("AUSTIN_MUTATIONS")) {
        printf("mutations: %s: %" PRIu64 " images from %" PRIu64 ", %" PRIu64 " with a Python in them, %" PRIu64
               " samples, %" PRIu64 " of them parts, %" PRIu64 " faults\n",
               world_builds[_i], count, first, m->found, m->all_samples, m->all_parts, m->fired);
        fflush(stdout);
    }
    free(m);
}
END_TEST

TCase *au_mutations_case(void)
{
    TCase *tcase = tcase_create("mutations");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, mutated, 0, WORLD_BUILDS);
    return tcase;
}
