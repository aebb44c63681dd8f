/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has Python inside: it loads the DLL that it is given, whatever that is called, and runs a second's
 * work.
 *
 *   win_embed.exe PYTHON.dll
 */
#include <windows.h>

#include <stdio.h>

static FARPROC need(HMODULE library, const char *name)
{
    FARPROC found = GetProcAddress(library, name);
    if (!found) {
        fprintf(stderr, "win_embed: there is no %s\n", name);
        ExitProcess(2);
    }
    return found;
}

int main(int argc, char **argv)
{
    HMODULE library = argc > 1 ? LoadLibraryA(argv[1]) : NULL;
    if (!library) {
        fprintf(stderr, "win_embed: cannot load %s: error %lu\n", argc > 1 ? argv[1] : "nothing", GetLastError());
        return 2;
    }
    void (*initialize)(void) = (void (*)(void))need(library, "Py_Initialize");
    int (*run)(const char *) = (int (*)(const char *))need(library, "PyRun_SimpleString");
    initialize();
    return run("import time\n"
               "def spin():\n"
               "    end = time.monotonic() + 1\n"
               "    while time.monotonic() < end:\n"
               "        pass\n"
               "spin()\n");
}
