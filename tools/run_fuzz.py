#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs libFuzzer targets one after the other, each for a time, and adds up.

    run_fuzz.py --seconds N --work DIR TARGET...

A target fuzz_<name> starts from fuzz/corpus/<name>, which stays as it is; what it finds goes to DIR/<name>/corpus, and
an input that breaks it to DIR/<name>/. Such an input belongs into the corpus, with the fix.
"""
import argparse
import os
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seconds', type=int, required=True)
    parser.add_argument('--work', required=True)
    parser.add_argument('targets', nargs='*')
    args = parser.parse_args()
    passed, bad = 0, []
    for target in args.targets:
        name = re.sub(r'^fuzz_', '', os.path.basename(target))
        seeds, work = f'fuzz/corpus/{name}', os.path.join(args.work, name)
        os.makedirs(f'{work}/corpus', exist_ok=True)
        print(f'== fuzz {name}, {args.seconds} s', flush=True)
        log_path = os.path.join(work, 'log')
        command = [target, f'-max_total_time={args.seconds}', '-timeout=10', '-rss_limit_mb=2048', '-print_final_stats=1',
                   f'-artifact_prefix={work}/', f'{work}/corpus'] + ([seeds] if os.path.isdir(seeds) else [])
        with open(log_path, 'w', encoding='utf-8') as log:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT).returncode
        with open(log_path, encoding='utf-8', errors='replace') as log:
            lines = log.read().splitlines()
        if status:
            print('\n'.join(lines[-60:]))
            print(f'-- fuzz {name}: failed, status {status}; the input is in {work}/')
            bad.append(name)
            continue
        runs = [line.split()[-1] for line in lines if line.startswith('stat::number_of_executed_units')]
        print(f'-- fuzz {name}: {runs[0] if runs else "?"} inputs, nothing found'
              + ('' if os.path.isdir(seeds) else f' ({seeds} does not exist)'), flush=True)
        passed += 1
    if bad:
        print('failed: ' + ' '.join(bad))
    print(f'{passed} passed, {len(bad)} failed, 0 skipped')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
