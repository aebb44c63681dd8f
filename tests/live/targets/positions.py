# SPDX-License-Identifier: Apache-2.0
"""
Every code object of this interpreter's installed standard library, with what the interpreter itself says of its lines
and columns. Two files are written: the line tables as our decoder's test program reads them, and the truth as ranges
of code units with equal locations, in the form that the program prints.

most      no more than so many code objects, spread over the whole library; 0: all
into      path without its ending: .in and .want are made
"""

import os
import sys
import sysconfig

import truth

opt = truth.options(most=0, into="")


def files(root):
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("site-packages", "__pycache__", "dist-packages"))
        for name in sorted(names):
            if name.endswith(".py"):
                yield os.path.join(where, name)


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes(constant)


def ranges(code):
    """START-END:line,line_end,column,column_end in code units; neighbours that are equal are one range."""
    if hasattr(code, "co_positions"):
        found = [
            (line or 0, end or 0, 0 if column is None else column + 1, 0 if stop is None else stop + 1)
            for line, end, column, stop in code.co_positions()
        ]
    else:
        found = []
        for start, end, line in code.co_lines():
            found[start // 2 :] = [(line or 0, 0, 0, 0)] * ((end - start) // 2)
    merged, begin = [], 0
    for at in range(1, len(found) + 1):
        if at == len(found) or found[at] != found[begin]:
            merged.append("%d-%d:%d,%d,%d,%d" % ((begin, at) + found[begin]))
            begin = at
    return " ".join(merged)


def main():
    paths = list(files(sysconfig.get_paths()["stdlib"]))
    total = 0
    step = 1
    if opt.most:
        # about 15 code objects a file: spread the wanted number over all of them
        step = max(1, len(paths) * 15 // opt.most)
    with open(opt.into + ".in", "w") as tables, open(opt.into + ".want", "w") as want:
        for path in paths[::step]:
            try:
                with open(path, "rb") as handle:
                    code = compile(handle.read(), path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, RecursionError):
                continue  # the library has files that are wrong on purpose
            for each in codes(code):
                if opt.most and total >= opt.most:
                    break
                tables.write("%d %d %s\n" % (sys.version_info[1], each.co_firstlineno, each.co_linetable.hex() or "-"))
                want.write(ranges(each) + "\n")
                total += 1
    truth.ready(codes=total, files=len(paths))


main()
