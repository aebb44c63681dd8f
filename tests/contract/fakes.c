/* SPDX-License-Identifier: Apache-2.0 */
/* What the fakes promise beyond the contract. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/fake/faults.h"
#include "platform/fake/image.h"
#include "platform/fake/recorder.h"
#include "platform/fake/replayer.h"
#include "tests/contract/host.h"
#include "tests/contract/suites.h"

enum { PID = 77, BASE = 0x10000, SIZE = 0x3000 };

static au_image *made(void)
{
    au_image *image = au_image_create(PID);
    ck_assert_ptr_nonnull(image);
    ck_assert_int_eq(au_image_map(image, BASE, SIZE, AU_PERM_READ | AU_PERM_WRITE, "/some/file"), 0);
    for (unsigned i = 0; i < SIZE; i++) {
        ck_assert_int_eq(au_image_byte(image, BASE + i, (uint8_t)(i * 3 + i / 256)), 0);
    }
    ck_assert_int_eq(au_image_add_thread(image, PID, "main"), 0);
    ck_assert_int_eq(au_image_add_thread(image, PID + 1, "second"), 0);
    return image;
}

static au_proc *open_in(au_sys *sys)
{
    au_proc *p = NULL;
    au_error *error = sys->ops->open(sys, PID, AU_WANT_READ, &p);
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
    return p;
}

static uint64_t word_of(au_proc *p, au_addr addr)
{
    uint64_t value = 0;
    ck_assert_int_eq(p->ops->read(p, addr, &value, 8), AU_OK);
    return value;
}

/* ---- image ------------------------------------------------------------------------------------------------------ */

START_TEST(image_ranges)
{
    au_image *image = made();
    ck_assert_int_eq(au_image_map(image, BASE + SIZE - 1, 16, AU_PERM_READ, NULL), -1); /* overlaps */
    ck_assert_int_eq(au_image_map(image, BASE + SIZE, 0x1000, AU_PERM_READ, NULL), 0);  /* touches */
    ck_assert_int_eq(au_image_word(image, BASE + SIZE, 0x1122334455667788), 0);
    ck_assert_int_eq(au_image_word(image, BASE + SIZE - 4, 1), -1); /* writes stay within one range */
    au_proc *p = open_in(au_image_sys(image));
    uint8_t buf[16];
    ck_assert_int_eq(p->ops->read(p, BASE + SIZE - 8, buf, 16), AU_OK); /* reads do not */
    ck_assert_uint_eq(buf[8], 0x88);
    ck_assert_int_eq(au_image_unmap(image, BASE + SIZE), 0);
    ck_assert_int_eq(p->ops->read(p, BASE + SIZE - 8, buf, 16), AU_FAULT);
    au_image_half(image, BASE, 0x0102);
    au_image_int(image, BASE + 2, 0x03040506);
    ck_assert_uint_eq(word_of(p, BASE) & 0xffffffffffff, 0x030405060102);
    ck_assert_uint_eq(au_image_open_handles(image), 1);
    p->ops->close(p);
    ck_assert_uint_eq(au_image_open_handles(image), 0);
    au_image_destroy(image);
}
END_TEST

static void move_between(void *baton, au_image *image, uint64_t serial, au_addr addr, size_t len)
{
    (void)addr, (void)len;
    if (serial == *(uint64_t *)baton) {
        au_image_word(image, BASE, 222);
    }
}

/** Memory moves between two pieces of one batch: exactly the later ones see it. */
START_TEST(image_moves)
{
    au_image *image = made();
    au_image_word(image, BASE, 111);
    uint64_t at = 2;
    au_image_set_hook(image, move_between, &at);
    au_proc *p = open_in(au_image_sys(image));
    uint64_t words[4];
    au_piece pieces[4];
    for (int i = 0; i < 4; i++) {
        pieces[i] = (au_piece){BASE, &words[i], 8, 0};
    }
    ck_assert_uint_eq(p->ops->read_many(p, pieces, 4), 4);
    ck_assert_uint_eq(words[0], 111);
    ck_assert_uint_eq(words[1], 111);
    ck_assert_uint_eq(words[2], 222);
    ck_assert_uint_eq(words[3], 222);
    ck_assert_uint_eq(au_image_pieces(image), 4);
    ck_assert_uint_eq(au_image_reads(image), 1);
    p->ops->close(p);
    au_image_destroy(image);
}
END_TEST

/* ---- recorder and replayer ----------------------------------------------------------------------------------------
 */

/** The same page differs between two reads, and both come back. */
START_TEST(replays_tears)
{
    au_image *image = made();
    au_recorder *recorder = au_recorder_create(au_image_sys(image), "version=3.13.0\nos=linux\n");
    au_proc *p = open_in(au_recorder_sys(recorder));
    uint64_t before = word_of(p, BASE);
    size_t small = au_recorder_log(recorder)->len;
    ck_assert_uint_eq(word_of(p, BASE), before);
    small = au_recorder_log(recorder)->len - small;
    ck_assert_uint_lt(small, 16); /* what is the same is not stored again */
    au_image_word(image, BASE, 999);
    ck_assert_uint_eq(word_of(p, BASE), 999);
    p->ops->close(p);

    au_replayer *replayer;
    ck_assert_ptr_null(au_replayer_create(au_recorder_log(recorder), AU_REPLAY_ORDERED, &replayer));
    ck_assert_str_eq(au_replayer_provenance(replayer), "version=3.13.0\nos=linux\n");
    ck_assert_int_eq(au_replayer_pid(replayer), PID);
    p = open_in(au_replayer_sys(replayer));
    ck_assert_uint_eq(word_of(p, BASE), before);
    uint64_t value = 5;
    ck_assert_int_eq(p->ops->read(p, BASE + 8, &value, 8), AU_NOT_KNOWN); /* not the next question */
    ck_assert_uint_eq(au_replayer_misses(replayer), 1);
    ck_assert_uint_eq(word_of(p, BASE), before);
    ck_assert_uint_eq(word_of(p, BASE), 999);
    ck_assert(!au_replayer_at_end(replayer));
    p->ops->close(p);
    ck_assert(au_replayer_at_end(replayer));
    au_replayer_destroy(replayer);
    au_recorder_destroy(recorder);
    au_image_destroy(image);
}
END_TEST

static int count_region(void *baton, const au_region *region)
{
    ck_assert_uint_eq(region->start, BASE);
    ck_assert_str_eq(region->path, "/some/file");
    ++*(int *)baton;
    return 0;
}

static int keep_module(void *baton, const au_module *module)
{
    *(uint64_t *)baton = module->id;
    return 0;
}

START_TEST(last_state)
{
    au_image *image = made();
    uint8_t file[3000];
    for (size_t i = 0; i < sizeof file; i++) {
        file[i] = (uint8_t)i;
    }
    au_module module = {.base = BASE,
                        .end = BASE + SIZE,
                        .bias = BASE,
                        .path = "/some/file",
                        .is_main = 1,
                        .bits = 64,
                        .build_id = {9, 8, 7},
                        .build_id_len = 3};
    au_image_add_module(image, &module, file, sizeof file);
    au_recorder *recorder = au_recorder_create(au_image_sys(image), NULL);
    au_proc *p = open_in(au_recorder_sys(recorder));
    uint8_t buf[4096], more[4500];
    ck_assert_int_eq(p->ops->read(p, BASE + 100, buf, 1000), AU_OK);
    ck_assert_int_eq(p->ops->read(p, BASE + 1100, buf, 3500), AU_OK); /* over a page's border */
    ck_assert_int_eq(p->ops->read(p, 0x999000, buf, 64), AU_FAULT);
    au_image_word(image, BASE + 200, 4711);
    au_piece piece = {BASE + 200, buf, 8, 0};
    p->ops->read_many(p, &piece, 1);
    int regions = 0;
    uint64_t id = 0;
    size_t got, n;
    au_module_source source;
    au_thread threads[4];
    au_thread_state state = {.tid = PID + 1,
                             .wanted = AU_STATE_RUN | AU_STATE_SWITCHES | AU_STATE_CPU | AU_STATE_WAITED};
    au_image_set_cpu(image, PID + 1, 4712, 4713);
    au_proc_status status;
    char name[16];
    au_tid tid;
    ck_assert_ptr_null(p->ops->regions(p, count_region, &regions));
    ck_assert_ptr_null(p->ops->modules(p, keep_module, &id));
    ck_assert_ptr_null(p->ops->module_read(p, id, 2000, buf, 4096, &got, &source));
    ck_assert_ptr_null(p->ops->threads(p, threads, 4, &n));
    ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 1);
    ck_assert_int_eq(p->ops->thread_name(p, PID, name, sizeof name), AU_OK);
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_NAMESPACED, PID + 1, &tid), AU_OK);
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_PTHREAD, 1, &tid), AU_NOT_KNOWN);
    ck_assert_int_eq(p->ops->status(p, &status), AU_OK);
    p->ops->close(p);

    char path[512];
    ck_assert_int_eq(host_temporary_file(path, sizeof path), 0);
    au_buf log = {0};
    ck_assert_ptr_null(au_log_save(au_recorder_log(recorder), path));
    ck_assert_ptr_null(au_log_load(&log, path));
    remove(path);
    ck_assert_uint_eq(log.len, au_recorder_log(recorder)->len);

    au_replayer *replayer;
    ck_assert_ptr_null(au_replayer_create(&log, AU_REPLAY_LAST, &replayer));
    au_sys *sys = au_replayer_sys(replayer);
    p = open_in(sys);
    ck_assert_uint_eq(word_of(p, BASE + 200), 4711);
    ck_assert_int_eq(p->ops->read(p, BASE + 150, more, 4400), AU_OK); /* put together from three reads */
    ck_assert_int_eq(memcmp(more, au_image_at(image, BASE + 150, 4096), 4096), 0);
    ck_assert_int_eq(p->ops->read(p, BASE + 99, more, 8), AU_NOT_KNOWN);
    ck_assert_int_eq(p->ops->read(p, BASE + 4599, more, 8), AU_NOT_KNOWN);
    ck_assert_int_eq(p->ops->read(p, 0x999000, more, 8), AU_FAULT);
    ck_assert_int_eq(p->ops->read(p, 0x555000, more, 8), AU_NOT_KNOWN);
    ck_assert_uint_eq(au_replayer_misses(replayer), 3);
    regions = 0;
    ck_assert_ptr_null(p->ops->regions(p, count_region, &regions));
    ck_assert_int_eq(regions, 1);
    ck_assert_ptr_null(p->ops->modules(p, keep_module, &id));
    ck_assert_ptr_null(p->ops->module_read(p, id, 2500, more, 4096, &got, &source));
    ck_assert_uint_eq(got, 500);
    ck_assert_int_eq(source, AU_SOURCE_FILE);
    ck_assert_int_eq(memcmp(more, file + 2500, 500), 0);
    au_error *error = p->ops->module_read(p, id, 0, more, 16, &got, &source);
    ck_assert_ptr_nonnull(error);
    au_error_clear(error);
    ck_assert_ptr_null(p->ops->threads(p, threads, 4, &n));
    ck_assert_uint_eq(n, 2);
    state.cpu_ns = state.waited_ns = 0;
    ck_assert_uint_eq(p->ops->thread_states(p, &state, 1), 1);
    ck_assert_int_eq(state.run, AU_RUN_ASLEEP);
    ck_assert_uint_eq(state.cpu_ns, 4712);
    ck_assert_uint_eq(state.waited_ns, 4713);
    ck_assert_int_eq(p->ops->thread_name(p, PID, name, sizeof name), AU_OK);
    ck_assert_str_eq(name, "main");
    ck_assert_int_eq(p->ops->thread_name(p, PID + 1, name, sizeof name), AU_NOT_KNOWN);
    ck_assert_int_eq(p->ops->thread_id_of(p, AU_ID_NAMESPACED, PID + 1, &tid), AU_OK);
    ck_assert_int_eq(tid, PID + 1);
    ck_assert_int_eq(p->ops->status(p, &status), AU_OK);
    ck_assert_uint_eq(status.pointer_bytes, 8);
    uint64_t now = sys->ops->now(sys);
    ck_assert_uint_eq(sys->ops->sleep_until(sys, now + 500), now + 500);
    p->ops->close(p);
    au_replayer_destroy(replayer);
    au_buf_deinit(&log);
    au_recorder_destroy(recorder);
    au_image_destroy(image);
}
END_TEST

/** A log that is cut or spoiled is refused or answers less; it never breaks the replayer. */
START_TEST(spoiled_logs)
{
    au_image *image = made();
    au_recorder *recorder = au_recorder_create(au_image_sys(image), "a=b\n");
    au_proc *p = open_in(au_recorder_sys(recorder));
    uint8_t buf[256];
    size_t n;
    au_thread threads[4];
    uint64_t id;
    p->ops->read(p, BASE, buf, 200);
    p->ops->read(p, 5, buf, 8);
    ck_assert_ptr_null(p->ops->threads(p, threads, 4, &n));
    ck_assert_ptr_null(p->ops->modules(p, keep_module, &id));
    p->ops->close(p);
    const au_buf *good = au_recorder_log(recorder);
    uint32_t random = 1;
    for (size_t round = 0; round < 4000; round++) {
        au_buf bad = {0};
        ck_assert_int_eq(au_buf_append(&bad, good->data, good->len), 0);
        if (round < good->len) {
            bad.len = round;
        } else {
            for (int i = 0; i < 3; i++) {
                random = random * 1664525 + 1013904223;
                bad.data[8 + random % (bad.len - 8)] = (uint8_t)(random >> 24);
            }
        }
        for (int mode = 0; mode < 2; mode++) {
            au_replayer *replayer = NULL;
            au_error *error = au_replayer_create(&bad, (au_replay_mode)mode, &replayer);
            au_error_clear(error);
            if (error) {
                continue;
            }
            au_sys *sys = au_replayer_sys(replayer);
            au_proc *q = NULL;
            error = sys->ops->open(sys, PID, AU_WANT_READ, &q);
            au_error_clear(error);
            if (!error) {
                (void)q->ops->read(q, BASE, buf, 200);
                (void)q->ops->read(q, 5, buf, 8);
                au_error_clear(q->ops->threads(q, threads, 4, &n));
                au_error_clear(q->ops->modules(q, keep_module, &id));
                q->ops->close(q);
            }
            au_replayer_destroy(replayer);
        }
        au_buf_deinit(&bad);
    }
    au_recorder_destroy(recorder);
    au_image_destroy(image);
}
END_TEST

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

static int count_items(void *baton, const au_region *region)
{
    (void)region;
    ++*(int *)baton;
    return 0;
}

START_TEST(each_fault)
{
    au_image *image = made();
    au_faults *faults = au_faults_create(au_image_sys(image), 42);
    au_sys *sys = au_faults_sys(faults);
    au_proc *p = open_in(sys);
    uint64_t words[5];
    au_piece pieces[5];
    for (int i = 0; i < 5; i++) {
        pieces[i] = (au_piece){BASE + (unsigned)i * 8, &words[i], 8, 99};
    }

    /* The second call of status fails, the first and third do not. */
    au_proc_status status;
    au_faults_add(faults,
                  &(au_fault){.kind = AU_FAULT_FAIL, .member = AU_MEMBER_STATUS, .nth = 1, .outcome = AU_DENIED});
    ck_assert_int_eq(p->ops->status(p, &status), AU_OK);
    ck_assert_int_eq(p->ops->status(p, &status), AU_DENIED);
    ck_assert_int_eq(p->ops->status(p, &status), AU_OK);
    au_faults_clear(faults);

    /* Of five pieces two arrive. */
    au_faults_add(faults, &(au_fault){.kind = AU_FAULT_PIECES, .nth = 0, .keep = 2});
    ck_assert_uint_eq(p->ops->read_many(p, pieces, 5), 2);
    ck_assert_uint_eq(pieces[1].outcome, AU_OK);
    ck_assert_uint_eq(pieces[2].outcome, AU_FAULT);
    ck_assert_uint_eq(pieces[4].outcome, AU_FAULT);
    ck_assert_uint_eq(p->ops->read_many(p, pieces, 5), 5);
    au_faults_clear(faults);

    /* A page from an older moment. */
    au_image_word(image, BASE, 1);
    au_faults_add(faults, &(au_fault){.kind = AU_FAULT_OLD_PAGE, .addr = BASE, .piece = 12, .times = 2});
    ck_assert_uint_eq(word_of(p, BASE), 1); /* piece 10: remembered */
    au_image_word(image, BASE, 2);
    ck_assert_uint_eq(word_of(p, BASE), 2); /* 11 */
    ck_assert_uint_eq(word_of(p, BASE), 1); /* 12 */
    ck_assert_uint_eq(word_of(p, BASE), 1);
    ck_assert_uint_eq(word_of(p, BASE), 2);
    au_faults_clear(faults);

    /* Bytes change, by the seed alone. */
    uint8_t clean[2048], first[2048], second[2048];
    ck_assert_int_eq(p->ops->read(p, BASE, clean, sizeof clean), AU_OK);
    for (int i = 0; i < 2; i++) {
        au_faults *other = au_faults_create(au_image_sys(image), 7);
        au_faults_add(other, &(au_fault){.kind = AU_FAULT_MUTATE, .one_in = 100});
        au_proc *q = open_in(au_faults_sys(other));
        ck_assert_int_eq(q->ops->read(q, BASE, i ? second : first, sizeof first), AU_OK);
        q->ops->close(q);
        ck_assert_uint_gt(au_faults_fired(other), 5);
        ck_assert_uint_lt(au_faults_fired(other), 60);
        au_faults_destroy(other);
    }
    ck_assert_int_eq(memcmp(first, second, sizeof first), 0);
    ck_assert_int_ne(memcmp(first, clean, sizeof first), 0);

    /* The clock jumps, forwards and back. */
    uint64_t now = sys->ops->now(sys);
    au_faults_add(faults, &(au_fault){.kind = AU_FAULT_CLOCK, .nth = 2, .jump_ns = -1000});
    ck_assert_uint_eq(sys->ops->now(sys), now);
    ck_assert_uint_eq(sys->ops->now(sys), now - 1000);
    ck_assert_uint_ge(sys->ops->sleep_until(sys, now + 50), now + 50);
    au_faults_clear(faults);

    /* An item is missing from a list. */
    au_thread threads[4];
    size_t n = 0;
    au_faults_add(faults, &(au_fault){.kind = AU_FAULT_LIST, .member = AU_MEMBER_THREADS, .nth = 0, .keep = 0});
    au_faults_add(faults, &(au_fault){.kind = AU_FAULT_LIST, .member = AU_MEMBER_REGIONS, .nth = 0, .keep = 0});
    ck_assert_ptr_null(p->ops->threads(p, threads, 4, &n));
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(threads[0].tid, PID + 1);
    int regions = 0;
    ck_assert_ptr_null(p->ops->regions(p, count_items, &regions));
    ck_assert_int_eq(regions, 0);
    ck_assert_ptr_null(p->ops->threads(p, threads, 4, &n));
    ck_assert_uint_eq(n, 2);
    au_faults_clear(faults);

    /* The process goes away within a batch, and stays away. */
    uint64_t served = 0;
    au_faults *gone = au_faults_create(au_image_sys(image), 1);
    au_faults_add(gone, &(au_fault){.kind = AU_FAULT_GONE, .piece = 3});
    au_proc *q = open_in(au_faults_sys(gone));
    served = q->ops->read_many(q, pieces, 5);
    ck_assert_uint_eq(served, 3);
    ck_assert_uint_eq(pieces[2].outcome, AU_OK);
    ck_assert_uint_eq(pieces[3].outcome, AU_GONE);
    ck_assert_int_eq(q->ops->status(q, &status), AU_GONE);
    au_error *error = q->ops->threads(q, threads, 4, &n);
    ck_assert(error == au_error_gone());
    q->ops->close(q);
    au_faults_destroy(gone);
    p->ops->close(p);
    au_faults_destroy(faults);
    ck_assert_uint_eq(au_image_open_handles(image), 0);
    au_image_destroy(image);
}
END_TEST

TCase *tcase_fakes(void)
{
    TCase *tcase = tcase_create("fakes");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, image_ranges);
    tcase_add_test(tcase, image_moves);
    tcase_add_test(tcase, replays_tears);
    tcase_add_test(tcase, last_state);
    tcase_add_test(tcase, spoiled_logs);
    tcase_add_test(tcase, each_fault);
    return tcase;
}
