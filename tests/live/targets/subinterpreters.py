# SPDX-License-Identifier: Apache-2.0
"""
Sub-interpreters, each run by a thread of its own, made after the profiler may have started.

count     how many
seconds   how long they live
"""

import sys
import threading
import time

import truth

opt = truth.options(count=2, seconds=2.0)

BODY = """
import time
def inner_{n}(end):
    while time.monotonic() < end:
        time.sleep(0.02)
def outer_{n}(end):
    inner_{n}(end)
outer_{n}({end!r})
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
    end = time.monotonic() + opt.seconds
    made, threads = [], []
    for n in range(opt.count):
        number, run = make()
        made.append({"id": number, "frames": ["outer_%d" % n, "inner_%d" % n], "thread": "sub-%d" % n})
        thread = threading.Thread(target=runs_sub, args=(run, BODY.format(n=n, end=end)), name="sub-%d" % n)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    truth.done(made=made)


main()
