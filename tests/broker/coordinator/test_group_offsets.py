"""Committed offsets of a group: who may commit, what is read when, what is deleted, and what expires."""

from __future__ import annotations

import struct

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
    OffsetFetchGroup,
    OffsetFetchTopic,
    OffsetFetchTopics,
)
from quorumlog.messages.transactions import TxnOffsetCommitRequest
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.offsets import OffsetKey
from quorumlog.settings.groups import DAY_MS, GroupConfig
from quorumlog_broker.coordinator.groups.shard import GroupShard
from tests.broker.coordinator.group_world import SESSION_MS, G, GroupWorld
from tests.rules import rule

A, B = ("a", 0), ("b", 1)


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


def subscription(*topics: str) -> str:
    """A member's metadata, as text that `join` encodes again: the names are ASCII."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return (struct.pack(">hi", 1, len(topics)) + names).decode("latin-1")


def subscribed(world: GroupWorld, *topics: str) -> str:
    """A stable group of one member that consumes these topics."""
    member_id = world.member(protocols=f"range:{subscription(*topics)}")
    world.sync(member_id, 1, {member_id: b""})
    assert world.state() == "Stable"
    return member_id


def delete(world: GroupWorld, *topics: str) -> list[int]:
    request = OffsetDeleteRequest(
        group_id=G, topics=tuple(OffsetDeleteTopic(name=topic, partitions=(0,)) for topic in topics)
    )
    response = world.answers[world.call("delete_offsets", request)]
    return [response.error_code] if response.error_code else [one.partitions[0].error_code for one in response.topics]


# --- commit ---


def test_a_group_without_members_commits(world: GroupWorld) -> None:
    assert world.commit_code({A: 5}) == E.NONE
    assert world.fetched(A, B) == {A: 5, B: -1}
    assert world.fetched() == {A: 5}
    world.fail_over()
    assert world.fetched() == {A: 5}
    assert [(one.group_id, one.state, one.protocol_type) for one in world.shard.list()] == [(G, "Empty", "")]


def test_a_negative_offset_is_committed_as_any_other(world: GroupWorld) -> None:
    """Kafka checks the metadata of a commit and no more; its clients take a negative offset for none."""
    assert world.commit_code({A: -1}) == E.NONE and world.commit_code({B: -5}) == E.NONE
    assert world.fetched(A, B) == world.fetched() == {A: -1, B: -5}
    world.fail_over()
    assert world.fetched(A, B) == world.fetched() == {A: -1, B: -5}


@rule("group 4.2")
def test_who_may_commit(world: GroupWorld) -> None:
    assert world.commit_code({A: 1}, "who", 1) == E.GROUP_ID_NOT_FOUND, "there is no group yet"
    (leader, _), generation = world.stable(2)
    assert world.commit_code({A: 1}) == E.UNKNOWN_MEMBER_ID, "the group has members"
    assert world.commit_code({A: 1}, "who", generation) == E.UNKNOWN_MEMBER_ID
    assert world.commit_code({A: 1}, leader, generation - 1) == E.ILLEGAL_GENERATION
    assert world.commit_code({A: 1}, leader, generation, group_instance_id="i") == E.UNKNOWN_MEMBER_ID
    assert world.commit_code({A: 1}, leader, generation) == E.NONE


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_group_of_offsets_alone_has_no_member(world: GroupWorld, is_loaded: bool) -> None:
    """Kafka makes the simple group when it replays its first offset, so it is not an unknown group behind a load."""
    assert world.commit_code({A: 1}) == E.NONE
    if is_loaded:
        world.fail_over()
    assert world.commit_code({A: 2}, "who", 1) == E.UNKNOWN_MEMBER_ID
    in_transaction = world.answers[world.commit_in_transaction({A: 2}, generation_id=1, member_id="who")]
    assert in_transaction.topics[0].partitions[0].error_code == E.UNKNOWN_MEMBER_ID
    assert world.commit_code({A: 3}) == E.NONE
    assert world.fetched(A) == {A: 3}


@rule("group 4.1")
@pytest.mark.parametrize(
    "who",
    [{}, {"group_instance_id": "i"}, {"member_id": "m"}, {"member_id": "m", "group_instance_id": "i"}],
)
def test_whoever_assigns_its_partitions_itself_commits_to_an_empty_group(
    who: dict[str, str], world: GroupWorld
) -> None:
    """Java's consumer says its `group.instance.id` with every commit, also where it has assigned its partitions."""
    member = who.get("member_id", "")
    instance = who.get("group_instance_id")
    for offset in (1, 2):  # the first one makes the group
        assert world.commit_code({A: offset}, member, group_instance_id=instance) == E.NONE
        assert world.fetched(A) == {A: offset}
    world.stable(1)
    assert world.commit_code({A: 3}, member, group_instance_id=instance) == E.UNKNOWN_MEMBER_ID
    assert world.fetched(A) == {A: 2}


@rule("group 4.3")
def test_a_member_commits_before_it_joins_again_and_not_while_the_leader_assigns(world: GroupWorld) -> None:
    (leader, follower), generation = world.stable(2)
    again = world.join(leader)
    assert world.commit_code({A: 7}, follower, generation) == E.NONE
    world.join(follower)
    new = world.joined(again).generation_id
    assert world.commit_code({A: 8}, follower, new) == E.REBALANCE_IN_PROGRESS
    assert world.commit_code({A: 8}, follower, generation) == E.ILLEGAL_GENERATION
    assert world.fetched(A) == {A: 7}


@rule("group 4.4")
def test_a_commit_counts_as_a_sign_of_life(world: GroupWorld) -> None:
    ids, generation = world.stable(1)
    for number in range(3):
        world.pass_ms(SESSION_MS - 1)
        assert world.commit_code({A: number}, ids[0], generation) == E.NONE
    assert world.heartbeat(ids[0], generation) == E.NONE


@rule("group 4.5")
def test_metadata_is_limited_in_utf16_units(world: GroupWorld) -> None:
    assert world.commit_code({A: 1}, metadata="x" * 4_096) == E.NONE
    assert world.commit_code({A: 2}, metadata="x" * 4_097) == E.OFFSET_METADATA_TOO_LARGE
    assert world.commit_code({A: 3}, metadata="\N{GRINNING FACE}" * 2_049) == E.OFFSET_METADATA_TOO_LARGE
    assert world.fetched(A) == {A: 1}
    assert world.commit_code({A: 4}, metadata="\N{EURO SIGN}" * 4_096) == E.NONE, "three bytes in UTF-8, one unit"


def test_a_call_that_writes_nothing_waits_for_nothing() -> None:
    """No commit would ever come to wake it: found with a deletion that all partitions refused."""
    world = GroupWorld(autocommit=False)
    world.commit({A: 5})
    world.commit_all()
    too_large = world.commit({A: 6}, metadata="x" * 4_097)
    forgotten = OffsetDeleteRequest(group_id=G, topics=(OffsetDeleteTopic(name="never", partitions=(0,)),))
    deleted = world.call("delete_offsets", forgotten)
    assert world.answers[too_large].topics[0].partitions[0].error_code == E.OFFSET_METADATA_TOO_LARGE
    assert world.answers[deleted].topics[0].partitions[0].error_code == E.NONE


@rule("bug 17306")
@pytest.mark.parametrize("known", [False, True])
def test_a_tombstone_of_what_is_not_there_is_loaded(known: bool) -> None:
    """Compaction may have taken the record that it deletes."""
    shard = GroupShard(GroupConfig(), lambda: "u")
    key = encode_key(OffsetKey(G, *A))
    if known:
        shard.replay_bytes(0, encode_key(OffsetKey(G, *B)), None)
    shard.replay_bytes(1, key, None)
    shard.loaded(2)
    assert shard.group_ids() == ()


def test_a_commit_is_answered_and_read_once_it_is_committed() -> None:
    world = GroupWorld(autocommit=False)
    committed = world.commit({A: 5})
    read = world.fetch(A)
    other = world.fetch(A, group="other")
    assert other in world.answers and not {committed, read} & set(world.answers)
    world.commit_all()
    assert world.answers[committed].topics[0].partitions[0].error_code == E.NONE
    assert world.answers[read].topics[0].partitions[0].committed_offset == 5


def test_what_a_failover_cut_was_never_told() -> None:
    world = GroupWorld(autocommit=False)
    world.commit({A: 5})
    world.commit_all()
    second, read = world.commit({A: 6}), world.fetch(A)
    assert sorted(world.shard.resigned()) == [second, read]
    world.fail_over(keep=1)
    world.autocommit = True
    assert world.fetched(A) == {A: 5}
    assert not {second, read} & set(world.answers)


# --- a topic that was made again ---


@rule("group 4.9", "bug 2000")
@pytest.mark.parametrize("retention_ms", [-1, DAY_MS], ids=["the broker's retention", "an old client's retention"])
@pytest.mark.parametrize("loaded", [False, True], ids=["", "by another coordinator"])
def test_offsets_of_a_deleted_topic_are_not_those_of_its_successor(
    world: GroupWorld, retention_ms: int, loaded: bool
) -> None:
    old, new = bytes(15) + b"\1", bytes(15) + b"\2"
    topic = OffsetCommitTopic(name="a", topic_id=old, partitions=(OffsetCommitPartition(index=0, committed_offset=5),))
    world.call("commit_offsets", OffsetCommitRequest(group_id=G, topics=(topic,), retention_time_ms=retention_ms))
    if loaded:
        world.fail_over()

    def read(topic_id: bytes) -> int:
        wanted = OffsetFetchTopics(topics=(OffsetFetchTopic(name="a", topic_id=topic_id, partitions=(0,)),))
        response = world.answers[world.call("fetch_offsets", OffsetFetchGroup(group_id=G, topics=wanted))]
        return int(response.topics[0].partitions[0].committed_offset)

    assert (read(old), read(b""), read(new)) == (5, 5, -1)
    world.call_topic_deleted("a", new)
    assert read(old) == 5, "it was committed for another topic"
    world.call_topic_deleted("a", old)
    assert read(old) == -1


# --- a group of which nothing is stored ---


@rule("group 4.1")
def test_a_commit_of_which_nothing_is_stored_makes_no_group(world: GroupWorld) -> None:
    nothing = OffsetCommitRequest(group_id=G, topics=())
    assert world.answers[world.call("commit_offsets", nothing)].topics == ()
    assert world.commit_code({A: 5}, metadata="x" * 4_097) == E.OFFSET_METADATA_TOO_LARGE
    for topics in ((), (OffsetCommitTopic(name="a", partitions=(too_much(),)),)):
        request = TxnOffsetCommitRequest(
            transactional_id="x", group_id=G, producer_id=7, producer_epoch=0, topics=topics
        )
        world.call("commit_transactional", request)
    assert world.log == [] and world.shard.list() == () and world.state() == "Dead"
    assert world.commit_code({A: 5}) == E.NONE
    assert [one.group_id for one in world.shard.list()] == [G] and world.state() == "Empty"


def too_much() -> OffsetCommitPartition:
    return OffsetCommitPartition(index=0, committed_offset=5, committed_metadata="x" * 4_097)


# --- delete ---


@rule("group 4.14")
def test_offsets_of_a_topic_that_is_consumed_stay(world: GroupWorld) -> None:
    member_id = subscribed(world, "a")
    world.commit({A: 5, ("b", 0): 6}, member_id, 1)
    assert delete(world, "a", "b", "c") == [E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE, E.NONE]
    assert world.fetched() == {A: 5}
    world.fail_over()
    assert world.fetched() == {A: 5}


@rule("group 4.14")
def test_a_group_that_does_not_consume_must_be_empty(world: GroupWorld) -> None:
    assert delete(world, "a") == [E.GROUP_ID_NOT_FOUND]
    member_id = world.member(protocol_type="connect")
    world.sync(member_id, 1, {member_id: b""})
    assert delete(world, "a") == [E.NON_EMPTY_GROUP]


@rule("group 4.14")
def test_metadata_that_cannot_be_read_keeps_every_offset(world: GroupWorld) -> None:
    ids, generation = world.stable(1)
    world.commit({A: 5}, ids[0], generation)
    assert delete(world, "a") == [E.GROUP_SUBSCRIBED_TO_TOPIC]
    world.pass_ms(SESSION_MS - 1)
    world.call_expire()
    assert world.fetched(A) == {A: 5}


# --- expiry (KIP-211) ---


@rule("group 4.17")
def test_a_simple_group_expires_from_the_commit_on(world: GroupWorld) -> None:
    world.commit({A: 5})
    world.pass_ms(DAY_MS)
    world.commit({B: 6})
    world.pass_ms(6 * DAY_MS - 1)
    world.call_expire()
    assert world.fetched() == {A: 5, B: 6}
    world.pass_ms(1)
    world.call_expire()
    assert world.fetched() == {B: 6}
    world.pass_ms(DAY_MS)
    world.call_expire()
    assert world.shard.list() == ()


@rule("group 4.17", "bug 13636")
def test_a_group_expires_from_when_it_became_empty(world: GroupWorld) -> None:
    ids, generation = world.stable(1)
    world.commit({A: 5}, ids[0], generation)
    for _ in range(8 * DAY_MS // DAY_MS):
        world.pass_ms(SESSION_MS - 1)
        world.heartbeat(ids[0], generation)
    world.leave(ids[0])
    world.fail_over()
    world.pass_ms(7 * DAY_MS - 1)
    world.call_expire()
    assert world.fetched() == {A: 5}
    world.pass_ms(1)
    world.call_expire()
    assert world.fetched() == {} and world.state() == "Dead"
    world.fail_over()
    assert world.state() == "Dead"


@rule("group 4.18")
def test_a_stable_group_loses_offsets_only_of_topics_that_it_left(world: GroupWorld) -> None:
    member_id = subscribed(world, "a")
    world.commit({A: 5, B: 6}, member_id, 1)
    for _ in range(7 * 24):
        world.config = GroupConfig(initial_rebalance_delay_ms=0)
        world.pass_ms(SESSION_MS - 1)
        world.heartbeat(member_id, 1)
    world.wall_offset_ms = 7 * DAY_MS
    world.call_expire()
    assert world.fetched() == {A: 5}


@rule("group 4.19")
def test_an_old_clients_retention_is_its_own(world: GroupWorld) -> None:
    world.commit({A: 5}, retention_time_ms=1_000)
    world.commit({B: 6})
    world.pass_ms(1_000)
    world.call_expire()
    assert world.fetched() == {B: 6}


@rule("group 4.19")
@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**62, -(2**63), 0, -2])
def test_any_retention_that_an_old_client_may_send_is_taken(world: GroupWorld, retention_ms: int) -> None:
    """The largest one means for ever, and its end lies beyond the last time that a record can hold."""
    assert world.commit_code({A: 5}, retention_time_ms=retention_ms) == E.NONE
    world.pass_ms(1_000)
    world.call_expire()
    assert world.fetched() == ({A: 5} if retention_ms > 0 else {})
