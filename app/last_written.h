/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What was last written under which name, so that a Stack repeat means the same to us and to a reader.
 *
 * Every sample that is written gets a serial number. The table knows two things: the number of the last sample written
 * under a (PID, thread string), and the number of the last one of a thread state. A thread can be renamed and renamed
 * back, and two states can share a name; only when both numbers are the same is the sample that a reader would repeat
 * the one that the engine compared with.
 *
 * Entries that were not used for a while are dropped when the table is full, and all of them when it would grow beyond
 * its bound. What is forgotten costs a stack written in full, nothing else. Not thread-safe.
 */
#ifndef AU_APP_LAST_WRITTEN_H
#define AU_APP_LAST_WRITTEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef struct au_last_entry {
    uint64_t hash; /**< 0: empty */
    int64_t pid;
    uint64_t state;  /**< of a thread state's entry */
    uint64_t serial; /**< of the sample written last; 0: none yet */
    uint32_t start;  /**< of a name's text in `names` */
    uint32_t length;
    uint32_t next;    /**< of a thread state's entry: place + 1 of the one that was asked for after it; 0: not known */
    uint32_t name_at; /**< ... and of the entry of the name that it had */
    uint32_t next_name; /**< that of `next`: both are fetched in advance */
    int is_name;
    int native_end; /**< of a name's entry: the frames written last end in one that looks native */
} au_last_entry;

typedef struct au_last_written {
    au_last_entry *entries; /**< open addressing; a power of two, at most half full */
    size_t capacity, count, limit;
    uint32_t recent; /**< place + 1 of the thread state's entry that was asked for last; 0: none */
    uint64_t serial; /**< of the sample written last, of all */
    au_buf names;
    au_buf spare; /**< the names while the table is made anew */
} au_last_written;

enum { AU_LAST_WRITTEN_LIMIT = 1 << 18 };

/** `limit` is the largest capacity, a power of two and at least 8. 0 on success, -1 when there is no memory. */
int au_last_written_init(au_last_written *last, size_t limit);
void au_last_written_deinit(au_last_written *last);

/**
 * The entries of a sample's name (`length` bytes) and state, made if need be. The pointers are good until the next
 * call. 0 on success, -1 when there is no memory.
 */
int au_last_written_find(au_last_written *last, int64_t pid, const char *thread, size_t length, uint64_t state,
                         au_last_entry **name, au_last_entry **of_state);

#endif
