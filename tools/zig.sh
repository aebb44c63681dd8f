#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Brings zig, in the version of requirements-cross.txt, into a virtual environment beside LINK, and makes LINK point to
# its program.
#
#   tools/zig.sh LINK
set -euo pipefail

link=${1:?link}
requirements=$(cd "$(dirname "$0")" && pwd)/requirements-cross.txt
mkdir -p "$(dirname "$link")"
venv=$(cd "$(dirname "$link")" && pwd)/venv-cross
python3 -m venv --clear "$venv" || {
    echo "zig: python3 cannot make a virtual environment: apt-get install python3-venv" >&2
    exit 1
}
"$venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: -r "$requirements"
ln -sfn "$("$venv/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')" "$link"
echo "zig: $("$link" version)"
