"""Plans that even out what brokers hold: over all brokers, or onto brokers that were added.

Brokers above the mean give, the heaviest first; those below it get, the lightest first. A broker first gives large
replicas that neither take it below the mean nor lift the other above it. If it is still out of tolerance, it gives
replicas that overshoot, as long as the other ends up lighter than the giver was. So the heaviest broker never gets
heavier, the lightest never gets lighter, and every step makes the sum of squares smaller. A replica moves at most once,
the rack spread of its partition never gets worse, and steps end once both brokers are within tolerance of the mean.

Cost: each replica of a giver is looked at once, and at most OVERSHOOTS of them once more; a look costs
O(racks + log brokers) at worst. docs/operations.md states the time at 200,000 partitions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from typing import NamedTuple

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import Assignment, CannotPlan, Cluster, TopicPartition, Weigh, by_bytes, spread
from quorumlog.planner.plan import Plan, make_plan
from quorumlog.planner.target_pool import TargetPool

OVERSHOOTS = 1_000
TOLERANCE = 0.05  # a broker may be this part of the mean above or below it


class Limits(NamedTuple):
    """The plan stays within these. None: no limit."""

    replicas: int | None = None
    size_bytes: int | None = None


NO_LIMITS = Limits()


def balance(
    cluster: Cluster, weigh: Weigh = by_bytes, *, tolerance: float = TOLERANCE, limits: Limits = NO_LIMITS
) -> Plan:
    """Every live broker holds about as much as the others. Raises CannotPlan."""
    return _Balancing(cluster, weigh, cluster.live, cluster.live, tolerance, limits).plan()


def add_brokers(
    cluster: Cluster,
    added: Collection[NodeId],
    weigh: Weigh = by_bytes,
    *,
    tolerance: float = TOLERANCE,
    limits: Limits = NO_LIMITS,
) -> Plan:
    """Fill these brokers up to the mean from the others, among which nothing moves. Raises CannotPlan."""
    unusable = sorted(one for one in added if one not in cluster.brokers or not cluster.brokers[one].takes_new)
    if unusable:
        raise CannotPlan(f"broker {unusable[0]} is not registered, is fenced, or has only cordoned log directories")
    targets = frozenset(added)
    return _Balancing(cluster, weigh, cluster.live - targets, targets, tolerance, limits).plan()


class _Balancing:
    def __init__(
        self,
        cluster: Cluster,
        weigh: Weigh,
        sources: frozenset[NodeId],
        targets: frozenset[NodeId],
        tolerance: float,
        limits: Limits,
    ) -> None:
        if not 0 <= tolerance < 1:
            raise CannotPlan(f"a tolerance of {tolerance} is no part of the mean: give at least 0 and less than 1")
        self._cluster, self._weigh = cluster, weigh
        held: dict[NodeId, list[tuple[int, TopicPartition]]] = {one: [] for one in sources | targets}
        for node_id, partition in cluster.replicas():
            if node_id in held:
                held[node_id].append((weigh(partition), partition.key))
        self._loads = {one: sum(weight for weight, _ in pieces) for one, pieces in held.items()}
        self._mean = sum(self._loads.values()) / max(1, len(self._loads))
        self._slack = self._mean * tolerance
        heaviest_first = sorted(sources, key=lambda one: (-self._loads[one], one))
        self._givers = [(one, sorted(held[one])) for one in heaviest_first if self._loads[one] > self._mean]
        takers = [one for one in targets if self._loads[one] < self._mean]
        self._pool = TargetPool(cluster, takers, weigh)
        self._left = limits
        self._now: dict[TopicPartition, tuple[NodeId, ...]] = {}

    def plan(self) -> Plan:
        for giver, held in self._givers:
            kept = self._give(giver, reversed(held), overshoots=False)
            if self._loads[giver] > self._mean:
                kept.reverse()
                first = bisect_right(kept, self._loads[giver] - self._mean, key=lambda piece: piece[0])
                self._give(
                    giver, iter([*kept[first : first + OVERSHOOTS], *reversed(kept[:first][-OVERSHOOTS:])]), True
                )
        return make_plan(self._cluster, {key: Assignment.of(replicas) for key, replicas in self._now.items()})

    def _give(
        self, giver: NodeId, pieces: Iterator[tuple[int, TopicPartition]], overshoots: bool
    ) -> list[tuple[int, TopicPartition]]:
        """Returns the pieces that stay, in the order given."""
        kept = []
        for piece in pieces:
            weight, key = piece
            if weight <= 0 or not self._moves(giver, weight, key, overshoots):
                kept.append(piece)
        return kept

    def _moves(self, giver: NodeId, weight: int, key: TopicPartition, overshoots: bool) -> bool:
        load = self._loads[giver]
        if load <= self._mean or not (overshoots or load - weight >= self._mean):
            return False
        partition = self._cluster.partitions[key]
        if not self._is_within_limits(partition.size_bytes):
            return False
        bound = load - weight - 1 if overshoots else self._mean - weight
        if load <= self._mean + self._slack:  # it gives only to one that is out of tolerance
            bound = min(bound, self._mean - self._slack)
        replicas = self._now.get(key, partition.replicas)
        target = self._pool.take(partition, replicas, lambda rack: self._keeps_spread(replicas, giver, rack), bound)
        if target is None:
            return False
        self._loads[giver] -= weight
        self._now[key] = tuple(target if one == giver else one for one in replicas)
        self._left = Limits(
            None if self._left.replicas is None else self._left.replicas - 1,
            None if self._left.size_bytes is None else self._left.size_bytes - partition.size_bytes,
        )
        return True

    def _is_within_limits(self, size_bytes: int) -> bool:
        replicas, left_bytes = self._left
        return (replicas is None or replicas > 0) and (left_bytes is None or left_bytes >= size_bytes)

    def _keeps_spread(self, replicas: tuple[NodeId, ...], giver: NodeId, rack: str) -> bool:
        """The spread gets no worse if the giver's replica goes to this rack."""
        if rack == self._cluster.rack_of(giver):
            return True
        others = [self._cluster.rack_of(one) for one in replicas if one != giver and one in self._cluster.brokers]
        before, after = spread([*others, self._cluster.rack_of(giver)]), spread([*others, rack])
        return after.racks >= before.racks and after.fewest_together >= before.fewest_together
