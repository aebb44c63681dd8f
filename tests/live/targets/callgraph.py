# SPDX-License-Identifier: Apache-2.0
"""
Seven levels of tiny plain functions with a known call graph: a pair of frames that is not in it never existed.

seconds   how long
leaf      0: empty leaves; else about so many nanoseconds of work in each
"""

import time

import truth

opt = truth.options(seconds=5.0, leaf=2000)
LEVELS = 7
WIDTH = 4
rounds = 0


def edges():
    """Who may call whom: f<level>_<number> calls number and number + 1 of the next level."""
    allowed = [["<module>", "drive"]] + [["drive", "f0_%d" % n] for n in range(WIDTH)]
    for level in range(LEVELS - 1):
        for n in range(WIDTH):
            allowed.append(["f%d_%d" % (level, n), "f%d_%d" % (level + 1, n)])
            allowed.append(["f%d_%d" % (level, n), "f%d_%d" % (level + 1, (n + 1) % WIDTH)])
    return allowed


def f0_0():
    f1_0()
    f1_1()


def f0_1():
    f1_1()
    f1_2()


def f0_2():
    f1_2()
    f1_3()


def f0_3():
    f1_3()
    f1_0()


def f1_0():
    f2_0()
    f2_1()


def f1_1():
    f2_1()
    f2_2()


def f1_2():
    f2_2()
    f2_3()


def f1_3():
    f2_3()
    f2_0()


def f2_0():
    f3_0()
    f3_1()


def f2_1():
    f3_1()
    f3_2()


def f2_2():
    f3_2()
    f3_3()


def f2_3():
    f3_3()
    f3_0()


def f3_0():
    f4_0()
    f4_1()


def f3_1():
    f4_1()
    f4_2()


def f3_2():
    f4_2()
    f4_3()


def f3_3():
    f4_3()
    f4_0()


def f4_0():
    f5_0()
    f5_1()


def f4_1():
    f5_1()
    f5_2()


def f4_2():
    f5_2()
    f5_3()


def f4_3():
    f5_3()
    f5_0()


def f5_0():
    f6_0()
    f6_1()


def f5_1():
    f6_1()
    f6_2()


def f5_2():
    f6_2()
    f6_3()


def f5_3():
    f6_3()
    f6_0()


def f6_0():
    for _ in turns:
        pass


def f6_1():
    for _ in turns:
        pass


def f6_2():
    for _ in turns:
        pass


def f6_3():
    for _ in turns:
        pass


def calibrate():
    """How often the leaf's loop turns in the wanted time."""
    if not opt.leaf:
        return 0
    best = 10**9
    for _ in range(20):
        began = time.perf_counter_ns()
        for _ in range(1000):
            pass
        best = min(best, time.perf_counter_ns() - began)
    return max(1, opt.leaf * 1000 // best)


def drive(until):
    global rounds
    while time.monotonic() < until:
        f0_0()
        f0_1()
        f0_2()
        f0_3()
        rounds += 1


turns = range(calibrate())
truth.ready(edges=edges(), file=__file__, open=["<module>"])
time.sleep(0.3)
drive(time.monotonic() + opt.seconds)
truth.done(rounds=rounds)
