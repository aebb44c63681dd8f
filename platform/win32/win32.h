/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: what its files share. Facts come from the Windows SDK's headers and the Win32 documentation,
 * which each place names by the function.
 */
#ifndef AU_PLATFORM_WIN32_WIN32_H
#define AU_PLATFORM_WIN32_WIN32_H

#include <winsock2.h> /* before windows.h, which brings its older half otherwise */

#include <windows.h>

#include <stddef.h>
#include <stdint.h>

#include "engine/proc_ops.h"
#include "platform/platform.h"

/* ---- text.c: our texts are UTF-8, the system's are UTF-16 ---------------------------------------------------------
 */

/** UTF-16 of a UTF-8 text, for free(). Bytes that are no UTF-8 become U+FFFD. NULL: no memory. */
wchar_t *au__win32_wide(const char *utf8);

/** UTF-8 of a UTF-16 text, for free(). A lone surrogate becomes U+FFFD. NULL: no memory. */
char *au__win32_utf8(const wchar_t *wide);

/** The system's sentence for an error of GetLastError, without its end of line and full stop; `buf` is returned. */
const char *au__win32_error_text(DWORD code, char *buf, size_t cap);

/* ---- command.c: programs and command lines ------------------------------------------------------------------------
 */

/**
 * The command line that the C runtime of a program splits into exactly these arguments (Microsoft C runtime, "Parsing
 * C command-line arguments"), for free(). NULL: no memory.
 */
wchar_t *au__win32_command_line(const char *const *argv);

/** What the C runtime of a program makes of a command line: UTF-8, NULL-terminated, one block for free(). */
char **au__win32_split(const wchar_t *line, int *argc);

/**
 * The command line that makes cmd.exe run a batch file (its full path) with the arguments after argv[0], for free().
 * ERROR_INVALID_PARAMETER: one of them cannot be said to cmd.exe so that it is certain to take it as it is;
 * ERROR_FILENAME_EXCED_RANGE: longer than cmd.exe reads.
 */
DWORD au__win32_batch_line(const wchar_t *script, const char *const *argv, wchar_t **out);

/** True for the path of a batch file: CreateProcessW would hand it to cmd.exe. */
int au__win32_is_batch(const wchar_t *path);

/**
 * The full path of a program, for free(): a name with a separator is a path, any other is looked for along PATH, with
 * the suffixes of PATHEXT. 0, or a code of GetLastError; with ERROR_DIRECTORY there is only a folder of that name.
 */
DWORD au__win32_find_program(const wchar_t *name, wchar_t **out);

/* ---- console.c ----------------------------------------------------------------------------------------------------
 */

/** True when the console itself told us to end (Ctrl-C, Ctrl-Break), and so everybody who shares it. Any thread. */
int au__win32_console_has_told(void);

/** Set with each ending; auto-reset, for the main thread alone. NULL: none could be made. */
HANDLE au__win32_ending_event(void);

/**
 * Sends Ctrl-C to everybody at our console, and takes our own share of it for no ending. 0: sent and seen to arrive;
 * 1: there is no console, or Ctrl-C is ignored there.
 */
int au__win32_send_interrupt(void);

#endif
