# SPDX-License-Identifier: Apache-2.0
"""
A trace or profile function at work: called when a frame is about to begin and when it has ended.

kind     settrace or setprofile
seconds  how long
"""

import sys
import time

import truth

opt = truth.options(kind="settrace", seconds=1.0)
clock = time.perf_counter_ns
spent = {"watch": 0}


def watch(frame, event, argument):
    began = clock()
    while clock() - began < 100_000:
        pass
    spent["watch"] += clock() - began


def inner():
    began = clock()
    while clock() - began < 100_000:
        pass


def drive():
    install = getattr(sys, opt.kind)
    start = clock()
    while clock() - start < opt.seconds * 1e9:
        install(watch)
        inner()
        install(None)
    return clock() - start


truth.ready(file=__file__)
time.sleep(0.2)
elapsed = drive()
truth.done(spent=spent, elapsed=elapsed)
