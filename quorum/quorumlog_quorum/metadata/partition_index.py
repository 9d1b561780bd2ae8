"""Which partitions a broker holds, how many it leads, and which have no leader, an ELR, or a reassignment under way.

An image carries one, so that an operation on a broker looks at that broker's partitions and not at all of the cluster.
It follows from the partitions alone: it is in no record and not in the state hash. Like the image it is immutable and
shares structure with its neighbours; most changes of an ISR leave it as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from immutables import Map

from quorumlog.ids import NO_NODE, NodeId, Uuid
from quorumlog_quorum.metadata.registration import PartitionRegistration

if TYPE_CHECKING:
    from quorumlog_quorum.metadata.image import TopicImage

Partitions = Map[Uuid, int]  # by topic id: a set of partition indexes, as bits of a number; never 0
NO_PARTITIONS: Partitions = Map()
Change = tuple[int, PartitionRegistration | None, PartitionRegistration]  # (index, before, after); before: None if new


def indexes_in(bits: int) -> Iterator[int]:
    """The partition indexes of a set of `Partitions`, ascending."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """held: by broker, the partitions that it is a replica of. led: by broker, how many it leads; never 0.

    with_elr: partitions that have eligible leader replicas (KIP-966). reassigning: those with replicas that come or go.
    """

    held: Map[NodeId, Partitions] = field(default_factory=Map)
    led: Map[NodeId, int] = field(default_factory=Map)
    leaderless: Partitions = NO_PARTITIONS
    with_elr: Partitions = NO_PARTITIONS
    reassigning: Partitions = NO_PARTITIONS

    def held_by(self, broker_id: NodeId) -> Partitions:
        return self.held.get(broker_id, NO_PARTITIONS)

    def held_count(self, broker_id: NodeId) -> int:
        """Of how many partitions it is a replica: a step for each topic."""
        return sum(bits.bit_count() for bits in self.held_by(broker_id).values())

    def with_changes(self, topic_id: Uuid, changes: Iterable[Change]) -> PartitionIndex:
        """changes: of partitions of one topic, in order. Maps are changed once per broker, not once per change."""
        held, led = self.held, dict(self.led)
        bits: dict[NodeId, int] = {}
        leaderless, with_elr = self.leaderless.get(topic_id, 0), self.with_elr.get(topic_id, 0)
        reassigning = self.reassigning.get(topic_id, 0)
        for index, before, after in changes:
            bit = 1 << index
            if before is None or before.replicas != after.replicas:
                for broker_id in () if before is None else before.replicas:
                    bits[broker_id] = _bits(bits, held, broker_id, topic_id) & ~bit
                for broker_id in after.replicas:
                    bits[broker_id] = _bits(bits, held, broker_id, topic_id) | bit
            if before is not None:
                led[before.leader] = led.get(before.leader, 0) - 1
            led[after.leader] = led.get(after.leader, 0) + 1
            leaderless = leaderless | bit if after.leader == NO_NODE else leaderless & ~bit
            with_elr = with_elr | bit if after.eligible_leader_replicas else with_elr & ~bit
            reassigning = reassigning | bit if _is_reassigned(after) else reassigning & ~bit
        for broker_id in sorted(bits):
            held = _with(held, broker_id, _with_bits(held.get(broker_id, NO_PARTITIONS), topic_id, bits[broker_id]))
        return PartitionIndex(
            held,
            _counts(self.led, led),
            _with_bits(self.leaderless, topic_id, leaderless),
            _with_bits(self.with_elr, topic_id, with_elr),
            _with_bits(self.reassigning, topic_id, reassigning),
        )

    def with_new_topics(self, other: PartitionIndex) -> PartitionIndex:
        """other: of topics that are not in this one."""
        held, led = self.held, dict(self.led)
        for broker_id in sorted(other.held):
            held = held.set(broker_id, self.held_by(broker_id).update(other.held[broker_id]))
        for broker_id in sorted(other.led):
            led[broker_id] = led.get(broker_id, 0) + other.led[broker_id]
        return PartitionIndex(
            held,
            _counts(self.led, led),
            self.leaderless.update(other.leaderless),
            self.with_elr.update(other.with_elr),
            self.reassigning.update(other.reassigning),
        )

    def without_topic(self, topic: TopicImage) -> PartitionIndex:
        held, led = self.held, dict(self.led)
        partitions = topic.partitions.values()
        for broker_id in sorted({replica for partition in partitions for replica in partition.replicas}):
            held = _with(held, broker_id, _with_bits(held[broker_id], topic.id, 0))
        for partition in partitions:
            led[partition.leader] = led.get(partition.leader, 0) - 1
        return PartitionIndex(
            held,
            _counts(self.led, led),
            _with_bits(self.leaderless, topic.id, 0),
            _with_bits(self.with_elr, topic.id, 0),
            _with_bits(self.reassigning, topic.id, 0),
        )


def concerns_index(before: PartitionRegistration | None, after: PartitionRegistration) -> bool:
    """Whether the change of a partition changes the index."""
    return (
        before is None
        or before.leader != after.leader
        or before.replicas != after.replicas
        or bool(before.eligible_leader_replicas) != bool(after.eligible_leader_replicas)
        or _is_reassigned(before) != _is_reassigned(after)
    )


def _is_reassigned(partition: PartitionRegistration) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def index_of(topics: Iterable[TopicImage]) -> PartitionIndex:
    """The index, computed from scratch; an image's index always equals it."""
    index = PartitionIndex()
    for topic in topics:
        index = index.with_changes(topic.id, ((number, None, one) for number, one in topic.partitions.items()))
    return index


def _bits(changed: Mapping[NodeId, int], held: Map[NodeId, Partitions], broker_id: NodeId, topic_id: Uuid) -> int:
    bits = changed.get(broker_id)
    return held.get(broker_id, NO_PARTITIONS).get(topic_id, 0) if bits is None else bits


def _with(held: Map[NodeId, Partitions], broker_id: NodeId, partitions: Partitions) -> Map[NodeId, Partitions]:
    if partitions:
        return held.set(broker_id, partitions)
    return held.delete(broker_id) if broker_id in held else held


def _with_bits(partitions: Partitions, topic_id: Uuid, bits: int) -> Partitions:
    if bits:
        return partitions.set(topic_id, bits)
    return partitions.delete(topic_id) if topic_id in partitions else partitions


def _counts(old: Map[NodeId, int], new: dict[NodeId, int]) -> Map[NodeId, int]:
    """`new`, without brokers that lead nothing and without "no leader"."""
    new.pop(NO_NODE, None)
    for broker_id, count in new.items():
        assert count >= 0, f"broker {broker_id} leads {count} partitions"
        if count != old.get(broker_id, 0):
            old = old.set(broker_id, count) if count else old.delete(broker_id)
    return old
