/* SPDX-License-Identifier: Apache-2.0 */
/* platform/win32 without a tracee: command lines, programs, standard handles. Needs Windows, or what stands for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/win32/win32.h"

wchar_t test_folder[PATH_CAP], test_program[PATH_CAP];
char test_program_utf8[PATH_CAP];

wchar_t *test_path(const wchar_t *name)
{
    static wchar_t paths[4][PATH_CAP];
    static int next;
    wchar_t *path = paths[next++ % 4];
    swprintf(path, PATH_CAP, L"%ls\\%ls", test_folder, name);
    return path;
}

char *test_utf8(const wchar_t *text)
{
    static char texts[4][PATH_CAP * 3];
    static int next;
    char *utf8 = texts[next++ % 4];
    WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, PATH_CAP * 3, NULL, NULL);
    return utf8;
}

void test_file(const wchar_t *name, const char *text)
{
    FILE *file = _wfopen(test_path(name), L"wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

const char *test_read(const wchar_t *name)
{
    static char text[65536];
    FILE *file = _wfopen(test_path(name), L"rb");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[len] = 0;
    if (file) {
        fclose(file);
    }
    return text;
}

DWORD test_number(const wchar_t *name)
{
    for (int i = 0; i < 250; i++) {
        const char *text = test_read(name);
        if (strchr(text, '\n')) {
            return (DWORD)strtoul(text, NULL, 10);
        }
        Sleep(40);
    }
    return 0;
}

static void remove_all(const wchar_t *folder)
{
    wchar_t path[PATH_CAP];
    WIN32_FIND_DATAW found;
    swprintf(path, PATH_CAP, L"%ls\\*", folder);
    HANDLE all = FindFirstFileW(path, &found);
    if (all != INVALID_HANDLE_VALUE) {
        do {
            swprintf(path, PATH_CAP, L"%ls\\%ls", folder, found.cFileName);
            if (!(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY)) {
                DeleteFileW(path);
            } else if (wcscmp(found.cFileName, L".") != 0 && wcscmp(found.cFileName, L"..") != 0) {
                remove_all(path);
            }
        } while (FindNextFileW(all, &found));
        FindClose(all);
    }
    RemoveDirectoryW(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--child") == 0) {
        return test_child(argc, argv);
    }
    wchar_t temporary[MAX_PATH];
    GetModuleFileNameW(NULL, test_program, PATH_CAP);
    strcpy(test_program_utf8, test_utf8(test_program));
    GetTempPathW(MAX_PATH, temporary);
    /* The form without a limit, so that a test may make long paths in it. */
    swprintf(test_folder, PATH_CAP, L"\\\\?\\%lsau-win32-%lu", temporary, GetCurrentProcessId());
    CreateDirectoryW(test_folder, NULL);
    au_signals_init();

    SRunner *runner = srunner_create(suite_command());
    srunner_add_suite(runner, suite_launch());
    srunner_add_suite(runner, suite_terminal());
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    remove_all(test_folder);
    return failed != 0;
}
