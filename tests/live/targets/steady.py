# SPDX-License-Identifier: Apache-2.0
"""
A program with a known hot function, for tests that are about anything but its stacks.

seconds   how long it works; 0: until standard input ends
busy      1: computes; 0: sleeps in small steps
code      exit status
catch     file to write to when SIGTERM or SIGINT comes (then it exits with 3); empty: signals do what they do
before    seconds to sleep in silence before anything
"""

import os
import signal
import sys
import time

import truth

opt = truth.options(seconds=1.0, busy=1, code=0, catch="", before=0.0)


def inner(until):
    if opt.busy:
        n = 0
        while time.monotonic() < until:
            n += 1
    else:
        while time.monotonic() < until:
            time.sleep(0.01)


def outer(until):
    inner(until)


def caught(number, _):
    with open(opt.catch, "a") as handle:
        handle.write("%d\n" % number)
    sys.exit(3)


def ended():
    """Has standard input come to its end?"""
    if os.name != "nt":
        import select

        return bool(select.select([0], [], [], 0)[0])
    if not ends:  # select is for sockets there
        import _thread

        ends.append(0)
        _thread.start_new_thread(lambda: (os.read(0, 1), ends.append(1)), ())
    return len(ends) > 1


ends = []
if opt.catch:
    signal.signal(signal.SIGTERM, caught)
    signal.signal(signal.SIGINT, caught)
    if hasattr(signal, "SIGBREAK"):
        signal.signal(signal.SIGBREAK, caught)
time.sleep(opt.before)
truth.ready(stdout_is_open=os.fstat(1) is not None, cpu=time.process_time())
if opt.seconds:
    outer(time.monotonic() + opt.seconds)
else:
    while not ended():
        outer(time.monotonic() + 0.05)
truth.done(cpu=time.process_time())
sys.exit(opt.code)
