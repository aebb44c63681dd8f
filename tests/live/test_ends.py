# SPDX-License-Identifier: Apache-2.0
"""Ends of every kind: of the profiler, of the target, of the disk. What is left is a valid file."""

import os
import random
import shutil
import signal
import subprocess
import time

import harness
import mojo
from harness import Skip, need, shown, test

NOT_ON_WINDOWS = "signals, limits and pipes of POSIX; test_windows.py has the ends that there are"


@test("one")
def test_signals_to_the_profiler_attached(box):
    for number, code in ((signal.SIGINT, 254), (signal.SIGTERM, 241)):
        target = box.start("steady.py", seconds=0)
        path = box.path()
        process = box.begin(["-i", "1ms", "-o", path, "-p", target.pid])
        time.sleep(0.7)
        process.kill(number)
        got = process.wait(10)
        need(got == code, "%s: exit status %d instead of %d: %s", number.name, got, code, process.errors())
        stream = box.stream(path)
        need(harness.duration_of(stream) > 0.3e6 and stream.samples, "the file has no end")
        need(target.alive(), "%s ended the target", number.name)
        target.word()
        need(target.wait(10) == 0, "the target failed")


@test("one")
def test_signals_to_the_profiler_launched(box):
    """The program is told in the same way and has time to clean up."""
    for number, code in ((signal.SIGINT, 254), (signal.SIGTERM, 241)):
        caught = os.path.join(box.dir, "caught-%d" % number)
        path = box.path()
        process = box.begin(
            ["-i", "1ms", "-o", path] + box.command("steady.py", seconds=30, catch=box.interp.inside(caught))
        )
        pid = process.wait_for("ready")["pid"]
        time.sleep(0.5)
        process.kill(number)
        got = process.wait(15)
        need(got == code, "%s: exit status %d instead of %d: %s", number.name, got, code, process.errors())
        need(not os.path.exists("/proc/%d" % pid), "the program still runs")
        with open(caught) as handle:
            need(handle.read() == "%d\n" % number, "the program caught something else")
        stream = box.stream(path)
        need(harness.duration_of(stream) > 0.2e6, "the file has no end")


OTHER_ENDINGS = ("QUIT", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "XCPU", "PWR", "POLL")


@test("one")
def test_other_signals_that_end_a_process(box):
    """They would have been the death of the profiler: a complete file all the same, and 256 less the number."""
    target = box.start("steady.py", seconds=0)
    runs = []
    for name in OTHER_ENDINGS:
        path = box.path()
        runs.append((getattr(signal, "SIG" + name), path, box.begin(["-i", "10ms", "-o", path, "-p", target.pid])))
    time.sleep(1.0)
    for number, path, process in runs:
        process.kill(number)
    for number, path, process in runs:
        got = process.wait(10)
        need(got == 256 - number, "%s: exit status %d: %s", number.name, got, process.errors())
        stream = box.stream(path)
        need(harness.duration_of(stream) > 0.3e6 and stream.samples, "%s: the file has no end", number.name)
    need(target.alive(), "the target was ended")

    caught = os.path.join(box.dir, "caught")
    path = box.path()
    process = box.begin(
        ["-i", "1ms", "-o", path] + box.command("steady.py", seconds=30, catch=box.interp.inside(caught))
    )
    process.wait_for("ready")
    time.sleep(0.5)
    process.kill(signal.SIGQUIT)
    got = process.wait(15)
    need(got == 256 - signal.SIGQUIT, "exit status %d: %s", got, process.errors())
    with open(caught) as handle:
        need(handle.read() == "%d\n" % signal.SIGTERM, "the program was not asked to end")
    need(harness.duration_of(box.stream(path)) > 0.2e6, "the file has no end")

    path = box.path()  # ignored from the start: stays so
    process = box.begin(
        ["-i", "1ms", "-x", "1", "-o", path, "-p", target.pid],
        preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
    )
    time.sleep(0.5)
    process.kill(signal.SIGUSR1)
    got = process.wait(15)
    need(got == 254, "exit status %d: %s", got, process.errors())


@test("one")
def test_program_that_ignores_the_signal(box):
    """A second signal does not wait."""
    script = os.path.join(box.dir, "deaf.py")
    with open(script, "w") as handle:
        handle.write(
            "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready {}', flush=True)\ntime.sleep(60)\n"
        )
    path = box.path()
    process = box.begin(["-i", "1ms", "-o", path] + box.interp.argv + [box.interp.inside(script)])
    process.wait_for("ready")
    time.sleep(0.4)
    process.kill(signal.SIGINT)
    time.sleep(0.5)
    process.kill(signal.SIGINT)
    # the program has our standard output still open: that does not end
    got = process.popen.wait(20)
    need(got == 254, "exit status %d: %s", got, process.errors())
    box.stream(path)


def killed(box, arguments, name, rounds):
    rng = random.Random(4)
    for _ in range(rounds):
        target = box.start("steady.py", seconds=0)
        path = box.path(name)
        if os.path.exists(path):
            os.unlink(path)
        process = box.begin(arguments + ["-o", path, "-p", target.pid])
        lived = rng.uniform(0.4, 1.2)
        time.sleep(lived)
        process.kill(signal.SIGKILL)
        process.wait(10)
        stream = box.stream(path, unfinished=True)
        covered = sum(sample.time for sample in stream.samples) / 1e6
        # start-up is not sampled: what is bounded is the end
        need(covered > lived - 0.25 - 0.2, "killed after %.3f s, the file holds %.3f s", lived, covered)
        need(target.alive(), "the target died with the profiler")
        target.kill()
        target.wait(10)


@test("one", timeout=120)
def test_killed_profiler(box):
    """A file is readable up to 250 ms before the end of a killed run."""
    killed(box, ["-i", "1ms"], "killed.mojo", 3 if not box.long else 50)


@test("one", timeout=120)
def test_killed_profiler_compressed(box):
    killed(box, ["-i", "1ms", "--compress"], "killed.mojo.zst", 3 if not box.long else 50)


@test("each", timeout=120)
def test_target_dies_at_any_moment(box):
    rng = random.Random(5)
    for _ in range(3 if not box.long else 100):
        path = box.path("dies.mojo")
        target = box.spawn(box.command("callgraph.py", leaf=0, seconds=60))
        target.wait_for("ready")
        process = box.begin(["-i", "0", "-o", path, "-p", target.pid])
        time.sleep(rng.uniform(0.05, 0.4))
        target.kill(signal.SIGKILL)
        target.wait(10)
        code = process.wait(10)
        # killed before it was found at all, it is a process that cannot be attached to any more
        need(code in (0, 1, 3), "exit status %d: %s", code, process.errors())
        if code == 0:
            box.stream(path)


@test("each", timeout=120)
def test_launched_program_dies_at_any_moment(box):
    rng = random.Random(6)
    for _ in range(4 if not box.long else 100):
        path = box.path("launched.mojo")
        process = box.begin(["-i", "0", "-o", path] + box.command("callgraph.py", leaf=0, seconds=60))
        time.sleep(rng.uniform(0.005, 0.7))
        children = harness.children_of(process.pid)
        for child in children:
            os.kill(child, signal.SIGKILL)
        if not children:
            process.kill(signal.SIGINT)
        code = process.wait(10)
        need(code in (0, 1, 254), "exit status %d: %s", code, process.errors())
        if code == 1:
            need("too quickly" in process.errors() or "Cannot launch" in process.errors(), "%s", process.errors())
        if os.path.exists(path) and os.path.getsize(path):
            mojo.read(path, unfinished=code != 0)


@test("one")
def test_full_disk(box):
    if os.geteuid() != 0:
        raise Skip("needs root, to mount a small file system")
    small = os.path.join(box.dir, "small")
    os.mkdir(small)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", small], stderr=subprocess.PIPE)
    if done.returncode:
        raise Skip("cannot mount a tmpfs: " + done.stderr.decode(errors="replace").strip())
    box.undo(subprocess.run, ["umount", small])
    for name in ("full.mojo", "full.mojo.zst"):
        path = os.path.join(small, name)
        process = box.begin(["-i", "0", "-o", path] + box.command("generators.py", seconds=60))
        code = process.wait(25)  # the program is interrupted, and so has let go of its output
        need(code == 5, "%s: exit status %d instead of 5: %s", name, code, process.errors())
        need(path in process.errors() and "space" in process.errors().lower(), "%s", process.errors())
        stream = box.stream(path, unfinished=True)
        need(len(stream.samples) > 100, "only %d samples in a full disk's file", len(stream.samples))
        need("last whole sample" in process.errors(), "what is left is not spoken of: %s", process.errors())
        os.unlink(path)
    # full from the start: nothing is left that could be read
    with open(os.path.join(small, "filler"), "wb", buffering=0) as handle:
        try:
            while True:
                handle.write(bytes(4096))
        except OSError:
            pass
    for name in ("none.mojo", "none.mojo.zst"):
        path = os.path.join(small, name)
        run = box.austin(["-o", path] + box.command("steady.py", seconds=4))
        need(run.code == 5 and path in run.errors and "make room" in run.errors.lower(), "%s", run.text())
        need("can be read" not in run.errors and "ready" not in run.out, "%s", run.text())
        need(not os.path.exists(path), "%s was left behind", name)


@test("one")
def test_file_size_limit(box):
    """A file that may not grow any more is a full disk like any other, not the death of the profiler."""
    import resource

    for name in ("limit.mojo", "limit.mojo.zst"):
        path = box.path(name)
        process = box.begin(
            ["-i", "0", "-o", path] + box.command("generators.py", seconds=60),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384)),
        )
        code = process.wait(25)
        need(code == 5, "%s: exit status %d instead of 5: %s", name, code, process.errors())
        need(path in process.errors() and "ulimit -f" in process.errors(), "%s", process.errors())
        need(os.path.getsize(path) == 16384, "the file has %d bytes", os.path.getsize(path))
        need("last whole sample" in process.errors(), "what is left is not spoken of: %s", process.errors())
        stream = box.stream(path, unfinished=True)
        need(len(stream.samples) > 100, "only %d samples in the file", len(stream.samples))
    for name in ("none.mojo", "none.mojo.zst"):
        path = box.path(name)
        done = subprocess.run(  # its words go into a pipe, which has no such limit
            [*box.config["austin"], "-o", path] + box.command("steady.py", seconds=4),
            env=box.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=20,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        )
        errors = done.stderr.decode(errors="replace")
        need(done.returncode == 5 and "ulimit -f" in errors, "%s: %d, %s", name, done.returncode, errors)
        need("can be read" not in errors and not done.stdout, "%s: %s, %s", name, errors, done.stdout)
        need(not os.path.exists(path), "%s was left behind", name)


@test("one")
def test_file_size_limit_of_the_program(box):
    """The program dies of the signal as it would without us."""
    import resource

    path = box.path()
    process = box.begin(
        ["-i", "1ms", "-o", path, "sh", "-c", 'head -c 100000 /dev/zero > "$1"; echo "it ended with $?"', "sh"]
        + [os.path.join(box.dir, "large")],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384)),
    )
    process.wait(20)
    need("it ended with %d" % (128 + signal.SIGXFSZ) in process.text(), "%s", process.text())


@test("each")
def test_first_thread_ends(box):
    """The process goes on without its main thread: whoever has the memory then is read. Launched and attached."""
    stream = box.stream(box.launch("leaderless.py", "-i", "1ms", how="pthread", before=0.4, seconds=1.0))
    times = {}
    for sample in stream.samples:
        for name in {frame[1] for frame in sample.frames} & {"inner", "alive"}:
            times[name] = times.get(name, 0) + sample.time / 1e6
    need(0.2 < times.get("alive", 0) < 0.7, "the main thread has %s s", times.get("alive"))
    need(times.get("inner", 0) > 1.15, "the other thread was seen for %s s of 1.4", times.get("inner"))

    target = box.start("leaderless.py", how="exit", seconds=2.5)
    deadline = time.monotonic() + 10
    while harness.state_of(target.pid) != "Z":
        need(time.monotonic() < deadline, "the main thread does not end")
        time.sleep(0.01)
    stream = box.stream(box.attach(target.pid, "-i", "1ms", "-x", "800ms"))
    hot = sum(any(frame[1] == "inner" for frame in sample.frames) for sample in stream.samples)
    need(hot > 100 and hot > 0.95 * len(stream.samples), "%d of %d samples", hot, len(stream.samples))
    need({sample.pid for sample in stream.samples} == {target.pid}, "it has another pid")
    need(target.wait(10) == 0, "the target failed")


@test("one")
def test_reader_goes_away(box):
    """A closed pipe is an output error like any other, not a silent death."""
    caught = os.path.join(box.dir, "caught")
    process = box.begin(["-P", "-i", "1ms"] + box.command("steady.py", seconds=60, catch=caught))
    stream = b""
    while b"outer" not in stream:  # it is at work
        more = os.read(process.popen.stdout.fileno(), 1000)
        need(more, "the stream has ended")
        stream += more
    need(stream[:3] == b"MOJ", "%r is no stream", stream[:100])
    process.popen.stdout.close()
    try:
        code = process.popen.wait(20)
    except subprocess.TimeoutExpired:
        need(False, "it goes on without a reader")
    need(code == 5 and process.errors().strip(), "exit status %d, %s", code, process.errors())
    with open(caught) as handle:
        need(handle.read() == "%d\n" % signal.SIGINT, "the program was not interrupted")


@test("one", alone=True)
def test_slow_reader_loses_nothing(box):
    """When the ring is full the sampler waits: the sum is still the duration."""
    path = box.path()
    fifo = os.path.join(box.dir, "slow")
    os.mkfifo(fifo)
    reader = box.spawn(["sh", "-c", 'exec 3<"$1"; sleep 1.5; exec cat <&3 >"$2"', "sh", fifo, path])
    run = box.austin(["-i", "0", "-o", fifo] + box.command("callgraph.py", seconds=2.5, leaf=0), timeout=40)
    reader.wait(20)
    need(run.code == 0, "%s", run.text())
    stream = box.stream(path)
    total, duration = sum(sample.time for sample in stream.samples), harness.duration_of(stream)
    need(abs(total - duration) <= 0.01 * duration, "the samples add up to %d us of %d", total, duration)


@test("one")
def test_terminal_is_sane_after_a_crash(box):
    import pty
    import termios

    leader, follower = pty.openpty()
    before = termios.tcgetattr(follower)
    script = os.path.join(box.dir, "raw.py")
    with open(script, "w") as handle:
        handle.write(
            "import os, signal, sys, time, tty\ntty.setraw(0)\nprint('raw', flush=True)\ntime.sleep(0.5)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
    if not shutil.which("setsid"):
        raise Skip("setsid is not installed")
    process = subprocess.Popen(
        ["setsid", "-c", "-w", *box.config["austin"], "-o", box.path(), "-i", "1ms"]
        + box.interp.argv
        + [box.interp.inside(script)],
        env=box.env(),
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
    )
    try:
        errors = process.communicate(timeout=20)[1].decode(errors="replace")
        after = termios.tcgetattr(follower)
    finally:
        os.close(leader)
        os.close(follower)
    need(process.returncode == 0, "exit status %s: %s", process.returncode, shown(errors))
    need(after == before, "the terminal's settings are not what they were: %s instead of %s", after[:4], before[:4])
