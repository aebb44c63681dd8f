# SPDX-License-Identifier: Apache-2.0
"""
Works for a while, then becomes another Python (or another program) by exec.

first     seconds of work before
then      what to exec: "self" runs steady.py in the same Python; else a path
"""

import os
import sys
import time

import truth

opt = truth.options(first=0.6, then="self")


def before_exec(until):
    while time.monotonic() < until:
        pass


truth.ready()
before_exec(time.monotonic() + opt.first)
if opt.then == "self":
    steady = os.path.join(os.path.dirname(os.path.abspath(__file__)), "steady.py")
    os.execv(sys.executable, [sys.executable, steady, "seconds=1.0"])
os.execv(opt.then, [opt.then, "2"])
