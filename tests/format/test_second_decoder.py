#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The decoder in Python against the vectors, and the text expectations against their JSON."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'live')]
import expect  # noqa: E402
import mojo  # noqa: E402

VECTORS = HERE / 'vectors'


class Vectors(unittest.TestCase):
    maxDiff = None

    def test_expectations_are_fresh(self):
        for path, text in expect.expectations():
            self.assertEqual(path.read_text(), text, path.name)

    def test_conforming_streams(self):
        paths = sorted((VECTORS / 'handed').glob('*.json'))
        self.assertEqual(len(paths), 10)
        for path in paths:
            want = json.loads(path.read_text())
            stream = mojo.read(path.with_suffix('.mojo'))
            got = mojo.as_json(stream)
            self.assertEqual(got, {key: want[key] for key in got}, path.name)
            self.assertEqual(stream.findings, [], path.name)

    def test_malformed_streams(self):
        paths = sorted((VECTORS / 'bad').glob('*.json'))
        self.assertEqual(len(paths), 47)
        for path in paths:
            want = json.loads(path.read_text())
            stream = mojo.decode(path.with_suffix('.mojo'))
            for kind in ('violations', 'warnings'):
                self.assertEqual(getattr(stream, kind), [(f['offset'], f['rule']) for f in want[kind]], path.name)
            if want['conforms']:
                mojo.read(path.with_suffix('.mojo'))
            else:
                self.assertRaises(mojo.MojoError, mojo.read, path.with_suffix('.mojo'))

    def test_cut_anywhere_is_unfinished_but_valid(self):
        for path in sorted((VECTORS / 'handed').glob('*.mojo')):
            data = path.read_bytes()
            for length in range(len(data)):
                self.assertEqual(mojo.decode(data[:length], unfinished=True).findings, [], f'{path.name} {length}')

    @unittest.skipUnless(shutil.which('zstd'), 'no zstd program')
    def test_zstd(self):
        data = (VECTORS / 'handed' / 'task-lifecycle.mojo').read_bytes()
        packed = subprocess.run(['zstd', '-cq'], input=data, stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(mojo.as_json(mojo.read(packed)), mojo.as_json(mojo.read(data)))


if __name__ == '__main__':
    unittest.main()
