"""UnregisterBroker: what the cluster forgets with a broker, what it keeps, and who may come after it."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import World, cluster, registration, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.brokers import UnregisterBrokerRequest as Unregister
from quorumlog.messages.controller import AssignReplicasToDirectoriesRequest as Assign
from quorumlog.messages.controller import BrokerHeartbeatRequest, DirectoryAssignment
from quorumlog.messages.metadata_records import PartitionChangeRecord, UnregisterBrokerRecord
from quorumlog_quorum.metadata.check import violations
from quorumlog_quorum.metadata.registration import RECOVERED, UNASSIGNED
from tests.rules import rule

MIN_TWO = {"min.insync.replicas": "2"}


def refused(world: World, request: Any) -> ErrorCode:
    before = world.tip
    with pytest.raises(ApiError) as raised:
        world.ask(request)
    assert world.tip is before
    return raised.value.code


@rule("kraft 8.16")
def test_partitions_change_before_the_broker_is_forgotten() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(2, 1, 3))
    epoch = world.tip.brokers[2].broker_epoch
    before = len(world.log)
    assert world.ask(Unregister(broker_id=2)).error_code == ErrorCode.NONE
    assert [type(record) for record in world.log[before:]] == [PartitionChangeRecord, UnregisterBrokerRecord]
    assert world.log[-1] == UnregisterBrokerRecord(broker_id=2, broker_epoch=epoch)
    assert sorted(world.tip.brokers) == [1, 3]
    after = world.partition()
    assert (after.replicas, after.isr, after.leader) == ((2, 1, 3), (1, 3), 1)


REFUSED = [
    ("unknown", Unregister(broker_id=9), ErrorCode.BROKER_ID_NOT_REGISTERED),
    ("unknown, with an epoch", Unregister(broker_id=9, broker_epoch=1), ErrorCode.BROKER_ID_NOT_REGISTERED),
    ("another registration", Unregister(broker_id=1, broker_epoch=12_345), ErrorCode.STALE_BROKER_EPOCH),
]


@rule("kraft 8.17")
@pytest.mark.parametrize(("request_", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(request_: Unregister, code: ErrorCode) -> None:
    assert refused(cluster(1), request_) is code


def test_the_registration_that_is_meant() -> None:
    world = cluster(1, 2)
    world.ask(Unregister(broker_id=2, broker_epoch=world.tip.brokers[2].broker_epoch))
    assert sorted(world.tip.brokers) == [1]
    assert refused(world, Unregister(broker_id=2)) is ErrorCode.BROKER_ID_NOT_REGISTERED, "twice"


@rule("kraft 8.16")
def test_a_fenced_broker_leaves_the_elr_and_stays_the_last_known_leader() -> None:
    world = cluster(1, 2)
    world.create(replicas=(2, 1), configs=MIN_TWO)
    world.fence(1)
    world.fence(2)
    assert world.partition().eligible_leader_replicas == (2, 1)
    world.ask(Unregister(broker_id=2))
    after = world.partition()
    assert (after.isr, after.eligible_leader_replicas, after.last_known_elr) == ((), (1,), (2,))
    assert not violations(world.tip)


def test_an_unregistered_leader_without_another_copy_comes_back_with_its_disk_only() -> None:
    world = cluster(1, 2)
    world.create(replicas=(2,))
    world.ask(Unregister(broker_id=2))
    assert (world.partition().leader, world.partition().isr) == (NO_NODE, ())
    world.start(2, 1, log_directories=(uuid(77),))
    assert world.partition().leader == NO_NODE, "an empty disk leads nothing"
    world.ask(Unregister(broker_id=2))
    world.start(2, 2)
    assert (world.partition().leader, world.partition().isr) == (2, (2,)), "its own disk holds what was committed"
    assert world.partition().leader_recovery_state != RECOVERED


@rule("kraft 8.16")
def test_a_replica_in_no_known_directory_may_be_empty_when_its_id_returns() -> None:
    two_disks = (uuid(71), uuid(72))
    world = cluster(1)
    world.start(2, 0, log_directories=two_disks)
    world.create(replicas=(2,))
    assert world.partition().directory(2) == UNASSIGNED
    world.ask(Unregister(broker_id=2))
    assert world.partition().last_known_elr == ()
    world.start(2, 1, log_directories=(uuid(73), uuid(74)))
    assert world.partition().leader == NO_NODE


def test_its_directories_are_free_for_another_broker() -> None:
    world = cluster(1, 2)
    assert refused(world, registration(3, log_directories=(uuid(2),))) is ErrorCode.INVALID_REGISTRATION
    world.ask(Unregister(broker_id=2))
    world.start(3, log_directories=(uuid(2),))


@rule("kraft 8.17")
def test_what_the_broker_asks_afterwards_is_refused_until_it_registers_again() -> None:
    world = cluster(1, 2)
    world.create(replicas=(2, 1))
    old = world.tip.brokers[2]
    world.ask(Unregister(broker_id=2))
    beat = BrokerHeartbeatRequest(
        broker_id=2,
        broker_epoch=old.broker_epoch,
        current_metadata_offset=len(world.log),
        want_fence=False,
        want_shutdown=False,
        incarnation_id=old.incarnation_id,
    )
    assignment = DirectoryAssignment(topic_id=world.tip.topic_ids["t"], index=0, directory_id=uuid(2))
    assign = Assign(broker_id=2, broker_epoch=old.broker_epoch, assignments=(assignment,))
    assert refused(world, beat) is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert refused(world, assign) in (ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.STALE_BROKER_EPOCH)
    assert world.ask(registration(2)).broker_epoch > old.broker_epoch, "the same process has a new epoch"
    assert world.tip.brokers[2].fenced and 2 not in world.partition().isr


def test_a_registration_during_it_comes_after_it() -> None:
    """A broker's changes run one after the other, so a new process is not forgotten with the old one."""
    world = cluster(1, 2, max_slice_work=1)
    for name in ("a", "b", "c"):
        world.create(name, replicas=(2, 1))
    world.core.sessions.forget(2)
    world.interleave = True
    unregistering = world.begin(Unregister(broker_id=2))
    assert not unregistering.done
    registering = world.begin(registration(2, 1))
    while world.turn():
        assert not violations(world.tip)
    assert unregistering.response is not None and registering.response is not None
    assert world.tip.brokers[2].broker_epoch == registering.response.broker_epoch
    assert all(2 not in world.partition(name).isr for name in ("a", "b", "c"))


def test_a_new_controller_repeats_what_was_cut_off() -> None:
    world = cluster(1, 2, max_slice_work=1)
    for name in ("a", "b", "c"):
        world.create(name, replicas=(2, 1))
    world.interleave = True
    caller = world.begin(Unregister(broker_id=2))
    world.turn()
    assert not caller.done
    world.new_controller()
    world.interleave = False
    assert caller.dropped_after_writing and 2 in world.tip.brokers, "the outcome is unknown, and half of it is done"
    world.ask(Unregister(broker_id=2))
    assert 2 not in world.tip.brokers
    assert all(world.partition(name).isr == (1,) for name in ("a", "b", "c"))
