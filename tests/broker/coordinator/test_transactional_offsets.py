"""Offsets that are committed in transactions: who may, when they are read, and what of them stays."""

from __future__ import annotations

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
from quorumlog.records.control import COMMIT
from quorumlog.settings.groups import DAY_MS
from quorumlog_broker.coordinator.group_turn import Producer
from quorumlog_broker.coordinator.groups.consumer.settings import FixedCluster, Topic
from quorumlog_broker.coordinator.groups.shard import GroupShard
from tests.broker.coordinator.group_world import G, GroupWorld, replay
from tests.rules import rule

A, B = ("a", 0), ("b", 1)


@pytest.fixture
def world() -> GroupWorld:
    return GroupWorld()


def code(world: GroupWorld, number: int) -> int:
    return int(world.answers[number].topics[0].partitions[0].error_code)


def stable_code(world: GroupWorld, partition: tuple[str, int]) -> int:
    return code(world, world.fetch(partition, stable=True))


@rule("group 4.12", "group 4.13")
def test_an_offset_is_read_once_its_transaction_is_committed(world: GroupWorld) -> None:
    world.commit({A: 1, B: 1})
    assert code(world, world.commit_in_transaction({A: 5})) == E.NONE
    assert world.fetched(A) == {A: 1}
    assert (stable_code(world, A), stable_code(world, B)) == (E.UNSTABLE_OFFSET_COMMIT, E.NONE)
    assert world.answers[world.end()] == E.NONE
    assert world.fetched(A) == {A: 5} and stable_code(world, A) == E.NONE


def test_an_aborted_offset_is_gone(world: GroupWorld) -> None:
    world.commit({A: 1})
    world.commit_in_transaction({A: 5, B: 6})
    world.end(committed=False)
    assert world.fetched(A, B) == {A: 1, B: -1} and stable_code(world, A) == E.NONE
    world.end()
    assert world.fetched(A, B) == {A: 1, B: -1}, "it was decided once"


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_outlives_a_failover(world: GroupWorld, committed: bool) -> None:
    world.commit_in_transaction({A: 5})
    world.fail_over()
    assert stable_code(world, A) == E.UNSTABLE_OFFSET_COMMIT
    world.end(committed=committed)
    world.fail_over()
    assert world.fetched(A) == {A: 5 if committed else -1}


def test_transactions_of_two_producers_end_apart(world: GroupWorld) -> None:
    world.commit_in_transaction({A: 5}, 7)
    world.commit_in_transaction({A: 6}, 8)
    world.end(7)
    assert world.fetched(A) == {A: 5} and stable_code(world, A) == E.UNSTABLE_OFFSET_COMMIT
    world.end(8)
    assert world.fetched(A) == {A: 6} and stable_code(world, A) == E.NONE


def test_the_transaction_whose_record_is_newer_wins_whichever_ends_last(world: GroupWorld) -> None:
    world.commit_in_transaction({A: 5}, 7)
    world.commit_in_transaction({A: 6}, 8)
    world.end(8)
    world.end(7)
    assert world.fetched(A) == {A: 6}


@rule("group 4.13")
def test_a_plain_commit_behind_a_pending_one_stays(world: GroupWorld) -> None:
    world.commit_in_transaction({A: 5})
    world.commit({A: 9})
    assert world.fetched(A) == {A: 9}
    world.end()
    assert world.fetched(A) == {A: 9}
    world.fail_over()
    assert world.fetched(A) == {A: 9}


@rule("bug 17507")
def test_the_marker_is_answered_and_its_offsets_are_read_once_it_is_committed() -> None:
    world = GroupWorld(autocommit=False)
    pending = world.commit_in_transaction({A: 5})
    assert pending not in world.answers
    world.commit_all()
    ended, read = world.end(), world.fetch(A)
    assert not {ended, read} & set(world.answers)
    assert sorted(world.shard.resigned()) == [ended, read]
    world.fail_over(keep=1)
    world.commit_all()
    again = world.fetch(A)
    assert world.answers[again].topics[0].partitions[0].committed_offset == -1


@rule("group 1.9")
def test_what_was_loaded_and_may_be_cut_is_not_read() -> None:
    world = GroupWorld(autocommit=False)
    world.commit({A: 5})
    world.shard = GroupShard(world.config, str)
    replay(world.log, world.shard)
    world.shard.loaded(1)
    read = world.fetch(A)
    world.commit_to(0)
    assert read not in world.answers
    world.commit_to(1)
    assert world.answers[read].topics[0].partitions[0].committed_offset == 5


def test_records_and_marker_are_of_the_producer(world: GroupWorld) -> None:
    world.commit_in_transaction({A: 5})
    world.end()
    record, marker = world.log
    assert record.producer == marker.producer == Producer(7, 0)
    assert not record.is_control and marker.is_control
    assert marker.key == bytes((0, 0, 0, COMMIT))
    assert record.value is not None and record.value.endswith(b"\0"), "no tag: the call named no topic by its id"


@rule("bug ydb 52731")
def test_a_marker_of_a_producer_that_wrote_nothing_is_written(world: GroupWorld) -> None:
    assert world.answers[world.end()] == E.NONE
    assert [write.is_control for write in world.log] == [True]


# --- who may ---


@rule("group 4.3")
def test_who_may_commit(world: GroupWorld) -> None:
    def commit(*args: object, **more: object) -> int:
        return code(world, world.commit_in_transaction({A: 5}, **more))  # type: ignore[arg-type]

    assert commit(generation_id=1, member_id="who") == E.ILLEGAL_GENERATION, "there is no group yet"
    assert commit(group="") == E.INVALID_GROUP_ID
    (leader, follower), generation = world.stable(2)
    assert commit() == E.NONE, "a producer that says nothing of its consumer"
    assert commit(generation_id=generation, member_id="who") == E.UNKNOWN_MEMBER_ID
    assert commit(generation_id=generation - 1, member_id=leader) == E.ILLEGAL_GENERATION
    assert commit(generation_id=generation, member_id=leader) == E.NONE
    again = world.join(leader)
    world.join(follower)
    generation = world.joined(again).generation_id
    assert world.state() == "CompletingRebalance"
    assert commit(generation_id=generation, member_id=leader) == E.NONE, "a transaction does not wait for the leader"


@rule("group 4.3")
@pytest.mark.parametrize("who", [{"group_instance_id": "i"}, {"member_id": "m"}])
def test_whoever_assigns_its_partitions_itself_commits_for_an_empty_group(
    who: dict[str, str], world: GroupWorld
) -> None:
    world.commit({A: 1})
    assert code(world, world.commit_in_transaction({A: 5}, **who)) == E.NONE
    world.end()
    assert world.fetched(A) == {A: 5}
    world.stable(1)
    assert code(world, world.commit_in_transaction({A: 6}, **who)) == E.UNKNOWN_MEMBER_ID


def test_a_static_member_whose_place_is_taken_is_fenced(world: GroupWorld) -> None:
    old = world.joined(world.join(group_instance_id="i"))
    world.sync(old.member_id, 1, {old.member_id: b""}, group_instance_id="i")
    world.join(group_instance_id="i")
    number = world.commit_in_transaction({A: 5}, generation_id=1, member_id=old.member_id, group_instance_id="i")
    assert code(world, number) == E.FENCED_INSTANCE_ID


@rule("group 4.5", "bug 16371")
def test_too_much_metadata_leaves_nothing_pending(world: GroupWorld) -> None:
    assert code(world, world.commit_in_transaction({A: 5}, metadata="x" * 4_097)) == E.OFFSET_METADATA_TOO_LARGE
    assert stable_code(world, A) == E.NONE and world.log == []


# --- a topic that was made again ---

OLD, NEW = bytes(15) + b"\1", bytes(15) + b"\2"


def stage(world: GroupWorld, topic_id: bytes, offset: int, producer_id: int = 7) -> int:
    partitions = (OffsetCommitPartition(index=0, committed_offset=offset),)
    topics = (OffsetCommitTopic(name="a", topic_id=topic_id, partitions=partitions),)
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id=G, producer_id=producer_id, producer_epoch=0, topics=topics
    )
    return code(world, world.call("commit_transactional", request))


def plain(world: GroupWorld, topic_id: bytes, offset: int) -> int:
    partitions = (OffsetCommitPartition(index=0, committed_offset=offset),)
    topics = (OffsetCommitTopic(name="a", topic_id=topic_id, partitions=partitions),)
    return code(world, world.call("commit_offsets", OffsetCommitRequest(group_id=G, topics=topics)))


def read(world: GroupWorld, topic_id: bytes) -> int:
    wanted = OffsetFetchTopics(topics=(OffsetFetchTopic(name="a", topic_id=topic_id, partitions=(0,)),))
    response = world.answers[world.call("fetch_offsets", OffsetFetchGroup(group_id=G, topics=wanted))]
    return int(response.topics[0].partitions[0].committed_offset)


@rule("group 4.9")
@pytest.mark.parametrize("fails_over", [False, True])
@pytest.mark.parametrize("told", [OLD, b""], ids=["by its id", "by an older version without the id"])
def test_a_pending_offset_goes_with_its_topic(world: GroupWorld, told: bytes, fails_over: bool) -> None:
    """Its marker would bring it back, and the group would begin in the new topic at the old one's offset."""
    stage(world, told, 60)
    stage(world, told, 61, 8)
    world.call_topic_deleted("a", NEW)
    assert stable_code(world, A) == (E.UNSTABLE_OFFSET_COMMIT if told else E.NONE), "another topic was deleted"
    world.call_topic_deleted("a", OLD)
    assert stable_code(world, A) == E.NONE
    if fails_over:
        world.fail_over()
    world.end(7)
    world.end(8)
    assert (read(world, NEW), read(world, b"")) == (-1, -1)
    world.fail_over()
    assert read(world, b"") == -1 and world.state() == "Dead"


@rule("group 4.9")
@pytest.mark.parametrize("fails_over", [False, True])
def test_a_coordinator_that_is_not_told_of_the_deletion_gives_the_offset_to_no_other_topic(
    world: GroupWorld, fails_over: bool
) -> None:
    """It was paused meanwhile, and another one may lead."""
    stage(world, OLD, 60)
    if fails_over:
        world.fail_over()
    world.end()
    assert (read(world, OLD), read(world, NEW)) == (60, -1)


def test_what_the_new_topic_has_stays_when_the_deletion_is_told_late(world: GroupWorld) -> None:
    stage(world, OLD, 60, 7)
    plain(world, NEW, 3)
    world.call_topic_deleted("a", OLD)
    world.end(7)
    assert read(world, NEW) == 3
    stage(world, NEW, 4, 8)
    world.call_topic_deleted("a", OLD)
    world.end(8)
    assert read(world, NEW) == 4
    plain(world, NEW, 5)
    world.fail_over()
    assert read(world, NEW) == 5


@rule("group 4.9")
def test_a_call_that_comes_after_the_deletion_commits_nothing_for_the_topic(world: GroupWorld) -> None:
    """It has found the topic in older metadata, and has waited for its transaction's coordinator since."""
    plain(world, NEW, 3)
    world.call_topic_deleted("a", OLD)
    assert stage(world, OLD, 60) == plain(world, OLD, 61) == E.UNKNOWN_TOPIC_OR_PARTITION
    world.end()
    assert read(world, NEW) == 3
    for number in range(2_000):  # what is remembered of deleted topics has a limit
        world.shard.topic_deleted((), "b", number.to_bytes(16))
    assert len(world.shard._offset_calls._gone) == 1_000


@rule("group 4.9")
def test_all_offsets_of_a_group_are_those_of_the_topics_that_there_are(world: GroupWorld) -> None:
    world.shard.use(FixedCluster((Topic(NEW, "a", 1),)))
    stage(world, OLD, 60)
    world.end()
    plain(world, b"", 7)
    world.commit({B: 6})
    assert world.fetched() == {A: 7, B: 6}
    plain(world, OLD, 60)
    assert world.fetched() == {B: 6}, "of a topic that had the name before"
    plain(world, NEW, 8)
    assert world.fetched() == {A: 8, B: 6}


@rule("group 4.14")
def test_a_deleted_offset_does_not_come_back_with_the_marker(world: GroupWorld) -> None:
    world.commit({B: 1})
    world.commit_in_transaction({A: 5})
    topics = (OffsetDeleteTopic(name="a", partitions=(0,)),)
    answer = world.answers[world.call("delete_offsets", OffsetDeleteRequest(group_id=G, topics=topics))]
    assert answer.topics[0].partitions[0].error_code == E.NONE
    world.end()
    assert world.fetched() == {B: 1}
    world.fail_over()
    assert world.fetched() == {B: 1}


# --- deletion and expiry ---


@rule("group 4.15", "bug 19163")
def test_a_deleted_group_does_not_come_back_with_the_marker(world: GroupWorld) -> None:
    world.commit({A: 1})
    world.commit_in_transaction({A: 5, B: 6})
    assert world.answers[world.call("delete_group", G)] == E.NONE
    world.end()
    assert world.fetched() == {} and world.state() == "Dead"
    world.fail_over()
    assert world.fetched() == {} and world.state() == "Dead"


@rule("group 4.18", "bug redpanda 9571")
def test_nothing_that_is_pending_expires(world: GroupWorld) -> None:
    world.commit({A: 1, B: 1})
    world.commit_in_transaction({A: 5})
    world.pass_ms(8 * DAY_MS)
    world.call_expire()
    assert world.fetched() == {A: 1}
    world.end(committed=False)
    world.call_expire()
    assert world.fetched() == {} and world.state() == "Dead"


def test_a_group_with_nothing_but_a_pending_offset_is_kept(world: GroupWorld) -> None:
    world.commit_in_transaction({A: 5})
    world.fail_over()
    world.pass_ms(8 * DAY_MS)
    world.call_expire()
    assert world.state() == "Empty"
    world.end()
    assert world.fetched() == {A: 5}
