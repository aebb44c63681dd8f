#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds what a target needs of APR and zstd, from the sources of the Debian release that this machine runs.
#
#   tools/deps.sh TARGET PREFIX
#
#   linux-x86_64-musl       static libraries and headers
#   windows-x86_64          the same, with zig, whose path ZIG holds
#   windows-arm64           the same
#   check-windows-x86_64    Check, static and without fork, for the unit tests there; needs zig
#   headers-macos-arm64     headers only, to compile (not link) the portable rooms; needs zig
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
    [[ -e $cache/src-key && -d $cache/src/check && $(cat "$cache/src-key") == "$VERSION_CODENAME" ]] && return
    local tool
    for tool in apt-get dpkg-source; do
        command -v "$tool" > /dev/null || die "$tool is missing: apt-get install dpkg-dev, or give deps=PREFIX with a" \
            "static APR and zstd"
    done
    say "sources of APR, zstd and Check ($VERSION_CODENAME)"
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
    (cd "$apt/src" && quietly "$work/source.log" apt-get -q source apr libzstd check)
    unset APT_CONFIG
    rm -rf "$cache/src"
    mkdir "$cache/src"
    mv "$apt"/src/apr-*/ "$cache/src/apr"
    mv "$apt"/src/libzstd-*/ "$cache/src/zstd"
    mv "$apt"/src/check-*/ "$cache/src/check"
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
    # Only configure writes this one. The answers given are those it would find by running a program there; on a Mac
    # they are facts of the 64-bit system (a struct iovec is two words, strerror_r is POSIX's).
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
}

# The compiler for Windows, and what is asked of it for every library: no checks of zig's own that trap, Windows 10 and
# later, no warnings about other people's code, and nothing in the debug information that differs from build to build
# (clang notes the object's name, which zig makes up anew each time, and the folder it runs in).
windows_flags() {
    cc=("${ZIG:?path of zig}" cc -target "$1" -std=gnu11 -D_WIN32_WINNT=0x0A00 -w -fno-sanitize=undefined)
    # shellcheck disable=SC2206
    cc+=($flags "-ffile-prefix-map=$(dirname "$(realpath "$ZIG")")=zig" -ffile-compilation-dir=.
        -gno-codeview-command-line)
}

# Compiles the files whose names, from the folder SOURCES, come on standard input, and makes the archive of them.
#   archive LIBRARY SOURCES [FLAG...]
archive() {
    local library=$1 sources=$2 objects
    shift 2
    objects=$work/$(basename "$library").objects
    mkdir -p "$objects" "$(dirname "$library")"
    export sources objects
    # shellcheck disable=SC2016
    quietly "$objects.log" xargs -P "$(nproc)" -I FILE bash -c '
        set -e
        object=$(tr / _ <<< "$1").o
        cd "$sources"
        "${@:2}" -Xclang "-object-file-name=$object" -c "$1" -o "$objects/$object"
    ' compile FILE "${cc[@]}" "$@"
    rm -f "$library"
    (cd "$objects" && "$ZIG" ar rcsD "$library" ./*.o)
}

# APR's configure does not know Windows, and its CMake file runs a program it has just built. So its files are compiled
# here as CMakeLists.txt lists them: apr.h comes from a template, the table of characters from a program for this machine.
build_windows() {
    local apr=$cache/src/apr made=$work/apr include=$work/result/include cc
    windows_flags "$1"
    say "APR for $target"
    mkdir -p "$made" "$include/apr-1"
    sed -e 's/@win32_winnt_str@/0x0A00/' -e 's/@apr_have_ipv6_10@/0/' "$apr/include/apr.hwc" > "$made/apr.h"
    quietly "$work/table.log" cc -I"$apr/include" -o "$work/gen_test_char" "$apr/tools/gen_test_char.c"
    "$work/gen_test_char" > "$made/apr_escape_test_char.h"
    # The system's headers in the order that its sockets need; WIN32_LEAN_AND_MEAN keeps the old sockets out. The
    # builtins: without them the 64-bit atomics want a function that only the Unix files have.
    # -Wno-error: APR gives apr_uint32_t * where Interlocked functions take long *; they are of one size there.
    sed -n '/^SET(APR_SOURCES/,/^)/s/^ *\([a-z0-9_/]*\.c\)$/\1/p' "$apr/CMakeLists.txt" |
        archive "$work/result/lib/libapr-1.a" "$apr" -Wno-error=incompatible-pointer-types \
            -DAPR_DECLARE_STATIC -DWINNT -DWIN32 -D_WINDOWS -DWIN32_LEAN_AND_MEAN \
            -DHAVE_ATOMIC_BUILTINS=1 -DHAVE_ATOMIC_BUILTINS64=1 \
            -include winsock2.h -include mswsock.h -include windows.h -include wtypes.h \
            -I"$made" -Iinclude -Iinclude/arch/win32 -Iinclude/arch/unix -Iinclude/private
    cp "$apr"/include/*.h "$made/apr.h" "$include/apr-1/"
    say "zstd for $target"
    (cd "$cache/src/zstd/lib" && printf '%s\n' common/*.c compress/*.c decompress/*.c) |
        archive "$work/result/lib/libzstd.a" "$cache/src/zstd/lib" -DZSTD_DISABLE_ASM -DZSTD_LEGACY_SUPPORT=0 -DXXH_NAMESPACE=ZSTD_
    cp "$cache/src/zstd/lib/zstd.h" "$cache/src/zstd/lib/zstd_errors.h" "$include/"
}

# What Check's configure would find with this compiler. There is no fork on Windows, so the tests run in one process.
build_check() {
    local check=$cache/src/check made=$work/check cc
    windows_flags "$1"
    say "Check for ${target#check-}"
    mkdir -p "$made" "$work/result/include"
    local name
    {
        for name in HAVE_DECL_CLOCK_GETTIME HAVE_DECL_GETTIMEOFDAY HAVE_DECL_STRDUP HAVE_FCNTL_H HAVE_GETTIMEOFDAY \
            HAVE_INTTYPES_H HAVE_MALLOC HAVE_MKSTEMP HAVE_PTHREAD HAVE_REALLOC HAVE_SNPRINTF HAVE_STDARG_H \
            HAVE_STDINT_H HAVE_STDLIB_H HAVE_STRING_H HAVE_SYS_TIME_H HAVE_SYS_TYPES_H HAVE_TIME_H HAVE_UNISTD_H \
            HAVE_VSNPRINTF; do
            echo "#define $name 1"
        done
        for name in ENABLE_SUBUNIT HAVE_DECL_ALARM HAVE_DECL_GETLINE HAVE_DECL_LOCALTIME_R HAVE_DECL_SETENV \
            HAVE_DECL_STRSIGNAL HAVE_GETLINE; do
            echo "#define $name 0"
        done
        echo '#define timer_t int'
    } > "$made/config.h"
    {
        (cd "$check" && printf '%s\n' src/*.c)
        printf 'lib/%s.c\n' libcompat alarm getline localtime_r strsignal timer_create timer_delete timer_settime
    } | archive "$work/result/lib/libcheck.a" "$check" -DHAVE_CONFIG_H -I"$made" -Ilib -Isrc -I.
    cp "$check/src/check.h" "$check/check_stdint.h" "$work/result/include/"
}

. /etc/os-release
: "${VERSION_CODENAME:?this machine is no Debian release; give deps=PREFIX with a static APR and zstd}"
fetch_sources
case $target in
linux-x86_64-musl) build_musl ;;
windows-x86_64) build_windows x86_64-windows-gnu ;;
windows-arm64) build_windows aarch64-windows-gnu ;;
check-windows-x86_64) build_check x86_64-windows-gnu ;;
headers-macos-arm64) copy_headers ;;
*) die "unknown target $target" ;;
esac
touch "$work/result/complete"
rm -rf "$prefix"
mv "$work/result" "$prefix"
say "$target ready in $((SECONDS - started)) s: $prefix"
