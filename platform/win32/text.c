/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: UTF-8 and UTF-16, and the system's words for an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/win32/win32.h"

wchar_t *au__win32_wide(const char *utf8)
{
    /* Without MB_ERR_INVALID_CHARS what is no UTF-8 becomes U+FFFD (MultiByteToWideChar, from Windows Vista on). */
    int len = MultiByteToWideChar(CP_UTF8, 0, utf8, -1, NULL, 0);
    wchar_t *wide = len > 0 ? malloc((size_t)len * sizeof *wide) : NULL;
    if (wide && MultiByteToWideChar(CP_UTF8, 0, utf8, -1, wide, len) != len) {
        free(wide);
        return NULL;
    }
    return wide;
}

char *au__win32_utf8(const wchar_t *wide)
{
    int len = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);
    char *utf8 = len > 0 ? malloc((size_t)len) : NULL;
    if (utf8 && WideCharToMultiByte(CP_UTF8, 0, wide, -1, utf8, len, NULL, NULL) != len) {
        free(utf8);
        return NULL;
    }
    return utf8;
}

/* The bytes of `text` that fit below cap, without a cut sequence. */
static size_t whole_characters(const char *text, size_t cap)
{
    size_t len = strlen(text);
    if (len < cap) {
        return len;
    }
    for (len = cap - 1; len && ((unsigned char)text[len] & 0xC0) == 0x80; len--) {
    }
    return len;
}

const char *au__win32_error_text(DWORD code, char *buf, size_t cap)
{
    /* English as all that we say; in the user's language where the English texts are not installed. */
    static const DWORD languages[] = {MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US), 0};
    wchar_t wide[512];
    DWORD len = 0;
    if (cap == 0) {
        return "";
    }
    for (int i = 0; i < 2 && len == 0; i++) {
        len = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, code, languages[i], wide,
                             sizeof wide / sizeof wide[0], NULL);
    }
    while (len && (wide[len - 1] <= L' ' || wide[len - 1] == L'.')) {
        len--;
    }
    wide[len < 511 ? len : 511] = 0;
    char *text = len ? au__win32_utf8(wide) : NULL;
    if (text) {
        size_t fits = whole_characters(text, cap);
        memcpy(buf, text, fits);
        buf[fits] = 0;
        free(text);
    } else {
        snprintf(buf, cap, "error %lu", code);
    }
    return buf;
}

/* \\.\pipe\x, \\server\share\x, and also //server/share/x; but \\?\C:\x is a drive (Win32, "Naming Files, Paths, and
 * Namespaces"). */
int au_path_names_place(const char *path)
{
    return strlen(path) > 2 && strspn(path, "\\/") >= 2 && path[2] != '?';
}

int au_os_error_usual(int os_code)
{
    /* The reader of a pipe has gone, has just gone, or was never there. */
    return os_code == ERROR_NO_DATA || os_code == ERROR_PIPE_NOT_CONNECTED ? ERROR_BROKEN_PIPE : os_code;
}

const char *au_os_error_text(int os_code, char *buf, size_t cap)
{
    return au__win32_error_text((DWORD)os_code, buf, cap);
}

/* Not the C runtime's: those are in the code page of the system, and a name that it does not hold is lost there. */
int au_arguments_init(int *argc, const char *const **argv)
{
    int count;
    char **arguments = au__win32_split(GetCommandLineW(), &count);
    if (!arguments) {
        return 1;
    }
    *argc = count;
    *argv = (const char *const *)arguments;
    return 0;
}
