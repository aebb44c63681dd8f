/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the suite itself needs of the system that it runs on; one file in each system's directory. Nothing here goes
 * through the table under test, so that a broken table does not break the ruler it is measured with.
 */
#ifndef AU_TESTS_CONTRACT_HOST_H
#define AU_TESTS_CONTRACT_HOST_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/proc_ops.h"

void host_pause_ns(uint64_t ns);

/** Nanoseconds since 1970. */
uint64_t host_utc_ns(void);

/** CPU time of this process. */
uint64_t host_cpu_ns(void);

au_pid host_pid(void);

typedef struct host_thread host_thread;

/** Runs fn(baton) in a thread; NULL if there is none. */
host_thread *host_start(void (*fn)(void *baton), void *baton);
void host_join(host_thread *thread);

/** Makes an empty file and tells its path. 0, or -1. */
int host_temporary_file(char *path, size_t cap);

/** How a program of this system begins. */
extern const char host_magic[];

/** Where `contract_marker` is, a variable of the tests' program that its symbols name. */
au_addr host_marker(void);

/** The program of the tests, as it lies in its file and in memory. */
typedef struct host_program {
    uint8_t *bytes; /**< for free() */
    size_t len;
    au_addr base, bias; /**< as in au_module */
} host_program;

/** 0, or -1. */
int host_program_read(host_program *out);

/** If this process was started to be a tracee, it is one, and never comes back. */
void host_be_tracee(int argc, char **argv);

/** Adds what the port of this system promises beyond the contract. */
void host_suite(Suite *suite);

#endif
