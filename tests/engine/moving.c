/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracees that move between any two pieces of a batch. All randomness is seeded, so that a run is the same each time.
 *
 * The hook is called before each piece and may change the world; what the thread's stack was at any time since the
 * sample before is remembered. A whole sample must be one of these, a torn one the outer part of one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/suites.h"
#include "tests/engine/world.h"

enum { CODES = 24, HISTORY = 4096, STATES = 4096 };

typedef struct mover {
    world *w;
    w_thread *t;
    w_code *codes[CODES];
    uint64_t seed;
    int rate; /* of 1000 pieces, before how many something changes */
    int generators, remake, quiet;
    size_t floor, ceiling;  /* depth stays in between */
    char *history[HISTORY]; /* ring of stack texts */
    size_t made, oldest;
    au_buf text;
    unsigned names;
    /* judged */
    uint64_t whole, torn, truncated, distinct;
    uint64_t mixed;      /* functions as they once were, a location of another moment, or the leaf missing */
    uint64_t impossible; /* a chain of calls that never was */
    char *last;
    unsigned last_flags;
} mover;

static uint32_t roll(mover *m, uint32_t below)
{
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return (uint32_t)(m->seed >> 20) % below;
}

static void remember(mover *m)
{
    world_expect(m->w, m->t, &m->text);
    char **slot = &m->history[m->made++ % HISTORY];
    free(*slot);
    *slot = strdup((const char *)m->text.data);
    if (m->made - m->oldest > HISTORY) {
        m->oldest = m->made - HISTORY;
    }
}

static w_frame any_frame(mover *m)
{
    const w_code *code = m->codes[roll(m, CODES)];
    int generator = m->generators && roll(m, 3) == 0;
    if (m->generators && roll(m, 12) == 0) {
        return (w_frame){0, 0, W_SHIM, 0};
    }
    return (w_frame){code, 1 + (int)roll(m, 50), generator ? W_GENERATOR : W_PLAIN, (int)roll(m, 3)};
}

/* Another function at the address of one that no frame refers to. */
static void remake(mover *m)
{
    char file[32];
    char scope[32];
    w_code *code = m->codes[roll(m, CODES)];
    for (size_t i = 0; i < m->t->count; i++) {
        if (m->t->frames[i].frame.code == code) {
            return;
        }
    }
    unsigned k = ++m->names % 100000;
    snprintf(file, sizeof file, "/srv/file%05u", k);
    snprintf(scope, sizeof scope, "scope%05u", k);
    world_code_remake(m->w, code, file, scope, (int)k * 100, (int)roll(m, 2));
}

static void step(mover *m)
{
    w_thread *t = m->t;
    if (m->remake && roll(m, 2)) {
        remake(m);
    }
    uint32_t what = roll(m, 10);
    if (what < 3 && t->count > m->floor) {
        uint32_t n = 1 + roll(m, 3);
        while (n-- && t->count > m->floor) {
            world_pop(m->w, t);
        }
    } else if (what < 6 && t->count < m->ceiling) {
        uint32_t n = 1 + roll(m, 3);
        while (n-- && t->count < m->ceiling) {
            world_push(m->w, t, any_frame(m));
        }
    } else if (what < 8 && t->count > m->floor) { /* return and call another: same depth, same addresses */
        world_pop(m->w, t);
        world_push(m->w, t, any_frame(m));
    } else if (t->count && t->frames[t->count - 1].frame.owner != W_SHIM) {
        world_set_unit(m->w, t, t->count - 1, 1 + (int)roll(m, 50));
    }
    remember(m);
}

static void hook(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    mover *m = baton;
    (void)image;
    (void)serial;
    (void)addr;
    (void)len;
    if (!m->quiet && (int)roll(m, 1000) < m->rate) {
        step(m);
    }
}

static int is_outer_part(const char *part, const char *stack)
{
    size_t n = strlen(part);
    return n == 0 || (strncmp(part, stack, n) == 0 && (stack[n] == ';' || stack[n] == '\0'));
}

/* Leaves of each frame its file and function only. */
static char *chain_of(const char *stack)
{
    char *chain = malloc(strlen(stack) + 1);
    char *to = chain;
    for (const char *at = stack; *at;) {
        int colons = 0;
        for (; *at && *at != ';'; at++) {
            colons += *at == ':';
            if (colons < 2) {
                *to++ = *at;
            }
        }
        if (*at) {
            *to++ = *at++;
        }
    }
    *to = '\0';
    return chain;
}

static int judge(w_run *run, const au_sample *sample)
{
    static const char torn[] = "<austin>:<torn>:0:0:0:0";
    mover *m = run->baton;
    au_buf text = {0};
    w_stack_text(sample, &text);
    char *stack = (char *)text.data;
    size_t len = strlen(stack);
    /* the SAME flag: never a lie */
    if (sample->flags & AU_SAMPLE_SAME) {
        ck_assert_ptr_nonnull(m->last);
        ck_assert_str_eq(m->last, stack);
        ck_assert_uint_eq(m->last_flags, sample->flags & ~(unsigned)AU_SAMPLE_SAME);
    }
    m->distinct += !m->last || strcmp(m->last, stack) != 0;
    free(m->last);
    m->last = strdup(stack);
    m->last_flags = sample->flags & ~(unsigned)AU_SAMPLE_SAME;
    int cut = (sample->flags & AU_SAMPLE_TORN) != 0;
    if (cut) {
        ck_assert_uint_ge(len, sizeof torn - 1);
        ck_assert_str_eq(stack + len - (sizeof torn - 1), torn);
        size_t end = len - (sizeof torn - 1);
        stack[end ? end - 1 : 0] = '\0';
        m->torn++;
    } else {
        ck_assert_ptr_null(strstr(stack, "<torn>"));
        m->whole++;
    }
    m->truncated += (sample->flags & AU_SAMPLE_TRUNCATED) != 0;
    int legal = 0;
    for (size_t i = m->oldest; !legal && i < m->made; i++) {
        const char *was = m->history[i % HISTORY];
        legal = cut ? is_outer_part(stack, was) : strcmp(stack, was) == 0;
    }
    if (!legal) {
        char *chain = chain_of(stack);
        int possible = 0;
        for (size_t i = m->oldest; !possible && i < m->made; i++) {
            char *was = chain_of(m->history[i % HISTORY]);
            possible = is_outer_part(chain, was);
            free(was);
        }
        if (getenv("AU_TEST_SHOW")) {
            fprintf(stderr, "%s%s: %s\n", possible ? "mixed" : "IMPOSSIBLE", cut ? " (torn)" : "", stack);
        }
        m->mixed += (uint64_t)possible;
        m->impossible += !possible;
        free(chain);
    }
    m->oldest = m->made ? m->made - 1 : 0; /* what it is now may be seen by the next one as well */
    free(stack);
    return 0;
}

static void mover_init(mover *m, int build, uint64_t seed)
{
    char name[32];
    memset(m, 0, sizeof *m);
    m->w = world_create(world_builds[build]);
    m->seed = seed * 77777 + 12345;
    m->t = world_basic(m->w);
    for (unsigned i = 0; i < CODES; i++) {
        char file[32];
        unsigned k = ++m->names;
        snprintf(file, sizeof file, "/srv/file%05u", k);
        snprintf(name, sizeof name, "scope%05u", k);
        m->codes[i] = world_code(m->w, file, name, (int)k * 100, 60);
    }
    m->floor = 2;
    m->ceiling = 12;
    m->rate = 100;
    remember(m);
}

static void mover_deinit(mover *m)
{
    for (size_t i = 0; i < HISTORY; i++) {
        free(m->history[i]);
    }
    free(m->last);
    au_buf_deinit(&m->text);
    world_destroy(m->w, 0);
}

static void go(mover *m, w_run *run, uint64_t passes)
{
    w_run_init(run, m->w);
    run->on_sample = judge;
    run->baton = m;
    run->options.max_passes = passes;
    m->quiet = 1;
    au_error *error = w_run_find(run);
    ck_assert_ptr_null(error);
    m->quiet = 0;
    au_image_set_hook(m->w->image, hook, m);
    w_run_go(run, passes);
    au_image_set_hook(m->w->image, NULL, NULL);
    ck_assert_uint_eq(run->stats.samples, m->whole + m->torn);
    ck_assert_uint_eq(run->stats.torn, m->torn);
    ck_assert_uint_eq(run->stats.truncated, m->truncated);
    ck_assert_uint_eq(run->stats.errors, m->torn + m->truncated);
    ck_assert_uint_eq(run->time_us, run->stats.duration_us);
}

static const struct {
    int rate, generators, remake;
    size_t floor, ceiling;
} motions[] = {
    {20, 0, 0, 2, 12},                          /* calls at leisure */
    {100, 0, 0, 2, 12},   {100, 1, 0, 2, 12},   /* generators and entries from C */
    {300, 1, 0, 1, 6},    {60, 0, 0, 150, 175}, /* around the border of a chunk, which is unmapped and mapped */
    {60, 1, 0, 150, 190}, {100, 0, 1, 2, 8},    /* code objects are freed and their memory is used again */
    {100, 1, 1, 2, 12},   {400, 0, 1, 2, 6},
};
enum { MOTIONS = sizeof motions / sizeof motions[0] };

START_TEST(calls)
{
    mover m;
    w_run run;
    int k = _i % MOTIONS;
    /* The bounds below were found with these seeds, and a build whose long is short moves as the other one does. */
    mover_init(&m, _i / MOTIONS, (uint64_t)_i % (9 * MOTIONS) + 1);
    m.rate = motions[k].rate;
    m.generators = motions[k].generators;
    m.remake = motions[k].remake;
    m.floor = motions[k].floor;
    m.ceiling = motions[k].ceiling;
    while (m.t->count < m.floor) {
        world_push(m.w, m.t, (w_frame){m.codes[m.t->count % CODES], 1 + (int)m.t->count % 50, W_PLAIN, 0});
    }
    remember(&m);
    go(&m, &run, 400);
    if (getenv("AU_TEST_SHOW")) {
        fprintf(stderr,
                "%s motion %d: %llu whole, %llu torn, %llu truncated, %llu mixed, %llu impossible, %llu distinct, %llu "
                "retries\n",
                m.w->label, k, (unsigned long long)m.whole, (unsigned long long)m.torn, (unsigned long long)m.truncated,
                (unsigned long long)m.mixed, (unsigned long long)m.impossible, (unsigned long long)m.distinct,
                (unsigned long long)run.stats.retries);
    }
    ck_assert_uint_eq(m.whole + m.torn, 400);
    /*
     * The most that fifteen other seeds have shown in any build. A generator that is left and resumed in between looks
     * as before; one that hands out values faster than it can be read is shown where it, and its caller, were last
     * seen. Of plain calls there is nothing impossible. On 3.10 a caller may be put back to a place that it called from
     * otherwise (sites.c): this one calls from fifty.
     */
    ck_assert_uint_le(m.impossible, !m.generators ? 0 : m.rate >= 300 ? 3 : 2);
    ck_assert_uint_le(m.mixed, !m.generators   ? (m.w->minor == 10 ? 9
                                                  : m.rate >= 300  ? 6
                                                                   : 3)
                               : m.rate >= 300 ? 17
                                               : 12);
    ck_assert_uint_eq(m.truncated, 0);
    /* it is not the same moment that is seen again and again */
    ck_assert_uint_gt(m.distinct, m.rate > 20 ? 60 : 25);
    if (m.rate <= 100 && m.ceiling < 100) {
        /* 1 %; and what is seen for the first time, if its frame has gone when it is looked for: before 3.12 nothing
           tells when a function was made, and 3.10 has its frames at other addresses, too */
        size_t torn = m.w->minor == 10 ? 48 : m.w->minor == 11 ? 4 + CODES : 4;
        if (m.remake) { /* all is new again and again */
            torn = m.w->minor == 10 ? 310 : m.w->minor == 11 ? 150 : 60;
        }
        ck_assert_uint_le(m.torn, torn);
    }
    w_run_deinit(&run);
    mover_deinit(&m);
}
END_TEST

/* ---- never at rest --------------------------------------------------------------------------------------------- */

static void churn(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    mover *m = baton;
    (void)image;
    (void)serial;
    (void)addr;
    (void)len;
    if (m->quiet) {
        return;
    }
    while (m->t->count > m->floor) {
        world_pop(m->w, m->t);
    }
    for (uint32_t n = 2 + roll(m, 3); n; n--) {
        /* not plain calls alone: those can be told from one copy */
        world_push(m->w, m->t,
                   (w_frame){m->codes[roll(m, CODES)], 1 + (int)roll(m, 50), n & 1 ? W_GENERATOR : W_PLAIN, 0});
    }
    remember(m);
}

/* Torn: the outer part and not one frame more, since nothing above it stood still; or nothing, but never another part.
 */
static int rest_sample(w_run *run, const au_sample *sample)
{
    mover *m = run->baton;
    au_buf text = {0};
    w_stack_text(sample, &text);
    const char *stack = (const char *)text.data;
    if (sample->flags & AU_SAMPLE_TORN) {
        const char *end = strstr(stack, "<austin>:<torn>:0:0:0:0");
        ck_assert_ptr_nonnull(end);
        ck_assert_str_eq(end, "<austin>:<torn>:0:0:0:0");
        size_t outer = strlen(m->last);
        m->torn++;
        if (end != stack) {
            ck_assert_msg(strncmp(stack, m->last, outer) == 0 && (size_t)(end - stack) == outer + 1, "%s: %s",
                          m->w->label, stack);
            m->distinct++;
        }
    } else { /* two looks or one copy made a whole of it: then it was so */
        int legal = 0;
        for (size_t i = m->oldest; !legal && i < m->made; i++) {
            legal = strcmp(stack, m->history[i % HISTORY]) == 0;
        }
        ck_assert_uint_eq(sample->flags & AU_SAMPLE_TRUNCATED, 0);
        m->whole++;
        if (m->w->minor == 10) { /* one look tells its last frames: what stands must be right */
            legal = strncmp(stack, m->last, strlen(m->last)) == 0;
        }
        m->mixed += !legal;
        if (!legal && getenv("AU_TEST_SHOW")) {
            fprintf(stderr, "mixed: %s\n", stack);
        }
    }
    m->oldest = m->made - 1;
    au_buf_deinit(&text);
    return 0;
}

/* Everything above an outer part changes before each piece. */
START_TEST(never_at_rest)
{
    mover m;
    w_run run;
    mover_init(&m, _i, 99);
    w_frame outer[3] = {{m.codes[0], 3, W_PLAIN, 0}, {m.codes[1], 4, W_PLAIN, 0}, {m.codes[2], 5, W_PLAIN, 0}};
    world_stack(m.w, m.t, outer, 3);
    m.floor = m.t->count;
    world_expect(m.w, m.t, &m.text);
    m.last = strdup((const char *)m.text.data);
    churn(&m, m.w->image, 0, 0, 0);
    w_run_init(&run, m.w);
    run.on_sample = rest_sample;
    run.baton = &m;
    run.options.max_passes = 60;
    m.quiet = 1;
    ck_assert_ptr_null(w_run_find(&run));
    m.quiet = 0;
    au_image_set_hook(m.w->image, churn, &m);
    w_run_go(&run, 60);
    au_image_set_hook(m.w->image, NULL, NULL);
    if (getenv("AU_TEST_SHOW")) {
        fprintf(stderr, "%s: %llu whole (%llu mixed), %llu torn, %llu of them with the outer part\n", m.w->label,
                (unsigned long long)m.whole, (unsigned long long)m.mixed, (unsigned long long)m.torn,
                (unsigned long long)m.distinct);
    }
    ck_assert_uint_eq(m.whole + m.torn, 60);
    ck_assert_uint_le(m.mixed, 6);
    ck_assert_uint_ge(m.torn, m.w->minor == 10 ? 0 : 10);
    ck_assert_uint_ge(m.distinct, m.torn * 4 / 5);
    ck_assert_uint_eq(run.stats.torn, m.torn);
    ck_assert_uint_eq(run.stats.errors, m.torn);
    ck_assert_uint_gt(run.time_us, 0);
    w_run_deinit(&run);
    mover_deinit(&m);
}
END_TEST

/* ---- code objects that come and go between passes -------------------------------------------------------------- */

static int remake_all(w_run *run)
{
    mover *m = run->baton;
    while (m->t->count > 1) {
        world_pop(m->w, m->t);
    }
    for (int i = 0; i < 8; i++) {
        remake(m);
    }
    for (int i = 0; i < 5; i++) {
        world_push(m->w, m->t, (w_frame){m->codes[roll(m, CODES)], 1 + (int)roll(m, 50), W_PLAIN, 0});
    }
    m->oldest = m->made;
    remember(m);
    return 0;
}

START_TEST(remade_between_passes)
{
    mover m;
    w_run run;
    mover_init(&m, _i, 5);
    w_run_init(&run, m.w);
    run.on_sample = judge;
    run.on_pass = remake_all;
    run.baton = &m;
    m.oldest = m.made - 1;
    w_run_go(&run, 4000);
    ck_assert_uint_eq(m.whole, 4000);
    ck_assert_uint_eq(m.mixed + m.impossible, 0);
    ck_assert_uint_eq(run.stats.errors, 0);
    w_run_deinit(&run);
    mover_deinit(&m);
}
END_TEST

/* Tens of thousands of code objects: the cache stays bounded, what it forgot is read again. */
static int new_code(w_run *run)
{
    mover *m = run->baton;
    w_frame frames[3];
    for (int i = 0; i < 3; i++) {
        char file[32];
        char scope[32];
        unsigned k = ++m->names;
        snprintf(file, sizeof file, "/srv/file%u", k);
        snprintf(scope, sizeof scope, "scope%u", k);
        frames[i] = (w_frame){world_code(m->w, file, scope, (int)(k % 100000), 8), 1 + i, W_PLAIN, 0};
    }
    world_stack(m->w, m->t, frames, 3);
    m->oldest = m->made;
    remember(m);
    return 0;
}

START_TEST(many_codes)
{
    mover m;
    w_run run;
    mover_init(&m, _i, 6);
    w_run_init(&run, m.w);
    run.on_sample = judge;
    run.on_pass = new_code;
    run.baton = &m;
    m.oldest = m.made - 1;
    w_run_go(&run, 5000);
    ck_assert_uint_eq(m.whole, 5000);
    ck_assert_uint_eq(m.mixed + m.impossible, 0);
    ck_assert_uint_gt(run.stats.code_evictions, 3000);
    w_run_deinit(&run);
    mover_deinit(&m);
}
END_TEST

/* ---- the end at any moment ------------------------------------------------------------------------------------- */

typedef struct ending {
    mover *m;
    uint64_t at, seen;
    int exec;
} ending;

static void end_hook(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    ending *e = baton;
    (void)serial;
    (void)addr;
    (void)len;
    if (e->seen++ == e->at) {
        if (e->exec) {
            au_image_exec(image);
        } else {
            au_image_exit(image);
        }
    }
}

START_TEST(gone_at_any_piece)
{
    int build = _i / 2;
    for (uint64_t at = 0; at < 400; at = at < 120 ? at + 1 : at + 13) {
        mover m;
        w_run run;
        ending e = {&m, at, 0, _i % 2};
        mover_init(&m, build, 7);
        w_frame frames[3] = {{m.codes[0], 3, W_GENERATOR, 0}, {m.codes[1], 4, W_PLAIN, 0}, {m.codes[2], 5, W_PLAIN, 0}};
        world_stack(m.w, m.t, frames, 3);
        w_run_init(&run, m.w);
        run.options.timeout_ms = 50;
        run.options.max_passes = 4000;
        au_image_set_hook(m.w->image, end_hook, &e);
        au_error *error = w_run_find(&run);
        if (error) {
            if (!e.exec) {
                ck_assert_int_eq(error->code, AU_ERR_GONE);
            }
            au_error_clear(error);
        } else {
            w_run_go(&run, 4000);
            ck_assert_int_eq(run.how, AU_RAN_TARGET_GONE);
            for (size_t i = 0; i < run.count; i++) {
                ck_assert_uint_eq(run.samples[i].flags & AU_SAMPLE_TRUNCATED, 0);
            }
        }
        w_run_deinit(&run);
        mover_deinit(&m);
    }
}
END_TEST

/*
 * From 3.14 on: a code object is proven by the generation alone. That goes up when an object begins to be freed, which
 * is still whole then; the one that has its place afterwards must not be taken for it.
 */
static int freed_by_and_by(w_run *run)
{
    mover *m = run->baton;
    w_code *code = m->codes[0];
    m->made++;
    if (m->made == 2) { /* the last reference goes, and the generation is counted up; the frame is still in its place */
        world_code_refs(m->w, code, 0);
        world_word(m->w, m->w->interps->addr + m->w->l.interp_code_generation, 77);
    } else if (m->made == 4) { /* its memory is used again */
        world_word(m->w, code->addr + m->w->l.code_filename, m->codes[1]->file_str);
        world_int(m->w, code->addr + m->w->l.code_version, m->w->next_version++);
        world_code_refs(m->w, code, 1);
    }
    return 0;
}

/* One code object that is to be freed, and one that comes after it. 0: nothing counts that in this build. */
static int about_to_be_freed(mover *m, w_run *run, int build, int (*on_pass)(w_run *run))
{
    mover_init(m, build, 9);
    m->codes[0] = world_code(m->w, "/srv/dying.cfg", "<module>", 1, 30);
    m->codes[1] = world_code(m->w, "/srv/living.cfg", "<module>", 1, 30);
    m->made = 0;
    w_run_init(run, m->w);
    run->on_pass = on_pass;
    run->baton = m;
    return m->w->l.interp_code_generation != AU_ABSENT;
}

START_TEST(freed_while_proven)
{
    mover m;
    w_run run;
    if (about_to_be_freed(&m, &run, _i, freed_by_and_by)) {
        w_frame frame = {m.codes[0], 3, W_PLAIN, 0};
        world_stack(m.w, m.t, &frame, 1);
        w_run_go(&run, 8);
        ck_assert_uint_eq(run.count, 8);
        ck_assert_ptr_nonnull(strstr(run.samples[1].stack, "dying.cfg"));
        ck_assert_msg(strstr(run.samples[7].stack, "living.cfg") != NULL, "%s: %s", m.w->label, run.samples[7].stack);
    }
    w_run_deinit(&run);
    mover_deinit(&m);
}
END_TEST

/*
 * The same for one that no stack shows any more: what was written over its count when its memory was given back looks
 * like a count.
 */
static int freed_and_forgotten(w_run *run)
{
    mover *m = run->baton;
    w_code *code = m->codes[0];
    au_addr generation = m->w->interps->addr + m->w->l.interp_code_generation;
    m->made++;
    if (m->made == 3) {
        world_pop(m->w, m->t);
        world_word(m->w, generation, 77);
        if (m->w->l.object_type < 24) {
            world_word(m->w, code->addr, m->rate ? UINT64_C(0x00007f1234567890) : UINT64_C(0x000000001c0a0b40));
        }
    } else if (m->made == 7) {
        world_word(m->w, code->addr + m->w->l.code_filename, m->codes[1]->file_str);
        world_int(m->w, code->addr + m->w->l.code_version, m->w->next_version++);
        world_word(m->w, code->addr, 0);
        world_code_refs(m->w, code, 1);
        world_push(m->w, m->t, (w_frame){code, 3, W_PLAIN, 0});
    }
    return 0;
}

START_TEST(freed_while_unseen)
{
    mover m;
    w_run run;
    if (about_to_be_freed(&m, &run, _i / 2, freed_and_forgotten)) {
        w_frame frames[] = {{m.codes[2], 2, W_PLAIN, 0}, {m.codes[0], 3, W_PLAIN, 0}};
        world_stack(m.w, m.t, frames, 2);
        m.rate = _i % 2;
        w_run_go(&run, 12);
        ck_assert_uint_eq(run.count, 12);
        ck_assert_ptr_nonnull(strstr(run.samples[2].stack, "dying.cfg"));
        for (size_t i = 3; i < 12; i++) {
            ck_assert_msg(strstr(run.samples[i].stack, "dying.cfg") == NULL, "%s: %s", m.w->label,
                          run.samples[i].stack);
        }
        ck_assert_ptr_nonnull(strstr(run.samples[11].stack, "living.cfg"));
    }
    w_run_deinit(&run);
    mover_deinit(&m);
}
END_TEST

Suite *au_moving_suite(void)
{
    Suite *suite = suite_create("moving");
    TCase *tcase = tcase_create("moving");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, calls, 0, WORLD_BUILDS * MOTIONS);
    tcase_add_loop_test(tcase, never_at_rest, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, remade_between_passes, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, freed_while_proven, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, freed_while_unseen, 0, WORLD_BUILDS * 2);
    tcase_add_loop_test(tcase, many_codes, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, gone_at_any_piece, 0, WORLD_BUILDS * 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
