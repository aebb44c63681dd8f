# SPDX-License-Identifier: Apache-2.0
"""
Two phases of a fixed length by turns, on absolute deadlines, so that the program is in step with a sampler of a fixed
interval for as long as it runs.

phase_us  length of a phase
seconds   how long
nap       1: most of a phase is slept through, which leaves the CPU to others; 0: all of it is spent in a loop
"""

import time

import truth

opt = truth.options(phase_us=1000, seconds=5.0, nap=0)
clock = time.perf_counter_ns
spent = {"tick": 0, "tock": 0}
late = {"tick": 0, "tock": 0}  # of that, after the deadline: it was not let run at the end of the phase


def tick(until):
    if opt.nap:
        time.sleep(max(0, (until - clock() - 150_000) / 1e9))
    while clock() < until:
        pass


def tock(until):
    if opt.nap:
        time.sleep(max(0, (until - clock() - 150_000) / 1e9))
    while clock() < until:
        pass


def drive():
    phase = opt.phase_us * 1000
    start = deadline = clock()
    end = deadline + int(opt.seconds * 1e9)
    while deadline < end:
        for name, function in (("tick", tick), ("tock", tock)):
            deadline += phase
            began = clock()
            function(deadline)
            ended = clock()
            spent[name] += ended - began
            late[name] += max(0, ended - max(began, deadline))
    return clock() - start


truth.ready(file=__file__)
time.sleep(0.3)
elapsed = drive()
truth.done(spent=spent, late=late, elapsed=elapsed)
