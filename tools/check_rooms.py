#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a room includes what it may not see.

    check_rooms.py [--root DIR]     every .c and .h of the tree
    check_rooms.py --self-test      proves on made-up trees that each kind of violation is found

The linker proves half of the rule (a room that is not linked cannot be called); headers need this. Rules:

1. A room includes headers of its own and of the rooms that EDGES grants, written from the tree's root.
2. Outside platform/, system headers are those of the C standard, APR and zstd, as SYSTEM_HEADERS grants them. So no
   unistd.h, sys/..., pthread.h, signal.h, windows.h, mach/..., linux/...
3. Outside platform/, no preprocessor condition asks which system this is.
4. Every file begins with the licence line.

Tests, fuzz targets and benchmarks are bound by rule 1 as their build links them, and are free in 2 and 3.
"""
import argparse
import os
import re
import sys
import tempfile

# Who may include whose headers. An entry that ends in .h is this one header and no other of its directory.
PORT = ['engine/proc_ops.h', 'platform/platform.h', 'objfile', 'base']
EDGES = {
    'base': [],
    'objfile': ['base'],
    'format': ['base'],
    'engine': ['objfile', 'base'],
    # Ports take the stubs of the smallest port for what their system lacks.
    'platform/linux': PORT + ['platform/posix', 'platform/none'],
    'platform/darwin': PORT + ['platform/posix', 'platform/none'],
    'platform/win32': PORT + ['platform/none'],
    'platform/posix': PORT,
    'platform/none': PORT,
    'platform/fake': PORT,
    'platform': ['engine/proc_ops.h', 'base'],  # platform.h itself: what app sees of a port
    'app': ['engine', 'platform/platform.h', 'objfile', 'format', 'base'],
    'query': ['format', 'base'],
    'tests/base': ['base'],
    'tests/objfile': ['objfile', 'base'],
    'tests/format': ['format', 'base'],
    'tests/engine': ['engine', 'platform/fake', 'objfile', 'base'],
    'tests/contract': ['engine/proc_ops.h', 'platform', 'objfile', 'base'],
    'tests/win32': ['engine/proc_ops.h', 'platform/platform.h', 'platform/win32', 'objfile', 'base'],
    'tests/app': ['app', 'engine', 'platform', 'objfile', 'format', 'base'],
    'tests/query': ['query', 'format', 'base'],
}
# Fuzz targets, benchmarks and helper programs link everything but the programs themselves.
ANYTHING = ['engine', 'platform', 'objfile', 'format', 'base']
EDGES['fuzz'] = ANYTHING + ['tests/engine']  # mutates the invented images of the engine's tests
FREE = ('tests', 'fuzz', 'bench', 'tools')

C_STANDARD = {'assert.h', 'complex.h', 'ctype.h', 'errno.h', 'fenv.h', 'float.h', 'inttypes.h', 'iso646.h', 'limits.h',
              'locale.h', 'math.h', 'setjmp.h', 'stdalign.h', 'stdarg.h', 'stdatomic.h', 'stdbool.h', 'stddef.h',
              'stdint.h', 'stdio.h', 'stdlib.h', 'stdnoreturn.h', 'string.h', 'tgmath.h', 'time.h', 'uchar.h',
              'wchar.h', 'wctype.h'}
# Memory, text and containers: no file, process, thread or socket behind them.
APR_PLAIN = {'apr.h', 'apr_allocator.h', 'apr_cstr.h', 'apr_encode.h', 'apr_errno.h', 'apr_escape.h', 'apr_general.h',
             'apr_hash.h', 'apr_lib.h', 'apr_pools.h', 'apr_ring.h', 'apr_skiplist.h', 'apr_strings.h', 'apr_tables.h',
             'apr_time.h', 'apr_version.h', 'apr_want.h'}
SYSTEM_HEADERS = {
    'base': C_STANDARD | APR_PLAIN,
    'objfile': C_STANDARD | APR_PLAIN,
    'engine': C_STANDARD | APR_PLAIN,
    'format': C_STANDARD | APR_PLAIN | {'zstd.h', 'zstd_errors.h'},
    'app': C_STANDARD | {'apr_*', 'zstd.h', 'zstd_errors.h', 'apr.h'},
    'query': C_STANDARD | {'apr_*', 'zstd.h', 'zstd_errors.h', 'apr.h'},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
CONDITION = re.compile(r'^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$', re.M)
SYSTEM_MACRO = re.compile(r'\b(__linux__|__linux|linux|__gnu_linux__|_WIN32|_WIN64|WIN32|_MSC_VER|__MINGW\w*|__CYGWIN__|'
                          r'__APPLE__|__MACH__|__unix__|__unix|unix|__\w*BSD__|__ANDROID__|__GLIBC__|TARGET_OS_\w+|'
                          r'LINUX|DARWIN)\b')
SPDX = '/* SPDX-License-Identifier: Apache-2.0 */'
SKIP_DIRECTORIES = {'build', 'node_modules'}


def strip_comments(text):
    """Blanks comments and joins continued lines; line numbers stay as they are."""
    text = re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.S)
    return re.sub(r'//[^\n]*', '', text)


def room_of(path):
    """The longest entry of EDGES that holds this file, or its first directory."""
    parts = os.path.dirname(path).split('/')
    for n in range(len(parts), 0, -1):
        name = '/'.join(parts[:n])
        if name in EDGES:
            return name
    return parts[0]


def may_include(room, header):
    granted = EDGES.get(room, ANYTHING if room in FREE else [])
    return any(header == g or (not g.endswith('.h') and header.startswith(g + '/')) for g in granted)


def is_system_room(room):
    return room == 'platform' or room.startswith('platform/') or room.split('/')[0] in FREE


def system_allowed(room, header):
    allowed = SYSTEM_HEADERS.get(room, C_STANDARD)
    return header in allowed or ('apr_*' in allowed and header.startswith('apr_'))


def check_file(root, path):
    """The violations of one file, as (line, text)."""
    with open(os.path.join(root, path), encoding='utf-8') as file:
        text = file.read()
    room = room_of(path)
    found = []
    if not text.startswith(SPDX):
        found.append((1, f'does not begin with {SPDX}'))
    text = strip_comments(text)

    def line(match):
        return text.count('\n', 0, match.start(1)) + 1

    for match in INCLUDE.finditer(text):
        kind, header = match.groups()
        if kind == '"':
            own = header.startswith(room + '/') and room_of(header) == room
            if room.split('/')[0] in FREE and header.startswith(room.split('/')[0] + '/'):
                own = True  # tests share helpers among themselves
            if not os.path.exists(os.path.join(root, header)) or '..' in header:
                found.append((line(match), f'"{header}" is no path from the root of the tree'))
            elif not own and not may_include(room, header):
                found.append((line(match), f'room {room} may not see "{header}"'))
        elif not is_system_room(room) and not system_allowed(room, header):
            found.append((line(match), f'room {room} may not include <{header}>: what a system offers belongs in platform/'))
    if not is_system_room(room):
        for match in CONDITION.finditer(text):
            macro = SYSTEM_MACRO.search(match.group(1))
            if macro:
                found.append((line(match), f'room {room} asks for the system ({macro.group()}): that belongs in platform/'))
    return found


def files_of(root):
    for here, directories, names in os.walk(root):
        directories[:] = sorted(d for d in directories if not d.startswith('.') and
                                not (here == root and d in SKIP_DIRECTORIES))
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(here, name), root).replace(os.sep, '/')


def check_tree(root):
    return [f'{path}:{line}: {text}' for path in files_of(root) for line, text in sorted(check_file(root, path))]


GOOD = {
    'base/error.h': '',
    'engine/proc_ops.h': '#include "base/error.h"\n',
    'engine/engine.h': '#include "engine/proc_ops.h"\n#include <apr_pools.h>\n',
    'format/mojo.h': '#include <stdint.h>\n',
    'platform/platform.h': '#include "engine/proc_ops.h"\n',
    'platform/posix/file.h': '#include <unistd.h>\n',
    'platform/linux/read.c': '#include <sys/uio.h>\n#include "platform/posix/file.h"\n#ifdef __linux__\n#endif\n',
    'platform/fake/replay.h': '#include "engine/proc_ops.h"\n',
    'app/main.c': '#include "engine/engine.h"\n#include "format/mojo.h"\n#include "platform/platform.h"\n'
                  '#include <apr_thread_proc.h>\n',
    'engine/walk.c': '/* #include <unistd.h>\n#ifdef __linux__ */\n#include "engine/engine.h"\n#if defined(__GNUC__)\n#endif\n',
    'tests/engine/check_walk.c': '#include <check.h>\n#include <unistd.h>\n#include "platform/fake/replay.h"\n',
}
# What is added to the good tree, and the words of the one complaint it must bring.
BAD = [
    ('engine/x.c', '#include "platform/platform.h"\n', 'room engine may not see "platform/platform.h"'),
    ('engine/x.c', '#include "format/mojo.h"\n', 'room engine may not see "format/mojo.h"'),
    ('base/x.c', '#include "engine/engine.h"\n', 'room base may not see "engine/engine.h"'),
    ('format/x.h', '#include "engine/proc_ops.h"\n', 'room format may not see "engine/proc_ops.h"'),
    ('platform/linux/x.c', '#include "engine/engine.h"\n', 'room platform/linux may not see "engine/engine.h"'),
    ('platform/posix/x.c', '#include "platform/linux/x.h"\n', 'no path from the root'),
    ('app/x.c', '#include "platform/posix/file.h"\n', 'room app may not see "platform/posix/file.h"'),
    ('query/x.c', '#include "engine/engine.h"\n', 'room query may not see "engine/engine.h"'),
    ('tests/engine/x.c', '#include "platform/posix/file.h"\n', 'room tests/engine may not see'),
    ('engine/x.c', '#include "engine.h"\n', '"engine.h" is no path from the root'),
    ('engine/x.c', '#include "engine/../format/mojo.h"\n', 'no path from the root'),
    ('engine/x.c', '#include <unistd.h>\n', 'may not include <unistd.h>'),
    ('engine/x.c', '  #  include <sys/types.h>\n', 'may not include <sys/types.h>'),
    ('base/x.c', '#include <pthread.h>\n', 'may not include <pthread.h>'),
    ('app/x.c', '#include <signal.h>\n', 'may not include <signal.h>'),
    ('app/x.c', '#include <windows.h>\n', 'may not include <windows.h>'),
    ('format/x.c', '#include <mach/mach.h>\n', 'may not include <mach/mach.h>'),
    ('objfile/x.c', '#include <linux/elf.h>\n', 'may not include <linux/elf.h>'),
    ('engine/x.c', '#include <apr_file_io.h>\n', 'may not include <apr_file_io.h>'),
    ('engine/x.c', '#ifdef __linux__\n#endif\n', 'asks for the system (__linux__)'),
    ('app/x.c', '#if !defined(_WIN32)\n#endif\n', 'asks for the system (_WIN32)'),
    ('base/x.h', '#if 1\n#elif defined(__APPLE__)\n#endif\n', 'asks for the system (__APPLE__)'),
]


def self_test():
    def write(root, path, text):
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), 'w', encoding='utf-8') as file:
            file.write(text)

    wrong = 0
    for path, text, expected in [('', '', None)] + BAD + [('engine/x.c', None, 'does not begin with')]:
        with tempfile.TemporaryDirectory() as root:
            for good, content in GOOD.items():
                write(root, good, SPDX + '\n' + content)
            if path:
                write(root, path, 'int no_licence;\n' if text is None else SPDX + '\n' + text)
            complaints = check_tree(root)
        if (complaints if expected is None else len(complaints) != 1 or expected not in complaints[0]):
            wrong += 1
            print(f'self-test: {path or "the good tree"} with {text!r}: expected {expected}, got {complaints}')
    print(f'rooms: self-test, {len(BAD) + 2 - wrong} of {len(BAD) + 2} as expected')
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--root', default=os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    complaints = check_tree(args.root)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
