"""`quorumlog topic describe` of a topic of very many partitions: what a person waits for, from the command to its end.

A cluster of three holds the topic, with three replicas of each partition. The command is a process of its own, as a
shell starts it, with its output in a pipe; the first of the rounds is not counted. Beside it `quorumlog version`, which
needs no cluster: the start of the interpreter and of the CLI is in both.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from bench.measuring.report import Row
from quorumlog.testing.nodes import LocalNodes
from quorumlog.testing.ports import PortPicker

PARTITIONS, QUICK_PARTITIONS = 3_000, 300
GOAL_S = 0.7  # for PARTITIONS
TOPIC = "described"
READY_TIMEOUT_S = 60.0
CREATE_TIMEOUT_MS = 300_000
COMMAND_TIMEOUT_S = 120.0


@dataclass(slots=True)
class Runs:
    """Seconds of each run: from start to end, and of processor time."""

    elapsed: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def measure(folder: Path, partitions: int, rounds: int) -> list[Row]:
    """A cluster in `folder`, which must not exist."""
    picker = PortPicker()
    nodes = LocalNodes.create(folder, 3, {}, picker)
    try:
        nodes.start()
        nodes.wait_ready(timeout_s=READY_TIMEOUT_S)
        servers = nodes.layout.bootstrap_servers
        asyncio.run(_create(servers, partitions))
        table, json, version = Runs(), Runs(), Runs()
        for turn in range(rounds + 1):
            for runs, arguments, lines in (
                (table, ["topic", "describe", TOPIC, "-b", servers], partitions + 2),
                (json, ["topic", "describe", TOPIC, "-b", servers, "-o", "json"], partitions),
                (version, ["version"], 1),
            ):
                elapsed, processor = _run(arguments, lines)
                if turn:
                    runs.elapsed.append(elapsed)
                    runs.processor.append(processor)
    finally:
        nodes.stop()
        picker.close()
    goal = GOAL_S if partitions >= PARTITIONS else None
    name = f"topic describe of {partitions:,} partitions"
    return [
        Row(name=name, unit="s", rounds=table.elapsed, goal=goal, at_least=False),
        Row(name="  processor time", unit="s", rounds=table.processor),
        Row(name=f"{name}, JSON", unit="s", rounds=json.elapsed, goal=goal, at_least=False),
        Row(name="  processor time", unit="s", rounds=json.processor),
        Row(name="quorumlog version, without a cluster", unit="s", rounds=version.elapsed),
    ]


async def _create(servers: str, partitions: int) -> None:
    """Returns once every partition is led, and its offsets can be asked for."""
    from quorumlog.client import real_edges as edge

    async with edge.admin({"bootstrap.servers": servers}, default_api_timeout_ms=CREATE_TIMEOUT_MS) as admin:
        await admin.create_topic(TOPIC, partitions, 3)
        await admin.list_offset_ranges((TOPIC, index) for index in range(partitions))


def _run(arguments: list[str], least_lines: int) -> tuple[float, float]:
    """Seconds of one command, and of its processor time. Raises AssertionError if it fails, or says too little."""
    before, start = _children_s(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "quorumlog_cli.main", *arguments], capture_output=True, text=True,
        timeout=COMMAND_TIMEOUT_S, check=False,
    )  # fmt: skip
    elapsed, processor = time.perf_counter() - start, _children_s() - before
    assert done.returncode == 0, f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-1_000:]}"
    assert done.stdout.count("\n") >= least_lines, f"{' '.join(arguments)} said too little: {done.stdout[-1_000:]}"
    return elapsed, processor


def _children_s() -> float:
    """Processor time of all children that have ended."""
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
