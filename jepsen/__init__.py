"""Fault injection: whole clusters in a deterministic simulation, checkers of what they did, and mutants to find.

`python -m jepsen` has the verbs (README.md). `sim` replaces the edges of a node, `checkers` are pure functions over
histories, `mutants` are known mistakes as diffs. Begin with `sim/run.py`.
"""

from __future__ import annotations

import sys

from jepsen.tree import HOMES, ROOT

# The packages of the checkout that this one lies in, whatever is installed.
sys.path[:0] = [str(ROOT / home) for home in HOMES if str(ROOT / home) not in sys.path]
