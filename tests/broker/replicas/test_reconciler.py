"""Which replicas a broker has after a change of the metadata, and in which order the changes are made."""

from __future__ import annotations

from quorumlog.ids import Uuid
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    NodeList,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorumlog_broker.replicas.reconciler import PARTITIONS_PER_STEP, Changes, changes_of, strays
from quorumlog_quorum.metadata.delta import Delta, Touched
from quorumlog_quorum.metadata.frame import MetadataRecord
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.registration import UNASSIGNED
from tests.rules import rule

ME = 1
A, B = bytes([10]) * 16, bytes([11]) * 16


def replay(base: Image, *records: MetadataRecord) -> tuple[Delta, Image]:
    delta = Delta(base)
    for record in records:
        delta.replay(record)
    return delta, delta.apply(base.offset + len(records), 1)


def partition(topic: Uuid, index: int, replicas: tuple[int, ...], leader: int) -> PartitionRecord:
    return PartitionRecord(
        partition=index,
        topic_id=topic,
        replicas=replicas,
        isr=replicas,
        leader=leader,
        directories=(UNASSIGNED,) * len(replicas),
    )


def two_topics() -> Image:
    return replay(
        EMPTY,
        TopicRecord(name="a", topic_id=A),
        TopicRecord(name="b", topic_id=B),
        partition(A, 0, (1, 2), 1),
        partition(A, 1, (2, 1), 2),
        partition(A, 2, (2, 3), 2),
        partition(B, 0, (1, 2), 1),
    )[1]


def changes(delta: Delta, image: Image, node_id: int = ME) -> Changes:
    """All steps at once."""
    return in_steps(delta, image, node_id)[0]


def in_steps(delta: Delta, image: Image, node_id: int = ME) -> tuple[Changes, int]:
    """The changes, and how many steps they took."""
    work, steps = changes_of(delta, image, node_id), 1
    while True:
        try:
            next(work)
            steps += 1
        except StopIteration as end:
            return end.value, steps


def test_a_large_change_is_found_in_steps() -> None:
    count = 3 * PARTITIONS_PER_STEP
    partitions = [partition(A, index, (1,), 1) for index in range(count)]
    found, steps = in_steps(*replay(EMPTY, TopicRecord(name="a", topic_id=A), *partitions))
    assert [one.key for one in found.leaders] == [(A, index) for index in range(count)] and steps > 3


@rule("kraft 11.9")
def test_leaders_come_before_followers_and_others_are_none_of_ours() -> None:
    delta, image = replay(
        EMPTY, TopicRecord(name="a", topic_id=A), partition(A, 0, (2, 1), 2), partition(A, 1, (1,), 1)
    )
    found = changes(delta, image)
    assert [one.key for one in found.leaders] == [(A, 1)]
    assert [one.key for one in found.followers] == [(A, 0)]
    assert changes(delta, image, 3).leaders == changes(delta, image, 3).followers == ()


@rule("kraft 11.9")
def test_a_removed_topic_and_a_reassigned_replica_are_deleted() -> None:
    base = two_topics()
    change = PartitionChangeRecord(partition=0, topic_id=B, replicas=NodeList(nodes=(2,)), isr=NodeList(nodes=(2,)))
    delta, image = replay(base, RemoveTopicRecord(topic_id=A), change)
    found = changes(delta, image)
    assert found.deleted == ((A, 0), (A, 1))
    assert (found.reassigned, found.vanished) == (((B, 0),), ())
    assert found.leaders == found.followers == ()


@rule("kraft 11.9")
def test_a_replica_that_an_earlier_state_does_not_name_is_set_aside() -> None:
    """Metadata that was recovered from an old copy must not cost records."""
    later = replay(two_topics(), PartitionChangeRecord(partition=0, topic_id=B, isr=NodeList(nodes=(1,))))[1]
    old = replay(EMPTY, TopicRecord(name="b", topic_id=B), partition(B, 0, (2,), 2), TopicRecord(name="a", topic_id=A))[
        1
    ]
    touched = Touched(topics={B: None}, partitions={B: {0: None}})
    found = changes(Delta.leading_to(later, old, touched), old)
    assert (found.reassigned, found.vanished) == ((), ((B, 0),))


def test_a_setting_of_the_cluster_concerns_all_topics() -> None:
    base = two_topics()
    topic = ConfigRecord(resource_type=2, resource_name="b", name="retention.ms", value="5")
    cluster = ConfigRecord(resource_type=4, resource_name="", name="retention.ms", value="5")
    assert changes(*replay(base, topic)).reconfigured == ("b",)
    assert changes(*replay(base, cluster)).reconfigured == ("a", "b")
    assert changes(*replay(base)).eligible is None


@rule("storage 3.16")
def test_strays_are_what_the_metadata_does_not_give_us() -> None:
    held = [(B, 0), (A, 2), (A, 0), (bytes(16), 0)]
    assert strays(held, two_topics(), ME) == [(bytes(16), 0), (A, 2)]
