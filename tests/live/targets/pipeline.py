# SPDX-License-Identifier: Apache-2.0
"""
A consumer and the generator that it takes its items from, with equal work for each item.

A profiler that takes a generator only if it stands while all is read sees too little of it.

item      nanoseconds of work for an item, on each side
seconds   how long
"""

import itertools
import time

import truth

opt = truth.options(item=2000, seconds=2.0)
clock = time.perf_counter_ns


def produce(turns):
    while True:
        for _ in itertools.repeat(None, turns):
            pass
        yield 1


def consume(items, turns, until):
    count = 0
    for _ in items:
        for _ in itertools.repeat(None, turns):
            pass
        count += 1
        if not count & 1023 and clock() > until:
            return count


def calibrate():
    best = 10**9
    for _ in range(50):
        began = clock()
        for _ in itertools.repeat(None, 1000):
            pass
        best = min(best, clock() - began)
    return max(1, opt.item * 1000 // best)


def work(turns):
    consume(produce(turns), turns, clock() + int(opt.seconds * 1e9))


turns = calibrate()
truth.ready(file=__file__)
time.sleep(0.3)
work(turns)
truth.done()
