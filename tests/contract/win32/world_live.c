/* SPDX-License-Identifier: Apache-2.0 */
/* A live process: this program, started again as a tracee. */
#include <windows.h>

#include <stdlib.h>
#include <wchar.h>

#include "platform/platform.h"
#include "tests/contract/host.h"
#include "tests/contract/win32/win32.h"

typedef struct live {
    HANDLE process, command, answer;
    tracee_facts facts;
} live;

static void shut_handle(HANDLE *handle)
{
    if (*handle) {
        CloseHandle(*handle);
        *handle = NULL;
    }
}

/** A pipe one end of which a child inherits. */
static int make_pipe(HANDLE *ours, HANDLE *theirs, int we_write)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    HANDLE from, to;
    if (!CreatePipe(&from, &to, &inherited, 0)) {
        return -1;
    }
    *ours = we_write ? to : from;
    *theirs = we_write ? from : to;
    return SetHandleInformation(*ours, HANDLE_FLAG_INHERIT, 0) ? 0 : -1;
}

static int start(live *l, DWORD *pid)
{
    wchar_t path[WIN32_PATH_CHARS], line[WIN32_PATH_CHARS + 64];
    HANDLE in = NULL, out = NULL;
    if (own_path(path) != 0 || make_pipe(&l->command, &in, 1) != 0 || make_pipe(&l->answer, &out, 0) != 0) {
        return -1;
    }
    _snwprintf(line, sizeof line / sizeof line[0], L"\"%ls\" " TRACEE_ARGUMENT, path);
    STARTUPINFOW how = {.cb = sizeof how,
                        .dwFlags = STARTF_USESTDHANDLES,
                        .hStdInput = in,
                        .hStdOutput = out,
                        .hStdError = GetStdHandle(STD_ERROR_HANDLE)};
    PROCESS_INFORMATION info;
    BOOL started = CreateProcessW(path, line, NULL, NULL, TRUE, 0, NULL, NULL, &how, &info);
    shut_handle(&in);
    shut_handle(&out);
    if (!started) {
        return -1;
    }
    CloseHandle(info.hThread);
    l->process = info.hProcess;
    *pid = info.dwProcessId;
    DWORD n;
    return ReadFile(l->answer, &l->facts, sizeof l->facts, &n, NULL) && n == sizeof l->facts ? 0 : -1;
}

int tracee_told(world *w, char what)
{
    live *l = w->own;
    char answer;
    DWORD n;
    return WriteFile(l->command, &what, 1, &n, NULL) && ReadFile(l->answer, &answer, 1, &n, NULL) && n == 1 ? answer
                                                                                                            : -1;
}

au_addr tracee_trap(const world *w)
{
    const live *l = w->own;
    return l->facts.trap;
}

static void live_poke(world *w)
{
    tracee_told(w, TRACEE_POKE);
}

static void live_end_thread(world *w)
{
    tracee_told(w, TRACEE_END_THREAD);
}

/** NtSuspendProcess and NtResumeProcess of ntdll: no documented call stops all threads of a process at once. */
static void call_ntdll(const char *name, HANDLE process)
{
    LONG(NTAPI * call)(HANDLE process);
    *(FARPROC *)&call = GetProcAddress(GetModuleHandleW(L"ntdll.dll"), name);
    if (call) {
        call(process);
    }
}

static void live_stop(world *w)
{
    live *l = w->own;
    call_ntdll("NtSuspendProcess", l->process);
    Sleep(5);
}

static void live_go_on(world *w)
{
    live *l = w->own;
    call_ntdll("NtResumeProcess", l->process);
}

static void end_process(live *l)
{
    if (l->process) {
        TerminateProcess(l->process, 1);
        WaitForSingleObject(l->process, INFINITE);
        shut_handle(&l->process);
    }
}

static void live_end(world *w)
{
    end_process(w->own);
}

static DWORD WINAPI end_at_once(void *unused)
{
    (void)unused;
    return 0;
}

/**
 * Processes and threads take their numbers from one table, and the number of a process is free when nobody has a handle
 * to it any more (Win32, "Process Handles and Identifiers"). As many threads as come and go here are given its number
 * if the port does not hold the process, and none is if it does; then there is nobody who could be mistaken for it.
 */
static int live_reuse(world *w)
{
    enum { NUMBERS = 1500 }; /* about a thousand pass until a number comes again */
    end_process(w->own);
    for (int i = 0; i < NUMBERS; i++) {
        DWORD tid;
        HANDLE thread = CreateThread(NULL, 65536, end_at_once, NULL, STACK_SIZE_PARAM_IS_A_RESERVATION, &tid);
        if (!thread) {
            return -1;
        }
        WaitForSingleObject(thread, INFINITE);
        CloseHandle(thread);
        if ((au_pid)tid == w->pid) {
            break;
        }
    }
    return 0;
}

/** Not GetProcessHandleCount: some systems answer 0. Handles are multiples of 4, and the lowest free one is taken. */
static size_t live_handles(world *w)
{
    enum { HANDLES = 4096 };
    size_t n = 0;
    (void)w;
    for (uintptr_t i = 1; i < HANDLES; i++) {
        DWORD flags;
        n += GetHandleInformation((HANDLE)(i * 4), &flags) != 0;
    }
    return n;
}

static void live_destroy(world *w)
{
    live *l = w->own;
    end_process(l);
    shut_handle(&l->command);
    shut_handle(&l->answer);
    free(l);
}

int world_live(world *w)
{
    live *l = calloc(1, sizeof *l);
    DWORD pid = 0;
    au_sys *sys = au_platform_sys();
    sys->ops->now(sys); /* it makes what it holds for good, so that no count of handles is of before */
    if (!l || start(l, &pid) != 0) {
        return -1;
    }
    uint8_t byte;
    SIZE_T got;
    int serves_all = ReadProcessMemory(l->process, (void *)(uintptr_t)l->facts.guarded, &byte, 1, &got) != 0;
    Sleep(5); /* its main thread goes to sleep on the pipe */
    *w = (world){.sys = sys,
                 .pid = pid,
                 .parent = GetCurrentProcessId(),
                 .is_real = 1,
                 .data = l->facts.data,
                 .hole = l->facts.data + WORLD_DATA,
                 .guarded = l->facts.guarded,
                 .serves_all = serves_all, /* Wine reads as a debugger of the host does */
                 .main = l->facts.main,
                 .spinner = l->facts.spinner,
                 .sleeper = l->facts.sleeper,
                 .extra = l->facts.extra,
                 .spinner_pthread = (uint64_t)l->facts.spinner,
                 .sleeper_pthread = (uint64_t)l->facts.sleeper,
                 .sleeper_name = "contract-nm",
                 .symbol = "contract_marker",
                 .symbol_at = l->facts.symbol_at,
                 .magic = host_magic,
                 .strangers = 8, /* of the loader, which works in parallel while a program starts */
                 .poke = live_poke,
                 .end_thread = live_end_thread,
                 .stop = live_stop,
                 .go_on = live_go_on,
                 .end = live_end,
                 .reuse = live_reuse,
                 .handles = live_handles,
                 .destroy = live_destroy,
                 .own = l};
    return 0;
}
