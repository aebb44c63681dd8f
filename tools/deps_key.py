# SPDX-License-Identifier: Apache-2.0
"""Where the dependencies that we build ourselves are kept: a cache outside the tree, one directory for each target
and content of tools/deps.sh, so that a changed recipe never meets an old result."""
import hashlib
import os
import platform


def prefix(target):
    here = os.path.dirname(os.path.abspath(__file__))
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    with open(os.path.join(here, 'deps.sh'), 'rb') as recipe:
        key = hashlib.sha256(recipe.read()).hexdigest()[:12]
    return os.path.join(cache, 'austin-build', f'{target}-{platform.machine()}-{key}')
