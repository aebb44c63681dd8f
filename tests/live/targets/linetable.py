# SPDX-License-Identifier: Apache-2.0
"""
One function of very many lines, whose line table is far over 64 KiB. It loops over all of them, and a second thread
stands still near the end.

lines     how many
seconds   how long
"""

import sys
import threading
import time

import truth

opt = truth.options(lines=50_000, seconds=3.0)
FILE = "generated-lines.py"


def generate():
    text = ["def long(stop):", "    x = 0"]
    text += ["    x = x + %d" % (n % 7) for n in range(opt.lines)]
    text += ["    stop(", "        x", "    )", "    return x"]
    space = {}
    exec(compile("\n".join(text), FILE, "exec"), space)
    return space["long"]


def park(_):
    while True:
        time.sleep(60)


def go_on(_):
    pass


def report(ident):
    time.sleep(0.5)
    before = None
    while True:
        time.sleep(0.1)
        stack = truth.stack_of(sys._current_frames()[ident])
        if stack == before and stack[-1][1] == "park":
            break
        before = stack
    truth.ready(stacks={"parked": stack}, file=FILE, lines=opt.lines, table=len(long.__code__.co_linetable))


long = generate()
thread = threading.Thread(target=long, args=(park,), name="parked", daemon=True)
thread.start()
reporter = threading.Thread(target=report, args=(thread.ident,), daemon=True)
reporter.start()
reporter.join()
finish = time.monotonic() + opt.seconds
while time.monotonic() < finish:
    long(go_on)
truth.done()
