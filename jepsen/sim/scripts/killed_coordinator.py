"""The coordinator of a transaction dies between its decision and the last marker: its successor has to write them.

A decision waits for a few ms only, so a broker that dies at any time hardly ever leaves one behind.
"""

from __future__ import annotations

import random

from jepsen.sim.cluster import SimCluster
from jepsen.sim.invariants.coordinators import coordinators_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.scripts.aimed import Script
from jepsen.sim.strikes.stage import bring_up
from quorumlog_broker.coordinator.runtime.coordinator import State
from quorumlog_broker.coordinator.transactions.shard import TransactionShard

KILLED_WITH_MARKERS = "coordinators killed before their markers"
_WAIT_MS = 8_000
_DEAD_MS = (200, 4_000)


def killed_coordinator(cluster: SimCluster, rng: random.Random) -> Script:
    found: list[Machine] = []

    def has_decided() -> bool:
        found[:] = [one for one in cluster.brokers if _waits_for_markers(one)]
        return bool(found)

    yield has_decided, _WAIT_MS
    machine = found[0]
    machine.kill()
    cluster.count(KILLED_WITH_MARKERS)
    try:
        yield (lambda: False), rng.randint(*_DEAD_MS)
    finally:
        bring_up(machine)


def _waits_for_markers(machine: Machine) -> bool:
    if not machine.alive or machine.paused:
        return False
    shards = [one._shard for one in coordinators_of(machine) if one.state is State.ACTIVE]
    return any(isinstance(shard, TransactionShard) and bool(shard._completion._missing) for shard in shards)
