# SPDX-License-Identifier: Apache-2.0
"""Threads: their names, their births and ends, their time, who is on a CPU."""

import os
import re

import harness
from harness import need, shown, test

GETRUSAGE = "its program asks getrusage; windows.cpu_mode has what is told there"
FORKS = "its program forks and asks for a CPU, as POSIX has it; windows.cpu_mode has what is told there"


@test("every")
def test_names(box):
    """What a thread runs says what it has to be called: see the target."""
    run = box.launch("threadnames.py", "-i", "20ms" if box.windows else "5ms")
    need(run.ready["threading"] is False, "the interpreter imports threading by itself")
    stream = box.stream(run)
    expected = run.done["expected"]
    seen = {}
    for sample in stream.samples:
        for frame in sample.frames:
            if frame[1] in expected:
                by_name = seen.setdefault(frame[1], {})
                by_name[sample.thread] = by_name.get(sample.thread, 0) + sample.time
    for function, name in expected.items():
        need(function in seen, "no sample of %s; there are %s", function, sorted(seen))
        wanted = harness.escaped(name)
        wrong = {other: time for other, time in seen[function].items() if other != wanted}
        # `threading` is asked again for a thread that it did not know at first, but not at once
        young = {other: time for other, time in wrong.items() if re.fullmatch("[0-9a-f]+", other) and time < 200_000}
        need(
            wanted in seen[function] and wrong == young and len(wrong) < 2,
            "us by name of the thread in %s: %s, not %s",
            function,
            seen[function],
            wanted,
        )


@test("each", tier="ci", alone=True, timeout=120)
def test_thousand_sleepers_with_births(box):
    """Threads are found from their first to their last moment; their names follow within a second."""
    # 0.1 s is a pass over a hundred of them under Wine
    threads, seconds, life = (100, 10.0, 5.0) if box.windows else (1000, 3.0 if not box.long else 20.0, 1.5)
    run = box.profile("sleepers.py", "-i", "20ms", threads=threads, seconds=seconds, births=4, life=life, timeout=80)
    names, lived = {}, {}

    def visit(sample):
        names[sample.thread] = names.get(sample.thread, 0) + 1
        if any(frame[1] == "alive" for frame in sample.frames):
            lived[sample.thread] = lived.get(sample.thread, 0) + sample.time

    box.stream(run, on_sample=visit)
    asleep = [name for name in names if name.startswith("asleep-")]
    need(len(asleep) == threads, "%d of %d sleeping threads were seen by name", len(asleep), threads)
    born = [name for name in lived if name.startswith("born-")]
    need(
        len(born) == run.done["born"],
        "%d of %d threads that were born and ended were seen by name: %s",
        len(born),
        run.done["born"],
        lived,
    )
    total, wanted = sum(lived.values()), run.done["born"] * run.done["life"] * 1e6
    need(
        abs(total - wanted) < 0.15 * wanted,
        "%d threads lived %d us together, their samples are %d us",
        run.done["born"],
        wanted,
        total,
    )


def sums(box, *arguments, **options):
    run = box.profile("steady.py", *arguments, seconds=2.0 if box.windows else 1.5, **options)
    stream = box.stream(run)
    duration = harness.duration_of(stream)
    total = sum(time for key, time in harness.per_thread_time(stream).items() if key[2] == "MainThread")
    box.note(
        "%s: duration %d us, the main thread's samples %d us (%.3f %%), saturation %s",
        arguments,
        duration,
        total,
        100 * total / duration,
        dict(stream.metadata).get("saturation"),
    )
    return stream, duration, total


@test("each", alone=True)
def test_time_adds_up(box):
    """The sum over a thread that lives through the run is the duration, also when every pass is late."""
    for arguments in (("-i", "1ms"), ("-i", "100us"), ("-i", "1us"), ("-i", "0")):
        stream, duration, total = sums(box, *arguments)
        need(
            abs(total - duration) <= 0.01 * duration,
            "%s: duration is %d us, the main thread's samples add up to %d us",
            arguments,
            duration,
            total,
        )
        need(duration > 1.4e6, "the program ran 1.5 s, the duration is %d us", duration)
        late, passes = dict(stream.metadata)["saturation"].split("/")
        if arguments[1] == "0":
            need(int(late) == 0, "flat out, but %s of %s passes are late", late, passes)


@test("each", tier="ci", alone=True, timeout=90, not_on_windows=GETRUSAGE)
def test_cpu_mode_is_getrusage(box):
    """Full length: 100,000 passes within 2 %. A tenth of that here has more noise of its own: 3 %."""
    used = seen = passes = 0
    while passes < (100_000 if box.long else 10_000):
        run = box.launch("halfbusy.py", "-c", "-i", "100us", seconds=18.0 if box.long else 2.5)
        stream = box.stream(run)
        need(dict(stream.metadata)["mode"] == "cpu", "mode is %s", dict(stream.metadata)["mode"])
        used += 1e6 * run.done["cpu"]
        seen += sum(sample.time for sample in stream.samples if sample.thread == "half")
        passes += int(dict(stream.metadata)["saturation"].split("/")[1])
    box.note(
        "%d passes: the thread's own getrusage %.0f us, its samples %d us (%.2f %%)",
        passes,
        used,
        seen,
        100 * seen / used,
    )
    need(
        abs(seen - used) <= (0.02 if box.long else 0.03) * used, "getrusage says %.0f us, the samples %d us", used, seen
    )


def of_crowded(box, **options):
    """{thread: (us by its own clock, us by its samples)} of a run of crowded.py, with the profiler on another CPU."""
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        raise harness.Skip("there is one CPU only: who shares it with its target does not see it run")
    try:
        os.sched_setaffinity(0, cpus - {max(cpus)})
        run = box.launch("crowded.py", "-c", "-i", "100us", cpu=max(cpus), **options)
    finally:
        os.sched_setaffinity(0, cpus)
    seen = {}
    for sample in box.stream(run).samples:
        seen[sample.thread] = seen.get(sample.thread, 0) + sample.time
    return {name: (1e6 * used, seen.get(name, 0)) for name, used in run.done.items() if name in ("heavy", "light")}


@test("each", tier="ci", alone=True, timeout=90, not_on_windows=FORKS)
def test_cpu_mode_on_a_crowded_cpu(box):
    """Ready for a CPU all the time, on one for a half or a third of it: its CPU time within 5 %."""
    for others in (1, 2):
        used, seen = of_crowded(box, seconds=15.0 if box.long else 4.0, others=others)["heavy"]
        box.note("beside %d: CPU clock %.0f us, samples %d us (%.2f %%)", others, used, seen, 100 * seen / used)
        need(abs(seen - used) <= 0.05 * used, "beside %d: its CPU clock says %.0f us, %d us", others, used, seen)


@test("each", tier="ci", alone=True, timeout=90, not_on_windows=FORKS)
def test_cpu_mode_shares_out_a_crowded_cpu(box):
    """Two threads of a process, neither favoured: the shares of its CPU time within 3 points."""
    both = of_crowded(box, seconds=15.0 if box.long else 5.0, others=1, light=1)
    used, seen = (sum(of[i] for of in both.values()) for i in (0, 1))
    true, ours = (100 * both["light"][i] / total for i, total in ((0, used), (1, seen)))
    box.note("light has %.2f %% of %.0f us, samples say %.2f %% of %d us", true, used, ours, seen)
    need(abs(ours - true) <= 3, "the light thread has %.1f %%, its samples %.1f %%", true, ours)
    need(abs(seen - used) <= 0.05 * used, "together %.0f us by their clocks, %d us by samples", used, seen)


@test("each", tier="ci")
def test_cpu_mode_leaves_sleepers_out(box):
    run = box.launch("steady.py", "-c", "-i", "1ms", seconds=1.0, busy=0)
    stream = box.stream(run)
    total = sum(sample.time for sample in stream.samples)
    duration = harness.duration_of(stream)
    need(total < 0.4 * duration, "the program sleeps, but %d of %d us are on the CPU", total, duration)


@test("each")
def test_interpreters_in_turn(box):
    """One after another, at the same addresses: each has its id, its function, its file, and its time."""
    # to make one takes a second under Wine at 1 ms
    interval, count, each = ("10ms", 10, 0.3) if box.windows else ("200us", 40, 0.03)
    run = box.profile("inturn.py", "-i", interval, count=count, seconds=each, timeout=60)
    made = run.done["made"]
    times = [0] * len(made)
    for sample in box.stream(run).samples:
        for file, scope, *_ in sample.frames:
            match = re.fullmatch(r"f(\d{3})", scope)
            if not match:
                continue
            k = int(match.group(1))
            need(file == "/turn/%03d.py" % k, "%s is in %s", scope, file)
            need(sample.iid == made[k], "%s runs in interpreter %d, the sample says %d", scope, made[k], sample.iid)
            times[k] += sample.time
    seen = [time for time in times if time]
    box.note("%d of %d seen, %.1f to %.1f ms", len(seen), len(made), min(seen) / 1e3, max(seen) / 1e3)
    right = [time for time in times if 0.5 * each < time / 1e6 < 2 * each]
    need(len(right) >= 0.9 * len(made), "of %g ms each: %s", 1000 * each, [round(time / 1000) for time in times])


@test("one", tier="ci")
def test_cpu_mode_writes_only_the_state_that_runs(box):
    if box.interp.minor < 12:
        raise harness.Skip("3.12 and later can tell")
    run = box.launch("subinterpreters.py", "-c", "-i", "1ms", count=2, seconds=1.0)
    stream = box.stream(run)
    wrong = [
        sample for sample in stream.samples if sample.iid == 0 and sample.frames and sample.frames[-1][1] == "runs_sub"
    ]
    need(
        len(wrong) <= 0.02 * len(stream.samples) + 2,
        "the caller's state was written too: %s",
        shown(wrong[0].frames) if wrong else "",
    )
