"""What a lower level of metadata.version makes of an image: what is rewritten, and what stands in the way.

One row for each record that came with a level after the first, or with a field that did. A downgrade that crosses its
level writes `before` at the old level and `after` at the new one, all in the batch of the FeatureLevelRecord. Metadata
that can be told again is dropped in this way. Metadata that would be lost is an obstacle, and the downgrade is refused.

A level may also bring a value to a field that was there before, or a state. Older software takes it for damage, and no
record tells of it. `STATES` has a row for each of these: the level, and what is in the way of going below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ChangedByRecord,
    ClientQuotaRecord,
    ClusterIncarnationRecord,
    DelegationTokenRecord,
    DeletedTopicRecord,
    EndTransactionRecord,
    ForgetDeletedTopicsRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from quorumlog_quorum.metadata.features import IMPORT_LEVEL
from quorumlog_quorum.metadata.frame import differs_between, has_field
from quorumlog_quorum.metadata.image import Image
from quorumlog_quorum.metadata.registration import IMPORTING
from quorumlog_quorum.metadata.snapshot_records import broker_record


def _none(_image: Image, _level: int = 0) -> Iterator[MetadataRecord]:
    yield from ()


def _no_obstacle(_image: Image) -> Iterator[str]:
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """obstacles: what the image holds that the lower level cannot express, for people. after: with the lower level."""

    before: Callable[[Image], Iterator[MetadataRecord]] = _none
    after: Callable[[Image, int], Iterator[MetadataRecord]] = _none
    obstacles: Callable[[Image], Iterator[str]] = _no_obstacle


def _forgotten_controllers(image: Image) -> Iterator[MetadataRecord]:
    """Each controller tells the next active controller again what it supports."""
    for controller in image.sorted_controllers():
        yield UnregisterControllerRecord(controller_id=controller.controller_id)


def _forgotten_topics(image: Image) -> Iterator[MetadataRecord]:
    """A broker that still holds their directories and starts from a snapshot sets them aside."""
    if image.deleted:
        yield ForgetDeletedTopicsRecord(topic_ids=tuple(sorted(image.deleted)))


def _brokers_with_less(image: Image, level: int) -> Iterator[MetadataRecord]:
    """Each broker tells the next active controller again what it supports, and which directories are cordoned."""
    for broker in image.sorted_brokers():
        record = after = broker_record(broker)
        if not has_field(RegisterBrokerRecord, "features", level):
            after = replace(after, features=())
        if not has_field(RegisterBrokerRecord, "cordoned_directories", level):
            after = replace(after, cordoned_directories=())
        if after != record:
            yield after


def _recovered(image: Image) -> Iterator[str]:
    """Older software does not know the cluster incarnation: every other node refuses it."""
    if not image.incarnation.is_first:
        yield f"the cluster was recovered into incarnation {image.incarnation}, which older software cannot name"


def _access_entries(image: Image) -> Iterator[str]:
    """They are in no other place: an operator removes them first, or keeps the level."""
    count = sum(not isinstance(entry, DelegationTokenRecord) for entry in image.access.values())
    if count:
        yield f"{count} access rules, SCRAM credentials or client quotas, which older software cannot keep"


def _tokens(image: Image) -> Iterator[str]:
    count = sum(isinstance(entry, DelegationTokenRecord) for entry in image.access.values())
    if count:
        yield f"{count} delegation tokens, which older software cannot keep"


def _imports(image: Image) -> Iterator[str]:
    """They are finished first, or their topics are deleted."""
    for topic in image.sorted_topics():
        if any(partition.leader_recovery_state == IMPORTING for partition in topic.partitions.values()):
            yield f"topic {topic.name}, which takes an import: finish that, or delete the topic"


STATES: Mapping[int, Callable[[Image], Iterator[str]]] = {IMPORT_LEVEL: _imports}

RULES: Mapping[type[MetadataRecord], Rule] = {
    RegisterBrokerRecord: Rule(after=_brokers_with_less),
    BrokerRegistrationChangeRecord: Rule(),  # of what the registrations say
    RegisterControllerRecord: Rule(before=_forgotten_controllers),
    UnregisterControllerRecord: Rule(),
    DeletedTopicRecord: Rule(),  # in snapshots only
    ForgetDeletedTopicsRecord: Rule(before=_forgotten_topics),
    ClusterIncarnationRecord: Rule(obstacles=_recovered),
    AccessControlEntryRecord: Rule(obstacles=_access_entries),
    RemoveAccessControlEntryRecord: Rule(),
    UserScramCredentialRecord: Rule(),  # the obstacle is named once for all of them
    RemoveUserScramCredentialRecord: Rule(),
    ClientQuotaRecord: Rule(),
    DelegationTokenRecord: Rule(obstacles=_tokens),
    RemoveDelegationTokenRecord: Rule(),
    BeginTransactionRecord: Rule(),  # no operation is carried out inside another one's transaction
    EndTransactionRecord: Rule(),
    AbortTransactionRecord: Rule(),
    ChangedByRecord: Rule(),  # in no image
}


def obstacles(image: Image, level: int) -> list[str]:
    """Why metadata.version cannot fall to `level`; empty: nothing would be lost."""
    found = [obstacle for rule in _crossed(image, level) for obstacle in rule.obstacles(image)]
    for brought, in_the_way in STATES.items():
        if level < brought <= image.metadata_version:
            found += in_the_way(image)
    return found


def records_before(image: Image, level: int) -> Iterator[MetadataRecord]:
    """To be written before the FeatureLevelRecord, at the level in force."""
    for rule in _crossed(image, level):
        yield from rule.before(image)


def records_after(image: Image, level: int) -> Iterator[MetadataRecord]:
    """To be written after the FeatureLevelRecord, at the lower level."""
    for rule in _crossed(image, level):
        yield from rule.after(image, level)


def _crossed(image: Image, level: int) -> Iterator[Rule]:
    """In the order of RULES."""
    crossed = differs_between(level, image.metadata_version)
    assert RULES.keys() >= set(crossed), f"records without a rule among {crossed}"
    yield from (rule for kind, rule in RULES.items() if kind in crossed)
