# SPDX-License-Identifier: Apache-2.0
"""Lines and columns of code objects of the installed standard library: our decoder against the interpreter itself."""

import os
import subprocess

from harness import Skip, need, shown, test


def program(box):
    """The test program over the product's decoder."""
    beside = os.path.dirname(os.path.dirname(box.config["austin"][0]))
    roots = [beside] + [
        os.path.join(box.config["root"], "build", "linux-x86_64-" + kind) for kind in ("release", "debug")
    ]
    for root in roots:
        for name in (
            "bin/au_linetable",
            "tools/au_linetable",
            "tests/tools/au_linetable",
            "bin/au-linetable",
            "tests/au_linetable",
            "tests/bin/au_linetable",
        ):
            path = os.path.join(root, name)
            if os.access(path, os.X_OK):
                return path
    raise Skip("the program au_linetable is not built (scons tools)")


def expand(text):
    """Location by code unit, so that it does not matter how equal neighbours are cut."""
    found = []
    for part in text.split():
        span, _, place = part.partition(":")
        start, end = map(int, span.split("-"))
        found += [place] * (end - start)
    return found


@test("every", timeout=180)
def test_standard_library(box):
    most = {"quick": 400, "ci": 2000, "nightly": 0}[box.config["tier"]]
    into = os.path.join(box.dir, "tables")
    decoder = program(box)
    target = box.spawn(box.command("positions.py", most=most, into=box.interp.inside(into)))
    facts = target.wait_for("ready", 170)
    with open(into + ".in", "rb") as tables, open(into + ".got", "wb") as got:
        done = subprocess.run([decoder], stdin=tables, stdout=got, stderr=subprocess.PIPE, timeout=300)
    need(done.returncode == 0, "the decoder failed: %s", shown(done.stderr.decode(errors="replace")))
    count = 0
    with open(into + ".got") as got, open(into + ".want") as want, open(into + ".in") as tables:
        for line, (mine, truth, table) in enumerate(zip(got, want, tables)):
            count += 1
            if mine.strip() != truth.strip():
                a, b = expand(mine), expand(truth)
                need(
                    a == b,
                    "code object %d (%s): first difference at unit %s",
                    line,
                    shown(table.strip(), 200),
                    (
                        next(
                            (i, x, y) for i, (x, y) in enumerate(zip(a + ["-"] * len(b), b + ["-"] * len(a))) if x != y
                        )
                        if a != b
                        else ""
                    ),
                )
    need(count == facts["codes"] and count >= min(most or 15_000, 300), "%d of %d code objects", count, facts["codes"])
    box.note("%d code objects of %d files", count, facts["files"])
