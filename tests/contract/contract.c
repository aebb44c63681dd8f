/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite against every system that we have, and the proof that it notices each broken member. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/faults.h"
#include "platform/fake/image.h"
#include "platform/fake/recorder.h"
#include "platform/fake/replayer.h"
#include "platform/none/none.h"
#include "platform/platform.h"
#include "tests/contract/cases.h"
#include "tests/contract/cases_list.h"
#include "tests/contract/mutants.h"
#include "tests/contract/suites.h"

au_proc *contract_open;
char contract_text[512];

const contract_case contract_cases[] = {
#define AU_X(member, name, caps) {member, #name, caps, case_##name},
    CONTRACT_CASES(AU_X)
#undef AU_X
};
const size_t contract_n_cases = sizeof contract_cases / sizeof contract_cases[0];

static const char *const cap_names[] = {"threads",   "thread_states", "switches",     "thread_id_of", "thread_name",
                                        "usage",     "processes",     "suspend",      "self_release", "registers",
                                        "unwind",    "symbolise",     "kernel_stack", "module_file",  "thread_cpu",
                                        "launchers", "states_told"};

static void name_caps(const char *system, uint64_t caps)
{
    printf("contract: %s has not:", system);
    for (size_t i = 0; i < sizeof cap_names / sizeof cap_names[0]; i++) {
        if (!(caps >> i & 1)) {
            printf(" %s", cap_names[i]);
        }
    }
    printf("\n");
    fflush(stdout);
}

/** Runs one case; NULL if it holds. */
static const char *run_case(const contract_case *c, world *w)
{
    if ((w->sys->ops->caps & c->caps) != c->caps) {
        return NULL; /* named by name_caps */
    }
    const char *text = c->run(w);
    shut();
    return text;
}

/** The verdict on a case; a case that cannot run here is said to be missing, which is neither good nor bad. */
static int judge(const char *system, const contract_case *c, const char *text)
{
    if (text && strncmp(text, "SKIP: ", 6) == 0) {
        printf("contract: %s: %s NOT RUN: %s\n", system, c->name, text + 6);
        fflush(stdout);
        return 0;
    }
    if (text) {
        fprintf(stderr, "contract: %s: %s: %s\n", system, c->name, text);
    }
    return text != NULL;
}

typedef int (*make_world)(world *w);

static void run_all(const char *system, make_world make, au_sys *(*wrap)(world *w), void (*unwrap)(void))
{
    int bad = 0, named = 0;
    for (size_t i = 0; i < contract_n_cases; i++) {
        world w;
        ck_assert_int_eq(make(&w), 0);
        if (wrap) {
            w.sys = wrap(&w);
        }
        if (!named++) {
            name_caps(system, w.sys->ops->caps);
        }
        bad += judge(system, &contract_cases[i], run_case(&contract_cases[i], &w));
        if (unwrap) {
            unwrap();
        }
        w.destroy(&w);
    }
    ck_assert_msg(bad == 0, "%s breaks %d cases of the contract", system, bad);
}

START_TEST(live)
{
    run_all(au_platform_sys()->ops->name, world_live, NULL, NULL);
}
END_TEST

START_TEST(image)
{
    run_all("image", world_image, NULL, NULL);
}
END_TEST

static au_faults *faults;

static au_sys *wrap_faults(world *w)
{
    faults = au_faults_create(w->sys, 1);
    return au_faults_sys(faults);
}

static void unwrap_faults(void)
{
    ck_assert_uint_eq(au_faults_fired(faults), 0);
    au_faults_destroy(faults);
}

START_TEST(no_faults)
{
    run_all("faults over the port", world_live, wrap_faults, unwrap_faults);
}
END_TEST

/** Records each case over a live process and plays it back in order: the same answers, nothing left over. */
START_TEST(recorded_and_replayed)
{
    int bad = 0;
    for (size_t i = 0; i < contract_n_cases; i++) {
        const contract_case *c = &contract_cases[i];
        world w, again;
        ck_assert_int_eq(world_live(&w), 0);
        au_recorder *recorder = au_recorder_create(w.sys, "made by=contract suite\n");
        w.sys = au_recorder_sys(recorder);
        const char *text = run_case(c, &w);
        int skipped = text && strncmp(text, "SKIP: ", 6) == 0;
        bad += judge("recorder over the port", c, text);
        ck_assert_int_eq(au_recorder_failed(recorder), 0);

        au_replayer *replayer = NULL;
        ck_assert_ptr_null(au_replayer_create(au_recorder_log(recorder), AU_REPLAY_ORDERED, &replayer));
        world_replayed(&again, &w, au_replayer_sys(replayer));
        if (!skipped) {
            bad += judge("replayer", c, run_case(c, &again));
            ck_assert_msg(au_replayer_misses(replayer) == 0, "replay of %s asks %d other questions", c->name,
                          (int)au_replayer_misses(replayer));
            ck_assert_msg(au_replayer_at_end(replayer), "replay of %s does not come to the end", c->name);
        }
        au_replayer_destroy(replayer);
        au_recorder_destroy(recorder);
        w.destroy(&w);
    }
    ck_assert_msg(bad == 0, "recorder or replayer break %d cases of the contract", bad);
}
END_TEST

static void holds(const char *text)
{
    ck_assert_msg(!text, "%s", text);
}

/** A port without any ability: complete, and each member says so. */
START_TEST(none)
{
    au_sys *sys = au_none_sys();
    world w = {.sys = sys, .pid = 1, .is_real = 1};
    name_caps("none", sys->ops->caps);
    ck_assert_uint_eq(sys->ops->caps, 0);
    holds(case_table(&w));
    holds(case_open_missing(&w));
    holds(case_now(&w));
    holds(case_sleep(&w));
    holds(case_wake_before(&w));
    holds(case_wake_during(&w));
    au_proc *p = NULL;
    au_error *error = sys->ops->open(sys, 1, AU_WANT_READ, &p);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_null(p);
    au_error_clear(error);
    sys->ops->close(NULL);

    const au_proc_ops *ops = sys->ops;
    au_proc made = {ops, 1};
    uint8_t byte;
    au_piece pieces[2] = {{1, &byte, 1, 99}, {2, &byte, 1, 99}};
    au_thread_state state = {.tid = 1, .wanted = AU_STATE_RUN, .outcome = 99};
    au_proc_status status;
    au_usage usage;
    au_tid tid;
    char name[8];
    size_t n;
    au_module_source source;
    ck_assert_int_eq(ops->status(&made, &status), AU_UNSUPPORTED);
    ck_assert_int_eq(ops->read(&made, 1, &byte, 1), AU_UNSUPPORTED);
    ck_assert_uint_eq(ops->read_many(&made, pieces, 2), 0);
    ck_assert_uint_eq(pieces[0].outcome, AU_UNSUPPORTED);
    ck_assert_uint_eq(pieces[1].outcome, AU_UNSUPPORTED);
    ck_assert(failed(ops->regions(&made, NULL, NULL)));
    ck_assert(failed(ops->modules(&made, NULL, NULL)));
    ck_assert(failed(ops->module_read(&made, 1, 0, &byte, 1, &n, &source)));
    ck_assert(failed(ops->threads(&made, NULL, 0, &n)));
    ck_assert_uint_eq(ops->thread_states(&made, &state, 1), 0);
    ck_assert_uint_eq(state.outcome, AU_UNSUPPORTED);
    ck_assert_int_eq(ops->thread_id_of(&made, AU_ID_PTHREAD, 1, &tid), AU_UNSUPPORTED);
    ck_assert_int_eq(ops->thread_name(&made, 1, name, sizeof name), AU_UNSUPPORTED);
    ck_assert_int_eq(ops->usage(&made, &usage), AU_UNSUPPORTED);
    ck_assert(failed(ops->processes(sys, NULL, NULL)));
    au_explanation why;
    ops->explain(sys, 1, &why);
    ck_assert_int_eq(why.right, AU_RIGHT_UNKNOWN);
}
END_TEST

/** Each broken table must be noticed by the cases of the member that it breaks. */
START_TEST(mutants)
{
    const uint64_t caps = au_platform_sys()->ops->caps;
    int unnoticed = 0;
    for (size_t m = 0; m < contract_n_mutants; m++) {
        const mutant *broken = &contract_mutants[m];
        const char *could_not = NULL;
        int noticed = 0, cases = 0;
        if ((caps & broken->caps) != broken->caps) {
            printf("contract: mutant %s NOT RUN: it breaks what this port has not\n", broken->name);
            continue;
        }
        for (size_t i = 0; i < contract_n_cases && !noticed; i++) {
            const contract_case *c = &contract_cases[i];
            if (strcmp(c->member, broken->member) != 0 || (caps & c->caps) != c->caps) {
                continue;
            }
            world w;
            ck_assert_int_eq(world_live(&w), 0);
            w.sys = mutant_sys(broken);
            const char *text = c->run(&w);
            int skipped = text && strncmp(text, "SKIP: ", 6) == 0;
            noticed = text && !skipped;
            could_not = skipped ? text + 6 : could_not;
            cases++;
            /* What a mutant's close leaks is not this test's concern, but its descriptors must not run out. */
            if (contract_open) {
                contract_open->ops = au_platform_sys()->ops;
            }
            shut();
            w.destroy(&w);
        }
        if (!noticed && could_not) {
            printf("contract: mutant %s NOT RUN: %s\n", broken->name, could_not);
        } else if (!noticed) {
            fprintf(stderr, "contract: mutant %s passes %d cases of %s\n", broken->name, cases, broken->member);
            unnoticed++;
        }
    }
    ck_assert_msg(unnoticed == 0, "%d broken tables of %d are not noticed", unnoticed, (int)contract_n_mutants);
}
END_TEST

/** Every member has a mutant, so that a member added later cannot be forgotten. */
START_TEST(mutants_for_all)
{
    for (size_t i = 0; i < contract_n_cases; i++) {
        int found = strcmp(contract_cases[i].member, "resume") == 0; /* its mutant is one of the table */
        for (size_t m = 0; m < contract_n_mutants; m++) {
            found |= strcmp(contract_mutants[m].member, contract_cases[i].member) == 0;
        }
        ck_assert_msg(found, "no mutant breaks %s", contract_cases[i].member);
    }
}
END_TEST

TCase *tcase_contract(void)
{
    TCase *tcase = tcase_create("contract");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, live);
    tcase_add_test(tcase, image);
    tcase_add_test(tcase, no_faults);
    tcase_add_test(tcase, recorded_and_replayed);
    tcase_add_test(tcase, none);
    tcase_add_test(tcase, mutants);
    tcase_add_test(tcase, mutants_for_all);
    return tcase;
}
