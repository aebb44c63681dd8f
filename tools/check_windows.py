#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks into programs for Windows as they are shipped, and fails when one is not what it ought to be.

    check_windows.py [--version base/version.h] PROGRAM.exe...
    check_windows.py --self-test      proves on a made-up program that each fault is found

It imports DLLs of the system alone; it names no path of the machine that built it, and neither does its PDB, which
lies beside it and is its own; it has no symbols inside; its header tells no time that changes with each build; its
manifest says UTF-8, long paths and the user's own rights; its version is that of the tree.

Offsets are those of Microsoft's "PE Format" and of VS_VERSIONINFO.
"""
import argparse
import os
import re
import struct
import sys
import tempfile

# On every Windows 10; api-ms-win-crt-* is the Universal C Runtime.
SYSTEM_DLLS = {'advapi32.dll', 'dbghelp.dll', 'kernel32.dll', 'mswsock.dll', 'ntdll.dll', 'psapi.dll', 'rpcrt4.dll',
               'shell32.dll', 'user32.dll', 'ws2_32.dll'}
SYSTEM_SET = re.compile(r'api-ms-win-crt-[a-z0-9-]+\.dll$')
RESOURCE, DEBUG, IMPORT = 2, 6, 1
RT_VERSION, RT_MANIFEST = 16, 24
CODEVIEW, REPRO = 2, 16


class Fault(Exception):
    pass


class Image:
    """The few parts of a PE32+ file that are asked for here."""

    def __init__(self, data):
        self.data = data
        pe, = struct.unpack_from('<I', data, 0x3c)
        if data[:2] != b'MZ' or data[pe:pe + 4] != b'PE\0\0':
            raise Fault('no PE file')
        self.machine, count, self.time, self.symbols, _, optional, _ = struct.unpack_from('<HHIIIHH', data, pe + 4)
        header = pe + 24
        if struct.unpack_from('<H', data, header)[0] != 0x20b:
            raise Fault('not PE32+')
        directories, = struct.unpack_from('<I', data, header + 108)
        self.directories = [struct.unpack_from('<II', data, header + 112 + 8 * i) for i in range(directories)]
        self.sections = []
        for i in range(count):
            name, size, rva, raw_size, raw = struct.unpack_from('<8sIIII', data, header + optional + 40 * i)
            self.sections.append((name.rstrip(b'\0').decode('latin-1'), rva, max(size, raw_size), raw))

    def at(self, rva):
        for _, start, size, raw in self.sections:
            if start <= rva < start + size:
                return rva - start + raw
        raise Fault(f'no section holds {rva:#x}')

    def text(self, rva):
        start = self.at(rva)
        return self.data[start:self.data.index(b'\0', start)].decode('latin-1')

    def imports(self):
        rva, _ = self.directories[IMPORT]
        found, at = [], self.at(rva)
        while any(self.data[at:at + 20]):
            found.append(self.text(struct.unpack_from('<I', self.data, at + 12)[0]).lower())
            at += 20
        return found

    def debug(self):
        """(type, bytes) of each entry of the debug directory."""
        rva, size = self.directories[DEBUG]
        for at in range(self.at(rva), self.at(rva) + size, 28) if size else ():
            kind, length, _, raw = struct.unpack_from('<IIII', self.data, at + 12)
            yield kind, self.data[raw:raw + length]

    def resource(self, kind):
        """The bytes of the first resource of a kind, or None."""
        rva, size = self.directories[RESOURCE]
        if not size:
            return None
        root = self.at(rva)

        def entries(table):
            named, numbered = struct.unpack_from('<HH', self.data, table + 12)
            return [struct.unpack_from('<II', self.data, table + 16 + 8 * i) for i in range(named + numbered)]

        for number, where in entries(root):
            if number == kind:
                for _ in range(2):  # name, then language
                    where = entries(root + (where & 0x7fffffff))[0][1]
                start, length = struct.unpack_from('<II', self.data, root + where)
                return self.data[self.at(start):self.at(start) + length]
        return None


def check(data, pdb, version, unwanted):
    """All that is wrong with one program, as texts. pdb: the content of the file beside it, or None."""
    image, faults = Image(data), []
    foreign = [name for name in image.imports() if name not in SYSTEM_DLLS and not SYSTEM_SET.match(name)]
    if foreign:
        faults.append('imports ' + ', '.join(foreign))
    for what, content in (('program', data), ('PDB', pdb or b'')):
        for path in unwanted:
            at = content.find(path)
            if at >= 0:
                faults.append(f'the {what} holds a path of this machine: {content[at:at + 60]!r}')
    names = [name for name, _, _, _ in image.sections]
    if image.symbols or any(name.startswith(('.debug', '/')) for name in names):
        faults.append('symbols are inside')
    debug = dict(image.debug())
    if REPRO not in debug:
        faults.append('the time in its header is that of the build')
    record = debug.get(CODEVIEW, b'')
    if record[:4] != b'RSDS':
        faults.append('does not name its PDB')
    elif pdb is None:
        faults.append('there is no PDB beside it')
    elif record[4:20] not in pdb:
        faults.append('the PDB beside it is of another build')
    elif b'/' in record[24:] or b'\\' in record[24:]:
        faults.append('names its PDB with a folder')
    manifest = image.resource(RT_MANIFEST) or b''
    for setting in (b'>UTF-8</activeCodePage>', b'>true</longPathAware>', b'level="asInvoker"',
                    b'{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}'):
        if setting not in manifest:
            faults.append(f'its manifest lacks {setting.decode()}')
    info = image.resource(RT_VERSION) or b''
    fixed = info.find(struct.pack('<I', 0xfeef04bd))
    if fixed < 0:
        faults.append('has no version')
    else:
        high, low = struct.unpack_from('<II', info, fixed + 8)
        number = f'{high >> 16}.{high & 0xffff}.{low >> 16}'
        if number != version or ('ProductVersion\0'.encode('utf-16-le') not in info
                                 or version.encode('utf-16-le') + b'\0\0' not in info):
            faults.append(f'its version is {number}, not {version}')
    return faults


def made_up(dll=b'KERNEL32.dll', manifest=None, number=(1, 2, 3), kinds=(CODEVIEW, REPRO), guid=b'G' * 16,
            name=b'p.pdb', symbols=0, extra=b''):
    """The smallest program that passes, with what the arguments change."""
    base, raw = 0x1000, 0x400
    body = bytearray()

    def put(content):
        body.extend(b'\0' * (-len(body) % 8))
        at = len(body)
        body.extend(content)
        return base + at

    if manifest is None:
        manifest = (b'<activeCodePage>UTF-8</activeCodePage><longPathAware>true</longPathAware> level="asInvoker" '
                    b'{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}')
    text = '.'.join(map(str, number))
    info = (b'\0' * 40 + struct.pack('<IIII', 0xfeef04bd, 0x10000, number[0] << 16 | number[1], number[2] << 16)
            + ('ProductVersion\0' + text + '\0').encode('utf-16-le'))
    put(extra)
    imports = put(struct.pack('<IIIII', 0, 0, 0, put(dll + b'\0'), 0) + b'\0' * 20)
    record = b'RSDS' + guid + struct.pack('<I', 1) + name + b'\0'
    records = [put(record if kind == CODEVIEW else b'\0' * 4) for kind in kinds]
    debug = put(b''.join(struct.pack('<IIHHIIII', 0, 0, 0, 0, kind, len(record), rva, rva - base + raw)
                         for kind, rva in zip(kinds, records)))
    parts = [(RT_VERSION, put(info), len(info)), (RT_MANIFEST, put(manifest), len(manifest))]
    tree = struct.pack('<IIHHHH', 0, 0, 0, 0, 0, len(parts))
    leaves = b''
    for i, (kind, rva, size) in enumerate(parts):
        here = 16 + 8 * len(parts) + i * 64
        tree += struct.pack('<II', kind, 0x80000000 | here)
        leaves += (struct.pack('<IIHHHHII', 0, 0, 0, 0, 0, 1, 1, 0x80000000 | here + 24)
                   + struct.pack('<IIHHHHII', 0, 0, 0, 0, 0, 1, 0x409, here + 48) + struct.pack('<IIII', rva, size, 0, 0))
    resources = put(tree + leaves)
    directories = [(0, 0)] * 16
    directories[IMPORT], directories[RESOURCE] = (imports, 40), (resources, len(tree + leaves))
    directories[DEBUG] = (debug, 28 * len(kinds))
    optional = struct.pack('<H106xI', 0x20b, 16) + b''.join(struct.pack('<II', *d) for d in directories)
    head = (b'MZ' + b'\0' * 58 + struct.pack('<I', 64) + b'PE\0\0'
            + struct.pack('<HHIIIHH', 0x8664, 1, 0, symbols, 0, len(optional), 0x22) + optional
            + struct.pack('<8sIIII16x', b'.data', len(body), base, len(body), raw))
    return head.ljust(raw, b'\0') + bytes(body)


def self_test():
    good_pdb, path = b'..' + b'G' * 16 + b'..', [b'/home/']
    cases = [
        ({}, good_pdb, None),
        (dict(dll=b'api-ms-win-crt-heap-l1-1-0.dll'), good_pdb, None),
        (dict(dll=b'libwinpthread-1.dll'), good_pdb, 'imports libwinpthread-1.dll'),
        (dict(dll=b'api-ms-win-crt-heap-l1-1-0.dll.dll'), good_pdb, 'imports'),
        (dict(extra=b'/home/me/x.c'), good_pdb, 'the program holds a path'),
        ({}, good_pdb + b'/home/me/x.c', 'the PDB holds a path'),
        (dict(symbols=0x400), good_pdb, 'symbols are inside'),
        (dict(kinds=(CODEVIEW,)), good_pdb, 'the time in its header'),
        (dict(kinds=(REPRO,)), good_pdb, 'does not name its PDB'),
        ({}, None, 'there is no PDB'),
        (dict(guid=b'H' * 16), good_pdb, 'of another build'),
        (dict(name=b'C:\\b\\p.pdb'), good_pdb, 'with a folder'),
        (dict(manifest=b'<activeCodePage>UTF-8</activeCodePage><longPathAware>true</longPathAware> '
                       b'{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}'), good_pdb, 'lacks level="asInvoker"'),
        (dict(number=(1, 2, 4)), good_pdb, 'its version is 1.2.4, not 1.2.3'),
    ]
    wrong = 0
    for changes, pdb, expected in cases:
        faults = check(made_up(**changes), pdb, '1.2.3', path)
        if faults if expected is None else len(faults) != 1 or expected not in faults[0]:
            wrong += 1
            print(f'self-test: {changes}: expected {expected}, got {faults}')
    print(f'check_windows: self-test, {len(cases) - wrong} of {len(cases)} as expected')
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--version', default='base/version.h', help='the header that holds the version')
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('programs', nargs='*')
    args = parser.parse_args()
    bad = self_test()
    if args.self_test:
        return bad
    with open(args.version, encoding='utf-8') as header:
        version = re.search(r'AU_VERSION "([^"]+)"', header.read()).group(1)
    # Where the tree is, what it is made of, and what this machine keeps for its users or for a while.
    folders = ('.', os.path.expanduser('~'), os.environ.get('XDG_CACHE_HOME') or '.', tempfile.gettempdir(), sys.prefix)
    unwanted = sorted({os.path.join(os.path.realpath(folder), '').encode() for folder in folders} - {b'/'})
    for path in args.programs:
        pdb = os.path.splitext(path)[0] + '.pdb'
        with open(path, 'rb') as file:
            data = file.read()
        content = None
        if os.path.exists(pdb):
            with open(pdb, 'rb') as file:
                content = file.read()
        try:
            faults = check(data, content, version, unwanted)
        except (Fault, struct.error, ValueError, IndexError) as error:
            faults = [f'cannot be read: {error}']
        for fault in faults:
            print(f'{path}: {fault}')
        print(f'{path}: {len(data)} bytes, imports {", ".join(sorted(Image(data).imports()))}' if not faults else
              f'{path}: {len(faults)} faults')
        bad += len(faults)
    return 1 if bad or not args.programs else 0


if __name__ == '__main__':
    sys.exit(main())
