/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What the contract suite runs on: a system, a process in it of which everything is known, and the means to change it.
 */
#ifndef AU_TESTS_CONTRACT_WORLD_H
#define AU_TESTS_CONTRACT_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "engine/proc_ops.h"

enum { WORLD_PAGE = 4096, WORLD_DATA = 16 * WORLD_PAGE };

typedef struct world world;
struct world {
    au_sys *sys;
    au_pid pid, parent;
    int is_real;     /**< real time passes, CPU is used */
    au_addr data;    /**< WORLD_DATA bytes of world_byte(i), readable and writable, unnamed */
    au_addr hole;    /**< data + WORLD_DATA: one page that is not mapped */
    au_addr guarded; /**< a page without the right to read */
    int serves_all;  /**< the system lets us read what the program itself may not: nobody is told of a missing right */
    au_tid main;     /**< waits to be told what to do */
    au_tid spinner;  /**< always running */
    au_tid sleeper;  /**< asleep; runs for a moment at `poke` */
    au_tid extra;    /**< ends at `end_thread` */
    uint64_t spinner_pthread, sleeper_pthread;
    const char *sleeper_name;
    const char *symbol; /**< of the executable itself ... */
    au_addr symbol_at;  /**< ... and where it is in memory */
    const char *magic;  /**< how the executable begins */
    size_t strangers;   /**< threads that the system itself may have added to the four, at most */

    /* Each returns when it has happened. In a replay they do nothing: their effect is in the log. */
    void (*poke)(world *w);
    void (*end_thread)(world *w);
    void (*stop)(world *w); /**< and back */
    void (*go_on)(world *w);
    void (*exec)(world *w); /**< NULL: here no program becomes another one */
    void (*end)(world *w);
    /** Ends it and gives its pid to another process, unless the system lets nobody have the pid of a process that
        somebody holds. -1 where that cannot be done. */
    int (*reuse)(world *w);
    size_t (*handles)(world *w); /**< what the system holds open, to find leaks */
    void (*destroy)(world *w);
    void *own;
};

static inline uint8_t world_byte(size_t i)
{
    return (uint8_t)(i * 7 + i / 251);
}

/** A live child of the test. */
int world_live(world *w);

/** An invented one with the same features. */
int world_image(world *w);

/** The same facts, served from a log: `from` lends its facts. */
void world_replayed(world *w, const world *from, au_sys *sys);

/** NULL is success, else what is wrong. */
typedef const char *(*contract_fn)(world *w);

typedef struct contract_case {
    const char *member;
    const char *name;
    uint64_t caps; /**< run only if these are on */
    contract_fn run;
} contract_case;

extern const contract_case contract_cases[];
extern const size_t contract_n_cases;

#endif
