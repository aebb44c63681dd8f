#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the plain-text expectations that the C tests read out of the JSON of tests/format/vectors.

    expect.py           writes every NAME.txt beside its NAME.json
    expect.py --check   exit status 1 if one of them is not what its JSON says
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'live'))
import mojo  # noqa: E402


def expectations():
    """Path and text of each expectation."""
    for path in sorted((HERE / 'vectors' / 'handed').glob('*.json')):
        yield path.with_suffix('.txt'), mojo.as_text(json.loads(path.read_text()))
    for path in sorted((HERE / 'vectors' / 'bad').glob('*.json')):
        content = json.loads(path.read_text())
        lines = [(f['offset'], f'{kind}\t{f["offset"]}\t{f["rule"]}\n')
                 for kind in ('violation', 'warning') for f in content[kind + 's']]
        yield path.with_suffix('.txt'), ''.join(line for _, line in sorted(lines, key=lambda pair: pair[0]))


def main():
    stale = 0
    for path, text in expectations():
        if '--check' not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f'{path.relative_to(HERE)}: not what the JSON says')
            stale += 1
    return 1 if stale else 0


if __name__ == '__main__':
    sys.exit(main())
