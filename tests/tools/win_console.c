/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command at a console of its own that has no window (a pseudo console, Windows 10 1809), for the tests:
 *
 *   win_console [--terminal] [--shared] [--screen FILE] COMMAND LINE
 *
 * The command has our standard handles; with --terminal it has the console's. With --shared we sit at its console
 * ourselves, as a shell does. What the console shows goes to FILE. Lines of our standard input tell what to do:
 *
 *   ctrl-c      the key          ctrl-break   the event, to everybody at the console
 *   close       the console goes away         kill   ends the command alone, at once
 *   list        prints "pids N ...": the command and all that it has started
 *   type TEXT   keys             quit         ends whatever still runs, and us
 *
 * Prints "pid N" at the start and "exit N" when the command has ended. The end of the input is as good as nothing: we
 * end after the command then.
 */
#include <windows.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* consoleapi.h, SDK 10.0.17763; looked up, as the import libraries of some toolchains lack them. */
typedef HRESULT(WINAPI *create_console)(COORD size, HANDLE in, HANDLE out, DWORD flags, void **console);
typedef void(WINAPI *close_console)(void *console);

enum { ATTRIBUTE_PSEUDOCONSOLE = 0x00020016 }; /* winbase.h, PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE */

typedef struct command {
    void *console;
    close_console close;
    HANDLE keys, screen, process, job;
    FILE *shown;
    DWORD pid;
    int terminal, shared;
} command;

static BOOL WINAPI ignore(DWORD type)
{
    return type == CTRL_C_EVENT || type == CTRL_BREAK_EVENT;
}

static int failed(const char *what)
{
    fprintf(stderr, "win_console: %s: error %lu\n", what, GetLastError());
    return 1;
}

static DWORD WINAPI read_screen(void *baton)
{
    command *c = baton;
    char bytes[4096];
    DWORD got;
    while (ReadFile(c->screen, bytes, sizeof bytes, &got, NULL) && got) {
        if (c->shown) {
            fwrite(bytes, 1, got, c->shown);
            fflush(c->shown);
        }
    }
    return 0;
}

static DWORD WINAPI report_end(void *baton)
{
    command *c = baton;
    DWORD code = 0;
    WaitForSingleObject(c->process, INFINITE);
    GetExitCodeProcess(c->process, &code);
    printf("exit %lu\n", code);
    fflush(stdout);
    return 0;
}

static int open_console(command *c)
{
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
    create_console create = NULL;
    HANDLE in, out;
    *(void **)&create = (void *)(uintptr_t)GetProcAddress(kernel, "CreatePseudoConsole");
    *(void **)&c->close = (void *)(uintptr_t)GetProcAddress(kernel, "ClosePseudoConsole");
    if (!create || !c->close || !CreatePipe(&in, &c->keys, NULL, 0) || !CreatePipe(&c->screen, &out, NULL, 0)) {
        return failed("console");
    }
    COORD size = {100, 30};
    if (create(size, in, out, 0, &c->console) != S_OK) {
        return failed("CreatePseudoConsole");
    }
    CloseHandle(in);
    CloseHandle(out);
    HANDLE thread = CreateThread(NULL, 0, read_screen, c, 0, NULL);
    return thread ? !CloseHandle(thread) : failed("thread");
}

static int start(command *c, wchar_t *line)
{
    STARTUPINFOEXW info;
    PROCESS_INFORMATION started;
    SIZE_T size = 0;
    memset(&info, 0, sizeof info);
    info.StartupInfo.cb = sizeof info;
    info.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    if (!c->terminal) {
        info.StartupInfo.hStdInput =
            CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
        info.StartupInfo.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
        info.StartupInfo.hStdError = GetStdHandle(STD_ERROR_HANDLE);
        SetHandleInformation(info.StartupInfo.hStdInput, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
        SetHandleInformation(info.StartupInfo.hStdOutput, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
        SetHandleInformation(info.StartupInfo.hStdError, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    }
    InitializeProcThreadAttributeList(NULL, 1, 0, &size);
    info.lpAttributeList = malloc(size);
    if (!info.lpAttributeList || !InitializeProcThreadAttributeList(info.lpAttributeList, 1, 0, &size) ||
        !UpdateProcThreadAttribute(info.lpAttributeList, 0, ATTRIBUTE_PSEUDOCONSOLE, c->console, sizeof c->console,
                                   NULL, NULL)) {
        return failed("attributes");
    }
    c->job = CreateJobObjectW(NULL, NULL);
    if (!CreateProcessW(NULL, line, NULL, NULL, !c->terminal, CREATE_SUSPENDED | EXTENDED_STARTUPINFO_PRESENT, NULL,
                        NULL, &info.StartupInfo, &started)) {
        return failed("CreateProcess");
    }
    if (!c->job || !AssignProcessToJobObject(c->job, started.hProcess)) {
        TerminateProcess(started.hProcess, 1);
        return failed("job");
    }
    c->process = started.hProcess;
    c->pid = started.dwProcessId;
    ResumeThread(started.hThread);
    CloseHandle(started.hThread);
    printf("pid %lu\n", c->pid);
    fflush(stdout);
    return 0;
}

/* We come to the command's console, for a moment or for good. */
static void come(const command *c)
{
    FreeConsole();
    if (!AttachConsole(c->pid)) {
        failed("AttachConsole");
    }
    SetConsoleCtrlHandler(ignore, TRUE);
}

static void list(const command *c)
{
    struct {
        JOBOBJECT_BASIC_PROCESS_ID_LIST ids;
        ULONG_PTR room[255];
    } members;
    memset(&members, 0, sizeof members);
    if (!QueryInformationJobObject(c->job, JobObjectBasicProcessIdList, &members, sizeof members, NULL)) {
        failed("list");
        return;
    }
    printf("pids");
    for (DWORD i = 0; i < members.ids.NumberOfProcessIdsInList && i < 256; i++) {
        printf(" %llu", (unsigned long long)members.ids.ProcessIdList[i]);
    }
    printf("\n");
    fflush(stdout);
}

static void press(const command *c, const char *keys)
{
    DWORD put;
    if (!WriteFile(c->keys, keys, (DWORD)strlen(keys), &put, NULL)) {
        failed("keys");
    }
}

static void send_break(const command *c)
{
    if (!c->shared) {
        come(c);
    }
    if (!GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, 0)) {
        failed("GenerateConsoleCtrlEvent");
    }
    if (!c->shared) {
        Sleep(100); /* our own share */
        FreeConsole();
    }
}

/* 1: we shall end. */
static int obey(command *c, const char *word)
{
    if (strcmp(word, "ctrl-c") == 0) {
        press(c, "\003");
    } else if (strcmp(word, "ctrl-break") == 0) {
        send_break(c);
    } else if (strcmp(word, "close") == 0 && c->console) {
        c->close(c->console);
        c->console = NULL;
    } else if (strcmp(word, "kill") == 0) {
        TerminateProcess(c->process, 9);
    } else if (strcmp(word, "list") == 0) {
        list(c);
    } else if (strncmp(word, "type ", 5) == 0) {
        press(c, word + 5);
    } else if (strcmp(word, "quit") == 0) {
        return 1;
    } else {
        fprintf(stderr, "win_console: what is '%s'?\n", word);
    }
    return 0;
}

/* Behind the next word of a command line; the word may stand between quotes. */
static wchar_t *skip_word(wchar_t *at)
{
    int quoted = 0;
    for (; *at && (quoted || (*at != L' ' && *at != L'\t')); at++) {
        quoted ^= *at == L'"';
    }
    while (*at == L' ' || *at == L'\t') {
        at++;
    }
    return at;
}

static int is_word(const wchar_t *at, const wchar_t *word)
{
    size_t len = wcslen(word);
    return wcsncmp(at, word, len) == 0 && (at[len] == L' ' || at[len] == 0);
}

static wchar_t *take_options(command *c, wchar_t *at)
{
    for (;;) {
        if (is_word(at, L"--terminal")) {
            c->terminal = 1;
        } else if (is_word(at, L"--shared")) {
            c->shared = 1;
        } else if (is_word(at, L"--screen")) {
            wchar_t name[MAX_PATH];
            at = skip_word(at);
            wchar_t *end = skip_word(at);
            size_t len = (size_t)(end - at);
            while (len && (at[len - 1] == L' ' || at[len - 1] == L'"')) {
                len--;
            }
            at += *at == L'"' && len ? (len--, 1) : 0;
            if (len < MAX_PATH) {
                wmemcpy(name, at, len);
                name[len] = 0;
                c->shown = _wfopen(name, L"wb");
            }
            at = end;
            continue;
        } else {
            return at;
        }
        at = skip_word(at);
    }
}

int main(void)
{
    static command c;
    char word[1024];
    wchar_t *line = take_options(&c, skip_word(GetCommandLineW()));
    if (!*line) {
        fprintf(stderr, "usage: win_console [--terminal] [--shared] [--screen FILE] COMMAND LINE\n");
        return 64;
    }
    if (open_console(&c) != 0 || start(&c, line) != 0) {
        return 1;
    }
    if (c.shared) {
        come(&c);
    }
    HANDLE end = CreateThread(NULL, 0, report_end, &c, 0, NULL);
    int quit = 0;
    while (!quit && fgets(word, sizeof word, stdin)) {
        word[strcspn(word, "\r\n")] = 0;
        quit = obey(&c, word);
    }
    if (quit) {
        TerminateJobObject(c.job, 9);
    }
    if (end) {
        WaitForSingleObject(end, INFINITE);
    }
    return 0;
}
