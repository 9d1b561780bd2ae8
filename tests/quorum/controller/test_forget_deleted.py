"""The controller forgets a deleted topic when every registered broker has reported that no directory of it is left."""

from __future__ import annotations

import pytest
from controller_world import World, cluster

from quorumlog.messages.cluster import DeleteTopicsRequest, TopicQuery
from quorumlog.messages.metadata_records import ForgetDeletedTopicsRecord, UnregisterBrokerRecord
from quorumlog_quorum.controller.bulk_changes import forget_deleted
from quorumlog_quorum.controller.bulk_changes.forget_deleted import FORGET_INTERVAL_MS
from tests.rules import rule


def delete(world: World, *names: str) -> None:
    world.ask(DeleteTopicsRequest(topics=tuple(TopicQuery(name=name) for name in names), timeout_ms=1_000))


def remembered(world: World) -> list[str]:
    return [deleted.name for _, deleted in world.tip.sorted_deleted()]


def report(world: World, *broker_ids: int, before: int | None = None) -> None:
    """before: None for all that there is."""
    world.now_ms += FORGET_INTERVAL_MS
    for broker_id in broker_ids:
        world.heartbeat(broker_id, deletions_done_before=len(world.log) if before is None else before)


def world_with_deleted(*names: str) -> World:
    world = cluster(1, 2, 3)
    for name in names:
        world.create(name)
    delete(world, *names)
    assert remembered(world) == list(names)
    return world


@rule("kraft 11.11")
def test_it_is_forgotten_when_the_last_broker_has_reported() -> None:
    world = world_with_deleted("a", "b")
    report(world, 1, 2)
    assert remembered(world) == ["a", "b"]
    report(world, 3)
    assert remembered(world) == []
    report(world, 1, 2, 3)
    assert sum(isinstance(record, ForgetDeletedTopicsRecord) for record in world.log) == 1


def test_only_what_was_deleted_below_the_reported_offset_is_forgotten() -> None:
    world = world_with_deleted("a", "b")
    first = world.tip.sorted_deleted()[0][1].offset
    report(world, 1, 2, 3, before=first)
    assert remembered(world) == ["a", "b"], "exclusive"
    report(world, 1, 2, before=first + 9)
    report(world, 3, before=first + 1)
    assert remembered(world) == ["b"]


def test_a_broker_without_a_report_holds_it_up() -> None:
    """It has just started, is fenced, or has a directory that is offline."""
    world = world_with_deleted("a")
    report(world, 1, 2)
    report(world, 3, before=0)
    assert remembered(world) == ["a"]
    report(world, 3)
    assert remembered(world) == []


@rule("kraft 11.12")
def test_what_a_process_reported_does_not_count_for_the_next_one() -> None:
    world = world_with_deleted("a")
    report(world, 3)
    world.fence(3)
    world.start(3, 1)
    report(world, 1, 2)
    assert remembered(world) == ["a"]
    report(world, 3)
    assert remembered(world) == []


@rule("kraft 11.11")
def test_a_fenced_broker_holds_it_up_and_an_unregistered_one_does_not() -> None:
    world = world_with_deleted("a")
    report(world, 3)
    world.fence(3)
    report(world, 1, 2)
    assert remembered(world) == ["a"]
    epoch = world.tip.brokers[3].broker_epoch
    log = (*world.log, UnregisterBrokerRecord(broker_id=3, broker_epoch=epoch))
    world = World(log=log)
    report(world, 1, 2)
    assert remembered(world) == []


@rule("kraft 11.12")
def test_a_new_controller_hears_every_broker_first() -> None:
    world = world_with_deleted("a")
    report(world, 1, 2)
    world.new_controller()
    report(world, 3)
    assert remembered(world) == ["a"]
    report(world, 1, 2)
    assert remembered(world) == []


def test_it_is_rate_limited_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget_deleted, "MAX_FORGOTTEN_AT_ONCE", 2)
    world = world_with_deleted("a", "b", "c", "d", "e")
    report(world, 1, 2, 3)
    left = [remembered(world)]
    for passed_ms in (FORGET_INTERVAL_MS - 1, 1, FORGET_INTERVAL_MS - 1, 1):
        world.now_ms += passed_ms
        world.heartbeat(1, deletions_done_before=len(world.log))
        left.append(remembered(world))
    assert left == [["c", "d", "e"], ["c", "d", "e"], ["e"], ["e"], []]


def test_at_an_older_level_nothing_is_remembered() -> None:
    world = world_with_deleted("a")
    old = tuple(record for record in world.log[1:] if not isinstance(record, ForgetDeletedTopicsRecord))
    world = World(log=old)
    assert remembered(world) == []
    report(world, 1, 2, 3)
    assert not any(isinstance(record, ForgetDeletedTopicsRecord) for record in world.log)
