/* SPDX-License-Identifier: Apache-2.0 */
/* Standard handles and texts. Each test puts a handle in the place of standard input, which nothing else here uses. */
#include <stdlib.h>
#include <string.h>

#include "tests/win32/win32.h"

static HANDLE before;

static void enter(void)
{
    before = GetStdHandle(STD_INPUT_HANDLE);
}

static void leave(void)
{
    SetStdHandle(STD_INPUT_HANDLE, before);
}

static const struct {
    const wchar_t *pipe;
    int terminal;
} pipes[] = {
    {L"\\\\.\\pipe\\msys-0123456789abcdef-pty1-to-master", 1},
    {L"\\\\.\\pipe\\cygwin-0123456789abcdef-pty0-from-master", 1},
    {L"\\\\.\\pipe\\cygwin-0123456789abcdef-pipe-0x1", 0},
    {L"\\\\.\\pipe\\other-pty1-to-master", 0},
    {L"\\\\.\\pipe\\msys-pty1", 0},
};

START_TEST(a_terminal_is_known_by_its_pipe)
{
    HANDLE pipe = CreateNamedPipeW(pipes[_i].pipe, PIPE_ACCESS_DUPLEX, PIPE_TYPE_BYTE, 1, 4096, 4096, 0, NULL);
    ck_assert_ptr_ne(pipe, INVALID_HANDLE_VALUE);
    SetStdHandle(STD_INPUT_HANDLE, pipe);
    int terminal = au_is_terminal(AU_FD_STDIN);
    CloseHandle(pipe);
    ck_assert_int_eq(terminal, pipes[_i].terminal);
}
END_TEST

START_TEST(what_is_no_terminal)
{
    HANDLE null = CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                              OPEN_EXISTING, 0, NULL);
    SetStdHandle(STD_INPUT_HANDLE, null);
    ck_assert_int_eq(au_is_terminal(AU_FD_STDIN), 0); /* a character device, but no console */
    ck_assert_int_eq(au_terminal_width(AU_FD_STDIN), 80);
    CloseHandle(null);
    SetStdHandle(STD_INPUT_HANDLE, NULL);
    ck_assert_int_eq(au_is_terminal(AU_FD_STDIN), 0);
    ck_assert_int_eq(au_is_terminal(7), 0);
}
END_TEST

typedef struct reader {
    HANDLE pipe;
    char *bytes;
    size_t len, cap;
} reader;

static DWORD WINAPI read_all(void *baton)
{
    reader *r = baton;
    DWORD got;
    while (r->len < r->cap && ReadFile(r->pipe, r->bytes + r->len, (DWORD)(r->cap - r->len), &got, NULL) && got) {
        r->len += got;
    }
    return 0;
}

START_TEST(all_is_written)
{
    enum { LEN = 3000000 };
    char *bytes = malloc(LEN);
    reader r = {.bytes = malloc(LEN + 1), .cap = LEN + 1};
    HANDLE out;
    for (size_t i = 0; i < LEN; i++) {
        bytes[i] = (char)(i % 251); /* with \n, \x1a and ESC in it */
    }
    ck_assert(CreatePipe(&r.pipe, &out, NULL, 0));
    HANDLE thread = CreateThread(NULL, 0, read_all, &r, 0, NULL);
    SetStdHandle(STD_INPUT_HANDLE, out);
    int failed = au_write_all(AU_FD_STDIN, bytes, LEN);
    CloseHandle(out);
    WaitForSingleObject(thread, INFINITE);
    ck_assert_int_eq(failed, 0);
    ck_assert_uint_eq(r.len, LEN);
    ck_assert(memcmp(r.bytes, bytes, LEN) == 0);
    CloseHandle(thread);
    CloseHandle(r.pipe);
    free(r.bytes);
    free(bytes);
}
END_TEST

START_TEST(a_reader_that_went_is_an_error)
{
    HANDLE in, out;
    ck_assert(CreatePipe(&in, &out, NULL, 0));
    CloseHandle(in);
    SetStdHandle(STD_INPUT_HANDLE, out);
    ck_assert_int_eq(au_write_all(AU_FD_STDIN, "x", 1), ERROR_BROKEN_PIPE);
    CloseHandle(out);
}
END_TEST

START_TEST(what_is_not_there_stays_away)
{
    SetStdHandle(STD_INPUT_HANDLE, (HANDLE)(uintptr_t)0x7FF0); /* of nothing */
    au_standard_descriptors_init();
    ck_assert_ptr_null(GetStdHandle(STD_INPUT_HANDLE));
    ck_assert_int_eq(au_write_all(AU_FD_STDIN, "x", 1), ERROR_INVALID_HANDLE);
    HANDLE in, out;
    ck_assert(CreatePipe(&in, &out, NULL, 0));
    SetStdHandle(STD_INPUT_HANDLE, in);
    au_standard_descriptors_init();
    ck_assert_ptr_eq(GetStdHandle(STD_INPUT_HANDLE), in);
    CloseHandle(in);
    CloseHandle(out);
}
END_TEST

START_TEST(one_error_for_a_reader_that_went)
{
    ck_assert_int_eq(au_os_error_usual(ERROR_NO_DATA), ERROR_BROKEN_PIPE);
    ck_assert_int_eq(au_os_error_usual(ERROR_PIPE_NOT_CONNECTED), ERROR_BROKEN_PIPE);
    ck_assert_int_eq(au_os_error_usual(ERROR_BROKEN_PIPE), ERROR_BROKEN_PIPE);
    ck_assert_int_eq(au_os_error_usual(ERROR_DISK_FULL), ERROR_DISK_FULL);
    ck_assert_int_eq(au_os_error_usual(0), 0);
}
END_TEST

START_TEST(places_that_are_no_folders)
{
    ck_assert_int_ne(au_path_names_place("\\\\.\\pipe\\x"), 0);
    ck_assert_int_ne(au_path_names_place("\\\\server\\share\\x"), 0);
    ck_assert_int_ne(au_path_names_place("//server/share/x"), 0);
    ck_assert_int_eq(au_path_names_place("\\\\?\\C:\\x"), 0);
    ck_assert_int_eq(au_path_names_place("\\x"), 0);
    ck_assert_int_eq(au_path_names_place("C:\\x\\y"), 0);
    ck_assert_int_eq(au_path_names_place("\\\\"), 0);
    ck_assert_int_eq(au_path_names_place(""), 0);
}
END_TEST

START_TEST(errors_have_words)
{
    char text[256], small[8];
    ck_assert_str_eq(au_os_error_text(ERROR_ACCESS_DENIED, text, sizeof text), text);
    size_t len = strlen(text);
    ck_assert_uint_gt(len, 5);
    ck_assert(text[len - 1] != '.' && text[len - 1] != '\n' && text[len - 1] != '\r');
    ck_assert_str_eq(au_os_error_text(0x2FFFFFF, text, sizeof text), "error 50331647");
    au_os_error_text(ERROR_ACCESS_DENIED, small, sizeof small);
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
    ck_assert_str_eq(au_os_error_text(ERROR_ACCESS_DENIED, small, 0), "");
}
END_TEST

START_TEST(texts_go_there_and_back)
{
    wchar_t *wide = au__win32_wide("a\u00fc\u65e5\U0001F40D");
    ck_assert(wcscmp(wide, L"a\u00fc\u65e5\xD83D\xDC0D") == 0);
    char *back = au__win32_utf8(wide);
    ck_assert_str_eq(back, "a\u00fc\u65e5\U0001F40D");
    free(back);
    free(wide);
    wide = au__win32_wide("\xFFx");
    ck_assert(wcscmp(wide, L"\xFFFDx") == 0);
    free(wide);
    back = au__win32_utf8(L"\xDC00x");
    ck_assert_str_eq(back, "\uFFFDx");
    free(back);
}
END_TEST

START_TEST(there_is_memory)
{
    au_limits_raise();
    ck_assert_uint_gt(au_memory_total(), 64u << 20);
}
END_TEST

Suite *suite_terminal(void)
{
    Suite *suite = suite_create("terminal");
    TCase *tests = tcase_create("terminal");
    tcase_add_checked_fixture(tests, enter, leave);
    tcase_add_loop_test(tests, a_terminal_is_known_by_its_pipe, 0, sizeof pipes / sizeof pipes[0]);
    tcase_add_test(tests, what_is_no_terminal);
    tcase_add_test(tests, all_is_written);
    tcase_add_test(tests, a_reader_that_went_is_an_error);
    tcase_add_test(tests, what_is_not_there_stays_away);
    tcase_add_test(tests, one_error_for_a_reader_that_went);
    tcase_add_test(tests, places_that_are_no_folders);
    tcase_add_test(tests, errors_have_words);
    tcase_add_test(tests, texts_go_there_and_back);
    tcase_add_test(tests, there_is_memory);
    suite_add_tcase(suite, tests);
    return suite;
}
