/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the files of this directory share. A tracee is this very program, started again with one argument; it is driven
 * by bytes through its standard input and answers on its standard output.
 */
#ifndef AU_TESTS_CONTRACT_WIN32_WIN32_H
#define AU_TESTS_CONTRACT_WIN32_WIN32_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/proc_ops.h"
#include "tests/contract/world.h"

#define TRACEE_ARGUMENT "--tracee"

enum { WIN32_PATH_CHARS = 1024 };

/** The path of this program; 0, or -1. */
int own_path(wchar_t *path);

/** The first that a tracee tells. */
typedef struct tracee_facts {
    au_addr data, guarded, trap, symbol_at;
    au_tid main, spinner, sleeper, extra;
} tracee_facts;

/** What a tracee is told to do; the answer is one byte. */
enum {
    TRACEE_POKE = 'p',
    TRACEE_END_THREAD = 't',
    TRACEE_IS_TRAP_SET = 'g', /**< the answer is 1 if the page at `trap` is still guarded, else 0 */
    TRACEE_LOAD = 'l',        /**< loads version.dll; the answer is 1 if that has worked */
    TRACEE_UNPACK = 'u',      /**< copies an image to TRACEE_UNPACKED_AT, as programs do that carry their libraries
                                   within themselves; 1 if that has worked */
};

#define TRACEE_UNPACKED_AT ((au_addr)1 << 45)

/** Plays the tracee. */
_Noreturn void tracee(void);

/** Tells the tracee of a live world what to do; its answer, or -1. */
int tracee_told(world *w, char what);

/** A page of a live world whose first touch the system tells the program of (PAGE_GUARD). */
au_addr tracee_trap(const world *w);

TCase *tcase_win32(void);

#endif
