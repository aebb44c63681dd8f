# SPDX-License-Identifier: Apache-2.0
"""
Code that is compiled, run once and thrown away a moment later, by turns with a function that stays.

work_us  what either calls spends
seconds  how long
"""

import time

import truth

opt = truth.options(work_us=20, seconds=1.0)
clock = time.perf_counter_ns
spent = {"once": 0, "ever": 0}


def once():
    began = clock()
    while clock() - began < opt.work_us * 1000:
        pass
    spent["once"] += clock() - began


def ever():
    began = clock()
    while clock() - began < opt.work_us * 1000:
        pass
    spent["ever"] += clock() - began


def drive():
    start = clock()
    while clock() - start < opt.seconds * 1e9:
        code = compile("once()", "<compiled>", "exec")
        exec(code)
        ever()
    return clock() - start


truth.ready(file=__file__)
time.sleep(0.3)
elapsed = drive()
truth.done(spent=spent, elapsed=elapsed)
