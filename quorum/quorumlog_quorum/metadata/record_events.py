"""Metadata records as events: what each of them changes, in words, with the record's own time and offset.

`on_record` is called before the record is replayed, so that it can say what was before. A record that changes nothing
that people ask about is no event. The text is made at once: a ring holds no image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quorumlog.events.ring import EventRing
from quorumlog.ids import NO_NODE, Offset
from quorumlog.messages.metadata_records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from quorumlog_quorum.metadata.changes import changed_partition
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from quorumlog_quorum.metadata.registration import RECOVERING, PartitionRegistration

_RESOURCES = {TOPIC_RESOURCE: "topic", BROKER_RESOURCE: "broker", GROUP_RESOURCE: "group"}
Told = tuple[str, str, str]
"""Kind, subject and text."""


class RecordEvents:
    """Give `on_record` to the loader."""

    def __init__(self, ring: EventRing) -> None:
        self._ring = ring

    def on_record(self, record: MetadataRecord, offset: Offset, at_ms: int, delta: Delta) -> None:
        """offset, at_ms: of the record. delta: the metadata before it."""
        tell = _TELLS.get(type(record))
        if tell is None:
            return
        for kind, subject, text in tell(record, delta):
            self._ring.of_record(kind, subject, text, at_ms, offset, type(record).__name__)


def _partition_change(record: PartitionChangeRecord, delta: Delta) -> Iterable[Told]:
    name, before = delta.partition_before(record.topic_id, record.partition)
    if before is None:
        return
    after = changed_partition(before, record)
    subject = f"partition/{name}-{record.partition}"
    if record.leader is not None:
        yield _leader(subject, before, after)
    if after.isr != before.isr:
        yield "partition.isr", subject, f"ISR {_ids(before.isr)} -> {_ids(after.isr)}"
    if not after.isr and after.eligible_leader_replicas != before.eligible_leader_replicas:
        yield "partition.elr", subject, f"eligible leader replicas are {_ids(after.eligible_leader_replicas)}"
    moving = after.adding_replicas, after.removing_replicas
    if moving != (before.adding_replicas, before.removing_replicas):
        yield "partition.reassignment", subject, _moving(before, after)


def _leader(subject: str, before: PartitionRegistration, after: PartitionRegistration) -> Told:
    epochs = f"leader epoch {before.leader_epoch} -> {after.leader_epoch}"
    if after.leader == NO_NODE:
        return "partition.leader", subject, f"leader {before.leader} -> none, {epochs}"
    if after.leader_recovery_state == RECOVERING and before.leader_recovery_state != RECOVERING:
        text = f"broker {after.leader} was elected outside the ISR {_ids(before.isr)}, {epochs}: records may be lost"
        return "partition.unclean", subject, text
    old = "none" if before.leader == NO_NODE else str(before.leader)
    return "partition.leader", subject, f"leader {old} -> {after.leader}, {epochs}"


def _moving(before: PartitionRegistration, after: PartitionRegistration) -> str:
    if not (after.adding_replicas or after.removing_replicas):
        return f"the reassignment has ended with replicas {_ids(after.replicas)}, before {_ids(before.replicas)}"
    return f"replicas {_ids(after.adding_replicas)} are being added, {_ids(after.removing_replicas)} removed"


def _partition(record: PartitionRecord, delta: Delta) -> Iterable[Told]:
    """A topic's first partitions come with the topic, in one batch."""
    topic = delta.base.topics.get(record.topic_id)
    if topic is not None:
        text = f"partition {record.partition} with replicas {_ids(record.replicas)}, leader {record.leader}"
        yield "topic.partitions", f"topic/{topic.name}", text


def _topic(record: TopicRecord, _delta: Delta) -> Iterable[Told]:
    yield "topic.created", f"topic/{record.name}", "created"


def _no_topic(record: RemoveTopicRecord, delta: Delta) -> Iterable[Told]:
    topic = delta.topic_before(record.topic_id)
    if topic is not None:
        yield "topic.deleted", f"topic/{topic.name}", f"deleted, with {len(topic.partitions)} partitions"


def _broker(record: RegisterBrokerRecord, _delta: Delta) -> Iterable[Told]:
    fenced = "fenced until it has caught up" if record.fenced else "not fenced"
    text = f"registered with epoch {record.broker_epoch} and {len(record.log_directories)} directories, {fenced}"
    yield "broker.registered", f"broker/{record.broker_id}", text


def _broker_change(record: BrokerRegistrationChangeRecord, delta: Delta) -> Iterable[Told]:
    before = delta.broker_before(record.broker_id)
    if before is None:
        return
    subject = f"broker/{record.broker_id}"
    if record.in_controlled_shutdown and not before.in_controlled_shutdown:
        yield "broker.leaving", subject, "in controlled shutdown: its leaderships go to others first"
    if record.fenced is True and not before.fenced:
        leaving = before.in_controlled_shutdown or record.in_controlled_shutdown
        text = "fenced after its controlled shutdown" if leaving else "fenced: it leads nothing and is in no ISR"
        yield "broker.fenced", subject, text
    if record.fenced is False and before.fenced:
        yield "broker.unfenced", subject, "unfenced: it has caught up and serves"
    if record.cordoned_directories is not None:
        number = len(record.cordoned_directories.directories)
        yield "broker.cordoned", subject, f"{number} of its {len(before.log_directories)} directories are cordoned"
    if record.log_directories is not None:
        was, now = len(before.log_directories), len(record.log_directories.directories)
        if was != now:
            yield "broker.directories", subject, f"online directories {was} -> {now}"


def _no_broker(record: UnregisterBrokerRecord, _delta: Delta) -> Iterable[Told]:
    yield "broker.unregistered", f"broker/{record.broker_id}", "unregistered"


def _config(record: ConfigRecord, _delta: Delta) -> Iterable[Told]:
    """A setting's value may be a secret, so it is not told."""
    sort = _RESOURCES.get(record.resource_type)
    if sort is not None:
        subject = f"{sort}/{record.resource_name or '(all)'}"
        yield "config.changed", subject, f"{record.name} was {'removed' if record.value is None else 'set'}"


def _feature(record: FeatureLevelRecord, _delta: Delta) -> Iterable[Told]:
    yield "feature.level", "cluster", f"{record.name} is at level {record.level}"


def _controller(record: RegisterControllerRecord, _delta: Delta) -> Iterable[Told]:
    yield "controller.registered", f"node/{record.controller_id}", "its controller registered"


def _no_controller(record: UnregisterControllerRecord, _delta: Delta) -> Iterable[Told]:
    yield "controller.unregistered", f"node/{record.controller_id}", "its controller is forgotten"


def _rule(record: AccessControlEntryRecord, _delta: Delta) -> Iterable[Told]:
    yield "access.changed", "cluster", f"an access rule for {record.principal} on {record.resource_name!r} was made"


def _user(record: UserScramCredentialRecord, _delta: Delta) -> Iterable[Told]:
    yield "access.changed", f"user/{record.name}", "its SCRAM credential was set"


def _no_user(record: RemoveUserScramCredentialRecord, _delta: Delta) -> Iterable[Told]:
    yield "access.changed", f"user/{record.name}", "its SCRAM credential was removed"


def _quota(record: ClientQuotaRecord, _delta: Delta) -> Iterable[Told]:
    who = ", ".join(f"{one.entity_type} {one.entity_name or '(default)'}" for one in record.entity)
    yield (
        "access.changed",
        "cluster",
        f"quota {record.key} of {who} " + ("was removed" if record.remove else f"is {record.value:g}"),
    )


def _says(text: str) -> Callable[[Any, Delta], Iterable[Told]]:
    return lambda _record, _delta: (("access.changed", "cluster", text),)


def _ids(nodes: Iterable[int]) -> str:
    return "[" + ",".join(map(str, nodes)) + "]"


_TELLS: Mapping[type, Callable[[Any, Delta], Iterable[Told]]] = {
    PartitionChangeRecord: _partition_change,
    PartitionRecord: _partition,
    TopicRecord: _topic,
    RemoveTopicRecord: _no_topic,
    RegisterBrokerRecord: _broker,
    BrokerRegistrationChangeRecord: _broker_change,
    UnregisterBrokerRecord: _no_broker,
    ConfigRecord: _config,
    FeatureLevelRecord: _feature,
    RegisterControllerRecord: _controller,
    UnregisterControllerRecord: _no_controller,
    AccessControlEntryRecord: _rule,
    RemoveAccessControlEntryRecord: _says("an access rule was removed"),
    UserScramCredentialRecord: _user,
    RemoveUserScramCredentialRecord: _no_user,
    ClientQuotaRecord: _quota,
    DelegationTokenRecord: _says("a delegation token was issued or renewed"),
    RemoveDelegationTokenRecord: _says("a delegation token was removed"),
}
