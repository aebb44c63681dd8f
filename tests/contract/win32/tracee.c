/* SPDX-License-Identifier: Apache-2.0 */
/* The second process of a live world. It ends when the test does: its commands are over then. */
#include <windows.h>

#include <stdlib.h>

#include "tests/contract/host.h"
#include "tests/contract/win32/win32.h"

/* Times of threads are counted in clock ticks: of less than some of them nothing may be seen. */
enum { SEEN_CPU_MS = 40, SEEN_AT_MOST_MS = 10000 };

static tracee_facts facts;
static volatile LONG ready;
static HANDLE poked, done, end_extra;

static uint64_t own_cpu_ms(void)
{
    FILETIME created, ended, kernel, user;
    GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user);
    return ((uint64_t)kernel.dwLowDateTime + user.dwLowDateTime) / 10000;
}

/** Runs until that shows in the thread's time. */
static void use_cpu(void)
{
    uint64_t start = own_cpu_ms();
    ULONGLONG begun = GetTickCount64();
    while (own_cpu_ms() - start < SEEN_CPU_MS && GetTickCount64() - begun < SEEN_AT_MOST_MS) {
        for (volatile int i = 0; i < 100000; i++) {
        }
    }
}

static DWORD WINAPI spin(void *unused)
{
    (void)unused;
    facts.spinner = GetCurrentThreadId();
    InterlockedIncrement(&ready);
    for (volatile unsigned i = 0;; i++) {
    }
    return 0;
}

typedef HRESULT(WINAPI *set_description)(HANDLE thread, PCWSTR description); /* processthreadsapi.h, Windows 10 1607 */

static FARPROC of_kernel(const char *name)
{
    FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name);
    return found ? found : GetProcAddress(GetModuleHandleW(L"kernelbase.dll"), name);
}

static DWORD WINAPI sleep_on(void *unused)
{
    (void)unused;
    set_description describe;
    *(FARPROC *)&describe = of_kernel("SetThreadDescription");
    if (describe) {
        describe(GetCurrentThread(), L"contract-nm");
    }
    facts.sleeper = GetCurrentThreadId();
    use_cpu();
    InterlockedIncrement(&ready);
    while (WaitForSingleObject(poked, INFINITE) == WAIT_OBJECT_0) {
        use_cpu();
        SetEvent(done);
    }
    return 0;
}

static DWORD WINAPI wait_for_end(void *unused)
{
    (void)unused;
    facts.extra = GetCurrentThreadId();
    InterlockedIncrement(&ready);
    WaitForSingleObject(end_extra, INFINITE);
    return 0;
}

/**
 * A reservation, in it a page without rights, one that tells of its first touch, and at its end the data; behind that
 * is nothing. Reservations begin at multiples of 64 KiB (GetSystemInfo, dwAllocationGranularity). The place is where
 * nobody puts anything by himself, so that nothing else is near: Wine keeps free space among its own as memory that can
 * be read from outside.
 */
static int map_memory(void)
{
    uint8_t *room = NULL;
    for (uintptr_t at = (uintptr_t)1 << 40; !room && at < (uintptr_t)1 << 44; at *= 2) {
        room = VirtualAlloc((void *)at, 32 * WORLD_PAGE, MEM_RESERVE, PAGE_NOACCESS);
    }
    if (!room) {
        return -1;
    }
    uint8_t *data = room + 16 * WORLD_PAGE, *trap = room + 8 * WORLD_PAGE;
    if (!VirtualAlloc(room, WORLD_PAGE, MEM_COMMIT, PAGE_NOACCESS) ||
        !VirtualAlloc(trap, WORLD_PAGE, MEM_COMMIT, PAGE_READWRITE | PAGE_GUARD) ||
        !VirtualAlloc(data, WORLD_DATA, MEM_COMMIT, PAGE_READWRITE)) {
        return -1;
    }
    for (size_t i = 0; i < WORLD_DATA; i++) {
        data[i] = world_byte(i);
    }
    facts.data = (uintptr_t)data;
    facts.guarded = (uintptr_t)room;
    facts.trap = (uintptr_t)trap;
    return 0;
}

static char is_trap_set(void)
{
    MEMORY_BASIC_INFORMATION info;
    return VirtualQuery((void *)(uintptr_t)facts.trap, &info, sizeof info) == sizeof info &&
           (info.Protect & PAGE_GUARD) != 0;
}

/** The image of ntdll as the loader has laid it out, in memory of our own, which is what it looks like when a program
   is its own loader. */
static char unpack(void)
{
    const uint8_t *from = (const void *)GetModuleHandleW(L"ntdll.dll");
    const IMAGE_DOS_HEADER *dos = (const void *)from;
    const IMAGE_NT_HEADERS *headers = (const void *)(from + dos->e_lfanew);
    size_t size = headers->OptionalHeader.SizeOfImage;
    uint8_t *to = VirtualAlloc((void *)(uintptr_t)TRACEE_UNPACKED_AT, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    DWORD old;
    for (size_t at = 0; to && at < size; at += WORLD_PAGE) { /* what cannot be read stays zero */
        size_t len = size - at < WORLD_PAGE ? size - at : WORLD_PAGE;
        (void)ReadProcessMemory(GetCurrentProcess(), from + at, to + at, len, NULL);
    }
    return to && VirtualProtect(to + WORLD_PAGE, WORLD_PAGE, PAGE_EXECUTE_READ, &old);
}

static char obey(char what, HANDLE extra)
{
    switch (what) {
    case TRACEE_POKE:
        SetEvent(poked);
        WaitForSingleObject(done, INFINITE);
        Sleep(5);
        return 1;
    case TRACEE_END_THREAD:
        SetEvent(end_extra);
        WaitForSingleObject(extra, INFINITE);
        return 1;
    case TRACEE_IS_TRAP_SET:
        return is_trap_set();
    case TRACEE_LOAD:
        return LoadLibraryW(L"version.dll") != NULL;
    case TRACEE_UNPACK:
        return unpack();
    default:
        ExitProcess(3);
    }
}

_Noreturn void tracee(void)
{
    HANDLE in = GetStdHandle(STD_INPUT_HANDLE), out = GetStdHandle(STD_OUTPUT_HANDLE);
    poked = CreateEventW(NULL, FALSE, FALSE, NULL);
    done = CreateEventW(NULL, FALSE, FALSE, NULL);
    end_extra = CreateEventW(NULL, TRUE, FALSE, NULL);
    HANDLE extra = CreateThread(NULL, 0, wait_for_end, NULL, 0, NULL);
    DWORD n;
    char what;
    if (!poked || !done || !end_extra || !extra || !CreateThread(NULL, 0, spin, NULL, 0, NULL) ||
        !CreateThread(NULL, 0, sleep_on, NULL, 0, NULL) || map_memory() != 0) {
        ExitProcess(1);
    }
    while (ready != 3) {
        Sleep(1);
    }
    facts.main = GetCurrentThreadId();
    facts.symbol_at = host_marker();
    if (!WriteFile(out, &facts, sizeof facts, &n, NULL)) {
        ExitProcess(2);
    }
    while (ReadFile(in, &what, 1, &n, NULL) && n == 1) {
        char answer = obey(what, extra);
        WriteFile(out, &answer, 1, &n, NULL);
    }
    ExitProcess(0);
}
