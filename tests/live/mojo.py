#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second decoder of MOJO version 4, written from docs/format.md alone: strict, simple, and sharing no code with ours.

As a library:

    stream = mojo.read('profile.mojo')          # a path, bytes or a file object; zstd is unpacked
    for sample in stream.samples: ...           # Sample
    dict(stream.metadata)['mode']               # pairs in the order of the stream

`read` raises MojoError for the first rule that is broken. `decode` collects all of them instead. With `unfinished` the
stream is first cut after its last whole sample. `on_sample` takes the samples one by one; then none are kept.

As a command: mojo.py [--json | --text] [--unfinished] [FILE]. Exit status 1 if a rule is broken.
"""
import argparse
import json
import subprocess
import sys

EVENTS = {1: 'Metadata', 2: 'Stack', 3: 'Frame', 4: 'Invalid frame', 5: 'Frame reference', 6: 'Kernel frame',
          7: 'Garbage collector', 8: 'Idle stack', 9: 'Time metric', 10: 'Memory metric', 11: 'String',
          12: 'String reference', 13: 'Stack repeat', 14: 'Task stack', 15: 'Task waiter', 16: 'Running task'}
WARNINGS = {'string.utf8', 'varint.canonical', 'frame.native'}
# Place of each event in its sample.
RANK = {14: 0, 15: 0, 16: 0, 13: 1, 5: 2, 4: 2, 6: 3, 7: 4, 9: 5, 8: 6, 10: 7}


class MojoError(Exception):
    def __init__(self, offset, rule):
        super().__init__(f'byte {offset}: {rule}')
        self.offset, self.rule = offset, rule


class _Stop(Exception):
    """Nothing behind this point can be told."""


class Sample:
    """One sample. A frame is (file, scope, line, line_end, column, column_end); stacks go from the root to the leaf."""
    __slots__ = ('offset', 'end', 'pid', 'iid', 'thread', 'frames', 'kernel', 'gc', 'idle', 'time', 'memory', 'running',
                 'task_frames', 'task_events')

    def __init__(self, offset, pid, iid, thread):
        self.offset = self.end = offset
        self.pid, self.iid, self.thread = pid, iid, thread
        self.frames, self.kernel, self.task_events, self.task_frames = (), (), (), ()
        self.gc = self.idle = False
        self.time = self.memory = self.running = None


class Task:
    __slots__ = ('id', 'name', 'owner', 'first', 'gone', 'waiters', 'time', 'running_time', 'position')

    def __init__(self, ident, owner, first):
        self.id, self.owner, self.first = ident, owner, first
        self.name = self.gone = None
        self.waiters, self.position = [], ()
        self.time = self.running_time = 0


class Stream:
    def __init__(self):
        self.version = None
        self.metadata, self.samples, self.findings = [], [], []
        self.tasks = {}
        self.events = {}
        self.bytes = self.sample_count = 0

    @property
    def violations(self):
        return [f for f in self.findings if f[1] not in WARNINGS]

    @property
    def warnings(self):
        return [f for f in self.findings if f[1] in WARNINGS]


def is_native(file):
    return not file.endswith('.py') and not (len(file) >= 2 and file.startswith('<') and file.endswith('>'))


class _Decoder:
    def __init__(self, data, unfinished, on_sample):
        self.data, self.unfinished = data, unfinished
        self.on_sample = on_sample
        self.pos = 0
        self.out = Stream()
        self.strings = {0: '', 1: '<unknown>'}
        self.frames = {}
        self.stacks = {}  # (pid, thread) -> frames of the latest sample
        self.highest_task = 0
        self.kinds = self.sample = None
        self.pending = []  # findings not settled: those of the open sample
        self.boundary = 0  # where the latest event began
        self.references_seen = 0  # on the fast way

    # ------------------------------------------------------------------------------------------------ primitives

    def find(self, offset, rule):
        self.pending.append((offset, rule))

    def settle(self, cut=None):
        if not self.pending:
            return
        self.pending.sort(key=lambda f: f[0])
        fatal = ('event.reserved', 'event.unknown', 'varint.length')
        self.out.findings += [f for f in self.pending if cut is None or f[0] < cut or f[1] in fatal]
        self.pending = []

    def stop(self, offset, rule):
        self.find(offset, rule)
        raise _Stop(rule)

    def varint(self, key=False):
        data, start = self.data, self.pos
        try:
            byte = data[start]
            self.pos = start + 1
            if byte < 0x40:
                return byte
            value, shift, negative = byte & 0x3f, 6, byte & 0x40
            while byte & 0x80:
                if self.pos - start == 10:
                    self.stop(start, 'varint.length')
                byte = data[self.pos]
                self.pos += 1
                value |= (byte & 0x7f) << shift
                shift += 7
        except IndexError:
            self.stop(len(data), 'truncated')
        length = self.pos - start
        if (length > 1 and byte == 0) or (negative and not value):
            self.find(start, 'varint.canonical')
        if key:
            if length > 4:
                self.find(start, 'key.length')
            if negative and value:
                self.find(start, 'key.negative')
        return -value if negative else value

    def string(self):
        start = self.pos
        end = self.data.find(b'\0', start)
        if end < 0:
            self.stop(start, 'string.unterminated')
        raw = self.data[start:end]
        self.pos = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.find(start, 'string.utf8')
            return raw.decode(errors='surrogateescape')

    def look_up(self, key, offset):
        if key not in self.strings:
            self.find(offset, 'string.undefined')
            return None
        return self.strings[key]

    # ------------------------------------------------------------------------------------------------------ whole

    def run(self):
        ended = False
        try:
            self.header()
            while self.pos < len(self.data):
                self.boundary = self.pos
                if not self.references():
                    self.event()
            self.boundary = self.pos
            ended = True
        except _Stop as why:
            cut = why.args[0] in ('truncated', 'string.unterminated') or (
                why.args[0] == 'header.magic' and len(self.data) < 3)
        if self.unfinished and (ended or cut):
            limit = self.boundary
            sample = self.sample
            if sample:
                inside = not ended and self.data[self.boundary] in RANK
                if inside or not self.is_whole(sample):
                    limit = sample.offset
                else:
                    self.end_sample(self.boundary)
            self.settle(limit)
        else:
            if ended:
                self.end_sample(self.pos)
            self.settle()
        self.out.bytes = len(self.data)
        if self.references_seen:
            seen = self.out.events
            seen['Frame reference'] = seen.get('Frame reference', 0) + self.references_seen
        return self.out

    def references(self):
        """A fast way through the most frequent events: plain references of a sample with known keys of one or two bytes."""
        if not self.sample or self.wanted or self.late or self.rank > 2:
            return False
        data, frames, stack, pos, length = self.data, self.frames, self.stack, self.pos, len(self.data) - 2
        start = pos
        while pos < length and data[pos] == 5:
            key, size = data[pos + 1], 2
            if key >= 0x80:
                more = data[pos + 2]
                if key >= 0xc0 or not 0 < more < 0x80:
                    break
                key, size = (key & 0x3f) | more << 6, 3
            elif key >= 0x40:
                break
            frame = frames.get(key)
            if frame is None:
                break
            stack.append(frame)
            self.references_seen += 1
            self.boundary = pos
            pos += size
        if pos == start:
            return False
        self.rank, self.run, self.pos = 2, None, pos
        self.twice.add(5)
        self.sample.end = pos
        return True

    def is_whole(self, sample):
        kinds = self.kinds
        if kinds is None and dict(self.out.metadata).get('mode') == 'full':
            kinds = (True, True)
        have = (sample.time is not None, sample.memory is not None)
        return any(have) and (kinds is None or all(h or not k for h, k in zip(have, kinds)))

    def header(self):
        if self.data[:3] != b'MOJ':
            prefix = b'MOJ'.startswith(self.data[:3])
            self.find(0, 'header.magic')
            raise _Stop('header.magic' if prefix else 'not MOJO')
        self.pos = 3
        self.out.version = self.varint()
        if self.out.version != 4:
            self.stop(3, 'header.version')

    def event(self):
        at = self.pos
        ident = self.data[at]
        self.pos += 1
        if ident == 0:
            self.stop(at, 'event.reserved')
        if ident > 16:
            self.stop(at, 'event.unknown')
        if ident == 2:
            # The fields are read first, but what they break belongs behind what the sample before breaks.
            kept, self.pending = self.pending, []
            pid, iid, thread = self.varint(), self.varint(), self.string()
            fields, self.pending = self.pending, kept
            self.end_sample(at)
            self.settle()
            self.pending = fields
            self.begin_sample(at, pid, iid, thread)
        elif ident == 1:
            self.metadata(at, self.string(), self.string())
        elif ident == 11:
            self.define_string(at, self.varint(True), self.string())
        elif ident == 3:
            self.define_frame(at)
        elif ident == 12:
            self.look_up(self.varint(True), at)
        else:
            self.sample_event(at, ident)
        name = EVENTS[ident]
        self.out.events[name] = self.out.events.get(name, 0) + 1

    # ------------------------------------------------------------------------------------------------ definitions

    def define_string(self, at, key, value):
        if key == 1:
            self.find(at, 'string.key1')
            return
        if key in self.strings and key != 0 and self.strings[key] != value:
            self.find(at, 'string.redefined')
        self.strings[key] = value

    def define_frame(self, at):
        key, file_key, scope_key = self.varint(True), self.varint(True), self.varint(True)
        line, line_end, column, column_end = self.varint(), self.varint(), self.varint(), self.varint()
        file, scope = self.look_up(file_key, at), self.look_up(scope_key, at)
        if (min(line, line_end, column, column_end) < 0 or (line_end and line_end < line)
                or (line_end == line and column_end and column_end < column)):
            self.find(at, 'frame.location')
        if file is not None and is_native(file) and (line_end or column or column_end):
            self.find(at, 'frame.native')
        frame = (file, scope, line, line_end, column, column_end)
        if self.frames.setdefault(key, frame) != frame:
            self.find(at, 'frame.redefined')
            self.frames[key] = frame

    def metadata(self, at, key, value):
        sample = self.sample
        if sample:
            if sample.time is None and sample.memory is None:
                self.find(at, 'metadata.inside')
            else:
                self.late.append(at)
        self.out.metadata.append((key, value))

    # ---------------------------------------------------------------------------------------------------- samples

    def begin_sample(self, at, pid, iid, thread):
        self.sample = Sample(at, pid, iid, thread)
        self.sample.end = self.pos
        self.rank = 0
        self.stack = []     # frames that this sample lists
        self.base = ()      # frames of the repeat
        self.late = []      # metadata behind a metric
        self.wanted = 0     # references that the last task stack waits for
        self.run = None     # the open run of waiters: its task
        self.notes = []
        self.fresh = []     # (task, offset) reported for the first time
        self.twice = set()

    def end_frames_of_task(self, at):
        if self.wanted:
            self.find(at, 'task.frames')
            self.wanted = 0

    def end_sample(self, at):
        sample = self.sample
        if not sample:
            return
        self.sample = None
        self.end_frames_of_task(at)
        for task, offset in sorted(self.fresh):
            if task > self.highest_task:
                if task != self.highest_task + 1:
                    self.find(offset, 'task.sequence')
                self.highest_task = task
        kinds = (sample.time is not None, sample.memory is not None)
        if not any(kinds):
            self.find(sample.offset, 'sample.metric')
        elif self.kinds is None:
            self.kinds = kinds
        elif self.kinds != kinds:
            self.find(sample.offset, 'mode.mixed')
        if sample.idle and not all(kinds):
            self.find(sample.offset, 'idle.mode')
        sample.frames = self.base + tuple(self.stack) if self.stack else self.base
        # Equal stacks are one object, so that a long profile of few stacks is small.
        name = (sample.pid, sample.thread)
        if self.stacks.get(name) == sample.frames:
            sample.frames = self.stacks[name]
        self.stacks[name] = sample.frames
        if self.notes:
            sample.task_events = self.notes
        self.move_tasks(sample)
        self.out.sample_count += 1
        if self.on_sample:
            self.on_sample(sample)
        else:
            self.out.samples.append(sample)

    def move_tasks(self, sample):
        tasks, index, owner = self.out.tasks, self.out.sample_count, (sample.pid, sample.iid, sample.thread)
        for note in self.notes:
            ident, kind = note['task'], note['event']
            if kind in ('stack', 'gone'):
                task = tasks.get(ident) or tasks.setdefault(ident, Task(ident, owner, index))
                task.name = note['name'] if note['name'] is not None else task.name
                task.position = tuple(note.get('frames', ()))
                if kind == 'gone' and task.gone is None:
                    task.gone = index
            elif kind == 'waiters' and ident in tasks:
                tasks[ident].waiters = note['waiters']
        for task in tasks.values() if tasks else ():
            if task.gone is None and task.owner == owner:
                task.time += sample.time or 0
        if sample.running in tasks:
            running = tasks[sample.running]
            running.running_time += sample.time or 0
            sample.task_frames = running.position

    def sample_event(self, at, ident):
        sample = self.sample
        value = self.varint(ident == 5) if ident in (5, 9, 10, 14, 15, 16) else None
        of_task = sample and ident == 5 and self.wanted
        if not sample:
            self.find(at, 'sample.outside')
        else:
            for offset in self.late:
                self.find(offset, 'metadata.inside')
            self.late = []
            if not of_task:
                self.end_frames_of_task(at)
                if ident in (8, 9, 10) and ident in self.twice:
                    self.find(at, 'metric.twice')
                elif RANK[ident] < self.rank or (ident in (7, 13) and ident in self.twice and RANK[ident] == self.rank):
                    self.find(at, 'sample.order')
                self.rank = max(self.rank, RANK[ident])
                self.twice.add(ident)
            if ident != 15:
                self.run = None
        if ident == 4:
            self.find(at, 'event.invalid_frame')
        elif ident == 5:
            frame = self.frames.get(value)
            if frame is None:
                self.find(at, 'frame.undefined')
            if of_task:
                self.wanted -= 1
                self.notes[-1]['frames'].append(frame)
            elif sample:
                self.stack.append(frame)
        elif ident == 6:
            symbol = self.string()
            if sample:
                sample.kernel += (symbol,)
        elif ident == 14:
            self.task_stack(at, value, self.varint(True), self.varint())
        elif ident == 15:
            self.task_waiter(at, value, self.varint())
        elif sample:
            if ident == 7:
                sample.gc = True
            elif ident == 8:
                sample.idle = True
            elif ident == 9:
                sample.time = value
            elif ident == 10:
                sample.memory = value
            elif ident == 13:
                self.repeat(at)
            elif ident == 16:
                self.check_task(at, value, 'running.unknown')
                sample.running = value
                self.notes.append({'event': 'running', 'task': value})
        if sample:
            sample.end = self.pos

    def repeat(self, at):
        name = (self.sample.pid, self.sample.thread)
        if name not in self.stacks:
            self.find(at, 'repeat.first')
        base = self.stacks.get(name, ())
        count = len(base)
        while count and base[count - 1] and is_native(base[count - 1][0] or ''):
            count -= 1
        self.base = base if count == len(base) else base[:count]

    # ------------------------------------------------------------------------------------------------------ tasks

    def known(self, ident):
        """'live', 'gone' or None, as this very place of the stream knows it. Who has gone stays so."""
        kinds = {note['event'] for note in self.notes if note['task'] == ident} & {'stack', 'gone'}
        if ident in self.out.tasks:
            kinds.add('stack' if self.out.tasks[ident].gone is None else 'gone')
        return 'gone' if 'gone' in kinds else 'live' if kinds else None

    def check_task(self, at, ident, unknown):
        if ident <= 0:
            self.find(at, 'task.id')
        elif self.known(ident) is None:
            self.find(at, unknown)
        elif self.known(ident) == 'gone':
            self.find(at, 'task.reuse')

    def task_stack(self, at, ident, name_key, count):
        name = self.look_up(name_key, at)
        if not self.sample:
            return
        if count < 0:
            self.find(at, 'task.frames')
            count = 0
        if ident <= 0:
            self.find(at, 'task.id')
        elif self.known(ident) is None:
            self.fresh.append((ident, at))
        elif self.known(ident) == 'gone':
            self.find(at, 'task.reuse')
        self.wanted = count
        note = {'event': 'stack' if count else 'gone', 'task': ident, 'name': name if name_key else None}
        if count:
            note['frames'] = []
        self.notes.append(note)

    def task_waiter(self, at, ident, waiter):
        if not self.sample:
            return
        self.check_task(at, ident, 'waiter.unknown')
        if waiter:
            self.check_task(at, waiter, 'waiter.unknown')
        if self.run != ident:
            self.run = ident
            self.run_has_zero = False
            self.notes.append({'event': 'waiters', 'task': ident, 'waiters': []})
        elif waiter == 0 or self.run_has_zero:
            self.find(at, 'waiter.zero')
        if waiter == 0:
            self.run_has_zero = True
        else:
            self.notes[-1]['waiters'] = sorted(self.notes[-1]['waiters'] + [waiter])


# --------------------------------------------------------------------------------------------------------------- input


def _unpack(data):
    """The plain bytes of zstd frames, as far as they go."""
    try:
        done = subprocess.run(['zstd', '-dcq'], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout
    except FileNotFoundError:
        import zstandard
        out, unpacker = b'', None
        while data:
            unpacker = zstandard.ZstdDecompressor().decompressobj()
            out += unpacker.decompress(data)
            data = unpacker.unused_data if unpacker.eof else b''
        return out


def load(source):
    """The bytes of a path, a file object or bytes, unpacked if need be."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    elif hasattr(source, 'read'):
        data = source.read()
    else:
        with open(source, 'rb') as file:
            data = file.read()
    packed = data[:4] == b'\x28\xb5\x2f\xfd' or (len(data) > 3 and data[0] & 0xf0 == 0x50 and data[1:4] == b'\x2a\x4d\x18')
    return _unpack(data) if packed else data


def decode(source, unfinished=False, on_sample=None):
    """A Stream with all findings: (offset, rule) in the order of the stream."""
    return _Decoder(load(source), unfinished, on_sample).run()


def read(source, unfinished=False, on_sample=None):
    """A Stream that keeps to every rule; warnings are left in its findings."""
    stream = decode(source, unfinished, on_sample)
    for offset, rule in stream.violations:
        raise MojoError(offset, rule)
    return stream


# -------------------------------------------------------------------------------------------------------------- output


def as_json(stream):
    """The content as a value for json: what tests/format/vectors/README.md describes."""
    def frames(stack):
        return [list(frame) for frame in stack]

    samples = []
    for s in stream.samples:
        notes = [dict(n, frames=frames(n['frames'])) if 'frames' in n else n for n in s.task_events]
        full = s.time is not None and s.memory is not None
        samples.append({'pid': s.pid, 'iid': s.iid, 'thread': s.thread, 'frames': frames(s.frames),
                        'kernel': list(s.kernel), 'gc': s.gc, 'idle': s.idle if full else None, 'time': s.time,
                        'memory': s.memory, 'running': s.running, 'task_frames': frames(s.task_frames),
                        'task_events': notes})
    tasks = [{'id': t.id, 'name': t.name, 'pid': t.owner[0], 'iid': t.owner[1], 'thread': t.owner[2],
              'first_sample': t.first, 'gone_sample': t.gone, 'time': t.time, 'running_time': t.running_time,
              'waiters': t.waiters} for t in sorted(stream.tasks.values(), key=lambda t: t.id)]
    return {'version': stream.version, 'bytes': stream.bytes, 'events': stream.events,
            'time': sum(s.time or 0 for s in stream.samples), 'memory': sum(s.memory or 0 for s in stream.samples),
            'metadata': [list(pair) for pair in stream.metadata], 'samples': samples, 'tasks': tasks}


def quote(text):
    """Printable ASCII without blanks at stake: everything else becomes \\xHH."""
    raw = text.encode(errors='surrogateescape')
    return ''.join(chr(b) if 0x20 <= b < 0x7f and b != 0x5c else f'\\x{b:02x}' for b in raw)


def as_text(content):
    """The same content, one fact a line, fields between tabs: what tests/format/dump.h writes."""
    def name(text):
        return '-' if text is None else '=' + quote(text)

    def number(value):
        return '-' if value is None else str(int(value))

    def frame(word, f):
        return '\t'.join([word, quote(f[0]), quote(f[1])] + [str(n) for n in f[2:]])

    lines = [f'version\t{content["version"]}', f'bytes\t{content["bytes"]}']
    lines += [f'events\t{event}\t{content["events"][event]}' for event in EVENTS.values() if event in content['events']]
    lines += [f'time\t{content["time"]}', f'memory\t{content["memory"]}']
    lines += [f'metadata\t{quote(k)}\t{quote(v)}' for k, v in content['metadata']]
    for s in content['samples']:
        lines.append('\t'.join(['sample', str(s['pid']), str(s['iid']), quote(s['thread']), number(s['gc']),
                                number(s['idle']), number(s['time']), number(s['memory']), number(s['running'])]))
        lines += [frame('frame', f) for f in s['frames']]
        lines += ['kernel\t' + quote(k) for k in s['kernel']]
        for note in s['task_events']:
            parts = ['task', note['event'], str(note['task'])]
            if note['event'] in ('stack', 'gone'):
                parts.append(name(note['name']))
            elif note['event'] == 'waiters':
                parts.append(','.join(map(str, note['waiters'])))
            lines.append('\t'.join(parts))
            lines += [frame('task_frame', f) for f in note.get('frames', ())]
        lines += [frame('running_frame', f) for f in s['task_frames']]
    for t in content['tasks']:
        lines.append('\t'.join(['summary', str(t['id']), name(t['name']), str(t['pid']), str(t['iid']), quote(t['thread']),
                                str(t['first_sample']), number(t['gone_sample']), str(t['time']),
                                str(t['running_time']), ','.join(map(str, t['waiters']))]))
    return ''.join(line + '\n' for line in lines)


def findings_as_text(stream):
    return ''.join(f'{"warning" if rule in WARNINGS else "violation"}\t{offset}\t{rule}\n'
                   for offset, rule in stream.findings)


def main():
    parser = argparse.ArgumentParser(description='decodes MOJO version 4, strictly')
    parser.add_argument('--json', action='store_true', help='print the content as JSON')
    parser.add_argument('--text', action='store_true', help='print the content, one fact a line')
    parser.add_argument('--unfinished', action='store_true', help='cut after the last whole sample first')
    parser.add_argument('--each', metavar='DIR', help='with --text: for every DIR/*.mojo write DIR/*.second')
    parser.add_argument('file', nargs='?', default='-')
    args = parser.parse_args()
    if args.each:
        import pathlib
        for path in sorted(pathlib.Path(args.each).glob('*.mojo')):
            stream = decode(path, args.unfinished)
            text = findings_as_text(stream)
            if not stream.violations:
                text = as_text(as_json(stream)) + text
            path.with_suffix('.second').write_text(text)
        return 0
    stream = decode(sys.stdin.buffer if args.file == '-' else args.file, args.unfinished)
    for offset, rule in stream.findings:
        print(f'{offset}: {rule}', file=sys.stderr)
    if not stream.violations and args.json:
        json.dump(as_json(stream), sys.stdout, indent=1)
        print()
    elif not stream.violations and args.text:
        sys.stdout.write(as_text(as_json(stream)))
    elif not stream.violations:
        print(f'{stream.sample_count} samples, {len(stream.metadata)} metadata, {stream.bytes} bytes')
    return 1 if stream.violations else 0


if __name__ == '__main__':
    sys.exit(main())
