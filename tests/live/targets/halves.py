# SPDX-License-Identifier: Apache-2.0
"""
Two halves of equal time, one of which makes ten times the calls of the other; the target keeps its own clock.

A profiler that throws away what moves while it is read sees too little of `many`.

seconds   how long
scale     of the bursts: 1 is a half to 3 ms
"""

import itertools
import random
import time

import truth

opt = truth.options(seconds=5.0, scale=1)
clock = time.perf_counter_ns
spent = {"few": 0, "many": 0}
calls = {"few": 0, "many": 0}


def few_leaf(turns):
    for _ in itertools.repeat(None, turns):
        pass


def few_inner(turns):
    few_leaf(turns)


def few(until):
    turns, count = long_turns, 0
    while clock() < until:
        few_inner(turns)
        count += 1
    return count


def many_leaf(turns):
    for _ in itertools.repeat(None, turns):
        pass


def many_inner(turns):
    many_leaf(turns)


def many(until):
    turns, count = int(short_turns), 0
    while clock() < until:
        for _ in range(10):
            many_inner(turns)
        count += 10
    return count


def calibrate():
    """Turns of the loop in 20 us."""
    best = 10**9
    for _ in range(50):
        began = clock()
        for _ in itertools.repeat(None, 1000):
            pass
        best = min(best, clock() - began)
    return max(20, 20_000 * 1000 // best)


def drive():
    rng = random.Random(1)
    start = clock()
    end = start + int(opt.seconds * 1e9)
    while clock() < end:
        burst = opt.scale * rng.randrange(500_000, 3_000_000)
        cost = {}
        for name, function in (("few", few), ("many", many)):
            began = clock()
            count = function(began + burst)
            took = clock() - began
            calls[name] += count
            spent[name] += took
            cost[name] = took / max(1, count)
        follow(cost["few"] / 10 / cost["many"])
    return clock() - start


def follow(factor):
    """A call costs more while it is watched; ten times the calls they shall be all the same."""
    global short_turns
    short_turns = max(1.0, min(long_turns / 5, short_turns * (1 + 0.2 * (factor - 1))))


long_turns = calibrate()
short_turns = max(1.0, long_turns / 10)
truth.ready(file=__file__)
time.sleep(0.3)
elapsed = drive()
truth.done(spent=spent, calls=calls, elapsed=elapsed)
