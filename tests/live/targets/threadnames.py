# SPDX-License-Identifier: Apache-2.0
"""
Thread names in phases. Each phase of each thread runs in a function of its own, so that a sample says by its frames
what its thread had to be called.
"""

import _thread
import sys
import time

import truth

opt = truth.options(phase=0.6)
expected = {}  # function: name that its samples must have


def pause(seconds):
    time.sleep(seconds)


def main_alone():
    pause(opt.phase)


def main_later():
    pause(opt.phase)


def raw_before():
    pause(opt.phase * 2)


def worker_one():
    pause(opt.phase)


def worker_two():
    pause(opt.phase)


def before_rename():
    pause(0.3)


def in_between():
    pause(1.3)


def after_rename():
    pause(opt.phase)


def renamed():
    before_rename()
    in_between()
    after_rename()


def slotted():
    pause(opt.phase)


def materialised():
    pause(opt.phase)


def greek():
    pause(opt.phase)


def cjk():
    pause(opt.phase)


def emoji():
    pause(opt.phase)


def surrogate():
    pause(opt.phase)


def raw_later():
    expected["raw_later"] = "%x" % _thread.get_native_id()
    pause(opt.phase)


def raw_first():
    expected["raw_before"] = "%x" % _thread.get_native_id()
    raw_before()


def main():
    truth.ready(threading="threading" in sys.modules)
    _thread.start_new_thread(raw_first, ())
    main_alone()
    expected["main_alone"] = expected["main_later"] = "MainThread"

    import threading

    class Slotted(threading.Thread):
        __slots__ = ("extra",)

        def __init__(self, **kwargs):
            for n in range(40):
                setattr(self, "attribute_%d" % n, n)
            super().__init__(**kwargs)
            self.extra = 1

    def begin(function, name, kind=threading.Thread):
        thread = kind(target=function, name=name)
        expected[function.__name__] = name
        thread.start()
        return thread

    threads = [
        begin(worker_one, "Worker1"),
        begin(worker_two, "Worker2"),
        begin(slotted, "slotted", Slotted),
        begin(greek, "\u03bd\u03ae\u03bc\u03b1"),
        begin(cjk, "\u7dda\u7a0b"),
        begin(emoji, "\U0001f9f5-1"),
        begin(surrogate, "lone \udc80"),
    ]
    thread = begin(materialised, "materialised")
    thread.__dict__["more"] = 1
    threads.append(thread)
    _thread.start_new_thread(raw_later, ())
    thread = begin(renamed, "OldName")
    threads.append(thread)
    time.sleep(0.15)
    thread.name = "NewName"
    expected["after_rename"] = "NewName"
    del expected["renamed"]
    main_later()
    for thread in threads:
        thread.join()
    truth.done(expected=expected, threading=True)


main()
