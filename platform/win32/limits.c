/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own limits. There is none on open files worth raising. From Windows 11 on the system saves energy at the cost of
 * a process whose windows are hidden: its timers become coarse, and its threads go to slow cores. The sampler asks for
 * neither. Both are a matter of our own process and thread, which a program that we launch does not inherit.
 */
#include "platform/win32/win32.h"

/* processthreadsapi.h, SDK 10.0.22000; the headers of older ones lack some. */
typedef struct throttling {
    ULONG version; /* 1 */
    ULONG control; /* what is meant ... */
    ULONG state;   /* ... and whether it is on */
} throttling;

enum {
    PROCESS_POWER_THROTTLING = 4,       /* PROCESS_INFORMATION_CLASS, ProcessPowerThrottling */
    THREAD_POWER_THROTTLING = 3,        /* THREAD_INFORMATION_CLASS, ThreadPowerThrottling */
    THREAD_SPEED = 0x1,                 /* THREAD_POWER_THROTTLING_EXECUTION_SPEED */
    PROCESS_IGNORE_TIMER_RESOLUTION = 4 /* PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION */
};

typedef BOOL(WINAPI *set_information)(HANDLE of, int what, void *value, DWORD size);

void au_limits_raise(void)
{
    HMODULE kernel = GetModuleHandleW(L"kernel32.dll"); /* both: Windows 8 */
    set_information of_process = NULL, of_thread = NULL;
    if (kernel) {
        *(void **)&of_process = (void *)(uintptr_t)GetProcAddress(kernel, "SetProcessInformation");
        *(void **)&of_thread = (void *)(uintptr_t)GetProcAddress(kernel, "SetThreadInformation");
    }
    throttling timers = {1, PROCESS_IGNORE_TIMER_RESOLUTION, 0}, speed = {1, THREAD_SPEED, 0};
    if (of_process) {
        of_process(GetCurrentProcess(), PROCESS_POWER_THROTTLING, &timers, sizeof timers);
    }
    if (of_thread) {
        of_thread(GetCurrentThread(), THREAD_POWER_THROTTLING, &speed, sizeof speed);
    }
}

uint64_t au_memory_total(void)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}
