# SPDX-License-Identifier: Apache-2.0
"""
Functions of a microsecond that C code calls: how much of the time is at least theirs, by the same work without them.

seconds   how long each way of calling is kept up
turns     of the loop in the function
"""

import time

import truth

opt = truth.options(seconds=1.0, turns=40)
clock = time.perf_counter_ns
TURNS = range(opt.turns)


class Idle:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    def __call__(self):
        return 1

    @property
    def area(self):
        return 1


class Busy(Idle):
    def __lt__(self, other):
        a = 0
        for i in TURNS:
            a += i
        return self.value < other.value

    def __call__(self):
        a = 0
        for i in TURNS:
            a += i
        return a

    @property
    def area(self):
        a = 0
        for i in TURNS:
            a += i
        return a


def by_sorted(things):
    sorted(things)


def by_property(things):
    for thing in things:
        thing.area


def by_map(things):
    for _ in map(lambda_of_map, things):
        pass


def lambda_of_map(thing):
    a = 0
    for i in TURNS if type(thing) is Busy else ():
        a += i
    return a


def by_call(things):
    for thing in things:
        thing()


WAYS = (by_sorted, by_property, by_map, by_call)
INNER = {"by_sorted": "__lt__", "by_property": "area", "by_map": "lambda_of_map", "by_call": "__call__"}


def took(way, things):
    best = float("inf")
    for _ in range(9):
        began = clock()
        way(things)
        best = min(best, clock() - began)
    return best


idle = [Idle(i * 7919 % 1000) for i in range(1000)]
busy = [Busy(i * 7919 % 1000) for i in range(1000)]
least = {}
for way in WAYS:
    took(way, idle), took(way, busy)
    full = took(way, busy)
    least[way.__name__] = 100 * (full - took(way, idle)) / full
truth.ready(inner=INNER)
start = clock()
for way in WAYS:
    end = clock() + int(opt.seconds * 1e9)
    while clock() < end:
        way(busy)
truth.done(least=least, elapsed=clock() - start)
