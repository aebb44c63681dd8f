/* SPDX-License-Identifier: Apache-2.0 */
#include "platform/linux/maps.h"

#include <stdlib.h>
#include <string.h>

#include "engine/proc_ops.h"

enum { MAPS_CHUNK = 64 * 1024 };

static int hex(const char **at, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    int digits = 0;
    for (; *at < end; (*at)++, digits++) {
        char c = **at;
        unsigned digit;
        if (c >= '0' && c <= '9') {
            digit = (unsigned)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (unsigned)(c - 'a' + 10);
        } else {
            break;
        }
        if (value >> 60) {
            return -1;
        }
        value = value << 4 | digit;
    }
    *out = value;
    return digits ? 0 : -1;
}

static int decimal(const char **at, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    int digits = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++, digits++) {
        uint64_t digit = (uint64_t)(**at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return -1;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return digits ? 0 : -1;
}

static int skip(const char **at, const char *end, char c)
{
    if (*at >= end || **at != c) {
        return -1;
    }
    (*at)++;
    return 0;
}

/** The kernel writes a line feed in a path as \012 (seq_file_path with "\n") and no other escape. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        if (strncmp(from, "\\012", 4) == 0) {
            *to++ = '\n';
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
}

int au__maps_parse_line(char *line, size_t len, au__maps_line *out)
{
    const char *at = line, *end = line + len;
    uint64_t major, minor;
    memset(out, 0, sizeof *out);
    if (hex(&at, end, &out->start) || skip(&at, end, '-') || hex(&at, end, &out->end) || skip(&at, end, ' ') ||
        end - at < 5 || out->start >= out->end) {
        return -1;
    }
    out->perms = (at[0] == 'r' ? AU_PERM_READ : 0u) | (at[1] == 'w' ? AU_PERM_WRITE : 0u) |
                 (at[2] == 'x' ? AU_PERM_EXEC : 0u) | (at[3] == 's' ? AU_PERM_SHARED : 0u);
    at += 4;
    if (skip(&at, end, ' ') || hex(&at, end, &out->offset) || skip(&at, end, ' ') || hex(&at, end, &major) ||
        skip(&at, end, ':') || hex(&at, end, &minor) || skip(&at, end, ' ') || decimal(&at, end, &out->inode) ||
        major > UINT32_MAX || minor > UINT32_MAX) {
        return -1;
    }
    out->dev_major = (unsigned)major;
    out->dev_minor = (unsigned)minor;
    while (at < end && *at == ' ') {
        at++;
    }
    if (at < end) {
        static const char mark[] = " (deleted)";
        char *path = line + (at - line);
        line[len] = 0;
        size_t length = strlen(path); /* a NUL inside can only come from made-up bytes */
        if (length >= sizeof mark && strcmp(path + length - (sizeof mark - 1), mark) == 0) {
            out->deleted = 1;
            path[length - (sizeof mark - 1)] = 0;
        }
        unescape(path);
        out->path = path[0] ? path : NULL;
    }
    return 0;
}

uint64_t au__maps_file_id(const au__maps_line *line)
{
    if (line->inode == 0) {
        return 0;
    }
    uint64_t x = line->inode * 0x9e3779b97f4a7c15u ^ ((uint64_t)line->dev_major << 32 | line->dev_minor);
    x ^= x >> 29;
    return x ? x : 1;
}

int au__maps_each(au__maps_read_fn read, void *read_baton, int (*fn)(void *baton, const au__maps_line *line),
                  void *baton, size_t *lines)
{
    char *buf = malloc(MAPS_CHUNK + 1);
    if (!buf) {
        return -2;
    }
    size_t held = 0;
    int skipping = 0, result = 0, ended = 0;
    *lines = 0;
    while (!result && !(ended && held == 0)) {
        long got = 0;
        if (!ended) {
            got = read(read_baton, buf + held, MAPS_CHUNK - held);
            if (got < 0) {
                result = -1;
                break;
            }
            if (got == 0 || (size_t)got > MAPS_CHUNK - held) {
                ended = 1;
                if (held == 0) {
                    break;
                }
            }
        }
        held += ended ? 0 : (size_t)got;
        size_t at = 0;
        while (!result && at < held) {
            char *feed = memchr(buf + at, '\n', held - at);
            if (!feed && !ended && !(at == 0 && held == MAPS_CHUNK)) {
                break; /* the rest of the line comes with the next read */
            }
            size_t len = feed ? (size_t)(feed - (buf + at)) : held - at;
            au__maps_line line;
            if (!skipping && au__maps_parse_line(buf + at, len, &line) == 0) {
                (*lines)++;
                result = fn(baton, &line);
            }
            skipping = feed == NULL;
            at += len + (feed ? 1 : 0);
        }
        memmove(buf, buf + at, held - at);
        held -= at;
    }
    free(buf);
    return result;
}
