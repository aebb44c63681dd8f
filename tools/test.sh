#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# From a clone to the tests' verdict: installs what build and tests need (Debian packages), builds, and runs the unit
# tests and the live tests. Its last line counts them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh build test
exec scons -Q test "$@"
