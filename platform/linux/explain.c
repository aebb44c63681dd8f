/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which right is missing. The kernel's rule is ptrace(2), "Ptrace access mode checking": same uids, or CAP_SYS_PTRACE
 * in the target's user namespace; the target dumpable; its capabilities within ours; then Yama
 * (Documentation/admin-guide/LSM/Yama.rst). Looked at in this order by what /proc shows to everybody.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/linux/linux.h"

enum { CAPABILITY_SYS_PTRACE = 19 };

static int exists(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", au__linux_proc_root, name);
    return access(path, F_OK) == 0;
}

static uint64_t hex_field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/** Marks that container engines leave: a file, the name of our control group, or the environment of process 1. */
static int in_container(void)
{
    char text[8192];
    if (exists("1/root/.dockerenv") || exists("1/root/run/.containerenv")) {
        return 1;
    }
    if (strcmp(au__linux_proc_root, "/proc") == 0 &&
        (access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0)) {
        return 1;
    }
    if (au__linux_slurp_root("1/cgroup", text, sizeof text) > 0 ||
        au__linux_slurp_root("self/cgroup", text, sizeof text) > 0) {
        static const char *const marks[] = {"docker", "kubepods", "containerd", "libpod", "lxc"};
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
            if (strstr(text, marks[i])) {
                return 1;
            }
        }
    }
    ssize_t len = au__linux_slurp_root("1/environ", text, sizeof text);
    for (ssize_t at = 0; at < len; at += (ssize_t)strlen(text + at) + 1) {
        if (strncmp(text + at, "container=", 10) == 0) {
            return 1;
        }
    }
    return 0;
}

enum { SAME, OTHER, HIDDEN };

static int compare_links(const char *a, const char *b)
{
    char path[4096], left[128], right[128];
    snprintf(path, sizeof path, "%s/%s", au__linux_proc_root, a);
    ssize_t n = readlink(path, left, sizeof left);
    snprintf(path, sizeof path, "%s/%s", au__linux_proc_root, b);
    ssize_t m = readlink(path, right, sizeof right);
    if (m < 0 && (errno == EACCES || errno == EPERM)) {
        return HIDDEN;
    }
    /* What is not there is not known to differ. */
    return n <= 0 || m <= 0 || (n == m && memcmp(left, right, (size_t)n) == 0) ? SAME : OTHER;
}

/** Is the call as such allowed to us? Asked on our own memory, where no other rule can refuse. */
static int call_is_allowed(void)
{
    char from = 1, to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 || (errno != EPERM && errno != EACCES);
}

/** kernel.yama.ptrace_scope; 0 where there is no Yama. */
static int ptrace_scope(void)
{
    char text[32];
    if (au__linux_slurp_root("sys/kernel/yama/ptrace_scope", text, sizeof text) <= 0) {
        return 0;
    }
    long scope = strtol(text, NULL, 10);
    return scope >= 0 && scope <= 3 ? (int)scope : 0;
}

void au__linux_explain(au_sys *sys, au_pid pid, au_explanation *out)
{
    (void)sys;
    *out = (au_explanation){.right = AU_RIGHT_UNKNOWN, .uid = -1};
    out->in_container = in_container();

    char name[96], theirs[8192], ours[8192];
    if (au__linux_slurp_root("self/status", ours, sizeof ours) <= 0) {
        return;
    }
    int64_t our_uid = au__linux_status_number(ours, "Uid", 1);
    uint64_t our_caps = hex_field(ours, "\nCapEff:");
    out->is_root = our_uid == 0;
    out->may_trace = (our_caps >> CAPABILITY_SYS_PTRACE & 1) != 0;
    snprintf(name, sizeof name, "%" PRId64 "/status", pid);
    if (au__linux_slurp_root(name, theirs, sizeof theirs) <= 0) {
        return;
    }
    out->uid = au__linux_status_number(theirs, "Uid", 0);
    uint64_t their_caps = hex_field(theirs, "\nCapPrm:");

    char self[96], other[96];
    snprintf(other, sizeof other, "%" PRId64 "/ns/user", pid);
    snprintf(self, sizeof self, "self/ns/user");
    int namespace = compare_links(self, other);

    if (!call_is_allowed()) {
        out->right = AU_RIGHT_SECCOMP;
        return;
    }
    if (out->may_trace) {
        /* The link may be read by whoever may trace (proc(5), namespaces(7)): hidden is as good as another one. */
        out->scope = ptrace_scope();
        out->right = out->scope >= 3     ? AU_RIGHT_PTRACE_SCOPE
                     : namespace == SAME ? AU_RIGHT_NONE_MISSING
                                         : AU_RIGHT_NAMESPACE;
        return;
    }
    if (out->in_container && our_uid == 0) {
        out->right = AU_RIGHT_SECCOMP; /* root in a container without CAP_SYS_PTRACE */
        return;
    }
    if (out->uid != our_uid) {
        out->right = AU_RIGHT_OTHER_USER;
        return;
    }
    if ((their_caps & ~hex_field(ours, "\nCapPrm:")) || namespace == OTHER) {
        out->right = AU_RIGHT_CAPABILITY;
        return;
    }
    /* The files of a process that is not dumpable belong to root (proc(5), "/proc/pid"). */
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/%" PRId64 "/environ", au__linux_proc_root, pid);
    if (stat(path, &info) == 0 && (int64_t)info.st_uid != out->uid) {
        out->right = AU_RIGHT_NOT_DUMPABLE;
        return;
    }
    out->scope = ptrace_scope();
    out->right = out->scope >= 1 ? AU_RIGHT_PTRACE_SCOPE : AU_RIGHT_NONE_MISSING;
}
