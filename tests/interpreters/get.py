#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Brings the CPythons that the live tests run against, and keeps them outside the tree.

    get.py --list           what there is, what is here, and why the rest is not
    get.py NAME...          brings these
    get.py ci               brings one of each version, 3.13t among them
    get.py windows          brings those for Windows, and both Wines (wine8, wine10) to run them
    get.py all              brings everything

They go to ${XDG_CACHE_HOME:-~/.cache}/austin-interpreters (AUSTIN_INTERPRETERS overrides). Exit status 1 when something
that was asked for could not be brought.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from interpreters import catalogue, wine  # noqa: E402
from interpreters.model import Missing  # noqa: E402


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 64
    listing = arguments == ["--list"]
    names, wines = [], ["wine" + which for which in wine.WINES]
    for argument in arguments:
        if argument in ("all", "--list"):
            names += wines + list(catalogue.ENTRIES)
        elif argument == "ci":
            names += list(catalogue.EACH_VERSION) + ["debian"]
        elif argument == "windows":
            names += wines + list(catalogue.WINDOWS) + ["win32-3.11.3"]
        elif argument in catalogue.ENTRIES or argument in wines:
            names.append(argument)
        else:
            print("get.py: %s is not in the list (see get.py --list)" % argument, file=sys.stderr)
            return 64
    missing = 0
    for name in dict.fromkeys(names):
        try:
            if name in wines:
                print("%-14s %s" % (name, (wine.find if listing else wine.fetch)(name[4:])), flush=True)
                continue
            print((catalogue.find(name) if listing else catalogue.fetch(name)).describe(), flush=True)
        except Missing as reason:
            missing += 1
            print("%-14s missing: %s" % (name, str(reason).partition(": ")[2]), flush=True)
    return 1 if missing and not listing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
