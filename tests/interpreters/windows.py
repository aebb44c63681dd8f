# SPDX-License-Identifier: Apache-2.0
"""
CPythons for Windows that nobody serves, made here: 3.13 without the GIL, out of Debian trixie's source with zig.

It has the parts of a real one, python.exe, python313t.dll and Lib, and the modules that need no other library (so no
ctypes, ssl, zlib or sqlite3); those that a real one has as .pyd files are in the DLL. The structures are Windows' own
(long has four bytes, mutexes are Windows'), as is the section PyRuntim. The compiler is not Microsoft's.
"""

import concurrent.futures
import glob
import os
import re
import shutil

from . import debian, wine
from .model import Interpreter, Missing, cache_dir, call, complete, fresh, is_complete, locked, note

FREE_THREADED = "win-3.13t"
TOOLS = os.path.dirname(wine.SCRIPT)

# What PC/pyconfig.h of 3.13 says only to Microsoft's compiler, or not at all.
BEFORE = """\
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <basetsd.h>
#include <limits.h>
#include <process.h>
#include <sys/types.h>
#define PYD_PLATFORM_TAG "win_amd64"
#define PY_SUPPORT_TIER 0
#define HAVE_PY_SSIZE_T 1
#define PY_SSIZE_T_MAX LLONG_MAX
typedef long long Py_ssize_t;
#define _Py_STRINGIZE1(x) #x
#define _Py_STRINGIZE(x) _Py_STRINGIZE1(x)
"""
DEFINES = (
    "Py_GIL_DISABLED=1",
    "WIN32",
    "_WIN32_WINNT=0x0A00",  # sdkddkver.h: Windows 10, from there on
    "WINVER=0x0A00",
    "NTDDI_VERSION=0x0A000006",
)
# PCbuild/pythoncore.vcxproj and pyproject.props of 3.13: what each property comes to in a free-threaded release.
CORE = (
    "Py_BUILD_CORE",
    "Py_BUILD_CORE_BUILTIN",
    "Py_ENABLE_SHARED",
    'MS_DLL_ID="3.13t"',
    'PY3_DLLNAME=L"python3t"',
    "PREFIX=NULL",
    "EXEC_PREFIX=NULL",
    "VERSION=NULL",
    'VPATH=""',
    'PYDEBUGEXT=""',
    'PLATLIBDIR="DLLs"',
    # Modules/posixmodule.c, in the part for Microsoft's compiler; os.getppid would end the process under Wine
    "fsync=_commit",
) + tuple("HAVE_%s=1" % word for word in "GETLOGIN SPAWNV EXECV WSPAWNV WEXECV SYSTEM CWAIT PIPE FSYNC".split())
LIBRARIES = (
    ["version", "ws2_32", "bcrypt", "ole32", "oleaut32", "advapi32", "shlwapi", "iphlpapi", "rpcrt4"]
    + ["api-ms-win-core-path-l1-1-0"]  # PathCchCombineEx and the like: there is no import library of pathcch
)
# Modules of their own in a real one: what asyncio, subprocess and multiprocessing need.
ALSO = {
    "_socket": "Modules/socketmodule.c",
    "select": "Modules/selectmodule.c",
    "_overlapped": "Modules/overlapped.c",
    "_asyncio": "Modules/_asynciomodule.c",
    "_queue": "Modules/_queuemodule.c",
    "_multiprocessing": "Modules/_multiprocessing/multiprocessing.c",
}
SEMAPHORE = "Modules/_multiprocessing/semaphore.c"  # the rest of the last one


def find_free_threaded():
    """The free-threaded one if it was built before, to be run by the Wine that is chosen."""
    folder = os.path.join(cache_dir(), FREE_THREADED)
    if not is_complete(folder):
        raise Missing("%s: not built yet (tests/interpreters/get.py %s)" % (FREE_THREADED, FREE_THREADED))
    exe = os.path.join(folder, "python.exe")
    return Interpreter(
        FREE_THREADED,
        wine.command(exe),
        exe,
        {"PYTHONIOENCODING": "utf-8"},
        flags={"shared", "stripped", "windows"},
        inner=[wine.windows_path(exe)],
    )


def fetch_free_threaded():
    folder = os.path.join(cache_dir(), FREE_THREADED)
    with locked(FREE_THREADED):
        if not is_complete(folder):
            note("%s: building from Debian trixie's source with zig (about 4 minutes)" % FREE_THREADED)
            scratch = fresh(FREE_THREADED)
            try:
                source = debian._source(scratch, FREE_THREADED)
                native = _frozen(source, os.path.join(scratch, "native"))
                _build(source, native, scratch, folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return find_free_threaded()


def _frozen(source, native):
    """A build folder for this system with the frozen modules in it: C files that are the same for each system."""
    os.makedirs(native)
    options = ["--disable-gil", "--disable-test-modules", "--with-ensurepip=no", "CFLAGS=-O0"]
    call([source + "/configure", "-C"] + options, FREE_THREADED, cwd=native)
    call(["make", "-s", "-j%d" % (os.cpu_count() or 1), "Python/frozen.o"], FREE_THREADED, cwd=native)
    return native


def _compiler(scratch):
    """zig as the tree has it, and an environment in which its cache goes with the scratch folder."""
    zig = os.path.join(os.path.dirname(TOOLS), "build", "tools", "zig")
    if not os.path.exists(zig):
        zig = os.path.join(scratch, "tools", "zig")
        call([os.path.join(TOOLS, "zig.sh"), zig], FREE_THREADED)
    cache = os.path.join(scratch, "zig-cache")
    env = dict(os.environ, ZIG_GLOBAL_CACHE_DIR=cache, ZIG_LOCAL_CACHE_DIR=cache)
    return [zig, "cc", "-target", "x86_64-windows-gnu"], env


def _sources(source, scratch):
    """The files of python313t.dll."""
    with open(source + "/PCbuild/pythoncore.vcxproj") as handle:
        project = handle.read()
    # zlib is not here, a JIT is not asked for, and the assembly is Linux's
    without = re.compile(r"zlib|jit|asm_trampoline|PC/config\.c")
    listed = [name.replace("\\", "/") for name in re.findall(r'<ClCompile Include="\.\.\\([^"]+)"', project)]
    names = [os.path.join(source, name) for name in listed if not without.search(name)]
    with open(source + "/PC/config.c") as handle:
        table = handle.read()
    for marker, line in ((1, "extern PyObject *PyInit_%s(void);"), (2, '{"%s", PyInit_%s},')):
        lines = [line.replace("%s", name) for name in ALSO]
        marker = "/* -- ADDMODULE MARKER %d -- */" % marker
        if marker not in table:
            raise Missing("%s: PC/config.c has no place for more modules" % FREE_THREADED)
        table = table.replace(marker, "\n".join(lines))
    config = os.path.join(scratch, "config.c")
    with open(config, "w") as handle:
        handle.write(table)
    # the SDK has these as enumerators, mingw-w64's winsock2.h as macros, which would come to nothing
    path = os.path.join(source, ALSO["_socket"])
    with open(path) as handle:
        text = re.sub(r"(?m)^#define (IPPROTO_\w+) \1\b.*$", "", handle.read())
    with open(path, "w") as handle:
        handle.write(text)
    return names + [config] + [os.path.join(source, name) for name in list(ALSO.values()) + [SEMAPHORE]]


def _build(source, native, scratch, folder):
    compiler, env = _compiler(scratch)
    include, objects = os.path.join(scratch, "include"), os.path.join(scratch, "objects")
    os.makedirs(include)
    os.makedirs(objects)
    with open(os.path.join(include, "before.h"), "w") as handle:
        handle.write(BEFORE)
    with open(os.path.join(include, "Rpc.h"), "w") as handle:  # socketmodule.c's spelling
        handle.write("#include <rpc.h>\n")
    shutil.copy(source + "/PC/pyconfig.h.in", os.path.join(include, "pyconfig.h"))
    common = ["-O2", "-w", "-Wno-error=incompatible-pointer-types", "-fms-extensions"]
    common += ["-fno-strict-aliasing", "-fwrapv"] + ["-D" + word for word in DEFINES]
    common += ["-include", os.path.join(include, "before.h"), "-I" + include, "-I" + source + "/Include"]
    core = ["-D" + word for word in CORE]
    for part in ("Include/internal", "Include/internal/mimalloc", "PC", "Python", "Modules", "Modules/_hacl/include"):
        core.append("-I" + os.path.join(source, part))
    core += ["-I" + native, "-I" + native + "/Python"]

    def compiled(path, more):
        target = os.path.join(objects, re.sub(r"\W", "_", os.path.relpath(path, scratch)) + ".o")
        call(compiler + common + more + ["-c", path, "-o", target], FREE_THREADED, env=env)
        return target

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        parts = list(pool.map(lambda path: compiled(path, core), _sources(source, scratch)))
    done = os.path.join(scratch, "done")
    os.makedirs(done)
    library = os.path.join(scratch, "python313t.lib")
    call(
        compiler
        + ["-shared", "-s", "-o", done + "/python313t.dll", "-Wl,--out-implib," + library]
        + parts
        + ["-l" + name for name in LIBRARIES],
        FREE_THREADED,
        env=env,
    )
    program = compiled(source + "/Programs/python.c", [])
    call(compiler + ["-municode", "-s", "-o", done + "/python.exe", program, library], FREE_THREADED, env=env)
    shutil.copytree(
        source + "/Lib",
        done + "/Lib",
        ignore=shutil.ignore_patterns("test", "idlelib", "ensurepip", "tkinter", "turtledemo", "__pycache__"),
    )
    for waste in glob.glob(done + "/*.pdb"):
        os.unlink(waste)
    complete(done)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(done, folder)
