"""The brokers that may get replicas: the lightest that fits, rack by rack.

Heaps hold (weight, replicas, broker id) of each rack's brokers, and of the lightest of each rack. An entry that is not
its broker's present load is stale and is dropped when it comes up, so a choice costs O(log brokers) and a few looks
aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from quorumlog.ids import NodeId
from quorumlog.planner.cluster import Cluster, Partition, Weigh, by_bytes

NO_BOUND = float("inf")


class Load(NamedTuple):
    """Compared in this order, so that choices are the same on every machine."""

    weight: int
    replicas: int
    node_id: NodeId


class TargetPool:
    def __init__(self, cluster: Cluster, targets: Iterable[NodeId], weigh: Weigh = by_bytes) -> None:
        """targets: brokers that may get replicas; those that take nothing new are left out."""
        self._cluster, self._weigh = cluster, weigh
        usable = [one for one in sorted(set(targets)) if one in cluster.brokers and cluster.brokers[one].takes_new]
        weights, counts = dict.fromkeys(usable, 0), dict.fromkeys(usable, 0)
        for node_id, partition in cluster.replicas():
            if node_id in weights:
                weights[node_id] += weigh(partition)
                counts[node_id] += 1
        self._room = {one: cluster.brokers[one].room_bytes for one in usable}
        self._loads = {one: Load(weights[one], counts[one], one) for one in usable}
        self._racks: dict[str, list[Load]] = {}
        for one, load in self._loads.items():
            self._racks.setdefault(cluster.rack_of(one), []).append(load)
        for heap in self._racks.values():
            heapify(heap)
        self._lightest = [(heap[0], rack) for rack, heap in self._racks.items()]
        heapify(self._lightest)

    def __len__(self) -> int:
        return len(self._loads)

    def take_spread(self, partition: Partition, kept: Sequence[NodeId]) -> NodeId | None:
        """A broker for one more replica beside `kept`, in the rack with the fewest of them. None: none can take it."""
        held = [self._cluster.rack_of(node_id) for node_id in kept]
        found = self.take(partition, kept, lambda rack: rack not in held)
        for rack in sorted(set(held), key=lambda one: (held.count(one), one)):
            if found is None and rack in self._racks:
                found = self._taken(partition, self._of_rack(rack, partition, kept, NO_BOUND))
        return found

    def take(
        self,
        partition: Partition,
        kept: Sequence[NodeId],
        allowed: Callable[[str], bool],
        bound: float = NO_BOUND,
    ) -> NodeId | None:
        """The lightest broker of an allowed rack that is not in `kept` and has room. It gets the replica.

        bound: inclusive, of its weight before. None: there is no such broker.
        """
        seen: dict[str, Load] = {}
        found = None
        while self._lightest and found is None and self._lightest[0][0].weight <= bound:
            load, rack = heappop(self._lightest)
            if rack in seen or self._top(rack) != load:
                continue  # stale, or the same entry once more
            seen[rack] = load
            found = self._of_rack(rack, partition, kept, bound) if allowed(rack) else None
        for rack, load in seen.items():
            heappush(self._lightest, (load, rack))
        return self._taken(partition, found)

    def _of_rack(self, rack: str, partition: Partition, kept: Sequence[NodeId], bound: float) -> Load | None:
        heap, found = self._racks[rack], None
        aside: list[Load] = []
        while heap and found is None and heap[0].weight <= bound:
            load = heappop(heap)
            if self._loads[load.node_id] != load:
                continue
            aside.append(load)
            if load.node_id not in kept and self._room[load.node_id] >= partition.size_bytes:
                found = load
        for load in aside:
            heappush(heap, load)
        return found

    def _top(self, rack: str) -> Load:
        """A rack keeps its brokers, each with one present entry, so its heap never runs empty."""
        heap = self._racks[rack]
        while self._loads[heap[0].node_id] != heap[0]:
            heappop(heap)
        return heap[0]

    def _taken(self, partition: Partition, load: Load | None) -> NodeId | None:
        if load is None:
            return None
        new = Load(load.weight + self._weigh(partition), load.replicas + 1, load.node_id)
        rack = self._cluster.rack_of(load.node_id)
        self._loads[load.node_id] = new
        self._room[load.node_id] -= partition.size_bytes
        heappush(self._racks[rack], new)
        heappush(self._lightest, (self._top(rack), rack))
        return load.node_id
