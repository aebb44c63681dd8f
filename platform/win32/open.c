/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, identity, closing, and which right is missing. */
#include "platform/win32/tracee.h" /* brings windows.h, which the next ones need */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* VirtualQueryEx and the list of modules want PROCESS_QUERY_INFORMATION, ReadProcessMemory PROCESS_VM_READ, waiting for
   the end SYNCHRONIZE (Win32, "Process Security and Access Rights"). None of them lets us change anything. */
enum { READ_RIGHTS = PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | SYNCHRONIZE };

int au__win32_gone(win32_proc *wp)
{
    if (!wp->gone) {
        wp->gone = WaitForSingleObject(wp->handle, 0) == WAIT_OBJECT_0;
    }
    return wp->gone;
}

au_error *au__win32_error(win32_proc *wp, DWORD code, const char *what)
{
    char text[256];
    if (au__win32_gone(wp)) {
        return au_error_gone();
    }
    if (code == ERROR_NOT_ENOUGH_MEMORY) {
        return au_error_memory();
    }
    au_errcode kind = code == ERROR_ACCESS_DENIED ? AU_ERR_PERMISSION : AU_ERR_OS;
    return au_error_cause(
        au_error_create(kind, (int)code, "Cannot read the %s of process %" PRId64, what, wp->proc.pid), "%s",
        au__win32_error_text(code, text, sizeof text));
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

/* Switches SeDebugPrivilege on or back. 0 if that is done: an account may not have it (Win32, AdjustTokenPrivileges).
 */
static int switch_debug_privilege(HANDLE token, const TOKEN_PRIVILEGES *to, TOKEN_PRIVILEGES *before)
{
    DWORD len = sizeof *before;
    return AdjustTokenPrivileges(token, FALSE, (TOKEN_PRIVILEGES *)(uintptr_t)to, sizeof *before, before,
                                 before ? &len : NULL) &&
                   GetLastError() == ERROR_SUCCESS
               ? 0
               : -1;
}

static HANDLE open_privileged(DWORD pid, DWORD access, DWORD *code)
{
    HANDLE token, handle = NULL;
    TOKEN_PRIVILEGES wanted = {.PrivilegeCount = 1, .Privileges = {{.Attributes = SE_PRIVILEGE_ENABLED}}}, before;
    if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token)) {
        return NULL;
    }
    if (LookupPrivilegeValueW(NULL, L"SeDebugPrivilege", &wanted.Privileges[0].Luid) &&
        switch_debug_privilege(token, &wanted, &before) == 0) {
        handle = OpenProcess(access, FALSE, pid);
        if (!handle) {
            *code = GetLastError();
        }
        (void)AdjustTokenPrivileges(token, FALSE, &before, 0, NULL, NULL);
    }
    CloseHandle(token);
    return handle;
}

HANDLE au__win32_open_process(DWORD pid, DWORD access, DWORD *code)
{
    HANDLE handle = OpenProcess(access, FALSE, pid);
    if (!handle) {
        *code = GetLastError();
        if (*code == ERROR_ACCESS_DENIED) {
            handle = open_privileged(pid, access, code);
        }
    }
    if (handle && GetProcessId(handle) != pid) { /* the two lowest bits of a number are not looked at by the system */
        CloseHandle(handle);
        handle = NULL;
        *code = ERROR_INVALID_PARAMETER;
    }
    return handle;
}

/* The owner of a process, for free(); NULL if that is not told. */
static TOKEN_USER *owner_of(HANDLE process)
{
    HANDLE token;
    TOKEN_USER *user = NULL;
    DWORD len = 0;
    if (OpenProcessToken(process, TOKEN_QUERY, &token)) {
        GetTokenInformation(token, TokenUser, NULL, 0, &len);
        user = len ? malloc(len) : NULL;
        if (user && !GetTokenInformation(token, TokenUser, user, len, &len)) {
            free(user);
            user = NULL;
        }
        CloseHandle(token);
    }
    return user;
}

static int is_elevated(HANDLE process)
{
    HANDLE token;
    TOKEN_ELEVATION elevation = {0};
    DWORD len;
    int known = OpenProcessToken(process, TOKEN_QUERY, &token);
    if (known) {
        (void)GetTokenInformation(token, TokenElevation, &elevation, sizeof elevation, &len);
        CloseHandle(token);
    }
    return known && elevation.TokenIsElevated != 0;
}

void au__win32_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    (void)sys;
    DWORD code = 0;
    *out = (au_explanation){.right = AU_RIGHT_UNKNOWN, .uid = -1, .is_root = is_elevated(GetCurrentProcess())};
    if (pid <= 0 || pid > UINT32_MAX) {
        return;
    }
    HANDLE handle = au__win32_open_process((DWORD)pid, READ_RIGHTS, &code);
    if (handle) {
        if (WaitForSingleObject(handle, 0) != WAIT_OBJECT_0) {
            out->right = AU_RIGHT_NONE_MISSING;
        }
        CloseHandle(handle);
        return;
    }
    if (code != ERROR_ACCESS_DENIED) {
        return;
    }
    out->right = out->is_root ? AU_RIGHT_PROTECTED : AU_RIGHT_ELEVATION;
    handle = au__win32_open_process((DWORD)pid, PROCESS_QUERY_LIMITED_INFORMATION, &code);
    if (handle) {
        TOKEN_USER *theirs = owner_of(handle), *ours = owner_of(GetCurrentProcess());
        if (theirs && ours && !EqualSid(theirs->User.Sid, ours->User.Sid) && !out->is_root) {
            out->right = AU_RIGHT_OTHER_USER;
        }
        free(theirs);
        free(ours);
        CloseHandle(handle);
    }
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static au_error *cannot_attach(au_errcode code, DWORD os_code, au_pid pid, const char *cause)
{
    return au_error_cause(au_error_create(code, (int)os_code, "Cannot attach to process %" PRId64, pid), "%s", cause);
}

/* The process that has a thread of that number; 0: none. */
static DWORD owner_of_thread(au_pid number)
{
    DWORD owner = 0;
    HANDLE thread =
        number > 0 && number <= UINT32_MAX ? OpenThread(THREAD_QUERY_LIMITED_INFORMATION, FALSE, (DWORD)number) : NULL;
    if (thread) {
        owner = GetThreadId(thread) == (DWORD)number ? GetProcessIdOfThread(thread) : 0;
        CloseHandle(thread);
    }
    return owner;
}

static au_error *not_there(au_pid pid)
{
    DWORD owner = owner_of_thread(pid);
    if (owner && owner != pid) {
        char cause[80];
        snprintf(cause, sizeof cause, "it is a thread of process %lu", owner);
        return au_error_hint(cannot_attach(AU_ERR_OS, ERROR_INVALID_PARAMETER, pid, cause), "use -p %lu", owner);
    }
    return au_error_hint(cannot_attach(AU_ERR_OS, ERROR_INVALID_PARAMETER, pid, "there is no process of that number"),
                         "look for the right one with: tasklist /fi \"imagename eq python.exe\"");
}

static au_error *denied(au_sys *sys, au_pid pid)
{
    au_explanation why;
    au__win32_explain(sys, pid, &why);
    au_error *error = au_error_create(AU_ERR_PERMISSION, ERROR_ACCESS_DENIED,
                                      "Insufficient permissions to read process %" PRId64, pid);
    switch (why.right) {
    case AU_RIGHT_OTHER_USER:
        return au_error_hint(au_error_cause(error, "it belongs to another user"),
                             "run austin from a console that was started with 'Run as administrator'");
    case AU_RIGHT_PROTECTED:
        return au_error_hint(au_error_cause(error, "the system protects it from everybody, administrators included"),
                             "profile a program that is no part of the system or of its security software");
    default:
        return au_error_hint(au_error_cause(error, "it runs with more rights than austin"),
                             "run austin from a console that was started with 'Run as administrator'");
    }
}

/* 4 for a 32-bit program on a 64-bit system (Win32, IsWow64Process2; the older call where that is not there). */
static uint32_t pointer_bytes(HANDLE handle)
{
    const win32_calls *calls = au__win32_calls();
    USHORT machine = IMAGE_FILE_MACHINE_UNKNOWN, native = 0;
    BOOL emulated = FALSE;
    if (calls->is_wow64_process2 && calls->is_wow64_process2(handle, &machine, &native)) {
        return machine == IMAGE_FILE_MACHINE_I386 || machine == IMAGE_FILE_MACHINE_ARMNT ? 4 : 8;
    }
    return IsWow64Process(handle, &emulated) && emulated ? 4 : 8;
}

/* Where the executable was loaded: PEB.ImageBaseAddress (winternl.h: Reserved3[1], 16 bytes into a 64-bit PEB). */
static au_addr image_base(win32_proc *wp)
{
    struct {
        void *exit_status, *peb;
        ULONG_PTR rest[4];
    } basic = {0}; /* PROCESS_BASIC_INFORMATION, class 0 */
    const win32_calls *calls = au__win32_calls();
    au_addr base = 0;
    if (!calls->query_process || calls->query_process(wp->handle, 0, &basic, sizeof basic, NULL) < 0 || !basic.peb ||
        au__win32_read(&wp->proc, (uintptr_t)basic.peb + 16, &base, sizeof base) != AU_OK) {
        return 0;
    }
    return base;
}

static au_error *bind_to(au_sys *sys, win32_proc *wp)
{
    au_pid pid = wp->proc.pid;
    DWORD code = 0;
    char text[256];
    wp->handle = au__win32_open_process((DWORD)pid, READ_RIGHTS, &code);
    if (!wp->handle) {
        switch (code) {
        case ERROR_INVALID_PARAMETER:
            return not_there(pid);
        case ERROR_ACCESS_DENIED:
            return denied(sys, pid);
        default:
            return cannot_attach(AU_ERR_OS, code, pid, au__win32_error_text(code, text, sizeof text));
        }
    }
    FILETIME created, ended, kernel, user;
    if (au__win32_gone(wp) || !GetProcessTimes(wp->handle, &created, &ended, &kernel, &user)) {
        return cannot_attach(AU_ERR_OS, ERROR_INVALID_PARAMETER, pid, "the process has ended");
    }
    wp->created = (LONGLONG)((uint64_t)created.dwHighDateTime << 32 | created.dwLowDateTime);
    wp->pointer_bytes = pointer_bytes(wp->handle);
    /* The right to read is proven by reading. A process that is just starting may have no PEB to show yet. */
    wp->image_base = image_base(wp);
    if (!wp->image_base && au__win32_gone(wp)) {
        return cannot_attach(AU_ERR_OS, ERROR_INVALID_PARAMETER, pid, "the process has ended");
    }
    if (!wp->image_base) {
        return cannot_attach(AU_ERR_BINARY, 0, pid, "it has no memory of its own (a part of the system, or ending)");
    }
    return NULL;
}

au_error *au__win32_proc_open(au_sys *sys, au_pid pid, unsigned want, au_proc **out)
{
    au__win32_init((win32_sys *)sys);
    if (pid <= 0 || pid > UINT32_MAX) {
        return not_there(pid);
    }
    if (want & AU_WANT_STOP) {
        return cannot_attach(AU_ERR_OS, ERROR_NOT_SUPPORTED, pid, "stopping is not available yet");
    }
    win32_proc *wp = calloc(1, sizeof *wp);
    if (!wp) {
        return au_error_memory();
    }
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    wp->proc.ops = sys->ops;
    wp->proc.pid = pid;
    wp->sys = (win32_sys *)sys;
    wp->page_bytes = info.dwPageSize;
    au_error *error = bind_to(sys, wp);
    if (error) {
        au__win32_proc_close(&wp->proc);
        return error;
    }
    *out = &wp->proc;
    return NULL;
}

void au__win32_proc_close(au_proc *proc)
{
    if (!proc) {
        return;
    }
    win32_proc *wp = win32_of(proc);
    au__win32_modules_forget(wp);
    au__win32_snapshot_free(&wp->snapshot);
    free(wp->seen);
    if (wp->handle) {
        CloseHandle(wp->handle);
    }
    free(wp);
}

au_outcome au__win32_status(au_proc *proc, au_proc_status *out)
{
    win32_proc *wp = win32_of(proc);
    *out = (au_proc_status){.state = au__win32_gone(wp) ? AU_EXITED : AU_RUNNING,
                            .pointer_bytes = wp->pointer_bytes,
                            .page_bytes = wp->page_bytes,
                            .start_time_ns = au__win32_filetime_ns(wp->created)};
    return AU_OK;
}
