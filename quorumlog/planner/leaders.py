"""The plan that gives brokers about as many preferred leaders each, and copies nothing.

Only the order of replicas changes, so leaders move with the next preferred election. First each partition whose leader
is above the mean goes to a replica below it, if it has one. Then, while a broker leads at least two more than another
that it can hand a partition to, perhaps by way of others, it does: to the one it reaches in the fewest steps, of these
to the lightest. When no broker can, no order of these replicas has a smaller maximum: a chain of hand-overs that would
help would have been found.

Cost: O(P) for P partitions, then one search for each chain, O(B²) for B brokers; each makes the sum of squares smaller.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from quorumlog.ids import NO_NODE, NodeId
from quorumlog.planner.cluster import Assignment, Cluster, TopicPartition
from quorumlog.planner.plan import Plan, make_plan

Edge = tuple[NodeId, NodeId]  # leads, could lead


def balance_leaders(cluster: Cluster) -> Plan:
    leading = _Leading(cluster)
    leading.even_out()
    wanted = {}
    for key, leader in leading.changed.items():
        replicas = cluster.partitions[key].replicas
        rest = tuple(one for one in replicas if one != leader)
        wanted[key] = Assignment.of((leader, *rest))
    return make_plan(cluster, wanted)


class _Leading:
    """Which broker is the preferred leader of what. Partitions without a live replica are left as they are."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._counts = dict.fromkeys(sorted(cluster.live), 0)
        self._edges: dict[Edge, dict[TopicPartition, None]] = {}  # ordered, so that choices repeat
        self._reach: dict[NodeId, dict[NodeId, None]] = {}
        self.changed: dict[TopicPartition, NodeId] = {}
        for key in sorted(cluster.partitions):
            replicas = cluster.partitions[key].replicas
            if replicas and replicas[0] in self._counts:
                self._counts[replicas[0]] += 1
                self._put(key, replicas[0])

    def even_out(self) -> None:
        self._hand_to_those_below()
        open_ones = set(self._counts)
        while open_ones:
            heaviest = max(open_ones, key=lambda one: (self._counts[one], -one))
            chain = self._chain(heaviest)
            if chain is None:
                open_ones.remove(heaviest)
                continue
            for source, target in pairwise(chain):
                self._hand_over(next(iter(self._edges[source, target])), source, target)

    def _hand_to_those_below(self) -> None:
        mean = sum(self._counts.values()) / max(1, len(self._counts))
        for key in sorted(self._cluster.partitions):
            replicas = self._cluster.partitions[key].replicas
            source = replicas[0] if replicas else NO_NODE
            if self._counts.get(source, 0) >= mean + 1:
                below = [one for one in replicas if one in self._counts and self._counts[one] <= mean - 1]
                if below:
                    self._hand_over(key, source, min(below, key=lambda one: (self._counts[one], one)))

    def _chain(self, source: NodeId) -> list[NodeId] | None:
        """The shortest way to a broker that leads at least two fewer; of equally short ones to the lightest."""
        goal = self._counts[source] - 2
        came_from: dict[NodeId, NodeId] = {source: source}
        level = deque([source])
        while level:
            following: deque[NodeId] = deque()
            for one in level:
                for other in self._reach.get(one, ()):
                    if other not in came_from and self._edges.get((one, other)):
                        came_from[other] = one
                        following.append(other)
            ends = [one for one in following if self._counts[one] <= goal]
            if ends:
                return _way(came_from, min(ends, key=lambda one: (self._counts[one], one)))
            level = following
        return None

    def _hand_over(self, key: TopicPartition, source: NodeId, target: NodeId) -> None:
        for other in self._cluster.partitions[key].replicas:
            self._edges.get((source, other), {}).pop(key, None)
        self._counts[source] -= 1
        self._counts[target] += 1
        self._put(key, target)
        self.changed[key] = target

    def _put(self, key: TopicPartition, leader: NodeId) -> None:
        for other in self._cluster.partitions[key].replicas:
            if other != leader and other in self._counts:
                self._edges.setdefault((leader, other), {})[key] = None
                self._reach.setdefault(leader, {})[other] = None


def _way(came_from: dict[NodeId, NodeId], end: NodeId) -> list[NodeId]:
    way = [end]
    while came_from[way[-1]] != way[-1]:
        way.append(came_from[way[-1]])
    return way[::-1]
