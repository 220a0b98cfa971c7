"""Suites that asv measures for each commit: native calls in time, requests in reference loops, both in instructions.

The suites are always this tree's; `korvet_fast` is the commit's, installed into an environment of its own. That is why
the root, which holds a `korvet_fast` too, comes last in the path.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT))
