/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name and arguments to what CreateProcessW takes: a full path, and one text that the program splits again.
 *
 * A batch file is run by cmd.exe, which reads the text by other rules than a C program: it replaces %NAME% even between
 * quotes, and a quote in an argument turns what follows into commands (CVE-2024-24576). An argument with one of these
 * is refused, all that is no plain word is put between quotes. For the same reason it must not be overlooked that a
 * file is a batch file: names are judged as the system normalises them, without blanks and dots at their end.
 */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "platform/win32/win32.h"

enum {
    BATCH_LINE_MAX = 8191, /* cmd.exe, "Command prompt line string limitation" */
    PLAIN_PATH_MAX = 240   /* from MAX_PATH (260) on only a \\?\ path is taken; before, for all that adds to it */
};

/* ---- a text that grows -------------------------------------------------------------------------------------- */

typedef struct line {
    wchar_t *text;
    size_t len, cap;
    int failed;
} line;

static void put(line *l, wchar_t c)
{
    if (l->len == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        wchar_t *grown = l->failed ? NULL : realloc(l->text, cap * sizeof *grown);
        if (!grown) {
            l->failed = 1;
            return;
        }
        l->text = grown;
        l->cap = cap;
    }
    l->text[l->len++] = c;
}

static void put_text(line *l, const wchar_t *text)
{
    for (; *text; text++) {
        put(l, *text);
    }
}

/* Ends it; NULL: no memory. */
static wchar_t *finish(line *l)
{
    put(l, 0);
    if (l->failed) {
        free(l->text);
        return NULL;
    }
    return l->text;
}

/* ---- for a C program ---------------------------------------------------------------------------------------- */

/* Between quotes a backslash stands for itself, but for those right before a quote: they come in pairs. */
static void put_quoted(line *l, const wchar_t *argument)
{
    put(l, L'"');
    while (*argument) {
        size_t slashes = wcsspn(argument, L"\\");
        wchar_t next = argument[slashes];
        for (size_t i = 0; i < slashes; i++) {
            put(l, L'\\');
            if (next == L'"' || next == 0) {
                put(l, L'\\');
            }
        }
        if (next == L'"') {
            put(l, L'\\');
        }
        if (next) {
            put(l, next);
        }
        argument += slashes + (next != 0);
    }
    put(l, L'"');
}

static void put_argument(line *l, const wchar_t *argument)
{
    /* * and ?: some runtimes replace a bare one by the names of files. */
    if (*argument && !wcspbrk(argument, L" \t\n\v\r\f\"*?")) {
        put_text(l, argument);
    } else {
        put_quoted(l, argument);
    }
}

wchar_t *au__win32_command_line(const char *const *argv)
{
    line l = {0};
    for (size_t i = 0; argv[i]; i++) {
        wchar_t *argument = au__win32_wide(argv[i]);
        if (!argument) {
            free(l.text);
            return NULL;
        }
        if (i) {
            put(&l, L' ');
            put_argument(&l, argument);
        } else { /* the name of the program goes from quote to quote, whatever is between */
            put(&l, L'"');
            put_text(&l, argument);
            put(&l, L'"');
        }
        free(argument);
    }
    return finish(&l);
}

static int is_blank(wchar_t c)
{
    return c == L' ' || c == L'\t';
}

/* One argument after the name; `at` is at its first character. */
static const wchar_t *take_argument(line *l, const wchar_t *at)
{
    int quoted = 0;
    while (*at && (quoted || !is_blank(*at))) {
        size_t slashes = wcsspn(at, L"\\");
        int before_quote = at[slashes] == L'"';
        for (size_t i = before_quote ? slashes / 2 : slashes; i > 0; i--) {
            put(l, L'\\');
        }
        at += slashes;
        if (slashes % 2 && before_quote) {
            put(l, *at++);
        } else if (*at == L'"' && quoted && at[1] == L'"') { /* a doubled one stands for itself */
            put(l, L'"');
            at += 2;
        } else if (*at == L'"') {
            quoted = !quoted;
            at++;
        } else if (!slashes) {
            put(l, *at++);
        }
    }
    put(l, 0);
    return at;
}

char **au__win32_split(const wchar_t *from, int *argc)
{
    line l = {0};
    int count = 1, quoted = 0;
    for (; *from && (quoted || !is_blank(*from)); from++) {
        if (*from == L'"') {
            quoted = !quoted;
        } else {
            put(&l, *from);
        }
    }
    put(&l, 0);
    for (;;) {
        for (; is_blank(*from); from++) {
        }
        if (!*from) {
            break;
        }
        from = take_argument(&l, from);
        count++;
    }
    size_t table = ((size_t)count + 1) * sizeof(char *);
    /* A unit of UTF-16 needs three bytes of UTF-8 at most. */
    char **out = l.failed ? NULL : malloc(table + l.len * 3);
    if (out) {
        char *at = (char *)out + table;
        const wchar_t *text = l.text;
        for (int i = 0; i < count; i++) {
            out[i] = at;
            at += WideCharToMultiByte(CP_UTF8, 0, text, -1, at, (int)(wcslen(text) * 3 + 1), NULL, NULL);
            text += wcslen(text) + 1;
        }
        out[count] = NULL;
        *argc = count;
    }
    free(l.text);
    return out;
}

/* ---- for cmd.exe -------------------------------------------------------------------------------------------- */

/* Nothing that cmd.exe gives a meaning to outside of quotes. */
static int is_plain_word(const wchar_t *argument)
{
    static const wchar_t plain[] = L"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789#$+-./:@\\_";
    return *argument && wcsspn(argument, plain) == wcslen(argument);
}

/* What stays as it is between quotes, for cmd.exe and for what the batch file starts. */
static int can_be_quoted(const wchar_t *argument)
{
    for (; *argument; argument++) {
        if (*argument == L'"' || *argument == L'%' || *argument < L' ') {
            return 0;
        }
    }
    return 1;
}

DWORD au__win32_batch_line(const wchar_t *script, const char *const *argv, wchar_t **out)
{
    line l = {0};
    DWORD failed = can_be_quoted(script) ? 0 : ERROR_INVALID_PARAMETER;
    /* No AutoRun commands, no !NAME!, and only the outermost quotes are taken away (cmd /?). */
    put_text(&l, L"cmd.exe /d /e:on /v:off /s /c \"\"");
    put_text(&l, script);
    put(&l, L'"');
    for (size_t i = 1; argv[i] && !failed; i++) {
        wchar_t *argument = au__win32_wide(argv[i]);
        if (!argument) {
            failed = ERROR_NOT_ENOUGH_MEMORY;
        } else if (!can_be_quoted(argument)) {
            failed = ERROR_INVALID_PARAMETER;
        } else {
            put(&l, L' ');
            if (is_plain_word(argument)) {
                put_text(&l, argument);
            } else {
                put_quoted(&l, argument);
            }
        }
        free(argument);
    }
    put(&l, L'"');
    if (!failed && l.len > BATCH_LINE_MAX) {
        failed = ERROR_FILENAME_EXCED_RANGE;
    }
    *out = finish(&l);
    if (*out && failed) {
        free(*out);
        *out = NULL;
    }
    return failed ? failed : *out ? 0 : ERROR_NOT_ENOUGH_MEMORY;
}

/* ---- the program -------------------------------------------------------------------------------------------- */

/* The last part of a path. */
static const wchar_t *file_name(const wchar_t *path)
{
    const wchar_t *name = path;
    for (; *path; path++) {
        if (*path == L'\\' || *path == L'/') {
            name = path + 1;
        }
    }
    return name;
}

static const wchar_t *suffix(const wchar_t *path)
{
    const wchar_t *dot = wcsrchr(file_name(path), L'.');
    return dot ? dot : L"";
}

int au__win32_is_batch(const wchar_t *path)
{
    const wchar_t *end = suffix(path);
    return _wcsicmp(end, L".bat") == 0 || _wcsicmp(end, L".cmd") == 0;
}

/* A variable of the environment, for free(); NULL: not set, empty, or no memory. */
static wchar_t *variable(const wchar_t *name)
{
    DWORD cap = GetEnvironmentVariableW(name, NULL, 0);
    wchar_t *value = cap ? malloc(cap * sizeof *value) : NULL;
    DWORD len = value ? GetEnvironmentVariableW(name, value, cap) : 0;
    if (len == 0 || len >= cap) {
        free(value);
        return NULL;
    }
    return value;
}

/* The full path of folder + name + suffix as the system normalises it; long ones in the form without a limit. */
static wchar_t *full_path(const wchar_t *folder, const wchar_t *name, const wchar_t *end)
{
    line l = {0};
    put_text(&l, folder);
    if (*folder) {
        put(&l, L'\\');
    }
    put_text(&l, name);
    put_text(&l, end);
    wchar_t *given = finish(&l);
    DWORD cap = given ? GetFullPathNameW(given, 0, NULL, NULL) : 0;
    wchar_t *full = cap ? malloc(cap * sizeof *full) : NULL;
    DWORD len = full ? GetFullPathNameW(given, cap, full, NULL) : 0;
    free(given);
    if (len == 0 || len >= cap) {
        free(full);
        return NULL;
    }
    if (len < PLAIN_PATH_MAX || wcsncmp(full, L"\\\\?\\", 4) == 0 || wcsncmp(full, L"\\\\.\\", 4) == 0) {
        return full;
    }
    l = (line){0};
    int server = full[0] == L'\\' && full[1] == L'\\';
    put_text(&l, server ? L"\\\\?\\UNC" : L"\\\\?\\");
    put_text(&l, full + (server ? 1 : 0));
    free(full);
    return finish(&l);
}

/* Tries one name. 0: a file, and *out is its path; otherwise why not. */
static DWORD try_name(const wchar_t *folder, const wchar_t *name, const wchar_t *end, wchar_t **out)
{
    wchar_t *path = full_path(folder, name, end);
    if (!path) {
        return ERROR_NOT_ENOUGH_MEMORY;
    }
    DWORD attributes = GetFileAttributesW(path), failed = 0;
    if (wcschr(file_name(path), L':')) {
        failed = ERROR_INVALID_NAME; /* a stream of a file, whose suffix is not the one that is seen */
    } else if (attributes == INVALID_FILE_ATTRIBUTES) {
        failed = GetLastError();
    } else if (attributes & FILE_ATTRIBUTE_DIRECTORY) {
        failed = ERROR_DIRECTORY;
    }
    if (failed) {
        free(path);
    } else {
        *out = path;
    }
    return failed;
}

static int is_missing(DWORD code)
{
    return code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND || code == ERROR_INVALID_NAME ||
           code == ERROR_BAD_PATHNAME || code == ERROR_BAD_NETPATH || code == ERROR_NOT_READY;
}

/* Tells more of two failures: a folder or a missing right, rather than that there is nothing. */
static DWORD worse(DWORD before, DWORD now)
{
    return before && !is_missing(before) ? before : now;
}

/* As cmd.exe does: with a suffix of its own the name itself comes first. */
static DWORD try_suffixes(const wchar_t *folder, const wchar_t *name, const wchar_t *suffixes, wchar_t **out)
{
    DWORD failed = 0;
    int own = *suffix(name) != 0;
    if (own && (failed = try_name(folder, name, L"", out)) == 0) {
        return 0;
    }
    while (*suffixes) {
        size_t len = wcscspn(suffixes, L";");
        wchar_t end[32];
        if (len > 1 && len < sizeof end / sizeof end[0]) {
            wmemcpy(end, suffixes, len);
            end[len] = 0;
            DWORD now = try_name(folder, name, end, out);
            if (now == 0) {
                return 0;
            }
            failed = worse(failed, now);
        }
        suffixes += len + (suffixes[len] != 0);
    }
    if (!own) {
        DWORD now = try_name(folder, name, L"", out);
        return now ? worse(failed, now) : 0;
    }
    return failed;
}

/* Each folder of PATH; one may stand between quotes. Not the current folder, unless PATH says so. */
static DWORD try_folders(wchar_t *folders, const wchar_t *name, const wchar_t *suffixes, wchar_t **out)
{
    DWORD failed = ERROR_FILE_NOT_FOUND;
    while (*folders) {
        wchar_t *put_at = folders, *at = folders, *folder = folders;
        int quoted = 0;
        for (; *at && (quoted || *at != L';'); at++) {
            if (*at == L'"') {
                quoted = !quoted;
            } else {
                *put_at++ = *at;
            }
        }
        folders = at + (*at != 0);
        *put_at = 0;
        if (*folder) {
            DWORD now = try_suffixes(folder, name, suffixes, out);
            if (now == 0) {
                return 0;
            }
            failed = now == ERROR_DIRECTORY ? failed : worse(failed, now);
        }
    }
    return failed;
}

DWORD au__win32_find_program(const wchar_t *name, wchar_t **out)
{
    const wchar_t *checked = wcsncmp(name, L"\\\\?\\", 4) == 0 ? name + 4 : name;
    if (!*checked || wcspbrk(checked, L"\"<>|*?")) {
        return ERROR_FILE_NOT_FOUND; /* no file has such a name */
    }
    wchar_t *suffixes = variable(L"PATHEXT"), *folders = NULL;
    const wchar_t *known = suffixes ? suffixes : L".COM;.EXE;.BAT;.CMD";
    DWORD failed = ERROR_FILE_NOT_FOUND;
    if (wcspbrk(name, L"\\/:")) {
        failed = try_suffixes(L"", name, known, out);
    } else if ((folders = variable(L"PATH"))) {
        failed = try_folders(folders, name, known, out);
    }
    free(folders);
    free(suffixes);
    return failed;
}
