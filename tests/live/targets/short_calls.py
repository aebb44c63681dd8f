# SPDX-License-Identifier: Apache-2.0
"""
Loops that make two short calls each, with a few lines of their own after each one. Which line calls whom is known.

seconds   how long
"""

import time

import truth

opt = truth.options(seconds=2.0)
clock = time.perf_counter_ns


def first():
    a = 1
    for _ in range(4):
        a += 1
    return a


def second():
    a = 2
    for _ in range(9):
        a += 2
    return a


def loop(lines):
    """Source and call lines of a loop with so many lines after each call."""
    name = "loop_%d" % lines
    source = ["def %s(a):" % name, "    for _ in range(200):"]
    calls = []
    for callee in ("first", "second"):
        source.append("        %s()" % callee)
        calls.append([name, len(source), callee])
        source += ["        a = a * 3 %% %d" % (1000 + i) for i in range(lines)]
    scope = {"first": first, "second": second}
    exec(compile("\n".join(source), name + ".py", "exec"), scope)
    return scope[name], calls


loops, calls = zip(*[loop(lines) for lines in (1, 3, 6, 10, 17)])
truth.ready(file=__file__, calls=sum(calls, []))
start = clock()
end = start + int(opt.seconds * 1e9)
while clock() < end:
    for run in loops:
        run(1)
truth.done(elapsed=clock() - start)
