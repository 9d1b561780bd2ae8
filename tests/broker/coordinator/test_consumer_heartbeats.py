"""ConsumerGroupHeartbeat: joining, reconciling, leaving, and what each request is answered (KIP-848)."""

from __future__ import annotations

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.messages.groups import ConsumerGroupHeartbeatRequest, SubscribedTopicNames
from tests.broker.coordinator.consumer_world import ConsumerWorld, assignment, topics
from tests.broker.coordinator.group_world import G
from tests.rules import rule


@pytest.fixture
def world() -> ConsumerWorld:
    return ConsumerWorld()


# --- joining ---


def test_the_first_member_sees_epoch_2_and_all_partitions(world: ConsumerWorld) -> None:
    answer = world.enter("m1")
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("m1", 2, 5_000)
    assert assignment(answer) == {"foo": {0, 1, 2, 3}}
    assert world.described().group_state == "Stable"


def test_a_member_of_version_0_gets_its_id_from_the_broker(world: ConsumerWorld) -> None:
    assert world.told("", 0, topics="foo", chooses_member_id=False).member_id == "u1"


@rule("group 5.5", "bug crabka 521")
def test_partitions_move_only_after_their_owner_has_said_so(world: ConsumerWorld) -> None:
    everything = {"foo": {0, 1, 2, 3}}
    world.enter("m1")
    second = world.enter("m2")
    assert (second.member_epoch, assignment(second)) == (3, {})
    first = world.told("m1", 2)
    assert first.member_epoch == 2 and assignment(first) == {"foo": {0, 1}}
    assert world.described().group_state == "Reconciling"
    assert assignment(world.told("m1", 2, everything)) is None, "it still owns them"
    assert world.told("m2", 3).assignment is None
    assert world.told("m1", 2, {"foo": {0, 1}}).member_epoch == 3
    assert assignment(world.told("m2", 3)) == {"foo": {2, 3}}
    assert world.described().group_state == "Stable"


def test_an_unchanged_heartbeat_writes_nothing(world: ConsumerWorld) -> None:
    world.enter("m1")
    before = len(world.log)
    answer = world.told("m1", 2)
    assert (len(world.log), answer.assignment, answer.member_epoch) == (before, None, 2)


def test_a_full_request_is_told_its_assignment_again(world: ConsumerWorld) -> None:
    world.enter("m1")
    answer = world.told("m1", 2, {"foo": {0, 1, 2, 3}}, topics="foo", timeout_ms=60_000)
    assert assignment(answer) == {"foo": {0, 1, 2, 3}}


# --- leaving ---


@rule("group 5.9")
def test_what_a_member_leaves_the_others_get(world: ConsumerWorld) -> None:
    world.enter("m1")
    world.enter("m2")
    world.told("m1", 2)
    answer = world.told("m1", -1)
    assert (answer.member_epoch, answer.assignment) == (-1, None)
    assert assignment(world.told("m2", 3)) == {"foo": {0, 1, 2, 3}}


def test_a_group_without_members_is_empty_and_stays(world: ConsumerWorld) -> None:
    world.enter("m1")
    world.told("m1", -1)
    described = world.described()
    assert (described.group_state, described.group_epoch, described.members) == ("Empty", 3, ())
    assert world.enter("m2").member_epoch == 4


def test_a_silent_member_is_fenced_at_the_end_of_its_session(world: ConsumerWorld) -> None:
    world.enter("m1")
    world.pass_ms(44_999)
    world.told("m1", 2)
    world.pass_ms(44_999)
    assert world.told("m1", 2)
    world.pass_ms(45_000)
    assert world.refused("m1", 2) == E.UNKNOWN_MEMBER_ID


@rule("group 5.6")
def test_a_member_that_does_not_give_up_is_fenced_at_the_end_of_its_time(world: ConsumerWorld) -> None:
    everything = {"foo": {0, 1, 2, 3}}
    world.enter("m1", timeout_ms=20_000)
    world.enter("m2")
    world.told("m1", 2)
    for _ in range(3):
        world.pass_ms(6_000)
        world.told("m1", 2, everything)
        world.told("m2", 3)
    world.pass_ms(2_000)
    assert world.refused("m1", 2, everything) == E.UNKNOWN_MEMBER_ID
    assert assignment(world.told("m2", 3)) == {"foo": {0, 1, 2, 3}}


# --- what is refused ---


@rule("group 5.2")
@pytest.mark.parametrize(
    ("epoch", "more", "code"),
    [
        (0, {"topics": "foo", "group": ""}, E.INVALID_REQUEST),
        (0, {"topics": "foo", "instance": ""}, E.INVALID_REQUEST),
        (0, {"topics": "foo", "rack_id": ""}, E.INVALID_REQUEST),
        (0, {"topics": "foo", "timeout_ms": -1}, E.INVALID_REQUEST),
        (0, {"topics": "foo", "owned": {"foo": {1}}}, E.INVALID_REQUEST),
        (0, {}, E.INVALID_REQUEST),
        (-2, {}, E.INVALID_REQUEST),
        (-3, {"instance": "i"}, E.INVALID_REQUEST),
        (0, {"topics": "foo", "server_assignor": "sticky"}, E.UNSUPPORTED_ASSIGNOR),
        (0, {"regex": "(a"}, E.INVALID_REGULAR_EXPRESSION),
        (0, {"regex": r"(a)\1"}, E.INVALID_REGULAR_EXPRESSION),
        (1, {}, E.GROUP_ID_NOT_FOUND),
        (-1, {}, E.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_request_that_is_refused(epoch: int, more: dict[str, object], code: E, world: ConsumerWorld) -> None:
    assert world.refused("m1", epoch, **more) == code  # type: ignore[arg-type]
    assert world.log == [] and world.answers[1].error_message


@rule("group 5.2")
@pytest.mark.parametrize(("epoch", "chooses"), [(0, True), (1, True), (1, False), (-1, False)])
def test_a_member_needs_an_id(epoch: int, chooses: bool, world: ConsumerWorld) -> None:
    assert world.refused("", epoch, topics="foo", chooses_member_id=chooses) == E.INVALID_REQUEST


@rule("group 5.2")
def test_a_member_that_joins_says_that_it_owns_nothing(world: ConsumerWorld) -> None:
    names = SubscribedTopicNames(names=("foo",))
    request = ConsumerGroupHeartbeatRequest(
        group_id=G, member_id="m1", member_epoch=0, rebalance_timeout_ms=1, subscribed_topic_names=names
    )
    assert world.answers[world.call("consumer_heartbeat", request)].error_code == E.INVALID_REQUEST


@pytest.mark.parametrize("epoch", [3, -1])
def test_a_member_that_is_not_known(epoch: int, world: ConsumerWorld) -> None:
    world.enter("m1")
    assert world.refused("m2", epoch) == E.UNKNOWN_MEMBER_ID


def with_a_lost_reply(world: ConsumerWorld) -> None:
    """m1 owns 0 and 1 in epoch 3, and its answer was lost: it believes that it is in epoch 2."""
    world.enter("m1")
    world.enter("m2")
    world.told("m1", 2)
    assert world.told("m1", 2, {"foo": {0, 1}}).member_epoch == 3


@rule("group 5.3")
@pytest.mark.parametrize(
    ("epoch", "owned", "code"),
    [
        (4, {"foo": {0, 1}}, E.FENCED_MEMBER_EPOCH),
        (1, {"foo": {0, 1}}, E.FENCED_MEMBER_EPOCH),
        (2, None, E.FENCED_MEMBER_EPOCH),
        (2, {"foo": {0, 1, 2}}, E.FENCED_MEMBER_EPOCH),
        (2, {"foo": {0, 1}}, E.NONE),
        (2, {"foo": {0}}, E.NONE),
        (2, {}, E.NONE),
        (3, None, E.NONE),
        (3, {"foo": {0, 1, 2}}, E.NONE),
    ],
)
def test_the_epoch_of_a_member(epoch: int, owned: dict[str, set[int]] | None, code: E, world: ConsumerWorld) -> None:
    with_a_lost_reply(world)
    assert world.refused("m1", epoch, owned) == code


@rule("group 5.3", "bug 19233")
def test_a_member_joins_again_if_the_answer_to_its_first_join_was_lost(world: ConsumerWorld) -> None:
    """KAFKA-19233"""
    world.enter("m1")
    before = len(world.log)
    answer = world.enter("m1")
    assert (answer.member_epoch, assignment(answer), len(world.log)) == (2, {"foo": {0, 1, 2, 3}}, before)


# --- the cluster ---


@rule("group 5.7")
def test_a_topic_that_grows_is_assigned_anew(world: ConsumerWorld) -> None:
    world.enter("m1")
    world.use(topics(version=1, foo=6))
    answer = world.told("m1", 2)
    assert (answer.member_epoch, assignment(answer)) == (3, {"foo": {0, 1, 2, 3, 4, 5}})


def test_a_change_that_is_not_about_the_group_does_not_touch_it(world: ConsumerWorld) -> None:
    world.enter("m1")
    before = len(world.log)
    world.use(topics(version=1, foo=4, other=1))
    assert world.told("m1", 2).member_epoch == 2 and len(world.log) == before


@rule("group 5.7")
def test_a_topic_that_comes_later_is_assigned_then(world: ConsumerWorld) -> None:
    assert assignment(world.enter("m1", "foo bar")) == {"foo": {0, 1, 2, 3}}
    world.use(topics(version=1, foo=4, bar=1))
    assert assignment(world.told("m1", 2)) == {"foo": {0, 1, 2, 3}, "bar": {0}}


@rule("group 5.7")
def test_a_topic_that_goes_is_taken_away(world: ConsumerWorld) -> None:
    world.use(topics(foo=2, bar=2))
    world.enter("m1", "foo bar")
    world.use(topics(version=1, foo=2))
    assert assignment(world.told("m1", 2)) == {"foo": {0, 1}}


def test_a_member_that_changes_its_topics(world: ConsumerWorld) -> None:
    world.use(topics(foo=2, bar=2))
    world.enter("m1", "foo")
    assert assignment(world.told("m1", 2, topics="bar")) == {}, "first it gives up what it has"
    answer = world.told("m1", 2, {})
    assert (answer.member_epoch, assignment(answer)) == (3, {"bar": {0, 1}})
