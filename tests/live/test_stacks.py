# SPDX-License-Identifier: Apache-2.0
"""Stacks of threads that stand still, frame by frame, against what the interpreter itself says of them."""

import collections

import harness
from harness import need, shown, test


def wanted_stack(frames):
    return [tuple([harness.escaped(frame[0]), harness.escaped(frame[1])] + frame[2:]) for frame in frames]


def same_frame(seen, wanted):
    return (
        seen[2:] == tuple(wanted[2:])
        and harness.same_name(seen[0], wanted[0])
        and harness.same_name(seen[1], wanted[1])
    )


def compare(stream, stacks, most_missing=0):
    """Every sample of every known thread is whole and equal to the truth; every thread is there."""
    right = {}
    for sample in stream.samples:
        wanted = stacks.get(sample.thread)
        if wanted is None:
            continue
        key = (sample.thread, sample.frames)
        if key not in right:
            need(
                harness.is_whole(sample),
                "thread %s stands still, but a sample of it is %s",
                sample.thread,
                shown(sample.frames),
            )
            need(
                len(sample.frames) == len(wanted),
                "thread %s: %d frames instead of %d: %s",
                sample.thread,
                len(sample.frames),
                len(wanted),
                shown([frame[1][:30] for frame in sample.frames]),
            )
            for level, (got, want) in enumerate(zip(sample.frames, wanted)):
                need(
                    same_frame(got, want),
                    "thread %s, frame %d: %s instead of %s",
                    sample.thread,
                    level,
                    shown(got, 400),
                    shown(want, 400),
                )
            right[key] = 0
        right[key] += 1
    missing = [name for name in stacks if name not in {key[0] for key in right}]
    need(len(missing) <= most_missing, "no sample of %d of %d threads: %s", len(missing), len(stacks), missing[:5])
    return right


class Places(harness.Graph):
    """A call graph whose functions are told apart by their file, too; it knows which of its edges were seen."""

    def __init__(self, facts):
        edges = [[tuple(place) for place in edge] for edge in facts["edges"]]
        super().__init__(dict(facts, edges=edges, open=[tuple(place) for place in facts["open"]]))
        self.seen = set()

    def _name(self, frame):
        return frame[:2] if frame[:2] in self.known else None

    def _judge(self, frames):
        self.seen.update((outer[:2], inner[:2]) for outer, inner in zip(frames, frames[1:]))
        return super()._judge(frames)


def parked(box, seconds=1, interval="2ms", **options):
    target = box.start("parked.py", **options)
    run = box.attach(target.pid, "-i", interval, seconds=seconds, timeout=seconds + 30)
    need(target.alive(), "the target ended when the profiler was done with it")
    stream = box.stream(run)
    right = compare(stream, target.facts["stacks"])
    target.word()
    need(target.wait(60) == 0, "the target failed: %s", target.errors())
    return stream, right


@test("every")
def test_one_thread(box):
    stream, _ = parked(box, threads=1, depth=10)
    need({sample.thread for sample in stream.samples} == {"park-0", "MainThread"}, "other threads than the two")


@test("every")
def test_eight_threads(box):
    parked(box, threads=8, depth=12)


@test("each", timeout=120, tier="quick")
def test_thousand_threads(box):
    stream, _ = parked(box, threads=1000, depth=10, interval="100ms", seconds=2)
    need(len({sample.thread for sample in stream.samples}) == 1001, "not 1,001 threads")


@test("every", tier="ci")
def test_depth_400(box):
    parked(box, threads=2, depth=400)


@test("each", timeout=90)
def test_depth_10000(box):
    parked(box, threads=1, depth=10_000, interval="50ms")


@test("every")
def test_generator_chain(box):
    stream, _ = parked(box, threads=2, depth=50, same=1, chain=1)
    depth = max(sum(frame[1] == "chained" for frame in sample.frames) for sample in stream.samples)
    need(depth == 50, "a `yield from` chain of 50 has depth %d", depth)


@test("every")
def test_coroutine_chain(box):
    parked(box, threads=2, depth=50, same=1, chain=2)


@test("every")
def test_names_of_every_kind(box):
    target = box.start("names.py")
    stream = box.stream(box.attach(target.pid, "-i", "5ms"))
    compare(stream, target.facts["stacks"])


@test("each")
def test_empty_name(box):
    """austin-python knows no key 0, which stands for the empty string: it is left out here if it cannot read that."""
    target = box.start("names.py", empty=1)
    box.config["mojo2austin"] = None
    compare(box.stream(box.attach(target.pid, "-i", "5ms")), target.facts["stacks"])


@test("every", tier="ci", timeout=90)
def test_line_table_over_64k(box):
    target = box.start("linetable.py", seconds=3.0 if not box.long else 20.0)
    lines = target.facts["lines"]
    need(
        target.facts["table"] > 65536 or box.interp.minor < 11,
        "the line table has only %d bytes",
        target.facts["table"],
    )
    run = box.attach(target.pid, "-i", box.interval("200us"), seconds=2 if not box.long else 15)
    stream = box.stream(run)
    # the parked thread may be sampled between two looks at its lock only as parked
    compare(stream, target.facts["stacks"])
    seen = set()
    for sample in stream.samples:
        for frame in sample.frames:
            if frame[1] == "long":
                need(frame[0] == "generated-lines.py" and 1 <= frame[2] <= lines + 6, "no such line: %s", frame)
                seen.add(frame[2])
    # a busy machine lets the program stand for many samples at one line, but all parts of it must turn up
    tenths = {10 * (line - 1) // (lines + 6) for line in seen}
    need(len(seen) > 100 and len(tenths) == 10, "%d lines, in the tenths %s", len(seen), sorted(tenths))
    box.note("%d of %d lines seen", len(seen), lines)


@test("every")
def test_classes(box):
    """Objects are made and used all the time: no frame but the functions', each below one that calls it."""
    run = box.profile("classes.py", "-i", box.interval("100us"), seconds=15 if box.windows else 1.5)
    graph = Places(run.ready)
    stream = box.stream(run)
    for sample in stream.samples:
        graph(sample)
        for frame in sample.frames:
            # _Py_InitCleanup, which is below the `__init__` of an inlined class call (Python/specialize.c, from 3.12)
            need(frame[0] != "__init__", "a frame of the interpreter's own: %s", shown(sample.frames))
    need(graph.impossible == 0, "%s", graph.text())
    # leaves without work; on 3.10 each call has its frame elsewhere, and all the more are lost on a machine that is busy
    need(graph.torn + graph.truncated <= (0.15 if box.interp.minor == 10 else 0.05) * graph.samples, "%s", graph.text())
    missing = graph.allowed - graph.seen
    need(not missing, "%d samples, and none of %s", graph.samples, shown(sorted(missing)))
    box.note("%s", graph.text())


@test("each", alone=True)
def test_destructors(box):
    """What runs above a function that has returned is seen whole, though nothing of Python is below it."""
    run = box.profile("destructors.py", "-i", box.interval("500us"), seconds=1.5 if box.windows else 0.4, threads=3)
    seen = bad = 0
    for sample in box.stream(run).samples:
        names = [frame[1].split(".")[-1] for frame in sample.frames]
        if "work" in names:
            seen += 1
            need(names[0] == "__del__", "a root of its own: %s", shown(sample.frames))
        elif not harness.is_whole(sample):
            bad += 1
    need(seen > 500, "%d samples of destructors", seen)
    need(bad <= 0.02 * seen, "%d samples are not whole, %d of destructors are", bad, seen)
    box.note("%d samples of destructors, %d not whole", seen, bad)


@test("each", alone=True)
def test_traced(box):
    """A trace or profile function at work, also while its frame has not begun or has ended, which 3.10 says in a word."""
    for kind in ("settrace", "setprofile"):
        run = box.profile("traced.py", "-i", box.interval("500us"), kind=kind, seconds=4 if box.windows else 0.6)
        all_time = watch = seen = bad = 0
        for sample in box.stream(run).samples:
            names = [frame[1] for frame in sample.frames]
            if "drive" not in names and harness.is_whole(sample):
                continue
            seen += 1
            bad += not harness.is_whole(sample)
            all_time += sample.time
            watch += sample.time if "watch" in names else 0
        text = "%s: %.1f of %.1f %%, %d of %d samples not whole" % (
            kind,
            100 * watch / max(1, all_time),
            100 * run.done["spent"]["watch"] / run.done["elapsed"],
            bad,
            seen,
        )
        box.note("%s", text)
        need(seen > 300 and bad <= 0.03 * seen, "%s", text)
        need(abs(watch / all_time - run.done["spent"]["watch"] / run.done["elapsed"]) < 0.08, "%s", text)


@test("every")
def test_launch(box):
    interval, seconds = ("20ms", 10) if box.windows else ("1ms", 0.8)  # a start takes seconds at 1 ms there
    run = box.launch("steady.py", "-i", interval, seconds=seconds, busy=1)
    stream = box.stream(run)
    metadata = dict(stream.metadata)
    need(
        metadata["python"] == box.interp.text or metadata["python"].endswith(".?"),
        "python is %s, not %s",
        metadata["python"],
        box.interp.text,
    )
    need(metadata["mode"] == "wall" and metadata["interval"] == interval[:-2] + "000", "metadata: %s", metadata)
    stacks = [[frame[1] for frame in sample.frames] for sample in stream.samples]
    hot = sum(stack[-2:] == ["outer", "inner"] for stack in stacks)
    need(hot > 100 and hot > 0.5 * len(stacks), "only %d of %d samples are in the hot function", hot, len(stacks))
    need(
        all(sample.pid == run.ready["pid"] and sample.thread == "MainThread" for sample in stream.samples),
        "other processes or threads: %s",
        {(sample.pid, sample.thread) for sample in stream.samples},
    )
    need({sample.iid for sample in stream.samples} == {0}, "other interpreters than the main one")


@test("every")
def test_sub_interpreters(box):
    interval, seconds = ("20ms", 8) if box.windows else ("5ms", 1.5)
    run = box.launch("subinterpreters.py", "-i", interval, count=2, seconds=seconds)
    stream = box.stream(run)
    for made in run.done["made"]:
        # a state without frames is nobody's stack: the interpreter is being made, or has done its work
        mine = [sample for sample in stream.samples if sample.iid == made["id"] and sample.frames]
        need(mine, "no sample of interpreter %d; there are %s", made["id"], {s.iid for s in stream.samples})
        inner = [sample for sample in mine if [frame[1] for frame in sample.frames][-2:] == made["frames"]]
        need(
            len(inner) > 0.7 * len(mine),
            "interpreter %d: %d of %d samples in its function: %s",
            made["id"],
            len(inner),
            len(mine),
            shown(mine[-1].frames),
        )
        foreign = [sample for sample in inner if any(frame[1] == "runs_sub" for frame in sample.frames)]
        need(not foreign, "frames of the main interpreter in interpreter %d", made["id"])
        # 3.12 and before keep the ids of the thread that created the interpreter
        if box.interp.minor >= 13:
            names = {sample.thread for sample in inner}
            need(names == {made["thread"]}, "interpreter %d runs in %s, not in %s", made["id"], names, made["thread"])
        caller = [
            sample
            for sample in stream.samples
            if sample.iid == 0
            and sample.thread == made["thread"]
            and any(frame[1] == "runs_sub" for frame in sample.frames)
        ]
        need(caller, "the main interpreter's own sample of thread %s is missing", made["thread"])


@test("every")
def test_sub_interpreters_at_work(box):
    """Up to 3.12 a thread state of theirs names the thread that made it, which sleeps while another one runs it."""
    # to make three takes many seconds under Wine at 1 ms
    run = box.launch("subinterpreters.py", "-i", "10ms" if box.windows else "1ms", count=3, seconds=2.0, busy=1)
    shown_us = collections.Counter()
    for sample in box.stream(run).samples:
        shown_us[sample.iid] += sample.time if any(frame[1].startswith("inner_") for frame in sample.frames) else 0
    for made in run.done["made"]:
        inner = shown_us[made["id"]] / 1e6
        text = "interpreter %d: %.2f of %.2f s in its function" % (made["id"], inner, made["inner"])
        box.note("%s", text)
        need(abs(inner - made["inner"]) < 0.05 + 0.05 * made["inner"], "%s", text)
