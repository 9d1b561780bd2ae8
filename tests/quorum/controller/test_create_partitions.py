"""CreatePartitions at the controller: every refusal, and what a topic that grows looks like."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import World, cluster, code

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import CreatePartitionsRequest, NewPartition, PartitionsOfTopic
from tests.rules import rule


def grow(world: World, count: int, *assignments: tuple[int, ...], name: str = "t", **fields: Any) -> Any:
    topic = PartitionsOfTopic(
        name=name, count=count, assignments=tuple(NewPartition(broker_ids=ids) for ids in assignments)
    )
    return world.ask(CreatePartitionsRequest(topics=(topic,), timeout_ms=1, **fields)).results[0]


REFUSALS: list[tuple[str, str, int, tuple[tuple[int, ...], ...], ErrorCode]] = [
    ("no such topic", "nobody", 4, (), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("as many", "t", 2, (), ErrorCode.INVALID_PARTITIONS),
    ("fewer", "t", 1, (), ErrorCode.INVALID_PARTITIONS),
    ("negative", "t", -1, (), ErrorCode.INVALID_PARTITIONS),
    ("too few assigned", "t", 4, ((1, 2),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("too many assigned", "t", 3, ((1, 2), (2, 1)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("other replication factor", "t", 3, ((1,),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("no broker assigned", "t", 3, ((),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("one broker twice", "t", 3, ((1, 1),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("unknown broker", "t", 3, ((1, 9),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
]


@pytest.mark.parametrize(
    ("name", "count", "assignments", "want"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS]
)
def test_refused(name: str, count: int, assignments: tuple[tuple[int, ...], ...], want: ErrorCode) -> None:
    world = cluster(1, 2, 3)
    world.create(num_partitions=2, replication_factor=2)
    before = world.tip
    assert code(grow(world, count, *assignments, name=name)) is want
    assert world.tip is before


def test_new_partitions_follow_the_old_ones() -> None:
    world = cluster(1, 2, 3)
    world.create(num_partitions=2, replication_factor=2)
    old = [world.partition(index=index) for index in range(2)]
    assert code(grow(world, 5)) is ErrorCode.NONE
    topic = world.tip.topic("t")
    assert topic is not None and sorted(topic.partitions) == [0, 1, 2, 3, 4]
    assert [world.partition(index=index) for index in range(2)] == old
    for index in range(2, 5):
        partition = world.partition(index=index)
        assert len(partition.replicas) == 2 and partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]


def test_assignments_are_taken_in_their_order() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2))
    assert code(grow(world, 3, (3, 1), (2, 3))) is ErrorCode.NONE
    assert [world.partition(index=index).replicas for index in range(3)] == [(1, 2), (3, 1), (2, 3)]


def test_fenced_replicas_are_not_in_the_first_isr() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    world.fence(1)
    assert code(grow(world, 2, (1, 2))) is ErrorCode.NONE
    assert (world.partition(index=1).isr, world.partition(index=1).leader) == ((2,), 2)
    world.fence(2)
    assert code(grow(world, 3, (1, 2))) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert code(grow(world, 3)) is ErrorCode.INVALID_REPLICATION_FACTOR


@rule("kraft 7.11")
def test_validate_only_changes_nothing_and_answers_the_same() -> None:
    world = cluster(1)
    world.create()
    before = world.tip
    assert code(grow(world, 3, validate_only=True)) is ErrorCode.NONE
    assert code(grow(world, 1, validate_only=True)) is ErrorCode.INVALID_PARTITIONS
    assert world.tip is before


def test_one_topic_twice_is_refused_both_times() -> None:
    world = cluster(1)
    world.create()
    topic = PartitionsOfTopic(name="t", count=2)
    results = world.ask(CreatePartitionsRequest(topics=(topic, topic), timeout_ms=1)).results
    assert [code(result) for result in results] == [ErrorCode.INVALID_REQUEST] * 2


@rule("kraft 7.12")
def test_too_many_at_once() -> None:
    world = cluster(1)
    world.create()
    with pytest.raises(ApiError) as refused:
        grow(world, 10_002)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
