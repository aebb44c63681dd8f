# SPDX-License-Identifier: Apache-2.0
"""Says what its arguments are, after it has run long enough to be sampled."""

import sys
import time

import truth

until = time.monotonic() + 0.3
while time.monotonic() < until:
    pass
truth.done(arguments=sys.argv[1:])
