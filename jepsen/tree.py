"""The checkout that jepsen lies in, and how another one is run: packages have folders of their own in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOMES = (".", "storage", "quorum", "broker", "server", "cli", "console")  # folders of a checkout that hold packages


def runs_from(tree: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports our packages from this checkout, whatever is installed."""
    return {**environment, "PYTHONPATH": os.pathsep.join(str(tree / home) for home in HOMES)}
