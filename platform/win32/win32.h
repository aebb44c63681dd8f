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

/**
 * The command line that the C runtime of a program splits into exactly these arguments (Microsoft C runtime, "Parsing
 * C command-line arguments"), for free(). NULL: no memory.
 */
wchar_t *au__win32_command_line(const char *const *argv);

/** The system's sentence for an error of GetLastError, without its end of line and full stop; `buf` is returned. */
const char *au__win32_error_text(DWORD code, char *buf, size_t cap);

#endif
