# SPDX-License-Identifier: Apache-2.0
"""
Wine, to run Windows programs: the machine's own ("8" on Debian 12) and that of Debian trixie ("10") in a root of its own.

Which one is used is said by AUSTIN_WINE (default: 10 if it is here, else 8). Both see the files of this system below
Z:, so that Z:/tmp/x is /tmp/x, and a path that begins with a slash is a path on the drive of the current folder.

All programs of one Wine share a prefix and a server, and so see each other. A program is a process of this system too,
with another number there: that of the Popen that started it by command() is this system's. pid_of() finds the number of
one that another program has started.

Files are opened by the server, which sees the mounts of the moment when it was started: what is mounted later is not
there for Wine 10 (small_folder() is the way).
"""

import os
import shutil
import subprocess

from .model import Missing, cache_dir, call, complete, fresh, is_complete, locked, note

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tools", "wine.sh")
WINES = ("8", "10")


def _root():
    return os.path.join(cache_dir(), "wine10-root")


def has_32bit(which=None):
    """Does that Wine run 32-bit programs? Debian's wine32:i386 is what does."""
    return os.path.exists((_root() if (which or chosen()) == "10" else "") + "/usr/lib/wine/wine")


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


def pid_of(word):
    """The number, on this system, of the only Windows program that has `word` as an argument of its command line."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as handle:
                words = handle.read().split(b"\0")
            with open("/proc/%s/maps" % name) as handle:
                if word.encode() in words and "/ntdll." in handle.read():
                    found.append(int(name))
        except OSError:
            pass  # not a process, or gone
    if len(found) != 1:
        raise LookupError("%d Windows programs have the argument %s" % (len(found), word))
    return found[0]


def _server(which):
    """The number of the server that runs the prefix, on this system."""
    prefix = call([SCRIPT, which, "--prefix"], "wine").strip()
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/comm" % name) as handle:
                if not handle.read().startswith("wineserver"):
                    continue
            with open("/proc/%s/environ" % name, "rb") as handle:
                if ("WINEPREFIX=" + prefix).encode() in handle.read().split(b"\0"):
                    return int(name)
        except OSError:
            pass
    raise Missing("wine%s: its server does not run" % which)


def small_folder(path, size, which=None):
    """
    Mounts a file system of `size` bytes on the folder `path`, for Windows programs (wine.start() before). Returns
    (where this process reads what they write there, a function that takes it away).
    """
    which = which or chosen()
    enter, target, seen = [], path, path
    if which == "10":
        pid = _server(which)
        enter, target, seen = ["nsenter", "-t", str(pid), "-m"], _root() + path, "/proc/%d/root%s" % (pid, path)
    call(enter + ["mount", "-t", "tmpfs", "-o", "size=%d" % size, "none", target], "wine" + which)
    return seen, lambda: subprocess.run(enter + ["umount", "-l", target], stderr=subprocess.DEVNULL)


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
            elif not has_32bit(which):
                _add_32bit(_root())
    return find(which)


def _bring():
    from .debian import _mirror

    name = "wine10"
    if os.geteuid() != 0:
        raise Missing(name + ": debootstrap needs root")
    note("wine10: making a root of Debian trixie with Wine (about 2 minutes, 2 GB)")
    scratch = fresh(name)
    try:
        root = os.path.join(scratch, "root")
        call(["debootstrap", "--variant=minbase", "--include=wine,wine64", "trixie", root, _mirror(name)], name)
        _add_32bit(root)
        for waste in ("var/lib/apt/lists", "var/cache/apt", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(os.path.join(root, waste), ignore_errors=True)
        complete(root)
        shutil.rmtree(_root(), ignore_errors=True)
        os.rename(root, _root())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _add_32bit(root):
    """The part that runs 32-bit programs. Wine runs the others without it, so this may fail."""
    name = "wine10"
    config = os.path.join(root, "etc/apt/apt.conf.d/90austin")
    inside = ["unshare", "-m", "sh", "-ec", 'mount --bind /proc "$0/proc"; exec chroot "$0" "$@"', root]
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
    try:
        for folder in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial"):
            os.makedirs(os.path.join(root, folder), exist_ok=True)
        with open(config, "w") as handle:
            handle.write('Acquire::Check-Valid-Until "false";\nAPT::Sandbox::User "root";\n')
        call(inside + ["dpkg", "--add-architecture", "i386"], name, env=env)
        call(inside + ["apt-get", "-qq", "update"], name, env=env)
        call(
            inside + ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "wine32:i386"],
            name,
            env=env,
        )
        call(inside + ["apt-get", "clean"], name, env=env)
    except Missing as reason:
        note("%s; so no 32-bit programs" % reason)
