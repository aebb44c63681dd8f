/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/host.h"

#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/contract/win32/win32.h"

static uint64_t ticks_of(FILETIME time)
{
    return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

void host_pause_ns(uint64_t ns)
{
    Sleep((DWORD)((ns + 999999) / 1000000));
}

uint64_t host_utc_ns(void)
{
    FILETIME now;
    GetSystemTimePreciseAsFileTime(&now);
    return (ticks_of(now) - 116444736000000000u) * 100; /* 1970-01-01 in 100 ns since 1601 */
}

uint64_t host_cpu_ns(void)
{
    FILETIME created, ended, kernel, user;
    GetProcessTimes(GetCurrentProcess(), &created, &ended, &kernel, &user);
    return (ticks_of(kernel) + ticks_of(user)) * 100;
}

au_pid host_pid(void)
{
    return GetCurrentProcessId();
}

struct host_thread {
    HANDLE handle;
    void (*fn)(void *baton);
    void *baton;
};

static DWORD WINAPI run_thread(void *baton)
{
    host_thread *thread = baton;
    thread->fn(thread->baton);
    return 0;
}

host_thread *host_start(void (*fn)(void *baton), void *baton)
{
    host_thread *thread = malloc(sizeof *thread);
    if (thread) {
        *thread = (host_thread){.fn = fn, .baton = baton};
        thread->handle = CreateThread(NULL, 0, run_thread, thread, 0, NULL);
        if (!thread->handle) {
            free(thread);
            thread = NULL;
        }
    }
    return thread;
}

void host_join(host_thread *thread)
{
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
    free(thread);
}

int host_temporary_file(char *path, size_t cap)
{
    char folder[MAX_PATH + 1];
    DWORD len = GetTempPathA(sizeof folder, folder);
    return cap >= MAX_PATH && len && len < sizeof folder && GetTempFileNameA(folder, "au", 0, path) ? 0 : -1;
}

const char host_magic[] = "MZ";

/** What the modules' load bias is checked against; the symbols of this format are what a module exports. */
__declspec(dllexport) int contract_marker = 42;

au_addr host_marker(void)
{
    return (uintptr_t)&contract_marker;
}

/** The linker's name for the first byte of this image. */
extern const char __ImageBase[];

int host_program_read(host_program *out)
{
    wchar_t path[WIN32_PATH_CHARS];
    *out = (host_program){.base = (uintptr_t)__ImageBase, .bias = (uintptr_t)__ImageBase};
    FILE *file = own_path(path) == 0 ? _wfopen(path, L"rb") : NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        out->bytes = size > 0 ? malloc((size_t)size) : NULL;
        out->len = out->bytes ? fread(out->bytes, 1, (size_t)size, file) : 0;
    }
    if (file) {
        fclose(file);
    }
    return out->len ? 0 : -1;
}

int own_path(wchar_t *path)
{
    DWORD len = GetModuleFileNameW(NULL, path, WIN32_PATH_CHARS);
    return len && len < WIN32_PATH_CHARS ? 0 : -1;
}

void host_be_tracee(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], TRACEE_ARGUMENT) == 0) {
        tracee();
    }
}

void host_suite(Suite *suite)
{
    suite_add_tcase(suite, tcase_win32());
}
