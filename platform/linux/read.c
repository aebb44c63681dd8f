/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. process_vm_readv(2) serves up to IOV_MAX segments in array order in one call and says how many bytes came; a
 * count that ends inside a segment, or before one, means that this segment faulted. It is preferred to pread on
 * /proc/PID/mem also for a single read: about as cheap, and mem ignores the protection of pages (FOLL_FORCE), so that
 * the two ways would disagree about what faults. Where the call is missing (ENOSYS: old emulators) or refused by a
 * seccomp filter (EPERM), mem is the way.
 */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/linux/linux.h"

/* Less than the kernel's MAX_RW_COUNT, so that a call is never cut for its length. */
#define BATCH_BYTES ((size_t)1 << 30)

au_outcome au__linux_read_mem(linux_proc *lp, au_addr addr, void *buf, size_t len)
{
    if (len > UINT64_MAX - addr) {
        return AU_FAULT;
    }
    int bound_again = 0;
    for (size_t done = 0; done < len;) {
        size_t want = len - done < BATCH_BYTES ? len - done : BATCH_BYTES;
        ssize_t got = pread(lp->mem, (char *)buf + done, want, (off_t)(addr + done));
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0) { /* this address space has ended */
            au_outcome outcome = bound_again ? AU_GONE : au__linux_rebind(lp);
            if (outcome != AU_OK) {
                return outcome;
            }
            bound_again = 1;
            done = 0;
        } else if (errno != EINTR) {
            return errno == ESRCH ? AU_GONE : errno == EPERM || errno == EACCES ? AU_DENIED : AU_FAULT;
        }
    }
    return AU_OK;
}

/** What a refused call means: AU_OK says "use mem, it works": this time, or if there is no other thread from now on. */
static au_outcome refused(linux_proc *lp, au_addr addr, int os_code)
{
    int64_t before = lp->reader;
    if (os_code == ESRCH) {
        if (au__linux_gone(lp)) {
            return AU_GONE;
        }
        (void)au__linux_choose(lp); /* the first thread, or the one that stood for it, has ended */
    }
    char unused;
    au_outcome outcome = au__linux_read_mem(lp, addr, &unused, 1);
    if (outcome == AU_OK || outcome == AU_FAULT) {
        lp->no_vm_readv |= lp->reader == before;
        return AU_OK;
    }
    return outcome;
}

static int only_mem(const linux_proc *lp)
{
    return lp->no_vm_readv || lp->reader < 0;
}

static int is_refusal(int os_code)
{
    return os_code == ENOSYS || os_code == EPERM || os_code == ESRCH || os_code == EACCES;
}

/** The thread that stood for the process has ended, and its number may have been somebody else's during the read. */
static au_outcome read_anew(linux_proc *lp, au_addr addr, void *buf, size_t len)
{
    (void)au__linux_choose(lp);
    return au__linux_read_mem(lp, addr, buf, len);
}

au_outcome au__linux_read(au_proc *proc, au_addr addr, void *buf, size_t len)
{
    linux_proc *lp = linux_of(proc);
    if (lp->gone) {
        return AU_GONE;
    }
    if (len == 0) {
        return AU_OK;
    }
    if (len > UINT64_MAX - addr || addr > UINTPTR_MAX) {
        return AU_FAULT;
    }
    if (only_mem(lp)) {
        return au__linux_read_mem(lp, addr, buf, len);
    }
    for (size_t done = 0; done < len;) {
        size_t want = len - done < BATCH_BYTES ? len - done : BATCH_BYTES;
        struct iovec local = {(char *)buf + done, want};
        struct iovec remote = {(void *)(uintptr_t)(addr + done), want}; /* never dereferenced here */
        ssize_t got = process_vm_readv((pid_t)lp->reader, &local, 1, &remote, 1, 0);
        if (got < 0 && is_refusal(errno)) {
            au_outcome outcome = refused(lp, addr, errno);
            return outcome == AU_OK ? au__linux_read_mem(lp, addr, buf, len) : outcome;
        }
        if (got != (ssize_t)want) {
            return au__linux_gone(lp) ? AU_GONE : au__linux_reader_ended(lp) ? read_anew(lp, addr, buf, len) : AU_FAULT;
        }
        done += want;
    }
    return au__linux_maybe_gone(lp) ? AU_GONE : au__linux_reader_ended(lp) ? read_anew(lp, addr, buf, len) : AU_OK;
}

static size_t read_many_mem(linux_proc *lp, au_piece *pieces, size_t n)
{
    size_t ok = 0;
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = (uint32_t)au__linux_read_mem(lp, pieces[i].addr, pieces[i].buf, pieces[i].len);
        ok += pieces[i].outcome == AU_OK;
    }
    return ok;
}

static void mark(au_piece *pieces, size_t n, au_outcome outcome)
{
    for (size_t i = 0; i < n; i++) {
        pieces[i].outcome = (uint32_t)outcome;
    }
}

/* As many pieces as one call takes, from the first on. None: the first is one that no address space can hold. */
static size_t gather(linux_proc *lp, const au_piece *pieces, size_t n, size_t *bytes)
{
    size_t count = 0, sum = 0;
    for (; count < n && count < LINUX_BATCH; count++) {
        const au_piece *piece = &pieces[count];
        size_t len = piece->len;
        if (len > UINT64_MAX - piece->addr || piece->addr > UINTPTR_MAX || (count && sum + len > BATCH_BYTES)) {
            break;
        }
        lp->local[count] = (struct iovec){piece->buf, len};
        lp->remote[count] = (struct iovec){(void *)(uintptr_t)piece->addr, len};
        sum += len;
    }
    *bytes = sum;
    return count;
}

/* The outcomes of `count` pieces of which `got` bytes were read; how many have one now: all up to the first fault. */
static size_t settle(au_piece *pieces, size_t count, size_t got, size_t *ok)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > got) {
            pieces[i].outcome = AU_FAULT;
            return i + 1;
        }
        got -= pieces[i].len;
        pieces[i].outcome = AU_OK;
        *ok += 1;
    }
    return count;
}

size_t au__linux_read_many(au_proc *proc, au_piece *pieces, size_t n)
{
    linux_proc *lp = linux_of(proc);
    if (lp->gone) {
        mark(pieces, n, AU_GONE);
        return 0;
    }
    if (only_mem(lp)) {
        return read_many_mem(lp, pieces, n);
    }
    size_t ok = 0;
    for (size_t next = 0; next < n;) {
        size_t bytes;
        size_t count = gather(lp, pieces + next, n - next, &bytes);
        if (count == 0) {
            pieces[next++].outcome = AU_FAULT;
            continue;
        }
        if (bytes > BATCH_BYTES) { /* a single huge one */
            pieces[next].outcome =
                (uint32_t)au__linux_read(proc, pieces[next].addr, pieces[next].buf, pieces[next].len);
            ok += pieces[next++].outcome == AU_OK;
            continue;
        }
        ssize_t got = bytes == 0 ? 0 : process_vm_readv((pid_t)lp->reader, lp->local, count, lp->remote, count, 0);
        if (got < 0 && is_refusal(errno)) {
            au_outcome outcome = refused(lp, pieces[next].addr, errno);
            if (outcome == AU_OK) {
                return ok + read_many_mem(lp, pieces + next, n - next);
            }
            mark(pieces + next, n - next, outcome);
            break;
        }
        next += settle(pieces + next, count, got > 0 ? (size_t)got : 0, &ok);
    }
    if (au__linux_maybe_gone(lp)) { /* the number may have been somebody else's meanwhile */
        mark(pieces, n, AU_GONE);
        return 0;
    }
    if (au__linux_reader_ended(lp)) {
        (void)au__linux_choose(lp);
        return read_many_mem(lp, pieces, n);
    }
    return ok;
}
