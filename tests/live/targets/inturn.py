# SPDX-License-Identifier: Apache-2.0
"""
Sub-interpreters one after another, each in the memory of the one before: number k runs `f<k>` of `/turn/<k>.py`.

count     how many
seconds   how long each of them works
"""

import sys
import time

import truth

opt = truth.options(count=40, seconds=0.03)

BODY = """
import time
code = compile("def f%(k)03d(end):\\n    while time.monotonic() < end:\\n        pass\\nf%(k)03d(end)\\n", "/turn/%(k)03d.py", "exec")
began = time.monotonic()
exec(code, {"time": time, "end": began + %(seconds)r})
"""


def tools():
    """What makes, runs and ends one, by what this version calls it."""
    if sys.version_info >= (3, 14):
        from concurrent import interpreters

        return interpreters.create, lambda it: it.id, lambda it, text: it.exec(text), lambda it: it.close()
    if sys.version_info >= (3, 13):
        import _interpreters as module
    else:
        import _xxsubinterpreters as module
    return module.create, int, module.run_string, module.destroy


def main():
    create, number, run, end = tools()
    truth.ready()
    time.sleep(0.3)
    made = []
    for k in range(opt.count):
        one = create()
        made.append(number(one))
        run(one, BODY % {"k": k, "seconds": opt.seconds})
        end(one)
    truth.done(made=made)


main()
