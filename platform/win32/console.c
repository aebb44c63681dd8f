/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ends our run: Ctrl-C, Ctrl-Break, the end of the console, of the session, of the machine.
 *
 * The system calls a control handler in a thread that it makes for that (SetConsoleCtrlHandler, HandlerRoutine). When
 * the handler of a close, log-off or shutdown returns, the process is ended, so it waits for the main thread, which
 * finishes the stream and leaves by ExitProcess; after five seconds the system waits no longer.
 *
 * A process with user32.dll in it is told of the end of a session by messages to its windows and not by the handler
 * (SetConsoleCtrlHandler, remarks). So nothing that brings that library, such as shell32.dll, is linked or loaded.
 *
 * Who was started with Ctrl-C ignored (start /b, CREATE_NEW_PROCESS_GROUP) stays so, and so does a program that we
 * launch: the key was pressed for somebody else then. Ctrl-Break ends us in any case.
 */
#include <stdatomic.h>

#include "platform/win32/win32.h"

enum {
    LAST_MOMENTS_MS = 4500, /* the system's patience is 5 s */
    ECHO_MS = 500           /* until a Ctrl-C that we send ourselves has come back */
};

static atomic_int first; /* an au_ending */
static atomic_uint endings;
static atomic_int told;      /* by the console */
static atomic_int own_share; /* of an interrupt that we send ourselves: 1 is expected */
static HANDLE ending_event, echo_event, main_thread;

static void note(au_ending ending)
{
    int none = AU_END_NONE;
    atomic_compare_exchange_strong(&first, &none, (int)ending);
    atomic_fetch_add(&endings, 1u);
    if (ending_event) {
        SetEvent(ending_event);
    }
    au_sys *sys = au_platform_sys();
    sys->ops->wake(sys);
}

static void wait_for_main(void)
{
    if (main_thread) {
        WaitForSingleObject(main_thread, LAST_MOMENTS_MS);
    } else {
        Sleep(LAST_MOMENTS_MS);
    }
}

/* A service hears of every log-off, whoever it is (SetConsoleCtrlHandler, CTRL_LOGOFF_EVENT). */
static int is_service(void)
{
    DWORD session;
    return ProcessIdToSessionId(GetCurrentProcessId(), &session) && session == 0;
}

static BOOL WINAPI on_control(DWORD type)
{
    switch (type) {
    case CTRL_C_EVENT:
        if (atomic_exchange(&own_share, 0)) {
            SetEvent(echo_event);
            return TRUE;
        }
        atomic_store(&told, 1);
        note(AU_END_INTERRUPT);
        return TRUE;
    case CTRL_BREAK_EVENT:
        atomic_store(&told, 1);
        note(AU_END_INTERRUPT);
        return TRUE;
    case CTRL_LOGOFF_EVENT:
        if (is_service()) {
            return TRUE;
        }
        break;
    case CTRL_CLOSE_EVENT:
    case CTRL_SHUTDOWN_EVENT:
        break;
    default:
        return FALSE;
    }
    note(AU_END_TERMINATE);
    wait_for_main();
    return TRUE;
}

/* ---- what others ask ---------------------------------------------------------------------------------------- */

void au_signals_init(void)
{
    HANDLE self = GetCurrentProcess();
    ending_event = CreateEventW(NULL, FALSE, FALSE, NULL);
    echo_event = CreateEventW(NULL, FALSE, FALSE, NULL);
    if (!DuplicateHandle(self, GetCurrentThread(), self, &main_thread, SYNCHRONIZE, FALSE, 0)) {
        main_thread = NULL;
    }
    SetConsoleCtrlHandler(on_control, TRUE);
}

au_ending au_signals_ending(void)
{
    return (au_ending)atomic_load(&first);
}

int au_signals_number(void)
{
    return 0;
}

unsigned au_signals_count(void)
{
    return atomic_load(&endings);
}

int au__win32_console_has_told(void)
{
    return atomic_load(&told);
}

HANDLE au__win32_ending_event(void)
{
    return ending_event;
}

int au__win32_send_interrupt(void)
{
    if (!echo_event) {
        return 1;
    }
    atomic_store(&own_share, 1);
    int came = GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) && WaitForSingleObject(echo_event, ECHO_MS) == WAIT_OBJECT_0;
    if (!came) {
        /* Not to swallow the next one, which is somebody's. It may also have come just now. */
        came = atomic_exchange(&own_share, 0) == 0;
    }
    return !came;
}
