/* SPDX-License-Identifier: Apache-2.0 */
/* What the Windows port promises beyond the contract. */
#include "platform/win32/tracee.h" /* brings windows.h, which the next ones need */

#include <stdlib.h>
#include <string.h>

#include "tests/contract/cases.h"
#include "tests/contract/host.h"
#include "tests/contract/win32/win32.h"

static au_proc *attach(au_pid pid)
{
    au_proc *p = NULL;
    au_error *error = au_platform_sys()->ops->open(au_platform_sys(), pid, AU_WANT_READ, &p);
    ck_assert_msg(error == NULL, "%s: %s", error ? error->message : "", error && error->cause ? error->cause : "");
    return p;
}

static int find_trap(void *baton, const au_region *region)
{
    au_region *look = baton;
    if (region->start <= look->start && region->end > look->start) {
        look->end = region->end;
        look->perms = region->perms;
    }
    return 0;
}

/** The first touch of a page with PAGE_GUARD is the program's own (stacks grow by it): ours is none. */
START_TEST(guard_pages)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    au_proc *p = attach(w.pid);
    au_addr trap = tracee_trap(&w);
    uint8_t byte, many[3 * 64];
    const au_outcome expected = w.serves_all ? AU_OK : AU_FAULT;
    au_piece pieces[] = {{w.data, many, 64, 99}, {trap, many + 64, 64, 99}, {w.data + 64, many + 128, 64, 99}};
    ck_assert_int_eq(tracee_told(&w, TRACEE_IS_TRAP_SET), 1);
    ck_assert_int_eq(p->ops->read(p, trap, &byte, 1), expected);
    ck_assert_uint_eq(p->ops->read_many(p, pieces, 3), w.serves_all ? 3 : 2);
    ck_assert_uint_eq(pieces[1].outcome, expected);
    ck_assert_int_eq(tracee_told(&w, TRACEE_IS_TRAP_SET), 1);
    ck_assert_int_eq(p->ops->read(p, trap, &byte, 1), expected); /* nor has the first one let the second through */
    au_region look = {.start = trap, .perms = 99};
    ck_assert_ptr_null(p->ops->regions(p, find_trap, &look));
    ck_assert_uint_eq(look.end, trap + WORLD_PAGE);
    ck_assert_uint_eq(look.perms, 0);
    p->ops->close(p);
    w.destroy(&w);
}
END_TEST

typedef struct dll_look {
    const char *name;
    int found;
    au_module module;
    char path[512];
} dll_look;

/** The last part of a path, whatever its case. */
static int find_dll(void *baton, const au_module *module)
{
    dll_look *look = baton;
    const char *name = module->path ? strrchr(module->path, '\\') : NULL;
    if (name && _stricmp(name + 1, look->name) == 0) {
        look->found++;
        look->module = *module;
        snprintf(look->path, sizeof look->path, "%s", module->path);
    }
    return 0;
}

/** A library that is loaded later is in the next list, at the place and by the name that the system tells. */
START_TEST(library_comes)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    au_proc *p = attach(w.pid);
    dll_look look = {.name = "version.dll"};
    ck_assert_ptr_null(p->ops->modules(p, find_dll, &look));
    ck_assert_int_eq(look.found, 0);
    ck_assert_int_eq(tracee_told(&w, TRACEE_LOAD), 1);
    ck_assert_ptr_null(p->ops->modules(p, find_dll, &look));
    ck_assert_int_eq(look.found, 1);
    ck_assert_int_eq(look.module.is_main, 0);
    ck_assert_int_eq(look.module.deleted, 0);
    ck_assert_msg(look.path[1] == ':' && look.path[2] == '\\', "'%s' is no path as users write it", look.path);
    uint8_t head[2];
    size_t got;
    au_module_source source;
    ck_assert_ptr_null(p->ops->module_read(p, look.module.id, 0, head, sizeof head, &got, &source));
    ck_assert_uint_eq(got, 2);
    ck_assert_int_eq(memcmp(head, "MZ", 2), 0);
    /* What a list has named is gone with the next list. */
    uint64_t old = look.module.id;
    ck_assert_ptr_null(p->ops->modules(p, find_dll, &look));
    ck_assert(failed(p->ops->module_read(p, old, 0, head, sizeof head, &got, &source)));
    p->ops->close(p);
    w.destroy(&w);
}
END_TEST

static int find_unpacked(void *baton, const au_module *module)
{
    dll_look *look = baton;
    if (module->base == TRACEE_UNPACKED_AT) {
        look->found++;
        look->module = *module;
        snprintf(look->path, sizeof look->path, "%s", module->path ? module->path : "none at all");
    }
    return 0;
}

/** An image that no loader knows of is one as well, with no file and so with no path. */
START_TEST(image_without_loader)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    au_proc *p = attach(w.pid);
    dll_look look = {.name = ""}, loaded = {.name = "ntdll.dll"};
    ck_assert_ptr_null(p->ops->modules(p, find_unpacked, &look));
    ck_assert_int_eq(look.found, 0);
    ck_assert_int_eq(tracee_told(&w, TRACEE_UNPACK), 1);
    ck_assert_ptr_null(p->ops->modules(p, find_dll, &loaded));
    ck_assert_ptr_null(p->ops->modules(p, find_unpacked, &look));
    ck_assert_int_eq(loaded.found, 1);
    ck_assert_int_eq(look.found, 1);
    ck_assert_str_eq(look.path, "");
    ck_assert_int_eq(look.module.is_main, 0);
    ck_assert_int_eq(look.module.deleted, 0);
    ck_assert_uint_eq(look.module.bias, TRACEE_UNPACKED_AT);
    ck_assert_uint_eq(look.module.end - look.module.base, loaded.module.end - loaded.module.base);
    uint8_t head[2];
    size_t got;
    au_module_source source;
    ck_assert_ptr_null(p->ops->module_read(p, look.module.id, 0, head, sizeof head, &got, &source));
    ck_assert_uint_eq(got, 2);
    ck_assert_int_eq(memcmp(head, "MZ", 2), 0);
    p->ops->close(p);
    w.destroy(&w);
}
END_TEST

/** Numbers count in fours, and the system does not look at the two lowest bits; whoever gives another number is told.
 */
START_TEST(numbers_that_are_nearly_right)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    for (int i = 1; i < 4; i++) {
        au_proc *p = NULL;
        ck_assert(failed(au_platform_sys()->ops->open(au_platform_sys(), w.pid + i, AU_WANT_READ, &p)));
        ck_assert_ptr_null(p);
    }
    /* That of a thread leads to its process. */
    au_proc *p = NULL;
    char owner[32];
    snprintf(owner, sizeof owner, "process %lld", (long long)w.pid);
    au_error *error = au_platform_sys()->ops->open(au_platform_sys(), w.sleeper, AU_WANT_READ, &p);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_nonnull(error->cause);
    ck_assert_msg(strstr(error->cause, owner) != NULL, "'%s'", error->cause);
    au_error_clear(error);
    w.destroy(&w);
}
END_TEST

/** Whoever holds a process has its times and its end for good; what it was is not read any more. */
START_TEST(ended_while_held)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    au_proc *p = attach(w.pid);
    au_proc_status before, after;
    ck_assert_int_eq(p->ops->status(p, &before), AU_OK);
    w.end(&w);
    ck_assert_int_eq(p->ops->status(p, &after), AU_OK);
    ck_assert_int_eq(after.state, AU_EXITED);
    ck_assert_uint_eq(after.start_time_ns, before.start_time_ns);
    au_usage usage;
    ck_assert_int_eq(p->ops->usage(p, &usage), AU_GONE);
    au_thread_state state = {.tid = w.sleeper, .wanted = AU_STATE_RUN};
    ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 0);
    ck_assert_uint_eq(state.outcome, AU_GONE);
    au_proc *again = NULL; /* its number is still its own, and it has ended */
    ck_assert(failed(au_platform_sys()->ops->open(au_platform_sys(), w.pid, AU_WANT_READ, &again)));
    ck_assert_ptr_null(again);
    au_explanation why;
    au_platform_sys()->ops->explain(au_platform_sys(), w.pid, &why);
    ck_assert_int_eq(why.right, AU_RIGHT_UNKNOWN);
    p->ops->close(p);
    w.destroy(&w);
}
END_TEST

/** A thread of somebody else is none of this process. */
START_TEST(threads_of_others)
{
    world w;
    ck_assert_int_eq(world_live(&w), 0);
    au_proc *p = attach(w.pid);
    au_tid tid = -7;
    char name[16];
    au_tid mine = GetCurrentThreadId();
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_PTHREAD, (uint64_t)mine, &tid), AU_NOT_KNOWN);
    ck_assert_int_eq(tid, -7);
    ck_assert_int_eq(p->ops->thread_name(p, mine, name, sizeof name), AU_GONE);
    au_thread_state state = {.tid = mine, .wanted = AU_STATE_RUN};
    ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 0);
    ck_assert_uint_eq(state.outcome, AU_GONE);
    /* A thread without a name has an empty one. */
    memset(name, '#', sizeof name);
    ck_assert_int_eq(p->ops->thread_name(p, w.spinner, name, sizeof name), AU_OK);
    ck_assert_str_eq(name, "");
    p->ops->close(p);
    w.destroy(&w);
}
END_TEST

static volatile LONG stop_them;

static DWORD WINAPI rest(void *unused)
{
    (void)unused;
    while (!stop_them) {
        Sleep(10);
    }
    return 0;
}

/** Many threads in one look: what is remembered of each is its own, and what has ended is forgotten. */
START_TEST(many_threads)
{
    enum { MANY = 150 };
    static au_thread_state states[MANY];
    HANDLE threads[MANY];
    au_proc *p = attach(host_pid());
    memset(states, 0, sizeof states);
    stop_them = 0;
    for (int i = 0; i < MANY; i++) {
        DWORD tid;
        threads[i] = CreateThread(NULL, 65536, rest, NULL, STACK_SIZE_PARAM_IS_A_RESERVATION, &tid);
        ck_assert_ptr_nonnull(threads[i]);
        states[i] = (au_thread_state){.tid = tid, .wanted = AU_STATE_RUN};
    }
    int awake = MANY;
    for (int looks = 0; looks < 200 && awake; looks++) {
        ck_assert_uint_eq(p->ops->thread_states(p, states, MANY), MANY);
        awake = 0;
        for (int i = 0; i < MANY; i++) {
            awake += states[i].run != AU_RUN_ASLEEP;
        }
        Sleep(10);
    }
    ck_assert_int_eq(awake, 0);
    stop_them = 1;
    for (int i = 0; i < MANY; i++) {
        WaitForSingleObject(threads[i], INFINITE);
        CloseHandle(threads[i]);
    }
    int left = MANY;
    for (int looks = 0; looks < 100 && left; looks++) { /* who waits is told before it is off the list */
        left = (int)p->ops->thread_states(p, states, MANY);
        Sleep(10);
    }
    ck_assert_int_eq(left, 0);
    for (int i = 0; i < MANY; i++) {
        ck_assert_uint_eq(states[i].outcome, AU_GONE);
    }
    p->ops->close(p);
}
END_TEST

/** The times of sleeps: not one is early, and on the whole they are not late by more than a clock tick. */
START_TEST(sleeps)
{
    au_sys *sys = au_platform_sys();
    uint64_t late = 0;
    enum { SLEEPS = 200, APART_NS = 1000000 };
    for (int i = 0; i < SLEEPS; i++) {
        uint64_t deadline = sys->ops->now(sys) + APART_NS, back = sys->ops->sleep_until(sys, deadline);
        ck_assert_uint_ge(back, deadline);
        late += back - deadline;
    }
    ck_assert_uint_lt(late / SLEEPS, 15625000);
}
END_TEST

TCase *tcase_win32(void)
{
    TCase *tcase = tcase_create("win32");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, guard_pages);
    tcase_add_test(tcase, library_comes);
    tcase_add_test(tcase, image_without_loader);
    tcase_add_test(tcase, numbers_that_are_nearly_right);
    tcase_add_test(tcase, ended_while_held);
    tcase_add_test(tcase, threads_of_others);
    tcase_add_test(tcase, many_threads);
    tcase_add_test(tcase, sleeps);
    return tcase;
}
