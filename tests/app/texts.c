/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/messages.h"
#include "app/options.h"
#include "app/stats.h"
#include "app/target.h"
#include "app/words.h"
#include "platform/platform.h"
#include "tests/app/suites.h"

static au_buf out;

static void setup(void)
{
    out = (au_buf){0};
}

static void teardown(void)
{
    au_buf_deinit(&out);
}

static const char *text_of(au_buf *buf)
{
    ck_assert_int_eq(au_buf_append(buf, "", 1), 0);
    return (const char *)buf->data;
}

static void holds(const char *text, const char *needle)
{
    ck_assert_ptr_nonnull(text);
    ck_assert_msg(strstr(text, needle) != NULL, "no '%s' in '%s'", needle, text);
}

/* The widest line in characters. */
static size_t widest(const char *text)
{
    size_t most = 0, now = 0;
    for (; *text; text++) {
        now = *text == '\n' ? 0 : now + (((unsigned char)*text & 0xC0) != 0x80);
        most = now > most ? now : most;
    }
    return most;
}

/* ---- wrapping ----------------------------------------------------------------------------------------------- */

START_TEST(wraps_at_blanks)
{
    ck_assert_int_eq(au_words_wrap(&out, "one two three four", 0, 2, 9), 0);
    ck_assert_str_eq(text_of(&out), "one two\n  three\n  four\n");
}
END_TEST

START_TEST(width_zero_breaks_nothing)
{
    ck_assert_int_eq(au_words_wrap(&out, "one two  three\nfour", 0, 2, 0), 0);
    ck_assert_str_eq(text_of(&out), "one two three four\n");
}
END_TEST

START_TEST(long_words_stay_whole)
{
    ck_assert_int_eq(au_words_wrap(&out, "a bbbbbbbbbbbbbbb c", 0, 1, 5), 0);
    ck_assert_str_eq(text_of(&out), "a\n bbbbbbbbbbbbbbb\n c\n");
}
END_TEST

START_TEST(characters_are_counted_not_bytes)
{
    ck_assert_int_eq(au_words_wrap(&out, "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9", 0, 0, 6), 0);
    ck_assert_str_eq(text_of(&out), "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9\n");
}
END_TEST

START_TEST(controls_do_not_reach_the_terminal)
{
    ck_assert_int_eq(au_words_wrap(&out,
                                   "a\033[31mb\rc\177 \xC2\x9B"
                                   "31m \xC3\xA9",
                                   0, 0, 0),
                     0);
    ck_assert_str_eq(text_of(&out), "a?[31mb?c? ??31m \xC3\xA9\n");
}
END_TEST

/* ---- help, usage, manual ------------------------------------------------------------------------------------ */

START_TEST(help_has_every_option)
{
    size_t count;
    const au_option *table = au_option_table(&count);
    ck_assert_int_eq(au_options_help(&out, 0), 0);
    const char *text = text_of(&out);
    ck_assert_int_eq(strncmp(text, "Usage: ", 7), 0);
    ck_assert_uint_le(widest(text), 80);
    for (size_t i = 0; i < count; i++) {
        char line[64];
        if (table[i].code < 256) {
            snprintf(line, sizeof line, "\n  -%c, --%s", table[i].code, table[i].name);
        } else {
            snprintf(line, sizeof line, "\n      --%s", table[i].name);
        }
        holds(text, line);
        ck_assert_int_eq(strstr(text, line) < strstr(text, "not available yet"), table[i].available);
    }
    ck_assert_ptr_null(strchr(text, '\033'));
    au_buf colour = {0};
    ck_assert_int_eq(au_options_help(&colour, 1), 0);
    ck_assert_ptr_nonnull(strchr(text_of(&colour), '\033'));
    au_buf_deinit(&colour);
}
END_TEST

START_TEST(usage_is_short)
{
    ck_assert_int_eq(au_options_usage(&out), 0);
    const char *text = text_of(&out);
    ck_assert_int_eq(strncmp(text, "Usage: ", 7), 0);
    ck_assert_uint_le(widest(text), 80);
    holds(text, "[-cP?V]");
    holds(text, "[-i N]");
    holds(text, "[-o FILE]");
    holds(text, "[--compress]");
    ck_assert_ptr_null(strstr(text, "-w"));
}
END_TEST

static char *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s (run from the tree's root)", path);
    char *bytes = malloc(1 << 20);
    *len = fread(bytes, 1, (1 << 20) - 1, file);
    bytes[*len] = '\0';
    fclose(file);
    return bytes;
}

/*
 * The lists of options in the manual page are those of the table. AU_REFRESH=1 puts the table's into the page, between
 * the comments that mark their places.
 */
START_TEST(manual_page_is_up_to_date)
{
    static const char path[] = "docs/austin.1";
    size_t len;
    const char *refresh = getenv("AU_REFRESH");
    for (int available = 0; available < 2; available++) {
        char *page = read_file(path, &len);
        const char *mark = available ? ".\\\" options: begin\n" : ".\\\" options not available yet: begin\n";
        char *start = strstr(page, mark);
        ck_assert_msg(start != NULL, "no mark in %s", path);
        start += strlen(mark);
        char *end = strstr(start, ".\\\" options: end\n");
        ck_assert_ptr_nonnull(end);
        au_buf list = {0};
        ck_assert_int_eq(au_options_manual(&list, available), 0);
        int same = list.len == (size_t)(end - start) && memcmp(list.data, start, list.len) == 0;
        if (!same && refresh && *refresh == '1') {
            FILE *file = fopen(path, "wb");
            ck_assert_ptr_nonnull(file);
            fwrite(page, 1, (size_t)(start - page), file);
            fwrite(list.data, 1, list.len, file);
            fwrite(end, 1, strlen(end), file);
            fclose(file);
        } else {
            ck_assert_msg(same, "%s is behind the option table; AU_REFRESH=1 brings it up to date", path);
        }
        au_buf_deinit(&list);
        free(page);
    }
}
END_TEST

/* ---- messages ----------------------------------------------------------------------------------------------- */

/* All words of an error that must be in what the user sees. */
static const char *words(au_error *error, au_errcode code)
{
    ck_assert_ptr_nonnull(error);
    ck_assert_msg(error->code == code, "%d: %s", (int)error->code, error->message);
    const char *hint = au_message_hint(error);
    ck_assert_ptr_nonnull(hint); /* every failure says what to do */
    au_buf_reset(&out);
    ck_assert_int_eq(au_words_append(&out, "%s: %s. %s", error->message, error->cause ? error->cause : "", hint), 0);
    au_error_clear(error);
    return text_of(&out);
}

static const au_subject launched = {.command = "python3", .pid = 77}, unborn = {.command = "nosuch"},
                        attached = {.pid = 4242};

START_TEST(launch_messages)
{
    const char *text =
        words(au_message_launch_failed(&unborn, au_error_cause(au_error_create(AU_ERR_OS, 2, "Cannot launch nosuch"),
                                                               "No such file or directory")),
              AU_ERR_OS);
    holds(text, "Cannot launch \"nosuch\": No such file or directory");
    text = words(au_message_ended_early(&launched, 40), AU_ERR_OS);
    holds(text, "Cannot launch \"python3\"");
    holds(text, "too quickly");
    text = words(au_message_ended_early(&launched, 2049), AU_ERR_PYTHON);
    holds(text, "Cannot launch");
    holds(text, "not a Python");
    holds(text, "2.0 s");
}
END_TEST

START_TEST(python_messages)
{
    const char *text =
        words(au_message_not_python(&attached, 3000, au_error_create(AU_ERR_PYTHON, 0, "Process 4242 runs Python 3.9")),
              AU_ERR_PYTHON);
    holds(text, "Cannot attach to process 4242");
    holds(text, "not a Python");
    holds(text, "3.9");
    holds(text, "3000 ms");
    text = words(au_message_not_python(&launched, 3000,
                                       au_error_hint(au_error_create(AU_ERR_BINARY, 0, "it is 32-bit"), "use 64-bit")),
                 AU_ERR_PYTHON);
    holds(text, "Cannot launch");
    holds(text, "32-bit");
    holds(text, "use 64-bit");
}
END_TEST

START_TEST(attach_messages)
{
    holds(words(au_message_ended_early(&attached, 0), AU_ERR_OS), "Cannot attach to process 4242");
    holds(words(au_message_attach_failed(&attached, au_error_gone()), AU_ERR_OS), "Cannot attach");
    const char *text = words(
        au_message_attach_failed(&attached, au_error_create(AU_ERR_OS, 3, "there is no process 4242")), AU_ERR_OS);
    holds(text, "Cannot attach to process 4242: there is no process 4242");
}
END_TEST

static const au_errcode codes[] = {
#define CODE(name, value, text) name,
    AU_ERROR_CODES(CODE)
#undef CODE
};

/* An error that comes without a remedy gets one, whatever it is. */
START_TEST(no_error_is_without_a_remedy)
{
    au_errcode code = codes[_i];
    au_error *bare = au_error_create(code, 0, "something with process 4242");
    const char *hint = au_message_hint(bare);
    au_error_clear(bare);
    ck_assert_int_eq(hint == NULL, code == AU_ERR_USAGE); /* that one is shown with a pointer to the options */
    if (code == AU_ERR_USAGE) {
        return;
    }
    const char *text = words(au_message_attach_failed(&launched, au_error_create(code, EIO, "it is odd")),
                             code == AU_ERR_GONE ? AU_ERR_OS : code);
    ck_assert_ptr_null(strstr(text, "PID again")); /* it was not given one */
    ck_assert_ptr_null(strstr(text, "-o "));       /* it is not about the output */
    words(au_message_attach_failed(&attached, au_error_create(code, EIO, "it is odd")),
          code == AU_ERR_GONE ? AU_ERR_OS : code);
}
END_TEST

static const struct {
    au_output_failure failure;
    const char *what, *remedy;
    int keeps; /* what is there may be worth reading */
} outputs[] = {
    {{"open", "dir/a", ENOENT, 0, 0, 0, 0}, "cannot open dir/a: ", "create the folder", 0},
    {{"open", "dir/a", ENOENT, 0, 0, 1, 0}, "cannot open dir/a: ", "another folder", 0},
    {{"open", "dir/a", ENOENT, 1, 0, 0, 0}, "the current folder has been deleted", "absolute path", 0},
    {{"open", "file/a", ENOTDIR, 0, 0, 0, 0}, "cannot open file/a: ", "is a file", 0},
    {{"open", "dir", EISDIR, 0, 0, 0, 0}, "cannot open dir: ", "profile.mojo", 0},
    {{"open", "dir", EACCES, 0, 0, 0, 1}, "cannot open dir: it is a folder", "name a file in that folder", 0},
    {{"open", "a", EACCES, 0, 0, 0, 0}, "cannot open a: ", "may write to", 0},
    {{"open", "a", EPERM, 0, 0, 0, 0}, "cannot open a: ", "may write to", 0},
    {{"open", "a", EROFS, 0, 0, 0, 0}, "cannot open a: ", "may write to", 0},
    {{"open", "a", EMFILE, 0, 0, 0, 0}, "cannot open a: ", "ulimit -n", 0},
    {{"open", "a", ENAMETOOLONG, 0, 0, 0, 0}, "cannot open a: ", "another file", 0},
    {{"open", "a", ENOSPC, 0, 0, 0, 0}, "cannot open a: ", "make room", 0},
    {{"write to", "a", ENOSPC, 0, 0, 0, 0}, "cannot write to a: ", "make room", 0},
    {{"write to", "a", ENOSPC, 0, 1, 0, 0}, "cannot write to a: ", "make room", 1},
    {{"write to", "a", EFBIG, 0, 0, 0, 0}, "cannot write to a: ", "ulimit -f", 0},
    {{"write to", "a", EFBIG, 0, 1, 0, 0}, "cannot write to a: ", "ulimit -f", 1},
    {{"write to", "a", EIO, 0, 0, 0, 0}, "cannot write to a: ", "another file", 0},
    {{"write to", "a", EIO, 0, 1, 0, 0}, "cannot write to a: ", "another file", 1},
    {{"write to", "a", ENOMEM, 0, 0, 0, 0}, "cannot write to a: ", "ulimit -v", 0},
    {{"write to", "a", EPIPE, 0, 1, 0, 0}, "cannot write to a: ", "-o profile.mojo", 0},
    {{"empty", "a", EIO, 0, 0, 0, 0}, "cannot empty a: ", "another file", 0},
    {{"finish", "a", EIO, 0, 1, 0, 0}, "cannot finish a: ", "another file", 1},
    {{"write to", NULL, EBADF, 0, 0, 0, 0}, "cannot write to standard output: ", "-o profile.mojo", 0},
    {{"write to", NULL, EIO, 0, 0, 0, 0}, "cannot write to standard output: ", "-o profile.mojo", 0},
    {{"write to", NULL, EPERM, 0, 0, 0, 0}, "cannot write to standard output: ", "-o profile.mojo", 0},
    {{"write to", NULL, ENOSPC, 0, 1, 0, 0}, "cannot write to standard output: ", "make room", 1},
    {{"write to", NULL, EPIPE, 0, 1, 0, 0}, "cannot write to standard output: ", "-o profile.mojo", 0},
};

START_TEST(output_messages)
{
    const char *text = words(au_message_output_failed(&outputs[_i].failure), AU_ERR_IO);
    holds(text, outputs[_i].what);
    const au_remedies *here = au_platform_remedies();
    const char *remedy = outputs[_i].remedy;
    holds(text, strcmp(remedy, "ulimit -n") == 0   ? here->open_files
                : strcmp(remedy, "ulimit -f") == 0 ? here->file_size
                : strcmp(remedy, "ulimit -v") == 0 ? here->memory
                                                   : remedy);
    /* only of something that is there it is said that it can be read */
    ck_assert_msg((strstr(text, "last whole sample") != NULL) == outputs[_i].keeps, "%s", text);
    ck_assert_int_eq(strstr(text, "create the folder") != NULL, strcmp(outputs[_i].remedy, "create the folder") == 0);
}
END_TEST

START_TEST(other_output_messages)
{
    holds(words(au_message_not_taken(), AU_ERR_IO), "-o profile.mojo");
    const char *text = words(au_message_no_text(ENOSPC), AU_ERR_IO);
    holds(text, "cannot write to standard output: ");
    ck_assert_ptr_null(strstr(text, "-o ")); /* --help needs no file of samples */
}
END_TEST

static const struct {
    au_explanation explanation;
    const char *cause, *hint;
} rights[] = {
    {{.right = AU_RIGHT_OTHER_USER, .uid = 33}, "user with id 33", "sudo austin -p 4242"},
    {{.right = AU_RIGHT_PTRACE_SCOPE, .scope = 1}, "ptrace_scope is 1", "setcap cap_sys_ptrace+ep"},
    {{.right = AU_RIGHT_PTRACE_SCOPE, .scope = 1}, "austin has not launched", "let austin launch"},
    {{.right = AU_RIGHT_PTRACE_SCOPE, .scope = 2}, "CAP_SYS_PTRACE", "sudo austin -p 4242"},
    {{.right = AU_RIGHT_PTRACE_SCOPE, .scope = 3}, "next boot", "sysctl"},
    {{.right = AU_RIGHT_CAPABILITY}, "capabilities", "sudo austin -p 4242"},
    {{.right = AU_RIGHT_NOT_DUMPABLE}, "protected", "sudo austin -p 4242"},
    {{.right = AU_RIGHT_SECCOMP, .in_container = 1}, "container", "--cap-add SYS_PTRACE"},
    {{.right = AU_RIGHT_HARDENED}, "hardened", "python.org"},
    {{.right = AU_RIGHT_ROOT}, "only root", "sudo"},
    {{.right = AU_RIGHT_UNKNOWN}, "EPERM", "CAP_SYS_PTRACE"},
    {{.right = AU_RIGHT_UNKNOWN, .in_container = 1}, "EPERM", "--cap-add SYS_PTRACE"},
};

/* The rights and limits of other systems have other names. */
static int is_linux(void)
{
    int is = strcmp(au_platform_sys()->ops->name, "linux") == 0;
    if (!is) {
        printf("app: NOT RUN: these words are Linux's\n");
    }
    return is;
}

/* What is there already is not what is missing. */
START_TEST(rights_that_are_held_are_not_asked_for)
{
    if (!is_linux()) {
        return;
    }
    static const au_right all[] = {AU_RIGHT_UNKNOWN,    AU_RIGHT_NONE_MISSING, AU_RIGHT_OTHER_USER,
                                   AU_RIGHT_CAPABILITY, AU_RIGHT_NOT_DUMPABLE, AU_RIGHT_NAMESPACE,
                                   AU_RIGHT_SECCOMP};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        au_explanation explanation = {.right = all[i], .uid = 33, .in_container = _i, .is_root = 1, .may_trace = 1};
        const char *text =
            words(au_message_not_permitted(&attached, &explanation, au_error_create(AU_ERR_PERMISSION, 1, "EPERM")),
                  AU_ERR_PERMISSION);
        holds(text, "has the capability CAP_SYS_PTRACE");
        ck_assert_ptr_null(strstr(text, "sudo"));
        ck_assert_ptr_null(strstr(text, "as root"));
        ck_assert_ptr_null(strstr(text, "--cap-add"));
        ck_assert_ptr_null(strstr(text, "setcap"));
        explanation.may_trace = 0; /* root of a user namespace, or without capabilities */
        text = words(au_message_not_permitted(&attached, &explanation, au_error_create(AU_ERR_PERMISSION, 1, "EPERM")),
                     AU_ERR_PERMISSION);
        ck_assert_ptr_null(strstr(text, "sudo"));
        holds(text, "SYS_PTRACE");
    }
}
END_TEST

START_TEST(nothing_is_said_twice)
{
    au_explanation explanation = {.right = AU_RIGHT_UNKNOWN};
    au_error *why = au_error_cause(
        au_error_create(AU_ERR_PERMISSION, 1, "Insufficient permissions to read process 4242"), "Operation refused");
    const char *text = words(au_message_not_permitted(&attached, &explanation, why), AU_ERR_PERMISSION);
    holds(text, "Insufficient permissions to read process 4242: Operation refused.");
    why = au_error_cause(au_error_create(AU_ERR_OS, 3, "Cannot attach to process 4242"), "there is no such process");
    text = words(au_message_attach_failed(&attached, why), AU_ERR_OS);
    holds(text, "Cannot attach to process 4242: there is no such process.");
}
END_TEST

/* What the system has no more of is named with its limit, whatever it was wanted for. */
static const struct {
    int os_code;
    const char *remedy;
} shortages[] = {{EMFILE, "ulimit -n"}, {ENFILE, "fs.file-max"}, {ENOMEM, "ulimit -v"}, {EAGAIN, "ulimit -u"}};

START_TEST(shortages_name_their_limit)
{
    if (!is_linux()) {
        return;
    }
    int code = shortages[_i].os_code;
    holds(au_message_shortage(code), shortages[_i].remedy);
    ck_assert_ptr_null(au_message_shortage(ENOENT));
    ck_assert_ptr_null(au_message_shortage(0));
    au_error *why = au_error_cause(au_error_create(AU_ERR_OS, code, "Cannot launch nosuch"), "too many");
    const char *text = words(au_message_launch_failed(&unborn, why), AU_ERR_OS);
    holds(text, "Cannot launch \"nosuch\": too many.");
    holds(text, shortages[_i].remedy);
    why = au_error_cause(au_error_create(AU_ERR_OS, code, "Cannot attach to process 4242"), "too many");
    text = words(au_message_attach_failed(&launched, why), AU_ERR_OS);
    ck_assert_ptr_null(strstr(text, "attach")); /* it says already that it cannot be launched */
    holds(text, ": too many.");
    holds(text, shortages[_i].remedy);
}
END_TEST

START_TEST(no_memory_says_what_helps)
{
    if (!is_linux()) {
        return;
    }
    const char *text = words(au_error_memory(), AU_ERR_MEMORY);
    holds(text, "out of memory: ");
    holds(text, "ENOMEM");
    holds(text, "ulimit -v");
    holds(text, "memory.max");
}
END_TEST

START_TEST(missing_rights)
{
    if (!is_linux()) {
        return;
    }
    const char *text = words(
        au_message_not_permitted(&attached, &rights[_i].explanation, au_error_create(AU_ERR_PERMISSION, 1, "EPERM")),
        AU_ERR_PERMISSION);
    holds(text, "Insufficient permissions");
    holds(text, "4242");
    holds(text, rights[_i].cause);
    holds(text, rights[_i].hint);
}
END_TEST

START_TEST(other_messages)
{
    holds(words(au_message_no_keys(&launched), AU_ERR_VALUE), "goes on");
    holds(words(au_message_terminal_refused(), AU_ERR_USAGE), "-o");
    const char *text =
        words(au_message_bad_environment("AUSTIN_PAGE_SIZE_CAP", "4k", "not a number"), AU_ERR_ENVIRONMENT);
    holds(text, "AUSTIN_PAGE_SIZE_CAP");
    holds(text, "4k");
}
END_TEST

START_TEST(names_may_be_long)
{
    char *name = malloc(100001);
    memset(name, 'x', 100000);
    name[100000] = '\0';
    au_subject subject = {.command = name, .pid = 7};
    holds(words(au_message_ended_early(&subject, 1), AU_ERR_OS), "too quickly");
    free(name);
}
END_TEST

START_TEST(versions)
{
    char buf[64];
    au_python python = {.major = 3, .minor = 12, .micro = 4, .micro_known = 1, .release_level = 0xF};
    ck_assert_str_eq(au_message_version(&python, buf, sizeof buf), "3.12.4");
    ck_assert_ptr_null(au_message_release(&python, buf, sizeof buf));
    python.free_threaded = 1;
    python.minor = 14;
    ck_assert_str_eq(au_message_version(&python, buf, sizeof buf), "3.14.4t");
    python.micro_known = 0;
    ck_assert_str_eq(au_message_version(&python, buf, sizeof buf), "3.14.?t");
    python.release_level = 0xB;
    python.serial = 2;
    ck_assert_str_eq(au_message_release(&python, buf, sizeof buf), "beta 2");
    python.release_level = 0xA;
    ck_assert_str_eq(au_message_release(&python, buf, sizeof buf), "alpha 2");
    python.release_level = 0xC;
    ck_assert_str_eq(au_message_release(&python, buf, sizeof buf), "release candidate 2");
}
END_TEST

/* ---- end metadata ------------------------------------------------------------------------ */

static au_buf pushed;

static int keep(void *baton, const void *bytes, size_t len)
{
    (void)baton;
    return au_buf_append(&pushed, bytes, len);
}

START_TEST(end_metadata)
{
    static const char expected[] = "\001duration\0002000000\0"
                                   "\001sampling\0003,10,77\0"
                                   "\001saturation\0005/100\0"
                                   "\001errors\0004/300\0"
                                   "\001torn\0002\0"
                                   "\001truncated\0001\0"
                                   "\001unreadable\0001\0"
                                   "\001stalls\0006\0";
    au_stats stats = {.duration_us = 2000000,
                      .passes = 100,
                      .late = 5,
                      .pass_min_us = 3,
                      .pass_max_us = 77,
                      .pass_sum_us = 1000,
                      .samples = 300,
                      .errors = 4,
                      .torn = 2,
                      .truncated = 1,
                      .unreadable = 1};
    au_emit *emit = au_emit_create(AU_MOJO_KEY_LIMIT, keep, NULL);
    pushed = (au_buf){0};
    ck_assert_int_eq(au_stats_metadata(emit, &stats, 6), AU_EMIT_GOES_ON);
    ck_assert_uint_eq(pushed.len, sizeof expected - 1);
    ck_assert_mem_eq(pushed.data, expected, sizeof expected - 1);
    au_buf_reset(&pushed);
    au_stats none = {.pass_min_us = UINT64_MAX};
    ck_assert_int_eq(au_stats_metadata(emit, &none, 0), AU_EMIT_GOES_ON);
    static const char nothing[] = "\001duration\0000\0"
                                  "\001sampling\0000,0,0\0"
                                  "\001saturation\0000/0\0"
                                  "\001errors\0000/0\0"; /* Austin's four, and no more without a reason */
    ck_assert_uint_eq(pushed.len, sizeof nothing - 1);
    ck_assert_mem_eq(pushed.data, nothing, sizeof nothing - 1);
    au_emit_destroy(emit);
    au_buf_deinit(&pushed);
}
END_TEST

Suite *au_texts_suite(void)
{
    Suite *suite = suite_create("texts");
    TCase *group = tcase_create("texts");
    tcase_add_checked_fixture(group, setup, teardown);
    tcase_add_test(group, wraps_at_blanks);
    tcase_add_test(group, width_zero_breaks_nothing);
    tcase_add_test(group, long_words_stay_whole);
    tcase_add_test(group, characters_are_counted_not_bytes);
    tcase_add_test(group, controls_do_not_reach_the_terminal);
    tcase_add_test(group, help_has_every_option);
    tcase_add_test(group, usage_is_short);
    tcase_add_test(group, manual_page_is_up_to_date);
    tcase_add_test(group, launch_messages);
    tcase_add_test(group, python_messages);
    tcase_add_test(group, attach_messages);
    tcase_add_loop_test(group, no_error_is_without_a_remedy, 0, (int)(sizeof codes / sizeof codes[0]));
    tcase_add_loop_test(group, output_messages, 0, (int)(sizeof outputs / sizeof outputs[0]));
    tcase_add_test(group, other_output_messages);
    tcase_add_loop_test(group, rights_that_are_held_are_not_asked_for, 0, 2);
    tcase_add_test(group, nothing_is_said_twice);
    tcase_add_loop_test(group, shortages_name_their_limit, 0, (int)(sizeof shortages / sizeof shortages[0]));
    tcase_add_test(group, no_memory_says_what_helps);
    tcase_add_loop_test(group, missing_rights, 0, (int)(sizeof rights / sizeof rights[0]));
    tcase_add_test(group, other_messages);
    tcase_add_test(group, names_may_be_long);
    tcase_add_test(group, versions);
    tcase_add_test(group, end_metadata);
    suite_add_tcase(suite, group);
    return suite;
}
