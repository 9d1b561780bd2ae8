"""Time without a controller: after kill -9, after SIGSTOP, and after a graceful stop of the active one.

Measured from outside: a client commits small changes of the metadata through a broker that lives on. What counts is the
longest time between two acknowledgements in a row around the fault.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.measuring.report import Row, percentile
from bench.nodes.subject import Subject
from bench.quorum.controller_load import ControllerLoad
from quorumlog.client.real_edges import make_transport
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import Address
from quorumlog.testing.cluster import LocalCluster
from quorumlog.testing.nodes import LocalNodes

TOPIC = "controller-bench"
TRIALS, QUICK_TRIALS = 10, 3
ACKS_BEFORE, ACKS_AFTER = 20, 20
FOLLOWED_S = 1.0  # a new leader is followed by all for so long before the next fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """strike, heal: a node's process. median_s, limit_s: goals; at most one trial may be above limit_s."""

    name: str
    strike: Callable[[LocalNodes, NodeId], Any]
    heal: Callable[[LocalNodes, NodeId], Any]
    median_s: float | None
    limit_s: float


FAULTS = (
    Fault(
        name="kill -9",
        strike=lambda nodes, node: nodes.kill(node),
        heal=lambda nodes, node: nodes.start([node]),
        median_s=0.3,
        limit_s=1.0,
    ),
    Fault(
        name="SIGSTOP",
        strike=lambda nodes, node: nodes.pause(node),
        heal=lambda nodes, node: nodes.resume(node),
        median_s=1.5,
        limit_s=3.0,
    ),
    Fault(
        name="a graceful stop",
        strike=lambda nodes, node: nodes.stop([node]),
        heal=lambda nodes, node: nodes.start([node]),
        median_s=None,
        limit_s=0.1,
    ),
)


async def measure(cluster: LocalCluster, trials: int) -> list[Row]:
    """The faults take turns, so that a slow change of the machine favours none."""
    subject = Subject(cluster.nodes)
    admin = subject.admin()
    gaps: dict[str, list[float]] = {fault.name: [] for fault in FAULTS}
    try:
        await subject.create(TOPIC, 1)
        for _ in range(trials):
            for fault in FAULTS:
                gaps[fault.name].append(await _trial(cluster.nodes, admin, fault))
    finally:
        await admin.close()
    return [row for fault in FAULTS for row in _rows(fault, gaps[fault.name])]


async def _trial(nodes: LocalNodes, admin: Any, fault: Fault) -> float:
    await asyncio.sleep(FOLLOWED_S)
    victim = (await admin.describe_quorum()).leader_id
    survivor = next(node for node in nodes.ids if node != victim)
    address = Address("127.0.0.1", nodes.layout.node(survivor).ports.grpc)
    connection = make_transport("grpc").connect(address, internal=False, client_id="bench")
    load = ControllerLoad(connection, TOPIC)
    load.start()
    try:
        await load.acknowledged(ACKS_BEFORE)
        struck = time.perf_counter()
        await asyncio.to_thread(fault.strike, nodes, victim)
        await load.acknowledged(ACKS_AFTER)
        gap_s = load.longest_gap_s(struck)
    finally:
        await load.stop()
        await connection.close()
        fault.heal(nodes, victim)
    await asyncio.to_thread(nodes.wait_ready, [victim])
    return gap_s


def _rows(fault: Fault, gaps: Sequence[float]) -> list[Row]:
    above = sum(gap > fault.limit_s for gap in gaps)
    name = f"no controller after {fault.name}"
    limit = f"  trials above {fault.limit_s:g} s, of {len(gaps)}"
    return [
        Row(name=name, unit="s", rounds=list(gaps), goal=fault.median_s, at_least=False),
        Row(name="  p99", unit="s", rounds=[percentile(gaps, 99)]),
        Row(name=limit, unit="trials", rounds=[above], goal=1, at_least=False),
    ]
