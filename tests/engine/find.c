/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the runtime, and what is said when there is none that we can read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/layouts.h"
#include "tests/engine/suites.h"
#include "tests/engine/world.h"

static w_run run;

START_TEST(by_section)
{
    world *w = world_create(world_builds[_i]);
    world_basic(w);
    w_run_init(&run, w);
    ck_assert_ptr_null(w_run_find(&run));
    uint32_t version = layout_version(w->build);
    ck_assert_uint_eq(run.python->major, 3);
    ck_assert_uint_eq(run.python->minor, w->minor);
    ck_assert_uint_eq(run.python->micro, version >> 8 & 0xff);
    ck_assert_int_eq(run.python->release_level, 0xf);
    ck_assert_int_eq(run.python->free_threaded, w->free_threaded);
    ck_assert_int_eq(run.python->bits, 64);
    ck_assert_ptr_null(run.python->other_runtime);
    ck_assert_ptr_nonnull(strstr(run.python->image, "/usr/bin/python3."));
    w_run_deinit(&run);
    ck_assert_uint_eq(au_image_open_handles(w->image), 0);
    world_destroy(w, 0);
}
END_TEST

/* No file, no symbol: only the cookie in writable memory of a file. */
START_TEST(by_cookie)
{
    world *w = world_create_in(au_image_create(4321), world_builds[_i], 0, -1, "/usr/bin/python3.13 (deleted)");
    w_thread *t = world_basic(w);
    au_buf want = {0};
    if (w->minor >= 13) {
        w_run_init(&run, w);
        w_run_go(&run, 3);
        world_expect(w, t, &want);
        ck_assert_str_eq(run.samples[2].stack, (const char *)want.data);
        w_run_deinit(&run);
        au_buf_deinit(&want);
    }
    world_destroy(w, 0);
}
END_TEST

enum { MEMORY_FORMS = 7 };

/* How the dynamic symbols of a module can be met: in a file, or in memory, relocated or not, by either hash table. */
static const struct {
    w_module_form form;
    unsigned options;
} dynamic_forms[MEMORY_FORMS] = {
    {W_MODULE_DYNAMIC, 0},
    {W_MODULE_DYNAMIC, W_MODULE_GNU_HASH},
    {W_MODULE_BARE, W_MODULE_RELOCATED},
    {W_MODULE_BARE, W_MODULE_GNU_HASH},
    {W_MODULE_BARE, W_MODULE_RELOCATED | W_MODULE_GNU_HASH},
    {W_MODULE_DELETED, W_MODULE_RELOCATED},
    {W_MODULE_DELETED, W_MODULE_RELOCATED | W_MODULE_GNU_HASH},
};

/* Stripped of all section headers, or the file has gone: the dynamic section is what is left. */
START_TEST(by_dynamic_symbols)
{
    const char *path = "/usr/bin/python3";
    for (int i = 0; i < MEMORY_FORMS; i++) {
        world *w = world_create_in(au_image_create(4321), world_builds[_i], 0, -1, path);
        world_module(w, 1, path, dynamic_forms[i].form, dynamic_forms[i].options);
        w_thread *t = world_basic(w);
        au_buf want = {0};
        w_run_init(&run, w);
        w_run_go(&run, 3);
        ck_assert_str_eq(run.python->image, path); /* not by the cookie */
        ck_assert_uint_eq(run.python->minor, w->minor);
        ck_assert_uint_eq(run.python->micro, layout_version(w->build) >> 8 & 0xff);
        ck_assert_uint_eq(run.count, 3);
        world_expect(w, t, &want);
        ck_assert_str_eq(run.samples[2].stack, (const char *)want.data);
        ck_assert_uint_eq(run.stats.errors, 0);
        w_run_deinit(&run);
        au_buf_deinit(&want);
        ck_assert_uint_eq(au_image_open_handles(w->image), 0);
        world_destroy(w, 0);
    }
}
END_TEST

static void expect_refusal(world *w, int code, const char *part, const char *other)
{
    w_run_init(&run, w);
    au_error *error = w_run_find(&run);
    ck_assert_msg(error != NULL, "%s: found", w->label);
    ck_assert_int_eq((int)error->code, code);
    ck_assert_msg(strstr(error->message, part) || (error->cause && strstr(error->cause, part)), "%s: '%s' lacks '%s'",
                  w->label, error->message, part);
    ck_assert_msg(!other || strstr(error->message, other) || (error->hint && strstr(error->hint, other)),
                  "%s: '%s' lacks '%s'", w->label, error->message, other);
    ck_assert_ptr_nonnull(strstr(error->message, "4321"));
    au_error_clear(error);
    w_run_deinit(&run);
}

typedef struct elsewhere {
    au_proc *next; /* what is offered at the second look */
    const au_proc *asked_of;
    unsigned calls;
} elsewhere;

static au_proc *offer(void *baton, au_proc *proc)
{
    elsewhere *e = baton;
    au_proc *next = ++e->calls == 2 ? e->next : NULL;
    e->asked_of = proc;
    return next;
}

/* What was named stands for an interpreter, which is another process. */
START_TEST(interpreter_elsewhere)
{
    world *w = world_create(world_builds[_i]);
    w_thread *t = world_basic(w);
    au_image *image = w->image, *launcher = au_image_create(4321);
    au_buf want = {0};
    elsewhere e = {0};
    w_run_init(&run, w);
    run.sys = au_image_sys(launcher);
    run.options.max_passes = 3;
    ck_assert_ptr_null(au_engine_create(&run.options, run.sys, &run.sink, &run.engine));
    ck_assert_ptr_null(run.sys->ops->open(run.sys, 4321, AU_WANT_READ, &run.proc));
    ck_assert_ptr_null(au_image_sys(image)->ops->open(au_image_sys(image), 4321, AU_WANT_READ, &e.next));
    au_engine_set_elsewhere(run.engine, offer, &e);
    ck_assert_ptr_null(au_engine_find(run.engine, run.proc, &run.python));
    ck_assert_uint_eq(e.calls, 2);
    ck_assert_ptr_eq(e.asked_of, run.proc);
    ck_assert_uint_eq(run.python->minor, w->minor);
    w_run_go(&run, 3);
    ck_assert_uint_eq(run.count, 3);
    world_expect(w, t, &want);
    ck_assert_str_eq(run.samples[2].stack, (const char *)want.data);
    run.proc->ops->close(run.proc); /* the other one is the engine's now, until it is destroyed */
    run.proc = e.next;
    w_run_deinit(&run);
    au_buf_deinit(&want);
    ck_assert_uint_eq(au_image_open_handles(image) + au_image_open_handles(launcher), 0);
    au_image_destroy(launcher);
    world_destroy(w, 0);
}
END_TEST

/* The time to look for it is the same, whether there is somebody to ask or not. */
START_TEST(nothing_elsewhere)
{
    au_image *launcher = au_image_create(4321);
    au_sys *sys = au_image_sys(launcher);
    elsewhere e = {0};
    world *w = world_create(world_builds[_i]);
    w_run_init(&run, w);
    run.sys = sys;
    uint64_t start = sys->ops->now(sys);
    ck_assert_ptr_null(au_engine_create(&run.options, run.sys, &run.sink, &run.engine));
    ck_assert_ptr_null(run.sys->ops->open(run.sys, 4321, AU_WANT_READ, &run.proc));
    au_engine_set_elsewhere(run.engine, offer, &e);
    au_error *error = au_engine_find(run.engine, run.proc, &run.python);
    ck_assert_int_eq((int)error->code, AU_ERR_PYTHON);
    au_error_clear(error);
    ck_assert_uint_ge(e.calls, 5);
    ck_assert_uint_le(sys->ops->now(sys) - start, 150 * UINT64_C(1000000)); /* timeout_ms is 100 */
    w_run_deinit(&run);
    au_image_destroy(launcher);
    world_destroy(w, 0);
}
END_TEST

START_TEST(not_python)
{
    world *w = world_create(world_builds[_i]);
    world_basic(w);
    au_image *image = w->image;
    w->image = au_image_create(4321);
    expect_refusal(w, AU_ERR_PYTHON, "not a Python", NULL);
    au_image_destroy(w->image);
    w->image = image;
    world_destroy(w, 0);
}
END_TEST

/* The same without the symbol: what is left is the cookie, and before 3.13 nothing. */
START_TEST(no_symbol)
{
    const char *path = "/usr/bin/python3";
    for (int i = 0; i < MEMORY_FORMS; i++) {
        world *w = world_create_in(au_image_create(4321), world_builds[_i], 0, -1, path);
        world_module(w, 1, path, dynamic_forms[i].form, dynamic_forms[i].options | W_MODULE_OTHER_NAME);
        world_basic(w);
        if (w->minor < 13) {
            expect_refusal(w, AU_ERR_PYTHON, "not a Python", NULL);
        } else {
            w_run_init(&run, w);
            ck_assert_ptr_null(w_run_find(&run));
            ck_assert_str_eq(run.python->image, "(memory)");
            w_run_deinit(&run);
        }
        world_destroy(w, 0);
    }
}
END_TEST

START_TEST(not_initialised)
{
    world *w = world_create(world_builds[_i]);
    expect_refusal(w, AU_ERR_PYTHON, "not initialised", NULL);
    world_interp(w, 0); /* no thread yet */
    expect_refusal(w, AU_ERR_PYTHON, "not initialised", NULL);
    world_destroy(w, 0);
}
END_TEST

START_TEST(unknown_minor)
{
    static const uint32_t versions[] = {0x031000f0, 0x031100a1, 0x030900f0, 0x030800f0};
    for (size_t i = 0; i < 4; i++) {
        char text[16];
        world *w = world_create(world_builds[_i]);
        world_basic(w);
        if (w->minor == 10 || (w->minor < 13 && versions[i] < 0x030a0000)) {
            world_destroy(w, 0); /* 3.10 and older tell no version by a symbol */
            continue;
        }
        snprintf(text, sizeof text, "3.%u", versions[i] >> 16 & 0xff);
        world_word(w, w->bias + 0x2000, versions[i]);
        if (w->minor >= 13) {
            world_word(w, w->runtime + 8, versions[i]);
        }
        expect_refusal(w, AU_ERR_PYTHON, text, "3.15");
        world_destroy(w, 0);
    }
}
END_TEST

/* 3.10 and older tell their version by the file's name only, however the system writes names. */
START_TEST(named)
{
    static const struct {
        const char *path, *refused;
    } names[] = {
        {"/usr/lib/libpython3.9.so.1.0", "3.9"}, {"/opt/python3.10/bin/PyPython3.8", "3.8"},
        {"C:\\Python\\Python39.dll", "3.9"},     {"C:\\Python310\\PYTHON38.DLL", "3.8"},
        {"C:\\Python39\\app.exe", NULL},         {"C:/python39\\python310.dll", NULL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        world *w = world_create_in(au_image_create(4321), world_builds[_i], 0, 1, names[i].path);
        world_basic(w);
        if (w->minor == 10 && names[i].refused) {
            expect_refusal(w, AU_ERR_PYTHON, names[i].refused, "3.15");
        } else {
            w_run_init(&run, w);
            ck_assert_ptr_null(w_run_find(&run));
            ck_assert_uint_eq(run.python->minor, w->minor);
            ck_assert_str_eq(run.python->image, names[i].path);
            w_run_deinit(&run);
        }
        world_destroy(w, 0);
    }
}
END_TEST

static void refuse_32(world *w, const char *main_path, const char *library, int at_once)
{
    w->image = au_image_create(4321);
    au_sys *sys = au_image_sys(w->image);
    uint8_t elf[64] = {0x7f, 'E', 'L', 'F', 1, 1, 1};
    au_module module = {.base = 0x8048000, .end = 0x8050000, .path = main_path, .is_main = 1, .bits = AU_BITS_32};
    ck_assert_int_eq(au_image_add_module(w->image, &module, elf, sizeof elf), 0);
    if (library) {
        module = (au_module){.base = 0x9048000, .end = 0x9050000, .path = library, .bits = AU_BITS_32};
        ck_assert_int_eq(au_image_add_module(w->image, &module, elf, sizeof elf), 0);
    }
    au_image_set_pointer_bytes(w->image, 4);
    uint64_t start = sys->ops->now(sys);
    expect_refusal(w, AU_ERR_PYTHON, "32-bit", "64-bit");
    uint64_t took_ms = (sys->ops->now(sys) - start) / 1000000; /* timeout_ms is 100 */
    ck_assert_msg(at_once ? took_ms < 10 : took_ms >= 100, "%s: %llu ms", main_path, (unsigned long long)took_ms);
    au_image_destroy(w->image);
}

/* A 32-bit program that is no Python itself may start one of 64 bits, or become it. */
START_TEST(word_size)
{
    world *w = world_create(world_builds[_i]);
    au_image *image = w->image;
    refuse_32(w, "/usr/bin/python3.11", NULL, 1);
    refuse_32(w, "C:\\app\\app.exe", "C:\\app\\python311.dll", 1);
    refuse_32(w, "C:\\Windows\\py.exe", "C:\\Windows\\SysWOW64\\kernel32.dll", 0);
    w->image = image;
    world_destroy(w, 0);
}
END_TEST

/* A layout that the live structures contradict is not believed, whatever the version says. */
START_TEST(not_trusted)
{
    world *w = world_create(world_builds[_i]);
    w_thread *t = world_basic(w);
    world_word(w, t->addr + w->l.tstate_interp, t->interp + 64);
    expect_refusal(w, AU_ERR_PYTHON, "cannot be trusted", NULL);
    world_word(w, t->addr + w->l.tstate_interp, t->interp);
    world_word(w, t->interp + w->l.interp_id, 3); /* nobody with id 0 */
    expect_refusal(w, AU_ERR_PYTHON, "cannot be trusted", NULL);
    world_word(w, t->interp + w->l.interp_next, t->interp); /* round and round */
    expect_refusal(w, AU_ERR_PYTHON, "cannot be trusted", NULL);
    world_word(w, t->interp + w->l.interp_next, 0x1001);
    expect_refusal(w, AU_ERR_PYTHON, "cannot be trusted", NULL);
    if (w->minor >= 13) {
        world_word(w, t->interp + w->l.interp_id, 0);
        world_word(w, w->runtime + 24, UINT64_MAX);
        expect_refusal(w, AU_ERR_PYTHON, "cannot be trusted", NULL);
    }
    world_destroy(w, 0);
}
END_TEST

/* 3.10 to 3.12: sys.hexversion must say what the table is for. */
START_TEST(hexversion)
{
    world *w = world_create(world_builds[_i]);
    world_basic(w);
    if (w->minor < 13) {
        uint32_t other = w->minor == 12 ? 0x030b00f0 : 0x030c00f0;
        au_addr keys[1] = {world_str(w, "hexversion")};
        au_addr values[1] = {world_int_object(w, other)};
        world_word(w, w->interps->addr + w->l.interp_sysdict, world_dict(w, 0, keys, values, 1));
        expect_refusal(w, AU_ERR_PYTHON, "cannot be trusted", NULL);
    }
    world_destroy(w, 0);
}
END_TEST

/* Alpha, beta and candidate of a known minor are taken and named. */
START_TEST(levels)
{
    for (unsigned level = 0xa; level <= 0xf; level++) {
        world *w = world_create(world_builds[_i]);
        world_basic(w);
        uint32_t version = (layout_version(w->build) & ~0xffu) | level << 4 | 3;
        if (w->minor >= 13) {
            world_word(w, w->runtime + 8, version);
            w_run_init(&run, w);
            ck_assert_ptr_null(w_run_find(&run));
            ck_assert_int_eq(run.python->release_level, (int)level);
            ck_assert_int_eq(run.python->serial, 3);
            w_run_deinit(&run);
        }
        world_destroy(w, 0);
    }
}
END_TEST

/* Two initialised runtimes: the executable's own is sampled, the other one named; order does not matter. */
START_TEST(two_runtimes)
{
    for (int main_first = 0; main_first < 2; main_first++) {
        au_image *image = au_image_create(4321);
        world *own = world_create_in(image, world_builds[_i], main_first ? 0 : 1, 1, "/opt/host");
        world *other = world_create_in(image, world_builds[(_i + 3) % WORLD_BUILDS], main_first ? 1 : 0, 0,
                                       "/usr/lib/libpython3.so");
        w_thread *t = world_basic(own);
        world_basic(other);
        w_run_init(&run, own);
        ck_assert_ptr_null(w_run_find(&run));
        ck_assert_uint_eq(run.python->minor, own->minor);
        ck_assert_str_eq(run.python->image, "/opt/host");
        ck_assert_ptr_nonnull(run.python->other_runtime);
        ck_assert_str_eq(run.python->other_runtime, "/usr/lib/libpython3.so");
        run.options.max_passes = 2;
        au_buf want = {0};
        w_run_deinit(&run);
        w_run_init(&run, own);
        w_run_go(&run, 2);
        world_expect(own, t, &want);
        ck_assert_str_eq(run.samples[1].stack, (const char *)want.data);
        au_buf_deinit(&want);
        w_run_deinit(&run);
        world_destroy(other, 1);
        world_destroy(own, 0);
    }
}
END_TEST

/* The executable's own runtime is not initialised (yet): the library's is taken, and nobody else is named. */
START_TEST(unused_twin)
{
    au_image *image = au_image_create(4321);
    world *own = world_create_in(image, world_builds[_i], 0, 1, "/usr/bin/python3.10");
    world *other = world_create_in(image, world_builds[_i], 1, 0, "/usr/lib/libpython3.10.so");
    world_basic(other);
    w_run_init(&run, other);
    ck_assert_ptr_null(w_run_find(&run));
    ck_assert_str_eq(run.python->image, "/usr/lib/libpython3.10.so");
    ck_assert_ptr_null(run.python->other_runtime);
    w_run_deinit(&run);
    world_destroy(other, 1);
    world_destroy(own, 0);
}
END_TEST

/* It becomes a Python while we look; and the search ends when its time is over, by the port's clock. */
typedef struct late {
    world *w;
    int sleeps, at;
} late;

static void on_sleep(void *baton, au_image *image, uint64_t deadline_ns)
{
    late *l = baton;
    (void)image;
    (void)deadline_ns;
    if (++l->sleeps == l->at) {
        world_basic(l->w);
    }
}

START_TEST(later)
{
    late l = {world_create(world_builds[_i]), 0, 4};
    w_run_init(&run, l.w);
    au_image_set_sleep_hook(l.w->image, on_sleep, &l);
    w_run_go(&run, 2);
    ck_assert_uint_eq(run.count, 2);
    ck_assert_int_ge(l.sleeps, 4);
    w_run_deinit(&run);
    world_destroy(l.w, 0);
    late never = {world_create(world_builds[_i]), 0, -1};
    au_image_set_sleep_hook(never.w->image, on_sleep, &never);
    expect_refusal(never.w, AU_ERR_PYTHON, "not initialised", NULL);
    ck_assert_int_ge(never.sleeps, 3);
    ck_assert_int_le(never.sleeps, 200);
    world_destroy(never.w, 0);
}
END_TEST

Suite *au_find_suite(void)
{
    Suite *suite = suite_create("find");
    TCase *tcase = tcase_create("find");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, by_section, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, by_cookie, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, by_dynamic_symbols, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, no_symbol, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, interpreter_elsewhere, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, nothing_elsewhere, 0, 1);
    tcase_add_loop_test(tcase, not_python, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, not_initialised, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, unknown_minor, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, named, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, word_size, 0, 1);
    tcase_add_loop_test(tcase, not_trusted, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, hexversion, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, levels, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, two_runtimes, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, unused_twin, 0, WORLD_BUILDS);
    tcase_add_loop_test(tcase, later, 0, WORLD_BUILDS);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, au_exec_case());
    return suite;
}
