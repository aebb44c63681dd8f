#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the build needs on Debian 12 or later, and nothing that is there already.
#
#   tools/setup.sh [build] [test] [lint] [fuzz] [cross] [wine]     without an argument: build
set -euo pipefail

declare -A wants=(
    [build]="scons gcc libc6-dev make musl-tools binutils dpkg-dev python3 ca-certificates"
    # debootstrap, dpkg-dev and what Debian's own Python is built with: interpreters that the live suite brings.
    [test]="gcc libc6-dev libapr1-dev libzstd-dev check pkg-config python3 python3-venv debootstrap dpkg-dev procps
            util-linux zlib1g-dev libffi-dev libssl-dev"
    [lint]="clang-format clang-tidy cppcheck libapr1-dev libzstd-dev check"
    [fuzz]="clang llvm libapr1-dev libzstd-dev"
    # gcc for the small programs that a library's build runs here
    [cross]="scons python3-venv dpkg-dev make gcc libc6-dev"
    # Tests of Windows programs: the machine's own Wine, and what brings another one and the Pythons to run under it.
    [wine]="wine wine64 debootstrap util-linux"
)
# The run time of clang's sanitizers is a package of its own, named after the version.
clang_runtime() {
    apt-cache depends clang 2> /dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/libclang-rt-\1-dev/p' | head -n 1
}
installed() {
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2> /dev/null) == installed ]]
}

packages=()
fuzz=0
for group in "${@:-build}"; do
    [[ -n ${wants[$group]:-} ]] || {
        echo "setup: no group '$group'; there are: ${!wants[*]}" >&2
        exit 2
    }
    [[ $group == fuzz ]] && fuzz=1
    for package in ${wants[$group]}; do
        installed "$package" || packages+=("$package")
    done
done
if [[ $fuzz == 1 ]] && ! compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-x86_64.a' > /dev/null; then
    packages+=(clang-runtime)
fi
[[ ${#packages[@]} == 0 ]] && exit 0

export DEBIAN_FRONTEND=noninteractive
as_root=()
if [[ $(id -u) != 0 ]]; then
    command -v sudo > /dev/null || {
        echo "setup: as root, please: apt-get install ${packages[*]}" >&2
        exit 1
    }
    as_root=(sudo --preserve-env=DEBIAN_FRONTEND)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An index of some other entry on the machine's list may be unreachable: what is needed here may be there all the same.
"${as_root[@]}" apt-get -q -o Acquire::Retries=5 update > "$log" 2>&1 || {
    tail -n 5 "$log" >&2
    echo "setup: apt-get update was not complete; going on with what it has" >&2
}
for i in "${!packages[@]}"; do
    [[ ${packages[$i]} != clang-runtime ]] || packages[$i]=$(clang_runtime)
done
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sed '/^$/d' | sort -u)
echo "setup: installing ${packages[*]}"
"${as_root[@]}" apt-get -q -y -o Acquire::Retries=5 install --no-install-recommends "${packages[@]}" > "$log" 2>&1 || {
    tail -n 30 "$log" >&2
    exit 1
}
