# SPDX-License-Identifier: Apache-2.0
"""
What is Windows' own: consoles, jobs, redirectors, names and paths, and the bad input of the main job as it looks there.

Runs under Wine (run.py --windows). A program of Wine is a process of this system too, with another number: it is killed by
the latter, and named to the profiler by the former.
"""

import os
import random
import shutil
import signal
import time

import harness
import mojo
from harness import need, shown, test
from interpreters import catalogue, wine
from interpreters.model import Missing

ONLY = "windows"  # run.py: not for this system's own programs


def tool(box, name):
    path = os.path.join(os.path.dirname(os.path.dirname(box.config["austin"][-1])), "tools", name)
    if not os.path.exists(path):
        raise harness.Failure("%s is not built" % path)
    return path


def run_of(box, arguments, code, *needles, **kwargs):
    run = box.austin(arguments, **kwargs)
    need(run.code == code, "%s: %s instead of %d", shown(" ".join(map(str, arguments)), 300), run.text(), code)
    for needle in needles:
        need(str(needle) in run.errors, "%r is not said: %s", needle, run.text())
    return run


def wait_until(condition, seconds, text):
    deadline = time.monotonic() + seconds
    while not condition():
        need(time.monotonic() < deadline, "%s within %d s", text, seconds)
        time.sleep(0.05)


def grows(path, seconds=0.6):
    """Does something still write to the file?"""
    size, deadline = os.path.getsize(path), time.monotonic() + seconds
    while os.path.getsize(path) <= size and time.monotonic() < deadline:
        time.sleep(0.05)
    return os.path.getsize(path) > size


# ---- the main job ------------------------------------------------------------------------------------------------


@test("each", timeout=120)
def test_two_hundred_threads(box):
    target = box.start("sleepers.py", threads=200, seconds=60.0, births=0, life=1.0)
    stream = box.stream(box.attach(target.pid, "-i", "50ms", seconds=3))
    names = {sample.thread for sample in stream.samples}
    asleep = [name for name in names if name.startswith("asleep-")]
    need(len(asleep) == 200, "%d of 200 threads were seen by name", len(asleep))


@test("each", timeout=60)
def test_cpu_mode(box):
    """Wine tells no run states: who has used CPU time of late runs. A sleeper is not written, a busy thread is."""
    run = box.launch("steady.py", "-c", "-i", "20ms", seconds=4.0)
    stream = box.stream(run)
    at_work = [sample.time for sample in stream.samples if any(frame[1] == "outer" for frame in sample.frames)]
    seen, used = sum(at_work), 1e6 * (run.done["cpu"] - run.ready["cpu"])
    box.note("a busy thread: %.0f %% of the time that it says it has used", 100 * seen / used)
    need(0.85 < seen / used < 1.15, "a busy thread has used %d us, its samples are %d us", used, seen)
    idle = box.start("steady.py", seconds=0, busy=0)
    stream = box.stream(box.attach(idle.pid, "-c", "-i", "20ms", seconds=3))
    share = sum(sample.time for sample in stream.samples) / harness.duration_of(stream)
    box.note("a thread that sleeps: %.1f %% of the time", 100 * share)
    need(share < 0.5, "a thread that sleeps has %.1f %%", 100 * share)


# ---- bad input ---------------------------------------------------------------------------------------------------


@test("one")
def test_no_such_process(box):
    run_of(box, ["-o", box.path(), "-p", 2_000_000_000], 1, "Cannot attach", 2_000_000_000, "tasklist")
    target = box.start("steady.py", seconds=0)
    # the system itself ignores the last two bits of a number
    run_of(box, ["-o", box.path(), "-p", target.pid + 1], 1, "Cannot attach", target.pid + 1)


@test("one")
def test_not_a_python(box):
    run_of(box, ["-o", box.path(), "-t", "500ms", "cmd.exe", "/c", "ping -n 20 127.0.0.1 > nul"], 10, "not a Python")
    run_of(box, ["-o", box.path(), "-t", "500ms", "no-such-program"], 1, "Cannot launch", "no-such-program")
    run_of(box, ["-o", box.path(), "cmd.exe", "/c", "exit"], 1, "too quickly")


@test(timeout=120)
def test_32_bits(box):
    """Refused, and at once: launched, though the program is a short one, and attached to."""
    if not wine.has_32bit():
        raise harness.Skip("this Wine runs no 32-bit programs")
    try:
        interp = catalogue.find("win32-3.11.3")
    except Missing:
        interp = catalogue.fetch("win32-3.11.3")
    target = box.start("steady.py", interp, seconds=0)
    for arguments in (["-p", target.pid], box.command("steady.py", interp, inner=True, seconds=1.0)):
        began = time.monotonic()
        run_of(box, ["-t", "20s", "-o", box.path()] + arguments, 10, "32-bit", "64-bit Python", interp=interp)
        need(time.monotonic() - began < 10, "it was waited for 64 bits")


@test("one")
def test_what_cannot_be_launched(box):
    run_of(box, ["-o", box.path(), box.dir], 1, "Cannot launch")
    script = os.path.join(box.dir, "script.py")
    with open(script, "w") as handle:
        handle.write("print(1)\n")
    run_of(box, ["-o", box.path(), wine.windows_path(script)], 1, "Cannot launch", "python")


@test("one")
def test_unwritable_output(box):
    for path, remedy in (
        (os.path.join(box.dir, "no", "folder.mojo"), "Create the folder"),
        (box.dir, "in that folder"),
        ("Q:\\there\\is\\no\\drive.mojo", ""),
        ("\\\\.\\pipe\\nobody-%d" % os.getpid(), "no such pipe"),
    ):
        run = run_of(box, ["-o", path] + box.command("steady.py", inner=True, seconds=0.5), 5, path, remedy)
        need("ready" not in run.out, "the program was started although its samples have nowhere to go")
        need(len(run.errors.strip().splitlines()) >= 2, "no remedy: %s", run.text())


@test("one", timeout=90)
def test_full_disk(box):
    """A small file system: the file is valid up to its last whole sample, the program goes on."""
    small = os.path.join(box.dir, "small")
    os.makedirs(small)
    seen, undo = wine.small_folder(small, 8192)
    box.undo(undo)
    target = box.start("generators.py", seconds=30)
    path = os.path.join(small, "full.mojo")
    run_of(box, ["-i", "0", "-x", 20, "-o", path, "-p", target.pid], 5, "full.mojo", "Make room", timeout=60)
    stream = box.stream(os.path.join(seen, "full.mojo"), unfinished=True)
    need(stream.sample_count > 100, "only %d samples", stream.sample_count)
    need(target.alive(), "the program was ended")


@test("each", timeout=120)
def test_target_killed_at_any_moment(box):
    for seed in range(4 if not box.long else 40):
        target = box.start("callgraph.py", seconds=60, leaf=0)
        path = box.path()
        process = box.begin(["-i", "1ms", "-o", path, "-p", target.pid])
        process_ready(process, path)
        time.sleep(random.Random(seed).random() * 0.5)
        target.kill()
        code = process.wait(20)
        need(code == 0, "exit status %d: %s", code, process.errors())
        need(box.stream(path).sample_count, "no sample")


def process_ready(process, path):
    """Waits until there are samples in the file."""
    wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 400, 20, "no samples in %s" % path)
    need(process.alive(), "the profiler has ended: %s", process.errors())


@test("each", timeout=120)
def test_profiler_killed(box):
    """The program goes on, launched or attached; the file is valid up to its last whole sample."""
    for launched in (0, 1):
        path, beat = box.path(), os.path.join(box.dir, "beat-%d" % launched)
        command = box.command("beats.py", inner=bool(launched), into=beat)
        target = None if launched else box.spawn(command)
        facts = target.wait_for("ready") if target else None
        process = box.begin(["-i", "1ms", "-o", path] + (command if launched else ["-p", facts["pid"]]))
        process_ready(process, path)
        wait_until(lambda: os.path.exists(beat) and os.path.getsize(beat), 20, "the program does not begin")
        time.sleep(0.5)
        process.kill(signal.SIGKILL)
        process.popen.wait()
        time.sleep(0.3)
        need(grows(beat, 10), "the program has ended with its profiler (launched: %d)", launched)
        need(box.stream(path, unfinished=True).sample_count, "no sample")


# ---- ends --------------------------------------------------------------------------------------------------------


@test("one", timeout=60)
def test_exposure(box):
    """-x ends a launched program and all that it has started, and leaves one that was there before."""
    path, beats = box.path(), [os.path.join(box.dir, "beat-%d" % n) for n in range(2)]
    run = box.austin(
        ["-i", "20ms", "-x", 6, "-o", path] + box.command("beats.py", inner=True, into=beats[0], child=beats[1]), timeout=40
    )
    need(run.code == 254, "%s instead of 254", run.text())
    need(box.stream(path).sample_count, "no sample")
    for beat in beats:
        need(os.path.exists(beat), "%s was never made", beat)
        need(not grows(beat, 2), "what was launched goes on: %s", beat)
    target = box.spawn(box.command("beats.py", into=beats[0]))
    run = box.austin(["-i", "1ms", "-x", 1, "-o", box.path(), "-p", target.wait_for("ready")["pid"]])
    need(run.code == 254 and grows(beats[0], 10), "what was attached has ended: %s", run.text())


@test("one", timeout=120)
def test_console(box):
    """Ctrl-C reaches the program too, which may clean up; Ctrl-Break and closing the console end both."""
    for event, code in (("ctrl-c", 254), ("ctrl-break", 254), ("close", 241), ("logoff", 241)):
        path, caught = box.path(), os.path.join(box.dir, "caught-" + event)
        arguments = ["-i", "20ms", "-o", path] + box.command("steady.py", inner=True, seconds=60, catch=caught)
        console = box.spawn(
            wine.command(tool(box, "win_console.exe")) + [wine.windows_path(box.config["austin"][-1])] + arguments
        )
        console.wait_for("ready")
        console.popen.stdin.write(event.encode() + b"\n")
        console.word()
        console.wait(30)
        need("exit %d" % code in console.text(), "%s: %s, not exit %d", event, shown(console.text()), code)
        stream = box.stream(path)
        need(harness.duration_of(stream) > 0, "%s: the file has no end", event)
        if event == "ctrl-c":  # Wine's C runtime has no SIGBREAK, so that nobody can handle that one
            need(os.path.exists(caught), "%s: the program was not told", event)


@test("one", timeout=60)
def test_closed_pipe(box):
    """The reader of the samples goes away: the profiler ends, and so does what it launched; it says why."""
    beat = os.path.join(box.dir, "beat")
    process = box.begin(["-i", "5ms"] + box.command("beats.py", inner=True, into=beat))
    data = os.read(process.popen.stdout.fileno(), 100)
    need(data.startswith(b"MOJ"), "no samples on standard output: %r", data[:20])
    wait_until(lambda: os.path.exists(beat) and os.path.getsize(beat), 20, "the program does not begin")
    process.popen.stdout.close()
    code = process.popen.wait(30)
    need(code == 5, "exit status %d: %s", code, process.errors())
    need("reading the samples has ended" in process.errors(), "%s", process.errors())
    need(not grows(beat, 2), "what was launched goes on")


@test("one", timeout=60)
def test_samples_to_standard_output(box):
    """What the program prints is not among them, also what a program prints that it starts."""
    process = box.begin(["-P", "-i", "5ms"] + box.command("steady.py", inner=True, seconds=1.0))
    code = process.wait(30)
    need(code == 0, "exit status %d: %s", code, process.errors())
    path = box.path()
    with open(path, "wb") as handle:
        handle.write(process.out)
    count = box.stream(path).sample_count
    need(count > 50, "only %d samples", count)
    need(b"ready {" not in process.out, "the program's own output is in it")


# ---- names and paths ---------------------------------------------------------------------------------------------

STRANGE = "ж 日本 é"


@test("each", timeout=60)
def test_arguments(box):
    """Every argument comes as it was given, by the rules of Microsoft's C runtime."""
    arguments = ["", "a b", 'q"u"o', "back\\slash\\", 'end\\\\"', "\\\\\\", '\\"', "%PATH%", "^&|<>", STRANGE, "tab\there"]
    path = box.path()
    run = box.austin(
        ["-i", "20ms", "-o", path]
        + box.interp.inner
        + [os.path.join(box.targets, "arguments.py"), *arguments],
        path=path,
    )
    need(run.code == 0, "%s", run.text())
    seen = run.process.said("done")["arguments"]
    need(seen == arguments, "%r instead of %r", seen, arguments)


@test("each", timeout=60)
def test_files_with_strange_names(box):
    folder = os.path.join(box.dir, STRANGE)
    deep = os.path.join(folder, *["x" * 60] * 5)
    for where in (folder, deep):
        os.makedirs(where, exist_ok=True)
        script = os.path.join(where, "%s.py" % STRANGE)
        with open(script, "w") as handle:
            handle.write("import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end:\n    pass\n")
        out = os.path.join(where, "%s.mojo" % STRANGE)
        run = box.austin(
            ["-i", "20ms", "-o", wine.windows_path(out)] + box.interp.inner + [wine.windows_path(script)]
        )
        need(run.code == 0, "%s", run.text())
        stream = box.stream(out)
        files = {frame[0] for sample in stream.samples for frame in sample.frames}
        need(any(name.endswith("%s.py" % STRANGE) for name in files), "the script is not among %s", files)


# ---- programs that stand for an interpreter ----------------------------------------------------------------------


def redirect(box, name, target):
    """A redirector to `target`, as a virtual environment has it."""
    folder = os.path.join(box.dir, name)
    os.makedirs(folder)
    program = os.path.join(folder, "python.exe")
    shutil.copy(tool(box, "win_redirector.exe"), program)
    with open(os.path.join(folder, "python.target"), "w", encoding="utf-8") as handle:
        handle.write(target)
    return program


@test("each", timeout=90)
def test_redirectors(box):
    """One, or two in a row; launched, and attached to by the number of the first."""
    one = redirect(box, "one", box.interp.inner[0])
    two = redirect(box, "two", wine.windows_path(one))
    for program in (one, two):
        path = box.path()
        command = [wine.windows_path(program), os.path.join(box.targets, "steady.py"), "seconds=1.5"]
        run = box.austin(["-i", "10ms", "-o", path] + command, path=path)
        need(run.code == 0, "%s", run.text())
        stream = box.stream(run)
        need(any(frame[1] == "inner" for sample in stream.samples for frame in sample.frames), "no hot function")
        need({sample.pid for sample in stream.samples} == {run.ready["pid"]}, "not the interpreter's own number")
    run = box.austin(["-x", 1, "-i", "10ms", "-o", box.path()] + command[:2] + ["seconds=60"])
    need(run.code == 254, "%s", run.text())


@test("one", timeout=60)
def test_renamed_python(box):
    """What a program is called says nothing."""
    home = os.path.dirname(box.interp.exe)
    program = os.path.join(home, "renamed-%d.exe" % os.getpid())
    shutil.copy(box.interp.exe, program)
    box.undo(os.unlink, program)
    path = box.path()
    run = box.austin(
        ["-i", "1ms", "-o", path, wine.windows_path(program), os.path.join(box.targets, "steady.py"), "seconds=0.7"]
    )
    need(run.code == 0 and mojo.read(path).samples, "%s", run.text())


@test("one", timeout=90)
def test_embedded_python(box):
    """A program that loads a python3X.dll of another name from another place."""
    home = os.path.dirname(box.interp.exe)
    name = "python%d%d%s.dll" % (*box.interp.version[:2], "t" if box.interp.free_threaded else "")
    folder = os.path.join(box.dir, "host")
    os.makedirs(folder)
    shutil.copy(os.path.join(home, name), os.path.join(folder, "engine.dll"))
    for library in os.listdir(home):
        if library.lower().startswith("vcruntime"):
            shutil.copy(os.path.join(home, library), folder)
    program = os.path.join(folder, "host.exe")
    shutil.copy(tool(box, "win_embed.exe"), program)
    path = box.path()
    run = box.austin(
        ["-i", "1ms", "-o", path, wine.windows_path(program), wine.windows_path(os.path.join(folder, "engine.dll"))],
        env={"PYTHONHOME": wine.windows_path(home)},
    )
    need(run.code == 0, "%s", run.text())
    stream = box.stream(path)
    need(any(frame[1] == "spin" for sample in stream.samples for frame in sample.frames), "the function is not seen")
