"""A scripted fault: a leader goes on after another was elected, because it gets no metadata, and comes back in sync.

The other one is elected in order, as the preferred leader, so the late one stays in the ISR. Producers are cut off from
it and write to its successor, which is soon longer. The late one appended what was still on its way: at these offsets
their logs differ. Then it hears of the election, and fetches from the end of its log. Its successor may not count this
position as an acknowledgement, or it commits what nobody but itself has (high-watermark-on-disk).
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import CLIENT_HOST, READER_HOST, SimCluster
from jepsen.sim.strikes.scripts.aimed import Script, Target, choose_target, let_pass
from jepsen.sim.strikes.scripts.late_settings import LateMetadata
from quorumlog.ids import NodeId

LATE_LEADERS = "leaders that came back to longer successors"
_ASKED_MS, _PASSED_MS = 3_000, 2_000
_CUT_MS = (0, 20, 100)  # after the election: what producers send until then differs


def late_leader(cluster: SimCluster, rng: random.Random) -> Script:
    target = choose_target(cluster, rng)
    if target is None:
        return
    late, successor = target.leader, target.follower
    hosts = (CLIENT_HOST, READER_HOST)
    held: LateMetadata | None = None
    try:
        cluster.orders.reassign(target.topic, target.index, _first(target, successor.node_id))
        yield lambda: _replicas(target)[:1] == (successor.node_id,), _ASKED_MS
        held = LateMetadata(cluster, late)
        cluster.orders.elect()
        yield lambda: _leader(target) == successor.node_id, _ASKED_MS
        yield from let_pass(cluster, rng.choice(_CUT_MS))
        for host in hosts:
            cluster.network.cut_both(host, late.host)
        yield target.is_passed, _PASSED_MS
        cluster.count(LATE_LEADERS)
        held.end()
        yield from let_pass(cluster, 300)  # it fetches
    finally:
        if held is not None:
            held.end()
        for host in hosts:
            cluster.network.heal(host, late.host)
            cluster.network.heal(late.host, host)


def _first(target: Target, first: NodeId) -> tuple[NodeId, ...]:
    return (first, *(one for one in _replicas(target) if one != first))


def _replicas(target: Target) -> tuple[NodeId, ...]:
    partition = target.partition()
    return () if partition is None else tuple(partition.replicas)


def _leader(target: Target) -> NodeId | None:
    partition = target.partition()
    return None if partition is None else partition.leader
