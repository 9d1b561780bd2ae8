"""Creating and deleting topics: every refusal, defaults, places, and what is written in which order."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from controller_world import World, cluster, code, uuid
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import (
    CreatableTopic,
    CreateTopicResult,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ReplicaAssignment,
    TopicQuery,
)
from quorumlog.messages.common import ConfigEntry
from quorumlog_quorum.controller.partitions.placement import place_replicas
from quorumlog_quorum.metadata.registration import UNASSIGNED, BrokerRegistration
from tests.rules import rule


def by_hand(*partitions: tuple[int, tuple[int, ...]]) -> dict[str, Any]:
    return {"assignments": tuple(ReplicaAssignment(partition=p, broker_ids=b) for p, b in partitions)}


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("a bad name", {"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("an existing name", {"name": "old.t"}, ErrorCode.TOPIC_ALREADY_EXISTS),
    ("a colliding name", {"name": "old_t"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("no partitions", {"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
    ("fewer than none", {"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
    ("no replicas", {"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ("more replicas than brokers", {"replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ("an unknown setting", {"configs": {"retention.mss": "1"}}, ErrorCode.INVALID_CONFIG),
    ("a bad value", {"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
    ("an empty word", {"configs": {"cleanup.policy": "compact,,delete"}}, ErrorCode.INVALID_CONFIG),
    ("a gap", by_hand((0, (1,)), (2, (1,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("a partition twice", by_hand((0, (1,)), (0, (2,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("no brokers", by_hand((0, ())), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("a broker twice", by_hand((0, (1, 1))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("an unknown broker", by_hand((0, (1, 9))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("uneven", by_hand((0, (1, 2)), (1, (1,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("no broker alive", by_hand((0, (3,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("by hand and by number", by_hand((0, (1,))) | {"num_partitions": 1}, ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("fields", "want"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(fields: dict[str, Any], want: ErrorCode) -> None:
    world = cluster(1, 2, 3)
    world.create("old.t")
    world.fence(3)
    before = world.tip
    result = world.create(**fields)
    assert code(result) is want and result.error_message
    assert world.tip is before


@rule("kraft 7.10")
def test_no_topic_without_a_live_broker() -> None:
    world = cluster(1)
    world.fence(1)
    assert code(world.create()) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_defaults_come_from_the_controller() -> None:
    world = cluster(1, 2, 3, num_partitions=4, default_replication_factor=2, min_insync_replicas=2)
    result = world.create(configs={"retention.ms": "5"})
    assert (result.num_partitions, result.replication_factor) == (4, 2)
    effective = {entry.name: entry.value for entry in result.configs}
    assert (effective["retention.ms"], effective["min.insync.replicas"]) == ("5", "2")
    assert world.tip.topic_config("t") == {"retention.ms": "5", "min.insync.replicas": "2"}


@rule("kraft 7.8")
def test_a_topic_is_written_before_its_settings_and_partitions() -> None:
    world = cluster(1)
    start = len(world.log)
    world.create(num_partitions=2, configs={"segment.ms": "1", "retention.ms": "5"})
    kinds = [type(record).__name__ for record in world.log[start:]]
    assert kinds == ["TopicRecord", "ConfigRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord"]


@rule("kraft 7.9")
def test_only_live_replicas_are_in_sync_and_the_first_of_them_leads() -> None:
    world = cluster(1, 2, 3)
    world.fence(1)
    world.create(replicas=(1, 3, 2))
    assert (world.partition().isr, world.partition().leader) == ((3, 2), 3)


@rule("kraft 10.1")
def test_a_broker_with_one_directory_needs_no_assignment() -> None:
    world = cluster(1)
    world.start(2, log_directories=(uuid(2), uuid(22)))
    world.create(replicas=(1, 2))
    assert world.partition().directories == (uuid(1), UNASSIGNED)


def request(*names: str, **fields: Any) -> CreateTopicsRequest:
    topics = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names)
    return CreateTopicsRequest(topics=topics, timeout_ms=1, **fields)


def test_topics_of_one_request_meet_each_other() -> None:
    world = cluster(1)
    response = world.ask(request("a", "b", "b", "c.d", "c_d"))
    assert [code(result) for result in response.topics] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert sorted(world.tip.topic_ids) == ["a", "c.d"]


@rule("kraft 7.11")
def test_validate_only_answers_and_writes_nothing() -> None:
    world = cluster(1)
    before = world.tip
    response = world.ask(request("a", "b", "bad name", validate_only=True))
    assert [code(result) for result in response.topics][:2] == [ErrorCode.NONE, ErrorCode.NONE]
    assert code(response.topics[2]) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert world.tip is before


@rule("kraft 7.12")
def test_too_many_partitions_are_refused_as_a_whole() -> None:
    world = cluster(1)
    topics = tuple(CreatableTopic(name=name, num_partitions=5_001, replication_factor=1) for name in "ab")
    with pytest.raises(ApiError) as raised:
        world.ask(CreateTopicsRequest(topics=topics, timeout_ms=1))
    assert raised.value.code is ErrorCode.POLICY_VIOLATION and not world.tip.topics


def created(world: World, *values: str | None, validate_only: bool = False) -> CreateTopicResult:
    """The answer for a topic with these values of retention.ms, one after the other."""
    configs = tuple(ConfigEntry(name="retention.ms", value=value) for value in values)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    return world.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1, validate_only=validate_only)).topics[0]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("first", ["1", "7", "soon"], ids=["the same", "another", "one that is none"])
def test_of_a_setting_that_is_named_twice_the_last_value_counts(first: str, validate_only: bool) -> None:
    """As in Kafka 4.3, also where it only validates; AlterConfigs refuses such a request there, and here."""
    world = cluster(1)
    result = created(world, first, "7", validate_only=validate_only)
    assert code(result) is ErrorCode.NONE
    assert {entry.name: entry.value for entry in result.configs}["retention.ms"] == "7"
    if not validate_only:
        assert world.tip.topic_config("t")["retention.ms"] == "7"


@pytest.mark.parametrize("values", [(None,), (None, "7"), ("7", None), ("7", "soon")])
def test_a_setting_without_value_is_refused_wherever_it_stands_and_so_is_a_bad_last_value(
    values: tuple[str | None, ...],
) -> None:
    world = cluster(1)
    assert code(created(world, *values)) is ErrorCode.INVALID_CONFIG and not world.tip.topics


def test_deleting() -> None:
    world = cluster(1)
    world.create("a", configs={"retention.ms": "1"})
    world.create("b")
    b_id = world.tip.topic_ids["b"]
    queries = (
        TopicQuery(name="a"),
        TopicQuery(name="never"),
        TopicQuery(topic_id=b_id),
        TopicQuery(topic_id=uuid(3)),
        TopicQuery(topic_id=b"odd"),
        TopicQuery(name="a", topic_id=uuid(3)),
    )
    results = world.ask(DeleteTopicsRequest(topics=queries, timeout_ms=1)).topics
    assert [code(result) for result in results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
    ]
    assert (results[2].name, results[2].topic_id) == ("b", b_id)
    assert not world.tip.topics and (2, "a") not in world.tip.configs


def test_a_topic_that_is_named_twice_stays() -> None:
    world = cluster(1)
    for name in "abc":
        world.create(name)
    by_id = TopicQuery(topic_id=world.tip.topic_ids["b"])
    queries = (TopicQuery(name="a"), TopicQuery(name="a"), by_id, TopicQuery(name="b"), TopicQuery(name="c"))
    results = world.ask(DeleteTopicsRequest(topics=queries, timeout_ms=1)).topics
    assert [code(result) for result in results] == [ErrorCode.INVALID_REQUEST] * 4 + [ErrorCode.NONE]
    assert set(world.tip.topic_ids) == {"a", "b"}


@rule("kraft 7.13")
def test_a_name_created_again_is_another_topic() -> None:
    world = cluster(1)
    first = world.create().topic_id
    world.ask(DeleteTopicsRequest(topics=(TopicQuery(name="t"),), timeout_ms=1))
    assert world.create().topic_id != first


# Placement


def registrations(racks: dict[int, str | None], fenced: tuple[int, ...] = ()) -> list[BrokerRegistration]:
    return [
        BrokerRegistration(
            broker_id=broker_id,
            incarnation_id=uuid(broker_id),
            broker_epoch=0,
            endpoints=(),
            rack=racks[broker_id],
            fenced=broker_id in fenced,
            in_controlled_shutdown=False,
            log_directories=(uuid(broker_id),),
        )
        for broker_id in sorted(racks)
    ]


NO_RACKS: dict[int, str | None] = dict.fromkeys(range(5))
RACKS: dict[int, str | None] = {broker_id: "abc"[broker_id % 3] for broker_id in range(6)}


@pytest.mark.parametrize(
    ("racks", "partitions", "factor"), [(NO_RACKS, 50, 3), (NO_RACKS, 25, 5), (RACKS, 60, 3), (RACKS, 60, 2)]
)
def test_replicas_and_leaders_are_spread_evenly(racks: dict[int, str | None], partitions: int, factor: int) -> None:
    placed = list(place_replicas(registrations(racks), partitions, factor, random.Random(7)))
    leaders = Counter(replicas[0] for replicas in placed)
    all_replicas = Counter(broker_id for replicas in placed for broker_id in replicas)
    assert set(leaders.values()) == {partitions // len(racks)}
    assert set(all_replicas.values()) == {partitions * factor // len(racks)}


def test_replicas_are_on_different_racks_as_far_as_there_are_any() -> None:
    for replicas in place_replicas(registrations(RACKS), 30, 3, random.Random(3)):
        assert len({RACKS[broker_id] for broker_id in replicas}) == 3


@rule("kraft 7.20")
def test_leaders_are_spread_evenly_while_a_rack_is_down() -> None:
    """The rack that follows the dead one does not lead for both."""
    for seed in range(5):
        placed = list(place_replicas(registrations(RACKS, (1, 4)), 60, 3, random.Random(seed)))
        leaders = Counter(replicas[0] for replicas in placed)
        assert leaders == dict.fromkeys((0, 2, 3, 5), 15)


def test_followers_of_one_leader_differ() -> None:
    placed = list(place_replicas(registrations(NO_RACKS), 200, 2, random.Random(1)))
    assert all(len({r[1] for r in placed if r[0] == leader}) == 4 for leader in range(5))


@rule("kraft 7.20")
@given(
    st.dictionaries(st.integers(0, 7), st.sampled_from([None, "a", "b"]), min_size=1),
    st.integers(1, 12),
    st.integers(1, 8),
    st.data(),
)
def test_any_placement_is_sound(
    racks: dict[int, str | None], partitions: int, factor: int, data: st.DataObject
) -> None:
    fenced = tuple(sorted(data.draw(st.sets(st.sampled_from(sorted(racks))))))
    brokers, seed = registrations(racks, fenced), data.draw(st.integers(0, 99))
    alive = [broker_id for broker_id in racks if broker_id not in fenced]
    if factor > len(racks) or not alive:
        with pytest.raises(ApiError, match="INVALID_REPLICATION_FACTOR"):
            place_replicas(brokers, partitions, factor, random.Random(seed))
        return
    placed = list(place_replicas(brokers, partitions, factor, random.Random(seed)))
    assert placed == list(place_replicas(brokers, partitions, factor, random.Random(seed))), "the seed decides"
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] not in fenced
        assert sum(broker_id in fenced for broker_id in replicas) == max(0, factor - len(alive))
        live_racks = {racks[broker_id] for broker_id in alive}
        used = {racks[broker_id] for broker_id in replicas if broker_id in alive}
        assert len(used) == min(len(live_racks), factor), "no rack twice before each has one"


def test_a_world_is_sound_from_its_first_record() -> None:
    assert World(min_insync_replicas=2).tip.topic_config("any") == {"min.insync.replicas": "2"}
