/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams made at random: what the writer wrote is what the reader reads, the checker finds nothing, and the decoder in
 * Python agrees on every word. Then the same streams with bytes changed: both checkers find the same.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/mojo_check.h"
#include "tests/format/dump.h"
#include "tests/format/encode.h"
#include "tests/format/suites.h"

enum { TEXTS = 40, FRAMES = 60, TASKS = 12, STREAMS = 60, MUTANTS = 400 };

static uint64_t state;

static unsigned below(unsigned limit)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % limit;
}

static const char *const samples_of_text[] = {
    "a.py",
    "/srv/app/main.py",
    "<frozen importlib._bootstrap>",
    "/usr/lib/libc.so.6",
    "<module>",
    "run",
    "",
    "<unknown>",
    "Klass.method.<locals>.<lambda>",
    "/home/\xc3\xbc/\xe6\x96\x87.py",
    "\xf0\x9f\x90\x8d",
    "x\ty\\z\n",
    "native@7f00",
    "page.html",
};

typedef struct model {
    au_mojo_text texts[TEXTS];
    char names[TEXTS][64];
    au_mojo_sample_frame frames[FRAMES];
    struct {
        int reported, gone, from;
        const au_mojo_sample_frame *position[4];
        size_t length;
    } tasks[TASKS + 1];
    int next_task;
} model;

static void make_model(model *m)
{
    memset(m, 0, sizeof *m);
    m->next_task = 1;
    for (unsigned i = 0; i < TEXTS; i++) {
        unsigned fixed = sizeof samples_of_text / sizeof samples_of_text[0];
        snprintf(m->names[i], sizeof m->names[i], i < fixed ? "%s" : "%s_%u.py", samples_of_text[i % fixed], i);
        m->texts[i] = (au_mojo_text){.text = m->names[i], .length = strlen(m->names[i]), .id = i};
    }
    for (unsigned i = 0; i < FRAMES; i++) {
        au_mojo_sample_frame *frame = &m->frames[i];
        *frame = (au_mojo_sample_frame){.file = &m->texts[below(TEXTS)], .scope = &m->texts[below(TEXTS)], .id = i};
        frame->native = (uint8_t)au_mojo_is_native_file(frame->file->text);
        frame->line = below(2) ? below(100) : below(1U << 30);
        if (!frame->native && below(3)) {
            frame->line_end = frame->line + below(3);
            frame->column = below(200);
            frame->column_end = frame->column + below(50);
        }
    }
}

typedef struct made_sample {
    au_mojo_sample sample;
    const au_mojo_sample_frame *frames[12];
    const au_mojo_text *kernel[3];
    au_mojo_task_event events[8];
    const au_mojo_sample_frame *task_frames[8][4];
    int64_t waiters[8][3];
} made_sample;

static int a_live_task(const model *m)
{
    for (int tries = 0; tries < 4 && m->next_task > 1; tries++) {
        int id = 1 + (int)below((unsigned)m->next_task - 1);
        if (!m->tasks[id].gone) {
            return id;
        }
    }
    return 0;
}

static void add_task_event(model *m, made_sample *made)
{
    au_mojo_sample *sample = &made->sample;
    size_t at = sample->task_event_count;
    au_mojo_task_event *event = &made->events[at];
    *event = (au_mojo_task_event){0};
    int live = a_live_task(m);
    switch (below(4)) {
    case 0: /* a new task, or one that moves */
        live = m->next_task <= TASKS && (!live || below(2)) ? m->next_task++ : live;
        /* fall through */
    case 1:
        if (!live) {
            return;
        }
        event->kind = m->tasks[live].reported && below(4) == 0 ? AU_MOJO_TASK_GONE : AU_MOJO_TASK_IS_AT;
        event->name = below(2) ? &m->texts[8 + below(TEXTS - 8)] : NULL;
        event->frame_count = event->kind == AU_MOJO_TASK_GONE ? 0 : 1 + below(4);
        for (size_t i = 0; i < event->frame_count; i++) {
            made->task_frames[at][i] = m->tasks[live].position[i] = &m->frames[below(FRAMES)];
        }
        event->frames = made->task_frames[at];
        m->tasks[live].reported = 1;
        m->tasks[live].gone = event->kind == AU_MOJO_TASK_GONE;
        m->tasks[live].length = event->frame_count;
        break;
    case 2:
        /* Two runs of one task in a row would be one. */
        if (!live || (at && made->events[at - 1].kind == AU_MOJO_TASK_WAITERS && made->events[at - 1].task == live)) {
            return;
        }
        event->kind = AU_MOJO_TASK_WAITERS;
        event->waiters = made->waiters[at];
        for (unsigned n = below(4); n; n--) {
            int waiter = a_live_task(m);
            if (waiter) {
                made->waiters[at][event->waiter_count++] = waiter;
            }
        }
        break;
    default:
        if (!live || sample->running) {
            return;
        }
        event->kind = AU_MOJO_TASK_RUNNING;
        sample->running = live;
        break;
    }
    event->task = live;
    sample->task_event_count++;
}

static void make_sample(model *m, made_sample *made, int mode, int tasks)
{
    au_mojo_sample *sample = &made->sample;
    size_t before = sample->frame_count;
    *sample = (au_mojo_sample){.pid = 100 + below(3), .iid = (int64_t)below(3) - 1, .thread = &m->texts[4 + below(3)]};
    switch (below(3)) {
    case 0: /* the frames of the sample before, or some of them */
        sample->frame_count = before ? before - below(2) : 0;
        break;
    default:
        sample->frame_count = below(12);
        for (size_t i = 0; i < sample->frame_count; i++) {
            made->frames[i] = &m->frames[below(FRAMES)];
        }
    }
    sample->frames = made->frames;
    sample->kernel_count = below(4) ? 0 : below(4);
    for (size_t i = 0; i < sample->kernel_count; i++) {
        made->kernel[i] = &m->texts[below(TEXTS)];
    }
    sample->kernel = made->kernel;
    sample->gc = below(5) == 0;
    sample->has_time = mode != 1;
    sample->has_memory = mode != 0;
    sample->time_us = mode != 1 ? (int64_t)below(1U << (1 + below(31))) : 0;
    sample->memory_bytes = mode != 0 ? ((int64_t)below(1U << 31) - (1 << 30)) * (1 + (int64_t)below(100000)) : 0;
    sample->idle = mode == 2 && below(2);
    sample->task_events = made->events;
    for (unsigned n = tasks ? below(8) : 0; n; n--) {
        add_task_event(m, made);
    }
    if (sample->running) {
        sample->task_frames = m->tasks[sample->running].position;
        sample->task_frame_count = m->tasks[sample->running].length;
    }
}

/* A stream of the seed; `d` gets what it says. */
static void make_stream(unsigned seed, au_buf *stream, dump *d)
{
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    model *m = malloc(sizeof *m);
    made_sample *made = calloc(1, sizeof *made);
    ck_assert(m && made);
    make_model(m);
    static const char *const modes[] = {"wall", "memory", "full"};
    int mode = (int)below(3), tasks = below(3) > 0;
    encoder *e = encoder_create(AU_MOJO_KEY_LIMIT, below(4) > 0);
    const char *const metadata[][2] = {{"austin", "5.0.0"}, {"mode", modes[mode]}, {"", ""}, {"note", "\xc3\xa9\t"}};
    for (unsigned i = 0; i < 4; i++) {
        MUST(!(encode_metadata(e, 0, metadata[i][0], metadata[i][1])));
        MUST(!(dump_metadata(d, 0, metadata[i][0], metadata[i][1])));
    }
    for (unsigned n = 5 + below(60); n; n--) {
        make_sample(m, made, mode, tasks);
        MUST(!(encode_sample(e, &made->sample)));
        MUST(!(dump_sample(d, &made->sample)));
        if (below(20) == 0) {
            au_mojo_forget_process(encoder_writer(e), 100 + below(3));
        }
    }
    const au_buf *out = au_mojo_writer_out(encoder_writer(e));
    MUST(au_buf_append(stream, out->data, out->len) == 0);
    encoder_destroy(e);
    free(m);
    free(made);
}

START_TEST(what_was_written_is_read)
{
    for (unsigned seed = 1; seed <= 300; seed++) {
        au_buf stream = {0}, findings = {0};
        dump *model_text = dump_create(), *read_text = dump_create();
        make_stream(seed, &stream, model_text);
        int unfinished;
        au_error *error = dump_read(read_text, stream.data, stream.len, seed % 5, 1, &unfinished);
        ck_assert_msg(!error, "seed %u: %s", seed, error ? error->message : "");
        ck_assert_str_eq(dump_text(read_text, stream.data, stream.len), dump_text(model_text, stream.data, stream.len));
        ck_assert_uint_eq(dump_warnings(read_text), 0);
        dump_findings(stream.data, stream.len, seed % 7, 0, &findings);
        ck_assert_str_eq((const char *)findings.data, "");
        dump_destroy(model_text);
        dump_destroy(read_text);
        au_buf_deinit(&stream);
        au_buf_deinit(&findings);
    }
}
END_TEST

static void save(const char *dir, unsigned number, const char *suffix, const void *bytes, size_t len)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%04u.%s", dir, number, suffix);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

static void remove_directory(const char *dir)
{
    DIR *list = opendir(dir);
    ck_assert_ptr_nonnull(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.') {
            unlink(path);
        }
    }
    closedir(list);
    ck_assert_int_eq(rmdir(dir), 0);
}

/* Our own word on a stream, as mojo.py --each writes it: the content if no rule is broken, then the findings. */
static void our_word(const au_buf *stream, au_buf *out)
{
    au_buf findings = {0};
    dump_findings(stream->data, stream->len, 0, 0, &findings);
    if (!strstr((const char *)findings.data, "violation\t")) {
        dump *d = dump_create();
        int unfinished;
        au_error *error = dump_read(d, stream->data, stream->len, 0, 1, &unfinished);
        ck_assert_msg(!error, "%s", error ? error->message : "");
        const char *text = dump_text(d, stream->data, stream->len);
        MUST(au_buf_append(out, text, strlen(text)) == 0);
        dump_destroy(d);
    }
    MUST(au_buf_append(out, findings.data, findings.len + 1) == 0);
    out->len--;
    au_buf_deinit(&findings);
}

/* A stream cannot be told from one whose numbers have more than 64 bits by a reader with 64 bits. */
static int has_huge_number(const au_buf *stream)
{
    unsigned run = 0;
    for (size_t i = 0; i < stream->len; i++) {
        run = stream->data[i] & 0x80 ? run + 1 : 0;
        if (run >= 9) {
            return 1;
        }
    }
    return 0;
}

START_TEST(the_second_decoder_agrees)
{
    const char *tmp = getenv("TMPDIR");
    char dir[256], command[600], path[300];
    snprintf(dir, sizeof dir, "%s/mojo-streams-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    unsigned number = 0, conforming = 0;
    for (; number < STREAMS + MUTANTS; number++) {
        au_buf stream = {0}, word = {0};
        dump *d = dump_create();
        make_stream(1000 + number, &stream, d);
        if (number >= STREAMS) {
            for (unsigned n = 1 + below(3); n; n--) {
                size_t at = below((unsigned)stream.len);
                switch (below(4)) {
                case 0:
                    stream.data[at] = (uint8_t)below(256);
                    break;
                case 1:
                    stream.data[at] = (uint8_t)below(18);
                    break;
                case 2:
                    memmove(stream.data + at, stream.data + at + 1, --stream.len - at);
                    break;
                default:
                    stream.len = below(8) ? stream.len : 1 + below((unsigned)stream.len);
                }
            }
        }
        if (!has_huge_number(&stream)) {
            our_word(&stream, &word);
            conforming += strncmp((const char *)word.data, "version", 7) == 0;
            save(dir, number, "mojo", stream.data, stream.len);
            save(dir, number, "first", word.data, word.len);
        }
        dump_destroy(d);
        au_buf_deinit(&stream);
        au_buf_deinit(&word);
    }
    ck_assert_uint_ge(conforming, STREAMS);
    ck_assert_uint_lt(conforming, number - MUTANTS / 2);
#ifdef _WIN32
    printf("format: the decoder in Python NOT RUN: a Windows program does not start this system's\n");
    number = 0;
    return;
#endif
    snprintf(command, sizeof command, "${PYTHON:-python3} -B tests/live/mojo.py --each '%s'", dir);
    ck_assert_int_eq(system(command), 0);
    for (unsigned i = 0; i < number; i++) {
        snprintf(path, sizeof path, "%s/%04u.first", dir, i);
        if (access(path, R_OK) == 0) {
            au_buf first = {0}, second = {0};
            load_file(path, &first);
            snprintf(path, sizeof path, "%s/%04u.second", dir, i);
            load_file(path, &second);
            ck_assert_msg(strcmp((char *)first.data, (char *)second.data) == 0,
                          "%s: the first decoder says\n%.2000s\nthe second\n%.2000s", path, (char *)first.data,
                          (char *)second.data);
            au_buf_deinit(&first);
            au_buf_deinit(&second);
        }
    }
    remove_directory(dir);
}
END_TEST

Suite *random_suite(void)
{
    Suite *suite = suite_create("random");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, what_was_written_is_read);
    tcase_add_test(tests, the_second_decoder_agrees);
    suite_add_tcase(suite, tests);
    return suite;
}
