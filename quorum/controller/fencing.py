"""Brokers that come, go, are fenced, unfenced or lose directories: what that means for every partition they hold.

Kafka's invariant (KIP-841): a broker that is fenced or shutting down is in no ISR and leads nothing. So a broker's
partitions are changed *before* its registration when it leaves, and *after* it when it comes: each prefix of the
records is a sound state. (Kafka announces a controlled shutdown first; then a controller that dies half-way leaves a
broker behind whose remaining partitions nobody moves.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from quorum.controller.election import NOTHING, Brokers, TopicRules, Wish, partition_change, topic_rules
from quorum.controller.outcome import Draft
from quorum.metadata.image import Image, TopicImage
from quorum.metadata.registration import UNASSIGNED, BrokerRegistration, PartitionRegistration
from quorumlog.ids import NO_NODE, NodeId, Uuid
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    DirectoryList,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One partition, where it is, and the rules of its topic."""

    topic: TopicImage
    index: int
    partition: PartitionRegistration
    rules: TopicRules


WishFor = Callable[[Place], Wish]


def fence(draft: Draft, broker_id: NodeId) -> None:
    """Take the broker out of every ISR, then fence it."""
    broker = draft.image.brokers[broker_id]
    _move_partitions(draft, replace(broker, fenced=True))
    draft.add(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=True))


def unfence(draft: Draft, broker_id: NodeId) -> None:
    """Unfence the broker, then elect leaders wherever one is missing and may now be had."""
    broker = draft.image.brokers[broker_id]
    draft.add(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=False))
    elect_missing_leaders(draft)


def begin_controlled_shutdown(draft: Draft, broker_id: NodeId) -> None:
    """Move what the broker leads, shrink it out of every ISR, then mark it. It goes on serving until told to stop."""
    broker = draft.image.brokers[broker_id]
    _move_partitions(draft, replace(broker, in_controlled_shutdown=True))
    draft.add(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker.broker_epoch, in_controlled_shutdown=True
        )
    )


def take_directories_offline(draft: Draft, broker_id: NodeId, offline: tuple[Uuid, ...]) -> None:
    """Move the partitions in those directories away, then strike the directories from the registration.

    offline: every directory that the broker reports, again each time; only those still registered count.
    """
    broker = draft.image.brokers[broker_id]
    remaining = tuple(directory for directory in broker.log_directories if directory not in offline)
    if remaining == broker.log_directories:
        return

    def wish(place: Place) -> Wish:
        on_sick_disk = place.partition.directory(broker_id) in offline
        return Wish(not_eligible=(broker_id,)) if on_sick_disk and not place.rules.synced else NOTHING

    _move_partitions(draft, replace(broker, log_directories=remaining), wish)
    draft.add(
        BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.broker_epoch,
            log_directories=DirectoryList(directories=remaining),
        )
    )


def replace_incarnation(draft: Draft, after: BrokerRegistration, clean: bool) -> None:
    """A new process of a known broker: before it is registered, the old one leaves every ISR.

    clean: the old one stopped in order, so its page cache reached the disk. It stays eligible where it still holds
    what it acknowledged: always with durability=synced, otherwise after a clean stop (DESIGN 6). A replica whose
    recorded directory is not there cannot be elected; whether it is empty shows when it is assigned to another one.
    """
    before = draft.image.brokers[after.broker_id]
    disks_kept = all(directory in after.log_directories for directory in before.log_directories)

    def wish(place: Place) -> Wish:
        may_be_empty = place.partition.directory(after.broker_id) == UNASSIGNED and not disks_kept
        return Wish(
            not_eligible=() if clean or place.rules.synced else (after.broker_id,),
            emptied=(after.broker_id,) if may_be_empty else (),
        )

    _move_partitions(draft, after, wish)


def elect_missing_leaders(draft: Draft) -> None:
    """Try again for every partition that has no leader."""
    brokers = draft.image.brokers
    for place in _places(draft.image, lambda partition: partition.leader == NO_NODE):
        _change(draft, place, brokers, NOTHING)


def _move_partitions(draft: Draft, after: BrokerRegistration, wish_for: WishFor = lambda place: NOTHING) -> None:
    """Bring every partition that counts on the broker in line with what the broker will be."""
    image = draft.image
    brokers = image.brokers.set(after.broker_id, after)
    for place in _places(image, lambda partition: _counts_on(partition, after.broker_id)):
        _change(draft, place, brokers, wish_for(place))


def _counts_on(partition: PartitionRegistration, broker_id: NodeId) -> bool:
    return (
        broker_id in partition.isr
        or broker_id in partition.eligible_leader_replicas
        or broker_id in partition.last_known_elr
    )


def _places(image: Image, wanted: Callable[[PartitionRegistration], bool]) -> Iterator[Place]:
    """Partitions by topic name and index. Looks at all of them: this is rare, and an index would be one more state."""
    for topic in image.sorted_topics():
        rules: TopicRules | None = None
        for index, partition in topic.sorted_partitions():
            if wanted(partition):
                rules = rules or topic_rules(image, topic.name)
                yield Place(topic=topic, index=index, partition=partition, rules=rules)


def _change(draft: Draft, place: Place, brokers: Brokers, wish: Wish) -> None:
    record = partition_change(place.topic.id, place.index, place.partition, brokers, place.rules, wish)
    if record is not None:
        draft.add(record)
