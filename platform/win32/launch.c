/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching a program, and its end.
 *
 * It stays at our console and in our group there, so that Ctrl-C and Ctrl-Break reach it as they reach us. What it
 * starts is found by a job object: the program is put into it before its first instruction, and its children are born
 * there, but those that ask for another place (CREATE_BREAKAWAY_FROM_JOB) and get it. The job does not end them when
 * its last handle is closed: when we are killed, the program goes on. So its standard output, where it shall go
 * nowhere, is the null device and no pipe of ours, which would break with us; it is a handle like any other, which
 * a launcher may duplicate and hand on.
 */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "platform/win32/win32.h"

enum {
    INTERRUPT_SIGNAL = 2,    /* SIGINT; platform.h */
    CONTROL_MS = 300,        /* from the program's end by a console event until we have been told of it too */
    WAIT_SLICE_MS = 50,      /* where there is no event to wait for */
    COMMAND_LINE_MAX = 32767 /* CreateProcessW, lpCommandLine, with the final 0 */
};

/* What a program ends with that does not handle Ctrl-C, Ctrl-Break or the close of the console, and CPython after a
 * KeyboardInterrupt (Modules/main.c, exit_sigint; 3.8). */
#define CONTROL_EXIT ((DWORD)0xC000013A) /* ntstatus.h, STATUS_CONTROL_C_EXIT */

enum { TERMINATED_EXIT = 1 }; /* as taskkill /f does it */

struct au_child {
    HANDLE process;
    HANDLE job; /* NULL: none could be had; the program alone is meant then */
    DWORD pid;
    int own_console; /* a hidden one, since we have none */
    int told;        /* by us */
    int ended;
    au_child_status status;
};

/* ---- why not ------------------------------------------------------------------------------------------------ */

static int ends_with_any(const char *name, const char *const *ends)
{
    size_t len = strlen(name);
    for (; *ends; ends++) {
        size_t end = strlen(*ends);
        if (len > end && _stricmp(name + len - end, *ends) == 0) {
            return 1;
        }
    }
    return 0;
}

static int is_script(const char *name)
{
    static const char *const ends[] = {".py", ".pyw", ".pyz", ".pyc", NULL};
    return ends_with_any(name, ends);
}

/* What would have been meant by .\name; NULL: nothing that can be run. */
static const char *local_meaning(const char *name)
{
    static const char *const programs[] = {".exe", ".com", ".bat", ".cmd", NULL};
    wchar_t *wide = au__win32_wide(name), *found = NULL, local[MAX_PATH];
    const char *how = NULL;
    if (wide && wcslen(wide) < MAX_PATH - 2) {
        wcscat(wcscpy(local, L".\\"), wide);
        char *path = au__win32_find_program(local, &found) == 0 ? au__win32_utf8(found) : NULL;
        how = !path ? NULL : is_script(path) ? "python " : ends_with_any(path, programs) ? ".\\" : NULL;
        free(path);
        free(found);
    }
    free(wide);
    return how;
}

static au_error *cannot_launch(const char *name, DWORD code)
{
    char text[256];
    const char *cause = NULL, *hint = NULL;
    au_error *error = au_error_create(AU_ERR_OS, (int)code, "Cannot launch %s", name);
    switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
        if (!strpbrk(name, "\\/:")) {
            cause = "there is no such command along PATH";
            const char *how = local_meaning(name);
            if (how) {
                error = au_error_cause(error, "%s", cause);
                return au_error_hint(error, "it is in the current folder: run it as: %s%s", how, name);
            }
        }
        hint = "check the name, or give the path of the program";
        break;
    case ERROR_DIRECTORY:
        error = au_error_cause(error, "it is a folder");
        return au_error_hint(error, "give the path of a program, or run it as: python %s", name);
    case ERROR_BAD_EXE_FORMAT:
        error = au_error_cause(error, "it is not a program that Windows can run");
        return is_script(name) ? au_error_hint(error, "run it as: python %s", name)
                               : au_error_hint(error,
                                               "give the path of a program (.exe, .com, .bat, .cmd); if it is a "
                                               "Python script, run it as: python %s",
                                               name);
    case ERROR_EXE_MACHINE_TYPE_MISMATCH:
        cause = "it is made for another processor, or for a 64-bit Windows";
        hint = "install the build for this machine";
        break;
    case ERROR_ACCESS_DENIED:
        hint = "ask for the right to run it (icacls shows who has it), or see whether security software blocks it";
        break;
    case ERROR_ELEVATION_REQUIRED:
        hint = "run austin from a console that was opened with 'Run as administrator'";
        break;
    case ERROR_INVALID_PARAMETER:
        cause =
            "it is a batch file, and an argument holds a quote, a % or a control character, which cmd.exe would not "
            "hand on as it is";
        hint = "leave that character out, or give the command that the batch file runs";
        break;
    case ERROR_FILENAME_EXCED_RANGE:
        cause = "its arguments are longer than the system takes";
        hint = "shorten them, or let the program read them from a file";
        break;
    default:
        break;
    }
    error = au_error_cause(error, "%s", cause ? cause : au__win32_error_text(code, text, sizeof text));
    return hint ? au_error_hint(error, "%s", hint) : error;
}

/* ---- standard handles --------------------------------------------------------------------------------------- */

/* Copies for the program: it gets these and nothing else of ours, and nobody else who is started meanwhile does. */
typedef struct handles {
    HANDLE std[3]; /* NULL: we have none, so neither has it */
    HANDLE all[3];
    DWORD count;
} handles;

static void handles_deinit(handles *h)
{
    for (DWORD i = 0; i < h->count; i++) {
        CloseHandle(h->all[i]);
    }
}

static DWORD handles_init(handles *h, int discard_stdout)
{
    static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    HANDLE self = GetCurrentProcess();
    memset(h, 0, sizeof *h);
    for (int i = 0; i < 3; i++) {
        HANDLE ours = GetStdHandle(names[i]), copy = NULL;
        if (i == AU_FD_STDOUT && discard_stdout) {
            SECURITY_ATTRIBUTES inherit = {sizeof inherit, NULL, TRUE};
            copy = CreateFileW(L"NUL", GENERIC_WRITE | FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE,
                               &inherit, OPEN_EXISTING, 0, NULL);
            if (copy == INVALID_HANDLE_VALUE) {
                DWORD failed = GetLastError();
                handles_deinit(h);
                return failed;
            }
        } else if (!ours || ours == INVALID_HANDLE_VALUE ||
                   !DuplicateHandle(self, ours, self, &copy, 0, TRUE, DUPLICATE_SAME_ACCESS)) {
            continue;
        }
        h->std[i] = h->all[h->count++] = copy;
    }
    return 0;
}

/* ---- starting ----------------------------------------------------------------------------------------------- */

static int have_console(void)
{
    HANDLE console = CreateFileW(L"CONOUT$", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL,
                                 OPEN_EXISTING, 0, NULL);
    if (console == INVALID_HANDLE_VALUE) {
        return 0;
    }
    CloseHandle(console);
    return 1;
}

static HANDLE make_job(void)
{
    HANDLE job = CreateJobObjectW(NULL, NULL);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;
    memset(&limits, 0, sizeof limits);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_BREAKAWAY_OK;
    if (job && !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits)) {
        CloseHandle(job);
        return NULL;
    }
    return job;
}

/* path: the program itself, or cmd.exe; line: writable, as CreateProcessW wants it. */
static DWORD start(au_child *child, const wchar_t *path, wchar_t *line, handles *h)
{
    STARTUPINFOEXW info;
    PROCESS_INFORMATION started;
    SIZE_T size = 0;
    DWORD flags = CREATE_SUSPENDED | EXTENDED_STARTUPINFO_PRESENT, failed = 0;
    memset(&info, 0, sizeof info);
    info.StartupInfo.cb = sizeof info;
    info.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    info.StartupInfo.hStdInput = h->std[AU_FD_STDIN];
    info.StartupInfo.hStdOutput = h->std[AU_FD_STDOUT];
    info.StartupInfo.hStdError = h->std[AU_FD_STDERR];
    if (child->own_console) {
        flags |= CREATE_NO_WINDOW; /* or a window would open for it */
    }
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    info.lpAttributeList = malloc(size);
    if (!info.lpAttributeList) {
        return ERROR_NOT_ENOUGH_MEMORY;
    }
    if (!InitializeProcThreadAttributeList(info.lpAttributeList, 1, 0, &size)) {
        failed = GetLastError();
        free(info.lpAttributeList);
        return failed;
    }
    if ((h->count && !UpdateProcThreadAttribute(info.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, h->all,
                                                h->count * sizeof h->all[0], NULL, NULL)) ||
        !CreateProcessW(path, line, NULL, NULL, h->count > 0, flags, NULL, NULL, &info.StartupInfo, &started)) {
        failed = GetLastError();
    }
    DeleteProcThreadAttributeList(info.lpAttributeList);
    free(info.lpAttributeList);
    if (failed) {
        return failed;
    }
    if (child->job && !AssignProcessToJobObject(child->job, started.hProcess)) {
        CloseHandle(child->job); /* a job that we are in forbids it */
        child->job = NULL;
    }
    child->process = started.hProcess;
    child->pid = started.dwProcessId;
    if (ResumeThread(started.hThread) == (DWORD)-1) {
        failed = GetLastError();
        TerminateProcess(started.hProcess, TERMINATED_EXIT);
    }
    CloseHandle(started.hThread);
    return failed;
}

/* cmd.exe of the system, not what a variable says. For free(). */
static wchar_t *command_interpreter(void)
{
    static const wchar_t name[] = L"\\cmd.exe";
    UINT cap = GetSystemDirectoryW(NULL, 0);
    wchar_t *path = cap ? malloc(cap * sizeof *path + sizeof name) : NULL;
    UINT len = path ? GetSystemDirectoryW(path, cap) : 0;
    if (len == 0 || len >= cap) {
        free(path);
        return NULL;
    }
    memcpy(path + len, name, sizeof name);
    return path;
}

static DWORD start_program(au_child *child, const au_launch *what, handles *h)
{
    wchar_t *name = au__win32_wide(what->argv[0]), *path = NULL, *line = NULL;
    DWORD failed = name ? au__win32_find_program(name, &path) : ERROR_NOT_ENOUGH_MEMORY;
    free(name);
    if (failed) {
        return failed;
    }
    if (au__win32_is_batch(path)) {
        failed = au__win32_batch_line(path, what->argv, &line);
        free(path);
        path = failed ? NULL : command_interpreter();
    } else {
        line = au__win32_command_line(what->argv);
    }
    if (!failed && (!path || !line)) {
        failed = ERROR_NOT_ENOUGH_MEMORY;
    } else if (!failed && wcslen(line) >= COMMAND_LINE_MAX) {
        failed = ERROR_FILENAME_EXCED_RANGE;
    }
    if (!failed) {
        failed = start(child, path, line, h);
    }
    free(path);
    free(line);
    return failed;
}

au_error *au_child_launch(const au_launch *what, au_child **out)
{
    handles h;
    au_child *child = calloc(1, sizeof *child);
    if (!child) {
        return au_error_memory();
    }
    DWORD failed = handles_init(&h, what->discard_stdout);
    if (!failed) {
        child->job = make_job();
        child->own_console = !have_console();
        failed = start_program(child, what, &h);
        handles_deinit(&h);
    }
    if (failed) {
        au_child_release(child);
        return failed == ERROR_NOT_ENOUGH_MEMORY ? au_error_memory() : cannot_launch(what->argv[0], failed);
    }
    *out = child;
    return NULL;
}

au_pid au_child_pid(const au_child *child)
{
    return child->pid;
}

/* ---- its end ------------------------------------------------------------------------------------------------ */

au_child_status au_child_poll(au_child *child)
{
    if (child->ended || WaitForSingleObject(child->process, 0) != WAIT_OBJECT_0) {
        return child->status;
    }
    DWORD code = 0;
    child->ended = 1;
    child->status = (au_child_status){AU_CHILD_EXITED, 0};
    if (GetExitCodeProcess(child->process, &code)) {
        child->status.code = (int)code;
    }
    if (code == CONTROL_EXIT) {
        child->status = (au_child_status){AU_CHILD_SIGNALLED, INTERRUPT_SIGNAL};
        /* The console tells one process after the other. We are about to hear which event it was. */
        if (!child->told && !child->own_console && au_signals_ending() == AU_END_NONE && au__win32_ending_event()) {
            WaitForSingleObject(au__win32_ending_event(), CONTROL_MS);
        }
    }
    return child->status;
}

au_child_status au_child_wait(au_child *child, int timeout_ms)
{
    HANDLE both[2] = {child->process, au__win32_ending_event()};
    ULONGLONG end = GetTickCount64() + (ULONGLONG)(timeout_ms < 0 ? 0 : timeout_ms);
    unsigned signals = au_signals_count();
    for (;;) {
        au_child_status status = au_child_poll(child);
        ULONGLONG now = GetTickCount64();
        if (child->ended || au_signals_count() != signals || (timeout_ms >= 0 && now >= end)) {
            return status; /* an ending of ours: the caller decides how much longer */
        }
        ULONGLONG left = timeout_ms < 0 ? 1000 : end - now;
        if (!both[1] && left > WAIT_SLICE_MS) {
            left = WAIT_SLICE_MS;
        }
        WaitForMultipleObjects(both[1] ? 2 : 1, both, FALSE, (DWORD)(left > 1000 ? 1000 : left));
    }
}

static int is_member(const au_child *child, DWORD pid)
{
    BOOL inside = FALSE;
    if (pid == child->pid) {
        return 1;
    }
    HANDLE process = child->job ? OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, pid) : NULL;
    if (process) {
        if (!IsProcessInJob(process, child->job, &inside)) {
            inside = FALSE;
        }
        CloseHandle(process);
    }
    return inside;
}

/* Nobody but us and what we launched: a Ctrl-C goes to all of a console, and a shell or an editor shall not get ours.
 */
static int console_is_ours(const au_child *child)
{
    DWORD pids[256];
    DWORD count = GetConsoleProcessList(pids, sizeof pids / sizeof pids[0]);
    if (count == 0 || count > sizeof pids / sizeof pids[0]) {
        return 0;
    }
    for (DWORD i = 0; i < count; i++) {
        if (pids[i] != GetCurrentProcessId() && !is_member(child, pids[i])) {
            return 0;
        }
    }
    return 1;
}

/* Sends a Ctrl-C to the launched tree and to nobody else. 0: done. */
static int interrupt(au_child *child)
{
    static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    HANDLE before[3];
    if (!child->own_console) {
        return console_is_ours(child) ? au__win32_send_interrupt() : 1;
    }
    for (int i = 0; i < 3; i++) {
        before[i] = GetStdHandle(names[i]);
    }
    /* We have none, but a shell of another system may have left its mark where ours would be. */
    FreeConsole();
    int failed = !AttachConsole(child->pid); /* for a moment */
    if (!failed) {
        failed = console_is_ours(child) ? au__win32_send_interrupt() : 1;
        FreeConsole();
    }
    for (int i = 0; i < 3; i++) {
        SetStdHandle(names[i], before[i]);
    }
    return failed;
}

static void end_all(au_child *child, DWORD code)
{
    if (!child->job || !TerminateJobObject(child->job, code)) {
        TerminateProcess(child->process, code);
    }
}

/*
 * INTERRUPT: the console that told us has told the program as well. Otherwise it gets a Ctrl-C of its own, which it can
 * handle; where that would hit others too, or does not arrive, it is ended as if it had not handled it.
 */
void au_child_signal(au_child *child, au_stop how)
{
    if (child->ended) {
        return;
    }
    child->told = 1;
    if (how != AU_STOP_INTERRUPT) {
        end_all(child, TERMINATED_EXIT);
    } else if (!(au__win32_console_has_told() && !child->own_console) && interrupt(child) != 0) {
        end_all(child, CONTROL_EXIT);
    }
}

void au_child_release(au_child *child)
{
    if (!child) {
        return;
    }
    if (child->process) {
        CloseHandle(child->process);
    }
    if (child->job) {
        CloseHandle(child->job);
    }
    free(child);
}
