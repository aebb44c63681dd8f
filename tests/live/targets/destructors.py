# SPDX-License-Identifier: Apache-2.0
"""
Threads whose only function has returned, while a destructor of its local works on: on its stack there is nothing below
the destructor but entries from C.

seconds   how long each destructor works
threads   one after the other
"""

import _thread
import time

import truth

opt = truth.options(seconds=0.3, threads=3)


def leaf(turns):
    for _ in range(turns):
        pass


def work(until):
    while time.monotonic() < until:
        leaf(200)


class Last:
    def __del__(self):
        work(time.monotonic() + opt.seconds)
        done.release()


def first():
    last = Last()  # noqa: F841


done = _thread.allocate_lock()
done.acquire()
truth.ready(file=__file__)
time.sleep(0.3)
for _ in range(opt.threads):
    _thread.start_new_thread(first, ())
    done.acquire()
truth.done()
