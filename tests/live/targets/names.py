# SPDX-License-Identifier: Apache-2.0
"""
A stack of functions with names of every string kind, also such as no source text can give, in files of such names.

empty     1: one of the names is empty
"""

import os
import sys
import threading
import time
import types

import truth

opt = truth.options(empty=0)
NAMES = [
    "plain",
    "na\u00efve",  # Latin-1
    "\u30c7\u30fc\u30bf",  # two bytes a character
    "\U0001d518x",  # four bytes a character
    "mixed_\u00e9_\u4e2d_\U0001f40d",
    "lone_\ud800_high",
    "lone_\udfff_low",
    "nul_\0_inside",
    "\0",
    "replacement_\ufffd_char",
    "\ufffdfffd",
    "ascii_" + "a" * 20480,
    "two_bytes_" + "\u4e2d" * 10240,
    "latin_" + "\u00e9" * 9000,
    "exact_" + "b" * (16384 - 6),
    "one_over_" + "c" * (16385 - 9),
    "surrogates_" + "\ud801" * 3000,
    "<odd> name;with:separators 1",
]
if opt.empty:
    NAMES.append("")
FILES = [
    "plain.py",
    "d\u00e9j\u00e0 vu.py",
    "\u30d5\u30a1\u30a4\u30eb.py",
    "\U0001f40d.py",
    "lone\udc80.py",
    "nul\0.py",
    "/" + "d" * 20000 + ".py",
]


def template(rest):
    if rest:
        rest[0](rest[1:])
    else:
        truth_wait()


def truth_wait():
    while True:
        time.sleep(60)


def report(ident):
    before = None
    while True:
        time.sleep(0.15)
        stack = truth.stack_of(sys._current_frames()[ident])
        if stack == before and len(stack) > len(NAMES):
            break
        before = stack
    truth.ready(stacks={"named": stack})


def renamed(n):
    changes = {"co_name": NAMES[n], "co_filename": FILES[n % len(FILES)]}
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = NAMES[n]
    return types.FunctionType(template.__code__.replace(**changes), globals())


functions = [renamed(n) for n in range(len(NAMES))]
thread = threading.Thread(target=functions[0], args=(functions[1:],), name="named", daemon=True)
thread.start()
threading.Thread(target=report, args=(thread.ident,), daemon=True).start()
truth.wait_for_word()
os._exit(0)
