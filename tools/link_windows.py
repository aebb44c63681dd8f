#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links one program for Windows with zig, and keeps its symbols in a PDB beside it.

    link_windows.py --zig ZIG --target x86_64-windows-gnu PROGRAM.exe FILE... [-lLIBRARY...]

Two builds of one tree, in any two folders, give the same bytes of the program and of the PDB. zig's own way (-g) does
not: it brings the objects of its C run time with debug information, and these hold names that it made up when it
compiled them. So zig links without debug information first, which also makes what its cache lacks, and tells the linker
command that it used (-v). The same command is then given to the same linker (zig holds it, as `zig lld-link`), with
copies of what lies in zig's cache and other caches, since a PDB names every object and the cache's folders are named at random, and with:

    /debug /pdb                 the PDB, for the objects that have debug information: ours, APR's and zstd's
    /pdbaltpath                 the program names its PDB without a folder
    /pdbsourcepath              relative names of objects are below this folder, instead of below the current one
    /brepro                     no time of the build in the header
    /opt:ref, /opt:icf          as without /debug, which would turn both off

The flags are described in lld's COFF/Options.td (LLVM 22). Names of files are relative to the root of the tree, which is
the current folder.
"""
import argparse
import os
import shlex
import shutil
import subprocess
import sys

LINKER = 'lld-link '
# What zig said that we say otherwise.
REPLACED = ('-out:', '-implib:', '-debug', '-pdb', '-brepro', '-build-id')
SOURCE_ROOT = 'C:\\austin'


def link_command(zig, target, program, parts, cache):
    """The linker's command line, as zig prints it."""
    # A local cache of its own: with a hit in it zig would copy an earlier result and not tell how it was made.
    done = subprocess.run([zig, 'cc', '-target', target, '-O2', '-s', '-v', '-o', program] + parts,
                          env=dict(os.environ, ZIG_LOCAL_CACHE_DIR=cache), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors='replace')
    lines = done.stdout.splitlines()
    told = [line for line in lines if line.startswith(LINKER)]
    if done.returncode or not told:
        # The commands that made zig's own libraries are long and say nothing.
        sys.exit('\n'.join(line[:500] for line in lines if not line.startswith((LINKER, 'ar ')))
                 or f'link_windows: zig ended with {done.returncode} and showed no linker command')
    return shlex.split(told[-1], posix=False)[1:]


def short_names(archive):
    """The archive with its members' names cut to their last part, and nothing moved.

    A name longer than 15 bytes is in the member `//`, ended by a zero; a member's header has its offset there (PE format
    specification, "Longnames Member"). A name that gets shorter is filled up with zeroes, which nobody reads.
    """
    if not archive.startswith(b'!<arch>\n'):
        return archive
    at = 8
    while at + 60 <= len(archive):
        name, size = archive[at:at + 16].rstrip(), int(archive[at + 48:at + 58])
        if name == b'//':
            start, end = at + 60, at + 60 + size
            names = [name[name.rfind(b'/') + 1:].ljust(len(name), b'\0') for name in archive[start:end].split(b'\0')]
            return archive[:start] + b'\0'.join(names) + archive[end:]
        if name != b'/':
            break
        at += 60 + size + size % 2
    return archive


def copy_of(path, folder):
    """A copy of a file outside of the tree or in zig's cache, under its own name."""
    copy = os.path.join(folder, os.path.basename(path))
    if os.path.exists(copy):
        sys.exit(f'link_windows: two files are called {os.path.basename(path)}')
    with open(path, 'rb') as old, open(copy, 'wb') as new:
        new.write(short_names(old.read()))
    return copy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--zig', required=True)
    parser.add_argument('--target', required=True)
    parser.add_argument('program')
    args, parts = parser.parse_known_args()
    pdb = os.path.splitext(args.program)[0] + '.pdb'
    folder = args.program + '.link'
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    words = link_command(args.zig, args.target, os.path.join(folder, 'first.exe'), parts, os.path.join(folder, 'cache'))
    words = [copy_of(w, folder) if os.path.isfile(w) and (os.path.isabs(w) or w not in parts) else w
             for w in words if not w.lower().startswith(REPLACED)]
    words += [f'-out:{args.program}', '-debug', f'-pdb:{pdb}', f'-pdbaltpath:{os.path.basename(pdb)}',
              f'-pdbsourcepath:{SOURCE_ROOT}', '-brepro', '-opt:ref', '-opt:icf']
    for leftover in (args.program, pdb):
        if os.path.exists(leftover):
            os.remove(leftover)
    status = subprocess.run([args.zig, 'lld-link'] + words).returncode
    if status == 0:
        shutil.rmtree(folder)
    return status


if __name__ == '__main__':
    sys.exit(main())
