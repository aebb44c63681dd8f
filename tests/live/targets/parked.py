# SPDX-License-Identifier: Apache-2.0
"""
Threads that stand still at a known depth: what the interpreter itself says of each is printed, frame by frame.

threads   how many beside the main one
depth     how many frames of the recursion each of them has (the first one; the others have depth % 17 or less)
same      1: all have the full depth
chain     0: plain calls; 1: a `yield from` chain; 2: awaited coroutines
"""

import _thread
import sys
import threading
import time

import truth

opt = truth.options(threads=1, depth=10, same=0, chain=0)
stop = _thread.allocate_lock()
stop.acquire()
arrived = []


def even(n):
    if n <= 1:
        arrived.append(n)
        stop.acquire()
        stop.release()
        return n
    return odd(n - 1) + 1


def odd(n):
    if n <= 1:
        arrived.append(n)
        stop.acquire()
        stop.release()
        return n
    return even(n - 1) + 1


def chained(n):
    if n <= 1:
        arrived.append(n)
        stop.acquire()
        stop.release()
        yield n
    else:
        yield from chained(n - 1)


async def awaited(n):
    if n <= 1:
        arrived.append(n)
        stop.acquire()
        stop.release()
        return n
    return await awaited(n - 1)


def life(n):
    if opt.chain == 1:
        for _ in chained(n):
            pass
    elif opt.chain == 2:
        try:
            awaited(n).send(None)
        except StopIteration:
            pass
    else:
        even(n)


def report(threads, main):
    """Runs in a thread of its own, which ends before anything is measured: so it can see the main one parked too."""
    while len(arrived) < len(threads):
        time.sleep(0.01)
    before = None
    while True:
        time.sleep(0.15)
        frames = sys._current_frames()
        stacks = {thread.name: truth.stack_of(frames[thread.ident]) for thread in threads}
        stacks["MainThread"] = truth.stack_of(frames[main])
        if stacks == before:
            break
        before = stacks
    truth.ready(stacks=stacks, natives={thread.name: thread.native_id for thread in threads})


def main():
    sys.setrecursionlimit(opt.depth + 1000)
    deepest = opt.depth if opt.same else 20
    # 3.10 recurses on the C stack: about 600 bytes a call, more for generators
    threading.stack_size(max(256 * 1024, 4 * opt.depth * 1024) if opt.depth > deepest or opt.same else 256 * 1024)
    threads = []
    for k in range(opt.threads):
        depth = opt.depth if opt.same or k == 0 else 1 + k % 17
        if k == 0:
            threading.stack_size(max(512 * 1024, 4 * opt.depth * 1024))
        elif not opt.same:
            threading.stack_size(256 * 1024)
        thread = threading.Thread(target=life, args=(depth,), name="park-%d" % k, daemon=True)
        thread.start()
        threads.append(thread)
    threading.stack_size(16 * 1024 * 1024)
    threading.Thread(target=report, args=(threads, threading.get_ident()), daemon=True).start()
    truth.wait_for_word()
    stop.release()
    for thread in threads:
        thread.join()
    truth.done()


main()
