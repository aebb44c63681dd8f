# SPDX-License-Identifier: Apache-2.0
"""CPythons out of Debian: the machine's own, a root of Debian sid, a 32-bit one, and builds from Debian's source.

The mirror is the one that the machine's own apt is set up with. Nothing of the system's apt state is touched: other
suites and architectures get a state of their own in the cache.
"""

import glob
import os
import shutil

from .model import Interpreter, Missing, cache_dir, call, complete, fresh, is_complete, locked, note

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def _mirror(what):
    """The address of the Debian archive in this machine's apt sources."""
    for line in call(["apt-get", "indextargets", "--format", "$(SITE)"], what).splitlines():
        if line.rstrip("/").endswith("/debian"):
            return line
    raise Missing("%s: no Debian archive among this machine's apt sources" % what)


def _private_apt(suite, arches, what):
    """Environment for apt-get over `suite`, with its state in the cache."""
    folder = os.path.join(cache_dir(), "apt-%s-%s" % (suite, "-".join(arches)))
    config = os.path.join(folder, "apt.conf")
    env = dict(os.environ, APT_CONFIG=config, LC_ALL="C")
    for part in ("lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    open(os.path.join(folder, "status"), "w").close()
    with open(os.path.join(folder, "list.sources"), "w") as handle:
        handle.write(
            "Types: deb deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n"
            % (_mirror(what), suite, KEYRING)
        )
    with open(config, "w") as handle:
        handle.write(
            'Dir::Etc::sourcelist "%s/list.sources";\nDir::Etc::sourceparts "-";\n'
            'Dir::State::lists "%s/lists";\nDir::Cache "%s/cache";\nDir::State::status "%s/status";\n'
            'APT::Sandbox::User "root";\nAcquire::Languages "none";\nAcquire::Check-Valid-Until "false";\n'
            'APT::Architectures { %s };\n'
            % (folder, folder, folder, folder, " ".join('"%s";' % arch for arch in arches))
        )
    call(["apt-get", "-qq", "update"], what, env=env)
    return env


# ---- the machine's own -------------------------------------------------------------------------------------------


def find_system():
    """/usr/bin/python3 of the machine: with Debian a static, stripped executable at fixed addresses."""
    exe = os.path.realpath("/usr/bin/python3")
    if not os.path.exists(exe):
        raise Missing("debian: there is no /usr/bin/python3 (apt-get install python3)")
    return Interpreter("debian", [exe], exe, flags={"static", "stripped"})


def fetch_system():
    return find_system()


# ---- sid ---------------------------------------------------------------------------------------------------------

SID = ("3.13", "3.14", "3.15")


def _sid_root():
    return os.path.join(cache_dir(), "sid-root")


def find_sid(minor):
    """
    python3.X of the sid root. It needs sid's own C library, so root runs it inside (chroot); the sid root's loader
    runs it for anybody else.
    """
    root, name = _sid_root(), "sid-" + minor
    if not is_complete(root):
        raise Missing("%s: not fetched yet (tests/interpreters/get.py %s)" % (name, name))
    inner = "/usr/bin/python" + minor
    exe = root + inner
    if not os.path.exists(exe):
        raise Missing("%s: the sid root has no python%s" % (name, minor))
    if os.geteuid() == 0:
        return Interpreter(name, ["chroot", root, inner], exe, root=root, flags={"static", "stripped", "chroot"})
    return find_sid_loader(minor)


def find_sid_loader(minor):
    """The same python3.X, run by the sid root's own loader without entering it."""
    root, name = _sid_root(), "sid-" + minor
    if not is_complete(root):
        raise Missing("%s: not fetched yet (tests/interpreters/get.py %s)" % (name, name))
    exe = root + "/usr/bin/python" + minor
    libraries = ":".join(root + part for part in ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"))
    argv = [os.path.realpath(root + "/usr/lib64/ld-linux-x86-64.so.2"), "--library-path", libraries, exe]
    return Interpreter(name, argv, exe, {"PYTHONHOME": root + "/usr"}, flags={"static", "stripped", "loader"})


def fetch_sid(minor):
    with locked("sid-root"):
        if not is_complete(_sid_root()):
            _bring_sid()
    return find_sid(minor)


def _bring_sid():
    if os.geteuid() != 0:
        raise Missing("sid: debootstrap needs root")
    name = "sid"
    note("sid: making a root with python3.13, python3.14 and python3.15 (about a minute, 300 MB)")
    scratch = fresh(name)
    try:
        root = os.path.join(scratch, "root")
        call(["debootstrap", "--variant=minbase", "sid", root, _mirror(name)], name)
        with open(os.path.join(root, "etc/apt/apt.conf.d/90austin"), "w") as handle:
            handle.write('Acquire::Check-Valid-Until "false";\nAPT::Sandbox::User "root";\n')
        inside = ["chroot", root]
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
        call(inside + ["apt-get", "-qq", "update"], name, env=env)
        call(
            inside
            + ["apt-get", "install", "-qq", "-y", "--no-install-recommends"]
            + ["python" + minor for minor in SID],
            name,
            env=env,
        )
        call(inside + ["apt-get", "clean"], name, env=env)
        shutil.rmtree(os.path.join(root, "var/lib/apt/lists"), ignore_errors=True)
        complete(root)
        if os.path.exists(_sid_root()):
            shutil.rmtree(_sid_root())
        os.rename(root, _sid_root())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


# ---- built from source -------------------------------------------------------------------------------------------


def _source(into, what):
    """Unpacks CPython 3.13's source as Debian trixie ships it, and returns its folder."""
    env = _private_apt("trixie", ["amd64"], what)
    call(["apt-get", "-qq", "source", "--download-only", "python3.13/trixie"], what, env=env, cwd=into)
    found = glob.glob(os.path.join(into, "python3.13_*.orig.tar.*"))
    found = [path for path in found if not path.endswith(".asc")]
    if len(found) != 1:
        raise Missing("%s: Debian trixie's source package of python3.13 holds no original archive" % what)
    tree = os.path.join(into, "tree")
    os.makedirs(tree)
    call(["tar", "-xf", found[0], "-C", tree, "--strip-components=1"], what)
    return tree


def _build(name, options, env, into, jobs):
    scratch = fresh(name)
    try:
        tree = _source(scratch, name)
        prefix = os.path.join(scratch, "prefix")
        call(["./configure", "--prefix=" + into, "--with-ensurepip=no"] + options, name, cwd=tree, env=env)
        call(["make", "-s", "-j%d" % jobs], name, cwd=tree, env=env)
        call(["make", "-s", "install", "DESTDIR=" + prefix], name, cwd=tree, env=env)
        done = prefix + into
        # the test suite and the static library are most of the size and of no use here
        for waste in glob.glob(done + "/lib/python3.13*/test") + glob.glob(done + "/lib/python3.13*/config-*/*.a"):
            shutil.rmtree(waste) if os.path.isdir(waste) else os.unlink(waste)
        for waste in glob.glob(done + "/lib/libpython*.a"):
            os.unlink(waste)
        complete(done)
        shutil.rmtree(into, ignore_errors=True)
        os.rename(done, into)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _built(name, exe, flags):
    folder = os.path.join(cache_dir(), name)
    if not is_complete(folder):
        raise Missing("%s: not built yet (tests/interpreters/get.py %s)" % (name, name))
    exe = os.path.join(folder, "bin", exe)
    return Interpreter(name, [exe], exe, flags=flags)


def find_free_threaded():
    """3.13 without the GIL: a PIE executable with everything in it."""
    return _built("src-3.13t", "python3.13t", {"static"})


def fetch_free_threaded():
    name = "src-3.13t"
    folder = os.path.join(cache_dir(), name)
    with locked(name):
        if not is_complete(folder):
            note("src-3.13t: building from Debian trixie's source (about 3 minutes)")
            _build(name, ["--disable-gil", "CFLAGS=-g -O2"], dict(os.environ), folder, os.cpu_count() or 1)
    return find_free_threaded()


def find_musl():
    """3.13 for musl, as on Alpine: no registry in reach serves one, so it is built with Debian's musl-gcc."""
    return _built("src-3.13-musl", "python3.13", {"static", "musl"})


def fetch_musl():
    name = "src-3.13-musl"
    folder = os.path.join(cache_dir(), name)
    with locked(name):
        if not is_complete(folder):
            if not shutil.which("musl-gcc"):
                raise Missing(name + ": musl-gcc is not installed (apt-get install musl-tools)")
            note("src-3.13-musl: building from Debian trixie's source (about 3 minutes)")
            env = dict(os.environ, CC=_musl_compiler(name), PKG_CONFIG="false")
            _build(name, ["--without-static-libpython", "CFLAGS=-g -O2"], env, folder, os.cpu_count() or 1)
    return find_musl()


def _musl_compiler(what):
    """
    A compiler command for musl. Debian's musl-gcc has none of the kernel's headers, and calls itself glibc's when
    configure asks for the platform.
    """
    command = os.path.join(cache_dir(), "musl-cc")
    with open(command, "w") as handle:
        handle.write(
            '#!/bin/sh\n[ "$1" = --print-multiarch ] && { echo x86_64-linux-musl; exit; }\n'
            'exec musl-gcc -idirafter "%s" "$@"\n' % _kernel_headers(what)
        )
    os.chmod(command, 0o755)
    return command


def _kernel_headers(what):
    """The kernel's headers alone: the rest of /usr/include is glibc's and must not be seen by musl-gcc."""
    folder = os.path.join(cache_dir(), "kernel-headers")
    os.makedirs(folder, exist_ok=True)
    for name, where in (
        ("linux", "/usr/include/linux"),
        ("asm-generic", "/usr/include/asm-generic"),
        ("mtd", "/usr/include/mtd"),
        ("asm", "/usr/include/x86_64-linux-gnu/asm"),
    ):
        link = os.path.join(folder, name)
        if os.path.isdir(where) and not os.path.islink(link):
            os.symlink(where, link)
    if not os.path.exists(os.path.join(folder, "linux")):
        raise Missing("%s: the kernel's headers are not installed (apt-get install linux-libc-dev)" % what)
    return folder


# ---- 32 bits -----------------------------------------------------------------------------------------------------


def find_32bit():
    """A 32-bit Python, which is to be refused: bookworm's i386 packages, unpacked and run by their own loader."""
    root = os.path.join(cache_dir(), "i386-3.11")
    if not is_complete(root):
        raise Missing("i386-3.11: not fetched yet (tests/interpreters/get.py i386-3.11)")
    loader = os.path.realpath(root + "/lib/i386-linux-gnu/ld-linux.so.2")
    libraries = ":".join(root + part for part in ("/lib/i386-linux-gnu", "/usr/lib/i386-linux-gnu"))
    exe = root + "/usr/bin/python3.11"
    return Interpreter(
        "i386-3.11",
        [loader, "--library-path", libraries, exe],
        exe,
        {"PYTHONHOME": root + "/usr"},
        flags={"static", "stripped", "32-bit", "loader"},
    )


def fetch_32bit():
    name = "i386-3.11"
    folder = os.path.join(cache_dir(), name)
    with locked(name):
        if not is_complete(folder):
            note("i386-3.11: fetching Debian bookworm's packages")
            scratch = fresh(name)
            try:
                env = _private_apt("bookworm", ["i386"], name)
                wanted = [
                    "python3.11-minimal",
                    "libpython3.11-minimal",
                    "libpython3.11-stdlib",
                    "libc6",
                    "libgcc-s1",
                    "zlib1g",
                    "libexpat1",
                ]
                call(["apt-get", "-qq", "download"] + [part + ":i386" for part in wanted], name, env=env, cwd=scratch)
                root = os.path.join(scratch, "root")
                for package in glob.glob(scratch + "/*.deb"):
                    call(["dpkg-deb", "-x", package, root], name)
                complete(root)
                shutil.rmtree(folder, ignore_errors=True)
                os.rename(root, folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return find_32bit()
