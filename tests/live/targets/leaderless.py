# SPDX-License-Identifier: Apache-2.0
"""
A program whose main thread ends while another one works: the kernel keeps the first thread as a zombie until then.

before    seconds that the main thread lives
seconds   how long the other thread works after that
how       "pthread": by pthread_exit; "exit": by the system call alone
"""

import ctypes
import threading
import time

import truth

opt = truth.options(before=0.0, seconds=1.0, how="pthread")


def inner(until):
    n = 0
    while time.monotonic() < until:
        n += 1


def outer(until):
    inner(until)


def alive(until):
    while time.monotonic() < until:
        time.sleep(0.005)


threading.Thread(target=outer, args=(time.monotonic() + opt.before + opt.seconds,)).start()
alive(time.monotonic() + opt.before)
truth.ready()
library = ctypes.CDLL(None)
if opt.how == "pthread":
    library.pthread_exit.argtypes = [ctypes.c_void_p]
    library.pthread_exit(None)
else:
    library.syscall(60, 0)  # x86-64: exit, of this thread
