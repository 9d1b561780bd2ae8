"""AlterPartition: each check alone, the order of the checks, and the effect of a proposal that passes."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import World, cluster, code, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import AlterPartitionRequest, IsrMember
from tests.rules import rule

LEADER_EPOCH, PARTITION_EPOCH = 1, 2


def world_with_history() -> World:
    """Partition t-0 on brokers 1, 2, 3: broker 1 led and was fenced, so 2 leads; 1 is back; 4 holds nothing."""
    world = cluster(1, 2, 3, 4)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "2"})
    world.fence(1)
    world.heartbeat(1)
    assert code(world.alter((2,))) is ErrorCode.NONE
    partition = world.partition()
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, LEADER_EPOCH, PARTITION_EPOCH)
    return world


def member(broker_id: int, broker_epoch: int = -1) -> IsrMember:
    return IsrMember(broker_id=broker_id, broker_epoch=broker_epoch)


TWO = (member(2), member(3))

# Each row breaks one fence and every later one that it can: the first is the answer.
FENCES: list[tuple[str, int, dict[str, Any], ErrorCode]] = [
    ("unknown topic", 2, {"topic_id": uuid(5), "leader_epoch": 9}, ErrorCode.UNKNOWN_TOPIC_ID),
    ("unknown partition", 2, {"index": 7, "leader_epoch": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("a newer leader epoch", 3, {"leader_epoch": 2, "partition_epoch": 0}, ErrorCode.NOT_CONTROLLER),
    ("a newer partition epoch", 3, {"leader_epoch": 0, "partition_epoch": 3}, ErrorCode.NOT_CONTROLLER),
    ("an older leader epoch", 3, {"leader_epoch": 0, "partition_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
    ("not the leader", 3, {"partition_epoch": 0}, ErrorCode.INVALID_REQUEST),
    (
        "an older partition epoch",
        2,
        {"partition_epoch": 1, "new_isr": (member(4),)},
        ErrorCode.INVALID_UPDATE_VERSION,
    ),
    ("a member twice", 2, {"new_isr": (member(2), member(2))}, ErrorCode.INVALID_REQUEST),
    ("a stranger", 2, {"new_isr": (member(2), member(4))}, ErrorCode.INVALID_REQUEST),
    ("without the leader", 2, {"new_isr": (member(3),)}, ErrorCode.INVALID_REQUEST),
    ("recovering again", 2, {"leader_recovery_state": 1, "new_isr": TWO}, ErrorCode.INVALID_REQUEST),
    ("no such recovery state", 2, {"leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
    ("another process of a member", 2, {"new_isr": (member(2), member(3, 0))}, ErrorCode.INELIGIBLE_REPLICA),
]


@rule("kraft 9.2")
@pytest.mark.parametrize(("sender", "changes", "want"), [case[1:] for case in FENCES], ids=[case[0] for case in FENCES])
def test_a_fence_holds(sender: int, changes: dict[str, Any], want: ErrorCode) -> None:
    world = world_with_history()
    before = world.tip
    assert code(world.alter((2, 3), sender=sender, **changes)) is want
    assert world.tip is before


@rule("kraft 8.13", "kraft 9.5")
def test_a_replica_whose_broker_is_not_active_is_ineligible() -> None:
    for make_ineligible in (
        lambda world: world.fence(3),
        lambda world: world.heartbeat(3, want_shutdown=True),
        lambda world: world.heartbeat(3, offline_directories=(uuid(3),)),
    ):
        world = world_with_history()
        make_ineligible(world)
        assert code(world.alter((2, 3))) is ErrorCode.INELIGIBLE_REPLICA


@rule("kraft 9.3")
def test_a_stale_sender_gets_one_error_for_the_whole_request() -> None:
    world = world_with_history()
    for broker_id, epoch in ((2, 0), (99, 0)):
        with pytest.raises(ApiError) as raised:
            world.ask(AlterPartitionRequest(broker_id=broker_id, broker_epoch=epoch, partitions=()))
        assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_expanding_answers_the_new_state_and_elects_no_leader() -> None:
    world = world_with_history()
    assert world.partition().eligible_leader_replicas == (3,)
    epoch = world.tip.brokers[3].broker_epoch
    result = world.alter((2, 3), new_isr=(member(2), member(3, epoch)))
    assert (result.error_code, result.leader_id, result.isr) == (0, 2, (2, 3))
    assert (result.leader_epoch, result.partition_epoch) == (LEADER_EPOCH, PARTITION_EPOCH + 1)
    assert world.partition().eligible_leader_replicas == ()


@rule("kraft 9.4")
def test_the_same_proposal_again_is_an_old_version() -> None:
    world = world_with_history()
    epoch = world.partition().partition_epoch
    assert code(world.alter((2, 3))) is ErrorCode.NONE
    assert code(world.alter((2, 3), partition_epoch=epoch)) is ErrorCode.INVALID_UPDATE_VERSION


def test_a_late_proposal_does_not_bring_back_a_replica_that_was_fenced_since() -> None:
    """Leader, leader epoch and broker epochs are still the same: only the partition epoch tells that it is old. What
    was committed without the replica would be lost with an election of it."""
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "2"})
    proposal = world.proposal((1, 2), new_isr=(member(1), member(2, world.tip.brokers[2].broker_epoch)))
    leader_epoch = world.partition().leader_epoch
    world.fence(2)
    world.heartbeat(2)
    assert (world.partition().isr, world.partition().leader_epoch) == ((1, 3), leader_epoch)
    late = AlterPartitionRequest(broker_id=1, broker_epoch=world.tip.brokers[1].broker_epoch, partitions=(proposal,))
    assert code(world.ask(late).partitions[0]) is ErrorCode.INVALID_UPDATE_VERSION
    assert world.partition().isr == (1, 3)


def test_a_second_change_in_one_request_meets_the_first() -> None:
    world = world_with_history()
    request = AlterPartitionRequest(
        broker_id=2,
        broker_epoch=world.tip.brokers[2].broker_epoch,
        partitions=(world.proposal((2, 3)), world.proposal((2, 1))),
    )
    codes = [code(result) for result in world.ask(request).partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]


@rule("kraft 9.6")
def test_a_leader_that_recovers_says_so_before_others_join() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2), configs={"unclean.leader.election.enable": "true"})
    world.fence(2)
    world.fence(1)
    world.heartbeat(2)
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)
    world.heartbeat(1)
    assert code(world.alter((2, 1), leader_recovery_state=1)) is ErrorCode.INVALID_REQUEST
    assert code(world.alter((2,), leader_recovery_state=1)) is ErrorCode.NONE
    assert code(world.alter((2,), leader_recovery_state=0)) is ErrorCode.NONE
    assert world.partition().leader_recovery_state == 0
    assert code(world.alter((2, 1))) is ErrorCode.NONE
