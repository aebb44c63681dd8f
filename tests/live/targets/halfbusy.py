# SPDX-License-Identifier: Apache-2.0
"""
A thread that is on a CPU about half of the time, in bursts; its truth is its own getrusage. The main thread sleeps.

seconds   how long
"""

import random
import resource
import threading
import time

import truth

opt = truth.options(seconds=5.0)
facts = {}


def burst(until):
    while time.perf_counter() < until:
        pass


def cpu():
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    return usage.ru_utime + usage.ru_stime


def half():
    rng = random.Random(3)
    began, used = time.perf_counter(), cpu()
    while time.perf_counter() - began < opt.seconds:
        length = rng.uniform(0.001, 0.006)
        burst(time.perf_counter() + length)
        time.sleep(length)
    facts.update(wall=time.perf_counter() - began, cpu=cpu() - used)


truth.ready()
time.sleep(0.3)
thread = threading.Thread(target=half, name="half")
thread.start()
thread.join()
truth.done(**facts)
