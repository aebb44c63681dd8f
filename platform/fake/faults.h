/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * A fault injector: wraps any system and breaks what it answers, by a plan. Without faults it changes nothing.
 *
 *     au_faults *faults = au_faults_create(au_image_sys(image), 42);
 *     au_faults_add(faults, &(au_fault){.kind = AU_FAULT_GONE, .piece = 7});
 *     au_sys *sys = au_faults_sys(faults);
 */
#ifndef AU_PLATFORM_FAKE_FAULTS_H
#define AU_PLATFORM_FAKE_FAULTS_H

#include "engine/proc_ops.h"

typedef struct au_faults au_faults;

/** Members that can be made to fail. `read` counts as a read_many of one piece. */
typedef enum au_member {
    AU_MEMBER_OPEN,
    AU_MEMBER_STATUS,
    AU_MEMBER_READ,
    AU_MEMBER_REGIONS,
    AU_MEMBER_MODULES,
    AU_MEMBER_MODULE_READ,
    AU_MEMBER_THREADS,
    AU_MEMBER_THREAD_STATES,
    AU_MEMBER_THREAD_ID_OF,
    AU_MEMBER_THREAD_NAME,
    AU_MEMBER_USAGE,
    AU_MEMBER_PROCESSES,
    AU_MEMBER_NOW,
    AU_MEMBERS
} au_member;

typedef enum au_fault_kind {
    AU_FAULT_FAIL = 1, /**< call number `nth` of `member` (from 0; `times` calls on end) gives `outcome` */
    AU_FAULT_PIECES, /**< in read call number `nth` (`times` calls) all but the first `keep` pieces fail with `outcome`
                      */
    AU_FAULT_GONE,   /**< when `piece` pieces have been served the process goes away, also within a batch */
    AU_FAULT_OLD_PAGE, /**< the page of `addr` is remembered when first read and served as it was then from piece number
                            `piece` on, for `times` pieces */
    AU_FAULT_MUTATE,   /**< each byte of a served piece is changed with probability 1 / `one_in`, from `piece` on */
    AU_FAULT_CLOCK,    /**< from call number `nth` of `now` or sleep_until on, the clock is `jump_ns` off */
    AU_FAULT_LIST /**< in call number `nth` (`times` calls) of threads, regions or modules, item `keep` is left out */
} au_fault_kind;

typedef struct au_fault {
    au_fault_kind kind;
    au_member member;
    uint64_t nth;
    uint64_t times;     /**< 0: once */
    au_outcome outcome; /**< AU_OK is taken as AU_FAULT */
    uint64_t keep;
    uint64_t piece;
    uint64_t one_in;
    au_addr addr;
    int64_t jump_ns;
} au_fault;

/** `seed` decides about mutations: the same seed and the same calls give the same bytes. NULL without memory. */
au_faults *au_faults_create(au_sys *inner, uint64_t seed);

/** Close all handles first. */
void au_faults_destroy(au_faults *faults);

/** Adds a fault (copied). -1 without memory. */
int au_faults_add(au_faults *faults, const au_fault *fault);
void au_faults_clear(au_faults *faults);

au_sys *au_faults_sys(au_faults *faults);

/** How often a fault has changed an answer. */
uint64_t au_faults_fired(const au_faults *faults);

/** How often a member was called. */
uint64_t au_faults_calls(const au_faults *faults, au_member member);

#endif
