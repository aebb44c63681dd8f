/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inside of the room: the text of /proc/PID/maps (proc(5)). A parser of bytes and nothing else, so that it can be
 * fuzzed.
 */
#ifndef AU_PLATFORM_LINUX_MAPS_H
#define AU_PLATFORM_LINUX_MAPS_H

#include <stddef.h>
#include <stdint.h>

typedef struct au__maps_line {
    uint64_t start, end, offset, inode;
    unsigned perms; /**< AU_PERM_* */
    unsigned dev_major, dev_minor;
    int deleted;      /**< ended in " (deleted)", which has been taken off */
    const char *path; /**< NUL-terminated, in the line's own memory; NULL for none */
} au__maps_line;

/**
 * Parses one line in place: `line[len]` must be writable (the line feed's place). Octal escapes of the path are
 * resolved. 0, or -1 when it is no such line.
 */
int au__maps_parse_line(char *line, size_t len, au__maps_line *out);

/** A number that is the same for mappings of one file and hardly ever for others; never 0. */
uint64_t au__maps_file_id(const au__maps_line *line);

/** Reads on: returns bytes, 0 at the end, -1 on an error (errno). */
typedef long (*au__maps_read_fn)(void *baton, void *buf, size_t len);

/**
 * Calls `fn` for every line that parses; a line that is longer than the kernel writes them (an escaped path has at most
 * 4 * PATH_MAX bytes) is cut. Returns 0, what `fn` returned if not 0, or -1 on a read error, -2 without memory.
 * *lines is how many were shown.
 */
int au__maps_each(au__maps_read_fn read, void *read_baton, int (*fn)(void *baton, const au__maps_line *line),
                  void *baton, size_t *lines);

#endif
