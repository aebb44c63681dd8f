# SPDX-License-Identifier: Apache-2.0
"""What a test knows of an interpreter, and the cache folder that all of them live in."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys


class Missing(Exception):
    """An interpreter that is not here or cannot be brought here. The text is the reason."""


def cache_dir():
    """The folder outside the tree where everything is kept. AUSTIN_INTERPRETERS overrides it."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.environ.get("AUSTIN_INTERPRETERS") or os.path.join(base, "austin-interpreters")
    os.makedirs(path, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(what):
    """Only one run at a time brings `what`; a second one waits and then finds it done."""
    with open(os.path.join(cache_dir(), "." + what + ".lock"), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def is_complete(folder):
    return os.path.exists(os.path.join(folder, ".complete"))


def complete(folder):
    with open(os.path.join(folder, ".complete"), "w"):
        pass


def fresh(name):
    """An empty scratch folder in the cache, on the same file system as what will become of it."""
    path = os.path.join(cache_dir(), ".tmp-%s-%d" % (name, os.getpid()))
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def call(argv, what, **kwargs):
    """Runs a command for `what`; its output is kept for the reason if it fails. Returns its standard output."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            **kwargs
        )
    except FileNotFoundError:
        raise Missing("%s: the program %s is not installed" % (what, argv[0])) from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise Missing(
            "%s: %s failed with %d: %s" % (what, os.path.basename(argv[0]), done.returncode, " / ".join(lines)[:400])
        )
    return done.stdout


def note(text):
    print("interpreters: " + text, file=sys.stderr, flush=True)


class Interpreter:
    """
    One CPython that can be started.

    name           what the catalogue calls it, for example "maven-3.14.3"
    version        (major, minor, micro) as the interpreter itself says
    free_threaded  built without the GIL
    argv           how to start it: a list to put the script and its arguments after
    inner          the same, for a program that runs where it runs (under Wine, say) and starts it from there
    exe            the path of its executable as this process sees it
    env            variables it needs, to be added to the environment
    root           folder that is its root directory, or None: files it shall see must lie below it (see inside)
    prefix         where its standard library is, as it sees it itself
    flags          set of "shared", "static", "musl", "stripped", "chroot", "32-bit", "windows"
    """

    def __init__(self, name, argv, exe, env=None, root=None, flags=(), inner=None):
        self.name = name
        self.argv = list(argv)
        self.inner = list(inner or argv)
        self.exe = exe
        self.env = dict(env or {})
        self.root = root
        self.flags = set(flags)
        self.version, self.free_threaded, self.prefix, self.release = self._ask()

    def _ask(self):
        text = (
            "import sys,sysconfig;print('%d %d %d' % sys.version_info[:3],"
            " int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))), sys.version_info[3], sys.base_prefix)"
        )
        try:
            out = call(self.argv + ["-S", "-c", text], self.name, env=self.environ(), timeout=60)
            major, minor, micro, free, level, prefix = out.strip().split(" ", 5)
        except (ValueError, subprocess.TimeoutExpired, OSError) as error:
            raise Missing("%s: does not start: %s" % (self.name, error)) from None
        return (int(major), int(minor), int(micro)), free == "1", prefix, level

    def environ(self, extra=None):
        """A whole environment for this interpreter, without what ours would disturb it with."""
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "LD_")) and key != "VIRTUAL_ENV"
        }
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env.update(self.env)
        env.update(extra or {})
        return env

    def inside(self, path):
        """The path as the interpreter sees it."""
        if self.root is None:
            return path
        path, root = os.path.abspath(path), os.path.abspath(self.root)
        if not path.startswith(root + "/"):
            raise ValueError("%s cannot be seen from inside %s" % (path, root))
        return path[len(root) :]

    @property
    def minor(self):
        return self.version[1]

    @property
    def text(self):
        return "%d.%d.%d%s" % (*self.version, "t" if self.free_threaded else "")

    def describe(self):
        env = " ".join("%s=%s" % item for item in sorted(self.env.items())) or "-"
        return "%-14s %-8s %-24s %s  env: %s" % (
            self.name,
            self.text,
            ",".join(sorted(self.flags)) or "-",
            " ".join(self.argv),
            env,
        )

    def __repr__(self):
        return "<%s %s>" % (self.name, self.text)
