# SPDX-License-Identifier: Apache-2.0
"""
A program that shows that it lives: it writes to a file ten times a second, for at most a minute.

into    the file
child   the file of another one, which it starts; empty: none
"""

import os
import subprocess
import sys
import time

import truth

opt = truth.options(into="", child="")


def beat(handle):
    handle.write("x")
    handle.flush()
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass


if opt.child:
    subprocess.Popen([sys.executable, os.path.abspath(__file__), "into=" + opt.child], stdout=subprocess.DEVNULL)
with open(opt.into, "a") as file:
    truth.ready()
    for _ in range(600):
        beat(file)
