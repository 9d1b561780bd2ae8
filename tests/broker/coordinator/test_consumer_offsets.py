"""Offsets of consumer groups: who may commit and read them (KIP-1251), when they go, and how groups are shown."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
    OffsetFetchGroup,
)
from quorumlog.settings.groups import DAY_MS
from tests.broker.coordinator.consumer_world import ConsumerWorld
from tests.broker.coordinator.group_world import G
from tests.broker.coordinator.test_consumer_migration import MixedWorld, mixed
from tests.rules import rule


@pytest.fixture
def world() -> ConsumerWorld:
    """m1 has foo 0 since epoch 2 and must give up 1 (in epoch 5); 2 and 3 belong to others."""
    world = ConsumerWorld()
    world.enter("m1")
    world.enter("m2")
    world.told("m1", 2)
    world.told("m1", 2, {"foo": {0, 1}})
    world.told("m2", 3)
    world.enter("m3")
    world.enter("m4")
    assert world.told("m1", 3).member_epoch == 3
    assert world.assigned("m1") == {"foo": {0}} and world.group.current_of("m1").revoking
    return world


@rule("group 4.1", "group 4.6")
@pytest.mark.parametrize(
    ("member", "epoch", "partition", "code"),
    [
        ("m1", 3, 0, E.NONE),
        ("m1", 3, 3, E.NONE),  # in its own epoch it is believed
        ("m1", 4, 0, E.STALE_MEMBER_EPOCH),
        ("m1", 2, 0, E.NONE),  # it has had it since then
        ("m1", 2, 1, E.NONE),  # it has it until it has given it up
        ("m1", 1, 0, E.STALE_MEMBER_EPOCH),
        ("m1", 2, 2, E.STALE_MEMBER_EPOCH),
        ("m2", 2, 2, E.STALE_MEMBER_EPOCH),  # it has had it since epoch 3
        ("who", 3, 0, E.UNKNOWN_MEMBER_ID),
        ("", -1, 0, E.UNKNOWN_MEMBER_ID),  # nobody commits beside the members
        ("m1", -1, 0, E.STALE_MEMBER_EPOCH),
    ],
)
def test_who_may_commit(member: str, epoch: int, partition: int, code: E, world: ConsumerWorld) -> None:
    assert world.commit_code({("foo", partition): 7}, member, epoch) == code
    assert (world.fetched(("foo", partition))[("foo", partition)] == 7) == (code == E.NONE)


@rule("group 4.7")
@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        ("m1", 3, E.UNSUPPORTED_VERSION),
        ("m1", 2, E.UNSUPPORTED_VERSION),  # not STALE_MEMBER_EPOCH, which it does not know either
        ("who", 3, E.UNKNOWN_MEMBER_ID),
        ("", -1, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_must_send_a_version_that_knows_its_epoch(
    member: str, epoch: int, code: E, world: ConsumerWorld
) -> None:
    assert world.commit_code({("foo", 0): 7}, member, epoch, takes_member_epoch=False) == code
    assert world.fetched(("foo", 0))[("foo", 0)] != 7


@rule("group 4.7")
def test_members_of_the_classic_protocol_may_send_any_version() -> None:
    world = MixedWorld()
    joined = mixed(world)
    code = world.commit_code({("foo", 2): 7}, joined.member_id, joined.generation_id, takes_member_epoch=False)
    assert code == E.NONE


def codes_of(answer: OffsetCommitResponse) -> list[int]:
    return [one.error_code for topic in answer.topics for one in topic.partitions]


@rule("group 4.6")
def test_one_stale_partition_refuses_the_whole_commit(world: ConsumerWorld) -> None:
    """As Kafka 4.3, whose rule for each partition throws."""
    records = len(world.log)
    answer = world.answers[world.commit({("foo", 0): 7, ("foo", 2): 8}, "m1", 2)]
    assert codes_of(answer) == [E.STALE_MEMBER_EPOCH, E.STALE_MEMBER_EPOCH]
    assert len(world.log) == records and world.fetched(("foo", 0))[("foo", 0)] == -1


@rule("group 4.6")
def test_metadata_that_is_too_large_refuses_its_partition_alone(world: ConsumerWorld) -> None:
    """Of such a partition nothing else is asked."""
    large = "x" * 5_000
    topic = OffsetCommitTopic(
        name="foo",
        partitions=(
            OffsetCommitPartition(index=0, committed_offset=7, committed_metadata=""),
            OffsetCommitPartition(index=2, committed_offset=8, committed_metadata=large),
        ),
    )
    request = OffsetCommitRequest(group_id=G, generation_id=2, member_id="m1", topics=(topic,))
    answer = world.answers[world.call("commit_offsets", request)]
    assert codes_of(answer) == [E.NONE, E.OFFSET_METADATA_TOO_LARGE]


def test_a_topic_that_was_made_again_is_another_one(world: ConsumerWorld) -> None:
    world.use(type(world.cluster)([], 9))
    assert world.commit_code({("foo", 0): 7}, "m1", 2) == E.STALE_MEMBER_EPOCH


@rule("bug 18060")
@pytest.mark.parametrize(
    ("member", "epoch", "partition", "code"),
    [
        ("m1", 3, 0, E.NONE),
        ("m1", 2, 0, E.NONE),
        ("m1", 2, 2, E.ILLEGAL_GENERATION),  # producers do not know the other error
        ("m1", 4, 0, E.ILLEGAL_GENERATION),
        ("who", 3, 0, E.UNKNOWN_MEMBER_ID),
        ("", -1, 2, E.NONE),  # KAFKA-18060
        ("", -2, 2, E.UNKNOWN_MEMBER_ID),  # it says something
        ("", 3, 2, E.UNKNOWN_MEMBER_ID),
        ("m1", -1, 0, E.ILLEGAL_GENERATION),
    ],
)
def test_who_may_commit_in_a_transaction(
    member: str, epoch: int, partition: int, code: E, world: ConsumerWorld
) -> None:
    number = world.commit_in_transaction({("foo", partition): 7}, member_id=member, generation_id=epoch)
    assert world.answers[number].topics[0].partitions[0].error_code == code


@rule("group 4.3")
def test_a_producer_that_names_an_instance_says_something(world: ConsumerWorld) -> None:
    number = world.commit_in_transaction({("foo", 2): 7}, group_instance_id="i")
    assert world.answers[number].topics[0].partitions[0].error_code == E.UNKNOWN_MEMBER_ID


@rule("group 4.3")
def test_a_transaction_has_all_offsets_of_a_call_or_none(world: ConsumerWorld) -> None:
    """As Kafka 4.3: a member with an older epoch that names one partition which it has not had since then."""
    records = len(world.log)
    number = world.commit_in_transaction({("foo", 0): 7, ("foo", 2): 8}, member_id="m1", generation_id=2)
    codes = [one.error_code for topic in world.answers[number].topics for one in topic.partitions]
    assert codes == [E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION] and len(world.log) == records
    assert not world.shard.is_committing(7)


def test_a_fenced_member_commits_nothing(world: ConsumerWorld) -> None:
    world.pass_ms(45_000)
    assert world.commit_code({("foo", 0): 7}, "m1", 3) == E.UNKNOWN_MEMBER_ID


@rule("group 4.1")
def test_an_empty_group_takes_commits_of_anybody(world: ConsumerWorld) -> None:
    world.pass_ms(45_000)
    assert world.commit_code({("foo", 0): 7}) == E.NONE
    assert world.commit_code({("foo", 0): 8}, group_instance_id="i") == E.NONE, "of a consumer that assigns itself"
    assert world.commit_code({("foo", 0): 9}, "m1") == E.NONE
    assert world.commit_code({("foo", 0): 9}, "m1", 3) == E.UNKNOWN_MEMBER_ID


@rule("group 4.8")
@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [
        (None, -1, E.NONE),
        ("m1", 3, E.NONE),
        ("m1", 2, E.STALE_MEMBER_EPOCH),
        ("m1", 4, E.STALE_MEMBER_EPOCH),
        ("who", 3, E.UNKNOWN_MEMBER_ID),
        (None, 3, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_read(member: str | None, epoch: int, code: E, world: ConsumerWorld) -> None:
    request = OffsetFetchGroup(group_id=G, member_id=member, member_epoch=epoch)
    assert world.answers[world.call("fetch_offsets", request)].error_code == code


@rule("group 4.8")
def test_a_classic_member_knows_its_generation_only() -> None:
    world = MixedWorld()
    joined = mixed(world)
    assert world.commit_code({("foo", 2): 7}, joined.member_id, 3) == E.NONE
    for partition, generation in ((2, 2), (0, 3), (2, 4)):
        code = E.NONE if (partition, generation) == (0, 3) else E.ILLEGAL_GENERATION
        assert world.commit_code({("foo", partition): 7}, joined.member_id, generation) == code
    request = OffsetFetchGroup(group_id=G, member_id=joined.member_id, member_epoch=2)
    assert world.answers[world.call("fetch_offsets", request)].error_code == E.ILLEGAL_GENERATION


@rule("group 4.6")
def test_a_classic_member_commits_in_an_older_generation_what_it_has_had_since_then() -> None:
    world = MixedWorld()
    joined = mixed(world)
    world.enter("m2")
    world.told("m1", 3)
    joined = world.classic_joins(joined.member_id, {"foo": {2, 3}})
    assert joined.generation_id == 4
    kept = min(world.synced_to(joined)["foo"])
    assert world.commit_code({("foo", kept): 7}, joined.member_id, 3) == E.NONE
    assert world.commit_code({("foo", kept): 7}, joined.member_id, 2) == E.ILLEGAL_GENERATION
    assert world.commit_code({("foo", 0): 7}, joined.member_id, 3) == E.ILLEGAL_GENERATION, "of another member"
    number = world.commit_in_transaction({("foo", kept): 8}, member_id=joined.member_id, generation_id=3)
    assert world.answers[number].topics[0].partitions[0].error_code == E.NONE


# --- deletion, expiry ---


def test_offsets_of_a_topic_that_is_consumed_stay(world: ConsumerWorld) -> None:
    world.commit({("foo", 0): 7, ("bar", 0): 8}, "m1", 3)
    request = OffsetDeleteRequest(
        group_id=G,
        topics=(OffsetDeleteTopic(name="foo", partitions=(0,)), OffsetDeleteTopic(name="bar", partitions=(0,))),
    )
    answer = world.answers[world.call("delete_offsets", request)]
    assert [one.partitions[0].error_code for one in answer.topics] == [E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE]
    assert world.fetched(("foo", 0), ("bar", 0)) == {("foo", 0): 7, ("bar", 0): -1}


@rule("group 4.15")
def test_only_an_empty_group_can_be_deleted(world: ConsumerWorld) -> None:
    world.commit({("foo", 0): 7}, "m1", 3)
    assert world.answers[world.call("delete_group", G)] == E.NON_EMPTY_GROUP
    world.pass_ms(45_000)
    assert world.answers[world.call("delete_group", G)] == E.NONE
    assert world.shard.group_ids() == ()
    left = {write.key: write.value for write in world.log}
    assert set(left.values()) == {None}, "every record has its tombstone"


def test_expiry_takes_what_nobody_consumes_and_then_the_group(world: ConsumerWorld) -> None:
    world.commit({("foo", 0): 7, ("bar", 0): 8}, "m1", 3)
    world.wall_offset_ms = 7 * DAY_MS
    world.call_expire()
    assert world.fetched(("foo", 0), ("bar", 0)) == {("foo", 0): 7, ("bar", 0): -1}
    for one in ("m1", "m2", "m3", "m4"):
        world.told(one, -1)
    world.call_expire()
    assert world.shard.group_ids() == ()
    assert set({write.key: write.value for write in world.log}.values()) == {None}


# --- how it is shown ---


@rule("group 5.11")
def test_the_states_of_a_group() -> None:
    world = ConsumerWorld()
    assert world.described().error_code == E.GROUP_ID_NOT_FOUND
    world.enter("m1")
    assert world.described().group_state == "Stable"
    world.enter("m2")
    assert world.described().group_state == "Reconciling", "the first member has an older epoch"
    world.told("m1", 2)
    world.told("m1", 2, {"foo": {0, 1}})
    assert [one.member_epoch for one in world.described().members] == [3, 3]
    assert world.described().group_state == "Reconciling", "the second member waits for partitions"
    world.told("m2", 3)
    assert world.described().group_state == "Stable"
    world.enter("m3", "bar")
    assert world.described().group_state == "Reconciling", "others have to enter the epoch, though nothing moves"
    world.told("m3", -1)
    world.told("m1", -1)
    world.told("m2", -1)
    assert world.described().group_state == "Empty"
    assert [(one.protocol_type, one.state) for one in world.shard.list()] == [("consumer", "Empty")]


@rule("group 5.11")
def test_a_group_that_is_described(world: ConsumerWorld) -> None:
    found = world.described()
    assert (found.group_epoch, found.assignment_epoch, found.assignor_name) == (5, 5, "uniform")
    first = found.members[0]
    assert (first.member_id, first.member_epoch, first.client_id, first.client_host) == ("m1", 3, "c", "/127.0.0.1")
    assert (first.subscribed_topic_names, first.subscribed_topic_regex, first.member_type) == (("foo",), None, 1)
    assert [(one.topic_name, one.partitions) for one in first.assignment] == [("foo", (0, 1))], "with what it gives up"
    assert [(one.topic_name, one.partitions) for one in first.target_assignment] == [("foo", (0,))]


@rule("group 5.11")
def test_a_group_whose_target_is_being_computed() -> None:
    world = ConsumerWorld(foo=2_000)
    world.works = False
    assert world.enter("m1").member_epoch == 1, "the target that there is, is that of epoch 1, and empty"
    assert world.described().group_state == "Assigning"
    world.works = True
    world.pass_ms(0)
    answer = world.told("m1", 1)
    assert answer.member_epoch == 2 and len(world.assigned("m1")["foo"]) == 2_000
