"""Deleted topics that the image remembers: from which level, how many, until when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from metadata_samples import image_of, partition, uuid

from quorumlog.messages.metadata_records import (
    DeletedTopicRecord,
    FeatureLevelRecord,
    ForgetDeletedTopicsRecord,
    MetadataRecord,
    RemoveTopicRecord,
    SnapshotStateRecord,
    TopicRecord,
)
from quorumlog_quorum.metadata import delta as delta_module
from quorumlog_quorum.metadata.check import violations
from quorumlog_quorum.metadata.deleted_topics import DeletedTopic
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.downgrade import records_before
from quorumlog_quorum.metadata.frame import ReplayError
from quorumlog_quorum.metadata.image import EMPTY, hash_of
from tests.rules import rule


def level(number: int) -> FeatureLevelRecord:
    return FeatureLevelRecord(name="metadata.version", level=number)


def life(name: str, number: int) -> list[MetadataRecord]:
    """A topic is created and deleted."""
    return [TopicRecord(name=name, topic_id=uuid(number)), RemoveTopicRecord(topic_id=uuid(number))]


@rule("kraft 11.11")
@pytest.mark.parametrize(("at_level", "remembered"), [(1, False), (2, False), (3, True)])
def test_a_deleted_topic_is_remembered_from_level_3_on(at_level: int, remembered: bool) -> None:
    image = image_of([level(at_level), *life("t", 1)])
    assert dict(image.deleted) == ({uuid(1): DeletedTopic("t", 2)} if remembered else {})
    assert image.state_hash == hash_of(image) and violations(image) == []


def test_the_offset_counts_control_records_too() -> None:
    delta = Delta(image_of([level(3), TopicRecord(name="t", topic_id=uuid(1))]))
    delta.next_offset = 7  # control records lie in between
    delta.replay(RemoveTopicRecord(topic_id=uuid(1)))
    assert delta.apply(8, 1).deleted[uuid(1)].offset == 7


def test_adopted_records_take_their_offsets() -> None:
    created = Delta(EMPTY)
    for record in (TopicRecord(name="n", topic_id=uuid(9)), partition(0, (1,), topic=9)):
        created.replay(record)
    delta = Delta(image_of([level(3), TopicRecord(name="t", topic_id=uuid(1))]))
    delta.adopt(created)
    delta.replay(RemoveTopicRecord(topic_id=uuid(1)))
    assert delta.apply(5, 1).deleted[uuid(1)].offset == 4


def test_what_is_forgotten_leaves_no_trace() -> None:
    before = image_of([level(3)])
    image = image_of([level(3), *life("t", 1), *life("u", 2), ForgetDeletedTopicsRecord(topic_ids=(uuid(1), uuid(2)))])
    assert not image.deleted and image.state_hash == before.state_hash


@rule("kraft 12.7")
def test_a_downgrade_forgets_them_first() -> None:
    image = image_of([level(3), *life("t", 1)])
    assert image.deleted
    lower = image_of([*records_before(image, 2), level(2)], image)
    assert not lower.deleted and lower.state_hash == hash_of(lower) and not violations(lower)


@rule("kraft 11.16")
def test_at_the_limit_the_oldest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_module, "MAX_DELETED_TOPICS", 2)
    image = image_of([level(3), *life("a", 1), *life("b", 2), *life("c", 3)])
    assert [deleted.name for _, deleted in image.sorted_deleted()] == ["a", "b"] and not image.topics
    image = image_of([ForgetDeletedTopicsRecord(topic_ids=(uuid(1),)), *life("d", 4)], image)
    assert [deleted.name for _, deleted in image.sorted_deleted()] == ["b", "d"]


MISFITS: list[tuple[str, list[MetadataRecord]]] = [
    ("forgotten twice", [*life("t", 1), *[ForgetDeletedTopicsRecord(topic_ids=(uuid(1),))] * 2]),
    ("never deleted", [ForgetDeletedTopicsRecord(topic_ids=(uuid(1),))]),
    ("created again with its id", [*life("t", 1), TopicRecord(name="u", topic_id=uuid(1))]),
    ("deleted twice", [*life("t", 1), DeletedTopicRecord(topic_id=uuid(1), name="t", offset=1)]),
    (
        "deleted and there",
        [TopicRecord(name="t", topic_id=uuid(1)), DeletedTopicRecord(topic_id=uuid(1), name="t", offset=1)],
    ),
    ("a snapshot's state in a log", [SnapshotStateRecord(state_hash=bytes(16), records=1)]),
]


@pytest.mark.parametrize("records", [case[1] for case in MISFITS], ids=[case[0] for case in MISFITS])
def test_a_record_that_does_not_fit_is_refused(records: list[MetadataRecord]) -> None:
    with pytest.raises(ReplayError):
        image_of([level(3), *records])


def test_broken_images_are_named() -> None:
    image = image_of([level(3), TopicRecord(name="t", topic_id=uuid(1))])
    broken = replace(image, deleted=image.deleted.set(uuid(1), DeletedTopic("t", 99)))
    said = violations(broken)
    assert any("exists and was deleted" in one for one in said) and any("not below" in one for one in said)
    at_level_2 = replace(broken, features=broken.features.set("metadata.version", 2))
    assert any("at metadata.version 2" in one for one in violations(at_level_2))
