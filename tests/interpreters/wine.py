# SPDX-License-Identifier: Apache-2.0
"""
Wine, to run Windows programs: the machine's own ("8" on Debian 12) and that of Debian trixie ("10") in a root of its own.

Which one is used is said by AUSTIN_WINE (default: 10 if it is here, else 8). Both see the files of this system below
Z:, so that Z:/tmp/x is /tmp/x, and a path that begins with a slash is a path on the drive of the current folder.
"""

import os
import shutil

from .model import Missing, cache_dir, call, complete, fresh, is_complete, locked, note

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools", "wine.sh")
WINES = ("8", "10")


def _root():
    return os.path.join(cache_dir(), "wine10-root")


def missing(which):
    """Why that Wine cannot be used, or None."""
    if which == "8":
        return None if shutil.which("wine") else "wine8: there is no wine (apt-get install wine wine64)"
    if os.geteuid() != 0:
        return "wine10: entering its root needs root"
    return None if is_complete(_root()) else "wine10: not fetched yet (tests/interpreters/get.py wine10)"


def chosen():
    """The Wine that tests use. Raises Missing."""
    which = os.environ.get("AUSTIN_WINE") or ("8" if missing("10") else "10")
    if which not in WINES:
        raise Missing("wine: AUSTIN_WINE is %s, there are 8 and 10" % which)
    if missing(which):
        raise Missing(missing(which))
    return which


def command(program, which=None):
    """The command that starts a Windows program; its arguments follow."""
    return [SCRIPT, which or chosen(), program]


def start(which=None):
    """Starts what Wine keeps running, so that no test is the one that has started it."""
    call([SCRIPT, which or chosen(), "--start"], "wine", timeout=300)


def end_all(which=None):
    """Ends every Windows program."""
    call([SCRIPT, which or chosen(), "--end"], "wine")


def windows_path(path):
    """How a Windows program calls a file of this system."""
    return "Z:" + os.path.abspath(path).replace("/", "\\")


def find(which):
    """Its version. Raises Missing."""
    if missing(which):
        raise Missing(missing(which))
    return call([SCRIPT, which, "cmd.exe", "/c", "ver"], "wine" + which, timeout=120).strip()


def fetch(which):
    if which == "10":
        with locked("wine10"):
            if not is_complete(_root()):
                _bring()
    return find(which)


def _bring():
    from .debian import _mirror

    name = "wine10"
    if os.geteuid() != 0:
        raise Missing(name + ": debootstrap needs root")
    note("wine10: making a root of Debian trixie with Wine (about 90 seconds, 1.4 GB)")
    scratch = fresh(name)
    try:
        root = os.path.join(scratch, "root")
        call(["debootstrap", "--variant=minbase", "--include=wine,wine64", "trixie", root, _mirror(name)], name)
        for waste in ("var/lib/apt/lists", "var/cache/apt", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(os.path.join(root, waste), ignore_errors=True)
        complete(root)
        shutil.rmtree(_root(), ignore_errors=True)
        os.rename(root, _root())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
