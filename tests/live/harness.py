# SPDX-License-Identifier: Apache-2.0
"""What a live test is made of: a box with a folder of its own, targets, runs of the profiler, and verdicts."""

import ctypes
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import mojo

HERE = os.path.dirname(os.path.abspath(__file__))
TARGETS = os.path.join(HERE, "targets")
TIERS = ("quick", "ci", "nightly")
SYNTHETIC = ("<torn>", "<truncated>")
# The largest stream that the Python of austin-python is made to read: it takes about 10 us an event.
MOJO2AUSTIN_BYTES = 400_000


class Skip(Exception):
    """The test cannot run here, for the reason in the text."""


class Failure(AssertionError):
    """What was seen is not what has to be."""


def test(interpreters="none", tier="quick", alone=False, timeout=60, without=(), not_on_windows=None):
    """
    Marks a test. It is called with a Box.

    interpreters  "none": once, without one; "one": once, with any; "each": once per version; "every": with every one
                  that there is (in the quick tier as "each")
    tier          the smallest tier that it belongs to
    alone         nothing else may run meanwhile: its subject is time
    timeout       seconds
    without       versions or flags it has no meaning for, such as "3.10", "chroot" or "musl"
    not_on_windows  why it cannot run there, for the output
    """

    def mark(function):
        function.live_test = dict(
            interpreters=interpreters,
            tier=tier,
            alone=alone,
            timeout=timeout,
            without=without,
            not_on_windows=not_on_windows,
        )
        return function

    return mark


def need(condition, text, *values):
    if not condition:
        raise Failure(text % values if values else text)


def shown(value, limit=1500):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[:limit] + "... (%d characters)" % len(text)


# ---- what the stream has to say ----------------------------------------------------------------------------------


def escaped(name, cap=16384):
    """A name as a stream has it: NUL, lone surrogates and U+FFFD as U+FFFD and four hex digits, cut at 16 KiB."""
    text = re.sub("[\0\ud800-\udfff\ufffd]", lambda match: "\ufffd%04X" % ord(match.group()), name)
    if len(text.encode()) <= cap:
        return text
    cut = text.encode()[: cap - len("\u2026".encode())].decode(errors="ignore")
    return cut + "\u2026"


def same_name(seen, wanted):
    """Equal, or cut: then what is left is a beginning of the name, at most 16 KiB, and ends in an ellipsis."""
    whole = re.sub("[\0\ud800-\udfff\ufffd]", lambda match: "\ufffd%04X" % ord(match.group()), wanted)
    if len(whole.encode()) <= 16384:
        return seen == whole
    return (
        seen.endswith("\u2026")
        and whole.startswith(seen[:-1])
        and len(seen.encode()) <= 16384 + 3
        and len(seen.encode()) > 16384 - 16
    )


def is_torn(sample):
    return bool(sample.frames) and sample.frames[-1][1] == "<torn>" and sample.frames[-1][0] == "<austin>"


def is_truncated(sample):
    return bool(sample.frames) and sample.frames[0][1] == "<truncated>" and sample.frames[0][0] == "<austin>"


def is_whole(sample):
    return not is_torn(sample) and not is_truncated(sample)


def duration_of(stream):
    metadata = dict(stream.metadata)
    need("duration" in metadata, "the stream has no duration: %s", stream.metadata)
    return int(metadata["duration"])


def per_thread_time(stream):
    total = {}
    for sample in stream.samples:
        key = (sample.pid, sample.iid, sample.thread)
        total[key] = total.get(key, 0) + sample.time
    return total


class Graph:
    """Counts the pairs of frames that the target's call graph does not have."""

    def __init__(self, facts):
        self.file = facts["file"]
        self.allowed = {tuple(edge) for edge in facts["edges"]}
        self.known = {name for edge in facts["edges"] for name in edge}
        self.open = set(facts["open"])
        self.memory = {}
        self.bad = {}
        self.samples = self.torn = self.truncated = self.impossible = 0

    def __call__(self, sample):
        self.samples += 1
        frames = sample.frames
        self.torn += is_torn(sample)
        self.truncated += is_truncated(sample)
        if frames not in self.memory:
            if len(self.memory) > 100_000:
                self.memory.clear()
            self.memory[frames] = self._judge(frames)
        for edge in self.memory[frames]:
            self.impossible += 1
            self.bad[edge] = self.bad.get(edge, 0) + 1

    def _name(self, frame):
        return frame[1] if frame[0] == self.file else None

    def _judge(self, frames):
        bad = []
        if frames and frames[0][1] not in SYNTHETIC:
            name = self._name(frames[0])
            # a main thread's root is a module; a known function without its callers is a stack without its root
            if name is not None and name not in self.open:
                bad.append(("(root)", name))
        for outer, inner in zip(frames, frames[1:]):
            if outer[1] in SYNTHETIC or inner[1] in SYNTHETIC:
                continue
            a, b = self._name(outer), self._name(inner)
            if b in self.known and (a, b) not in self.allowed and not (a is None and b in self.open):
                bad.append((outer[1], inner[1]))
            elif a in self.known and a not in self.open and b not in self.known:
                bad.append((outer[1], inner[1]))
        return bad

    def text(self):
        worst = sorted(self.bad.items(), key=lambda item: -item[1])[:8]
        return "%d samples, %d impossible edges (%.1f a million), %d torn (%.2f %%), %d truncated; %s" % (
            self.samples,
            self.impossible,
            1e6 * self.impossible / max(1, self.samples),
            self.torn,
            100 * self.torn / max(1, self.samples),
            self.truncated,
            worst,
        )


# ---- processes ---------------------------------------------------------------------------------------------------


class Process:
    """A program of ours whose standard output is read with a time limit."""

    def __init__(self, argv, env, stdin=subprocess.PIPE, cwd=None, stderr=subprocess.PIPE, piped=False, **kwargs):
        """`piped`: its standard error is a pipe. A program of Wine 8 cannot write to a regular file now and then."""
        self.argv = argv
        self._errors = tempfile.TemporaryFile() if stderr == subprocess.PIPE else None
        self._copier = None
        where = stderr if piped or not self._errors else self._errors
        self.popen = subprocess.Popen(
            argv, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=where, cwd=cwd, **kwargs
        )
        if self.popen.stderr:
            self._copier = threading.Thread(target=self._copy_errors, daemon=True)
            self._copier.start()
        self.pid = self.popen.pid
        self.out = b""
        self._ended = False

    def _read(self, deadline):
        with selectors.DefaultSelector() as selector:
            selector.register(self.popen.stdout, selectors.EVENT_READ)
            if not selector.select(max(0, deadline - time.monotonic())):
                raise Failure(
                    "nothing came from %s in time; so far: %s / %s"
                    % (shown(" ".join(self.argv), 300), shown(self.text()), shown(self.errors()))
                )
        data = os.read(self.popen.stdout.fileno(), 1 << 20)
        self._ended = not data
        self.out += data

    def text(self):
        return self.out.decode(errors="replace")

    def _copy_errors(self):
        for data in iter(lambda: os.read(self.popen.stderr.fileno(), 65536), b""):
            os.write(self._errors.fileno(), data)

    def errors(self):
        if not self._errors:
            return ""
        if self._copier and not self.alive():
            self._copier.join(1)  # who has inherited the pipe may go on
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def said(self, word):
        """The facts of the last line `word {json}`, or None."""
        for line in reversed(self.out.split(b"\n")[:-1]):
            if line.startswith(word.encode() + b" {"):
                return json.loads(line[len(word) + 1 :])
        return None

    def wait_for(self, word, timeout=30):
        deadline = time.monotonic() + timeout
        while self.said(word) is None:
            if self._ended:
                raise Failure(
                    "%s ended before it said %r: %s / %s"
                    % (shown(" ".join(self.argv), 300), word, shown(self.text()), shown(self.errors()))
                )
            self._read(deadline)
        return self.said(word)

    def wait(self, timeout=30):
        """Reads to the end and returns the exit status."""
        deadline = time.monotonic() + timeout
        while not self._ended:
            self._read(deadline)
        try:
            return self.popen.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failure("%s closed its output but did not end" % shown(" ".join(self.argv), 300)) from None

    def word(self):
        """Tells a target that waits for standard input to go on."""
        try:
            self.popen.stdin.close()
        except OSError:
            pass

    def alive(self):
        return self.popen.poll() is None

    def kill(self, how=signal.SIGKILL):
        if self.alive():
            self.popen.send_signal(how)


class Run:
    """A finished run of the profiler."""

    def __init__(self, code, out, errors, path, process):
        self.code, self.out, self.errors, self.path, self.process = code, out, errors, path, process
        self.ready, self.done = process.said("ready"), process.said("done")

    def text(self):
        return "exit status %s, stdout %s, stderr %s" % (self.code, shown(self.out, 300), shown(self.errors, 1200))


def become_subreaper():
    """Orphans of our descendants become our children, so that nothing outlives a test."""
    pr_set_child_subreaper = 36  # prctl(2)
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


def children_of(pid):
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, task)) as handle:
                found += [int(word) for word in handle.read().split()]
        except (OSError, ValueError):
            pass
    return found


def state_of(pid):
    """The letter of the first thread: proc(5), /proc/pid/stat."""
    with open("/proc/%d/stat" % pid) as handle:
        return handle.read().rpartition(")")[2].split()[0]


def end_children(keep=()):
    """Kills every descendant of this process, by its id, until there is none."""
    for _ in range(200):
        children = [pid for pid in children_of(os.getpid()) if pid not in keep]
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


class Box:
    """One test's world."""

    def __init__(self, config, interp):
        self.config = (
            config  # austin, query, tier, mojo2austin, folder (name of this run's folders), root (of the tree)
        )
        self.interp = interp
        self.windows = config["windows"]
        self.notes = []
        self.long = config["tier"] == "nightly"
        root = interp.root if interp is not None else None
        base = os.path.join(root or tempfile.gettempdir(), config["folder"])
        os.makedirs(base, exist_ok=True)
        os.chmod(base, 0o755)
        self.dir = tempfile.mkdtemp(dir=base)
        os.chmod(self.dir, 0o755)
        self.targets = TARGETS
        if root:
            self.targets = os.path.join(self.dir, "targets")
            shutil.copytree(TARGETS, self.targets, ignore=shutil.ignore_patterns("__pycache__"))
        self._count = 0
        self._undo = []

    def note(self, text, *values):
        """A figure worth reading in the output of a test that passed."""
        self.notes.append(text % values if values else text)

    # Wine's server stops a program for each read of its memory, for 0.1 ms and more, and reads for one at a time: a pass
    # a millisecond is about what it can do there, and a start, with all its files and new code, takes seconds at that.

    def interval(self, usual):
        """How often a test asks for samples that on this system asks for them every `usual`, which is below 1 ms."""
        return "1ms" if self.windows else usual

    def wanted(self, usual):
        """How many samples a test wants that wants `usual` here."""
        return usual // 20 if self.windows else usual

    def seconds(self, samples, a_second):
        """How long a run of `samples` is: here `a_second` come in."""
        return samples / min(a_second, 500) if self.windows else samples / a_second

    def scale(self):
        """How much longer the phases of a program are: long against what a read adds to one that ends meanwhile."""
        return 10 if self.windows else 1

    def undo(self, function, *arguments):
        self._undo.append((function, arguments))

    def close(self):
        end_children()
        for function, arguments in reversed(self._undo):
            function(*arguments)
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name=None):
        self._count += 1
        return os.path.join(self.dir, name or "run-%d.mojo" % self._count)

    # -- targets

    def command(self, target, interp=None, inner=False, **options):
        """The command that runs a target; `inner`: for the profiler to run it."""
        interp = interp or self.interp
        script = os.path.join(self.targets, target)
        return (
            (interp.inner if inner else interp.argv)
            + [interp.inside(script)]
            + ["%s=%s" % item for item in options.items()]
        )

    def env(self, interp=None, extra=None):
        interp = interp or self.interp
        env = interp.environ(extra) if interp is not None else dict(os.environ, **(extra or {}))
        return env

    def spawn(self, argv, **kwargs):
        kwargs.setdefault("env", self.env())
        return Process(argv, piped=self.windows, **kwargs)

    def start(self, target, interp=None, timeout=40, env=None, **options):
        """A running target that has said that it is ready; its facts are in .facts."""
        process = self.spawn(self.command(target, interp, **options), env=self.env(interp, env))
        process.facts = process.wait_for("ready", timeout)
        if self.windows:
            process.pid = process.facts["pid"]  # what the system there calls it
        return process

    # -- the profiler

    def begin(self, arguments, env=None, interp=None, **kwargs):
        """Starts the profiler and returns its Process."""
        return self.spawn(
            self.config["austin"] + [str(part) for part in arguments], env=self.env(interp, env), **kwargs
        )

    def austin(self, arguments, timeout=30, path=None, env=None, interp=None, close_stdin=False, **kwargs):
        """Runs the profiler to its end."""
        process = self.begin(arguments, env, interp, **kwargs)
        if close_stdin and process.popen.stdin:
            process.popen.stdin.close()
        code = process.wait(timeout)
        return Run(code, process.text(), process.errors(), path, process)

    def launch(self, target, *arguments, timeout=40, code=0, env=None, **options):
        """Profiles a target from its start to its end into a file."""
        path = self.path()
        run = self.austin(
            ["-o", path, *arguments] + self.command(target, inner=True, **options), timeout=timeout, path=path, env=env
        )
        need(code is None or run.code == code, "%s: %s instead of %s", target, run.text(), code)
        return run

    def profile(self, target, *arguments, timeout=40, **options):
        """Profiles the work of a target: launched, but under Wine attached to when it is ready, for its start's sake."""
        if not self.windows:
            return self.launch(target, *arguments, timeout=timeout, **options)
        process = self.start(target, **options)
        path = self.path()
        run = self.austin(["-o", path, *arguments, "-p", process.pid], timeout=timeout, path=path)
        need(run.code == 0 and process.wait() == 0, "%s: %s / %s", target, run.text(), process.errors())
        run.ready, run.done = process.facts, process.said("done")
        return run

    def attach(self, pid, *arguments, seconds=1, timeout=None, code=254, env=None):
        """Profiles a process for some seconds into a file."""
        path = self.path()
        run = self.austin(
            ["-o", path, "-x", seconds, *arguments, "-p", pid], timeout=timeout or seconds + 20, path=path, env=env
        )
        need(code is None or run.code == code, "attach to %d: %s instead of %s", pid, run.text(), code)
        return run

    # -- streams

    def stream(self, run, unfinished=False, on_sample=None):
        """The decoded stream of a run, after every reader has agreed that it is a good one."""
        path = run if isinstance(run, str) else run.path
        need(os.path.exists(path), "there is no %s", path)
        stream = mojo.decode(path, unfinished=unfinished, on_sample=on_sample)
        need(not stream.violations, "%s breaks the format: %s", path, stream.violations[:5])
        query = self.config["query"]
        if query:
            done = subprocess.run(
                [query, "check"] + (["--unfinished"] if unfinished else []) + [path],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=120,
            )
            need(
                done.returncode == 0,
                "austin-query check: %d, %s",
                done.returncode,
                shown(done.stdout.decode(errors="replace")),
            )
        self._mojo2austin(path, unfinished, stream)
        return stream

    def _mojo2austin(self, path, unfinished, stream):
        """austin-python's own reader agrees on the whole time, wherever it can read the stream at all."""
        program = self.config["mojo2austin"]
        if not program or unfinished or os.path.getsize(path) > MOJO2AUSTIN_BYTES:
            return
        with open(path, "rb") as handle:
            if handle.read(3) != b"MOJ":
                return  # compressed: it does not read that
        if not stream.sample_count:
            return
        text = path + ".collapsed"
        done = subprocess.run([program, path, text], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
        need(done.returncode == 0, "mojo2austin: %s", shown(done.stderr.decode(errors="replace")[-600:]))
        with open(text, encoding="utf-8", errors="replace") as handle:
            total = sum(int(line.rpartition(" ")[2]) for line in handle if line.strip() and not line.startswith("#"))
        os.unlink(text)
        if stream.samples:
            wanted = sum(sample.time or 0 for sample in stream.samples)
            need(total == wanted, "mojo2austin adds up %d us, the stream has %d", total, wanted)

    def collect(self, target, wanted, visit, *arguments, seconds=2.0, most=12, **options):
        """
        Launches a target again and again until `visit` has got `wanted` samples. Returns the runs with their streams
        (the samples are not kept).
        """
        runs, seen = [], 0
        while seen < wanted:
            need(len(runs) < most, "only %d of %d samples in %d runs", seen, wanted, len(runs))
            run = self.profile(target, *arguments, timeout=seconds + 40, seconds=seconds, **options)
            if hasattr(visit, "begin"):
                visit.begin(run)
            run.stream = self.stream(run, on_sample=visit)
            runs.append(run)
            seen += run.stream.sample_count
            if seen < wanted and run.stream.sample_count:
                # one more of the right length
                seconds = min(90.0, max(0.5, 1.15 * seconds * (wanted - seen) / run.stream.sample_count))
            os.unlink(run.path)
        return runs
