# SPDX-License-Identifier: Apache-2.0
"""Real CPythons for the live tests: where they come from, where they are kept, how they are started."""
