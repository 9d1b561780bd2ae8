"""The index of partitions: what each kind of change does to it. That it always follows the topics is `check`'s."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from metadata_samples import image_of, partition, uuid

from quorumlog.messages.metadata_records import NodeList, PartitionChangeRecord, RemoveTopicRecord, TopicRecord
from quorumlog_quorum.metadata.check import violations
from quorumlog_quorum.metadata.image import EMPTY
from quorumlog_quorum.metadata.partition_index import PartitionIndex, indexes_in

TOPIC = TopicRecord(name="t", topic_id=uuid(1))


def _with_elr(*broker_ids: int) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition=1, topic_id=uuid(1), eligible_leader_replicas=NodeList(nodes=broker_ids))


@given(st.sets(st.integers(0, 3_000)))
def test_a_set_of_indexes_is_read_in_order(indexes: set[int]) -> None:
    assert list(indexes_in(sum(1 << index for index in indexes))) == sorted(indexes)


def test_replicas_leaders_and_partitions_without_one_are_found() -> None:
    image = image_of([TOPIC, partition(0, (1, 2)), partition(1, (2, 3)), partition(2, (3, 2))])
    assert [list(indexes_in(image.index.held_by(broker_id)[uuid(1)])) for broker_id in (1, 2, 3)] == [
        [0],
        [0, 1, 2],
        [1, 2],
    ]
    assert dict(image.index.led) == {1: 1, 2: 1, 3: 1} and not image.index.leaderless
    assert not image.index.held_by(4)

    lost = PartitionChangeRecord(partition=1, topic_id=uuid(1), leader=-1, isr=NodeList(nodes=()))
    image = image_of([lost], image)
    assert dict(image.index.led) == {1: 1, 3: 1}
    assert list(indexes_in(image.index.leaderless[uuid(1)])) == [1]

    assert not image.index.with_elr
    image = image_of([_with_elr(2)], image)
    assert list(indexes_in(image.index.with_elr[uuid(1)])) == [1]

    moved = PartitionChangeRecord(partition=1, topic_id=uuid(1), leader=4, replicas=NodeList(nodes=(4,)))
    image = image_of([_with_elr(), moved], image)
    assert list(indexes_in(image.index.held_by(2)[uuid(1)])) == [0, 2] and list(image.index.held_by(4)) == [uuid(1)]
    assert dict(image.index.led) == {1: 1, 3: 1, 4: 1} and not image.index.leaderless and not image.index.with_elr

    assert image_of([RemoveTopicRecord(topic_id=uuid(1))], image).index == PartitionIndex()


def test_a_change_of_the_isr_alone_costs_the_index_nothing() -> None:
    image = image_of([TOPIC, partition(0, (1, 2))])
    shrunk = image_of([PartitionChangeRecord(partition=0, topic_id=uuid(1), isr=NodeList(nodes=(1,)))], image)
    assert shrunk.index is image.index


def test_an_index_that_does_not_follow_the_topics_is_a_violation() -> None:
    image = image_of([TOPIC, partition(0, (1, 2))])
    assert "the index of partitions is not that of the image" in violations(replace(image, index=EMPTY.index))
