/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that stands for an interpreter, as the python.exe of a virtual environment and py.exe do: it starts the
 * program that WIN_REDIRECTOR_TARGET or the first line of the file <its own path without .exe>.target names, with its
 * own arguments, copies of its own standard handles, and in a job that ends it when we end; then it waits and passes
 * the exit code on. Ctrl-C is the other program's business (CPython 3.13, PC/launcher.c, run_child, does these things).
 */
#include <windows.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

enum { PATH_MAX_LEN = 32767, FAILED = 101 };

static BOOL WINAPI ignore(DWORD type)
{
    return type == CTRL_C_EVENT;
}

static int failed(const char *what)
{
    fprintf(stderr, "win_redirector: %s: error %lu\n", what, GetLastError());
    return FAILED;
}

static int read_target(wchar_t *out)
{
    static char bytes[PATH_MAX_LEN];
    DWORD len = GetEnvironmentVariableW(L"WIN_REDIRECTOR_TARGET", out, PATH_MAX_LEN);
    if (len > 0 && len < PATH_MAX_LEN) {
        return 0;
    }
    len = GetModuleFileNameW(NULL, out, PATH_MAX_LEN - 16);
    if (len < 4 || len >= PATH_MAX_LEN - 16) {
        return 1;
    }
    wcscpy(out + len - 4, L".target");
    FILE *file = _wfopen(out, L"rb");
    if (!file) {
        return 1;
    }
    char *got = fgets(bytes, sizeof bytes, file);
    fclose(file);
    if (!got) {
        return 1;
    }
    bytes[strcspn(bytes, "\r\n")] = 0;
    return MultiByteToWideChar(CP_UTF8, 0, bytes, -1, out, PATH_MAX_LEN) <= 0;
}

/* What follows our own name, with the blank before it. */
static const wchar_t *arguments(void)
{
    const wchar_t *at = GetCommandLineW();
    int quoted = 0;
    for (; *at && (quoted || (*at != L' ' && *at != L'\t')); at++) {
        quoted ^= *at == L'"';
    }
    return at;
}

static HANDLE copy_of(DWORD name)
{
    HANDLE self = GetCurrentProcess(), copy = NULL;
    return DuplicateHandle(self, GetStdHandle(name), self, &copy, 0, TRUE, DUPLICATE_SAME_ACCESS) ? copy : NULL;
}

static HANDLE make_job(void)
{
    HANDLE job = CreateJobObjectW(NULL, NULL);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
    memset(&limits, 0, sizeof limits);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    return job && SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits) ? job : NULL;
}

int main(void)
{
    static wchar_t target[PATH_MAX_LEN];
    if (read_target(target) != 0) {
        return failed("no target");
    }
    size_t cap = wcslen(target) + wcslen(arguments()) + 8;
    wchar_t *line = malloc(cap * sizeof *line);
    HANDLE job = make_job();
    if (!line || !job) {
        return failed("job");
    }
    wcscpy(line, L"\"");
    wcscat(line, target);
    wcscat(line, L"\"");
    wcscat(line, arguments());

    STARTUPINFOW info;
    PROCESS_INFORMATION started;
    DWORD code = FAILED;
    memset(&info, 0, sizeof info);
    info.cb = sizeof info;
    info.dwFlags = STARTF_USESTDHANDLES;
    info.hStdInput = copy_of(STD_INPUT_HANDLE);
    info.hStdOutput = copy_of(STD_OUTPUT_HANDLE);
    info.hStdError = copy_of(STD_ERROR_HANDLE);
    SetConsoleCtrlHandler(ignore, TRUE);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &info, &started)) {
        return failed("CreateProcess");
    }
    if (!AssignProcessToJobObject(job, started.hProcess)) {
        TerminateProcess(started.hProcess, FAILED);
        return failed("AssignProcessToJobObject");
    }
    ResumeThread(started.hThread);
    CloseHandle(started.hThread);
    WaitForSingleObject(started.hProcess, INFINITE);
    GetExitCodeProcess(started.hProcess, &code);
    ExitProcess(code);
}
