/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that embeds CPython and begins it late: embed SECONDS SCRIPT [ARGUMENTS].
 * The calls are those that 3.10 to 3.15 all have.
 */
#include <Python.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        return 64;
    }
    usleep((useconds_t)(atof(argv[1]) * 1e6));
    PyStatus status;
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    status = PyConfig_SetBytesArgv(&config, argc - 1, argv + 1);
    if (!PyStatus_Exception(status)) {
        status = Py_InitializeFromConfig(&config);
    }
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        return 2;
    }
    return Py_RunMain();
}
