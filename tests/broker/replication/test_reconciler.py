"""Which replicas a broker has after a change of the metadata, in which order, and where they lie."""

from __future__ import annotations

import pytest

from broker.replicas.reconciler import changes_of, choose_directory, strays
from quorum.metadata.delta import Delta
from quorum.metadata.frame import MetadataRecord
from quorum.metadata.image import EMPTY, Image
from quorum.metadata.registration import LOST, UNASSIGNED
from quorumlog.ids import Uuid
from quorumlog.messages.metadata_records import (
    ConfigRecord,
    NodeList,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

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


def test_leaders_come_before_followers_and_others_are_none_of_ours() -> None:
    delta, image = replay(
        EMPTY, TopicRecord(name="a", topic_id=A), partition(A, 0, (2, 1), 2), partition(A, 1, (1,), 1)
    )
    changes = changes_of(delta, image, ME)
    assert [one.key for one in changes.leaders] == [(A, 1)]
    assert [one.key for one in changes.followers] == [(A, 0)]
    assert changes_of(delta, image, 3).leaders == changes_of(delta, image, 3).followers == ()


def test_only_a_removed_topic_is_deleted_and_a_reassigned_replica_is_set_aside() -> None:
    base = two_topics()
    change = PartitionChangeRecord(partition=0, topic_id=B, replicas=NodeList(nodes=(2,)), isr=NodeList(nodes=(2,)))
    delta, image = replay(base, RemoveTopicRecord(topic_id=A), change)
    changes = changes_of(delta, image, ME)
    assert changes.deleted == ((A, 0), (A, 1))
    assert changes.moved_away == ((B, 0),)
    assert changes.leaders == changes.followers == ()


def test_a_setting_of_the_cluster_concerns_all_topics() -> None:
    base = two_topics()
    topic = ConfigRecord(resource_type=2, resource_name="b", name="retention.ms", value="5")
    cluster = ConfigRecord(resource_type=4, resource_name="", name="retention.ms", value="5")
    assert changes_of(*replay(base, topic), ME).reconfigured == ("b",)
    assert changes_of(*replay(base, cluster), ME).reconfigured == ("a", "b")
    assert changes_of(*replay(base), ME).eligible is None


def test_strays_are_what_the_metadata_does_not_give_us() -> None:
    held = [(B, 0), (A, 2), (A, 0), (bytes(16), 0)]
    assert strays(held, two_topics(), ME) == [(bytes(16), 0), (A, 2)]


D1, D2, OTHER = bytes([21]) * 16, bytes([22]) * 16, bytes([23]) * 16
PLACES = [
    ("where the metadata says", D2, None, {D1: 0, D2: 5}, False, D2),
    ("where its log was found, whatever the metadata says", D2, D1, {D1: 0, D2: 0}, False, D1),
    ("found on a disk that has failed since", UNASSIGNED, D1, {D2: 0}, True, None),
    ("nowhere yet: the emptiest", UNASSIGNED, None, {D1: 3, D2: 2}, False, D2),
    ("nowhere yet, equal: the first by id", UNASSIGNED, None, {D2: 2, D1: 2}, False, D1),
    ("in a directory that is lost", LOST, None, {D1: 0}, True, None),
    ("in one that is not here, perhaps the offline one", OTHER, None, {D1: 0}, True, None),
    ("in one that is not here, and none is offline", OTHER, None, {D1: 0}, False, D1),
    ("no directory at all", UNASSIGNED, None, {}, True, None),
]


@pytest.mark.parametrize(
    ("assigned", "found", "online", "offline", "want"), [c[1:] for c in PLACES], ids=[c[0] for c in PLACES]
)
def test_where_a_replica_lies(
    assigned: Uuid, found: Uuid | None, online: dict[Uuid, int], offline: bool, want: Uuid | None
) -> None:
    assert choose_directory(assigned, found, online, offline) == want
