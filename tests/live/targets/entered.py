# SPDX-License-Identifier: Apache-2.0
"""
Functions of a microsecond that C code calls: how much of the time is at least theirs, by the same work without them.
Half of them do their work in another function, and end with it.

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

    def __add__(self, other):
        return 1

    def __getattr__(self, name):
        return 1

    def again(self):
        Idle(1)


def body():
    a = 0
    for i in TURNS:
        a += i
    return a


class Busy(Idle):
    def __init__(self, value):
        body()
        self.value = value

    def __add__(self, other):
        return body()

    def __getattr__(self, name):
        return body()

    def again(self):
        Busy(1)

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


def by_add(things):
    for thing in things:
        thing + 1


def by_getattr(things):
    for thing in things:
        thing.missing


def by_init(things):
    for thing in things:
        thing.again()


def by_key(things):
    max(things, key=key_of)


def key_of(thing):
    return body() if type(thing) is Busy else 1


INNER = {
    by_sorted: "__lt__",
    by_property: "area",
    by_map: "lambda_of_map",
    by_call: "__call__",
    by_add: "__add__",
    by_getattr: "__getattr__",
    by_init: "__init__",
    by_key: "key_of",
}


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
for way in INNER:
    took(way, idle), took(way, busy)
    full = took(way, busy)
    least[way.__name__] = 100 * (full - took(way, idle)) / full
truth.ready(inner={way.__name__: name for way, name in INNER.items()})
start = clock()
for way in INNER:
    end = clock() + int(opt.seconds * 1e9)
    while clock() < end:
        way(busy)
truth.done(least=least, elapsed=clock() - start)
