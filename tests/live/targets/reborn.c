/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that embeds CPython again and again: reborn COUNT SECONDS FILE. Each runtime runs functions of its own,
 * named by its number, of the same length and made in the same order, so that they lie where those of the one before
 * lay. FILE gets the milliseconds that each took. The calls are those that 3.10 to 3.15 all have.
 */
#include <Python.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int run(int number, double seconds, FILE *truth)
{
    char text[1024];
    char file[32];
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.use_hash_seed = 1; /* each as the one before */
    config.hash_seed = 0;
    config.site_import = 0;
    config.install_signal_handlers = 0;
    PyStatus status = PyConfig_SetBytesString(&config, &config.home, getenv("PYTHONHOME"));
    if (!PyStatus_Exception(status)) {
        status = Py_InitializeFromConfig(&config);
    }
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        return 2;
    }
    snprintf(text, sizeof text,
             "import time\n"
             "def inner_%04d(end):\n    while time.perf_counter() < end: pass\n"
             "def outer_%04d(end):\n    inner_%04d(end)\n"
             "outer_%04d(time.perf_counter() + %f)\n",
             number, number, number, number, seconds);
    snprintf(file, sizeof file, "runtime_%04d.py", number);
    PyObject *code = Py_CompileString(text, file, Py_file_input);
    PyObject *module = PyImport_AddModule("__main__");
    double began = now_ms();
    PyObject *result =
        code && module ? PyEval_EvalCode(code, PyModule_GetDict(module), PyModule_GetDict(module)) : NULL;
    fprintf(truth, "%04d %.1f\n", number, now_ms() - began);
    int failed = result == NULL;
    Py_XDECREF(result);
    Py_XDECREF(code);
    return Py_FinalizeEx() < 0 || failed;
}

int main(int argc, char **argv)
{
    FILE *truth = argc == 4 ? fopen(argv[3], "w") : NULL;
    int failed = truth ? 0 : 64;
    for (int number = 0; !failed && number < atoi(argv[1]); number++) {
        failed = run(number, atof(argv[2]), truth);
    }
    return truth && fclose(truth) == 0 ? failed : 64;
}
