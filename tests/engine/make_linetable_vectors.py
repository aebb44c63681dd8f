# SPDX-License-Identifier: Apache-2.0
"""Writes test vectors for the line-table decoder, out of what the interpreter that runs this says of itself.

    python3.X make_linetable_vectors.py > data/linetable-3.X.txt          (3.10 to 3.15)

One code object a line: co_firstlineno, co_linetable in hexadecimal (`-`: empty), and what it means: runs
`N*line,line_end,column,column_end` over code units as MOJO wants them (columns 1-based, 0 for None), joined by `;`, or,
for the greater part, `#` and the 64-bit FNV-1a hash of the four numbers of each unit, 32 bits each, little-endian.
Sources: co_positions() from 3.11 on, co_lines() in 3.10, where there are lines only.
"""
import os
import subprocess
import sys

MODULES = ('ast argparse asyncio.base_events collections dataclasses decimal difflib email.message enum fractions '
           'functools http.client inspect ipaddress json.decoder logging mailbox os pathlib pickle random re shutil '
           'statistics string tarfile tempfile textwrap threading typing unittest.mock urllib.parse uuid zipfile').split()
SPELT = 40     # with runs
HASHED = 150
TABLE_MAX = 200
SPELT_MAX = 70

WEIRD = r'''
def multi_line(a,
               b=(1,
                  2), *, c: int
               = 3):
    return f(
        a,
        *[x
          for x in b
          if x],
        **{'k': (yield)
           }
    )
def f(*a, **k): return (lambda: (
    a, k))()
def back(x):
    while (
        x and
        x
    ):
        x = (x
             - 1); continue
    else:
        return [
            i for i in
            range(x)]
def wide(): return ' ' * 200 + ''.join(str(x) for x in [1]) + "                                                                  ".strip().upper().lower().strip()
def greek(): ααααα = 1; return ααααα, 'ж' * 3, ααααα
@f
@(
    f
)
class C(f,
        metaclass=type):
    x: int = 1
    async def g(self):
        async with self as (a,
                            b):
            await a
            async for i in b: yield i
        try:
            raise ValueError
        except* TypeError as e: pass
        finally:
            del a
def far(): pass
'''
GAP = '\n' * 5000


def walk(code, out):
    out.append(code)
    for const in code.co_consts:
        if isinstance(const, type(code)):
            walk(const, out)


def positions(code):
    units = len(code.co_code) // 2
    if sys.version_info < (3, 11):
        lines = [0] * units
        for start, end, line in code.co_lines():
            for i in range(start // 2, min(end // 2, units)):
                lines[i] = line or 0
        return [(line, 0, 0, 0) for line in lines]
    out = []
    for line, end, column, column_end in code.co_positions():
        out.append((line or 0, end or 0, 0 if column is None else column + 1,
                    0 if column_end is None else column_end + 1))
    return out


def fnv(rows):
    value = 0xcbf29ce484222325
    for row in rows:
        for number in row:
            for byte in number.to_bytes(4, 'little'):
                value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def runs(rows):
    out = []
    for row in rows:
        if out and out[-1][1] == row:
            out[-1][0] += 1
        else:
            out.append([1, row])
    return ';'.join('%d*%d,%d,%d,%d' % (n, *row) for n, row in out)


def show(code, spelt):
    table = code.co_linetable
    rows = positions(code)
    print(code.co_firstlineno, table.hex() or '-', runs(rows) if spelt else '#%016x' % fnv(rows))


def weird():
    source = WEIRD if sys.version_info >= (3, 11) else WEIRD.replace('except*', 'except')
    codes = []
    walk(compile(source, 'weird', 'exec'), codes)
    walk(compile('x = 1' + GAP + 'def far(): return (x,' + GAP + 'x)' + GAP + '\ny = far() if x else 2\n', 'gaps', 'exec'), codes)
    walk(compile('pass', 'tiny', 'exec'), codes)
    return codes


def main():
    if sys.argv[1:] == ['no-ranges']:
        for code in weird():
            show(code, len(code.co_linetable) <= SPELT_MAX)
        return
    codes = []
    for name in MODULES:
        path = os.path.join(os.path.dirname(os.__file__), name.replace('.', os.sep))
        path = path + '.py' if os.path.exists(path + '.py') else os.path.join(path, '__init__.py')
        if not os.path.exists(path):
            continue  # small installations leave some out
        with open(path, 'rb') as file:
            walk(compile(file.read(), name, 'exec'), codes)
    small = [c for c in codes if len(c.co_linetable) <= SPELT_MAX]
    rest = [c for c in codes if SPELT_MAX < len(c.co_linetable) <= TABLE_MAX]
    print('# %s %d.%d.%d' % (sys.implementation.name, *sys.version_info[:3]))
    for code in weird():
        show(code, len(code.co_linetable) <= SPELT_MAX)
    for code in small[::len(small) // SPELT + 1]:
        show(code, True)
    for code in rest[::len(rest) // HASHED + 1]:
        show(code, False)
    print('# -X no_debug_ranges', flush=True)
    if sys.version_info >= (3, 11):
        subprocess.run([sys.executable, '-X', 'no_debug_ranges', os.path.abspath(__file__), 'no-ranges'], check=True)


if __name__ == '__main__':
    main()
