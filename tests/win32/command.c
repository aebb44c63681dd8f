/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines and the search for a program. */
#include <stdlib.h>
#include <string.h>

#include "tests/win32/win32.h"

/* ---- command lines ------------------------------------------------------------------------------------------ */

static const char *const lists[][8] = {
    {"a.exe", NULL},
    {"C:\\Program Files\\a.exe", "plain", NULL},
    {"a.exe", "", "a b", "tab\there", "", NULL},
    {"a.exe", "\"", "\"\"", "a\"b", "\"a b\"", NULL},
    {"a.exe", "\\", "\\\\", "a\\", "a b\\", "a b\\\\", NULL},
    {"a.exe", "\\\"", "\\\\\"", "a\\\\\" b", "\\\\server\\x y\\", NULL},
    {"a.exe", "*", "?.py", "%PATH%", "^&|<>()", NULL},
    {"\u00fcn\u00ef/\u65e5\u672c.exe", "gr\u00fc\u00df", "\u65e5 \u672c", "\U0001F40D\"\\", NULL},
    {"C:\\dir\\", "-c", "print(\"x\\\\\")", "line\nbreak", NULL},
};

START_TEST(a_program_gets_its_arguments)
{
    const char *const *argv = lists[_i];
    wchar_t *line = au__win32_command_line(argv);
    ck_assert_ptr_nonnull(line);
    int argc = 0;
    char **back = au__win32_split(line, &argc);
    ck_assert_ptr_nonnull(back);
    for (int i = 0; argv[i]; i++) {
        ck_assert_int_lt(i, argc);
        ck_assert_str_eq(back[i], argv[i]);
    }
    ck_assert_ptr_null(argv[argc]);
    ck_assert_ptr_null(back[argc]);
    free(back);
    free(line);
}
END_TEST

/* The examples of Microsoft's "Parsing C command-line arguments", and of what follows from its rules. */
static const struct {
    const wchar_t *line;
    const char *argv[5];
} splits[] = {
    {L"x \"abc\" d e", {"x", "abc", "d", "e"}},
    {L"x a\\\\b d\"e f\"g h", {"x", "a\\\\b", "de fg", "h"}},
    {L"x a\\\\\\\"b c d", {"x", "a\\\"b", "c", "d"}},
    {L"x a\\\\\\\\\"b c\" d e", {"x", "a\\\\b c", "d", "e"}},
    {L"x \"a\"\"b\" c", {"x", "a\"b", "c"}},
    {L"\"C:\\a b\\\" c", {"C:\\a b\\", "c"}},
    {L"x  \t  ", {"x"}},
    {L"x \"\" \"open end", {"x", "", "open end"}},
    {L"x \xD800 y", {"x", "\uFFFD", "y"}},
    {L"", {""}},
};

START_TEST(a_line_is_split_as_the_runtime_does)
{
    int argc = 0, expected = 0;
    char **argv = au__win32_split(splits[_i].line, &argc);
    ck_assert_ptr_nonnull(argv);
    for (; expected < 5 && splits[_i].argv[expected]; expected++) {
        ck_assert_int_lt(expected, argc);
        ck_assert_str_eq(argv[expected], splits[_i].argv[expected]);
    }
    ck_assert_int_eq(argc, expected);
    free(argv);
}
END_TEST

static const struct {
    const char *argument;
    const wchar_t *said; /* NULL: refused */
} batch[] = {
    {"plain-1.0_x", L"plain-1.0_x"},
    {"", L"\"\""},
    {"a b", L"\"a b\""},
    {"a&calc", L"\"a&calc\""},
    {"^|<>()!;,=", L"\"^|<>()!;,=\""},
    {"dir\\", L"dir\\"},
    {"a dir\\", L"\"a dir\\\\\""},
    {"\u00fc", L"\"\u00fc\""},
    {"a\"&calc", NULL},
    {"\"", NULL},
    {"%PATH%", NULL},
    {"%", NULL},
    {"a\nb", NULL},
    {"a\rb", NULL},
    {"\x1a", NULL},
};

START_TEST(cmd_takes_it_as_it_is_or_not_at_all)
{
    const char *argv[] = {"x.bat", batch[_i].argument, NULL};
    wchar_t *line = NULL, expected[256];
    DWORD failed = au__win32_batch_line(L"C:\\a b\\x.bat", argv, &line);
    if (!batch[_i].said) {
        ck_assert_uint_eq(failed, ERROR_INVALID_PARAMETER);
        ck_assert_ptr_null(line);
        return;
    }
    ck_assert_uint_eq(failed, 0);
    swprintf(expected, 256, L"cmd.exe /d /e:on /v:off /s /c \"\"C:\\a b\\x.bat\" %ls\"", batch[_i].said);
    ck_assert_msg(wcscmp(line, expected) == 0, "%ls", line);
    free(line);
}
END_TEST

START_TEST(cmd_is_not_given_too_much)
{
    static char many[8200];
    const char *argv[] = {"x.bat", many, NULL};
    wchar_t *line = NULL;
    memset(many, 'a', sizeof many - 1);
    ck_assert_uint_eq(au__win32_batch_line(L"C:\\x.bat", argv, &line), ERROR_FILENAME_EXCED_RANGE);
    ck_assert_ptr_null(line);
    ck_assert_uint_eq(au__win32_batch_line(L"C:\\100%\\x.bat", argv + 2, &line), ERROR_INVALID_PARAMETER);
    ck_assert_ptr_null(line);
}
END_TEST

/* ---- the search --------------------------------------------------------------------------------------------- */

static wchar_t path_before[32767], pathext_before[1024], folder_before[PATH_CAP];

static void enter(void)
{
    wchar_t path[PATH_CAP];
    GetEnvironmentVariableW(L"PATH", path_before, 32767);
    GetEnvironmentVariableW(L"PATHEXT", pathext_before, 1024);
    GetCurrentDirectoryW(PATH_CAP, folder_before);
    CreateDirectoryW(test_path(L"one"), NULL);
    CreateDirectoryW(test_path(L"two;more"), NULL);
    CreateDirectoryW(test_path(L"here"), NULL);
    CreateDirectoryW(test_path(L"one\\folder"), NULL);
    test_file(L"one\\tool.bat", "");
    test_file(L"one\\both.cmd", "");
    test_file(L"one\\both.exe", "");
    test_file(L"one\\bare", "");
    test_file(L"two;more\\tool.exe", "");
    test_file(L"two;more\\python3.11.exe", "");
    test_file(L"two;more\\folder.exe", "");
    test_file(L"here\\local.exe", "");
    swprintf(path, PATH_CAP, L";%ls;\"%ls\"", test_path(L"one"), test_path(L"two;more"));
    SetEnvironmentVariableW(L"PATH", path);
    SetEnvironmentVariableW(L"PATHEXT", L".COM;.EXE;.BAT;.CMD");
    SetCurrentDirectoryW(test_path(L"here") + 4); /* which takes no \\?\ */
}

static void leave(void)
{
    SetEnvironmentVariableW(L"PATH", path_before);
    SetEnvironmentVariableW(L"PATHEXT", pathext_before[0] ? pathext_before : NULL);
    SetCurrentDirectoryW(folder_before);
}

static const struct {
    const wchar_t *name;
    DWORD failed;
    const wchar_t *found; /* its end */
} searches[] = {
    {L"tool", 0, L"one\\tool.BAT"}, /* the first folder that has any, as in cmd.exe */
    {L"tool.exe", 0, L"two;more\\tool.exe"},
    {L"both", 0, L"one\\both.EXE"}, /* the order of PATHEXT */
    {L"both.cmd", 0, L"one\\both.cmd"},
    {L"bare", 0, L"one\\bare"},
    {L"python3.11", 0, L"two;more\\python3.11.EXE"},
    {L"folder", 0, L"two;more\\folder.EXE"}, /* and not the folder before it */
    {L"local", ERROR_FILE_NOT_FOUND, NULL},  /* the current folder is not searched ... */
    {L"local.exe", ERROR_FILE_NOT_FOUND, NULL},
    {L".\\local", 0, L"here\\local.EXE"}, /* ... unless it is named */
    {L"./local.exe", 0, L"here\\local.exe"},
    {L"..\\one\\tool", 0, L"one\\tool.BAT"},
    {L"..\\one\\tool.bat. .", 0, L"one\\tool.bat"}, /* the name that the system makes of it */
    {L"..\\one\\folder", ERROR_DIRECTORY, NULL},
    {L"..\\one", ERROR_DIRECTORY, NULL},
    {L"..\\nowhere\\tool", ERROR_PATH_NOT_FOUND, NULL},
    {L".\\local.exe:stream", ERROR_INVALID_NAME, NULL},
    {L"lo\"cal", ERROR_FILE_NOT_FOUND, NULL},
    {L"loc*", ERROR_FILE_NOT_FOUND, NULL},
    {L"", ERROR_FILE_NOT_FOUND, NULL},
};

START_TEST(a_program_is_found)
{
    wchar_t *found = NULL;
    DWORD failed = au__win32_find_program(searches[_i].name, &found);
    ck_assert_msg(failed == searches[_i].failed, "%ls: %lu", searches[_i].name, failed);
    if (failed) {
        ck_assert_ptr_null(found);
        return;
    }
    size_t len = wcslen(found), end = wcslen(searches[_i].found);
    ck_assert_msg(len > end && _wcsicmp(found + len - end, searches[_i].found) == 0, "%ls", found);
    ck_assert_uint_ne(GetFileAttributesW(found), INVALID_FILE_ATTRIBUTES);
    free(found);
}
END_TEST

START_TEST(other_suffixes_count_where_they_are_set)
{
    wchar_t *found = NULL;
    SetEnvironmentVariableW(L"PATHEXT", L".CMD;;.exe");
    ck_assert_uint_eq(au__win32_find_program(L"both", &found), 0);
    ck_assert(au__win32_is_batch(found));
    free(found);
    SetEnvironmentVariableW(L"PATHEXT", NULL);
    ck_assert_uint_eq(au__win32_find_program(L"both", &found), 0);
    ck_assert(!au__win32_is_batch(found));
    free(found);
    SetEnvironmentVariableW(L"PATH", NULL);
    ck_assert_uint_eq(au__win32_find_program(L"both", &found), ERROR_FILE_NOT_FOUND);
}
END_TEST

START_TEST(a_batch_file_is_known)
{
    ck_assert(au__win32_is_batch(L"C:\\x.bat"));
    ck_assert(au__win32_is_batch(L"C:\\x.exe.CmD"));
    ck_assert(!au__win32_is_batch(L"C:\\x.bat\\y"));
    ck_assert(!au__win32_is_batch(L"C:\\x.bat.exe"));
    ck_assert(!au__win32_is_batch(L"C:\\bat"));
}
END_TEST

Suite *suite_command(void)
{
    Suite *suite = suite_create("command");
    TCase *lines = tcase_create("lines"), *search = tcase_create("search");
    tcase_add_loop_test(lines, a_program_gets_its_arguments, 0, sizeof lists / sizeof lists[0]);
    tcase_add_loop_test(lines, a_line_is_split_as_the_runtime_does, 0, sizeof splits / sizeof splits[0]);
    tcase_add_loop_test(lines, cmd_takes_it_as_it_is_or_not_at_all, 0, sizeof batch / sizeof batch[0]);
    tcase_add_test(lines, cmd_is_not_given_too_much);
    tcase_add_test(lines, a_batch_file_is_known);
    tcase_add_checked_fixture(search, enter, leave);
    tcase_add_loop_test(search, a_program_is_found, 0, sizeof searches / sizeof searches[0]);
    tcase_add_test(search, other_suffixes_count_where_they_are_set);
    suite_add_tcase(suite, lines);
    suite_add_tcase(suite, search);
    return suite;
}
