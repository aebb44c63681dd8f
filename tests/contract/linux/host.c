/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/contract/linux/suites.h"

static uint64_t ns_of(struct timespec t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void host_pause_ns(uint64_t ns)
{
    const struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&pause, NULL);
}

uint64_t host_utc_ns(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return ns_of(t);
}

uint64_t host_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ns_of(t);
}

au_pid host_pid(void)
{
    return getpid();
}

struct host_thread {
    pthread_t thread;
    void (*fn)(void *baton);
    void *baton;
};

static void *run_thread(void *baton)
{
    host_thread *thread = baton;
    thread->fn(thread->baton);
    return NULL;
}

host_thread *host_start(void (*fn)(void *baton), void *baton)
{
    host_thread *thread = malloc(sizeof *thread);
    if (thread) {
        *thread = (host_thread){.fn = fn, .baton = baton};
        if (pthread_create(&thread->thread, NULL, run_thread, thread) != 0) {
            free(thread);
            thread = NULL;
        }
    }
    return thread;
}

void host_join(host_thread *thread)
{
    pthread_join(thread->thread, NULL);
    free(thread);
}

int host_temporary_file(char *path, size_t cap)
{
    if (snprintf(path, cap, "/tmp/au-log-XXXXXX") >= (int)cap) {
        return -1;
    }
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

const char host_magic[] = "\177ELF";

/** What the modules' load bias is checked against. */
int contract_marker = 42;

au_addr host_marker(void)
{
    return (uintptr_t)&contract_marker;
}

/** Where our own executable is loaded: the address of its first byte. */
extern const char __executable_start[];

int host_program_read(host_program *out)
{
    FILE *file = fopen("/proc/self/exe", "rb");
    *out = (host_program){.base = (uintptr_t)__executable_start};
    if (file && fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        out->bytes = size > 0 ? malloc((size_t)size) : NULL;
        out->len = out->bytes ? fread(out->bytes, 1, (size_t)size, file) : 0;
    }
    if (file) {
        fclose(file);
    }
    /* A position-independent test program begins at 0 in the file, one that is not where it is loaded. */
    int pie = out->len > 16 && out->bytes[16] == 3;
    out->bias = pie ? out->base : 0;
    return out->len ? 0 : -1;
}

void host_be_tracee(int argc, char **argv)
{
    (void)argc, (void)argv; /* a tracee is a fork of the test */
}

void host_suite(Suite *suite)
{
    suite_add_tcase(suite, tcase_linux());
    suite_add_tcase(suite, tcase_launch());
}
