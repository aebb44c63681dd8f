#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The figures that the product promises, measured.

    run.py [--austin PATH] [--bare PATH] [--rounds N] [--seconds S] [--minutes M] [--interpreters NAME,...]
           [--only cost,flat,threads,memory] [--json PATH]

cost      CPU of the whole process (wall mode, uncompressed, writer thread included) a pass at 1 kHz and 10 kHz over one
          thread, as a ratio to a bare loop of the same timer call and one read. Limit 1.5.
flat      flat out: samples a second, CPU and bytes a sample, share of failed samples.
threads   CPU a pass over 1,000 sleeping threads, while others are born and end and are found. Limit 1 ms.
memory    resident memory with 5,000 new code objects a second. Growth from minute 2 on (in shorter runs: from the last
          third on): limit 256 KiB.

Rounds of ours and of the floor are interleaved; printed are medians, and in brackets the lowest and the highest. CPU is
that of the waited process; the cost of starting is taken off by measuring a short run too. The target is pinned to one
core and the sampler to another. Exit status 1 when a limit is not kept; what cannot be measured is named as missing.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(ROOT, "tests", "live"), os.path.join(ROOT, "tests")]

import harness  # noqa: E402
import mojo  # noqa: E402
from interpreters import catalogue  # noqa: E402
from interpreters.model import Missing  # noqa: E402

CORES = sorted(os.sched_getaffinity(0))


def pinned(which):
    return lambda: os.sched_setaffinity(0, {CORES[which % len(CORES)]})


def spread(values, form="%.2f"):
    text = form % statistics.median(values)
    return "%s [%s..%s]" % (text, form % min(values), form % max(values))


class Bench:
    def __init__(self, options):
        self.options = options
        self.failed = []
        self.missing = []
        self.results = {"machine": self.machine(), "figures": []}

    def machine(self):
        model = "unknown"
        with open("/proc/cpuinfo") as handle:
            for line in handle:
                if line.startswith("model name"):
                    model = line.partition(":")[2].strip()
                    break
        size = os.path.getsize(self.options.austin)
        version = subprocess.run([self.options.austin, "-V"], stdout=subprocess.PIPE, text=True).stdout.strip()
        return dict(
            cpu=model,
            cores=len(CORES),
            kernel=platform.release(),
            load=os.getloadavg(),
            program=version,
            program_bytes=size,
            when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )

    def say(self, figure, text, values=None, limit=None, value=None, **more):
        verdict = ""
        if limit is not None:
            kept = value <= limit
            verdict = "  ok" if kept else "  OVER THE LIMIT of %g" % limit
            if not kept:
                self.failed.append(figure)
        print("%-34s %s%s" % (figure, text, verdict), flush=True)
        self.results["figures"].append(dict(figure=figure, text=text, rounds=values, limit=limit, value=value, **more))

    def lack(self, figure, why):
        print("%-34s missing: %s" % (figure, why), flush=True)
        self.missing.append(figure)
        self.results["figures"].append(dict(figure=figure, missing=str(why)))

    # -- pieces

    def box(self, interp):
        return harness.Box(
            dict(
                austin=self.options.austin,
                query=None,
                tier="quick",
                mojo2austin=None,
                root=ROOT,
                folder="austin-bench-%d" % os.getpid(),
            ),
            interp,
        )

    def run(self, box, pid, seconds, *arguments):
        """One attached run: CPU us, passes, samples, bytes, errors, the path of the stream."""
        path = box.path()
        command = [self.options.austin, "-o", path, "-x", "%dms" % int(seconds * 1000), *arguments, "-p", str(pid)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=pinned(1))
        errors = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 254:
            raise RuntimeError("exit status %s: %s" % (child.returncode, errors.strip()[-300:]))
        cpu = 1e6 * (usage.ru_utime + usage.ru_stime)
        metadata = tail_metadata(path)
        return dict(
            cpu=cpu,
            passes=int(metadata["saturation"].split("/")[1]),
            late=int(metadata["saturation"].split("/")[0]),
            errors=int(metadata["errors"].split("/")[0]),
            samples=int(metadata["errors"].split("/")[1]),
            duration=int(metadata["duration"]),
            bytes=os.path.getsize(path),
            path=path,
            rss=usage.ru_maxrss,
        )

    def per_pass(self, box, pid, seconds, *arguments):
        """CPU us a pass, start-up taken off."""
        short = self.run(box, pid, 0.05, *arguments)
        long = self.run(box, pid, seconds, *arguments)
        os.unlink(short["path"])
        os.unlink(long["path"])
        return (long["cpu"] - short["cpu"]) / max(1, long["passes"] - short["passes"]), long, short

    def bare(self, pid, interval, passes):
        """CPU us a pass of the floor."""
        with open("/proc/%d/maps" % pid) as handle:
            address = next(line.split("-")[0] for line in handle if "[heap]" in line or " rw-p " in line)
        out = subprocess.run(
            [self.options.bare, str(pid), "0x" + address, "1024", str(interval), str(passes)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            preexec_fn=pinned(1),
        ).stdout
        done, failed, cpu, _ = map(int, out.split())
        if failed:
            raise RuntimeError("%d of %d reads of the floor failed" % (failed, done))
        return cpu / done

    # -- figures

    def cost(self, interp):
        for name, target, settings in (
            ("loop", "steady.py", dict(seconds=0)),
            ("calls", "callgraph.py", dict(seconds=3600, leaf=2000)),
        ):
            box = self.box(interp)
            try:
                process = self.target(box, target, settings)
                for hertz in (1000, 10_000):
                    interval = 1_000_000 // hertz
                    ours, floor = [], []
                    for _ in range(self.options.rounds):
                        cpu, last, short = self.per_pass(
                            box, process.pid, self.options.seconds, "-i", "%dus" % interval
                        )
                        ours.append(cpu)
                        if self.options.bare:
                            floor.append(self.bare(process.pid, interval, last["passes"]))
                    figure = "%s: %d Hz, %s" % (interp.text, hertz, name)
                    rate = last["passes"] / (last["duration"] / 1e6)
                    text = "%s us a pass, reached %.0f/s, %.1f %% of a core, start %.1f ms" % (
                        spread(ours, "%.1f"),
                        rate,
                        statistics.median(ours) * rate / 1e4,
                        short["cpu"] / 1000,
                    )
                    if floor:
                        ratio = statistics.median(ours) / statistics.median(floor)
                        self.say(
                            figure,
                            "ratio %.2f: %s; floor %s us" % (ratio, text, spread(floor, "%.1f")),
                            dict(ours=ours, floor=floor),
                            1.5,
                            ratio,
                        )
                    else:
                        self.say(figure, text, dict(ours=ours))
                        self.lack(figure + ", ratio", "the program bare is not built")
            finally:
                box.close()

    def target(self, box, script, settings):
        process = box.spawn(box.command(script, **settings), preexec_fn=pinned(0))
        process.facts = process.wait_for("ready", 60)
        time.sleep(0.5)
        return process

    def flat(self, interp):
        for name, target, settings in (
            ("loop", "steady.py", dict(seconds=0)),
            ("2 us calls", "callgraph.py", dict(seconds=3600, leaf=2000)),
            ("empty calls", "callgraph.py", dict(seconds=3600, leaf=0)),
        ):
            box = self.box(interp)
            try:
                process = self.target(box, target, settings)
                rates, cpu, size, failed = [], [], [], []
                for _ in range(self.options.rounds):
                    one = self.run(box, process.pid, min(2.0, self.options.seconds), "-i", "0")
                    count = max(1, one["samples"])
                    rates.append(count / (one["duration"] / 1e6))
                    cpu.append(one["cpu"] / count)
                    size.append(one["bytes"] / count)
                    failed.append(100 * one["errors"] / count)
                    os.unlink(one["path"])
                self.say(
                    "%s: flat out, %s" % (interp.text, name),
                    "%s samples/s, %s us CPU and %s bytes a sample, %s %% failed"
                    % (spread(rates, "%.0f"), spread(cpu), spread(size, "%.1f"), spread(failed)),
                    dict(rate=rates, cpu=cpu, bytes=size, failed=failed),
                )
            finally:
                box.close()

    def threads(self, interp):
        box = self.box(interp)
        try:
            process = self.target(box, "sleepers.py", dict(threads=1000, seconds=3600, births=4, life=0.5))
            ours, found = [], []
            for _ in range(max(1, self.options.rounds // 2)):
                short = self.run(box, process.pid, 0.2, "-i", "10ms")
                long = self.run(box, process.pid, self.options.seconds, "-i", "10ms")
                ours.append((long["cpu"] - short["cpu"]) / max(1, long["passes"] - short["passes"]))
                names = set()
                mojo.read(long["path"], on_sample=lambda sample: names.add(sample.thread))
                born = sum(name.startswith("born-") for name in names)
                asleep = sum(name.startswith("asleep-") for name in names)
                found.append((born, asleep))
                wanted = int(4 * long["duration"] / 1e6) - 1
                if born < wanted or asleep != 1000:
                    self.failed.append("threads that are born are found")
                    print(
                        "%d of about %d threads that were born, %d of 1,000 sleepers were found"
                        % (born, wanted, asleep)
                    )
                os.unlink(short["path"])
                os.unlink(long["path"])
            self.say(
                "%s: 1,000 sleeping threads" % interp.text,
                "%s us CPU a pass; born and asleep found: %s" % (spread(ours, "%.0f"), found),
                dict(ours=ours),
                1000,
                statistics.median(ours),
            )
        finally:
            box.close()

    def memory(self, interp):
        seconds = max(6.0, self.options.minutes * 60)
        box = self.box(interp)
        try:
            process = self.target(box, "churn.py", dict(rate=5000, seconds=seconds + 60))
            path = box.path()
            child = subprocess.Popen(
                [self.options.austin, "-o", path, "-p", str(process.pid)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=pinned(1),
            )
            values = []
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                time.sleep(1)
                with open("/proc/%d/status" % child.pid) as handle:
                    match = re.search(r"VmRSS:\s+(\d+) kB", handle.read())
                if not match:
                    raise RuntimeError("the profiler ended after %d s" % len(values))
                values.append(int(match.group(1)))
            child.send_signal(2)
            child.wait(30)
            settled = 120 if seconds > 180 else int(seconds * 2 / 3)
            growth = max(values[settled:]) - values[settled - 1]
            distinct = set()
            if os.path.getsize(path) < 300_000_000:
                mojo.read(path, on_sample=lambda sample: distinct.update(f[1] for f in sample.frames[-2:]))
            self.say(
                "%s: memory, %d s" % (interp.text, seconds),
                "%d KiB after 5 s, %d KiB at the end, growth from second %d on %d KiB; %d functions in %.1f MB"
                % (
                    values[min(4, len(values) - 1)],
                    values[-1],
                    settled,
                    growth,
                    len(distinct),
                    os.path.getsize(path) / 1e6,
                ),
                dict(rss=values),
                256,
                growth,
            )
        finally:
            box.close()


def tail_metadata(path):
    """The metadata of a stream without decoding all of it: the end block is in the last bytes."""
    with open(path, "rb") as handle:
        handle.seek(max(0, os.path.getsize(path) - 2048))
        tail = handle.read()
    metadata = {}
    for key in (b"duration", b"sampling", b"saturation", b"errors"):
        at = tail.rfind(b"\x01" + key + b"\0")
        if at < 0:
            raise RuntimeError("the stream has no metadata %s" % key.decode())
        metadata[key.decode()] = tail[at + len(key) + 2 :].partition(b"\0")[0].decode()
    return metadata


def main():
    built = os.path.join(ROOT, "build", "linux-x86_64-release")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--austin", default=os.environ.get("AUSTIN") or os.path.join(built, "bin", "austin"))
    parser.add_argument("--bare", help="the floor's program; default: tools/bare beside the profiler's bin/")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one round")
    parser.add_argument("--minutes", type=float, default=1.0, help="length of the memory figure (10 in the full run)")
    parser.add_argument("--interpreters", default="maven-3.13.5", help="names, parted by commas, or `each`")
    parser.add_argument("--only", default="cost,flat,threads,memory")
    parser.add_argument("--json", default=os.path.join(ROOT, "build", "bench.json"))
    options = parser.parse_args()
    options.austin = os.path.abspath(options.austin)
    if not os.access(options.austin, os.X_OK):
        print("bench: there is no program %s: build it first (scons)" % options.austin, file=sys.stderr)
        return 1
    scratch = tempfile.mkdtemp(prefix="austin-bench-")
    if not options.bare:
        options.bare = os.path.join(os.path.dirname(os.path.dirname(options.austin)), "tools", "bare")
    if not os.access(options.bare, os.X_OK):
        options.bare = os.path.join(scratch, "bare")
        done = (
            subprocess.run(["cc", "-O2", "-std=gnu11", "-o", options.bare, os.path.join(HERE, "bare.c")])
            if shutil.which("cc")
            else None
        )
        if done is None or done.returncode:
            options.bare = None
    harness.become_subreaper()
    bench = Bench(options)
    print(
        "%(cpu)s, %(cores)d cores, Linux %(kernel)s, load %(load)s, %(program)s, %(program_bytes)d bytes"
        % bench.results["machine"],
        flush=True,
    )
    if len(CORES) < 2:
        print("only one core: target and sampler share it, and the figures mean little")
    names = list(catalogue.EACH_VERSION) if options.interpreters == "each" else options.interpreters.split(",")
    try:
        for name in names:
            try:
                try:
                    interp = catalogue.find(name)
                except Missing:
                    interp = catalogue.fetch(name)
            except (Missing, KeyError) as reason:
                bench.lack(name, reason)
                continue
            for figure in options.only.split(","):
                try:
                    getattr(bench, figure)(interp)
                except (RuntimeError, harness.Failure, subprocess.SubprocessError, OSError) as reason:
                    bench.failed.append("%s %s" % (interp.text, figure))
                    bench.lack("%s %s" % (interp.text, figure), reason)
    finally:
        harness.end_children()
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(os.path.join(tempfile.gettempdir(), "austin-bench-%d" % os.getpid()), ignore_errors=True)
    os.makedirs(os.path.dirname(os.path.abspath(options.json)), exist_ok=True)
    with open(options.json, "w") as handle:
        json.dump(dict(bench.results, failed=bench.failed, missing=bench.missing), handle, indent=1)
    print("written to " + os.path.relpath(options.json))
    if bench.failed:
        print("limits not kept: " + ", ".join(dict.fromkeys(bench.failed)))
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
