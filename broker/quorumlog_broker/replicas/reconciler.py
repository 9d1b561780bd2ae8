"""What a change of the metadata means for this broker's replicas, in the order of Kafka's `ReplicaManager`. Pure.

Order: deleted topics, replicas that moved to other brokers, leaders, followers. Deleted is what a committed record
gives up: a topic that was removed, and a replica that a later state of its partition does not name. What is merely
absent from the metadata is set aside, also where the metadata came as a snapshot; so is a replica that an
*earlier* state does not name, which is what a cluster looks like that was recovered from old metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quorumlog.ids import BrokerEpoch, NodeId
from quorumlog.slices import Sliced
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image, TopicImage
from quorumlog_quorum.metadata.registration import PartitionRegistration

PARTITIONS_PER_STEP = 500  # some 4 us each


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A replica of this broker, as the metadata has it now."""

    topic: str
    key: PartitionKey
    registration: PartitionRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What to do, in the order of the fields; within each field in order of topic id and index."""

    deleted: tuple[PartitionKey, ...]  # the topic was removed
    reassigned: tuple[PartitionKey, ...]  # this broker is no replica any more
    vanished: tuple[PartitionKey, ...]  # nothing says what became of it
    leaders: tuple[Placed, ...]
    followers: tuple[Placed, ...]
    reconfigured: tuple[str, ...]  # names of topics whose settings may have changed
    eligible: Mapping[NodeId, BrokerEpoch] | None  # brokers that may be in an ISR; None: unchanged


def changes_of(delta: Delta, image: Image, node_id: NodeId) -> Sliced[Changes]:
    """In steps: each yield ends one, and the result is returned after the last."""
    deleted = _held_of(delta.deleted_topics, node_id)
    vanished = _held_of(delta.vanished_topics, node_id)
    reassigned: list[PartitionKey] = []
    leaders: list[Placed] = []
    followers: list[Placed] = []
    for number, change in enumerate(delta.changed_partitions(), 1):
        if number % PARTITIONS_PER_STEP == 0:
            yield
        key = (change.topic.id, change.index)
        if node_id in change.after.replicas:
            placed = Placed(topic=change.topic.name, key=key, registration=change.after)
            (leaders if change.after.leader == node_id else followers).append(placed)
        elif change.before is not None and node_id in change.before.replicas:
            is_later = change.after.partition_epoch > change.before.partition_epoch
            (reassigned if is_later else vanished).append(key)
    return Changes(
        deleted=tuple(deleted),
        reassigned=tuple(reassigned),
        vanished=tuple(vanished),
        leaders=tuple(leaders),
        followers=tuple(followers),
        reconfigured=_reconfigured(delta, image),
        eligible=_eligible(image) if delta.changed_brokers else None,
    )


def _held_of(topics: Iterable[TopicImage], node_id: NodeId) -> list[PartitionKey]:
    """The partitions of these topics that this broker is a replica of."""
    return [
        (topic.id, index)
        for topic in topics
        for index, registration in topic.sorted_partitions()
        if node_id in registration.replicas
    ]


def _reconfigured(delta: Delta, image: Image) -> tuple[str, ...]:
    """Names of topics with a changed setting; all names if a broker's setting changed, which is a default of topics."""
    changed = delta.changed_configs
    if any(kind == BROKER_RESOURCE for kind, _ in changed):
        return tuple(topic.name for topic in image.sorted_topics())
    return tuple(name for kind, name in changed if kind == TOPIC_RESOURCE and name in image.topic_ids)


def _eligible(image: Image) -> dict[NodeId, BrokerEpoch]:
    return {broker.broker_id: broker.broker_epoch for broker in image.sorted_brokers() if broker.active}


def strays(held: Iterable[PartitionKey], image: Image, node_id: NodeId) -> list[PartitionKey]:
    """Replicas found on the disks that the metadata does not give to this broker, in order: to be set aside."""

    def is_ours(key: PartitionKey) -> bool:
        registration = image.partition(*key)
        return registration is not None and node_id in registration.replicas

    return sorted(key for key in held if not is_ours(key))
