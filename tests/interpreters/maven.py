# SPDX-License-Identifier: Apache-2.0
"""CPythons from Maven's org.bytedeco:cpython: shared-library builds with the whole standard library.

Those for Linux are started with LD_LIBRARY_PATH and PYTHONHOME set to their folder; those for Windows, built by
Microsoft's compiler, run under Wine. The repository is whatever the machine's
Maven is set up with; what comes is checked against the SHA-256 kept here, so that a test runs what was tried.
"""

import hashlib
import os
import shutil
import zipfile

from . import wine
from .model import Interpreter, Missing, cache_dir, call, complete, fresh, is_complete, locked, note

# version: (artifact version, SHA-256 of the jar for linux-x86_64)
JARS = {
    "3.10.8": ("3.10.8-1.5.8", "2f101b1aa06effdbda3c318c1728b13f22b571707c7b7704abaf5d19a33aa981"),
    "3.11.3": ("3.11.3-1.5.9", "668b42f6a8b1a9789de7d3ca54a81fefb754cd8e885554b42858bbcbc0dd497c"),
    "3.12.1": ("3.12.1-1.5.10", "a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd"),
    "3.13.5": ("3.13.5-1.5.12", "50ad91aa0baa57f0235bb666b87d8bf2a44e215d28c250de1030502906af143b"),
    "3.14.3": ("3.14.3-1.5.13", "eb5f1a6fe2dc498ac18927189a37f28a47b0ba06ae6bd85112eff023fe2eb46f"),
}
# the same for windows-x86_64
WINDOWS_JARS = {
    "3.10.8": ("3.10.8-1.5.8", "1e7d342425c87184fbedd8754045db556c63765678a0f11b4539465642ab018b"),
    "3.11.3": ("3.11.3-1.5.9", "3263a50b256447bb7b9e604d6587627e419891370fc33b94469e6a06ff4de834"),
    "3.12.1": ("3.12.1-1.5.10", "e69bc4491c311e19ea7169bafc5efbbe03b980d69c6962b049daf1fcb4913391"),
    "3.13.5": ("3.13.5-1.5.12", "cfe5502ffa7ea369be707b6d88bf68344732a7800450665080fb4267c01bfeae"),
    "3.14.3": ("3.14.3-1.5.13", "3291bf3d8f405335ac21dbe55780521fdfd295b0f9f43f7e6e8c55bedd709cb3"),
}
# the same for windows-x86, which is to be refused
WINDOWS_32BIT = ("3.11.3-1.5.9", "1499c6554bbf88c4aa5c8f7c8a925b3a077df30e2fa82f9aa741f67758280295")
CLASSIFIER = "linux-x86_64"
WINDOWS = "windows-x86_64"


def _folder(name):
    return os.path.join(cache_dir(), name)


def find(version):
    """The interpreter if it was brought before."""
    name = "maven-" + version
    if not is_complete(_folder(name)):
        raise Missing("%s: not fetched yet (tests/interpreters/get.py %s)" % (name, name))
    home = os.path.join(_folder(name), "org", "bytedeco", "cpython", CLASSIFIER)
    exe = os.path.join(home, "bin", "python" + version.rpartition(".")[0])
    return Interpreter(name, [exe], exe, {"LD_LIBRARY_PATH": home, "PYTHONHOME": home}, flags={"shared", "stripped"})


def find_windows(version):
    """The same for Windows, to be run by the Wine that is chosen (wine.py)."""
    name = "win-" + version
    if not is_complete(_folder(name)):
        raise Missing("%s: not fetched yet (tests/interpreters/get.py %s)" % (name, name))
    exe = os.path.join(_folder(name), "org", "bytedeco", "cpython", WINDOWS, "python.exe")
    return Interpreter(
        name,
        wine.command(exe),
        exe,
        {"PYTHONIOENCODING": "utf-8"},
        flags={"shared", "stripped", "windows"},
        inner=[wine.windows_path(exe)],
    )


def find_windows_32bit():
    """The 32-bit one, where Wine has a 32-bit part."""
    name = "win32-3.11.3"
    if not is_complete(_folder(name)):
        raise Missing("%s: not fetched yet (tests/interpreters/get.py %s)" % (name, name))
    exe = os.path.join(_folder(name), "org", "bytedeco", "cpython", "windows-x86", "python.exe")
    if not wine.has_32bit():
        raise Missing("%s: Wine %s has no 32-bit part here (Debian's wine32:i386)" % (name, wine.chosen()))
    return Interpreter(
        name,
        wine.command(exe),
        exe,
        {"PYTHONIOENCODING": "utf-8"},
        flags={"shared", "stripped", "windows", "32-bit"},
        inner=[wine.windows_path(exe)],
    )


def fetch(version):
    """Brings it with the machine's Maven; nothing happens if it is here."""
    name = "maven-" + version
    with locked(name):
        if not is_complete(_folder(name)):
            _bring(name, *JARS[version], CLASSIFIER)
    return find(version)


def fetch_windows(version):
    name = "win-" + version
    with locked(name):
        if not is_complete(_folder(name)):
            _bring(name, *WINDOWS_JARS[version], WINDOWS)
    return find_windows(version)


def fetch_windows_32bit():
    name = "win32-3.11.3"
    with locked(name):
        if not is_complete(_folder(name)):
            _bring(name, *WINDOWS_32BIT, "windows-x86")
    return find_windows_32bit()


def _bring(name, artifact, want, classifier):
    note("%s: fetching org.bytedeco:cpython:%s" % (name, artifact))
    scratch = fresh(name)
    try:
        base = ["mvn", "-q", "-B", "-Dstyle.color=never"]
        coordinates = "-Dartifact=org.bytedeco:cpython:%s:jar:%s" % (artifact, classifier)
        call(base + ["dependency:get", coordinates, "-Dtransitive=false"], name)
        call(base + ["dependency:copy", coordinates, "-DoutputDirectory=" + scratch], name)
        jar = os.path.join(scratch, "cpython-%s-%s.jar" % (artifact, classifier))
        with open(jar, "rb") as handle:
            got = hashlib.file_digest(handle, "sha256").hexdigest()
        if got != want:
            raise Missing("%s: the jar has SHA-256 %s instead of %s" % (name, got, want))
        unpacked = os.path.join(scratch, "tree")
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(unpacked)
        # a jar keeps no modes
        for where, _, files in os.walk(unpacked):
            if os.path.basename(where) == "bin":
                for file in files:
                    os.chmod(os.path.join(where, file), 0o755)
        complete(unpacked)
        shutil.rmtree(_folder(name), ignore_errors=True)
        os.rename(unpacked, _folder(name))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
