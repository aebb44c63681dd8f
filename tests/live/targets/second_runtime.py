# SPDX-License-Identifier: Apache-2.0
"""
Loads a second CPython into its own process by ctypes.

runtime   path of the libpython
home      where its standard library is
init      1: initialises it too; 0: leaves it as it is
seconds   how long to work afterwards
"""

import ctypes
import os
import time

import truth

opt = truth.options(runtime="", home="", init=0, seconds=1.5)


def first_runtime_work(until):
    while time.monotonic() < until:
        pass


# RTLD_DEEPBIND: the second one must use its own symbols, not those that the executable exports
library = ctypes.CDLL(opt.runtime, mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
if opt.init:
    os.environ["PYTHONHOME"] = opt.home
    library.Py_InitializeEx(0)
truth.ready(initialised=bool(library.Py_IsInitialized()))
first_runtime_work(time.monotonic() + opt.seconds)
truth.done()
os._exit(0)
