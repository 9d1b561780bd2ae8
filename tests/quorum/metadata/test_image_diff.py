"""The delta between two images lists what the replay of the records in between would list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map
from metadata_samples import any_record, image_of, partition, register, uuid

from quorumlog.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import ReplayError
from quorumlog_quorum.metadata.image import EMPTY, Image, hash_of
from quorumlog_quorum.metadata.image_diff import PARTITIONS_PER_STEP, delta_between, delta_from_empty
from quorumlog_quorum.metadata.snapshot_records import records_of
from tests.parts import few
from tests.rules import rule

LEVEL = FeatureLevelRecord(name="metadata.version", level=3)


def diff(base: Image, image: Image) -> tuple[Delta, int]:
    """The delta, and how many steps there were."""
    work, steps = delta_between(base, image), 1
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, steps
        steps += 1


def fitting(delta: Delta, records: list[MetadataRecord]) -> Iterator[MetadataRecord]:
    for record in records:
        try:
            delta.replay(record)
        except ReplayError:
            continue
        yield record


def listing(delta: Delta, image: Image) -> tuple[object, ...]:
    """All lists of a delta; without entries that are now as they were in the base."""
    base, empty = delta.base, Map[str, str]()
    changed = [one for one in delta.changed_partitions() if one.before != one.after]
    return (
        [one for one in delta.changed_brokers if base.brokers.get(one) != image.brokers.get(one)],
        delta.deleted_topics,
        changed,
        [one for one in delta.changed_configs if base.configs.get(one, empty) != image.configs.get(one, empty)],
    )


any_history = st.lists(any_record.filter(lambda record: not isinstance(record, FeatureLevelRecord)), max_size=40)


@rule("kraft 11.17")
@settings(max_examples=few(300), deadline=None)
@given(any_history, any_history)
def test_the_difference_is_what_a_replay_would_have_listed(
    before: list[MetadataRecord], between: list[MetadataRecord]
) -> None:
    first, replayed = Delta(EMPTY), Delta(EMPTY)
    first.replay(LEVEL)
    count = 1 + sum(1 for _ in fitting(first, before))
    base = first.apply(count, 1)
    replayed = Delta(base)
    count += sum(1 for _ in fitting(replayed, between))
    image = replayed.apply(count, 2)
    loaded = image_of_loaded(image)
    delta, _ = diff(base, loaded)
    assert delta.apply(count, 2) == image and delta.apply(count, 2).state_hash == hash_of(image)
    remembered = {one.id for one in replayed.deleted_topics} & set(image.deleted)
    assert [one.id for one in delta.deleted_topics] == sorted(remembered)
    assert {one.id for one in delta.vanished_topics} == {one.id for one in replayed.deleted_topics} - remembered
    ours, theirs = listing(delta, image), listing(replayed, image)
    assert ours[:2] + ours[3:] == theirs[:2] + theirs[3:]


def image_of_loaded(image: Image) -> Image:
    """An equal image that shares nothing with it, as a snapshot gives one."""
    return replace(image_of(records_of(image)), offset=image.offset, epoch=image.epoch)


def test_each_kind_of_change_is_listed() -> None:
    base = image_of(
        [
            LEVEL,
            *(register(broker_id) for broker_id in (1, 2, 3)),
            *(TopicRecord(name=f"t{number}", topic_id=uuid(number)) for number in (1, 2, 3)),
            partition(0, (1,)),
            partition(1, (2,)),
            partition(0, (1,), topic=2),
            ConfigRecord(resource_type=2, resource_name="t2", name="retention.ms", value="5"),
        ]
    )
    between: list[MetadataRecord] = [
        UnregisterBrokerRecord(broker_id=3, broker_epoch=0),
        register(2, fenced=True),
        PartitionChangeRecord(partition=1, topic_id=uuid(1), leader=2),
        partition(2, (1,)),
        RemoveTopicRecord(topic_id=uuid(2)),
        TopicRecord(name="t2", topic_id=uuid(4)),
        partition(0, (3,), topic=4),
    ]
    image = image_of(between, base)
    delta, _ = diff(base, image_of_loaded(image))
    assert delta.changed_brokers == [2, 3]
    assert [(topic.name, topic.id) for topic in delta.deleted_topics] == [("t2", uuid(2))]
    assert [(one.topic.name, one.index, one.before is None) for one in delta.changed_partitions()] == [
        ("t1", 1, False),
        ("t1", 2, True),
        ("t2", 0, True),
    ]
    assert delta.changed_configs == [(2, "t2")] and delta.partition_changes == 3


@rule("kraft 11.14")
def test_a_topic_that_is_absent_without_a_reason_has_vanished() -> None:
    base = image_of([TopicRecord(name="t", topic_id=uuid(1)), partition(0, (1,))])
    delta, _ = diff(base, replace(EMPTY, offset=9))
    assert delta.deleted_topics == [] and [topic.name for topic in delta.vanished_topics] == ["t"]
    assert list(delta.changed_partitions()) == []


def test_more_records_may_follow() -> None:
    base = image_of([LEVEL, TopicRecord(name="t", topic_id=uuid(1)), partition(0, (1,))])
    image = image_of([TopicRecord(name="u", topic_id=uuid(2)), partition(0, (1,), topic=2)], base)
    delta, _ = diff(base, image_of_loaded(image))
    delta.replay(partition(1, (1,), topic=2))
    delta.replay(RemoveTopicRecord(topic_id=uuid(1)))
    after = delta.apply(image.offset + 2, 1)
    assert after.deleted[uuid(1)].offset == image.offset + 1 and after.state_hash == hash_of(after)
    assert [topic.name for topic in delta.deleted_topics] == ["t"]
    assert [(one.topic.name, one.index) for one in delta.changed_partitions()] == [("u", 0), ("u", 1)]


def test_a_large_image_is_compared_in_steps() -> None:
    count = 3 * PARTITIONS_PER_STEP
    image = image_of([TopicRecord(name="t", topic_id=uuid(1)), *(partition(index, (1,)) for index in range(count))])
    delta, steps = diff(EMPTY, image)
    assert steps == 4 and delta.partition_changes == count
    assert {one.topic.id for one in delta_from_empty(image).changed_partitions()} == {uuid(1)}
    assert delta_from_empty(image).apply(image.offset, image.epoch) == image
