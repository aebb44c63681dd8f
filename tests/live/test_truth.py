# SPDX-License-Identifier: Apache-2.0
"""
Samples of moving programs against what can be and what the program's own clock says.

Full lengths (nightly): 10^6 samples of call graphs, 200,000 of shares. The other tiers take a tenth: there the bound on
impossible edges is the one that a rate of 20 a million keeps in 98 of 100 runs, and shares may be 2 points off. Under Wine
a twentieth of that, one a millisecond (harness.Box.interval).
"""

import collections
import math
import re

import harness
from harness import need, test


COARSE = "Wine wakes and reads in a millisecond, which is longer than the phases of this program"


class Window:
    """Time by function, between the first and the last sample in which the measured part runs."""

    def __init__(self, names, inside="drive"):
        self.names, self.inside = names, inside
        self.time, self.count, self.all_time, self.all_count, self.torn = (
            dict.fromkeys(names, 0),
            dict.fromkeys(names, 0),
            0,
            0,
            0,
        )
        self.truth, self.elapsed = dict.fromkeys(names, 0), 0
        self.late = dict.fromkeys(names, 0)

    def begin(self, run):
        self.pending = None
        self.elapsed += run.done["elapsed"]
        for name in self.names:
            self.truth[name] += run.done["spent"][name]
            self.late[name] += run.done.get("late", {}).get(name, 0)

    def __call__(self, sample):
        if sample.thread != "MainThread":
            return
        scopes = {frame[1] for frame in sample.frames}
        if self.inside not in scopes and not any(name in scopes for name in self.names):
            if self.pending is not None:
                self.pending.append(sample.time)
            return
        if self.pending is None:
            self.pending = []  # what comes before belongs to the start of the program
        # samples between two of the measured part that are not in it are its loss
        self.all_time += sum(self.pending) + sample.time
        self.all_count += len(self.pending) + 1
        self.pending.clear()
        self.torn += not harness.is_whole(sample)
        for name in self.names:
            if name in scopes:
                self.time[name] += sample.time
                self.count[name] += 1

    def compare(self, points, box, what):
        rows, worst = [], 0
        for name in self.names:
            truth = 100 * self.truth[name] / self.elapsed
            seen = 100 * self.time[name] / max(1, self.all_time)
            rows.append(
                "%s %.2f (by count %.2f) of %.2f" % (name, seen, 100 * self.count[name] / max(1, self.all_count), truth)
            )
            # what stops the target at the end of a phase and us with it (a timer tick on all CPUs of a virtual
            # machine at once, at the same place of the phase each time) nobody can see: it may be either's
            low = truth - 100 * self.late[name] / self.elapsed
            high = truth + 100 * (sum(self.late.values()) - self.late[name]) / self.elapsed
            worst = max(worst, low - seen, seen - high)
        text = "%s: %s; %d samples, %d of them not whole" % (what, ", ".join(rows), self.all_count, self.torn)
        box.note("%s", text)
        need(worst <= points, "%s: %.2f points off, %s allowed", text, worst, points)


def of_time(box, target, window, wanted, seconds):
    """Runs of a target whose phases have a known share of the time."""
    interval = box.interval("0")
    if box.windows:
        wanted, seconds = 10_000, 20.0
        if box.interp.minor <= 11:  # more reads a pass: frames are elsewhere, entries are on the C stack
            interval, wanted = "5ms", 3_000
    return box.collect(target, wanted, window, "-i", interval, scale=box.scale(), seconds=seconds)


def call_graph(box, leaf, rate, torn):
    wanted = box.wanted({"quick": 20_000, "ci": 100_000, "nightly": 1_000_000}[box.config["tier"]])
    graph = None

    class Visit:
        def begin(self, run):
            nonlocal graph
            fresh = harness.Graph(run.ready)
            if graph is None:
                graph = fresh

        def __call__(self, sample):
            graph(sample)

    seconds = box.seconds(wanted, 100_000) + 0.2
    box.collect("callgraph.py", wanted, Visit(), "-i", box.interval("0"), leaf=leaf, seconds=seconds)
    box.note("leaf %d ns: %s", leaf, graph.text())
    torn *= 3 if box.windows and box.interp.minor == 10 else 1  # each call has its frame elsewhere, and a read takes long
    mean = rate * graph.samples / 1e6
    allowed = mean if graph.samples >= 1_000_000 else math.ceil(mean + 2 * math.sqrt(mean))
    need(graph.impossible <= allowed, "%s; %g allowed", graph.text(), allowed)
    need(graph.torn <= torn * graph.samples, "%s; %g %% torn allowed", graph.text(), 100 * torn)
    need(graph.truncated <= torn * graph.samples, "%s; too many without their root", graph.text())


@test("each", tier="ci", alone=True, timeout=120)
def test_no_impossible_edge(box):
    call_graph(box, 2000, 0, 0.01)


@test("each", tier="ci", alone=True, timeout=120)
def test_hardly_an_impossible_edge_with_empty_leaves(box):
    call_graph(box, 0, 20, 0.10)


@test("each", tier="ci", alone=True, timeout=120)
def test_lines_of_short_calls(box):
    """
    A call is shown below the line that makes it. Loops as short as these are in step with the looks now and then, and
    what a call has left behind lies below each later line of its caller then.
    """
    wanted = box.wanted({"quick": 50_000, "ci": 200_000, "nightly": 1_000_000}[box.config["tier"]])
    calls, seen, wrong = set(), collections.Counter(), collections.Counter()
    # on 3.10 the places of calls are learnt: docs/architecture.md, "What cannot be told"
    learning = box.wanted(150_000) if box.interp.minor == 10 else 0

    class Visit:
        def begin(self, run):
            calls.update(map(tuple, run.ready["calls"]))
            self.number = 0

        def __call__(self, sample):
            self.number += 1
            if self.number <= learning:
                return
            for caller, callee in zip(sample.frames, sample.frames[1:]):
                if caller[1].startswith("loop_") and callee[0] != "<austin>":
                    call = (caller[1], caller[2], callee[1])
                    seen["all"] += 1
                    wrong[call] += call not in calls

    seconds = box.seconds(wanted + learning, 100_000) + 0.2
    box.collect("short_calls.py", wanted + learning, Visit(), "-i", box.interval("0"), seconds=seconds)
    text = "%d of %d calls below a line that does not make them: %s"
    text %= sum(wrong.values()), seen["all"], [(call, n) for call, n in wrong.most_common(4) if n]
    box.note("%s", text)
    need(seen["all"] > wanted / 20, "%s", text)
    bound = 0.02 if learning else 0.0003
    need(sum(wrong.values()) <= seen["all"] * bound, "%s", text)


@test("each", tier="ci", alone=True, timeout=120)
def test_functions_called_by_c_code(box):
    """
    A method below sorted(), a property, a function below map(), a __call__, and wrappers that call such a function: each
    has its share, to 15 points. Up to 3.12 frames are led to by what lies on the C stack, or are elsewhere each time,
    which is soon gone: 20 points there, and most of all where there is much C code in between.
    """
    new = box.interp.minor > 12
    far = 25 if new else 40
    allowed = {"by_init": far, "by_getattr": far}
    total, inside = collections.Counter(), collections.Counter()
    seconds = 2.5 if box.windows else 0.6
    run = box.profile("entered.py", "-i", box.interval("0"), seconds=seconds, turns=24, timeout=100)
    inner = run.ready["inner"]
    for sample in box.stream(run).samples:
        scopes = [frame[1].rpartition(".")[2] for frame in sample.frames]
        for way in inner:
            if way in scopes:
                total[way] += sample.time
                inside[way] += sample.time if inner[way] in scopes else 0
    text = ", ".join(
        "%s %.1f of at least %.1f" % (way, 100 * inside[way] / max(1, total[way]), run.done["least"][way])
        for way in inner
    )
    box.note("%s", text)
    for way in inner:
        points = allowed.get(way, 15 if new else 20)
        need(100 * inside[way] / max(1, total[way]) > run.done["least"][way] - points, "%s: %s", way, text)


@test("each", tier="ci", alone=True, timeout=120)
def test_halves(box):
    """Throwing away what moves does not pass."""
    window = Window(["few", "many"])
    wanted = {"quick": 50_000, "ci": 100_000, "nightly": 1_000_000}[box.config["tier"]]
    runs = of_time(box, "halves.py", window, wanted, wanted / 100_000 + 1)
    calls = {name: sum(run.done["calls"][name] for run in runs) for name in ("few", "many")}
    need(7 < calls["many"] / calls["few"] < 14, "the target's halves make %s calls", calls)
    window.compare(2.0 if box.windows else 1.0, box, "halves, inclusive")


@test(
    "each",
    tier="ci",
    alone=True,
    timeout=60,
    not_on_windows="reading new code takes milliseconds under Wine, and by then it has returned",
)
def test_functions_called_by_new_code(box):
    """What code calls that was compiled just before has its share, where something tells that it is new (3.13 on)."""
    window = Window(["once", "ever"])
    box.collect("compiled.py", 20_000, window, seconds=2.2)
    if box.interp.minor < 13 or box.interp.free_threaded:
        box.note("%d of %d samples torn", window.torn, window.all_count)
        need(window.torn < 0.5 * window.all_count, "%d of %d samples torn", window.torn, window.all_count)
    else:
        window.compare(4.0, box, "new code")
        need(window.torn < 0.03 * window.all_count, "%d of %d samples torn", window.torn, window.all_count)


@test("each", tier="ci", alone=True, timeout=90)
def test_shares(box):
    window = Window(["sixty", "twentyfive", "ten", "five"])
    of_time(box, "shares.py", window, 200_000 if box.long else 20_000, 3.0 if box.long else 1.0)
    window.compare(1.0 if box.long else 2.0, box, "shares")


def lockstep(box, interval, factor, nap):
    runs = 5 if box.long else 1
    for number in range(runs):
        window = Window(["tick", "tock"])
        box.collect(
            "lockstep.py",
            10_000,
            window,
            "-i",
            "%dus" % interval,
            phase_us=int(interval * factor),
            nap=nap,
            seconds=10_000 * interval * 1.1e-6 + (1.0 if interval < 1000 else 0.0),
        )
        window.compare(3.0, box, "phases of %g intervals of %d us, run %d" % (factor, interval, number + 1))


@test("each", tier="ci", timeout=60, not_on_windows=COARSE)
def test_lockstep_1ms_half(box):
    lockstep(box, 1000, 0.5, 1)


@test("each", tier="ci", timeout=60, not_on_windows=COARSE)
def test_lockstep_1ms_one(box):
    lockstep(box, 1000, 1, 1)


@test("each", tier="ci", timeout=60, not_on_windows=COARSE)
def test_lockstep_1ms_two(box):
    lockstep(box, 1000, 2, 1)


@test("each", tier="ci", alone=True, timeout=60, not_on_windows=COARSE)
def test_lockstep_100us(box):
    for factor in (0.5, 1, 2):
        lockstep(box, 100, factor, 0)


@test("one", tier="ci", alone=True, timeout=60, not_on_windows=COARSE)
def test_lockstep_quick(box):
    lockstep(box, 100, 1, 0)


def generators(box, kind, minimum):
    graph = None
    deepest = 0

    class Visit:
        def begin(self, run):
            nonlocal graph
            graph = graph or harness.Graph(run.ready)

        def __call__(self, sample):
            nonlocal deepest
            graph(sample)
            if kind == "deep" and harness.is_whole(sample):
                deepest = max(deepest, sum(frame[1] == "chain" for frame in sample.frames))

    wanted = box.wanted({"quick": 10_000, "ci": 50_000, "nightly": 1_000_000}[box.config["tier"]])
    # about 10 us for each item, as the quickest task of an event loop takes
    seconds = box.seconds(wanted, 50_000) + 0.3
    box.collect("generators.py", wanted, Visit(), "-i", box.interval("0"), kind=kind, turns=500, seconds=seconds)
    box.note("%s: %s", kind, graph.text())
    allowed = math.ceil(20 * graph.samples / 1e6 + 2 * math.sqrt(20 * graph.samples / 1e6))
    need(graph.impossible <= allowed, "%s; %d allowed", graph.text(), allowed)
    need(graph.torn <= 0.10 * graph.samples, "%s: more than 10 %% torn", graph.text())
    if kind == "deep":
        need(deepest == 50, "a chain of 50 generators was seen %d deep", deepest)


@test("each", tier="ci", alone=True, timeout=90)
def test_generators_under_their_consumer(box):
    generators(box, "gen", 0.3)


@test("each", tier="ci", alone=True, timeout=90)
def test_coroutines_under_their_consumer(box):
    generators(box, "async", 0.3)


@test("each", tier="ci", alone=True, timeout=90)
def test_deep_generators(box):
    generators(box, "deep", 0.3)


def pipeline(box, item, interval, points):
    """A generator is on the stack for as long as its consumer waits for it."""
    seen = {"work": 0, "produce": 0, "consume": 0}
    torn = 0

    class Visit:
        def __call__(self, sample):
            nonlocal torn
            scopes = [frame[1] for frame in sample.frames]
            if "work" in scopes:
                torn += not harness.is_whole(sample)
                if scopes[-1] in seen:
                    seen[scopes[-1]] += 1

    wanted = {"quick": 5_000, "ci": 10_000, "nightly": 100_000}[box.config["tier"]]
    seconds = box.seconds(wanted, 10_000) + 0.5
    box.collect("pipeline.py", wanted, Visit(), "-i", box.interval(interval), item=item, seconds=seconds)
    share = 100 * seen["consume"] / max(1, seen["consume"] + seen["produce"])
    text = "%d ns an item: consumer %.1f %% of 50; %d torn of %d" % (item, share, torn, sum(seen.values()) + torn)
    box.note("%s", text)
    need(abs(share - 50) <= points, "%s: %g points allowed", text, points)
    need(torn <= 0.10 * (sum(seen.values()) + torn), "%s: more than 10 %% torn", text)


@test("each", tier="ci", alone=True, timeout=60)
def test_generator_pipeline(box):
    pipeline(box, 20_000, "100us", 2.0)


@test("each", tier="ci", alone=True, timeout=60)
def test_fast_generator_pipeline(box):
    # the first one of a call from C is told by its cframe, which is gone when the call is (3.11 enters generators so)
    pipeline(box, 2_000, "100us", 15.0 if box.interp.minor == 11 else 10.0)


@test("each", tier="ci", alone=True, timeout=60)
def test_tasks_of_an_event_loop(box):
    window = Window(["work"], inside="Runner.run")
    wanted = {"quick": 5_000, "ci": 10_000, "nightly": 100_000}[box.config["tier"]]
    box.collect("tasks.py", wanted, window, "-i", box.interval("100us"), seconds=box.seconds(wanted, 10_000) + 0.5)
    need(window.torn <= 0.05 * window.all_count, "%d of %d torn", window.torn, window.all_count)
    window.compare(8.0, box, "tasks")


CHURN = re.compile(r"fn_(\d{8})(?:\.<\w+>)*$")


class Churned:
    """What samples show of functions that come and go: triples that never existed, and the time in them."""

    def __init__(self, box):
        self.unqualified = ("<lambda>", "<listcomp>") if box.interp.minor == 10 else ()
        self.offsets = ()
        self.bad = []
        self.samples = self.seen = self.torn = self.time_in = self.time_at_work = 0

    def begin(self, run):
        self.offsets = set(run.ready["offsets"]) | {0}

    def __call__(self, sample):
        whole = harness.is_whole(sample)
        works = any(frame[1] == "drive" for frame in sample.frames)
        inside = not whole or any(CHURN.match(frame[1]) for frame in sample.frames)
        self.samples += 1
        self.torn += not whole
        self.time_at_work += sample.time * works
        self.time_in += sample.time * (works and inside)
        for file, scope, line, *_ in sample.frames:
            match = CHURN.match(scope)
            if match:
                self.seen += 1
                number = int(match.group(1))
                if file != "file_%08d.py" % (number * 7919 % 10**8) or line - 1 - number % 1000 not in self.offsets:
                    self.bad.append((file, scope, line))
            elif file.startswith("file_") and scope not in ("<module>", *self.unqualified):
                self.bad.append((file, scope, line))

    def text(self):
        text = "%d samples, %d of short-lived functions, %d not whole"
        return text % (self.samples, self.seen, self.torn)


def churn(box, compiled):
    """
    Equal-sized code of other names without end: no (function, file, line) that never existed. What could not be named in
    time is torn where it was, and not given to what lives long: both together are the target's own share. That is looked
    at with pauses between the passes: flat out, the time that a new function takes to be read goes to what is met next.
    A function of 3 us is left and entered again more slowly while its memory is being copied, and then its caller is what
    runs: 6 % of the time in the caller become 12 to 16 % of the moments (docs/architecture.md, "What cannot be told").
    """
    flat = Churned(box)
    wanted = box.wanted({"quick": 20_000, "ci": 100_000, "nightly": 1_000_000}[box.config["tier"]])
    seconds = box.seconds(wanted, 50_000) + 0.3
    box.collect("churn.py", wanted, flat, "-i", box.interval("0"), compile=compiled, seconds=seconds)
    box.note("flat out: %s", flat.text())
    need(not flat.bad, "%d triples that never existed: %s", len(flat.bad), flat.bad[:5])
    if compiled == 2:
        return  # most of the time goes into making the classes, which is in the frame outside of them
    if box.windows:
        box.note("shares of new code are not looked at: reading it takes milliseconds under Wine")
        return
    paced = Churned(box)
    runs = box.collect("churn.py", 5000, paced, "-i", "300us", compile=compiled, seconds=2.0)
    need(not paced.bad, "%d triples that never existed: %s", len(paced.bad), paced.bad[:5])
    truth = sum(run.done["inside"] for run in runs) / sum(run.done["elapsed"] for run in runs)
    share = paced.time_in / max(1, paced.time_at_work)
    box.note("paced: %s; the target says %.1f %%, seen or torn are %.1f %%", paced.text(), 100 * truth, 100 * share)
    need(
        0.65 * truth < share < 1.15 * truth,
        "the target was %.1f %% in them, seen or torn are %.1f %%",
        100 * truth,
        100 * share,
    )


@test("each", alone=True, timeout=120)
def test_code_churn(box):
    churn(box, 0)


@test("each", tier="ci", alone=True, timeout=120, without=())
def test_code_churn_compiled(box):
    churn(box, 1)


@test("each", tier="ci", alone=True, timeout=120)
def test_code_churn_of_classes(box):
    churn(box, 2)
