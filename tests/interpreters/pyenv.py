# SPDX-License-Identifier: Apache-2.0
"""Versions that pyenv has built on this machine. They are used where they are and never fetched."""

import glob
import os

from .model import Interpreter, Missing

VERSIONS = ("3.10.13", "3.11.7", "3.12.1", "3.13.0")


def find(version):
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    exe = os.path.join(root, "versions", version, "bin", "python" + version.rpartition(".")[0])
    if not os.path.exists(exe):
        raise Missing("pyenv-%s: pyenv has no %s on this machine (it is used only where present)" % (version, version))
    shared = glob.glob(os.path.join(root, "versions", version, "lib", "libpython3.*.so.1.0"))
    return Interpreter("pyenv-" + version, [exe], exe, flags={"shared" if shared else "static"})


def fetch(version):
    return find(version)
