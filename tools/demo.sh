#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# From a clone to a profile: installs what the build needs (Debian packages), builds, profiles examples/orders.py and
# prints its ten hottest lines, read back from the file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh build
scons -Q
bin=build/linux-x86_64-release/bin
"$bin/austin" -i 1ms -o build/orders.mojo python3 examples/orders.py
echo
"$bin/austin-query" top -n 10 build/orders.mojo
