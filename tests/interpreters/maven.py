# SPDX-License-Identifier: Apache-2.0
"""CPythons from Maven's org.bytedeco:cpython: shared-library builds with the whole standard library.

They are started with LD_LIBRARY_PATH and PYTHONHOME set to their folder. The repository is whatever the machine's
Maven is set up with; what comes is checked against the SHA-256 kept here, so that a test runs what was tried.
"""

import hashlib
import os
import shutil
import zipfile

from .model import Interpreter, Missing, cache_dir, call, complete, fresh, is_complete, locked, note

# version: (artifact version, SHA-256 of the jar for linux-x86_64)
JARS = {
    "3.10.8": ("3.10.8-1.5.8", "2f101b1aa06effdbda3c318c1728b13f22b571707c7b7704abaf5d19a33aa981"),
    "3.11.3": ("3.11.3-1.5.9", "668b42f6a8b1a9789de7d3ca54a81fefb754cd8e885554b42858bbcbc0dd497c"),
    "3.12.1": ("3.12.1-1.5.10", "a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd"),
    "3.13.5": ("3.13.5-1.5.12", "50ad91aa0baa57f0235bb666b87d8bf2a44e215d28c250de1030502906af143b"),
    "3.14.3": ("3.14.3-1.5.13", "eb5f1a6fe2dc498ac18927189a37f28a47b0ba06ae6bd85112eff023fe2eb46f"),
}
CLASSIFIER = "linux-x86_64"


def _folder(version):
    return os.path.join(cache_dir(), "maven-" + version)


def find(version):
    """The interpreter if it was brought before."""
    folder = _folder(version)
    if not is_complete(folder):
        raise Missing("maven-%s: not fetched yet (tests/interpreters/get.py maven-%s)" % (version, version))
    home = os.path.join(folder, "org", "bytedeco", "cpython", CLASSIFIER)
    exe = os.path.join(home, "bin", "python" + version.rpartition(".")[0])
    return Interpreter(
        "maven-" + version, [exe], exe, {"LD_LIBRARY_PATH": home, "PYTHONHOME": home}, flags={"shared", "stripped"}
    )


def fetch(version):
    """Brings it with the machine's Maven; nothing happens if it is here."""
    with locked("maven-" + version):
        if not is_complete(_folder(version)):
            _bring(version)
    return find(version)


def _bring(version):
    name, (artifact, want) = "maven-" + version, JARS[version]
    note("%s: fetching org.bytedeco:cpython:%s" % (name, artifact))
    scratch = fresh(name)
    try:
        base = ["mvn", "-q", "-B", "-Dstyle.color=never"]
        coordinates = "-Dartifact=org.bytedeco:cpython:%s:jar:%s" % (artifact, CLASSIFIER)
        call(base + ["dependency:get", coordinates, "-Dtransitive=false"], name)
        call(base + ["dependency:copy", coordinates, "-DoutputDirectory=" + scratch], name)
        jar = os.path.join(scratch, "cpython-%s-%s.jar" % (artifact, CLASSIFIER))
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
        shutil.rmtree(_folder(version), ignore_errors=True)
        os.rename(unpacked, _folder(version))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
