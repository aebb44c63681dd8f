/* SPDX-License-Identifier: Apache-2.0 */
/* Standard handles. They are looked up each time: nothing of the C runtime stands between us and the system. */
#include <fcntl.h>
#include <io.h>
#include <string.h>
#include <wchar.h>

#include "platform/win32/win32.h"

#ifndef ENABLE_VIRTUAL_TERMINAL_PROCESSING
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 0x0004 /* wincon.h, SDK 10.0.10586 */
#endif

enum {
    USUAL_WIDTH = 80,
    CONSOLE_PIECE = 4096,    /* bytes to a console in one call */
    FILE_PIECE = 1024 * 1024 /* ... to anything else */
};

static const DWORD standard[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};

/* NULL: there is none. */
static HANDLE handle_of(int fd)
{
    HANDLE handle = fd >= AU_FD_STDIN && fd <= AU_FD_STDERR ? GetStdHandle(standard[fd]) : NULL;
    return handle == INVALID_HANDLE_VALUE ? NULL : handle;
}

/*
 * A number that is no handle of ours could become one: of a file that we open. So could the numbers of the C runtime,
 * but nothing of ours opens a file by it.
 */
void au_standard_descriptors_init(void)
{
    for (int fd = AU_FD_STDIN; fd <= AU_FD_STDERR; fd++) {
        HANDLE handle = handle_of(fd);
        if (handle && GetFileType(handle) == FILE_TYPE_UNKNOWN) {
            SetStdHandle(standard[fd], NULL);
        }
    }
}

static int is_console(HANDLE handle)
{
    DWORD mode;
    return handle && GetConsoleMode(handle, &mode);
}

static int starts_with(const wchar_t *text, const wchar_t *start)
{
    return wcsncmp(text, start, wcslen(start)) == 0;
}

/*
 * The terminals of Cygwin and MSYS2 are pipes, known by their names: \msys-<digits>-pty<number>-to-master, -from-master
 * (winsup/cygwin, fhandler/pty.cc).
 */
static int is_pty(HANDLE handle)
{
    struct {
        FILE_NAME_INFO info;
        wchar_t room[256];
    } name;
    wchar_t text[256];
    memset(&name, 0, sizeof name);
    if (!handle || GetFileType(handle) != FILE_TYPE_PIPE ||
        !GetFileInformationByHandleEx(handle, FileNameInfo, &name, sizeof name)) {
        return 0;
    }
    size_t len = name.info.FileNameLength / sizeof(wchar_t);
    if (len >= sizeof text / sizeof text[0]) {
        return 0;
    }
    memcpy(text, name.info.FileName, len * sizeof(wchar_t));
    text[len] = 0;
    return (starts_with(text, L"\\msys-") || starts_with(text, L"\\cygwin-")) && wcsstr(text, L"-pty") &&
           (wcsstr(text, L"-to-master") || wcsstr(text, L"-from-master"));
}

int au_is_terminal(int fd)
{
    HANDLE handle = handle_of(fd);
    return is_console(handle) || is_pty(handle);
}

int au_terminal_width(int fd)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    HANDLE handle = handle_of(fd);
    if (handle && GetConsoleScreenBufferInfo(handle, &info) && info.srWindow.Right > info.srWindow.Left) {
        return info.srWindow.Right - info.srWindow.Left + 1;
    }
    return USUAL_WIDTH;
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static int write_file(HANDLE handle, const char *at, size_t len)
{
    while (len) {
        DWORD put = 0;
        if (!WriteFile(handle, at, (DWORD)(len < FILE_PIECE ? len : FILE_PIECE), &put, NULL)) {
            return au_os_error_usual((int)GetLastError());
        }
        if (put == 0) {
            Sleep(1); /* somebody who shares the pipe made it non-blocking (PIPE_NOWAIT), and it is full */
        }
        at += put;
        len -= put;
    }
    return 0;
}

/* Bytes of the next piece: it ends with a whole character where there is one. */
static size_t next_piece(const char *at, size_t len)
{
    if (len <= CONSOLE_PIECE) {
        return len;
    }
    size_t whole = CONSOLE_PIECE;
    while (whole > CONSOLE_PIECE - 4 && ((unsigned char)at[whole] & 0xC0) == 0x80) {
        whole--;
    }
    return whole;
}

/* Takes the colours out where the console would show them as characters: ESC [ ... letter (ECMA-48, CSI). `state` is
 * where the piece before has ended: 0, 1 after ESC, 2 after ESC [. */
static int drop_sequences(wchar_t *text, int len, int *state)
{
    int kept = 0;
    for (int i = 0; i < len; i++) {
        wchar_t c = text[i];
        if (*state == 2) {
            *state = c >= 0x40 && c <= 0x7E ? 0 : 2;
        } else if (*state == 1 && c == L'[') {
            *state = 2;
        } else if (c == 0x1B) {
            *state = 1;
        } else {
            *state = 0;
            text[kept++] = c;
        }
    }
    return kept;
}

static DWORD write_wide(HANDLE handle, const wchar_t *at, int len)
{
    while (len > 0) {
        DWORD put = 0;
        if (!WriteConsoleW(handle, at, (DWORD)len, &put, NULL)) {
            return GetLastError();
        }
        if (put == 0) {
            return ERROR_WRITE_FAULT;
        }
        at += put;
        len -= (int)put;
    }
    return 0;
}

/*
 * The mode belongs to the console and so also to the program that we launched: it is changed for this text alone, and
 * a profiler that is killed leaves nothing behind.
 */
static int write_console(HANDLE handle, const char *at, size_t len)
{
    wchar_t wide[CONSOLE_PIECE];
    DWORD mode = 0, failed = 0;
    int coloured = memchr(at, 0x1B, len) != NULL, state = 0, changed = 0, plain = 0;
    if (coloured && GetConsoleMode(handle, &mode) && !(mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING)) {
        changed = SetConsoleMode(handle, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
        plain = !changed;
    }
    while (len && !failed) {
        size_t piece = next_piece(at, len);
        int units = MultiByteToWideChar(CP_UTF8, 0, at, (int)piece, wide, CONSOLE_PIECE);
        if (units <= 0) {
            failed = GetLastError();
        } else {
            failed = write_wide(handle, wide, plain ? drop_sequences(wide, units, &state) : units);
        }
        at += piece;
        len -= piece;
    }
    if (changed) {
        SetConsoleMode(handle, mode);
    }
    return (int)failed;
}

int au_write_all(int fd, const void *bytes, size_t len)
{
    HANDLE handle = handle_of(fd);
    if (!handle) {
        return ERROR_INVALID_HANDLE;
    }
    return is_console(handle) ? write_console(handle, bytes, len) : write_file(handle, bytes, len);
}

void au_set_binary(int fd)
{
    (void)_setmode(fd, _O_BINARY); /* for whoever writes by the C runtime; au_write_all does not */
}
