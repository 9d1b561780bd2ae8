"""Pairs of faults that strike within half a second of each other, where the second one finds the work of the first.

The victims depend on each other: a partition's leader and one of its followers, two voters, or the same node twice.
Independent strikes meet in this way too seldom.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from jepsen.sim.cluster import SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.profiles.plan import AIMED, OF_CONTROLLERS, Plan
from jepsen.sim.strikes.stage import Stage
from quorumlog.ids import NO_NODE

SAME, PARTNERS = "pairs on one node", "pairs on partners"
_GAPS_MS = (0, 5, 50, 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    relation: str
    first: str
    second: str
    gap_ms: int

    @property
    def is_same(self) -> bool:
        """Whether the second fault strikes where the first one did."""
        return self.relation == SAME


def draw_pair(rng: random.Random, plan: Plan) -> Pair | None:
    """None if the plan has no faults that can be aimed."""
    faults = [fault for fault in plan.faults if fault in AIMED]
    if not faults:
        return None
    return Pair(
        relation=rng.choice((SAME, PARTNERS)),
        first=rng.choice(faults),
        second=rng.choice(faults),
        gap_ms=rng.randint(0, rng.choice(_GAPS_MS)),
    )


def victims_of(pair: Pair, stage: Stage[SimCluster]) -> tuple[Machine, Machine]:
    """Of the first fault, the main one first. The second fault strikes the same, or the other one first."""
    return _voters(stage) if pair.first in OF_CONTROLLERS or pair.second in OF_CONTROLLERS else _partners(stage)


def _partners(stage: Stage[SimCluster]) -> tuple[Machine, Machine]:
    """The leader of a partition and one of its followers, in either order; or two voters."""
    cluster, rng = stage.cluster, stage.rng
    led = [
        (partition.leader, member)
        for topic in cluster.image.sorted_topics()
        for _, partition in topic.sorted_partitions()
        for member in partition.replicas
        if partition.leader != NO_NODE and member != partition.leader
    ]
    if not led or rng.random() < 0.25:
        return _voters(stage)
    by_id = {machine.node_id: machine for machine in cluster.machines.values()}
    one, other = (by_id[node_id] for node_id in rng.choice(led))
    return (one, other) if rng.random() < 0.5 else (other, one)


def _voters(stage: Stage[SimCluster]) -> tuple[Machine, Machine]:
    """The quorum's leader and another voter, in either order."""
    controllers = stage.cluster.controllers
    leader = stage.cluster.active_controller() or stage.rng.choice(controllers)
    other = stage.rng.choice([machine for machine in controllers if machine is not leader])
    return (leader, other) if stage.rng.random() < 0.5 else (other, leader)
