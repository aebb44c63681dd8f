/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time. sleep_until waits for a high-resolution waitable timer (CreateWaitableTimerExW, Windows 10 1803) or for the
 * event that `wake` sets. Where that timer is later than half a millisecond as a rule, be it that it cannot be had or
 * that the system serves it no better than an ordinary one, the last milliseconds are slept by NtDelayExecution, which
 * some systems serve better, and which nothing but the time ends.
 */
#include "platform/win32/tracee.h"

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 0x00000002 /* winbase.h, SDK 10.0.17134 */
#endif

enum {
    TOO_LATE_NS = 500000,
    UNEVENTFUL_NS = 20000000, /* a wake waits so long at most */
    MEAN_OF = 8
};

uint64_t au__win32_now(au_sys *sys)
{
    win32_sys *ws = (win32_sys *)sys;
    LARGE_INTEGER count;
    au__win32_init(ws);
    QueryPerformanceCounter(&count); /* never fails from Windows XP on */
    uint64_t value = (uint64_t)count.QuadPart, frequency = (uint64_t)ws->frequency;
    return value / frequency * 1000000000u + value % frequency * 1000000000u / frequency;
}

void au__win32_init(win32_sys *ws)
{
    if (ws->ready == 2) {
        return;
    }
    if (InterlockedCompareExchange(&ws->ready, 1, 0) != 0) {
        while (ws->ready != 2) {
            Sleep(0);
        }
        return;
    }
    LARGE_INTEGER frequency;
    QueryPerformanceFrequency(&frequency);
    ws->frequency = frequency.QuadPart;
    ws->event = CreateEventW(NULL, FALSE, FALSE, NULL);
    ws->timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    if (!ws->timer) {
        ws->timer = CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
    }
    ws->delays = ws->timer == NULL;
    InterlockedExchange(&ws->ready, 2);
}

/* Times of the system count 100 ns; negative ones are relative. Rounded up, so that nobody is back too early. */
static LARGE_INTEGER relative(uint64_t left_ns)
{
    LARGE_INTEGER due;
    due.QuadPart = -(LONGLONG)((left_ns > (uint64_t)INT64_MAX - 100 ? (uint64_t)INT64_MAX - 100 : left_ns) + 99) / 100;
    if (due.QuadPart == 0) {
        due.QuadPart = -1;
    }
    return due;
}

static void wait_for_timer(win32_sys *ws, uint64_t now, uint64_t deadline_ns)
{
    LARGE_INTEGER due = relative(deadline_ns - now);
    HANDLE both[2] = {ws->event, ws->timer};
    if (!SetWaitableTimer(ws->timer, &due, 0, NULL, NULL, FALSE)) {
        ws->delays = 1;
        return;
    }
    if (WaitForMultipleObjects(2, both, FALSE, INFINITE) != WAIT_OBJECT_0 + 1) {
        return;
    }
    int64_t late = (int64_t)(au__win32_now(&ws->sys) - deadline_ns);
    late = late < 0 ? 0 : late > 4 * TOO_LATE_NS ? 4 * TOO_LATE_NS : late; /* one pause of a busy machine says little */
    ws->late_ns += (late - ws->late_ns) / MEAN_OF;
    ws->delays = ws->late_ns > TOO_LATE_NS && au__win32_calls()->delay;
}

static void wait_by_delay(win32_sys *ws, uint64_t now, uint64_t deadline_ns)
{
    const win32_calls *calls = au__win32_calls();
    uint64_t left = deadline_ns - now;
    if (left > 2 * UNEVENTFUL_NS) {
        uint64_t ms = (left - UNEVENTFUL_NS) / 1000000;
        WaitForSingleObject(ws->event, ms > INT32_MAX ? INT32_MAX : (DWORD)ms);
        return;
    }
    LARGE_INTEGER due = relative(left);
    if (calls->delay) {
        calls->delay(FALSE, &due);
    } else {
        Sleep((DWORD)(left / 1000000) + 1);
    }
}

uint64_t au__win32_sleep_until(au_sys *sys, uint64_t deadline_ns)
{
    win32_sys *ws = (win32_sys *)sys;
    uint64_t now = au__win32_now(sys);
    for (;;) {
        if (InterlockedExchange(&ws->woken, 0) != 0 || now >= deadline_ns) {
            return now;
        }
        if (ws->delays) {
            wait_by_delay(ws, now, deadline_ns);
        } else {
            wait_for_timer(ws, now, deadline_ns);
        }
        now = au__win32_now(sys);
    }
}

void au__win32_wake(au_sys *sys)
{
    win32_sys *ws = (win32_sys *)sys;
    au__win32_init(ws);
    InterlockedExchange(&ws->woken, 1);
    SetEvent(ws->event);
}
