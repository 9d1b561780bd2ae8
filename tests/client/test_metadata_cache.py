"""What a client believes when brokers that are cut off answer from old metadata (KIP-320, KIP-516)."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from quorumlog.client.cluster.metadata_cache import MAX_REPLACED, KnownLeader, LeaderPlace, MetadataCache, TopicLife
from quorumlog.errors import ErrorCode
from quorumlog.messages.cluster import MetadataResponse, PartitionMetadata, TopicMetadata
from quorumlog.messages.common import CurrentLeader
from quorumlog.rpc.transport import Address

OLD, NEW, NEWEST = b"o" * 16, b"n" * 16, b"z" * 16


def named(topic_id: bytes, at: int = -1, *, epoch: int = 1, partitions: int = 1, leader: int = 1) -> MetadataResponse:
    """at: the metadata offset."""
    parts = tuple(PartitionMetadata(index=i, leader_id=leader, leader_epoch=epoch) for i in range(partitions))
    return MetadataResponse(topics=(TopicMetadata(name="t", topic_id=topic_id, partitions=parts),), metadata_offset=at)


def unknown(at: int = -1) -> MetadataResponse:
    topic = TopicMetadata(name="t", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponse(topics=(topic,), metadata_offset=at)


class Case(NamedTuple):
    name: str
    answers: list[MetadataResponse]
    believed: bytes  # the id, as the topic is known at last; empty: it is not known


CASES = [
    Case("a newer life", [named(OLD, 10), named(NEW, 20)], NEW),
    Case("an older one, never heard of before", [named(NEW, 20), named(OLD, 10)], NEW),
    Case("one that was replaced", [named(OLD), named(NEW), named(OLD)], NEW),
    Case("one that was replaced twice", [named(OLD), named(NEW), named(NEWEST), named(OLD), named(NEW)], NEWEST),
    Case("a broker that has not heard of it", [named(NEW, 20), unknown(10)], NEW),
    Case("deleted", [named(NEW, 20), unknown(21)], b""),
    Case("deleted, says a broker that does not say when", [named(NEW), unknown()], b""),
    Case("an older one after the deletion", [named(NEW, 20), unknown(21), named(OLD, 10)], b""),
    Case("a replaced one after the deletion", [named(OLD), named(NEW), unknown(), named(OLD)], b""),
    Case("the same after the deletion of a broker that is behind", [named(NEW), unknown(), named(NEW)], NEW),
    Case("the latest metadata count, not the first", [named(OLD, 10), named(OLD, 30), named(NEW, 20)], OLD),
    Case("no ids", [named(b"", 10), named(b"", 20)], b""),
]


@pytest.mark.parametrize(("answers", "believed"), [case[1:] for case in CASES], ids=[case.name for case in CASES])
def test_an_id_that_was_replaced_does_not_come_back(answers: list[MetadataResponse], believed: bytes) -> None:
    cache = MetadataCache()
    for answer in answers:
        cache.update(answer)
    known = cache.topics.get("t")
    assert (known.topic_id if known is not None else b"") == believed


def test_what_somebody_else_has_heard_counts() -> None:
    cache = MetadataCache()
    cache.update(named(OLD, 10))
    cache.learn("t", TopicLife(NEW, 20))
    assert "t" not in cache.topics and cache.is_replaced("t", OLD) and not cache.is_replaced("t", NEW)
    cache.update(named(OLD, 15))
    assert "t" not in cache.topics
    cache.update(named(NEW, 25))
    cache.learn("t", TopicLife(OLD, 10))
    assert cache.topics["t"].topic_id == NEW


def test_a_record_of_a_newer_epoch_shows_that_a_leader_is_deposed() -> None:
    cache = MetadataCache()
    cache.update(named(OLD, 20, epoch=5, leader=2))
    cache.epoch_seen("t", OLD, 0, 5)
    assert cache.topics["t"].partitions[0] == KnownLeader(2, 5)
    cache.epoch_seen("t", OLD, 0, 6)
    assert cache.topics["t"].partitions[0] == KnownLeader(-1, 6)
    assert not cache.update(named(OLD, 20, epoch=5, leader=2))  # it is behind, and is not asked next
    assert cache.topics["t"].partitions[0].leader_id == -1
    assert cache.update(named(OLD, 30, epoch=6, leader=3))
    assert cache.topics["t"].partitions[0] == KnownLeader(3, 6)
    cache.update(named(NEW, 40, epoch=0))
    cache.epoch_seen("t", OLD, 0, 6)  # of a former life
    assert cache.topics["t"].partitions[0] == KnownLeader(1, 0)


def test_within_a_life_epochs_do_not_fall_and_partitions_do_not_become_fewer() -> None:
    cache = MetadataCache()
    cache.update(named(OLD, 20, epoch=5, partitions=3, leader=2))
    cache.update(named(OLD, 10, epoch=4, partitions=2, leader=1))
    known = {index: (one.leader_id, one.epoch) for index, one in cache.topics["t"].partitions.items()}
    assert known == dict.fromkeys(range(3), (2, 5))
    cache.update(named(NEW, 30, epoch=0))
    assert cache.topics["t"].partition_count == 1 and cache.topics["t"].partitions[0].epoch == 0


def test_a_hint_of_another_life_is_not_taken() -> None:
    cache = MetadataCache()
    cache.update(named(NEW, 20, epoch=0))
    assert not cache.take_hint("t", OLD, 0, CurrentLeader(leader_id=3, leader_epoch=7), ())
    assert cache.topics["t"].partitions[0].epoch == 0
    cache.take_hint("t", NEW, 0, CurrentLeader(leader_id=3, leader_epoch=1), ())
    assert cache.topics["t"].partitions[0].leader_id == 3


TOLD = LeaderPlace(2, 5, Address("b2", 9092))


def told(life: TopicLife = TopicLife(OLD, 10)) -> MetadataCache:
    cache = MetadataCache()
    cache.learn("t", life)
    assert cache.learn_leader("t", OLD, 0, TOLD) is (life.topic_id == OLD)
    return cache


def test_a_leader_that_somebody_told_is_known_until_metadata_say_more() -> None:
    cache = told()
    assert cache.leader_place("t", 0) == TOLD and cache.leader_of("t", 1) is None and "t" not in cache.topics
    assert not cache.update(named(OLD, 10, epoch=4, leader=1))  # it is behind
    assert cache.leader_of("t", 0) == KnownLeader(2, 5)
    assert cache.update(named(OLD, 20, epoch=6, leader=3))
    assert cache.leader_of("t", 0) == KnownLeader(3, 6)
    assert not cache.learn_leader("t", OLD, 0, TOLD), "metadata are there"
    assert cache.leader_of("t", 0) == KnownLeader(3, 6)


@pytest.mark.parametrize("answer", [named(NEW, 20, epoch=0), unknown(20)], ids=["made anew", "deleted"])
def test_a_leader_that_somebody_told_goes_with_its_topic(answer: MetadataResponse) -> None:
    cache = told()
    cache.update(answer)
    assert cache.leader_of("t", 0) != KnownLeader(2, 5)


@pytest.mark.parametrize("life", [TopicLife(NEW, 20), TopicLife(b"")], ids=["another life", "no id"])
def test_a_leader_of_another_life_is_not_believed(life: TopicLife) -> None:
    assert told(life).leader_of("t", 0) is None


def test_a_leader_whose_address_is_unknown_is_told_to_nobody() -> None:
    cache = MetadataCache()
    cache.update(named(OLD, 10))
    assert cache.leader_of("t", 0) == KnownLeader(1, 1) and cache.leader_place("t", 0) is None


def test_the_memory_of_former_lives_is_bounded() -> None:
    cache = MetadataCache()
    for number in range(MAX_REPLACED + 2):
        cache.update(named(number.to_bytes(16, "big")))
    cache.update(named((1).to_bytes(16, "big")))
    assert cache.topics["t"].topic_id == (MAX_REPLACED + 1).to_bytes(16, "big")
    cache.update(named((0).to_bytes(16, "big")))  # forgotten, and without an offset nobody can tell
    assert cache.topics["t"].topic_id == (0).to_bytes(16, "big")
