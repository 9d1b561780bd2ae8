"""Which partitions a broker holds, how many it leads, and which partitions have no leader.

An image carries one, so that an operation on a broker looks at that broker's partitions and not at all of the cluster.
It follows from the partitions alone: it is in no record and not in the state hash. Like the image it is immutable and
shares structure with its neighbours; a change that touches neither replicas nor leader leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from immutables import Map

from quorum.metadata.registration import PartitionRegistration
from quorumlog.ids import NO_NODE, NodeId, Uuid

if TYPE_CHECKING:
    from quorum.metadata.image import TopicImage

Partitions = Map[Uuid, int]  # by topic id: a set of partition indexes, as bits of a number; never 0
NO_PARTITIONS: Partitions = Map()


def indexes_in(bits: int) -> Iterator[int]:
    """The partition indexes of a set of `Partitions`, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """held: by broker, the partitions that it is a replica of. led: by broker, how many it leads; never 0."""

    held: Map[NodeId, Partitions] = field(default_factory=Map)
    led: Map[NodeId, int] = field(default_factory=Map)
    leaderless: Partitions = NO_PARTITIONS

    def held_by(self, broker_id: NodeId) -> Partitions:
        return self.held.get(broker_id, NO_PARTITIONS)

    def with_partition(
        self, topic_id: Uuid, index: int, before: PartitionRegistration | None, after: PartitionRegistration
    ) -> PartitionIndex:
        """before: None for a new partition."""
        held = self.held
        if before is None or before.replicas != after.replicas:
            for broker_id in () if before is None else before.replicas:
                held = _with_bit(held, broker_id, topic_id, index, present=False)
            for broker_id in after.replicas:
                held = _with_bit(held, broker_id, topic_id, index, present=True)
        elif before.leader == after.leader:
            return self
        led, leaderless = self.led, self.leaderless
        if before is not None and before.leader != NO_NODE:
            led = _with_count(led, before.leader, -1)
        if after.leader != NO_NODE:
            led = _with_count(led, after.leader, 1)
        had_none = before is not None and before.leader == NO_NODE
        if had_none != (after.leader == NO_NODE):
            leaderless = _with_index(leaderless, topic_id, index, present=not had_none)
        return PartitionIndex(held, led, leaderless)

    def without_topic(self, topic: TopicImage) -> PartitionIndex:
        held, led = self.held, self.led
        partitions = topic.partitions.values()
        for broker_id in sorted({replica for partition in partitions for replica in partition.replicas}):
            held = _with(held, broker_id, held[broker_id].delete(topic.id))
        for partition in partitions:
            if partition.leader != NO_NODE:
                led = _with_count(led, partition.leader, -1)
        leaderless = self.leaderless
        return PartitionIndex(held, led, leaderless.delete(topic.id) if topic.id in leaderless else leaderless)


def index_of(topics: Iterable[TopicImage]) -> PartitionIndex:
    """The index, computed from nothing: what an image's index must always equal."""
    index = PartitionIndex()
    for topic in topics:
        for number, partition in topic.partitions.items():
            index = index.with_partition(topic.id, number, None, partition)
    return index


def _with_bit(
    held: Map[NodeId, Partitions], broker_id: NodeId, topic_id: Uuid, index: int, *, present: bool
) -> Map[NodeId, Partitions]:
    partitions = _with_index(held.get(broker_id, NO_PARTITIONS), topic_id, index, present=present)
    return _with(held, broker_id, partitions)


def _with(held: Map[NodeId, Partitions], broker_id: NodeId, partitions: Partitions) -> Map[NodeId, Partitions]:
    if partitions:
        return held.set(broker_id, partitions)
    return held.delete(broker_id) if broker_id in held else held


def _with_index(partitions: Partitions, topic_id: Uuid, index: int, *, present: bool) -> Partitions:
    bits = partitions.get(topic_id, 0)
    bits = bits | 1 << index if present else bits & ~(1 << index)
    if bits:
        return partitions.set(topic_id, bits)
    return partitions.delete(topic_id) if topic_id in partitions else partitions


def _with_count(led: Map[NodeId, int], broker_id: NodeId, change: int) -> Map[NodeId, int]:
    count = led.get(broker_id, 0) + change
    assert count >= 0, f"broker {broker_id} leads {count} partitions"
    return led.set(broker_id, count) if count else led.delete(broker_id)
