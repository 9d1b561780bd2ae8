"""Which partitions a broker holds, how many it leads, and which partitions have no leader or an ELR.

An image carries one, so that an operation on a broker looks at that broker's partitions and not at all of the cluster.
It follows from the partitions alone: it is in no record and not in the state hash. Like the image it is immutable and
shares structure with its neighbours; most changes of an ISR leave it as it is.
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
    """held: by broker, the partitions that it is a replica of. led: by broker, how many it leads; never 0.

    with_elr: partitions that have eligible leader replicas (KIP-966).
    """

    held: Map[NodeId, Partitions] = field(default_factory=Map)
    led: Map[NodeId, int] = field(default_factory=Map)
    leaderless: Partitions = NO_PARTITIONS
    with_elr: Partitions = NO_PARTITIONS

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
        elif before.leader == after.leader and _has_elr(before) == _has_elr(after):
            return self
        led = self.led
        if before is not None and before.leader != NO_NODE:
            led = _with_count(led, before.leader, -1)
        if after.leader != NO_NODE:
            led = _with_count(led, after.leader, 1)
        return PartitionIndex(
            held,
            led,
            _with_index(self.leaderless, topic_id, index, present=after.leader == NO_NODE),
            _with_index(self.with_elr, topic_id, index, present=_has_elr(after)),
        )

    def without_topic(self, topic: TopicImage) -> PartitionIndex:
        held, led = self.held, self.led
        partitions = topic.partitions.values()
        for broker_id in sorted({replica for partition in partitions for replica in partition.replicas}):
            held = _with(held, broker_id, held[broker_id].delete(topic.id))
        for partition in partitions:
            if partition.leader != NO_NODE:
                led = _with_count(led, partition.leader, -1)
        return PartitionIndex(held, led, _without(self.leaderless, topic.id), _without(self.with_elr, topic.id))


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
    before = partitions.get(topic_id, 0)
    bits = before | 1 << index if present else before & ~(1 << index)
    if bits == before:
        return partitions
    return partitions.set(topic_id, bits) if bits else partitions.delete(topic_id)


def _without(partitions: Partitions, topic_id: Uuid) -> Partitions:
    return partitions.delete(topic_id) if topic_id in partitions else partitions


def _has_elr(partition: PartitionRegistration) -> bool:
    return bool(partition.eligible_leader_replicas)


def _with_count(led: Map[NodeId, int], broker_id: NodeId, change: int) -> Map[NodeId, int]:
    count = led.get(broker_id, 0) + change
    assert count >= 0, f"broker {broker_id} leads {count} partitions"
    return led.set(broker_id, count) if count else led.delete(broker_id)
