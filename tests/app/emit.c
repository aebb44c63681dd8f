/* SPDX-License-Identifier: Apache-2.0 */
#include "app/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/last_written.h"
#include "format/mojo_check.h"
#include "format/mojo_reader.h"
#include "tests/app/suites.h"

/* ---- a stream that is kept and read back -------------------------------------------------------------------- */

static au_buf stream;
static size_t pushes;
static size_t refuse_after; /* 0: never */

static int keep(void *baton, const void *bytes, size_t len)
{
    (void)baton;
    pushes++;
    if (refuse_after && pushes > refuse_after) {
        return -1;
    }
    return au_buf_append(&stream, bytes, len);
}

static au_emit *emit;
static int within_pass; /* `send` leaves the pass open */

static void begin(uint32_t key_limit)
{
    emit = au_emit_create(key_limit, keep, NULL);
    ck_assert_ptr_nonnull(emit);
    ck_assert_int_eq(au_emit_header(emit), AU_EMIT_GOES_ON);
}

static void setup(void)
{
    stream = (au_buf){0};
    pushes = refuse_after = 0;
    within_pass = 0;
    begin(AU_MOJO_KEY_LIMIT);
}

static void teardown(void)
{
    au_emit_destroy(emit);
    au_buf_deinit(&stream);
}

/* What is expected of one sample after reading. */
typedef struct wanted {
    int64_t pid, iid;
    char thread[32];
    uint64_t time_us;
    const au_location *frames[16];
    size_t frame_count;
} wanted;

static wanted *wants;
static size_t want_count, want_capacity, read_count;

static void want(const au_sample *sample)
{
    if (want_count == want_capacity) {
        want_capacity = want_capacity ? want_capacity * 2 : 64;
        wanted *grown = realloc(wants, want_capacity * sizeof *wants);
        ck_assert_ptr_nonnull(grown);
        wants = grown;
    }
    wanted *one = &wants[want_count++];
    *one = (wanted){
        .pid = sample->pid, .iid = sample->iid, .time_us = sample->time_us, .frame_count = sample->frame_count};
    snprintf(one->thread, sizeof one->thread, "%s", sample->thread);
    for (size_t i = 0; i < sample->frame_count; i++) {
        one->frames[i] = sample->frames[i];
    }
}

static int same_frame(const au_mojo_sample_frame *frame, const au_location *location)
{
    return strcmp(frame->file->text, location->file) == 0 && strcmp(frame->scope->text, location->scope) == 0 &&
           frame->line == location->line && frame->line_end == location->line_end &&
           frame->column == location->column && frame->column_end == location->column_end;
}

/* Without Check's macros in the loops: each of them writes a line to the parent. */
static au_error *compare(void *context, const au_mojo_sample *sample)
{
    (void)context;
    if (read_count == want_count) {
        ck_abort_msg("more than %zu samples", want_count);
    }
    const wanted *one = &wants[read_count++];
    int same = sample->pid == one->pid && sample->iid == one->iid && strcmp(sample->thread->text, one->thread) == 0 &&
               sample->has_time && sample->time_us == (int64_t)one->time_us && sample->frame_count == one->frame_count;
    for (size_t i = 0; same && i < one->frame_count; i++) {
        same = same_frame(sample->frames[i], one->frames[i]);
    }
    if (!same) {
        ck_abort_msg("sample %zu (thread %s, %zu frames) is not what was sent", read_count - 1, sample->thread->text,
                     sample->frame_count);
    }
    return NULL;
}

static void warn(void *context, uint64_t offset, au_mojo_rule rule)
{
    (void)context;
    ck_assert_msg(rule == AU_MOJO_FRAME_NATIVE, "warning at %llu", (unsigned long long)offset);
}

static void found(void *context, const au_mojo_finding *finding)
{
    (void)context;
    ck_assert_msg(finding->rule == AU_MOJO_FRAME_NATIVE, "rule %d broken at %llu", (int)finding->rule,
                  (unsigned long long)finding->offset);
}

/* What was sent is what the reader gives, and the strict checker has nothing against it. */
static void read_back(void)
{
    au_mojo_handlers handlers = {.sample = compare, .warning = warn};
    au_mojo_reader *reader = au_mojo_reader_create(&handlers);
    int unfinished = 0;
    read_count = 0;
    au_error *error = au_mojo_reader_feed(reader, stream.data, stream.len);
    if (!error) {
        error = au_mojo_reader_finish(reader, 1, &unfinished);
    }
    ck_assert_msg(error == NULL, "%s", error ? error->message : "");
    ck_assert_uint_eq(read_count, want_count);
    au_mojo_reader_destroy(reader);

    uint64_t violations = 0, warnings = 0;
    au_mojo_checker *checker = au_mojo_checker_create(0, found, NULL);
    ck_assert_ptr_null(au_mojo_checker_feed(checker, stream.data, stream.len));
    ck_assert_ptr_null(au_mojo_checker_finish(checker, &violations, &warnings));
    ck_assert_uint_eq(violations, 0);
    au_mojo_checker_destroy(checker);

    free(wants);
    wants = NULL;
    want_count = want_capacity = 0;
}

/* ---- samples ------------------------------------------------------------------------------------------------ */

enum { LOCATIONS = 24 };
static au_location locations[LOCATIONS];

/* Python files, the `<...>` kind, and every fourth one of the sort that a reader takes for native. */
static void make_locations(void)
{
    static const char *const files[] = {"a.py", "<string>", "/usr/bin/tool", "b.py"};
    static const char *const scopes[] = {"f", "Foo.run", "<module>"};
    for (uint32_t i = 0; i < LOCATIONS; i++) {
        locations[i] = (au_location){.file = files[i % 4],
                                     .scope = scopes[i % 3],
                                     .line = 1 + i,
                                     .line_end = 2 + i,
                                     .column = 5,
                                     .column_end = 9};
    }
}

static int send(int64_t pid, int64_t iid, const char *thread, uint64_t state, unsigned flags, uint64_t time_us,
                au_location *const *frames, size_t count)
{
    au_sample sample = {.pid = pid,
                        .iid = iid,
                        .thread = thread,
                        .thread_length = strlen(thread),
                        .state_id = state,
                        .flags = flags,
                        .time_us = time_us,
                        .frames = frames,
                        .frame_count = count};
    au_sink *sink = au_emit_sink(emit);
    int result = sink->sample(sink, &sample);
    if (result == 0 && !within_pass) {
        result = sink->pass(sink, time_us);
    }
    if (result == 0) {
        want(&sample);
    }
    return result;
}

static size_t repeats(void)
{
    size_t n = 0; /* no key or number of these streams makes the same two bytes */
    for (size_t i = 0; i + 1 < stream.len; i++) {
        n += stream.data[i] == AU_MOJO_STACK_REPEAT && stream.data[i + 1] == AU_MOJO_TIME;
    }
    return n;
}

START_TEST(the_bytes_of_two_samples)
{
    static const uint8_t expected[] = "MOJ\x04"
                                      "\x01mode\0wall\0"
                                      "\x02\x92\x42\x00MainThread\0"
                                      "\x0B\x02"
                                      "a.py\0"
                                      "\x0B\x03"
                                      "f\0"
                                      "\x03\x01\x02\x03\x07\x07\x05\x09"
                                      "\x05\x01"
                                      "\x09\xA4\x01"
                                      "\x02\x92\x42\x00MainThread\0"
                                      "\x0D"
                                      "\x09\xA8\x01";
    au_location location = {.file = "a.py", .scope = "f", .line = 7, .line_end = 7, .column = 5, .column_end = 9};
    au_location *frames[] = {&location};
    ck_assert_int_eq(au_emit_metadata(emit, "mode", "%s", "wall"), AU_EMIT_GOES_ON);
    ck_assert_int_eq(send(4242, 0, "MainThread", 9, 0, 100, frames, 1), 0);
    ck_assert_int_eq(send(4242, 0, "MainThread", 9, AU_SAMPLE_SAME, 104, frames, 1), 0);
    ck_assert_uint_eq(stream.len, sizeof expected - 1);
    ck_assert_mem_eq(stream.data, expected, sizeof expected - 1);
    ck_assert_uint_eq(pushes, 4); /* each sample is handed on whole */
    read_back();
}
END_TEST

START_TEST(repeat_after_a_rename_and_back)
{
    au_location *x[] = {&locations[0]}, *y[] = {&locations[3]};
    send(1, 0, "A", 5, 0, 1, x, 1);
    send(1, 0, "B", 5, 0, 1, y, 1);
    send(1, 0, "A", 5, AU_SAMPLE_SAME, 1, y, 1); /* a reader would repeat x here */
    ck_assert_uint_eq(repeats(), 0);
    send(1, 0, "A", 5, AU_SAMPLE_SAME, 1, y, 1);
    ck_assert_uint_eq(repeats(), 1);
    read_back();
}
END_TEST

START_TEST(no_repeat_across_states_of_one_name)
{
    au_location *x[] = {&locations[0]}, *y[] = {&locations[3]};
    send(1, 0, "MainThread", 5, 0, 1, x, 1);
    send(1, 1, "MainThread", 6, 0, 1, y, 1);
    send(1, 0, "MainThread", 5, AU_SAMPLE_SAME, 1, x, 1);
    send(1, 1, "MainThread", 6, AU_SAMPLE_SAME, 1, y, 1);
    ck_assert_uint_eq(repeats(), 0);
    send(2, 0, "MainThread", 7, 0, 1, x, 1); /* another process does not matter */
    send(1, 1, "MainThread", 6, AU_SAMPLE_SAME, 1, y, 1);
    ck_assert_uint_eq(repeats(), 1);
    read_back();
}
END_TEST

START_TEST(no_repeat_behind_a_native_looking_end)
{
    au_location *native_end[] = {&locations[0], &locations[2]}, *native_inside[] = {&locations[2], &locations[0]};
    send(1, 0, "t", 5, 0, 1, native_end, 2);
    send(1, 0, "t", 5, AU_SAMPLE_SAME, 1, native_end, 2);
    ck_assert_uint_eq(repeats(), 0);
    send(1, 0, "t", 5, 0, 1, native_inside, 2);
    send(1, 0, "t", 5, AU_SAMPLE_SAME, 1, native_inside, 2);
    ck_assert_uint_eq(repeats(), 1);
    read_back();
}
END_TEST

START_TEST(empty_stacks)
{
    au_location *x[] = {&locations[0]};
    send(1, 0, "t", 5, 0, 1, x, 0);
    send(1, 0, "t", 5, AU_SAMPLE_SAME, 2, x, 0);
    send(1, 0, "t", 5, 0, 3, x, 1);
    send(1, 0, "t", 5, 0, 4, x, 0);
    send(1, 0, "t", 5, AU_SAMPLE_SAME, 5, x, 0);
    send(1, 0, "t", 5, 0, 6, x, 1);
    send(1, 0, "t", 5, AU_SAMPLE_SAME, 7, x, 1);
    read_back();
}
END_TEST

START_TEST(a_repeat_needs_an_earlier_sample)
{
    au_location *x[] = {&locations[0]};
    send(1, 0, "t", 5, AU_SAMPLE_SAME, 1, x, 1); /* an engine would not say so, but a reader could not bear it */
    ck_assert_uint_eq(repeats(), 0);
    read_back();
}
END_TEST

/* Threads that are renamed, share names, come and go, against a reader: whatever is repeated is what was meant. */
START_TEST(random_samples_read_back)
{
    enum { STATES = 12 };
    static const char *const names[] = {"A", "B", "MainThread", "c0ffee", "\xC3\xA9"};
    struct {
        au_location *frames[16];
        size_t count;
        uint64_t id;
        const char *name;
    } states[STATES] = {0};
    uint64_t next_id = 1, random = (uint64_t)_i + 1;
    int refused = 0;
#define DRAW(n) ((random = random * UINT64_C(6364136223846793005) + 1442695040888963407) >> 33) % (n)
    for (int i = 0; i < 20000; i++) {
        size_t s = DRAW(STATES);
        unsigned flags = 0;
        if (!states[s].id || DRAW(50) == 0) {
            states[s].id = next_id++;
            states[s].name = names[DRAW(5)];
            states[s].count = 0;
        } else if (DRAW(20) == 0) {
            states[s].name = names[DRAW(5)];
        }
        if (DRAW(2)) {
            flags = AU_SAMPLE_SAME;
        } else {
            states[s].count = DRAW(6);
            for (size_t f = 0; f < states[s].count; f++) {
                states[s].frames[f] = &locations[DRAW(LOCATIONS)];
            }
        }
        refused += send(1 + (int64_t)(s % 2), (int64_t)(s % 3), states[s].name, states[s].id, flags, (uint64_t)i,
                        states[s].frames, states[s].count) != 0;
    }
#undef DRAW
    ck_assert_int_eq(refused, 0);
    ck_assert_uint_gt(repeats(), 500);
    read_back();
}
END_TEST

/* ---- ends --------------------------------------------------------------------------------------------------- */

START_TEST(keys_run_out)
{
    au_emit_destroy(emit);
    au_buf_reset(&stream);
    begin(10); /* frame keys 1 to 9 */
    au_location *all[LOCATIONS];
    for (size_t i = 0; i < LOCATIONS; i++) {
        all[i] = &locations[i];
    }
    int sent = 0;
    while (sent < LOCATIONS && send(1, 0, "t", 1, 0, 1, &all[sent], 1) == 0) {
        sent++;
    }
    ck_assert_int_ge(sent, 1);
    ck_assert_int_le(sent, 9);
    ck_assert_int_eq(au_emit_ended(emit), AU_EMIT_NO_KEYS);
    size_t length = stream.len;
    ck_assert_int_ne(send(1, 0, "t", 1, AU_SAMPLE_SAME, 1, all, 1), 0); /* it has ended for good */
    ck_assert_uint_eq(stream.len, length);
    ck_assert_int_eq(au_emit_metadata(emit, "duration", "1"), AU_EMIT_GOES_ON);
    read_back(); /* valid, and complete */
}
END_TEST

START_TEST(refusal_ends_the_run)
{
    au_location *x[] = {&locations[0]};
    refuse_after = pushes + 2;
    ck_assert_int_eq(send(1, 0, "t", 1, 0, 1, x, 1), 0);
    ck_assert_int_eq(send(1, 0, "t", 1, 0, 1, x, 1), 0);
    ck_assert_int_ne(send(1, 0, "t", 1, 0, 1, x, 1), 0);
    ck_assert_int_eq(au_emit_ended(emit), AU_EMIT_REFUSED);
    refuse_after = 0;
    ck_assert_int_ne(send(1, 0, "t", 1, 0, 1, x, 1), 0);
    read_back();
}
END_TEST

/* The samples of a pass are handed on together, those of thousands of threads in good time. */
START_TEST(a_pass_is_handed_on_whole)
{
    au_location *x[] = {&locations[0]}, *y[] = {&locations[3]};
    au_sink *sink = au_emit_sink(emit);
    size_t before = pushes, length = stream.len;
    within_pass = 1;
    ck_assert_int_eq(send(1, 0, "t", 1, 0, 1, x, 1), 0);
    ck_assert_int_eq(send(1, 0, "u", 2, 0, 1, y, 1), 0);
    ck_assert_uint_eq(pushes, before);
    ck_assert_uint_eq(stream.len, length);
    ck_assert_int_eq(sink->pass(sink, 1), 0);
    ck_assert_uint_eq(pushes, before + 1);
    ck_assert_uint_gt(stream.len, length);
    for (int i = 0; i < 2000; i++) {
        ck_assert_int_eq(send(1, 0, "t", 1, 0, 1, i % 2 ? x : y, 1), 0);
    }
    ck_assert_uint_gt(pushes, before + 2);
    ck_assert_int_eq(au_emit_metadata(emit, "duration", "1"), AU_EMIT_GOES_ON); /* the pass was not ended */
    read_back();
}
END_TEST

/* What was written before a sample that cannot be stays. */
START_TEST(a_sample_without_keys_takes_no_other_with_it)
{
    within_pass = 1;
    au_emit_destroy(emit);
    stream.len = 0;
    begin(8);
    int sent = 0;
    while (sent < LOCATIONS) {
        au_location *x[] = {&locations[sent]};
        if (send(1, 0, "t", 1, 0, 1, x, 1) != 0) {
            break;
        }
        sent++;
    }
    ck_assert_int_ge(sent, 1);
    ck_assert_int_eq(au_emit_ended(emit), AU_EMIT_NO_KEYS);
    ck_assert_int_eq(au_emit_metadata(emit, "duration", "1"), AU_EMIT_GOES_ON);
    read_back();
}
END_TEST

START_TEST(long_metadata_is_whole)
{
    char *value = malloc(100001);
    memset(value, 'x', 100000);
    value[100000] = '\0';
    ck_assert_int_eq(au_emit_metadata(emit, "key", "%s", value), AU_EMIT_GOES_ON);
    ck_assert_uint_eq(stream.len, 4 + 1 + 4 + 100001);
    free(value);
}
END_TEST

/* ---- the memory of what was written ------------------------------------------------------------------------- */

START_TEST(table_finds_what_it_was_given)
{
    au_last_written last;
    au_last_entry *name, *state;
    char thread[32];
    ck_assert_int_eq(au_last_written_init(&last, 1 << 16), 0);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 1000; i++) {
            snprintf(thread, sizeof thread, "thread-%d", (int)i);
            ck_assert_int_eq(au_last_written_find(&last, 7, thread, strlen(thread), i, &name, &state), 0);
            ck_assert_ptr_ne(name, state);
            if (round) {
                ck_assert_uint_eq(name->serial, (uint64_t)(round - 1) * 1000 + i + 1);
                ck_assert_uint_eq(state->serial, name->serial);
            } else {
                ck_assert_uint_eq(name->serial + state->serial, 0);
            }
            name->serial = state->serial = ++last.serial;
        }
    }
    ck_assert_uint_le(last.capacity, 8192);
    au_last_written_deinit(&last);
}
END_TEST

START_TEST(table_stays_bounded_and_keeps_the_living)
{
    au_last_written last;
    au_last_entry *name, *state;
    char thread[32];
    ck_assert_int_eq(au_last_written_init(&last, 1 << 16), 0);
    size_t kept = 0, asked = 0;
    int failed = 0;
    for (uint64_t i = 0; i < 300000; i++) {
        snprintf(thread, sizeof thread, "%x", (unsigned)i); /* a thread that is seen once */
        failed |= au_last_written_find(&last, 7, thread, strlen(thread), 1000000 + i, &name, &state);
        name->serial = state->serial = ++last.serial;
        failed |= au_last_written_find(&last, 7, "MainThread", strlen("MainThread"), 1, &name, &state);
        if (i) {
            asked++;
            kept += name->serial != 0 && name->serial == state->serial;
        }
        name->serial = state->serial = ++last.serial;
    }
    ck_assert_int_eq(failed, 0);
    ck_assert_uint_eq(kept, asked);
    ck_assert_uint_le(last.capacity, 4096); /* the dead ones do not make it grow */
    ck_assert_uint_le(last.names.cap, 1 << 18);
    au_last_written_deinit(&last);
}
END_TEST

START_TEST(table_forgets_at_its_bound)
{
    au_last_written last;
    au_last_entry *name, *state;
    char thread[32];
    ck_assert_int_eq(au_last_written_init(&last, 64), 0);
    for (uint64_t round = 0; round < 50; round++) {
        for (uint64_t i = 0; i < 500; i++) { /* more living threads than it may hold */
            snprintf(thread, sizeof thread, "t%d", (int)i);
            ck_assert_int_eq(au_last_written_find(&last, 7, thread, strlen(thread), i, &name, &state), 0);
            ck_assert(name->serial == state->serial); /* both or none */
            name->serial = state->serial = ++last.serial;
        }
    }
    ck_assert_uint_eq(last.capacity, 64);
    au_last_written_deinit(&last);
}
END_TEST

Suite *au_emit_suite(void)
{
    Suite *suite = suite_create("emit");
    TCase *group = tcase_create("emit");
    tcase_set_timeout(group, 60);
    tcase_add_checked_fixture(group, make_locations, NULL);
    tcase_add_checked_fixture(group, setup, teardown);
    tcase_add_test(group, the_bytes_of_two_samples);
    tcase_add_test(group, repeat_after_a_rename_and_back);
    tcase_add_test(group, no_repeat_across_states_of_one_name);
    tcase_add_test(group, no_repeat_behind_a_native_looking_end);
    tcase_add_test(group, empty_stacks);
    tcase_add_test(group, a_repeat_needs_an_earlier_sample);
    tcase_add_loop_test(group, random_samples_read_back, 0, 8);
    tcase_add_test(group, keys_run_out);
    tcase_add_test(group, refusal_ends_the_run);
    tcase_add_test(group, a_pass_is_handed_on_whole);
    tcase_add_test(group, a_sample_without_keys_takes_no_other_with_it);
    tcase_add_test(group, long_metadata_is_whole);
    suite_add_tcase(suite, group);

    TCase *table = tcase_create("last written");
    tcase_set_timeout(table, 60);
    tcase_add_test(table, table_finds_what_it_was_given);
    tcase_add_test(table, table_stays_bounded_and_keeps_the_living);
    tcase_add_test(table, table_forgets_at_its_bound);
    suite_add_tcase(suite, table);
    return suite;
}
