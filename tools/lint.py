#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Format, clang-tidy, cppcheck and rooms over the whole tree: all of them run, any finding fails.

    lint.py [--no-cache] [FILE.c...]

Needs compile_commands.json (scons compile_commands.json). With files given, clang-tidy looks at these alone. A file
that clang-tidy passed is not looked at again until it, what it includes, or the list of checks changes.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, 'tools'))
sys.dont_write_bytecode = True
import check_rooms  # noqa: E402

CACHE = 'build/lint'
# A quarter of the default number of paths: it found the same in this tree in a quarter of the time.
ANALYZER = [f'--extra-arg={word}' for word in ('-Xclang', '-analyzer-config', '-Xclang', 'max-nodes=60000')]
# Compiled by the live suite against each version's own headers, so no part of this build.
NOT_BUILT = 'tests/live/'


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')
    return done.returncode, done.stdout


def step_format(files):
    return run(['clang-format', '--dry-run', '-Werror', '--style=file'] + files)


def step_rooms(files):
    code, text = run([sys.executable, '-B', 'tools/check_rooms.py', '--self-test'])
    if code:
        return code, text
    return run([sys.executable, '-B', 'tools/check_rooms.py'])


def step_cppcheck(files):
    os.makedirs(f'{CACHE}/cppcheck', exist_ok=True)
    return run(['cppcheck', '--quiet', '--error-exitcode=1', '--inline-suppr', '--std=c11', '--language=c',
                '--enable=warning,performance,portability', f'--cppcheck-build-dir={CACHE}/cppcheck',
                f'-j{os.cpu_count() or 1}', '-I.', '-D__x86_64__', '-D__linux__', '-D__GNUC__=12',
                # Check's macros declare functions and call them by name; the tool cannot see through them.
                '--suppress=unknownMacro:tests/*',
                # Pointers and arrays in a compound literal are lost on it; clang-tidy's analyzer follows them.
                '--suppress=memleak', '--suppress=legacyUninitvar',
                # It takes an error for a part of whatever the call that made it was given. gcc warns of the real thing.
                '--suppress=returnDanglingLifetime',
                # It has no headers of the system here, and says so for every file.
                '--suppress=missingIncludeSystem'] + [f for f in files if f.endswith('.c')])


def digest(paths):
    sum_ = hashlib.sha256()
    for path in paths:
        with open(path, 'rb') as file:
            sum_.update(path.encode() + b'\0' + file.read() + b'\0')
    return sum_.hexdigest()


def step_tidy(files, chosen, use_cache):
    with open('compile_commands.json', encoding='utf-8') as database:
        known = {os.path.relpath(os.path.join(e['directory'], e['file']), ROOT): e for e in json.load(database)}
    sources = chosen or [f for f in files if f.endswith('.c') and not f.startswith(NOT_BUILT)]
    # Other systems' headers are not here; their compiler's own warnings are errors (scons cross).
    sources = [f for f in sources if '/win32/' not in f and not os.path.basename(f).startswith('win_')]
    missing = [f for f in sources if f not in known]
    sources = [f for f in sources if f in known]
    common = digest(sorted(glob.glob('.clang-tidy') + glob.glob('*/.clang-tidy'))) + run(['clang-tidy', '--version'])[1]
    os.makedirs(f'{CACHE}/tidy', exist_ok=True)

    def one(source):
        # The preprocessor knows what the file includes: everything for a file that does not compile.
        arguments = shlex.split(known[source]['command'])
        del arguments[arguments.index('-o'):arguments.index('-o') + 2]
        code, rule = run([arguments[0], '-MM', '-MT', 'x'] + arguments[1:])
        needs = files if code else [w for w in rule.replace('\\\n', ' ').split()[1:]]
        key = hashlib.sha256((common + json.dumps(known[source], sort_keys=True) + digest(needs)).encode()).hexdigest()
        stamp = f'{CACHE}/tidy/{key}'
        if use_cache and os.path.exists(stamp):
            return 0, ''
        began = time.monotonic()
        code, text = run(['clang-tidy', '-p', '.', '--quiet'] + ANALYZER + [source])
        if time.monotonic() - began > 60:
            print(f'lint: clang-tidy took {time.monotonic() - began:.0f} s for {source}', flush=True)
        text = ''.join(line + '\n' for line in text.splitlines()
                       if not line.endswith(('warnings generated.', 'warning generated.', 'treated as errors')))
        if code == 0 and 'warning:' not in text:
            open(stamp, 'w').close()
            return 0, ''
        return code or 1, text

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(one, sources))
    if missing:
        results.append((1, ''.join(f'{f}: in no program and no library, so not looked at\n' for f in missing)))
    return max((code for code, _ in results), default=0), ''.join(text for _, text in results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--no-cache', action='store_true')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    os.chdir(ROOT)
    chosen = [os.path.relpath(f, ROOT) for f in args.files]
    files = list(check_rooms.files_of('.'))
    missing = [tool for tool in ('clang-format', 'clang-tidy', 'cppcheck') if not shutil.which(tool)]
    if missing:
        print('lint: missing: ' + ', '.join(missing) + ' (apt-get install ' + ' '.join(missing) + ')')
        return 1
    for old in glob.glob(f'{CACHE}/tidy/*'):
        if time.time() - os.path.getmtime(old) > 14 * 86400:
            os.remove(old)
    bad = 0
    for name, step in (('rooms', step_rooms), ('clang-format', step_format), ('cppcheck', step_cppcheck),
                       ('clang-tidy', lambda f: step_tidy(f, chosen, not args.no_cache))):
        began = time.monotonic()
        code, text = step(files)
        print(text, end='')
        print(f'lint: {name}: {"findings" if code else "clean"}, {time.monotonic() - began:.1f} s', flush=True)
        bad += code != 0
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
