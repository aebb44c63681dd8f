# SPDX-License-Identifier: Apache-2.0
"""
Sub-interpreters, each run by a thread of its own, made after the profiler may have started.

count     how many
seconds   how long they live
busy      1: they compute; 0: they sleep in small steps
"""

import os
import sys
import threading
import time

import truth

opt = truth.options(count=2, seconds=2.0, busy=0)

reports, report_to = os.pipe()

BODY = """
import os, time
def inner_{n}(end):
    while time.monotonic() < end:
        {step}
def outer_{n}(end):
    inner_{n}(end)
began = time.monotonic()
outer_{n}({end!r})
os.write({report_to}, b"{n} %f\\n" % (time.monotonic() - began))
"""


def make():
    """(number of the interpreter, function that runs a text in it), by what this version calls it."""
    if sys.version_info >= (3, 14):
        from concurrent import interpreters

        interpreter = interpreters.create()
        return interpreter.id, interpreter.exec
    if sys.version_info >= (3, 13):
        import _interpreters

        number = _interpreters.create()
        return int(number), lambda text: _interpreters.run_string(number, text)
    import _xxsubinterpreters

    number = _xxsubinterpreters.create()
    return int(number), lambda text: _xxsubinterpreters.run_string(number, text)


def runs_sub(run, text):
    run(text)


def main():
    truth.ready()
    time.sleep(0.5)
    made, threads = [], []
    interpreters = [make() for _ in range(opt.count)]
    end = time.monotonic() + opt.seconds
    step = "pass" if opt.busy else "time.sleep(0.02)"
    for n, (number, run) in enumerate(interpreters):
        made.append({"id": number, "frames": ["outer_%d" % n, "inner_%d" % n], "thread": "sub-%d" % n})
        text = BODY.format(n=n, end=end, step=step, report_to=report_to)
        thread = threading.Thread(target=runs_sub, args=(run, text), name="sub-%d" % n)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    os.close(report_to)
    for line in os.fdopen(reports):
        n, inner = line.split()
        made[int(n)]["inner"] = float(inner)
    truth.done(made=made)


main()
