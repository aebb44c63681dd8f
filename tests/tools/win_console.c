/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command at a console of its own that has no window (CREATE_NO_WINDOW), for the tests:
 *
 *   win_console [--shared] COMMAND LINE
 *
 * The command has our standard handles, but reads nothing. With --shared we sit at its console ourselves, as a shell
 * does. Lines of our standard input tell what to do:
 *
 *   ctrl-c, ctrl-break           the event, to everybody at the console
 *   close, logoff, shutdown      likewise; each process runs its handlers for it, as the system would have it
 *   kill    ends the command alone, at once
 *   list    prints "pids N ...": the command and all that it has started
 *   quit    ends whatever still runs, and us
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

enum { ATTACH_TRIES = 100, ATTACH_PAUSE_MS = 20 };

typedef struct command {
    HANDLE process, job;
    DWORD pid;
    int shared;
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

static HANDLE hand_on(HANDLE handle)
{
    SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    return handle;
}

static int start(command *c, wchar_t *line)
{
    STARTUPINFOW info;
    PROCESS_INFORMATION started;
    memset(&info, 0, sizeof info);
    info.cb = sizeof info;
    info.dwFlags = STARTF_USESTDHANDLES;
    info.hStdInput =
        hand_on(CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL));
    info.hStdOutput = hand_on(GetStdHandle(STD_OUTPUT_HANDLE));
    info.hStdError = hand_on(GetStdHandle(STD_ERROR_HANDLE));
    SetHandleInformation(GetStdHandle(STD_INPUT_HANDLE), HANDLE_FLAG_INHERIT, 0); /* our orders */
    c->job = CreateJobObjectW(NULL, NULL);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED | CREATE_NO_WINDOW, NULL, NULL, &info,
                        &started)) {
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
    int tries = ATTACH_TRIES;
    FreeConsole();
    while (!AttachConsole(c->pid) && --tries) { /* it may have none yet */
        Sleep(ATTACH_PAUSE_MS);
    }
    if (!tries) {
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

/*
 * Who ends a console, a session or the machine has the system start a thread in each process, at CtrlRoutine of
 * kernel32.dll, which calls the handlers. It is at one address in all processes.
 */
static void run_handlers(DWORD event)
{
    DWORD pids[256];
    DWORD count = GetConsoleProcessList(pids, 256);
    LPTHREAD_START_ROUTINE routine = NULL;
    *(void **)&routine = (void *)(uintptr_t)GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "CtrlRoutine");
    if (!routine) {
        *(void **)&routine = (void *)(uintptr_t)GetProcAddress(GetModuleHandleW(L"kernelbase.dll"), "CtrlRoutine");
    }
    if (!routine || count == 0 || count > 256) {
        failed("CtrlRoutine");
        return;
    }
    for (DWORD i = 0; i < count; i++) {
        HANDLE process = pids[i] != GetCurrentProcessId() ? OpenProcess(PROCESS_ALL_ACCESS, FALSE, pids[i]) : NULL;
        HANDLE thread =
            process ? CreateRemoteThread(process, NULL, 0, routine, (void *)(uintptr_t)event, 0, NULL) : NULL;
        if (thread) {
            CloseHandle(thread);
        } else if (pids[i] != GetCurrentProcessId()) {
            failed("CreateRemoteThread");
        }
        if (process) {
            CloseHandle(process);
        }
    }
}

/* Not the end of a console. Wine 8 refuses Ctrl-Break, and Wine 10 ends a thread of each process instead. */
static int can_generate(DWORD event)
{
    int wine = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
    return event == CTRL_C_EVENT || (event == CTRL_BREAK_EVENT && !wine);
}

static void send_event(const command *c, DWORD event)
{
    if (!c->shared) {
        come(c);
    }
    if (!can_generate(event) || !GenerateConsoleCtrlEvent(event, 0)) {
        run_handlers(event);
    }
    if (!c->shared) {
        Sleep(100); /* our own share */
        FreeConsole();
    }
}

/* 1: we shall end. */
static int obey(command *c, const char *word)
{
    static const struct {
        const char *name;
        DWORD event;
    } events[] = {{"ctrl-c", CTRL_C_EVENT},
                  {"ctrl-break", CTRL_BREAK_EVENT},
                  {"close", CTRL_CLOSE_EVENT},
                  {"logoff", CTRL_LOGOFF_EVENT},
                  {"shutdown", CTRL_SHUTDOWN_EVENT}};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (strcmp(word, events[i].name) == 0) {
            send_event(c, events[i].event);
            return 0;
        }
    }
    if (strcmp(word, "kill") == 0) {
        TerminateProcess(c->process, 9);
    } else if (strcmp(word, "list") == 0) {
        list(c);
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

int main(void)
{
    static command c;
    char word[1024];
    wchar_t *line = skip_word(GetCommandLineW());
    if (wcsncmp(line, L"--shared ", 9) == 0) {
        c.shared = 1;
        line = skip_word(line);
    }
    if (!*line) {
        fprintf(stderr, "usage: win_console [--shared] COMMAND LINE\n");
        return 64;
    }
    if (start(&c, line) != 0) {
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
