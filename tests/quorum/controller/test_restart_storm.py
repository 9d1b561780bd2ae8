"""A broker that starts again and again: what each start costs the log, and that nothing piles up in the controller."""

from __future__ import annotations

import pytest
from controller_world import World, cluster, registration

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from quorumlog.rpc.transport import Address
from quorumlog_quorum.controller.engine.failure_detector import FailureDetector, Target
from quorumlog_quorum.metadata.image import hash_of
from tests.rules import rule

STARTS, TOPICS = 50, 40


def three_brokers() -> World:
    world = cluster(1, 2, 3)
    for number in range(TOPICS):
        world.create(f"t{number}", replicas=(1 + number % 3, 1 + (number + 1) % 3, 1 + (number + 2) % 3))
    return world


def held_state(world: World) -> tuple[int, ...]:
    """How much the controller keeps in memory beside the image."""
    state = world.core.state
    return (len(world.core.queue), len(state.announced.brokers), len(state.pending.brokers(world.tip)))


@rule("kraft 8.18")
def test_a_broker_that_never_comes_up_costs_one_record_a_start() -> None:
    world = three_brokers()
    world.fence(3)
    world.ask(registration(3, 1))
    before, size = len(world.log), held_state(world)
    for start in range(2, STARTS):
        world.core.sessions.forget(3)  # the process before it is proven dead
        world.ask(registration(3, start))
    written = world.log[before:]
    assert [type(record) for record in written] == [RegisterBrokerRecord] * (STARTS - 2)
    assert held_state(world) == size and world.tip.state_hash == hash_of(world.tip)


def test_a_broker_that_comes_up_and_dies_changes_each_partition_once_a_start() -> None:
    world = three_brokers()
    size, brokers = held_state(world), len(world.tip.brokers)
    for start in range(1, STARTS):
        before = len(world.log)
        world.core.sessions.forget(3)
        world.start(3, start)
        written = [type(record) for record in world.log[before:]]
        assert written.count(PartitionChangeRecord) <= TOPICS
        assert written.count(RegisterBrokerRecord) == written.count(BrokerRegistrationChangeRecord) == 1
    assert held_state(world) == size and len(world.tip.brokers) == brokers
    assert all(3 not in world.partition(f"t{number}").isr for number in range(TOPICS)), "it has to catch up first"


@rule("kraft 8.18")
def test_two_processes_with_one_id_write_nothing_however_often_they_try() -> None:
    world = three_brokers()
    before = len(world.log)
    for start in range(1, STARTS):
        with pytest.raises(ApiError) as raised:
            world.ask(registration(3, start))
        assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        world.heartbeat(3)
    assert len(world.log) == before


def test_the_failure_detector_knows_one_process_of_each_broker() -> None:
    detector = FailureDetector(9_000)
    for start in range(STARTS):
        incarnation = start.to_bytes(16, "big")
        detector.on_registered(
            Target(broker_id=3, incarnation_id=incarnation, address=Address("h", 9000 + start)), start
        )
    (probe,) = detector.on_timer(STARTS)
    assert probe.target.incarnation_id == (STARTS - 1).to_bytes(16, "big")
    detector.on_unregistered(3)
    assert detector.deadline_ms() is None
