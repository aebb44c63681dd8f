/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading memory. ReadProcessMemory gives all or nothing: where a part is not readable it fails, with
 * ERROR_PARTIAL_COPY or ERROR_NOACCESS, and what was copied until then is not to be used (Win32, ReadProcessMemory).
 */
#include "platform/win32/tracee.h"

au_outcome au__win32_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    win32_proc *wp = win32_of(proc);
    SIZE_T got = 0;
    if (len == 0) {
        return AU_OK;
    }
    if (wp->gone) {
        return AU_GONE;
    }
    if (addr == 0 || addr > UINT64_MAX - len) {
        return au__win32_gone(wp) ? AU_GONE : AU_FAULT;
    }
    if (ReadProcessMemory(wp->handle, (const void *)(uintptr_t)addr, buf, len, &got) && got == len) {
        return AU_OK;
    }
    DWORD code = GetLastError();
    if (au__win32_gone(wp)) {
        return AU_GONE;
    }
    /* A process on its way out loses its memory before it is seen to have ended. */
    DWORD exit_code;
    if (code == ERROR_ACCESS_DENIED && GetExitCodeProcess(wp->handle, &exit_code) && exit_code == STILL_ACTIVE) {
        return AU_DENIED;
    }
    return AU_FAULT;
}

size_t au__win32_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    size_t good = 0;
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = au__win32_read(proc, pieces[i].addr, pieces[i].buf, pieces[i].len);
        good += pieces[i].outcome == AU_OK;
    }
    return good;
}
