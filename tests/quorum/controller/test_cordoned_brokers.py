"""Cordoned directories at the controller (KIP-1066): told by brokers, kept over restarts, obeyed by each placement."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import CLUSTER, World, cluster, code, registration, uuid

from quorumlog.configs.directory import CORDONED
from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    FeatureUpdate,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from quorumlog.messages.common import Endpoint
from quorumlog.messages.controller import RegisterControllerRequest
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    DirectoryList,
    FeatureLevelRecord,
    RegisterBrokerRecord,
)
from quorumlog.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from quorumlog_quorum.metadata.downgrade import records_after
from quorumlog_quorum.metadata.features import CORDON_LEVEL, SUPPORTED
from quorumlog_quorum.metadata.image import BROKER_RESOURCE
from quorumlog_quorum.metadata.image_diff import delta_from_empty
from tests.rules import rule

E = ErrorCode
MV = "metadata.version"


def cordon(world: World, broker_id: int, *directories: bytes, **changes: Any) -> None:
    world.heartbeat(broker_id, cordoned_directories=directories, tells_cordoned=True, **changes)


def set_cordoned(world: World, broker_id: int, value: str) -> None:
    change = AlterableConfig(name=CORDONED, operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=str(broker_id), configs=(change,))
    world.ask(IncrementalAlterConfigsRequest(resources=(resource,)))


def cordoned(world: World, broker_id: int) -> tuple[bytes, ...]:
    found: tuple[bytes, ...] = world.tip.brokers[broker_id].cordoned_directories
    return found


@rule("kraft 10.11")
def test_a_heartbeat_tells_and_only_a_change_is_a_record() -> None:
    world = cluster(1, 2)
    end = len(world.log)
    cordon(world, 1)
    assert len(world.log) == end, "nothing is cordoned, as before"
    cordon(world, 1, uuid(1), uuid(77))
    assert world.log[end:] == [
        BrokerRegistrationChangeRecord(
            broker_id=1,
            broker_epoch=world.tip.brokers[1].broker_epoch,
            cordoned_directories=DirectoryList(directories=(uuid(1), uuid(77))),
        )
    ]
    cordon(world, 1, uuid(77), uuid(1))
    assert len(world.log) == end + 1, "the same, in another order"
    world.heartbeat(1)
    assert cordoned(world, 1) == (uuid(1), uuid(77)), "one that tells nothing changes nothing"
    cordon(world, 1)
    assert cordoned(world, 1) == () and not world.tip.brokers[1].is_cordoned


def test_a_snapshot_has_it() -> None:
    world = cluster(1, 2)
    before = world.tip.state_hash
    cordon(world, 1, uuid(1))
    again = delta_from_empty(world.tip).apply(world.tip.offset, world.tip.epoch)
    assert again == world.tip and again.state_hash == world.tip.state_hash != before


@rule("kraft 10.9")
def test_no_new_replica_is_placed_on_a_broker_whose_directories_are_all_cordoned() -> None:
    world = World()
    world.start(1, log_directories=(uuid(1), uuid(11)))
    for broker_id in (2, 3, 4):
        world.start(broker_id)
    cordon(world, 1, uuid(1))
    world.create("half", num_partitions=40, replication_factor=3)
    cordon(world, 1, uuid(1), uuid(11))
    world.create("full", num_partitions=40, replication_factor=3)
    places = {
        name: {one for part in world.tip.topic(name).partitions.values() for one in part.replicas}
        for name in ("half", "full")
    }
    assert places == {"half": {1, 2, 3, 4}, "full": {2, 3, 4}}
    assert all(1 in part.isr for part in world.tip.topic("half").partitions.values() if 1 in part.replicas)


@rule("kraft 10.9")
def test_a_fenced_broker_that_is_cordoned_is_not_taken_either() -> None:
    world = cluster(1, 2, 3)
    cordon(world, 3, uuid(3))
    world.fence(3)
    assert code(world.create(num_partitions=1, replication_factor=3)) is E.INVALID_REPLICATION_FACTOR


@rule("kraft 10.9")
def test_too_few_brokers_are_left() -> None:
    world = cluster(1, 2, 3)
    cordon(world, 3, uuid(3))
    result = world.create(num_partitions=1, replication_factor=3)
    assert code(result) is E.INVALID_REPLICATION_FACTOR
    assert "only 3 brokers are registered, 1 of them with cordoned log directories only" in result.error_message
    assert code(world.create(num_partitions=1, replication_factor=2)) is E.NONE


@rule("kraft 10.10")
def test_an_assignment_by_hand_is_refused() -> None:
    world = cluster(1, 2)
    cordon(world, 2, uuid(2))
    result = world.create(replicas=(1, 2))
    assert code(result) is E.INVALID_REPLICA_ASSIGNMENT and "broker 2 has only cordoned" in result.error_message
    assert code(world.create(replicas=(1,))) is E.NONE


def reassign(world: World, *replicas: int) -> ErrorCode:
    topic = ReassignableTopic(name="t", partitions=(ReassignablePartition(index=0, replicas=replicas),))
    response = world.ask(AlterPartitionReassignmentsRequest(topics=(topic,)))
    return code(response.topics[0].partitions[0])


@rule("kraft 10.10")
def test_a_reassignment_brings_none_there_and_takes_those_away_that_are() -> None:
    world = cluster(1, 2, 3)
    world.create(replicas=(1, 2))
    cordon(world, 2, uuid(2))
    cordon(world, 3, uuid(3))
    assert reassign(world, 1, 3) is E.INVALID_REPLICA_ASSIGNMENT
    assert reassign(world, 2, 1) is E.NONE, "it is there"
    cordon(world, 3)
    assert reassign(world, 1, 3) is E.NONE
    assert code(world.alter((1, 2, 3))) in (E.NONE, E.NEW_LEADER_ELECTED)
    assert world.partition().replicas == (1, 3)


def test_what_fails_leaves_a_broker_with_cordoned_directories_only() -> None:
    world = World()
    world.start(1, log_directories=(uuid(1), uuid(11)))
    cordon(world, 1, uuid(1))
    assert not world.tip.brokers[1].is_cordoned
    cordon(world, 1, uuid(1), offline_directories=(uuid(11),))
    assert world.tip.brokers[1].log_directories == (uuid(1),) and world.tip.brokers[1].is_cordoned
    assert code(world.create(num_partitions=1, replication_factor=1)) is E.INVALID_REPLICATION_FACTOR


def test_a_first_registration_tells_what_the_file_says() -> None:
    world = cluster(2)
    world.ask(registration(1, cordoned_directories=(uuid(1),)))
    assert world.tip.brokers[1].is_cordoned
    assert code(world.create(num_partitions=1, replication_factor=2)) is E.INVALID_REPLICATION_FACTOR


@rule("kraft 10.12")
@pytest.mark.parametrize("is_set", [True, False])
def test_a_restart_keeps_what_the_metadata_set_and_obeys_the_file_otherwise(is_set: bool) -> None:
    world = cluster(1, 2)
    if is_set:
        set_cordoned(world, 1, "/d1")
    cordon(world, 1, uuid(1))
    world.fence(1)
    world.ask(registration(1, 1))
    assert cordoned(world, 1) == ((uuid(1),) if is_set else ())


# --- levels ---


def at_level(level: int) -> World:
    world = World(log=(FeatureLevelRecord(name=MV, level=level),))
    world.start(1, cordoned_directories=(uuid(1),))
    world.start(2)
    return world


def test_below_the_level_nothing_is_written_and_placement_is_as_before() -> None:
    world = at_level(CORDON_LEVEL - 1)
    cordon(world, 1, uuid(1))
    assert cordoned(world, 1) == ()
    assert code(world.create(num_partitions=1, replication_factor=2)) is E.NONE


def test_with_the_level_the_next_heartbeat_tells() -> None:
    world = at_level(CORDON_LEVEL - 1)
    world.driver.voter_ids = (1,)
    endpoints = (Endpoint(name="INTERNAL", host="127.0.0.1", port=9001),)
    asked = {"controller_id": 1, "cluster_id": CLUSTER, "incarnation_id": uuid(9), "endpoints": endpoints}
    world.ask(RegisterControllerRequest(**asked, features=SUPPORTED))
    updates = (FeatureUpdate(name=MV, level=CORDON_LEVEL),)
    world.ask(UpdateFeaturesRequest(updates=updates, timeout_ms=1_000))
    assert world.tip.metadata_version == CORDON_LEVEL and cordoned(world, 1) == ()
    cordon(world, 1, uuid(1))
    assert world.tip.brokers[1].is_cordoned


@rule("kraft 12.9")
@pytest.mark.parametrize("level", [CORDON_LEVEL - 1, 2, 1])
def test_a_lower_level_drops_what_it_cannot_express_and_no_more(level: int) -> None:
    world = cluster(1, 2)
    cordon(world, 1, uuid(1))
    dropped = [one for one in records_after(world.tip, level) if isinstance(one, RegisterBrokerRecord)]
    assert [one.broker_id for one in dropped] == ([1] if level > 1 else [1, 2])
    assert all(one.cordoned_directories == () and bool(one.features) is (level > 1) for one in dropped)
