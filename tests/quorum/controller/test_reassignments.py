"""Reassignments and elections at the controller: each refusal, whole courses, deaths on the way, what is listed."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import World, cluster, code, registration, uuid

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    CreatePartitionsRequest,
    IncrementalAlterConfigsRequest,
    PartitionsOfTopic,
)
from quorumlog.messages.cluster import DeleteTopicsRequest, TopicQuery
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ElectionTopic,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReassignmentsOfTopic,
)
from tests.rules import rule

E = ErrorCode


def reassign(
    world: World, *replicas: int, name: str = "t", index: int = 0, cancel: bool = False, **fields: Any
) -> ErrorCode:
    asked = ReassignablePartition(index=index, replicas=replicas, cancel=cancel)
    topic = ReassignableTopic(name=name, partitions=(asked,))
    response = world.ask(AlterPartitionReassignmentsRequest(topics=(topic,), **fields))
    result = response.topics[0].partitions[0]
    assert bool(result.error_message) == bool(result.error_code)
    return code(result)


def ongoing(world: World, **fields: Any) -> Any:
    response = world.ask(ListPartitionReassignmentsRequest(**fields))
    return [
        (topic.name, one.index, one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in response.topics
        for one in topic.partitions
    ]


def on_three(min_isr: int = 2, **configs: str) -> World:
    """Partition t-0 on brokers 1, 2, 3; brokers 4 and 5 hold nothing."""
    world = cluster(1, 2, 3, 4, 5)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": str(min_isr), **configs})
    return world


REFUSED: list[tuple[str, tuple[int, ...], dict[str, Any], ErrorCode]] = [
    ("no such topic", (1, 2, 4), {"name": "nobody"}, E.UNKNOWN_TOPIC_OR_PARTITION),
    ("no such partition", (1, 2, 4), {"index": 1}, E.UNKNOWN_TOPIC_OR_PARTITION),
    ("a negative partition", (1, 2, 4), {"index": -1}, E.UNKNOWN_TOPIC_OR_PARTITION),
    ("no broker", (), {}, E.INVALID_REPLICA_ASSIGNMENT),
    ("one broker twice", (1, 2, 1), {}, E.INVALID_REPLICA_ASSIGNMENT),
    ("an unknown broker", (1, 2, 9), {}, E.INVALID_REPLICA_ASSIGNMENT),
    ("a negative broker", (1, 2, -1), {}, E.INVALID_REPLICA_ASSIGNMENT),
    ("fewer, which is not allowed", (1, 2), {"allow_replication_factor_change": False}, E.INVALID_REPLICATION_FACTOR),
    ("more, which is not allowed", (1, 2, 3, 4), {"allow_replication_factor_change": False},
     E.INVALID_REPLICATION_FACTOR),
    ("nothing to cancel", (), {"cancel": True}, E.NO_REASSIGNMENT_IN_PROGRESS),
]  # fmt: skip


@rule("kraft 9.18")
@pytest.mark.parametrize(("replicas", "fields", "want"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_refused_and_nothing_changes(replicas: tuple[int, ...], fields: dict[str, Any], want: ErrorCode) -> None:
    world = on_three()
    before = world.tip
    assert reassign(world, *replicas, **fields) is want
    assert world.tip is before


def test_a_broker_without_a_disk_is_refused_and_one_that_is_away_is_waited_for() -> None:
    world = on_three()
    world.heartbeat(4, offline_directories=(uuid(4),))
    assert reassign(world, 1, 2, 4) is E.INVALID_REPLICA_ASSIGNMENT
    world.fence(5)
    assert reassign(world, 1, 2, 5) is E.NONE
    assert world.partition().adding_replicas == (5,)


def test_too_many_at_once() -> None:
    world = on_three()
    partitions = tuple(ReassignablePartition(index=0, replicas=(1, 2, 3)) for _ in range(10_001))
    with pytest.raises(ApiError) as refused:
        world.ask(AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="t", partitions=partitions),)))
    assert refused.value.code is E.POLICY_VIOLATION


@rule("kraft 9.13")
def test_a_whole_reassignment_away_from_the_leader() -> None:
    world = on_three()
    assert reassign(world, 4, 5, 2) is E.NONE
    begun = world.partition()
    assert (begun.replicas, begun.adding_replicas, begun.removing_replicas) == ((4, 5, 2, 1, 3), (4, 5), (1, 3))
    assert (begun.leader, begun.leader_epoch, begun.isr) == (1, 0, (1, 2, 3))
    assert begun.directories[:2] == (uuid(4), uuid(5))
    assert ongoing(world) == [("t", 0, (4, 5, 2, 1, 3), (4, 5), (1, 3))]
    assert code(world.alter((1, 2, 3, 4))) is E.NONE
    assert world.partition().leader_epoch == 0, "nothing has gone yet"
    result = world.alter((1, 2, 3, 4, 5))
    assert code(result) is E.NEW_LEADER_ELECTED
    ended = world.partition()
    assert (ended.replicas, ended.adding_replicas, ended.removing_replicas) == ((4, 5, 2), (), ())
    assert (ended.leader, ended.leader_epoch, set(ended.isr)) == (4, 1, {2, 4, 5})
    assert ongoing(world) == []


@rule("kraft 9.15")
def test_a_leader_that_stays_learns_of_its_new_epoch() -> None:
    world = on_three()
    assert reassign(world, 1, 2, 4) is E.NONE
    result = world.alter((1, 2, 3, 4))
    assert (code(result), result.leader_id, result.leader_epoch, result.isr) == (E.NONE, 1, 1, (1, 2, 4))
    assert world.partition().replicas == (1, 2, 4)


@rule("kraft 9.18")
def test_the_same_again_and_what_is_there_already_write_nothing() -> None:
    world = on_three()
    before = world.tip
    assert reassign(world, 1, 2, 3) is E.NONE
    assert world.tip is before
    assert reassign(world, 1, 2, 4) is E.NONE
    before = world.tip
    assert reassign(world, 1, 2, 4) is E.NONE
    assert world.tip is before


def test_another_order_is_done_at_once_and_moves_no_leader() -> None:
    world = on_three()
    assert reassign(world, 3, 1, 2) is E.NONE
    partition = world.partition()
    assert (partition.replicas, partition.leader, partition.leader_epoch) == ((3, 1, 2), 1, 0)
    assert ongoing(world) == []


@rule("kraft 9.16")
def test_cancelled() -> None:
    world = on_three()
    reassign(world, 4, 5)
    world.alter((1, 2, 3, 4))
    assert reassign(world, cancel=True) is E.NONE
    partition = world.partition()
    assert (set(partition.replicas), partition.isr, partition.leader) == ({1, 2, 3}, (1, 2, 3), 1)
    assert partition.leader_epoch == 1, "a replica went"
    assert reassign(world, cancel=True) is E.NO_REASSIGNMENT_IN_PROGRESS


@rule("kraft 9.17")
def test_a_target_that_replaces_another_one_is_cancelled_to_the_first_replicas() -> None:
    world = on_three()
    reassign(world, 1, 2, 4)
    assert reassign(world, 1, 2, 5) is E.NONE
    assert ongoing(world) == [("t", 0, (1, 2, 5, 4, 3), (5, 4), (4, 3))]
    assert reassign(world, cancel=True) is E.NONE
    assert set(world.partition().replicas) == {1, 2, 3}


@rule("kraft 9.17")
def test_a_target_that_replaces_another_one_ends_without_its_newcomers() -> None:
    world = on_three()
    reassign(world, 1, 2, 4)
    reassign(world, 1, 2, 5)
    assert code(world.alter((1, 2, 3, 4, 5))) is E.NONE
    assert (world.partition().replicas, world.partition().isr) == ((1, 2, 5), (1, 2, 5))


def test_a_newcomer_that_both_targets_want_is_waited_for() -> None:
    """In Kafka the second request forgets that broker 4 is new."""
    world = on_three()
    reassign(world, 1, 2, 4)
    reassign(world, 1, 4)
    assert world.partition().adding_replicas == (4,)
    assert set(world.partition().replicas) == {1, 2, 3, 4}


@rule("kraft 9.16")
def test_cancelling_is_refused_while_only_newcomers_hold_the_records() -> None:
    world = on_three()
    reassign(world, 4, 5, 1)
    world.alter((1, 2, 3, 4))
    world.fence(2)
    world.fence(3)
    assert world.partition().isr == (1, 4)
    before = world.tip
    assert reassign(world, cancel=True) is E.INVALID_REPLICA_ASSIGNMENT
    assert world.tip is before
    world.heartbeat(2)
    assert code(world.alter((1, 4, 2))) is E.NONE
    assert reassign(world, cancel=True) is E.NONE


@rule("kraft 9.14")
def test_no_copy_is_given_up_while_the_replicas_that_stay_are_too_few() -> None:
    """In Kafka the reassignment would end with the ISR (4): one copy where two are needed."""
    world = on_three()
    reassign(world, 4, 2, 3)
    world.fence(2)
    world.fence(3)
    assert code(world.alter((1, 4))) is E.NONE
    assert world.partition().replicas == (4, 2, 3, 1)
    world.heartbeat(2)
    assert code(world.alter((1, 4, 2))) is E.NEW_LEADER_ELECTED
    assert (world.partition().replicas, world.partition().isr) == ((4, 2, 3), (4, 2))


@rule("kraft 9.33")
@pytest.mark.parametrize("durability", ["synced", "replicated"])
def test_a_copy_whose_process_was_killed_is_not_given_up_either(durability: str) -> None:
    """With durability=replicated it is eligible no more, and yet it most likely holds what only one other holds."""
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "2", "durability": durability})
    world.alter((1, 3))
    assert reassign(world, 1, 2) is E.NONE
    world.fence(3)
    world.now_ms += 60_000
    for broker_id in (1, 2):
        world.heartbeat(broker_id)
    world.ask(registration(3, 1, previous_broker_epoch=-1))
    assert world.partition().eligible_leader_replicas == ((3,) if durability == "synced" else ())
    world.heartbeat(3)
    assert world.partition().replicas == (1, 2, 3) and world.partition().isr == (1,)
    assert code(world.alter((1, 2))) is E.NONE
    assert (world.partition().replicas, world.partition().isr) == ((1, 2), (1, 2))


def kill(world: World, broker_id: int, *others: int) -> None:
    """Its process ends uncleanly, and another one is there; the others live on meanwhile."""
    world.fence(broker_id)
    world.now_ms += 60_000
    for other in others:
        world.heartbeat(other)
    world.ask(registration(broker_id, 1, previous_broker_epoch=-1))
    world.heartbeat(broker_id)


def raise_durability(world: World, name: str = "t") -> None:
    config = AlterableConfig(name="durability", operation=0, value="synced")
    resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=(config,))
    (result,) = world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results
    assert code(result) is E.NONE


@rule("kraft 9.34")
def test_a_copy_whose_process_is_older_than_a_raised_durability_is_not_given_up_when_it_is_killed() -> None:
    """Its kill takes it out of the ELR, as under `replicated`, although `synced` is in force by now."""
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2, 3), configs={"min.insync.replicas": "2", "durability": "replicated"})
    raise_durability(world)
    world.alter((1, 3))
    assert reassign(world, 1, 2) is E.NONE
    kill(world, 3, 1, 2)
    partition = world.partition()
    assert (partition.replicas, partition.isr, partition.eligible_leader_replicas) == ((1, 2, 3), (1,), ())
    assert code(world.alter((1, 2))) is E.NONE
    assert (world.partition().replicas, world.partition().isr) == ((1, 2), (1, 2))


@rule("kraft 9.34")
def test_the_leaders_own_proposal_does_not_give_such_a_copy_up_either() -> None:
    world = on_three(min_isr=3, durability="replicated")
    raise_durability(world)
    world.alter((1, 3))
    assert reassign(world, 1, 2, 4) is E.NONE
    kill(world, 3, 1, 2, 4)
    assert code(world.alter((1, 4))) is E.NONE
    assert 3 in world.partition().replicas


@rule("kraft 9.35")
def test_cancelling_is_refused_where_a_newcomer_may_hold_what_is_acknowledged() -> None:
    """It was in sync, and the end of its process took it out of the ELR: nothing says any more what it was."""
    world = on_three(durability="replicated")
    reassign(world, 4, 5, 1)
    world.alter((1, 2, 3, 4))
    world.alter((1, 4))
    kill(world, 4, 1, 2, 3, 5)
    assert (world.partition().isr, world.partition().eligible_leader_replicas) == ((1,), ())
    assert reassign(world, cancel=True) is E.INVALID_REPLICA_ASSIGNMENT
    assert code(world.alter((1, 2))) is E.NONE
    assert reassign(world, cancel=True) is E.NONE


@rule("kraft 9.35")
def test_a_newcomer_of_a_former_target_is_not_given_up_either() -> None:
    world = on_three(durability="replicated")
    reassign(world, 4, 5, 1)
    world.alter((1, 2, 3, 4))
    world.alter((1, 4))
    kill(world, 4, 1, 2, 3, 5)
    assert reassign(world, 1, 2, 3) is E.NONE
    assert 4 in world.partition().replicas
    assert code(world.alter((1, 2))) is E.NONE
    assert world.partition().replicas == (1, 2, 3)


@rule("kraft 9.16")
def test_cancelling_is_refused_where_it_gives_an_eligible_newcomer_up() -> None:
    """It is away, and the replica that is left in sync is not enough."""
    world = on_three()
    reassign(world, 4, 5, 1)
    world.alter((1, 2, 3, 4))
    for broker_id in (2, 3, 4):
        world.fence(broker_id)
    assert world.partition().isr == (1,) and 4 in world.partition().eligible_leader_replicas
    assert reassign(world, cancel=True) is E.INVALID_REPLICA_ASSIGNMENT
    world.heartbeat(2)
    assert code(world.alter((1, 2))) is E.NONE
    assert reassign(world, cancel=True) is E.NONE


@rule("kraft 9.14")
def test_a_smaller_minimum_ends_what_waited_for_it() -> None:
    world = on_three()
    reassign(world, 4, 2, 3)
    world.fence(2)
    world.fence(3)
    assert code(world.alter((1, 4))) is E.NONE
    assert code(lower_min_isr(world)) is E.NONE
    assert (world.partition().replicas, world.partition().leader) == ((4, 2, 3), 4)


def lower_min_isr(world: World) -> Any:
    change = AlterableConfig(name="min.insync.replicas", value="1")
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    return world.ask(IncrementalAlterConfigsRequest(resources=(resource,))).results[0]


@rule("kraft 9.19")
def test_the_leader_dies_on_the_way_and_the_newcomers_die_too() -> None:
    world = on_three()
    reassign(world, 4, 5)
    world.fence(1)
    assert world.partition().leader == 2
    assert code(world.alter((2, 3, 4))) is E.NONE
    world.fence(4)
    assert world.partition().isr == (2, 3)
    world.heartbeat(4)
    assert code(world.alter((2, 3, 5))) is E.NONE
    assert world.partition().adding_replicas == (4, 5)
    assert code(world.alter((2, 3, 4, 5))) is E.NEW_LEADER_ELECTED
    assert (world.partition().replicas, world.partition().leader) == ((4, 5), 4)


@rule("kraft 9.19")
def test_the_next_controller_goes_on() -> None:
    world = on_three()
    reassign(world, 4, 2, 3)
    world.new_controller()
    assert ongoing(world) == [("t", 0, (4, 2, 3, 1), (4,), (1,))]
    assert code(world.alter((1, 2, 3, 4))) is E.NEW_LEADER_ELECTED


def test_a_topic_that_grows_on_the_way_gets_its_usual_number_of_replicas() -> None:
    """The first partition has four replicas meanwhile."""
    world = on_three()
    reassign(world, 1, 2, 4)
    topic = PartitionsOfTopic(name="t", count=2)
    assert code(world.ask(CreatePartitionsRequest(topics=(topic,), timeout_ms=1)).results[0]) is E.NONE
    assert len(world.partition(index=1).replicas) == 3


def test_a_deleted_topic_is_reassigned_no_more() -> None:
    world = on_three()
    reassign(world, 1, 2, 4)
    world.ask(DeleteTopicsRequest(topics=(TopicQuery(name="t"),), timeout_ms=1))
    assert ongoing(world) == []
    assert reassign(world, cancel=True) is E.UNKNOWN_TOPIC_OR_PARTITION


def test_only_what_is_asked_for_is_listed() -> None:
    world = on_three()
    world.create("u", num_partitions=3, replication_factor=2)
    moved = world.partition("u", 1).replicas
    away = tuple(broker_id for broker_id in (1, 2, 3, 4) if broker_id not in moved)[:2]
    reassign(world, *away, name="u", index=1)
    reassign(world, 1, 2, 4)
    assert [(name, index) for name, index, *_ in ongoing(world)] == [("t", 0), ("u", 1)]
    for partitions, want in (((0, 1, 2), [("u", 1)]), ((0,), []), ((-1, 9), []), ((), [])):
        topics = (ReassignmentsOfTopic(name="u", partitions=partitions),)
        assert [one[:2] for one in ongoing(world, all_topics=False, topics=topics)] == want
    assert ongoing(world, all_topics=False, topics=(ReassignmentsOfTopic(name="x", partitions=(0,)),)) == []


def test_many_partitions_are_reassigned_in_slices() -> None:
    world = cluster(1, 2, 3, max_slice_work=100)
    world.create(num_partitions=40, replication_factor=2)
    partitions = tuple(
        ReassignablePartition(index=index, replicas=(({1, 2, 3} - {*world.partition(index=index).replicas}).pop(),))
        for index in range(40)
    )
    before = len(world.driver.batches)
    response = world.ask(
        AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="t", partitions=partitions),))
    )
    assert [code(one) for one in response.topics[0].partitions] == [E.NONE] * 40
    assert len(world.driver.batches) - before > 5
    assert len(ongoing(world)) == 40


# --- elections


def elect(world: World, kind: int, *indexes: int, name: str = "t") -> list[ErrorCode]:
    topics = (ElectionTopic(name=name, partitions=indexes),)
    response = world.ask(ElectLeadersRequest(election_type=kind, all_partitions=False, topics=topics))
    return [code(one) for one in response.topics[0].partitions]


PREFERRED, UNCLEAN = 0, 1


@rule("kraft 9.20")
def test_the_preferred_leader_leads_again() -> None:
    world = on_three()
    assert elect(world, PREFERRED, 0, 7) == [E.ELECTION_NOT_NEEDED, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert elect(world, PREFERRED, 0, name="nobody") == [E.UNKNOWN_TOPIC_OR_PARTITION]
    world.fence(1)
    assert elect(world, PREFERRED, 0) == [E.PREFERRED_LEADER_NOT_AVAILABLE]
    world.heartbeat(1)
    before = world.tip
    assert elect(world, PREFERRED, 0) == [E.PREFERRED_LEADER_NOT_AVAILABLE], "it is alive, and not in sync"
    assert world.tip is before
    world.alter((2, 3, 1))
    epoch = world.partition().leader_epoch
    assert elect(world, PREFERRED, 0) == [E.NONE]
    assert (world.partition().leader, world.partition().leader_epoch) == (1, epoch + 1)


def test_all_preferred_leaders_are_elected_and_only_these_answered() -> None:
    world = cluster(1, 2, 3)
    world.create(num_partitions=6, replication_factor=3)
    world.fence(1)
    world.heartbeat(1)
    led_by_1 = [index for index in range(6) if world.partition(index=index).replicas[0] == 1]
    assert led_by_1
    for index in range(6):
        if world.partition(index=index).leader == 2 and index != led_by_1[-1]:
            world.alter((2, 3, 1), index=index, partition_epoch=world.partition(index=index).partition_epoch,
                        leader_epoch=world.partition(index=index).leader_epoch, sender=2)  # fmt: skip
    response = world.ask(ElectLeadersRequest(election_type=PREFERRED))
    found = {one.index: code(one) for one in response.topics[0].partitions}
    assert set(found) == set(led_by_1)
    for index, error in found.items():
        assert (error is E.NONE) == (world.partition(index=index).leader == 1)


@rule("kraft 9.21")
def test_an_unclean_leader_is_elected_only_where_nobody_holds_all() -> None:
    """Broker 1 is away and holds all; 2 and 3 live and lag."""
    world = on_three(min_isr=1)
    assert elect(world, UNCLEAN, 0) == [E.ELECTION_NOT_NEEDED]
    world.alter((1,))
    world.fence(1)
    assert world.partition().leader == -1 and world.partition().eligible_leader_replicas == (1,)
    before = world.tip
    assert elect(world, UNCLEAN, 0) == [E.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    assert world.tip is before
    world.fence(2)
    world.fence(3)
    assert elect(world, UNCLEAN, 0) == [E.ELIGIBLE_LEADERS_NOT_AVAILABLE]


@rule("kraft 9.21")
def test_what_an_unclean_election_may_lose_is_told() -> None:
    """Broker 1 held the only copy, and has not stopped in order: its page cache may be gone."""
    world = on_three(min_isr=1, durability="replicated")
    world.alter((1,))
    world.fence(1)
    world.ask(registration(1, 1, previous_broker_epoch=-1))
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (-1, (), ())
    response = world.ask(
        ElectLeadersRequest(
            election_type=UNCLEAN, all_partitions=False, topics=(ElectionTopic(name="t", partitions=(0,)),)
        )
    )
    (result,) = response.topics[0].partitions
    assert code(result) is E.NONE and "lost" in result.error_message
    assert (world.partition().leader, world.partition().leader_recovery_state) == (2, 1)


def test_another_kind_of_election_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        on_three().ask(ElectLeadersRequest(election_type=2))
    assert refused.value.code is E.INVALID_REQUEST
