"""Processor time of a cluster at rest: three nodes, one topic of six partitions with three replicas, and no client."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.measuring.report import Row
from bench.nodes.subject import Subject
from quorumlog.testing.nodes import LocalNodes

GOAL_PERCENT = 1.5  # of a processor core, the three nodes together
SETTLE_S = 15.0  # from the last request until all intervals of the nodes have reached their rest
REST_S, QUICK_REST_S = 60.0, 15.0


async def measure(nodes: LocalNodes, partitions: int, rest_s: float) -> list[Row]:
    """Takes SETTLE_S + rest_s seconds. The clients are closed meanwhile."""
    async with Subject(nodes).topic(partitions):
        await asyncio.sleep(SETTLE_S)
        pids = list(_pids(nodes))
        before, start_s = [processor_time_s([pid]) for pid in pids], time.perf_counter()
        await asyncio.sleep(rest_s)
        passed_s = time.perf_counter() - start_s
        used = [processor_time_s([pid]) - was for pid, was in zip(pids, before, strict=True)]
    shares = [100 * used_s / passed_s for used_s in used]
    together = Row(
        name="processor time of the nodes at rest, together", unit="% of a core", rounds=[sum(shares)],
        goal=GOAL_PERCENT, at_least=False,
    )  # fmt: skip
    return [Row(name=f"processor time of each node at rest, {rest_s:g} s", unit="% of a core", rounds=shares), together]


def processor_time_s(pids: Iterable[int]) -> float:
    """User and system time of these processes since their start: all their threads, not their children."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # user and system, proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def _pids(nodes: LocalNodes) -> Iterator[int]:
    for node_id in nodes.ids:
        process = nodes.process(node_id)
        assert process is not None, f"node {node_id} does not run"
        yield process.pid
