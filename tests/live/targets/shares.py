# SPDX-License-Identifier: Apache-2.0
"""
Four functions that take 60, 25, 10 and 5 % of the time, in random bursts; the target keeps its own clock.

seconds   how long
scale     of the bursts: 1 is 0.025 to 3.6 ms
"""

import random
import time

import truth

opt = truth.options(seconds=5.0, scale=1)
clock = time.perf_counter_ns
WEIGHTS = {"sixty": 60, "twentyfive": 25, "ten": 10, "five": 5}
spent = dict.fromkeys(WEIGHTS, 0)


def sixty(until):
    while clock() < until:
        pass


def twentyfive(until):
    while clock() < until:
        pass


def ten(until):
    while clock() < until:
        pass


def five(until):
    while clock() < until:
        pass


def drive():
    functions = [(name, globals()[name], weight) for name, weight in WEIGHTS.items()]
    rng = random.Random(2)
    start = clock()
    end = start + int(opt.seconds * 1e9)
    while clock() < end:
        rng.shuffle(functions)
        scale = opt.scale * rng.randrange(5_000, 60_000)
        for name, function, weight in functions:
            began = clock()
            function(began + scale * weight)
            spent[name] += clock() - began
    return clock() - start


truth.ready(file=__file__)
time.sleep(0.3)
elapsed = drive()
truth.done(spent=spent, elapsed=elapsed)
