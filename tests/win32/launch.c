/* SPDX-License-Identifier: Apache-2.0 */
/* Launching, and what becomes of what was launched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/win32/win32.h"

enum { LONG_MS = 20000 };

/* ---- what is launched --------------------------------------------------------------------------------------- */

/* The file appears with its content in it. */
static void tell(const char *path, const char *text)
{
    wchar_t *name = au__win32_wide(path), part[PATH_CAP];
    swprintf(part, PATH_CAP, L"%ls.part", name);
    FILE *file = _wfopen(part, L"wb");
    if (file) {
        fputs(text, file);
        fclose(file);
        MoveFileExW(part, name, MOVEFILE_REPLACE_EXISTING);
    }
    free(name);
}

static void tell_arguments(const char *path)
{
    static char text[65536];
    int argc;
    const char *const *argv;
    if (au_arguments_init(&argc, &argv) != 0) {
        return;
    }
    for (int i = 4; i < argc; i++) {
        strcat(strcat(text, argv[i]), "|");
    }
    tell(path, text);
}

/* Another one of us, which sleeps; its number goes to the file. */
static int start_sleeper(const char *path, DWORD flags)
{
    wchar_t line[PATH_CAP];
    STARTUPINFOW info = {.cb = sizeof info};
    PROCESS_INFORMATION started;
    char text[32];
    GetModuleFileNameW(NULL, test_program, PATH_CAP);
    swprintf(line, PATH_CAP, L"\"%ls\" --child sleep", test_program);
    if (!CreateProcessW(NULL, line, NULL, NULL, FALSE, flags, NULL, NULL, &info, &started)) {
        return 1;
    }
    snprintf(text, sizeof text, "%lu\n", started.dwProcessId);
    tell(path, text);
    return 0;
}

int test_child(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "", *value = argc > 3 ? argv[3] : "";
    if (strcmp(what, "exit") == 0) {
        ExitProcess((UINT)strtoul(value, NULL, 0));
    } else if (strcmp(what, "arguments") == 0) {
        tell_arguments(value);
    } else if (strcmp(what, "event") == 0) {
        SetEvent((HANDLE)(uintptr_t)strtoull(value, NULL, 0));
    } else if (strcmp(what, "write") == 0) {
        DWORD put, mode;
        HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE);
        return !WriteFile(out, "words", 5, &put, NULL) || put != 5 ? 1 : GetConsoleMode(out, &mode) ? 2 : 0;
    } else if (strcmp(what, "tree") == 0 || strcmp(what, "leave") == 0) {
        if (start_sleeper(value, *what == 'l' ? CREATE_BREAKAWAY_FROM_JOB : 0) != 0) {
            return 1;
        }
        Sleep(LONG_MS);
    } else if (strcmp(what, "sleep") == 0) {
        Sleep(LONG_MS);
    }
    return 0;
}

/* ---- tests -------------------------------------------------------------------------------------------------- */

static au_child *launch(const char *what, const char *value, int discard)
{
    const char *argv[] = {test_program_utf8, "--child", what, value, NULL};
    au_launch how = {.argv = argv, .discard_stdout = discard};
    au_child *child = NULL;
    au_error *error = au_child_launch(&how, &child);
    ck_assert_msg(!error, "%s: %s", error->message, error->cause);
    ck_assert_int_ne(au_child_pid(child), 0);
    return child;
}

static void expect_end(au_child *child, au_child_state state, int code)
{
    au_child_status status = au_child_wait(child, LONG_MS);
    ck_assert_int_eq(status.state, state);
    ck_assert_int_eq(status.code, code);
    status = au_child_poll(child); /* and it stays so */
    ck_assert_int_eq(status.state, state);
    ck_assert_int_eq(status.code, code);
    au_child_release(child);
}

static const struct {
    const char *code;
    au_child_state state;
    int seen;
} ends[] = {
    {"0", AU_CHILD_EXITED, 0},
    {"7", AU_CHILD_EXITED, 7},
    {"254", AU_CHILD_EXITED, 254},
    {"0xC0000005", AU_CHILD_EXITED, (int)0xC0000005},
    {"259", AU_CHILD_EXITED, 259},         /* STILL_ACTIVE, but it is not */
    {"0xC000013A", AU_CHILD_SIGNALLED, 2}, /* STATUS_CONTROL_C_EXIT */
};

START_TEST(the_end_is_told)
{
    expect_end(launch("exit", ends[_i].code, 0), ends[_i].state, ends[_i].seen);
}
END_TEST

START_TEST(a_wait_ends_in_time)
{
    au_child *child = launch("sleep", "", 0);
    ck_assert_int_eq(au_child_poll(child).state, AU_CHILD_RUNNING);
    ULONGLONG before = GetTickCount64();
    ck_assert_int_eq(au_child_wait(child, 200).state, AU_CHILD_RUNNING);
    ULONGLONG took = GetTickCount64() - before;
    ck_assert_uint_ge(took, 150);
    ck_assert_uint_lt(took, LONG_MS / 2);
    au_child_signal(child, AU_STOP_TERMINATE);
    expect_end(child, AU_CHILD_EXITED, 1);
}
END_TEST

START_TEST(arguments_arrive)
{
    const char *argv[] = {test_program_utf8,
                          "--child",
                          "arguments",
                          test_utf8(test_path(L"arguments.txt")),
                          "a b",
                          "q\"x\\",
                          "",
                          "\u65e5\u672c \U0001F40D",
                          "*",
                          "%PATH%",
                          "tr\\",
                          NULL};
    au_launch how = {.argv = argv};
    au_child *child = NULL;
    au_error *error = au_child_launch(&how, &child);
    ck_assert_ptr_null(error);
    expect_end(child, AU_CHILD_EXITED, 0);
    ck_assert_str_eq(test_read(L"arguments.txt"), "a b|q\"x\\||\u65e5\u672c \U0001F40D|*|%PATH%|tr\\|");
}
END_TEST

/* Whether the system itself starts a program by that path; some only up to MAX_PATH, whatever the form. */
static int system_launches(const wchar_t *path)
{
    wchar_t line[] = L"x --child exit 0";
    STARTUPINFOW info = {.cb = sizeof info};
    PROCESS_INFORMATION started;
    if (!CreateProcessW(path, line, NULL, NULL, FALSE, 0, NULL, NULL, &info, &started)) {
        return 0;
    }
    CloseHandle(started.hThread);
    CloseHandle(started.hProcess);
    return 1;
}

/* Not ASCII, and in the second round longer than MAX_PATH. */
START_TEST(any_path_is_launched)
{
    wchar_t folder[PATH_CAP], program[PATH_CAP], *found = NULL;
    wcscpy(folder, test_folder);
    for (int i = 0; i < (_i ? 6 : 1); i++) {
        wcscat(folder, L"\\gr\u00fc\u00dfe-\u65e5\u672c-0123456789-0123456789-0123456789-0123456789");
        ck_assert(CreateDirectoryW(folder, NULL) || GetLastError() == ERROR_ALREADY_EXISTS);
    }
    swprintf(program, PATH_CAP, L"%ls\\pr\u00f6gram.exe", folder);
    ck_assert_int_eq(wcslen(program) > MAX_PATH, _i);
    ck_assert(CopyFileW(test_program, program, FALSE));
    const wchar_t *plain = program + 4; /* without \\?\, as a user says it */
    ck_assert_uint_eq(au__win32_find_program(plain, &found), 0);
    ck_assert_int_eq(wcsncmp(found, L"\\\\?\\", 4) == 0, _i);
    free(found);
    if (_i && !system_launches(program)) {
        printf("launch: this system starts no program whose path is longer than MAX_PATH\n");
        return;
    }
    const char *argv[] = {test_utf8(plain), "--child", "exit", "9", NULL};
    au_launch how = {.argv = argv};
    au_child *child = NULL;
    au_error *error = au_child_launch(&how, &child);
    ck_assert_msg(!error, "%s", error ? error->cause : "");
    expect_end(child, AU_CHILD_EXITED, 9);
}
END_TEST

START_TEST(a_batch_file_is_run)
{
    test_file(L"b\u00e4tch.cmd",
              "@echo off\r\nif not \"%~1\"==\"a&b\" exit /b 1\r\nif not \"%2\"==\"last\" exit /b 2\r\n"
              "exit /b 42\r\n");
    const char *argv[] = {test_utf8(test_path(L"b\u00e4tch") + 4), "a&b", "last", NULL};
    au_launch how = {.argv = argv};
    au_child *child = NULL;
    au_error *error = au_child_launch(&how, &child);
    ck_assert_msg(!error, "%s", error ? error->cause : "");
    expect_end(child, AU_CHILD_EXITED, 42);
}
END_TEST

START_TEST(standard_output_goes_nowhere)
{
    HANDLE in, out, before = GetStdHandle(STD_OUTPUT_HANDLE);
    char bytes[16];
    DWORD got = 0, waiting = 0;
    ck_assert(CreatePipe(&in, &out, NULL, 0));
    SetStdHandle(STD_OUTPUT_HANDLE, out);
    au_child *discarded = launch("write", "", 1);
    expect_end(discarded, AU_CHILD_EXITED, 0);
    BOOL peeked = PeekNamedPipe(in, NULL, 0, NULL, &waiting, NULL);
    au_child *kept = launch("write", "", 0);
    expect_end(kept, AU_CHILD_EXITED, 0);
    SetStdHandle(STD_OUTPUT_HANDLE, before);
    CloseHandle(out); /* the only one left, so that reading ends */
    ck_assert(peeked);
    ck_assert_uint_eq(waiting, 0);
    ck_assert(ReadFile(in, bytes, sizeof bytes, &got, NULL));
    ck_assert_uint_eq(got, 5);
    ck_assert_mem_eq(bytes, "words", 5);
    ck_assert(!ReadFile(in, bytes, sizeof bytes, &got, NULL));
    CloseHandle(in);
}
END_TEST

START_TEST(nothing_else_is_inherited)
{
    SECURITY_ATTRIBUTES inherit = {sizeof inherit, NULL, TRUE};
    HANDLE event = CreateEventW(&inherit, TRUE, FALSE, NULL);
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)(uintptr_t)event);
    expect_end(launch("event", text, 0), AU_CHILD_EXITED, 0);
    ck_assert_uint_eq(WaitForSingleObject(event, 0), WAIT_TIMEOUT);
    CloseHandle(event);
}
END_TEST

static HANDLE open_sleeper(const wchar_t *name)
{
    DWORD pid = test_number(name);
    ck_assert_uint_ne(pid, 0);
    HANDLE process = OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, pid);
    ck_assert_ptr_nonnull(process);
    return process;
}

/* 0: all that it has started; 1: what asked for another place; 2: nothing when we only let go. */
START_TEST(the_whole_tree_is_ended)
{
    static const wchar_t *const names[] = {L"tree0.txt", L"tree1.txt", L"tree2.txt"};
    au_child *child = launch(_i == 1 ? "leave" : "tree", test_utf8(test_path(names[_i])), 0);
    HANDLE sleeper = open_sleeper(names[_i]);
    ck_assert_uint_eq(WaitForSingleObject(sleeper, 0), WAIT_TIMEOUT);
    if (_i == 2) {
        HANDLE process = OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, (DWORD)au_child_pid(child));
        ck_assert_ptr_nonnull(process);
        au_child_release(child);
        ck_assert_uint_eq(WaitForSingleObject(process, 300), WAIT_TIMEOUT);
        TerminateProcess(process, 0);
        CloseHandle(process);
    } else {
        au_child_signal(child, AU_STOP_TERMINATE);
        expect_end(child, AU_CHILD_EXITED, 1);
    }
    ck_assert_uint_eq(WaitForSingleObject(sleeper, _i == 0 ? LONG_MS / 4 : 300),
                      _i == 0 ? WAIT_OBJECT_0 : WAIT_TIMEOUT);
    TerminateProcess(sleeper, 0);
    CloseHandle(sleeper);
}
END_TEST

static const struct {
    const wchar_t *file;         /* made and launched */
    const char *argument, *name; /* otherwise: this name */
    int code;
    const char *cause, *hint;
} refusals[] = {
    {NULL, NULL, "no-such-program", ERROR_FILE_NOT_FOUND, "there is no such command along PATH", "check the name"},
    {NULL, NULL, ".\\no-such-program", ERROR_FILE_NOT_FOUND, "", "check the name"},
    {NULL, NULL, "C:\\", ERROR_DIRECTORY, "it is a folder", "python C:\\"},
    {L"script.py", NULL, NULL, ERROR_BAD_EXE_FORMAT, "it is not a program", "run it as: python "},
    {L"text.txt", NULL, NULL, ERROR_BAD_EXE_FORMAT, "it is not a program", "give the path of a program"},
    {L"batch.bat", "%x", NULL, ERROR_INVALID_PARAMETER, "it is a batch file", "leave that character out"},
};

START_TEST(it_says_why_not)
{
    if (refusals[_i].file) {
        test_file(refusals[_i].file, "some words\r\n");
    }
    const char *argv[] = {refusals[_i].file ? test_utf8(test_path(refusals[_i].file) + 4) : refusals[_i].name,
                          refusals[_i].argument, NULL};
    au_launch how = {.argv = argv};
    au_child *child = NULL;
    au_error *error = au_child_launch(&how, &child);
    ck_assert_ptr_nonnull(error);
    ck_assert_ptr_null(child);
    ck_assert_int_eq(error->code, AU_ERR_OS);
    ck_assert_int_eq(error->os_code, refusals[_i].code);
    ck_assert_ptr_nonnull(strstr(error->message, argv[0]));
    ck_assert_ptr_nonnull(strstr(error->cause, refusals[_i].cause));
    ck_assert_ptr_nonnull(strstr(error->hint, refusals[_i].hint));
    au_error_clear(error);
}
END_TEST

START_TEST(too_much_is_refused)
{
    static char many[40000];
    memset(many, 'a', sizeof many - 1);
    const char *argv[] = {test_program_utf8, many, NULL};
    au_launch how = {.argv = argv};
    au_child *child = NULL;
    au_error *error = au_child_launch(&how, &child);
    ck_assert_ptr_nonnull(error);
    ck_assert_int_eq(error->os_code, ERROR_FILENAME_EXCED_RANGE);
    au_error_clear(error);
}
END_TEST

/* A name that is only in the current folder, where nothing is looked for. */
static const struct {
    const wchar_t *file;
    const char *name, *hint;
} local[] = {
    {L"local-script.py", "local-script.py", "run it as: python local-script.py"},
    {L"local-tool.cmd", "local-tool", "run it as: .\\local-tool"},
    {L"local-tool.cmd", "local-tool.cmd", "run it as: .\\local-tool.cmd"},
    {L"local-words.txt", "local-words.txt", "check the name"},
};

START_TEST(it_says_what_is_near)
{
    wchar_t before[PATH_CAP];
    test_file(local[_i].file, "words\r\n");
    const char *argv[] = {local[_i].name, NULL};
    au_launch how = {.argv = argv};
    au_child *child = NULL;
    GetCurrentDirectoryW(PATH_CAP, before);
    SetCurrentDirectoryW(test_folder + 4);
    au_error *error = au_child_launch(&how, &child);
    SetCurrentDirectoryW(before);
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(error->cause, "there is no such command along PATH");
    ck_assert_msg(strstr(error->hint, local[_i].hint) != NULL, "%s", error->hint);
    au_error_clear(error);
}
END_TEST

Suite *suite_launch(void)
{
    Suite *suite = suite_create("launch");
    TCase *tests = tcase_create("launch");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, the_end_is_told, 0, sizeof ends / sizeof ends[0]);
    tcase_add_test(tests, a_wait_ends_in_time);
    tcase_add_test(tests, arguments_arrive);
    tcase_add_loop_test(tests, any_path_is_launched, 0, 2);
    tcase_add_test(tests, a_batch_file_is_run);
    tcase_add_test(tests, standard_output_goes_nowhere);
    tcase_add_test(tests, nothing_else_is_inherited);
    tcase_add_loop_test(tests, the_whole_tree_is_ended, 0, 3);
    tcase_add_loop_test(tests, it_says_why_not, 0, sizeof refusals / sizeof refusals[0]);
    tcase_add_loop_test(tests, it_says_what_is_near, 0, sizeof local / sizeof local[0]);
    tcase_add_test(tests, too_much_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
