# SPDX-License-Identifier: Apache-2.0
"""Finding the interpreter, in every disguise that is known."""

import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import harness
from harness import Skip, need, shown, test

NOT_ON_WINDOWS = "its environments are those of Linux; test_windows.py has redirectors"
from interpreters import catalogue, debian
from interpreters.model import Missing


def elf_type(path):
    """(ET_EXEC 2 or ET_DYN 3, has PT_INTERP) of an executable; ELF-64 specification, e_type and program headers."""
    with open(path, "rb") as handle:
        head = handle.read(4096)
    (kind,) = struct.unpack_from("<H", head, 16)
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    return kind, any(struct.unpack_from("<I", head, offset + n * size)[0] == 3 for n in range(count))


def works(box, stream, version=None, function="inner", share=0.5):
    """The samples show the known function, and the metadata the version."""
    # before its first and after its last frame the main thread has an empty stack, on a busy machine for long
    stacks = [sample.frames for sample in stream.samples if sample.frames]
    hot = sum(any(frame[1] == function for frame in frames) for frames in stacks)
    need(
        hot > 30 and hot > share * len(stacks),
        "%d of %d samples are in %s; the last is %s",
        hot,
        len(stacks),
        function,
        shown(stacks[-1] if stacks else None),
    )
    if version:
        need(
            dict(stream.metadata)["python"] == version,
            "python is %s, not %s",
            dict(stream.metadata).get("python"),
            version,
        )


def both_ways(box, command, version=None, env=None, seconds=1.2):
    """Launch and attach."""
    path = box.path()
    run = box.austin(["-o", path, "-i", "1ms"] + command + ["seconds=%s" % seconds], path=path, env=env, timeout=30)
    need(run.code == 0, "launched: %s", run.text())
    works(box, box.stream(run), version, share=0.2)  # the rest is the start, which is long in some builds
    target = box.spawn(command + ["seconds=0"], env=box.env(extra=env))
    target.wait_for("ready")
    works(box, box.stream(box.attach(target.pid, "-i", "1ms", seconds=1)), version)
    need(target.alive(), "the target ended")


def steady(box):
    return box.interp.inside(os.path.join(box.targets, "steady.py"))


@test("every")
def test_as_it_is(box):
    """Which kinds that makes is in the notes: shared, static, PIE, fixed addresses, musl, chroot."""
    kind, _ = elf_type(box.interp.exe)
    box.note(
        "%s: %s, %s",
        box.interp.name,
        "PIE or library" if kind == 3 else "fixed addresses (ET_EXEC)",
        ",".join(sorted(box.interp.flags)),
    )
    both_ways(box, box.interp.argv + [steady(box)], box.interp.text)


@test()
def test_every_kind_is_here(box):
    """The interpreters in reach are of all the kinds that the product promises."""
    kinds = set()
    for name in catalogue.SUPPORTED:
        try:
            interp = catalogue.find(name)
        except Missing:
            continue
        kinds |= interp.flags
        if "static" in interp.flags:
            kinds.add("pie" if elf_type(interp.exe)[0] == 3 else "non-pie")
    missing = {"shared", "static", "pie", "non-pie", "stripped", "chroot"} - kinds
    if missing:
        raise Skip("no interpreter here is " + ", ".join(sorted(missing)))


def copied(box, name="python-copy", strip=False, into=None):
    """A copy of a static interpreter under another name, with the environment it needs."""
    interp = catalogue.find("src-3.13t" if strip else "debian")
    path = os.path.join(into or box.dir, name)
    shutil.copy(interp.exe, path)
    if strip:
        subprocess.run(["strip", path], check=True)
    home = subprocess.run(
        [interp.exe, "-c", "import sys; print(sys.base_prefix)"],
        stdout=subprocess.PIPE,
        text=True,
        env=interp.environ(),
        check=True,
    ).stdout.strip()
    return interp, path, {"PYTHONHOME": home}


@test()
def test_renamed(box):
    interp, path, env = copied(box, "my-application")
    both_ways(box, [path, os.path.join(box.targets, "steady.py")], interp.text, env)


@test()
def test_stripped(box):
    if not shutil.which("strip"):
        raise Skip("strip is not installed")
    interp, path, env = copied(box, "stripped", strip=True)
    both_ways(box, [path, os.path.join(box.targets, "steady.py")], interp.text, env)


@test()
def test_run_by_the_loader(box):
    script = os.path.join(box.targets, "steady.py")
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    interp = catalogue.find("debian")
    both_ways(box, [loader, interp.exe, script], interp.text)
    other = catalogue.find("maven-3.12.1")
    both_ways(box, [loader, other.exe, script], other.text, other.env)


@test()
def test_run_by_the_loader_of_another_root(box):
    for minor in debian.SID:
        interp = debian.find_sid_loader(minor)
        both_ways(box, interp.argv + [os.path.join(box.targets, "steady.py")], interp.text, interp.env)


def embedding(box, source):
    """Compiles a C host of that interpreter."""
    home = box.interp.env["PYTHONHOME"]
    host = os.path.join(box.dir, "host")
    version = "3.%d" % box.interp.minor
    done = subprocess.run(
        [
            "gcc",
            "-O1",
            "-o",
            host,
            os.path.join(box.targets, source),
            "-I%s/include/python%s" % (home, version),
            os.path.join(home, "libpython%s.so.1.0" % version),
            "-Wl,-rpath," + home,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode and not glob.glob("%s/include/python%s*/Python.h" % (home, version)):
        raise Skip("it has no headers")
    need(done.returncode == 0, "the host does not compile: %s", shown(done.stdout.decode(errors="replace")))
    return host


@test("each", without=("chroot", "free-threaded"))
def test_embedded(box):
    """A C program that begins its Python late; launched, the profiler waits for it."""
    host = embedding(box, "embed.c")
    for late in ("0.0", "1.0"):
        both_ways(box, [host, late, os.path.join(box.targets, "steady.py")], box.interp.text)


@test("each", without=("chroot", "free-threaded"), alone=True)
def test_reborn_between_looks(box):
    """The same where each runtime ends and the next begins between two looks: nothing but names can tell them apart."""
    host, truth, path = embedding(box, "reborn.c"), os.path.join(box.dir, "truth"), box.path()
    run = box.austin(["-o", path, "-i", "30ms", host, "30", "0.03", truth], path=path)
    need(run.code == 0, "%s", run.text())
    of_a_runtime = re.compile(r"(?:inner|outer|runtime)_(\d{4})")
    latest, seen = 0, set()
    for sample in box.stream(run).samples:
        numbers = set(map(int, of_a_runtime.findall(" ".join(frame[0] + " " + frame[1] for frame in sample.frames))))
        need(len(numbers) < 2, "a stack of two runtimes: %s", shown(sample.frames))
        need(not numbers or min(numbers) >= latest, "%s after runtime %d", shown(sample.frames), latest)
        latest = max(numbers | {latest})
        seen |= numbers
    box.note("%d of 30 runtimes seen", len(seen))
    need(len(seen) >= 10, "%d of 30 runtimes seen", len(seen))


@test("each", without=("chroot", "free-threaded"), alone=True)
def test_reborn(box):
    """One runtime after the other in one process, at the same addresses: each has its own names and its own time."""
    host, truth, path = embedding(box, "reborn.c"), os.path.join(box.dir, "truth"), box.path()
    run = box.austin(["-o", path, "-i", "1ms", host, "12", "0.06", truth], path=path)
    need(run.code == 0, "%s", run.text())
    with open(truth) as handle:
        wanted = {number: float(ms) for number, ms in (line.split() for line in handle)}
    seen = dict.fromkeys(wanted, 0.0)
    of_a_runtime = re.compile(r"(?:inner|outer|runtime)_(\d{4})")
    for sample in box.stream(run).samples:
        numbers = set(of_a_runtime.findall(" ".join(frame[0] + " " + frame[1] for frame in sample.frames)))
        need(len(numbers) < 2, "a stack of two runtimes: %s", shown(sample.frames))
        for number in numbers:
            seen[number] += sample.time / 1000
    wrong = {n: (round(seen[n], 1), wanted[n]) for n in wanted if abs(seen[n] - wanted[n]) > 20}
    box.note("%d of %d runtimes are more than 20 ms off: %s", len(wrong), len(wanted), wrong)
    need(len(wrong) <= 1, "seen and true milliseconds: %s", wrong)


def second(box, init):
    """Debian's own python loads the shared library of another version by ctypes."""
    first, other = catalogue.find("debian"), catalogue.find("maven-3.12.1")
    if first.version[:2] == other.version[:2]:
        other = catalogue.find("maven-3.11.3")
    home = other.env["PYTHONHOME"]
    library = glob.glob(home + "/libpython3.*.so.1.0")[0]
    command = first.argv + [
        os.path.join(box.targets, "second_runtime.py"),
        "runtime=" + library,
        "home=" + home,
        "init=%d" % init,
    ]
    return first, other, command


@test()
def test_second_runtime_not_initialised(box):
    first, other, command = second(box, 0)
    path = box.path()
    run = box.austin(["-o", path, "-i", "1ms"] + command, path=path)
    need(run.code == 0 and run.ready and not run.ready["initialised"], "%s", run.text())
    works(box, box.stream(run), first.text, "first_runtime_work")
    target = box.spawn(command + ["seconds=20"])
    target.wait_for("ready")
    run = box.attach(target.pid, "-i", "1ms")
    works(box, box.stream(run), first.text, "first_runtime_work")


@test()
def test_second_runtime_initialised(box):
    """The executable's own is sampled; the other one is named on stderr and in the metadata."""
    first, other, command = second(box, 1)
    target = box.spawn(command + ["seconds=20"])
    try:
        need(target.wait_for("ready")["initialised"], "the second runtime is not initialised")
    except harness.Failure as failure:
        raise Skip("two runtimes do not get along here: %s" % shown(str(failure), 300)) from None
    run = box.attach(target.pid, "-i", "1ms")
    stream = box.stream(run)
    works(box, stream, first.text, "first_runtime_work")
    name = "libpython3.%d" % other.minor
    need(name in run.errors, "%s is not named on stderr: %s", name, run.errors)
    need(any(name in value for _, value in stream.metadata), "%s is not in the metadata: %s", name, stream.metadata)


@test("every", without=("3.10", "3.11"))
def test_perf_trampolines(box):
    both_ways(box, box.interp.argv + ["-X", "perf", steady(box)], box.interp.text)


@test()
def test_jit(box):
    ran = 0
    for name in ("sid-3.14", "sid-3.15"):
        try:
            interp = catalogue.find(name)
        except Missing:
            continue
        inner = harness.Box(box.config, interp)
        box.undo(shutil.rmtree, inner.dir, True)
        env = interp.environ({"PYTHON_JIT": "1"})
        on = subprocess.run(
            interp.argv + ["-c", "import sys; print(sys._jit.is_enabled())"], env=env, stdout=subprocess.PIPE, text=True
        ).stdout.strip()
        if on != "True":
            continue
        both_ways(inner, interp.argv + [steady(inner)], interp.text, {"PYTHON_JIT": "1"})
        ran += 1
    if not ran:
        raise Skip("no interpreter here has a JIT that can be switched on")


def gone(box, interp, env, exe, away):
    target = box.spawn([exe, os.path.join(box.targets, "steady.py"), "seconds=0"], env=box.env(extra=env))
    target.wait_for("ready")
    away()
    run = box.attach(target.pid, "-i", "1ms")
    works(box, box.stream(run), interp.text)
    need(target.alive(), "the target ended")


@test()
def test_executable_deleted(box):
    interp, path, env = copied(box)
    gone(box, interp, env, path, lambda: os.unlink(path))


@test()
def test_executable_replaced(box):
    interp, path, env = copied(box)
    other = os.path.join(box.dir, "other")
    shutil.copy("/bin/ls", other)
    gone(box, interp, env, path, lambda: os.rename(other, path))


def library_copy(box, version):
    """A shared-library build whose library lies where it may be harmed."""
    interp = catalogue.find("maven-" + version)
    home = interp.env["PYTHONHOME"]
    name = "libpython%s.so.1.0" % version.rpartition(".")[0]
    library = os.path.join(box.dir, name)
    shutil.copy(os.path.join(home, name), library)
    return interp, library, {"PYTHONHOME": home, "LD_LIBRARY_PATH": box.dir}


@test("each", without=("chroot", "free-threaded"))
def test_library_deleted(box):
    interp, library, env = library_copy(box, box.interp.text)
    gone(box, interp, env, interp.exe, lambda: os.unlink(library))


@test("each", without=("chroot", "free-threaded"))
def test_library_replaced(box):
    interp, library, env = library_copy(box, box.interp.text)
    other = os.path.join(box.dir, "other")
    shutil.copy("/bin/ls", other)
    gone(box, interp, env, interp.exe, lambda: os.rename(other, library))


@test()
def test_other_namespaces(box):
    """Own mounts and process numbers: paths that exist only in there, thread numbers of another view."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        raise Skip("needs root and unshare")
    interp, path, env = copied(box, "python-template")
    inside = os.path.join(box.dir, "mounted")
    os.mkdir(inside)
    text = 'mount -t tmpfs none "$1" && cp "$2" "$1/python" && shift 2 && exec "$@"'
    command = [
        "unshare",
        "-m",
        "-p",
        "-f",
        "--mount-proc",
        "sh",
        "-c",
        text,
        "sh",
        inside,
        path,
        os.path.join(inside, "python"),
        os.path.join(box.targets, "threadnames.py"),
        "phase=10.0",
    ]
    probe = subprocess.run(["unshare", "-m", "-p", "-f", "--mount-proc", "true"], stderr=subprocess.PIPE)
    if probe.returncode:
        raise Skip("unshare does not work: " + probe.stderr.decode(errors="replace").strip())
    for arguments in ((), ("-c",)):
        target = box.spawn(command, env=box.env(extra=env))
        target.wait_for("ready")
        time.sleep(0.5)
        pid = harness.children_of(target.pid)[0]
        threads = {"%x" % int(tid) for tid in os.listdir("/proc/%d/task" % pid)}
        run = box.attach(pid, "-i", "1ms", *arguments, seconds=1)
        stream = box.stream(run)
        if not arguments:
            works(box, stream, interp.text, "pause")
            raw = {
                sample.thread for sample in stream.samples if any(frame[1] == "raw_before" for frame in sample.frames)
            }
            need(raw and raw <= threads, "the thread without a name is %s, here it is one of %s", raw, threads)
        need(
            {sample.pid for sample in stream.samples} <= {pid}, "pids %s, not %d", {s.pid for s in stream.samples}, pid
        )
        os.kill(pid, signal.SIGKILL)
        target.wait(10)
    # who is on a CPU is told in there too
    busy = command[:-2] + [os.path.join(box.targets, "steady.py"), "seconds=20"]
    target = box.spawn(busy, env=box.env(extra=env))
    target.wait_for("ready")
    pid = harness.children_of(target.pid)[0]
    works(box, box.stream(box.attach(pid, "-c", "-i", "1ms", seconds=1)), interp.text)


@test()
def test_32_bits(box):
    try:
        interp = catalogue.find("i386-3.11")
    except Missing:
        interp = catalogue.fetch("i386-3.11")
    script = os.path.join(box.targets, "steady.py")
    target = box.spawn(interp.argv + [script, "seconds=0"], env=box.env(interp))
    target.wait_for("ready")
    for arguments in (["-p", target.pid], interp.argv + [script]):
        run = box.austin(["-t", "1s", "-o", box.path()] + arguments, interp=interp, timeout=20)
        need(run.code == 10, "%s", run.text())
        need("32" in run.errors, "the word size is not in %s", run.errors)


def edited(box, word):
    """3.13.5 whose debug offsets say that it is another version (CPython's Include/patchlevel.h, PY_VERSION_HEX)."""
    interp, library, env = library_copy(box, "3.13.5")
    with open(library, "rb") as handle:
        data = handle.read()
    cookie = struct.pack("<8sQ", b"xdebugpy", 0x030D05F0)
    need(data.count(cookie) == 1, "the debug offsets are not in the library once")
    with open(library, "wb") as handle:
        handle.write(data.replace(cookie, struct.pack("<8sQ", b"xdebugpy", word)))
    return interp, env


@test()
def test_pre_release(box):
    """An alpha whose every check but the release level holds is used, and named as such."""
    for word, level in ((0x030D05A2, "alpha"), (0x030D00B3, "beta")):
        interp, env = edited(box, word)
        path = box.path()
        run = box.austin(
            ["-o", path, "-i", "1ms", interp.exe, os.path.join(box.targets, "steady.py"), "seconds=1.0"],
            path=path,
            env=env,
        )
        need(run.code == 0, "%s: %s", level, run.text())
        works(box, box.stream(run))
        need(level in run.errors.lower(), "%s is not on stderr: %s", level, run.errors)


@test()
def test_unknown_minor(box):
    for word, version in ((0x031000F0, "3.16"), (0x030900F0, "3.9"), (0x04000000, "4.0")):
        interp, env = edited(box, word)
        run = box.austin(
            ["-t", "1s", "-o", box.path(), interp.exe, os.path.join(box.targets, "steady.py"), "seconds=3.0"], env=env
        )
        need(run.code == 10, "%s: %s", version, run.text())
        need(version in run.errors, "%s is not in %s", version, run.errors)


@test("one")
def test_script_with_shebang(box):
    script = os.path.join(box.dir, "tool")
    interp = catalogue.find("debian")
    with open(os.path.join(box.targets, "steady.py")) as handle:
        text = handle.read()
    with open(script, "w") as handle:
        handle.write("#!%s\nimport sys\nsys.path.insert(0, %r)\n%s" % (interp.exe, box.targets, text))
    os.chmod(script, 0o755)
    path = box.path()
    run = box.austin(["-o", path, "-i", "1ms", script, "seconds=0.8"], path=path, interp=interp)
    need(run.code == 0, "%s", run.text())
    works(box, box.stream(run), interp.text)


@test("every")
def test_exec_into_python(box):
    run = box.launch("execs.py", "-i", "1ms")
    stream = box.stream(run)
    scopes = {frame[1] for sample in stream.samples for frame in sample.frames}
    need({"before_exec", "inner"} <= scopes, "not both programs were seen: %s", sorted(scopes)[:20])


@test("one")
def test_exec_into_another_version(box):
    """Both programs are in the stream, each behind its version, and the user is told of both."""
    others = [name for name in catalogue.EACH_VERSION if name.startswith("maven") and name != box.interp.name]
    other = catalogue.find(others[0])
    script = os.path.join(box.dir, "switch.py")
    with open(script, "w") as handle:
        handle.write(
            "import os, time\ndef before_exec(end):\n    while time.monotonic() < end:\n        pass\n"
            "before_exec(time.monotonic() + 0.6)\nos.execve(%r, [%r, %r, 'seconds=1.0'], %r)\n"
            % (other.exe, other.exe, os.path.join(box.targets, "steady.py"), other.environ())
        )
    path = box.path()
    run = box.austin(["-o", path, "-i", "1ms"] + box.interp.argv + [script], path=path)
    need(run.code == 0, "%s", run.text())
    stream = box.stream(run)
    scopes = {frame[1] for sample in stream.samples for frame in sample.frames}
    need({"before_exec", "inner"} <= scopes, "not both programs were seen: %s", sorted(scopes)[:20])
    versions = [value for key, value in stream.metadata if key == "python"]
    need(versions == [box.interp.text, other.text], "metadata: %s", stream.metadata)
    for version in versions:
        need(version in run.errors, "%s is not on stderr: %s", version, run.errors)
    with open(path, "rb") as handle:
        second = handle.read().index(b"python\0" + other.text.encode() + b"\0")
    for name, earlier in (("before_exec", True), ("inner", False)):
        wrong = [s for s in stream.samples if any(f[1] == name for f in s.frames) and (s.offset < second) != earlier]
        need(not wrong, "%d samples of %s are on the wrong side of the second version", len(wrong), name)


@test("one")
def test_exec_into_something_else(box):
    path = box.path()
    began = time.monotonic()
    run = box.austin(["-o", path, "-t", "500ms", "-i", "1ms"] + box.command("execs.py", then="/bin/sleep"), path=path)
    need(run.code == 0, "%s", run.text())
    need(time.monotonic() - began < 12, "it took %.1f s", time.monotonic() - began)
    works(box, box.stream(run), function="before_exec", share=0.3)


@test("one")
def test_second_profiler_at_once(box):
    target = box.start("steady.py", seconds=0)
    path = box.path()
    first = box.begin(["-i", "1ms", "-x", "2", "-o", path, "-p", target.pid])
    works(box, box.stream(box.attach(target.pid, "-i", "1ms", seconds=1)))
    need(first.wait(20) == 254, "the first one: %s", first.errors())
    works(box, box.stream(path))


@test("one")
def test_no_file_of_the_target_is_run(box):
    """A library that would leave a mark if somebody ran it to ask for its version."""
    interp, library, env = library_copy(box, "3.12.1")
    os.chmod(library, 0o644)
    gone(box, interp, env, interp.exe, lambda: None)
