# SPDX-License-Identifier: Apache-2.0
"""
Threads on one CPU that other processes keep busy too: ready all the time, on the CPU for a part of it. The truth of each
thread is its own CPU clock. The main thread sleeps.

seconds   how long
cpu       which CPU; -1: the last that it may use
others    processes that spin on the same CPU
light     1: beside the thread `heavy` there is one, `light`, that spins for 1 ms of CPU and sleeps for 4 ms
"""

import os
import signal
import threading
import time

import truth

opt = truth.options(seconds=5.0, cpu=-1, others=1, light=0)
os.sched_setaffinity(0, {opt.cpu if opt.cpu >= 0 else max(os.sched_getaffinity(0))})
facts = {}
parent = os.getpid()
others = []
for _ in range(opt.others):
    pid = os.fork()
    if not pid:
        while os.getppid() == parent:
            for _ in range(10000):
                pass
        os._exit(0)
    others.append(pid)


def heavy():
    time.sleep(0.3)  # until its name is known
    began, used = time.perf_counter(), time.thread_time()
    while time.perf_counter() - began < opt.seconds:
        pass
    facts["heavy"] = time.thread_time() - used


def light():
    time.sleep(0.3)
    began, used = time.perf_counter(), time.thread_time()
    while time.perf_counter() - began < opt.seconds:
        until = time.thread_time() + 0.001
        while time.thread_time() < until:
            pass
        time.sleep(0.004)
    facts["light"] = time.thread_time() - used


try:
    truth.ready()
    threads = [threading.Thread(target=run, name=run.__name__) for run in ([heavy, light] if opt.light else [heavy])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
finally:
    for pid in others:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
truth.done(**facts)
