"""What people type first: processor time of one `quorumlog --help`, and of one `status` of a local cluster.

User and system time of the process, not the wall's: a busy machine makes everything later, but this hardly more. The
bytecode of modules is there, as in an installation: a first call is not counted.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.measuring.report import Row
from quorumlog.testing import LocalCluster

HELP_GOAL_S, STATUS_GOAL_S = 0.15, 0.3


def measure(folder: Path, rounds: int) -> list[Row]:
    """folder: of the cluster's nodes; it must not exist."""
    rows = [_row("quorumlog --help", ["--help"], HELP_GOAL_S, rounds)]
    with LocalCluster(folder) as nodes:
        rows.append(_row("quorumlog status", ["status", "--data", str(nodes.nodes.layout.root)], STATUS_GOAL_S, rounds))
    return rows


def _row(name: str, words: Sequence[str], goal_s: float, rounds: int) -> Row:
    _processor_s(words)
    taken = [_processor_s(words) for _ in range(rounds)]
    return Row(name=f"processor time of {name}", unit="s", rounds=taken, goal=goal_s, at_least=False)


def _processor_s(words: Sequence[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-P", "-m", "quorumlog_cli.main", *words]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
