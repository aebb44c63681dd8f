# SPDX-License-Identifier: Apache-2.0
"""
Code objects without end: each is made, run a few times and freed, and the next one of the same size takes its place
in memory. Its number is in its name, and name, file and lines belong together by a rule, so that a triple that never
existed is seen at once: function `fn_<k>` is in `file_<(k * 7919) % 10^8>.py` and begins at line 1 + k % 1000.

seconds   how long
rate      new ones a second; 0: as many as it can
compile   1: every one is compiled from text; 0: made by code.replace(); 2: it is a class body with a lambda
"""

import sys
import time
import types

import truth

opt = truth.options(seconds=5.0, rate=0, compile=0)
OFFSETS = (1, 2, 3)  # lines of the body that can be seen, counted from the first
TEXT = """%sdef %s(n):
    for _ in n:
        pass
    return n
"""
CLASS = """%sclass %s:
    last = [(lambda n: n + 1)(n) for n in turns]
"""


def body(n):
    for _ in n:
        pass
    return n


def names(k):
    return "fn_%08d" % k, "file_%08d.py" % (k * 7919 % 10**8), 1 + k % 1000


def make(k):
    name, file, first = names(k)
    if opt.compile == 2:
        code = compile(CLASS % ("\n" * (first - 1), name), file, "exec")
        return lambda turns: exec(code, {"turns": turns[:20]})
    if opt.compile:
        space = {}
        exec(compile(TEXT % ("\n" * (first - 1), name), file, "exec"), space)
        return space[name]
    changes = {"co_name": name, "co_filename": file, "co_firstlineno": first}
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = name
    return types.FunctionType(body.__code__.replace(**changes), {})


def drive(until):
    k = 0
    turns = range(250)
    began = time.monotonic()
    now = began
    inside = 0.0
    while now < until:
        function = make(k)
        before = time.monotonic()
        for _ in range(8):
            function(turns)
        k += 1
        now = time.monotonic()
        inside += now - before
        if opt.rate and k % 50 == 0:
            ahead = k / opt.rate - (now - began)
            if ahead > 0:
                time.sleep(ahead)
                now = time.monotonic()
    return k, inside, now - began


truth.ready(file=__file__, offsets=OFFSETS)
time.sleep(0.3)
made, inside, elapsed = drive(time.monotonic() + opt.seconds)
truth.done(made=made, inside=inside, elapsed=elapsed)
