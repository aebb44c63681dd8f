#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test programs one after the other, all of them, and adds up what they say.

    run_tests.py --results DIR [--live SCRIPT] [--run-with COMMAND] PROGRAM...

A PROGRAM that is a Python script runs with this interpreter, any other with COMMAND before it (words, parted by spaces):
one that cannot run by itself. Such a system has no fork, so Check's programs are told not to try. How a program tells its counts, first match wins:

- a TAP file, which Check (and fuzz/replay_main.c) writes to the name in CK_TAP_LOG_FILE_NAME;
- a last line `N passed, N failed, N skipped`, or the summary of Python's unittest;
- nothing: then its exit status is one test.

A line that begins with `SKIP: ` in the output of a C program is one test that could not run here, with the reason.
A program that dies, exits unsuccessfully without a failed test, breaks off or runs no test at all is one failure more.
Output goes to the terminal and to DIR/<program>.log. The working directory of every program is the tree's root.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

COUNTS = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped$')


class Result:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.notes = []

    def fail(self, why):
        self.failed += 1
        self.notes.append(why)


def read_tap(path, result):
    """Counts of a TAP file. False when there is none or it is empty."""
    try:
        with open(path, encoding='utf-8', errors='replace') as tap:
            lines = tap.read().splitlines()
    except FileNotFoundError:
        return False
    planned, last_comment = None, None
    for line in lines:
        if re.match(r'ok\b.*# *skip', line, re.I):
            result.skipped += 1
        elif re.match(r'ok\b', line):
            result.passed += 1
        elif re.match(r'not ok\b', line):
            result.failed += 1
            result.notes.append(line)
        elif line.startswith('1..'):
            planned = int(line[3:].split()[0])
        elif line.startswith('# '):
            last_comment = line[2:]
    if planned is None:
        result.fail('broke off' + (f' in {last_comment}' if last_comment else ''))
    elif planned != result.passed + result.failed + result.skipped:
        result.fail(f'planned {planned} tests, told of {result.passed + result.failed + result.skipped}')
    return True


def read_output(lines, result):
    """Counts of a script's own words. False when it says none."""
    for line in reversed(lines):
        match = COUNTS.match(line.strip())
        if match:
            result.passed, result.failed, result.skipped = map(int, match.groups())
            return True
    ran = [m for m in (re.match(r'Ran (\d+) tests? in ', line) for line in lines) if m]
    end = [m for m in (re.match(r'(?:OK|FAILED)(?: \((.*)\))?$', line) for line in lines) if m]
    if not ran or not end:
        return False
    parts = dict(re.findall(r'([a-z ]+)=(\d+)', end[-1].group(1) or ''))
    parts = {k.strip(): int(v) for k, v in parts.items()}
    result.failed = parts.get('failures', 0) + parts.get('errors', 0) + parts.get('unexpected successes', 0)
    result.skipped = parts.get('skipped', 0)
    result.passed = max(0, int(ran[-1].group(1)) - result.failed - result.skipped)
    return True


def run(program, args, timeout, results, starter=()):
    """One program with its whole process group under a time limit."""
    name = re.sub(r'[^\w.-]+', '_', os.path.basename(program))
    tap, log_path = os.path.join(results, name + '.tap'), os.path.join(results, name + '.log')
    if os.path.exists(tap):
        os.remove(tap)
    script = program.endswith('.py')
    command = ([sys.executable, '-B', '-u', program] if script else [*starter, program]) + args
    # a small quarantine: each test is a fork, and its cost goes with the memory of what is forked
    env = dict(os.environ, CK_TAP_LOG_FILE_NAME=tap,
               ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', 'detect_leaks=1:quarantine_size_mb=16'),
               UBSAN_OPTIONS=os.environ.get('UBSAN_OPTIONS', 'print_stacktrace=1'))
    env.setdefault('CK_VERBOSITY', 'normal')
    if starter and not script:
        env['CK_FORK'] = 'no'
    result, lines = Result(), []
    began = time.monotonic()
    print(f'== {program}', flush=True)
    with open(log_path, 'w', encoding='utf-8') as log:
        try:
            child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            result.fail(f'does not start: {error}')
            return result

        def give_up(signum, frame):
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(timeout)
        for raw in child.stdout:
            line = raw.decode('utf-8', 'replace')
            lines.append(line.rstrip('\r\n'))
            log.write(line)
            sys.stdout.write(line)
            sys.stdout.flush()
        status = child.wait()
        signal.alarm(0)
    took = time.monotonic() - began
    told = read_tap(tap, result) or read_output(lines, result)
    if not told:
        if status == 0:
            result.passed = 1
        elif status > 0:
            result.fail(f'exit status {status}')
    elif status > 0 and not result.failed:
        result.fail(f'exit status {status} without a failed test')
    elif status == 0 and result.failed and not result.notes:
        result.notes.append('exit status 0 in spite of failures')
    if status < 0:
        why = f'no end within {timeout} s' if took >= timeout else signal.Signals(-status).name
        result.fail(f'killed: {why}')
    if not script:
        skips = [line for line in lines if line.startswith('SKIP: ')]
        result.skipped += len(skips)
    if not result.passed + result.failed + result.skipped:
        result.fail('ran no test')
    print(f'-- {program}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped, {took:.1f} s',
          flush=True)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--results', required=True, help='directory for one log and one TAP file a program')
    parser.add_argument('--live', help='the live suite with its options, which comes last')
    parser.add_argument('--run-with', default='', metavar='COMMAND', help='what starts programs of another system')
    parser.add_argument('--timeout', type=int, default=900, help='seconds for one program (live suite: four times that)')
    parser.add_argument('programs', nargs='*')
    args = parser.parse_args()
    os.makedirs(args.results, exist_ok=True)
    jobs = [(p, [], args.timeout) for p in args.programs]
    if args.live:
        script, *options = args.live.split()
        jobs.append((script, options, 4 * args.timeout))
    total, bad = Result(), []
    for program, options, timeout in jobs:
        one = run(program, options, timeout, args.results, args.run_with.split())
        total.passed += one.passed
        total.failed += one.failed
        total.skipped += one.skipped
        if one.failed:
            bad.append((program, one))
    if bad:
        print('\nfailed:')
        for program, one in bad:
            print(f'  {program}: {one.failed}')
            for note in one.notes[:10]:
                print(f'    {note[:300]}')
    if not jobs:
        print('there are no tests')
    line = f'{total.passed} passed, {total.failed} failed, {total.skipped} skipped'
    with open(os.path.join(args.results, 'total'), 'w', encoding='utf-8') as file:
        file.write(line + '\n')
    print(line, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == '__main__':
    sys.exit(main())
