"""min.insync.replicas is raised while leaders may still commit by the lower one: who becomes eligible, and when."""

from __future__ import annotations

import pytest
from controller_world import World, cluster, code

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from tests.rules import rule

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


def set_min_isr(world: World, value: str | None, kind: int = TOPIC, name: str = "t") -> None:
    change = AlterableConfig(name="min.insync.replicas", operation=DELETE if value is None else SET, value=value or "")
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(change,))
    result = world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results[0]
    assert code(result) is ErrorCode.NONE, result


def raised(kind: int = TOPIC, name: str = "t", value: str | None = "2") -> tuple[World, int]:
    """Replicas 1, 2, 3, led by 1. Returns the end of the metadata before the raise, too."""
    world = cluster(1, 2, 3, min_insync_replicas=2 if value is None else 1)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "1"} if value is None else {})
    before = world.tip.offset
    set_min_isr(world, value, kind, name)
    return world, before


@rule("kraft 9.28")
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(TOPIC, "t", "2"), (BROKER, "", "2"), (TOPIC, "t", None)],
    ids=["of the topic", "of all brokers", "taken back from the topic"],
)
def test_a_leader_that_does_not_know_the_minimum_is_granted_no_isr_below_it(
    kind: int, name: str, value: str | None
) -> None:
    world, before = raised(kind, name, value)
    tip = world.tip
    assert code(world.alter((1,), metadata_end=before)) is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert world.tip is tip
    assert code(world.alter((1, 2), metadata_end=before)) is ErrorCode.NONE, "no replica is eligible beside such an ISR"
    assert code(world.alter((1,), metadata_end=tip.offset)) is ErrorCode.NONE
    assert (world.partition().isr, world.partition().eligible_leader_replicas) == ((1,), (2,))


def test_what_a_leader_has_applied_counts_as_its_heartbeat_tells_it() -> None:
    world, before = raised()
    world.heartbeat(1, current_metadata_offset=before)
    assert code(world.alter((1,), metadata_end=0)) is ErrorCode.OPERATION_NOT_ATTEMPTED
    world.heartbeat(1)
    assert code(world.alter((1,), metadata_end=0)) is ErrorCode.NONE


@rule("kraft 9.28")
def test_an_isr_that_grows_and_stays_below_the_minimum_keeps_no_elr_for_such_a_leader() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "2"})
    world.fence(3)
    world.fence(2)
    world.heartbeat(3)
    assert (world.partition().isr, world.partition().eligible_leader_replicas) == ((1,), (2,))
    before = world.tip.offset
    set_min_isr(world, "3")
    assert code(world.alter((1, 3), metadata_end=before)) is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert code(world.alter((1, 3))) is ErrorCode.NONE


@rule("kraft 9.28")
def test_the_next_controller_takes_all_that_was_committed_for_a_raise() -> None:
    world, before = raised()
    world.new_controller()
    assert code(world.alter((1,), metadata_end=before)) is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert code(world.alter((1,))) is ErrorCode.NONE


def test_a_lower_minimum_holds_nobody_up() -> None:
    world, _ = raised()
    world.heartbeat(1)
    end = world.tip.offset
    set_min_isr(world, "1")
    assert code(world.alter((1,), metadata_end=end)) is ErrorCode.NONE
