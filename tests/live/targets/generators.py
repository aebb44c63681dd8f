# SPDX-License-Identifier: Apache-2.0
"""
Generators and coroutines that swap every few microseconds, each under one consumer only.

kind      gen: two consumers with a `yield from` chain each, resumed by turns
          async: the same with coroutines and `await`
          deep: one chain of `depth` generators that goes on for ever
seconds   how long
"""

import time

import truth

opt = truth.options(kind="gen", seconds=2.0, depth=50, turns=20)


def red_leaf():
    while True:
        for _ in range(opt.turns):
            pass
        yield 1


def red_middle():
    yield from red_leaf()


def red_outer():
    yield from red_middle()


def blue_leaf():
    while True:
        for _ in range(opt.turns):
            pass
        yield 2


def blue_middle():
    yield from blue_leaf()


def blue_outer():
    yield from blue_middle()


def red_consumer(generator):
    return next(generator)


def blue_consumer(generator):
    return next(generator)


class Pause:
    """What an event loop's future does: hands control out once."""

    def __await__(self):
        yield self


async def red_work():
    for _ in range(opt.turns):
        pass
    await Pause()


async def red_task():
    while True:
        await red_work()


async def blue_work():
    for _ in range(opt.turns):
        pass
    await Pause()


async def blue_task():
    while True:
        await blue_work()


def red_step(coroutine):
    coroutine.send(None)


def blue_step(coroutine):
    coroutine.send(None)


def chain(n):
    if n > 1:
        yield from chain(n - 1)
    while True:
        for _ in range(opt.turns):
            pass
        yield n


def swap(first, red, second, blue, end):
    while time.monotonic() < end:
        for _ in range(100):
            first(red)
            second(blue)


def deep(generator, end):
    while time.monotonic() < end:
        for _ in range(100):
            next(generator)


PAUSE = Pause.__await__.__code__
PAUSE_NAME = getattr(PAUSE, "co_qualname", PAUSE.co_name)
EDGES = {
    "gen": [
        ["<module>", "swap"],
        ["swap", "red_consumer"],
        ["swap", "blue_consumer"],
        ["red_consumer", "red_outer"],
        ["red_outer", "red_middle"],
        ["red_middle", "red_leaf"],
        ["blue_consumer", "blue_outer"],
        ["blue_outer", "blue_middle"],
        ["blue_middle", "blue_leaf"],
    ],
    "async": [
        ["<module>", "swap"],
        ["swap", "red_step"],
        ["swap", "blue_step"],
        ["red_step", "red_task"],
        ["red_task", "red_work"],
        ["red_work", PAUSE_NAME],
        ["blue_step", "blue_task"],
        ["blue_task", "blue_work"],
        ["blue_work", PAUSE_NAME],
    ],
    "deep": [["<module>", "deep"], ["deep", "chain"], ["chain", "chain"]],
}

truth.ready(file=__file__, edges=EDGES[opt.kind], open=["<module>"])
time.sleep(0.3)
finish = time.monotonic() + opt.seconds
if opt.kind == "gen":
    swap(red_consumer, red_outer(), blue_consumer, blue_outer(), finish)
elif opt.kind == "async":
    swap(red_step, red_task(), blue_step, blue_task(), finish)
else:
    deep(chain(opt.depth), finish)
truth.done()
