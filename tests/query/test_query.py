#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program austin-query as its users run it. AUSTIN_QUERY names the program."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / 'format' / 'vectors'
QUERY = os.environ.get('AUSTIN_QUERY', 'build/linux-x86_64-debug/bin/austin-query')
sys.path.insert(0, str(HERE.parent / 'live'))
import mojo  # noqa: E402


def run(*args, data=b'', **how):
    done = subprocess.run([QUERY, *map(str, args)], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def string(text):
    return text.encode() + b'\0'


def stack(pid=1, iid=0, thread='T'):
    return bytes([2, pid, iid]) + string(thread)


def frame(key, file, scope, line):
    """A frame with its two strings, keys 2 * key and 2 * key + 1."""
    return (bytes([11, 2 * key]) + string(file) + bytes([11, 2 * key + 1]) + string(scope)
            + bytes([3, key, 2 * key, 2 * key + 1, line, 0, 0, 0]))


FRAMES = frame(1, 'a.py', 'main', 1) + frame(2, 'a.py', 'work', 2) + frame(3, 'b.py', 'idle', 3)
HEAD = b'MOJ\x04' + b'\x01mode\0wall\0'


def refs(*keys):
    return b''.join(bytes([5, key]) for key in keys)


class CommandLine(unittest.TestCase):
    def test_version_and_help(self):
        self.assertEqual(run('--version'), (0, 'austin-query 5.0.0\n', ''))
        self.assertEqual(run('-V'), (0, 'austin-query 5.0.0\n', ''))
        for option in ('--help', '-?'):
            code, out, err = run(option)
            self.assertEqual((code, err), (0, ''))
            for word in ('top', 'collapsed', 'events', 'check', '--unfinished', '--rows', 'Exit status'):
                self.assertIn(word, out)
            self.assertLessEqual(max(map(len, out.splitlines())), 82, out)

    def test_failures_name_a_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            for file, words in ((folder, 'Give a file, not a directory.'), (folder + '/none', 'Give the file that austin')):
                code, out, err = run('top', file)
                self.assertEqual((code, out), (5, ''))
                self.assertIn(file, err)
                self.assertIn(words, err)
        with open('/dev/full', 'w') as full:
            done = subprocess.run([QUERY, '--help'], stdout=full, stderr=subprocess.PIPE)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b'Let standard output be', done.stderr)

    def test_wrong_usage(self):
        for args, word in (((), 'no command'), (('tops',), 'tops'), (('top', '--frobnicate'), '--frobnicate'),
                           (('top', '-n'), '-n'), (('top', '-n', 'x', '-'), 'x'), (('top', '-n', '-1', '-'), '-1'),
                           (('top', 'a', 'b'), 'b'), (('events', '-n', '3', '-'), 'events'),
                           (('top', '--unfinished', '-'), 'top'), (('check', '-q', '-'), '-q')):
            code, out, err = run(*args)
            self.assertEqual((code, out), (64, ''), args)
            self.assertIn(word, err)
            self.assertIn('--help', err)

    def test_no_such_file(self):
        code, out, err = run('top', '/nonexistent/profile.mojo')
        self.assertEqual((code, out), (5, ''))
        self.assertIn('/nonexistent/profile.mojo', err)
        code, out, err = run('top', '/')
        self.assertEqual((code, out), (5, ''))

    @unittest.skipUnless(os.path.exists('/dev/full'), 'no /dev/full')
    def test_full_disk(self):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([QUERY, 'events', VECTORS / 'real' / 'full-313.mojo'], stdout=full,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 5)
        self.assertIn(b'cannot write', done.stderr)

    def test_reader_goes_away(self):
        with subprocess.Popen([QUERY, 'events', VECTORS / 'real' / 'sub-314.mojo'], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as query:
            query.stdout.read(10)
            query.stdout.close()
            self.assertEqual(query.stderr.read(), b'')
            self.assertGreaterEqual(query.wait(), 0)


class Top(unittest.TestCase):
    def rows(self, *args, data=b''):
        code, out, err = run('top', *args, data=data)
        self.assertEqual((code, err), (0, ''))
        head, *rows = out.splitlines()
        self.assertEqual(head.split(), ['own', '%', 'total', '%', 'function', 'file:line'])
        return [tuple(row.split()) for row in rows]

    def test_shares(self):
        # work is in the first sample twice and counted once; the last sample has no frame, but its time is time.
        data = (HEAD + stack() + FRAMES + refs(1, 2, 2) + b'\x09\x1e' + stack() + refs(1, 3) + b'\x09\x0a'
                + stack() + refs(1) + b'\x09\x05' + stack() + b'\x09\x05')
        self.assertEqual(self.rows(data=data), [('60.00', '60.00', 'work', 'a.py:2'), ('20.00', '20.00', 'idle', 'b.py:3'),
                                                ('10.00', '90.00', 'main', 'a.py:1')])

    def test_columns_do_not_make_rows(self):
        data = (HEAD + b'\x0b\x02a.py\0\x0b\x03f\0' + bytes([3, 1, 2, 3, 7, 7, 1, 5, 3, 2, 2, 3, 7, 7, 9, 12])
                + stack() + refs(1) + b'\x09\x01' + stack() + refs(2) + b'\x09\x01')
        self.assertEqual(self.rows(data=data), [('100.00', '100.00', 'f', 'a.py:7')])

    def test_rows(self):
        path = VECTORS / 'real' / 'sub-314.mojo'
        self.assertEqual(len(self.rows(path)), 10)
        self.assertEqual(len(self.rows('-n', '3', path)), 3)
        self.assertEqual(self.rows(path, '--rows=3'), self.rows('-n3', path))
        every = self.rows('-n', '0', path)
        self.assertGreater(len(every), 50)
        self.assertEqual(every[:10], self.rows(path))
        self.assertLess(abs(sum(float(row[0]) for row in every) - 100), 2)
        own = [float(row[0]) for row in every]
        self.assertEqual(own, sorted(own, reverse=True))

    def test_memory_profile(self):
        # Gains of 3 and 1; what is given back has no share.
        data = (b'MOJ\x04\x01mode\0memory\0' + stack() + FRAMES + refs(1, 2) + b'\x0a\x03' + stack() + refs(1, 3)
                + b'\x0a\x01' + stack() + refs(1, 3) + b'\x0a\x45')
        self.assertEqual(self.rows(data=data), [('75.00', '75.00', 'work', 'a.py:2'), ('25.00', '25.00', 'idle', 'b.py:3'),
                                                ('0.00', '100.00', 'main', 'a.py:1')])

    def test_columns_are_aligned(self):
        code, out, err = run('top', '-n', '0', VECTORS / 'handed' / 'keys-unicode.mojo')
        self.assertEqual(code, 0)
        lines = [line for line in out.splitlines() if len(line.split('  ')[2]) <= 48]
        starts = {re.search(r'  (/|file:line|<)\S*$', line).start() for line in lines if re.search(r'  (/|file:line|<)\S*$', line)}
        self.assertLessEqual(len(starts), 2, out)

    def test_task_and_kernel_frames(self):
        data = (HEAD + stack() + FRAMES + b'\x0e\x01\x00\x01' + refs(2) + b'\x10\x01' + refs(1) + b'\x09\x0a'
                + stack() + refs(1) + b'\x06do_sys\0' + b'\x09\x0a')
        self.assertEqual(self.rows(data=data), [('50.00', '50.00', 'work', 'a.py:2'),
                                                ('50.00', '50.00', 'do_sys', '<kernel>:0'),
                                                ('0.00', '100.00', 'main', 'a.py:1')])

    def test_control_characters(self):
        data = HEAD + stack() + frame(1, 'a\x1b[31m.py', 'f\ng', 1) + refs(1) + b'\x09\x01'
        code, out, err = run('top', data=data)
        self.assertEqual(code, 0)
        self.assertNotIn('\x1b', out)
        self.assertEqual(len(out.splitlines()), 2)

    def test_nothing_in_it(self):
        self.assertEqual(self.rows(data=HEAD), [])
        self.assertEqual(self.rows(data=HEAD + stack() + refs() + b'\x09\x00'), [])


class Collapsed(unittest.TestCase):
    def test_every_vector(self):
        for path in sorted((VECTORS / 'handed').glob('*.mojo')):
            code, out, err = run('collapsed', path)
            self.assertEqual((code, err), (0, ''), path.name)
            stream = mojo.read(path)
            lines = out.splitlines()
            self.assertEqual([line for line in lines if line.startswith('# ')], [f'# {k}: {v}' for k, v in stream.metadata])
            want = []
            for s in stream.samples:
                parts = [f'P{s.pid}', f'T{s.iid}:{s.thread}'] + [f'{f[0]}:{f[1]}:{f[2]}' for f in s.frames]
                parts += [':GC:'] if s.gc else []
                both = s.time is not None and s.memory is not None
                metric = f'{s.time},{int(s.idle)},{s.memory}' if both else s.time if s.memory is None else s.memory
                want.append(';'.join(parts) + f' {metric}')
            self.assertEqual([line for line in lines if not line.startswith('# ')], want, path.name)

    def test_invalid_frame(self):
        data = b'MOJ\x03' + stack() + FRAMES + refs(1) + b'\x04' + b'\x09\x05'
        self.assertEqual(run('collapsed', data=data), (0, 'P1;T0:T;a.py:main:1;:INVALID: 5\n', ''))

    def test_empty_names_are_not_invalid(self):
        """Python lets a code object have any name, also none; the two kinds of frames do not fall together."""
        data = b'MOJ\x03' + stack() + frame(1, '', '', 0) + refs(1) + b'\x09\x05'
        self.assertEqual(run('collapsed', data=data)[1], 'P1;T0:T;::0 5\n')
        data += stack() + b'\x04' + b'\x09\x03'
        rows = [line.split() for line in run('top', data=data)[1].splitlines() if '%' not in line]
        self.assertIn(['62.50', '62.50', '""', ':0'], rows)
        self.assertIn(['37.50', '37.50', ':INVALID:', ':0'], rows)

    def test_metadata_in_its_place(self):
        data = HEAD + stack() + b'\x09\x05' + b'\x01duration\x005\0'
        self.assertEqual(run('collapsed', data=data)[1], '# mode: wall\nP1;T0:T 5\n# duration: 5\n')

    def test_warnings_are_told(self):
        data = HEAD + stack() + FRAMES + frame(1, 'other.py', 'x', 9) + refs(1) + b'\x09\x01'
        code, out, err = run('collapsed', data=data)
        self.assertEqual(code, 0)
        self.assertIn('other.py:x:9', out)
        self.assertIn('redefined', err)
        self.assertIn('byte', err)


class Events(unittest.TestCase):
    def test_offsets(self):
        data = HEAD + stack(iid=0x41) + FRAMES + refs(1) + b'\x09\x81\x02' + b'\x07\x08'
        code, out, err = run('events', data=data)
        self.assertEqual((code, err), (0, ''))
        lines = out.splitlines()
        self.assertEqual(lines[:3], ['0\tMOJO\tversion=4', '4\tMetadata\tkey=mode\tvalue=wall',
                                     '15\tStack\tpid=1\tiid=-1\tthread=T'])
        self.assertEqual(lines[-4:], [f'{len(data) - 7}\tFrame reference\tframe_key=1',
                                      f'{len(data) - 5}\tTime metric\tvalue=129',
                                      f'{len(data) - 2}\tGarbage collector', f'{len(data) - 1}\tIdle stack'])
        self.assertEqual(len(lines), 1 + 1 + 1 + 9 + 4)

    def test_older_versions(self):
        code, out, err = run('events', data=b'MOJ\x01' + bytes([2, 5]) + b'T\0' + bytes([3, 1, 0, 1, 9]))
        self.assertEqual(out.splitlines(), ['0\tMOJO\tversion=1', '4\tStack\tpid=5\tthread=T',
                                            '8\tFrame\tkey=1\tfilename_key=0\tscope_key=1\tline=9'])

    def test_broken_stream(self):
        code, out, err = run('events', data=HEAD + b'\x07\x11\x07')
        self.assertEqual(code, 5)
        self.assertEqual(out.splitlines()[-1], '15\tGarbage collector')
        self.assertIn('byte 16', err)

    def test_counts_of_real_streams(self):
        for path in sorted((VECTORS / 'real').glob('*.mojo')):
            code, out, err = run('events', path)
            self.assertEqual((code, err), (0, ''))
            last = int(out.splitlines()[-1].split('\t')[0])
            self.assertLess(last, path.stat().st_size)


class Check(unittest.TestCase):
    def findings(self, out):
        found = []
        for line in out.splitlines():
            offset, rule, text = line.split(': ', 2)
            self.assertTrue(text)
            found.append((int(offset), rule))
        return found

    def test_vectors(self):
        for path in sorted((VECTORS / 'handed').glob('*.mojo')):
            self.assertEqual(run('check', path), (0, '', ''), path.name)
        for path in sorted((VECTORS / 'bad').glob('*.mojo')):
            code, out, err = run('check', path)
            stream = mojo.decode(path)
            self.assertEqual(self.findings(out), stream.findings, path.name)
            self.assertEqual(code, 1 if stream.violations else 0, path.name)
            self.assertEqual(err, '')

    def test_unfinished(self):
        data = HEAD + stack() + FRAMES + refs(1) + b'\x09\x01' + stack() + refs(1)
        self.assertEqual(run('check', data=data)[0], 1)
        self.assertEqual(run('check', '--unfinished', data=data), (0, '', ''))
        self.assertEqual(run('check', '--unfinished', '-', data=data[:-1]), (0, '', ''))
        self.assertEqual(run('check', '--unfinished', data=data + b'\x00')[0], 1)


class Input(unittest.TestCase):
    def setUp(self):
        self.path = VECTORS / 'real' / 'sub-314.mojo'
        self.want = run('collapsed', self.path)[1]

    def test_standard_input(self):
        self.assertEqual(run('collapsed', data=self.path.read_bytes())[1], self.want)
        self.assertEqual(run('collapsed', '-', data=self.path.read_bytes())[1], self.want)

    def test_unfinished_file(self):
        data = self.path.read_bytes()[:-40]
        code, out, err = run('collapsed', data=data)
        self.assertEqual(code, 0)
        self.assertIn('not finished', err)
        self.assertTrue(self.want.startswith(out))
        self.assertEqual(run('top', data=b'')[0], 0)

    def test_not_a_profile(self):
        for command in ('top', 'collapsed', 'events'):
            code, out, err = run(command, data=b'#!/bin/sh\n')
            self.assertEqual((code), 5)
            self.assertIn('header.magic', err)

    def test_a_live_pipe_is_followed(self):
        with subprocess.Popen([QUERY, 'collapsed'], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as query:
            for n in range(3):
                query.stdin.write((HEAD if n == 0 else b'') + stack() + b'\x09\x01')
                query.stdin.flush()
                time.sleep(0.05)
            query.stdin.close()
            self.assertEqual(query.stdout.read(), b'# mode: wall\n' + 3 * b'P1;T0:T 1\n')
            self.assertEqual(query.wait(), 0)

    @unittest.skipUnless(shutil.which('zstd'), 'no zstd program')
    def test_zstd(self):
        data = self.path.read_bytes()
        half = len(data) // 2
        packed = [subprocess.run(['zstd', '-qc'], input=part, stdout=subprocess.PIPE, check=True).stdout
                  for part in (data[:half], data[half:])]
        self.assertEqual(run('collapsed', data=b''.join(packed)), (0, self.want, ''))
        with tempfile.TemporaryDirectory() as tmp:
            path = pathlib.Path(tmp) / 'profile.mojo.zst'
            path.write_bytes(b''.join(packed))
            self.assertEqual(run('collapsed', path)[1], self.want)
        # Cut in the second frame: all of the first is there.
        code, out, err = run('collapsed', data=packed[0] + packed[1][:-10])
        self.assertEqual(code, 0)
        self.assertIn('not finished', err)
        self.assertTrue(self.want.startswith(out))
        self.assertGreater(len(out), len(self.want) // 4)
        # Broken in it.
        broken = bytearray(packed[0])
        broken[len(broken) // 2] ^= 0xff
        self.assertEqual(run('top', data=bytes(broken))[0], 5)


if __name__ == '__main__':
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    unittest.main()
