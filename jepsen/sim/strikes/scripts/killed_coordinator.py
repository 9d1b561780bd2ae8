"""A coordinator dies at the moment when its successor has the most to do.

- killed-coordinator: that of a transaction, between its decision and the last marker: the successor has to write them.
  A decision waits for a few ms only, so a broker that dies at any time hardly ever leaves one behind.
- killed-in-batch: that of a joint transaction whose children are open, or whose decision waits to be carried out. The
  successor has to know each child by its token, and what was decided. Or one that has just written down that a run has
  given up a batch, whose tasks may still begin.
- killed-holder: that of a group for which an open transaction holds an offset of a topic that is just being deleted
  (workload/groups/reborn_topic.py). No coordinator hears of the deletion, and the successor loads what the transaction
  holds.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.coordinators.coordinators import Coordinator, coordinators_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.strikes.scripts.aimed import Script
from jepsen.sim.workload.groups.reborn_topic import REBORN
from quorumlog.records.coordinator.joint import GivenUpKey
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime import coordinator as runtime
from quorumlog_broker.coordinator.transactions.shard import TransactionShard

KILLED_WITH_MARKERS = "coordinators killed before their markers"
KILLED_IN_OPEN_BATCH = "coordinators killed in an open batch"
KILLED_BEHIND_ABORT = "coordinators killed behind the abort of a batch"
KILLED_WITH_OFFSETS = "coordinators killed before they heard of a deletion"
_WAIT_MS = 8_000
_DEAD_MS = (200, 4_000)
_BEHIND_ABORT = 0.4


def killed_coordinator(cluster: SimCluster, rng: random.Random) -> Script:
    yield from _kill_when(cluster, rng, _waits_for_markers, KILLED_WITH_MARKERS)


def killed_in_batch(cluster: SimCluster, rng: random.Random) -> Script:
    if rng.random() < _BEHIND_ABORT:
        known = {one: _given_up(one) for machine in cluster.brokers for one in _active(machine)}
        is_new = lambda one: bool(_given_up(one) - known.get(one, _given_up(one)))  # noqa: E731
        yield from _kill_when(cluster, rng, is_new, KILLED_BEHIND_ABORT)
        return
    wanted = rng.choice((1, 2, 1_000))  # children that are open; never so many: a decision that waits
    yield from _kill_when(cluster, rng, lambda one: _has_open_batch(one, wanted), KILLED_IN_OPEN_BATCH)


def killed_holder(cluster: SimCluster, rng: random.Random) -> Script:
    yield from _kill_when(cluster, rng, _holds_of_reborn, KILLED_WITH_OFFSETS)


def _kill_when(cluster: SimCluster, rng: random.Random, is_due: Callable[[Coordinator], bool], what: str) -> Script:
    """Kill the first broker with a coordinator of which this is true. what: for the report."""
    found: list[Machine] = []

    def is_found() -> bool:
        found[:] = [machine for machine in cluster.brokers if any(map(is_due, _active(machine)))]
        return bool(found)

    yield is_found, _WAIT_MS
    machine = found[0]
    machine.kill()
    cluster.count(what)
    try:
        yield (lambda: False), rng.randint(*_DEAD_MS)
    finally:
        machine.bring_up()


def _active(machine: Machine) -> list[Coordinator]:
    if not machine.alive or machine.paused:
        return []
    return [one for one in coordinators_of(machine) if one.state is runtime.State.ACTIVE]


def _waits_for_markers(coordinator: Coordinator) -> bool:
    shard = coordinator._shard
    return isinstance(shard, TransactionShard) and bool(shard._completion._missing)


def _has_open_batch(coordinator: Coordinator, wanted: int) -> bool:
    shard = coordinator._shard
    if not isinstance(shard, TransactionShard):
        return False
    return any(len(group.open) >= wanted or group.preparing for group in shard._table.joint_groups.values())


def _given_up(coordinator: Coordinator) -> set[GivenUpKey]:
    shard = coordinator._shard
    return set(shard._table.given_up) if isinstance(shard, TransactionShard) else set()


def _holds_of_reborn(coordinator: Coordinator) -> bool:
    """Its record is committed, so the client has its answer, or is about to."""
    shard = coordinator._shard
    if not isinstance(shard, GroupShard):
        return False
    producers = shard._offsets.pending._producers.values()
    of_groups = [found.items() for groups in producers for found in groups.values()]
    held = [one for found in of_groups for (topic, _), one in found if topic.startswith(REBORN)]
    return any(one.record < coordinator.replica.core.high_watermark for one in held)
