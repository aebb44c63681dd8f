#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds what a target needs of APR and zstd, from the sources of the Debian release that this machine runs.
#
#   tools/deps.sh TARGET PREFIX
#
#   linux-x86_64-musl       static libraries and headers
#   headers-windows-x86_64  headers only, to compile (not link) the portable rooms
#   headers-macos-arm64     the same; needs zig, whose path ZIG holds
#
# The sources come through a private apt state that is made from the machine's own list of sources: it sees the main
# suite only, binary and source, so neither a missing deb-src line nor a security update whose source is not published
# matters, and the system's own state is not touched. Done when PREFIX/complete exists; a second call then does nothing.
set -euo pipefail

target=${1:?target} prefix=${2:?prefix}
[[ -e $prefix/complete ]] && exit 0
started=$SECONDS
cache=$(dirname "$prefix")
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
prefix=$cache/$(basename "$prefix")

# One at a time; whoever waited finds the work done.
exec 9> "$cache/lock"
flock 9
[[ -e $prefix/complete ]] && exit 0

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
say() { echo "deps: $*"; }
die() {
    echo "deps: $*" >&2
    exit 1
}
# Runs a step silently and shows the end of its log when it fails.
quietly() {
    local log=$1
    shift
    "$@" > "$log" 2>&1 || {
        tail -n 30 "$log" >&2
        die "failed: $*"
    }
}

fetch_sources() {
    [[ -e $cache/src-key && -d $cache/src && $(cat "$cache/src-key") == "$VERSION_CODENAME" ]] && return
    local tool
    for tool in apt-get dpkg-source; do
        command -v "$tool" > /dev/null || die "$tool is missing: apt-get install dpkg-dev, or give deps=PREFIX with a" \
            "static APR and zstd"
    done
    say "sources of APR and zstd ($VERSION_CODENAME)"
    local apt=$work/apt
    mkdir -p "$apt"/{lists/partial,cache/archives/partial,src}
    : > "$apt/status"
    # Only entries of the distribution's main suite; others on the list are none of our business.
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null |
        awk -v suite="$VERSION_CODENAME" '
            $1 == "deb" {
                line = $0; sub(/^deb[ \t]+/, "", line); opts = ""
                if (match(line, /^\[[^]]*\][ \t]*/)) { opts = substr(line, 1, RLENGTH) " "; line = substr(line, RLENGTH + 1) }
                n = split(line, w, /[ \t]+/)
                if (n >= 3 && w[2] == suite && w[3] == "main") {
                    print "deb " opts w[1] " " suite " main"; print "deb-src " opts w[1] " " suite " main"; exit
                }
            }' > "$apt/main.list" || true
    local list=$apt/main.list
    if [[ ! -s $list ]]; then
        list=$apt/main.sources
        for f in /etc/apt/sources.list.d/*.sources; do
            [[ -e $f ]] && cat "$f" && echo
        done | awk -v suite="$VERSION_CODENAME" '
            BEGIN { RS = ""; FS = "\n" }
            {
                uris = suites = components = signed = ""; in_key = 0
                for (i = 1; i <= NF; i++) {
                    if ($i ~ /^#/) continue
                    if ($i !~ /^[ \t]/) in_key = 0
                    value = $i; sub(/^[^:]*:[ \t]*/, "", value)
                    if ($i ~ /^URIs:/) uris = value
                    if ($i ~ /^Suites:/) suites = value
                    if ($i ~ /^Components:/) components = value
                    if ($i ~ /^Signed-By:/) { signed = $i; in_key = 1; continue }
                    if (in_key) signed = signed "\n" $i
                }
                if (uris != "" && (" " suites " ") ~ (" " suite " ") && (" " components " ") ~ / main /) {
                    split(uris, first, /[ \t]+/)
                    print "Types: deb deb-src\nURIs: " first[1] "\nSuites: " suite "\nComponents: main"
                    if (signed != "") print signed
                    exit
                }
            }' > "$list"
    fi
    [[ -s $list ]] || die "no entry for suite $VERSION_CODENAME, component main, in the apt sources of this machine"
    {
        echo "Dir::Etc::sourcelist \"$list\";"
        echo 'Dir::Etc::sourceparts "-";'
        echo "Dir::State::lists \"$apt/lists\";"
        echo "Dir::State::status \"$apt/status\";"
        echo "Dir::Cache \"$apt/cache\";"
        echo 'APT::Sandbox::User "root";'
        echo 'Acquire::Languages "none";'
        echo 'Acquire::Retries "5";'
    } > "$apt/apt.conf"
    export APT_CONFIG=$apt/apt.conf
    quietly "$work/update.log" apt-get -q update
    (cd "$apt/src" && quietly "$work/source.log" apt-get -q source apr libzstd)
    unset APT_CONFIG
    rm -rf "$cache/src"
    mkdir "$cache/src"
    mv "$apt"/src/apr-*/ "$cache/src/apr"
    mv "$apt"/src/libzstd-*/ "$cache/src/zstd"
    echo "$VERSION_CODENAME" > "$cache/src-key"
}

# Options of the compiler for both libraries: sections, so that the linker can drop what we do not use, and no path of
# this machine in the result.
flags="-O2 -g -ffunction-sections -fdata-sections -ffile-prefix-map=$work=deps -ffile-prefix-map=$cache/src=deps"

build_musl() {
    command -v musl-gcc > /dev/null || die "musl-gcc is missing: apt-get install musl-tools"
    say "APR with musl"
    mkdir -p "$work/apr"
    (
        cd "$work/apr"
        # SHELL: the configure script of Debian is slow in dash and asks for what bash has.
        export CONFIG_SHELL=/bin/bash
        # strerror_r is POSIX's in musl; the answer is given since the test's own guess depends on warnings.
        quietly ../apr-configure.log /bin/bash "$cache/src/apr/configure" --prefix="$work/out" --disable-shared \
            --enable-static --disable-dso --enable-nonportable-atomics --enable-allocator-uses-mmap \
            ac_cv_strerror_r_rc_int=yes CC=musl-gcc CFLAGS="$flags" ARFLAGS=rcD
        quietly ../apr-make.log make -j"$(nproc)"
        quietly ../apr-install.log make install
    )
    say "zstd with musl"
    cp -r "$cache/src/zstd/lib" "$work/zstd"
    # The decoder is used too: austin-query reads compressed files.
    quietly "$work/zstd-make.log" make -C "$work/zstd" -j"$(nproc)" libzstd.a CC=musl-gcc CFLAGS="$flags" \
        ARFLAGS=rcsD ZSTD_LIB_DEPRECATED=0 ZSTD_LIB_DICTBUILDER=0 ZSTD_LEGACY_SUPPORT=0
    mkdir -p "$work/result/lib" "$work/result/include"
    cp "$work/out/lib/libapr-1.a" "$work/zstd/libzstd.a" "$work/result/lib/"
    cp -r "$work/out/include/apr-1" "$work/result/include/"
    cp "$work/zstd/zstd.h" "$work/zstd/zstd_errors.h" "$work/result/include/"
}

copy_headers() {
    say "headers for ${target#headers-}"
    mkdir -p "$work/result/include/apr-1"
    cp "$cache"/src/apr/include/*.h "$work/result/include/apr-1/"
    cp "$cache/src/zstd/lib/zstd.h" "$cache/src/zstd/lib/zstd_errors.h" "$work/result/include/"
    local apr_h=$work/result/include/apr-1/apr.h
    case $target in
    *windows*)
        # What APR's own CMake file does with this template, for Windows 7 and later.
        sed -e 's/@win32_winnt_str@/0x0601/' -e 's/@apr_have_ipv6_10@/0/' "$cache/src/apr/include/apr.hwc" > "$apr_h"
        ;;
    *macos*)
        # Only configure writes this one. The answers given are those it would find by running a program there; on a
        # Mac they are facts of the 64-bit system (a struct iovec is two words, strerror_r is POSIX's).
        mkdir -p "$work/apr"
        (
            cd "$work/apr"
            export CONFIG_SHELL=/bin/bash
            local zig=${ZIG:?path of zig}
            quietly ../apr-configure.log /bin/bash "$cache/src/apr/configure" --build="$(uname -m)-linux-gnu" \
                --host=aarch64-apple-darwin20 --disable-shared --enable-static --disable-dso \
                --enable-nonportable-atomics ac_cv_func_setpgrp_void=yes ac_cv_sizeof_struct_iovec=16 \
                apr_cv_mutex_recursive=yes ac_cv_strerror_r_rc_int=yes ac_cv_file__dev_zero=yes \
                ac_cv_struct_rlimit=yes apr_cv_process_shared_works=no apr_cv_mutex_robust_shared=no \
                apr_cv_tcp_nodelay_with_cork=no ac_cv_o_nonblock_inherited=no CFLAGS=-O1 \
                CC="$zig cc -target aarch64-macos.11.0 -Wno-unused-command-line-argument" \
                AR="$zig ar" RANLIB="$zig ranlib"
        )
        cp "$work/apr/include/apr.h" "$apr_h"
        ;;
    esac
}

. /etc/os-release
: "${VERSION_CODENAME:?this machine is no Debian release; give deps=PREFIX with a static APR and zstd}"
fetch_sources
case $target in
linux-x86_64-musl) build_musl ;;
headers-*) copy_headers ;;
*) die "unknown target $target" ;;
esac
touch "$work/result/complete"
rm -rf "$prefix"
mv "$work/result" "$prefix"
say "$target ready in $((SECONDS - started)) s: $prefix"
