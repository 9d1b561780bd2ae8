"""Static members of a consumer group (KIP-345, KIP-848)."""

from __future__ import annotations

from typing import TypeVar

import pytest

from quorumlog.errors import ErrorCode as E
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.groups.consumer.reconcile import PAUSED
from tests.broker.coordinator.consumer_world import ConsumerWorld, assignment
from tests.rules import rule

Result = TypeVar("Result")


def drain(steps: Sliced[Result]) -> Result:
    """Run all slices."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.fixture
def world() -> ConsumerWorld:
    """m1 is instance i, m2 is dynamic; both have two partitions in epoch 3."""
    world = ConsumerWorld()
    world.enter("m1", instance="i")
    world.enter("m2")
    world.told("m1", 2, instance="i")
    world.told("m1", 2, {"foo": {0, 1}}, instance="i")
    assert assignment(world.told("m2", 3)) == {"foo": {2, 3}}
    return world


@rule("group 5.4")
def test_a_paused_member_keeps_its_partitions_and_comes_back_with_another_id(world: ConsumerWorld) -> None:
    answer = world.told("m1", PAUSED, instance="i")
    assert (answer.member_epoch, answer.assignment) == (PAUSED, None)
    current = world.group.current_of("m1")
    assert current.epoch == PAUSED and set(current.assigned.values()) == {0} and not current.revoking
    assert world.told("m2", 3).assignment is None
    before = world.group.epoch
    answer = world.enter("m3", instance="i")
    assert (answer.member_epoch, assignment(answer)) == (before, {"foo": {0, 1}})
    assert set(world.group.members) == {"m2", "m3"} and world.group.epoch == before
    assert world.described().group_state == "Stable"


def test_a_paused_member_comes_back_with_its_own_id(world: ConsumerWorld) -> None:
    world.told("m1", PAUSED, instance="i")
    answer = world.enter("m1", instance="i")
    assert (answer.member_epoch, assignment(answer)) == (3, {"foo": {0, 1}})


def test_a_paused_member_that_does_not_come_back_is_fenced(world: ConsumerWorld) -> None:
    world.told("m1", PAUSED, instance="i")
    world.pass_ms(30_000)
    world.told("m2", 3)
    world.pass_ms(15_000)
    assert assignment(world.told("m2", 3)) == {"foo": {0, 1, 2, 3}}
    assert "i" not in world.group.static


@rule("group 5.4")
def test_an_instance_in_use_is_not_given_away(world: ConsumerWorld) -> None:
    assert world.refused("m3", 0, topics="foo", instance="i") == E.UNRELEASED_INSTANCE_ID


@rule("group 5.4")
def test_one_that_lost_its_instance_is_fenced(world: ConsumerWorld) -> None:
    world.told("m1", PAUSED, instance="i")
    world.enter("m3", instance="i")
    assert world.refused("m1", 3, instance="i") == E.FENCED_INSTANCE_ID
    assert world.refused("m1", -1, instance="i") == E.FENCED_INSTANCE_ID
    assert world.refused("m1", PAUSED, instance="i") == E.FENCED_INSTANCE_ID


@rule("group 5.4")
@pytest.mark.parametrize("epoch", [3, -1, -2])
def test_an_instance_that_is_not_known(epoch: int, world: ConsumerWorld) -> None:
    assert world.refused("m1", epoch, instance="j") == E.UNKNOWN_MEMBER_ID


def test_a_paused_member_cannot_go_on_without_joining(world: ConsumerWorld) -> None:
    world.told("m1", PAUSED, instance="i")
    assert world.refused("m1", 3, instance="i") == E.FENCED_MEMBER_EPOCH


def test_a_member_that_comes_back_with_other_topics_begins_an_epoch(world: ConsumerWorld) -> None:
    world.told("m1", PAUSED, instance="i")
    answer = world.enter("m3", "bar", instance="i")
    assert (answer.member_epoch, assignment(answer)) == (4, {})


def test_pausing_lets_go_what_was_to_be_given_up(world: ConsumerWorld) -> None:
    world.enter("m4")
    world.enter("m5")
    assert assignment(world.told("m1", 3, instance="i")) == {"foo": {0}}
    assert assignment(world.told("m5", 5)) is None
    world.told("m1", PAUSED, instance="i")
    assert assignment(world.told("m5", 5)) == {"foo": {1}}


def test_an_instance_comes_back_after_a_failover(world: ConsumerWorld) -> None:
    world.told("m1", PAUSED, instance="i")
    world.fail_over()
    assert assignment(world.enter("m3", instance="i")) == {"foo": {0, 1}}
