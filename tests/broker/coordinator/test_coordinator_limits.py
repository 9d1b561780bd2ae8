"""Every limit of the coordinators that docs/operations.md names: what is above it is refused, with which code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorumlog.errors import ApiError
from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import GroupProtocol, JoinGroupRequest, OffsetFetchGroup
from quorumlog.settings.groups import ConsumerGroupConfig, GroupConfig
from quorumlog.settings.transactions import TransactionConfig
from quorumlog_broker.coordinator.groups.shard import GroupShard
from quorumlog_broker.coordinator.runtime import coordinators
from quorumlog_server.config.group_keys import CONSUMER_GROUP_KEYS, GROUP_KEYS
from quorumlog_server.config.transaction_keys import TRANSACTION_KEYS
from tests.broker.coordinator.consumer_world import ConsumerWorld
from tests.broker.coordinator.coordinator_cluster import CoordinatorCluster, commit
from tests.broker.coordinator.group_world import GroupWorld
from tests.broker.coordinator.transaction_world import TransactionWorld

DOCUMENTED = Path(__file__).parents[3] / "docs" / "operations.md"
ROW = re.compile(r"^\| `([a-z.]+)` \| ([\d,]+) \| .* \| ([A-Z_]+) \((\d+)\)", re.MULTILINE)


def classic(most: int = 2, delay_ms: int = 3_000) -> GroupWorld:
    return GroupWorld(GroupConfig(initial_rebalance_delay_ms=delay_ms, max_size=most))


# --- members of a classic group: group.max.size ---


def test_members_that_join_at_once_with_ids_given_before() -> None:
    """KAFKA-9844: all of them have got an id before the first one takes a place."""
    world = classic()
    ids = [world.answers[world.join()].member_id for _ in range(3)]
    joins = [world.join(member_id) for member_id in ids]
    assert world.code(joins[2]) == E.GROUP_MAX_SIZE_REACHED
    world.pass_ms(6_000)
    assert [world.joined(number).generation_id for number in joins[:2]] == [1, 1]
    assert {one.member_id for one in world.joined(joins[0]).members} == set(ids[:2])


def test_nobody_waits_for_an_id_that_was_refused_a_place() -> None:
    """Its session would hold the rebalance up."""
    world = classic(delay_ms=0)
    (leader,), generation = world.stable(1)
    first, second = [world.answers[world.join()].member_id for _ in range(2)]
    joins = [world.join(first), world.join(leader)]
    assert world.code(world.join(second)) == E.GROUP_MAX_SIZE_REACHED
    assert set(joins) <= set(world.answers), "at once"
    assert [world.joined(number).generation_id for number in joins] == [generation + 1] * 2


@pytest.mark.parametrize("instance", [None, "i"])
def test_members_that_join_at_once_without_ids(instance: str | None) -> None:
    world = classic()
    instances = [None if instance is None else f"{instance}{number}" for number in range(3)]
    joins = [world.join(takes_member_id=False, group_instance_id=one) for one in instances]
    assert [number in world.answers for number in joins] == [False, False, True]
    assert world.code(joins[2]) == E.GROUP_MAX_SIZE_REACHED


def test_in_a_rebalance_the_first_to_come_back_have_the_places() -> None:
    """Two members are stable, and newcomers are as many as they: no more than two are in the next generation."""
    world = classic(delay_ms=0)
    (leader, follower), generation = world.stable(2)
    world.join(leader)
    newcomer = world.answers[world.join(takes_member_id=True)]
    assert newcomer.error_code == E.MEMBER_ID_REQUIRED
    joined = world.join(newcomer.member_id)
    assert world.code(world.join(follower)) == E.GROUP_MAX_SIZE_REACHED
    assert world.joined(joined).generation_id == generation + 1
    assert len(world.shard._groups["g"].members) == 2


# --- members of a consumer group: group.consumer.max.size ---


def modern(most: int = 2) -> ConsumerWorld:
    return ConsumerWorld(GroupConfig(consumer=ConsumerGroupConfig(max_size=most, assignment_interval_ms=0)))


def test_a_consumer_group_takes_no_member_above_its_size() -> None:
    world = modern()
    world.enter("m0")
    world.enter("m1", instance="i")
    assert world.refused("m2", 0, topics="foo") == E.GROUP_MAX_SIZE_REACHED
    assert world.refused("m1", -2, instance="i") == E.NONE
    world.enter("m1-again", instance="i")  # a static member has its place for its next life
    world.told("m0", -1)
    world.enter("m2")


def test_the_size_of_a_consumer_group_holds_before_anything_is_committed() -> None:
    """Members whose records are on their way have their places."""
    world = modern()
    world.autocommit = False
    calls = [world.beat(f"m{number}", 0, topics="foo") for number in range(3)]
    world.commit_all()
    assert [world.answers[call].error_code for call in calls] == [0, 0, E.GROUP_MAX_SIZE_REACHED]


def test_members_of_the_classic_protocol_count_in_a_consumer_group() -> None:
    world = modern(1)
    world.enter("m0")
    subscription = b"\0\0\0\0\0\1\0\3foo\0\0\0\0"
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(GroupProtocol(name="range", metadata=subscription),),
    )
    assert world.code(world.call("join", request)) == E.GROUP_MAX_SIZE_REACHED


def test_a_classic_group_above_the_size_of_consumer_groups_stays_classic() -> None:
    few = ConsumerGroupConfig(max_size=1)
    world = ConsumerWorld(GroupConfig(initial_rebalance_delay_ms=0, consumer=few))
    world.stable(2)
    assert world.refused("m0", 0, topics="foo") == E.GROUP_ID_NOT_FOUND


# --- offsets of a group: group.coordinator.max.offsets, offset.metadata.max.bytes ---


def in_transaction(world: GroupWorld, index: int, producer_id: int = 7) -> int:
    answer = world.answers[world.commit_in_transaction({("t", index): 1}, producer_id)]
    return int(answer.topics[0].partitions[0].error_code)


def test_offsets_of_open_transactions_count() -> None:
    """Their markers would bring more than the group may have."""
    world = GroupWorld(GroupConfig(max_offsets=3))
    assert world.commit_code({("t", 0): 1}) == E.NONE
    assert [in_transaction(world, index) for index in (1, 2)] == [E.NONE] * 2
    assert in_transaction(world, 3, 8) == world.commit_code({("t", 3): 1}) == E.INVALID_COMMIT_OFFSET_SIZE
    assert in_transaction(world, 2) == in_transaction(world, 0) == E.NONE, "those that it has"
    world.end()
    assert set(world.fetched()) == {("t", 0), ("t", 1), ("t", 2)}


def test_offsets_of_an_aborted_transaction_make_room() -> None:
    world = GroupWorld(GroupConfig(max_offsets=1))
    assert in_transaction(world, 0) == E.NONE
    assert world.commit_code({("t", 1): 1}) == E.INVALID_COMMIT_OFFSET_SIZE
    world.end(committed=False)
    assert world.commit_code({("t", 1): 1}) == E.NONE


@pytest.mark.parametrize("metadata", ["x" * 5, "😀😀x"])
def test_metadata_of_an_offset(metadata: str) -> None:
    world = GroupWorld(GroupConfig(metadata_max_bytes=4))
    assert world.commit_code({("t", 0): 1}, metadata=metadata) == E.OFFSET_METADATA_TOO_LARGE
    assert world.commit_code({("t", 0): 1}, metadata="x" * 4) == E.NONE


# --- groups and calls of one partition ---


def test_groups_of_both_protocols_count() -> None:
    world = ConsumerWorld(GroupConfig(max_groups=2, consumer=ConsumerGroupConfig(assignment_interval_ms=0)))
    assert world.commit_code({("t", 0): 1}, group="a") == E.NONE
    world.enter("m0")
    assert world.refused("m0", 0, topics="foo", group="b") == E.POLICY_VIOLATION
    assert world.commit_code({("t", 0): 1}, group="b") == E.POLICY_VIOLATION
    assert world.code(world.join(group="b")) == E.POLICY_VIOLATION


def test_calls_of_a_partition_that_wait() -> None:
    cluster = CoordinatorCluster(config=GroupConfig(max_waiting_calls=1))
    cluster.create()
    cluster.begin(GroupShard.commit_offsets, commit(1))
    with pytest.raises(ApiError) as refused:
        cluster.begin(GroupShard.fetch_offsets, OffsetFetchGroup(group_id="g"))
    assert refused.value.code == E.COORDINATOR_NOT_AVAILABLE
    assert "which is the limit" in refused.value.message


# --- transactional ids of one partition: transaction.coordinator.max.ids ---


def test_transactional_ids() -> None:
    world = TransactionWorld(TransactionConfig(max_ids=2))
    for name in "ab":
        world.started(transactional_id=name)
    answer = world.answers[world.init(transactional_id="c")]
    assert answer.error_code == E.POLICY_VIOLATION
    world.fail_over()
    answer = world.answers[world.init(transactional_id="c")]
    assert answer.error_code == E.POLICY_VIOLATION
    world.started(transactional_id="a")


# --- what is documented ---


def documented() -> dict[str, tuple[int, str, int]]:
    """name -> (default, name of the error, its code)"""
    text = DOCUMENTED.read_text()
    return {name: (int(default.replace(",", "")), error, int(code)) for name, default, error, code in ROW.findall(text)}


def test_the_documented_defaults_and_codes_are_those_of_the_software() -> None:
    keys = {key.name: key.default for key in (*GROUP_KEYS, *CONSUMER_GROUP_KEYS, *TRANSACTION_KEYS)}
    found = documented()
    for name, (default, error, code) in found.items():
        assert int(str(keys[name])) == default, name
        assert E[error] == code, name
    limits = re.compile(r"\.max\.(size|groups|offsets|ids|waiting|waiting\.calls)$|^offset\.metadata\.max")
    assert {name for name in keys if limits.search(name)} == set(found)


def test_requests_that_wait_for_a_load_are_limited() -> None:
    assert f"{coordinators.MAX_WAITING_FOR_LOADS:,} requests of a broker" in DOCUMENTED.read_text()
