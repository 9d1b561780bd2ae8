"""Memory of a node: resident memory after the loads of this run."""

from __future__ import annotations

from bench.measuring.machine import MEGABYTE
from bench.measuring.report import Row
from quorumlog.testing.nodes import LocalNodes

GOAL_MB = 150.0


def measure(nodes: LocalNodes) -> list[Row]:
    import psutil

    resident = []
    for node_id in nodes.ids:
        process = nodes.process(node_id)
        assert process is not None, f"node {node_id} does not run"
        resident.append(psutil.Process(process.pid).memory_info().rss / MEGABYTE)
    return [
        Row(name="resident memory of a node after the load", unit="MB", rounds=resident, goal=GOAL_MB, at_least=False)
    ]
