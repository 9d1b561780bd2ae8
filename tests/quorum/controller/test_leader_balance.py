"""The balance of leaders: whose share is too small, what is given back, when, and in slices."""

from __future__ import annotations

import pytest
from controller_world import World, cluster

from quorumlog.messages.reassignments import ElectionTopic, ElectLeadersRequest
from tests.rules import rule

INTERVAL_MS = 300_000


def led_elsewhere(partitions: int, elsewhere: int, **config: object) -> World:
    """Broker 1 should lead `partitions`; broker 2 leads `elsewhere` of them. All are in sync."""
    world = cluster(1, 2, **config)
    for number in range(partitions):
        world.create(f"t{number}", replicas=(1, 2), configs={"min.insync.replicas": "1"})
    world.fence(1)
    world.heartbeat(1)
    for number in range(partitions):
        world.alter((2, 1), sender=2, name=f"t{number}")
    led = [number for number in range(partitions) if leader(world, number) == 2]
    assert len(led) == partitions
    for number in led[elsewhere:]:
        prefer(world, number)
    return world


def leader(world: World, number: int) -> int:
    return world.partition(f"t{number}").leader


def prefer(world: World, number: int) -> None:
    topics = (ElectionTopic(name=f"t{number}", partitions=(0,)),)
    world.ask(ElectLeadersRequest(all_partitions=False, topics=topics))
    assert leader(world, number) == 1


def balance(world: World) -> None:
    world.now_ms += INTERVAL_MS
    for broker_id in (1, 2):
        if not world.tip.brokers[broker_id].fenced:
            world.heartbeat(broker_id)
    assert world.core.balance_is_due(world.now_ms)
    world.submit(world.core.balancing(world.now_ms))
    world.finish()


SHARES = [("none", 10, 0, 0), ("at the limit", 10, 1, 1), ("above it", 10, 2, 0), ("all", 10, 10, 0)]


@rule("kraft 9.22")
@pytest.mark.parametrize(("partitions", "elsewhere", "left"), [c[1:] for c in SHARES], ids=[c[0] for c in SHARES])
def test_only_what_is_above_the_percentage_is_given_back(partitions: int, elsewhere: int, left: int) -> None:
    world = led_elsewhere(partitions, elsewhere)
    balance(world)
    assert [leader(world, number) for number in range(partitions)].count(2) == left


def test_a_preferred_leader_that_is_not_in_sync_or_not_alive_is_left_out() -> None:
    world = led_elsewhere(2, 2)
    world.fence(1)
    before = world.tip.topics
    balance(world)
    assert world.tip.topics == before
    world.heartbeat(1)
    world.alter((2, 1), sender=2, name="t0")
    balance(world)
    assert (leader(world, 0), leader(world, 1)) == (1, 2)


@rule("kraft 9.22")
def test_it_works_in_slices_and_once_at_a_time() -> None:
    world = led_elsewhere(30, 30, max_slice_work=60)
    world.now_ms += INTERVAL_MS
    before = len(world.driver.batches)
    world.submit(world.core.balancing(world.now_ms))
    assert world.core.balancing(world.now_ms) is None, "the first one goes on"
    world.finish()
    assert [leader(world, number) for number in range(30)] == [1] * 30
    assert len(world.driver.batches) - before > 5
    assert world.core.balancing(world.now_ms) is not None


def test_when_it_is_due() -> None:
    world = cluster(1)
    first = world.core.balance.deadline_ms
    assert first is not None and not world.core.balance_is_due(first - 1)
    assert world.core.balance_is_due(first)
    world.submit(world.core.balancing(first))
    assert world.core.balance.deadline_ms == first + INTERVAL_MS
    world.core.resign()
    assert world.core.balance.deadline_ms is None
    off = cluster(1, auto_leader_rebalance_enable=False)
    assert off.core.balance.deadline_ms is None
    often = cluster(1, leader_imbalance_check_interval_seconds=1)
    assert often.core.balance.deadline_ms is not None
    assert often.core.balance.deadline_ms < often.now_ms + INTERVAL_MS
