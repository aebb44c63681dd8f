/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded live runs of each CPython version, replayed on any machine. record.py made them: a log per interpreter and
 * the stacks, which were equal to what the program said of itself.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "platform/fake/log.h"
#include "platform/fake/replayer.h"
#include "tests/engine/suites.h"

#define FOLDER "tests/engine/data/recorded"

static const char *const runs[] = {"3.10.8", "3.11.3", "3.12.1", "3.13.5", "3.13.5t", "3.14.3", "3.14.10", "3.15.2"};

typedef struct collect {
    au_sink sink;
    au_buf text;
} collect;

static void put(au_buf *text, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    ck_assert_int_lt(n, (int)sizeof line);
    ck_assert_int_eq(au_buf_append(text, line, (size_t)n), 0);
}

static int take(au_sink *sink, const au_sample *s)
{
    collect *c = (collect *)sink;
    put(&c->text, "%lld|%s", (long long)s->iid, s->thread);
    for (size_t i = 0; i < s->frame_count; i++) {
        const au_location *l = s->frames[i];
        put(&c->text, "|%s|%s|%u|%u|%u|%u", l->file, l->scope, l->line, l->line_end, l->column, l->column_end);
    }
    put(&c->text, "\n");
    return 0;
}

static void read_text(const char *path, au_buf *out)
{
    char bytes[4096];
    size_t n;
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is missing", path);
    while ((n = fread(bytes, 1, sizeof bytes, file)) > 0) {
        ck_assert_int_eq(au_buf_append(out, bytes, n), 0);
    }
    fclose(file);
}

START_TEST(replayed)
{
    char path[256];
    au_buf log = {0};
    au_buf expected = {0};
    collect c = {.sink = {take, NULL}};
    au_replayer *replayer;
    au_proc *proc;
    au_engine *engine;
    const au_python *python;
    au_ran how;
    snprintf(path, sizeof path, FOLDER "/%s.log", runs[_i]);
    au_error *error = au_log_load(&log, path);
    ck_assert_msg(error == NULL, "%s", path);
    snprintf(path, sizeof path, FOLDER "/%s.txt", runs[_i]);
    read_text(path, &expected);
    ck_assert_ptr_null(au_replayer_create(&log, AU_REPLAY_LAST, &replayer));
    au_sys *sys = au_replayer_sys(replayer);
    ck_assert_ptr_null(sys->ops->open(sys, au_replayer_pid(replayer), AU_WANT_READ, &proc));
    au_engine_options options = {.interval_us = 1000, .timeout_ms = 100, .max_passes = 1, .random_seed = 1};
    ck_assert_ptr_null(au_engine_create(&options, sys, &c.sink, &engine));
    error = au_engine_find(engine, proc, &python);
    ck_assert_msg(error == NULL, "%s: %s", runs[_i], error ? error->message : "");
    char version[32];
    snprintf(version, sizeof version, "%u.%u.%u%s", python->major, python->minor, python->micro,
             python->free_threaded ? "t" : "");
    ck_assert_str_eq(version, runs[_i]);
    ck_assert_ptr_null(au_engine_run(engine, &how));
    ck_assert_int_eq(how, AU_RAN_EXPOSURE);
    ck_assert_uint_eq(au_engine_stats(engine)->errors, 0);
    put(&c.text, "%c", 0);
    ck_assert_int_eq(au_buf_append(&expected, "", 1), 0);
    ck_assert_str_eq((const char *)c.text.data, (const char *)expected.data);
    au_engine_destroy(engine);
    sys->ops->close(proc);
    au_replayer_destroy(replayer);
    au_buf_deinit(&log);
    au_buf_deinit(&expected);
    au_buf_deinit(&c.text);
}
END_TEST

Suite *au_recorded_suite(void)
{
    Suite *suite = suite_create("recorded");
    TCase *runs_case = tcase_create("runs");
    tcase_add_loop_test(runs_case, replayed, 0, (int)(sizeof runs / sizeof runs[0]));
    suite_add_tcase(suite, runs_case);
    return suite;
}
