# SPDX-License-Identifier: Apache-2.0
"""Every interpreter that the tests know of, by name."""

import functools

from . import debian, maven, pyenv, windows
from .model import Missing

# name: (find what is here, fetch or build it, what it is)
ENTRIES = {}


def _add(name, find, fetch, what):
    ENTRIES[name] = (find, fetch, what)


for _version in maven.JARS:
    _add(
        "maven-" + _version,
        functools.partial(maven.find, _version),
        functools.partial(maven.fetch, _version),
        "Maven's org.bytedeco:cpython, shared library",
    )
for _version in pyenv.VERSIONS:
    _add(
        "pyenv-" + _version,
        functools.partial(pyenv.find, _version),
        functools.partial(pyenv.fetch, _version),
        "pyenv's own build, where present",
    )
_add("debian", debian.find_system, debian.fetch_system, "this machine's /usr/bin/python3")
for _minor in debian.SID:
    _add(
        "sid-" + _minor,
        functools.partial(debian.find_sid, _minor),
        functools.partial(debian.fetch_sid, _minor),
        "Debian sid, by debootstrap",
    )
_add("src-3.13t", debian.find_free_threaded, debian.fetch_free_threaded, "free-threaded, built from Debian's source")
_add("src-3.13-musl", debian.find_musl, debian.fetch_musl, "for musl, built from Debian's source")
for _version in maven.WINDOWS_JARS:
    _add(
        "win-" + _version,
        functools.partial(maven.find_windows, _version),
        functools.partial(maven.fetch_windows, _version),
        "Maven's org.bytedeco:cpython for Windows, under Wine",
    )
_add(
    "win-3.13t",
    windows.find_free_threaded,
    windows.fetch_free_threaded,
    "free-threaded for Windows, built from Debian's source with zig",
)
_add("win32-3.11.3", maven.find_windows_32bit, maven.fetch_windows_32bit, "32 bits for Windows, to be refused")
_add("i386-3.11", debian.find_32bit, debian.fetch_32bit, "32 bits, to be refused")

# One per version that "each version" means: none of them depends on what happens to be installed.
EACH_VERSION = ("maven-3.10.8", "maven-3.11.3", "maven-3.12.1", "maven-3.13.5", "maven-3.14.3", "sid-3.15", "src-3.13t")
# Those that a profiler must refuse.
REFUSED = ("i386-3.11", "win32-3.11.3")
# Those that a profiler is to work on.
SUPPORTED = tuple(name for name in ENTRIES if name not in REFUSED and not name.startswith("win-"))
# The same for Windows.
WINDOWS = tuple(name for name in ENTRIES if name.startswith("win-"))


@functools.lru_cache(maxsize=None)
def _found(name):
    try:
        return ENTRIES[name][0]()
    except Missing as reason:
        return str(reason)


def find(name):
    """The interpreter of that name. Raises Missing with the reason if it is not here."""
    found = _found(name)
    if isinstance(found, str):
        raise Missing(found)
    return found


def fetch(name):
    """Brings it if need be."""
    found = ENTRIES[name][1]()
    _found.cache_clear()
    return found
