#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The live suite: the built profiler against real CPythons (tests/interpreters) and targets that know the truth.

    run.py [--austin PATH] [--query PATH] [--tier quick|ci|nightly] [-k TEXT] [--jobs N] [-v]
           [--interpreters NAME,...] [--no-fetch] [--again] [--list] [--windows]

quick is what `scons test` runs; ci is the set with lengths of a tenth; nightly has the full lengths. Every test has a
process of its own, a time limit, and takes everything it started with it. Tests about time run alone. What cannot run
is named as skipped, with the reason. Exit status 1 if a test fails or none ran.

--windows runs austin.exe and Pythons for Windows under Wine (AUSTIN_WINE: 8 or 10; default: 10 if it is here).

--again gives tests about time a second try, for machines that others use as well: at most three of them, and what
failed first is in the output.
"""

import argparse
import glob
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import harness  # noqa: E402
from interpreters import catalogue, wine  # noqa: E402
from interpreters.model import Missing  # noqa: E402

AUSTIN_PYTHON = "austin-python==2.4.0"


class Job:
    def __init__(self, name, function, mark, interp):
        self.name, self.function, self.mark, self.interp = name, function, mark, interp
        self.pid = self.began = self.result = None


def mojo2austin():
    """(path, None) of austin-python's converter in an environment of its own below build/, or (None, reason)."""
    folder = os.path.join(ROOT, "build", "venv-" + AUSTIN_PYTHON.replace("==", "-"))
    program = os.path.join(folder, "bin", "mojo2austin")
    if os.path.exists(program):
        return program, None
    try:
        for command in (
            [sys.executable, "-m", "venv", folder],
            [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "-q", AUSTIN_PYTHON],
        ):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            if done.returncode:
                return None, done.stdout.strip().splitlines()[-1][:200]
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    return (program, None) if os.path.exists(program) else (None, "%s has no mojo2austin" % AUSTIN_PYTHON)


def interpreters(options):
    """name: Interpreter or the reason why there is none."""
    if options.interpreters:
        names = options.interpreters.split(",")
    elif options.windows:
        names = list(catalogue.WINDOWS)
    elif options.tier == "quick":
        names = list(catalogue.EACH_VERSION) + ["debian"]
    else:
        names = list(catalogue.SUPPORTED)
    found = {}
    for name in names:
        if name not in catalogue.ENTRIES:
            sys.exit("run.py: no interpreter is called %s (tests/interpreters/get.py --list)" % name)
        try:
            try:
                found[name] = catalogue.find(name)
            except Missing:
                if options.no_fetch:
                    raise
                found[name] = catalogue.fetch(name)
        except Missing as reason:
            found[name] = str(reason)
    return found


def excluded(mark, interp):
    words = {"3.%d" % interp.minor, interp.name} | interp.flags | ({"free-threaded"} if interp.free_threaded else set())
    return words & set(mark["without"])


def discover(options, found):
    """All jobs of the tier, and (name, reason) of what cannot run."""
    jobs, skipped = [], []
    here = {name: interp for name, interp in found.items() if not isinstance(interp, str)}
    each = [name for name in found if options.interpreters or options.windows or name in catalogue.EACH_VERSION]
    for path in sorted(glob.glob(os.path.join(HERE, "test_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        for attribute, function in vars(module).items():
            mark = getattr(function, "live_test", None)
            if mark is None or not attribute.startswith("test_"):
                continue
            if harness.TIERS.index(mark["tier"]) > harness.TIERS.index(options.tier):
                continue
            name = "%s.%s" % (module.__name__[5:], attribute[5:])
            if getattr(module, "ONLY", None) == "windows" and not options.windows:
                continue
            reason = mark["not_on_windows"] or getattr(module, "NOT_ON_WINDOWS", None)
            if options.windows and reason:
                skipped.append((name, "not on Windows: " + reason))
                continue
            if mark["interpreters"] == "none":
                jobs.append(Job(name, function, mark, None))
                continue
            if mark["interpreters"] == "one":
                fit = [k for k in each if k in here and not excluded(mark, here[k])]
                names = fit[-3:-2] or fit[:1]
                if not names:
                    skipped.append((name, "no interpreter is here"))
            elif mark["interpreters"] == "each" or options.tier == "quick":
                names = each
            else:
                names = list(found)
            for which in names:
                full = "%s[%s]" % (name, which)
                if which not in here:
                    skipped.append((full, found[which]))
                elif not excluded(mark, here[which]):
                    jobs.append(Job(full, function, mark, here[which]))
    if options.k:
        jobs = [job for job in jobs if any(word in job.name for word in options.k.split(","))]
        skipped = [pair for pair in skipped if any(word in pair[0] for word in options.k.split(","))]
    return jobs, skipped


def work(job, config, report):
    """One test, in a process of its own."""
    harness.become_subreaper()
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    box = None
    try:
        box = harness.Box(config, job.interp)
        job.function(box)
        result = ["passed", ""]
    except harness.Skip as reason:
        result = ["skipped", str(reason)]
    except Missing as reason:
        result = ["skipped", str(reason)]
    except harness.Failure as failure:
        where = [frame for frame in traceback.extract_tb(failure.__traceback__) if "test_" in frame.filename][-1:]
        result = ["failed", "%s%s" % ("line %d: " % where[0].lineno if where else "", failure)]
        if job.mark["alone"] and os.getloadavg()[0] > 1 + (os.cpu_count() or 1):
            result[1] += (
                "\n(load average %.1f: others use this machine, and this test is about time)" % os.getloadavg()[0]
            )
    except BaseException:
        result = ["failed", traceback.format_exc()]
    notes = box.notes if box else []
    try:
        if box:
            box.close()
    except BaseException:
        result = ["failed", result[1] + "\nand cleaning up: " + traceback.format_exc()]
    with os.fdopen(report, "w") as handle:
        json.dump(result + [notes], handle)


def start(job, config):
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    job.pid = os.fork()
    if job.pid == 0:
        try:
            os.close(read)
            os.setpgid(0, 0)
            work(job, config, write)
        finally:
            os._exit(0)
    os.close(write)
    job.pipe = read
    job.began = time.monotonic()


def finish(job, status):
    with os.fdopen(job.pipe) as handle:
        text = handle.read()
    try:
        job.result = json.loads(text)
    except ValueError:
        job.result = ["failed", "the test's process died (status %d)" % status, []]
    job.took = time.monotonic() - job.began


def patience(job, options):
    """Seconds."""
    return job.mark["timeout"] * (8 if options.tier == "nightly" else 2 if options.windows else 1)


def run_all(jobs, config, options):
    """Runs the jobs, those that may share the machine first."""
    inherited = set(harness.children_of(os.getpid()))  # a shell's `> >(tee log)`, for one
    waiting = [job for job in jobs if not job.mark["alone"]] + [job for job in jobs if job.mark["alone"]]
    running, total = {}, len(jobs)
    finished = 0
    # Whatever falls to us is an orphan of a test that was killed.
    harness.become_subreaper()
    while waiting or running:
        while waiting:
            alone = waiting[0].mark["alone"]
            if running and (
                alone or any(job.mark["alone"] for job in running.values()) or len(running) >= options.jobs
            ):
                break
            job = waiting.pop(0)
            start(job, config)
            running[job.pid] = job
        ended = []
        for pid, job in list(running.items()):
            got, status = os.waitpid(pid, os.WNOHANG)
            if got:
                finish(job, status)
                ended.append(job)
            elif time.monotonic() - job.began > patience(job, options):
                for child in harness.children_of(pid) + [pid]:
                    try:
                        os.kill(child, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                os.waitpid(pid, 0)
                os.close(job.pipe)
                job.took = time.monotonic() - job.began
                job.result = ["failed", "no end within %d s" % patience(job, options), []]
                ended.append(job)
        for job in ended:
            del running[job.pid]
            harness.end_children(keep=set(running) | inherited)
            finished += 1
            word, text, notes = job.result
            if word != "passed" or options.v:
                print(
                    "%-7s %s (%.1f s, %d of %d)"
                    % (word.upper() if word == "failed" else word, job.name, job.took, finished, total),
                    flush=True,
                )
                for line in text.splitlines():
                    print("        " + line)
            for note in notes if (options.v or word == "failed" or options.tier == "nightly") else ():
                print("        note: " + note)
            sys.stdout.flush()
        if not ended:
            time.sleep(0.02)


def second_tries(jobs, config, options):
    """Those that are about time, if they are few: then it is the machine, perhaps."""
    failed = [job for job in jobs if job.result[0] == "failed" and job.mark["alone"]]
    if len(failed) > 3:
        return
    for job in failed:
        print("second try of %s" % job.name, flush=True)
    run_all(failed, config, options)


def main():
    built = os.path.join(ROOT, "build", "linux-x86_64-release", "bin")
    windows = os.path.join(ROOT, "build", "windows-x86_64-release", "bin", "austin.exe")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", action="store_true", help="Windows programs, under Wine")
    parser.add_argument("--austin", default=os.environ.get("AUSTIN"))
    parser.add_argument("--query", default=os.environ.get("AUSTIN_QUERY") or os.path.join(built, "austin-query"))
    parser.add_argument("--tier", choices=harness.TIERS, default=os.environ.get("AUSTIN_TIER", "quick"))
    parser.add_argument("-k", help="only tests whose name holds one of these, parted by commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("-v", action="store_true", help="name the tests that pass, with their figures")
    parser.add_argument("--interpreters", help="only these, parted by commas")
    parser.add_argument("--no-fetch", action="store_true", help="fetch and build no interpreter that is not here")
    parser.add_argument("--again", action="store_true", help="a second try for tests about time")
    parser.add_argument("--list", action="store_true", help="names only")
    options = parser.parse_args()

    options.austin = options.austin or (windows if options.windows else os.path.join(built, "austin"))
    found = interpreters(options)
    jobs, skipped = discover(options, found)
    if options.list:
        for job in jobs:
            print(job.name)
        return 0
    if not os.access(options.austin, os.X_OK):
        print("run.py: there is no program %s: build it first (scons)" % options.austin, file=sys.stderr)
        print("0 passed, 1 failed, %d skipped" % len(skipped))
        return 1
    converter, reason = mojo2austin()
    if not converter:
        skipped.append(("mojo2austin on every stream", "%s cannot be had: %s" % (AUSTIN_PYTHON, reason)))
    query = options.query if os.access(options.query, os.X_OK) else None
    if not query:
        skipped.append(("austin-query check on every stream", "there is no program " + options.query))
    for name, reason in sorted((n, r) for n, r in found.items() if isinstance(r, str)):
        print("missing interpreter %s" % reason)
    config = dict(
        austin=[os.path.abspath(options.austin)],
        windows=options.windows,
        query=query and os.path.abspath(query),
        tier=options.tier,
        mojo2austin=converter,
        root=ROOT,
        folder="austin-live-%d" % os.getpid(),
    )
    if options.windows:
        try:
            config["austin"] = wine.command(config["austin"][0])
            wine.start()
        except Missing as reason:
            print("run.py: there is no Wine: %s" % reason)
            print("0 passed, 1 failed, %d skipped" % len(skipped))
            return 1
    began = time.monotonic()
    try:
        run_all(jobs, config, options)
        if options.again:
            second_tries(jobs, config, options)
    finally:
        # what a test leaves that had to be killed
        for base in {tempfile.gettempdir()} | {job.interp.root for job in jobs if job.interp and job.interp.root}:
            shutil.rmtree(os.path.join(base, config["folder"]), ignore_errors=True)
    for name, reason in skipped:
        print("skipped %s: %s" % (name, reason))
    counts = {word: sum(job.result[0] == word for job in jobs) for word in ("passed", "failed", "skipped")}
    failed = [job.name for job in jobs if job.result[0] == "failed"]
    if failed:
        print("failed: " + ", ".join(failed))
    slow = sorted(jobs, key=lambda job: -job.took)[:5]
    print(
        "%.0f s; longest: %s"
        % (time.monotonic() - began, ", ".join("%s %.0f s" % (job.name, job.took) for job in slow))
    )
    print("%d passed, %d failed, %d skipped" % (counts["passed"], counts["failed"], counts["skipped"] + len(skipped)))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
