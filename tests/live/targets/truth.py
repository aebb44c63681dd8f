# SPDX-License-Identifier: Apache-2.0
"""
What all targets share. A target takes `name=value` arguments, prints `ready {facts}` when the world is as its facts
say, and `done {facts}` before it ends. The facts are the truth that the samples are held against.

Runs on CPython 3.10 to 3.15. Imports little, and never `threading`: a target may depend on that.
"""

import json
import os
import sys


def options(**defaults):
    """The defaults, overridden by name=value arguments, as the default's type."""
    values = dict(defaults)
    for argument in sys.argv[1:]:
        name, _, text = argument.partition("=")
        if name not in values:
            raise SystemExit("unknown option %r" % argument)
        values[name] = type(defaults[name])(text)
    return type("Options", (), values)


def _say(word, facts):
    facts["pid"] = os.getpid()
    facts["version"] = list(sys.version_info[:3])
    data = ("%s %s\n" % (word, json.dumps(facts))).encode("ascii")
    while data:
        data = data[os.write(1, data) :]


def ready(**facts):
    _say("ready", facts)


def done(**facts):
    _say("done", facts)


def wait_for_word():
    """Parks until a byte or the end of standard input comes."""
    return os.read(0, 1)


_positions = {}


def location(code, lasti):
    """[file, scope, line, end line, column, end column] as a MOJO stream has to have it: columns + 1, None is 0."""
    key = (code, lasti)
    if key not in _positions:
        name = getattr(code, "co_qualname", code.co_name)
        if hasattr(code, "co_positions"):
            for index, found in enumerate(code.co_positions()):
                if index == lasti // 2:
                    break
            line, end, column, end_column = found
            found = [
                line or 0,
                end or 0,
                0 if column is None else column + 1,
                0 if end_column is None else end_column + 1,
            ]
        else:
            found = [0, 0, 0, 0]
            for start, stop, line in code.co_lines():
                if start <= lasti < stop:
                    found[0] = line or 0
        _positions[key] = [code.co_filename, name] + found
    return _positions[key]


def stack_of(frame):
    """The locations of a stack, outermost first."""
    found = []
    while frame is not None:
        found.append(location(frame.f_code, frame.f_lasti))
        frame = frame.f_back
    found.reverse()
    return found
