# SPDX-License-Identifier: Apache-2.0
"""
An event loop whose tasks yield to each other all the time. Coroutines are made and freed without end, so that another
task's is where one was; the loop's own frames do not hold them.

turns     of a loop, for each step of a task
seconds   how long
"""

import asyncio
import time

import truth

opt = truth.options(turns=1000, seconds=2.0)
clock = time.perf_counter_ns
spent = 0


async def work():
    global spent
    began = clock()
    for _ in range(opt.turns):
        pass
    spent += clock() - began


async def task(end):
    while clock() < end:
        await work()
        await asyncio.sleep(0)


async def drive():
    end = clock() + int(opt.seconds * 1e9)
    await asyncio.gather(*[task(end) for _ in range(20)])


truth.ready(file=__file__)
time.sleep(0.3)
start = clock()
asyncio.run(drive())
truth.done(spent={"work": spent}, elapsed=clock() - start)
