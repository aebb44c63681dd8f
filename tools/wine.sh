#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts a Windows program under Wine, in a prefix of ours.
#
#   tools/wine.sh 8|10 PROGRAM.exe [ARGUMENT...]
#   tools/wine.sh 8|10 --start                      starts what Wine keeps running, for ten minutes after the last program
#   tools/wine.sh 8|10 --end                        ends all that runs in the prefix
#   tools/wine.sh 8|10 --prefix                     says where the prefix is
#
# 8 is the machine's own Wine (Debian bookworm's, or whatever `wine` is), 10 that of Debian trixie, in a root made by
# tests/interpreters/get.py wine10, entered by chroot with this system's folders at their own paths, save those that the
# root has itself (/usr, /etc, /var and the like). The process is the program's own, so that its exit status and signals
# are, too.
set -euo pipefail

which=${1:?8 or 10} program=${2:?program}
shift 2
base=${XDG_CACHE_HOME:-$HOME/.cache}
cache=${AUSTIN_INTERPRETERS:-$base/austin-interpreters}
mkdir -p "$cache"
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$cache/wine10-root
inside= # where that Wine's /usr is
[[ $which == 8 ]] || inside=$root
bits= # a prefix is made with a 32-bit part or without one, for good
[[ ! -x $inside/usr/lib/wine/wine || ! -x $inside/usr/lib/wine/wine64 ]] || bits=-wow64
export WINEPREFIX=$cache/wineprefix-$which$bits WINEDEBUG=${WINEDEBUG:--all} XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp}
export WINEDLLOVERRIDES=${WINEDLLOVERRIDES:-mscoree,mshtml=;winemenubuilder.exe=d}

if [[ $program == --prefix ]]; then
    echo "$WINEPREFIX"
    exit
fi

# A loader starts programs of its own word size itself, and the others in a process of their own (start.exe).
loader=wine
if [[ -n $bits ]]; then
    loader=/usr/lib/wine/wine64
    file=$program
    case $file in [Zz]:*) file=${file:2} file=${file//\\//} ;; esac
    if [[ -f $file ]]; then
        # PE format: the header's offset is at 0x3c, the machine four bytes after its start; 0x14c is I386
        read -r header < <(od -An -tu4 -j60 -N4 "$file") || true
        read -r machine < <(od -An -tx2 -j"$((${header:-0} + 4))" -N2 "$file") || true
        [[ ${machine:-} != 014c ]] || loader=wine
    fi
fi

case $which in
8)
    command -v wine > /dev/null || {
        echo "wine.sh: there is no wine: apt-get install wine wine64" >&2
        exit 127
    }
    enter() { exec "$@"; }
    # Pythons from 3.12 on end at once when a standard stream is a regular file there.
    if [[ -f /dev/stderr ]]; then exec 2> >(exec cat >&2); fi
    if [[ -f /dev/stdout ]]; then exec > >(exec cat); fi
    ;;
10)
    [[ -e $root/.complete ]] || {
        echo "wine.sh: there is no Wine 10: tests/interpreters/get.py wine10" >&2
        exit 127
    }
    if [[ ${AUSTIN_WINE_INSIDE:-} != 1 ]]; then # a mount namespace of our own: the mounts go with us
        AUSTIN_WINE_INSIDE=1 exec unshare -m -- "${BASH_SOURCE[0]}" "$which" "$program" "$@"
    fi
    unset AUSTIN_WINE_INSIDE
    mount --make-rprivate /
    for folder in /*; do
        case $folder in /bin | /boot | /dev | /etc | /lib* | /proc | /sbin | /sys | /tmp | /usr | /var) continue ;; esac
        [[ -d $folder && ! -L $folder ]] || continue
        [[ -d $root$folder ]] || mkdir -p "$root$folder"
        mount --bind "$folder" "$root$folder"
    done
    for folder in /proc /dev /tmp; do mount --rbind "$folder" "$root$folder"; done
    for folder in "$cache" "$tree" "$PWD"; do
        [[ ! -d $root$folder ]] || continue
        mkdir -p "$root$folder"
        mount --bind "$folder" "$root$folder"
    done
    # shellcheck disable=SC2016
    enter() { exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"; }
    ;;
*)
    echo "wine.sh: 8 or 10, not $which" >&2
    exit 64
    ;;
esac

if [[ ! -e $WINEPREFIX/.complete ]]; then
    (
        flock 9
        [[ ! -e $WINEPREFIX/.complete ]] || exit 0
        rm -rf "$WINEPREFIX"
        (enter wine wineboot -i) < /dev/null > /dev/null 2>&1 || true
        # What crashes ends, and nobody draws a window or prints pages.
        (enter wine reg add 'HKCU\Software\Wine\WineDbg' /v ShowCrashDialog /t REG_DWORD /d 0 /f) < /dev/null > /dev/null 2>&1
        (enter wine reg add 'HKLM\Software\Microsoft\Windows NT\CurrentVersion\AeDebug' /v Debugger /t REG_SZ /d false /f) \
            < /dev/null > /dev/null 2>&1
        (enter wineserver -w) > /dev/null 2>&1 || true
        touch "$WINEPREFIX/.complete"
    ) 9> "$WINEPREFIX.lock"
fi
case $program in
--end) enter wineserver -k ;;
--start)
    (enter wineserver -p600) > /dev/null 2>&1 || true
    enter wine cmd.exe /c exit < /dev/null > /dev/null 2>&1
    ;;
esac
enter "$loader" "$program" "$@"
