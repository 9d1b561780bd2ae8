"""From a change of the metadata to what this broker's replicas must do, in the order of KRAFT 2.9. Pure.

Order: topics that were deleted, replicas that are no longer ours, leaders, followers. Only a topic that a committed
record removed is deleted; a replica that is merely absent is set aside (DESIGN §6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quorum.metadata.delta import Delta
from quorum.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, Image
from quorum.metadata.registration import LOST, PartitionRegistration, is_reserved_directory
from quorumlog.ids import BrokerEpoch, NodeId, Uuid

PartitionKey = tuple[Uuid, int]  # topic id and index


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A replica of ours, as the metadata now has it."""

    topic: str
    key: PartitionKey
    registration: PartitionRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What to do, in the order of the fields; within each by topic id and index."""

    deleted: tuple[PartitionKey, ...]  # the topic was removed
    moved_away: tuple[PartitionKey, ...]  # this broker is no replica any more
    leaders: tuple[Placed, ...]
    followers: tuple[Placed, ...]
    reconfigured: tuple[str, ...]  # names of topics whose settings may have changed
    eligible: Mapping[NodeId, BrokerEpoch] | None  # who may be in an ISR; None: as before


def changes_of(delta: Delta, image: Image, node_id: NodeId) -> Changes:
    deleted = [
        (topic.id, index)
        for topic in delta.deleted_topics
        for index, registration in topic.sorted_partitions()
        if node_id in registration.replicas
    ]
    placed: list[Placed] = []
    moved_away: list[PartitionKey] = []
    for change in delta.changed_partitions:
        key = (change.topic.id, change.index)
        if node_id in change.after.replicas:
            placed.append(Placed(topic=change.topic.name, key=key, registration=change.after))
        elif change.before is not None and node_id in change.before.replicas:
            moved_away.append(key)
    return Changes(
        deleted=tuple(deleted),
        moved_away=tuple(moved_away),
        leaders=tuple(one for one in placed if one.registration.leader == node_id),
        followers=tuple(one for one in placed if one.registration.leader != node_id),
        reconfigured=_reconfigured(delta, image),
        eligible=_eligible(image) if delta.changed_brokers else None,
    )


def _reconfigured(delta: Delta, image: Image) -> tuple[str, ...]:
    """A cluster-wide setting concerns every topic."""
    changed = delta.changed_configs
    if any(kind == BROKER_RESOURCE for kind, _ in changed):
        return tuple(topic.name for topic in image.sorted_topics())
    return tuple(name for kind, name in changed if kind == TOPIC_RESOURCE and name in image.topic_ids)


def _eligible(image: Image) -> dict[NodeId, BrokerEpoch]:
    return {broker.broker_id: broker.broker_epoch for broker in image.sorted_brokers() if broker.active}


def strays(held: Iterable[PartitionKey], image: Image, node_id: NodeId) -> list[PartitionKey]:
    """Replicas found on the disks at start that the metadata knows nothing of, in order: to be set aside."""

    def is_ours(key: PartitionKey) -> bool:
        registration = image.partition(*key)
        return registration is not None and node_id in registration.replicas

    return sorted(key for key in held if not is_ours(key))


def choose_directory(assigned: Uuid, found: Uuid | None, online: Mapping[Uuid, int], any_offline: bool) -> Uuid | None:
    """Where a replica is or shall be made; None: it stays offline until the metadata changes or the process restarts.

    assigned: by the metadata. found: where its log was at start. online: number of replicas in each directory.
    A log is made only where it cannot be a second, empty copy of one that is out of sight: in the assigned directory,
    or, unless the assigned one is ours and offline, in the emptiest one (KRAFT 2.7).
    """
    if found is not None:
        return found if found in online else None
    if assigned in online:
        return assigned
    if assigned == LOST or not online or (any_offline and not is_reserved_directory(assigned)):
        return None
    return min(online, key=lambda directory: (online[directory], directory))
