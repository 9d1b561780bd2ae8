"""The tree's bytecode, made before anything is timed.

pip makes it when it installs a wheel, and Kafka's jars come compiled. A tree that was just edited, or that is used with
PYTHONDONTWRITEBYTECODE, has each of three nodes compile itself at each start: a quarter of their processor time.
"""

from __future__ import annotations

import compileall
from pathlib import Path

TREE = Path(__file__).parent.parent
PACKAGES = ("quorumlog", "storage", "quorum", "broker", "cli")


def compile_tree() -> None:
    """Only what is not compiled yet, or has changed."""
    for package in PACKAGES:
        compileall.compile_dir(TREE / package, quiet=1)
