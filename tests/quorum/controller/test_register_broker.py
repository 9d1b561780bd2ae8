"""Registration: every refusal, what keeps an epoch, and what a new incarnation costs the old one."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import SESSION_MS, World, cluster, registration, uuid

from quorumlog.cluster_incarnation import FIRST, ClusterIncarnation
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.common import Endpoint, FeatureRange
from quorumlog.messages.controller import AssignReplicasToDirectoriesRequest as Assign
from quorumlog.messages.controller import DamagedPartition, DirectoryAssignment
from quorumlog.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from quorumlog_quorum.metadata.features import LATEST_LEVEL, SUPPORTED
from quorumlog_quorum.metadata.registration import LOST, RECOVERING
from tests.rules import rule

RECOVERED = ClusterIncarnation(1, uuid(1))
INTERNAL = Endpoint(name="INTERNAL", host="h", port=1)


def ranged(low: int, high: int) -> FeatureRange:
    return FeatureRange(name="metadata.version", min_level=low, max_level=high)


REFUSED: list[tuple[str, dict[str, Any], ErrorCode, str]] = [
    ("another cluster", {"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID, "belongs to cluster 'other'"),
    ("no directory", {"log_directories": ()}, ErrorCode.INVALID_REGISTRATION, "no log directory"),
    ("a reserved directory", {"log_directories": (LOST,)}, ErrorCode.INVALID_REGISTRATION, "not usable"),
    ("a short directory id", {"log_directories": (b"x",)}, ErrorCode.INVALID_REGISTRATION, "not usable"),
    ("a directory twice", {"log_directories": (uuid(9), uuid(9))}, ErrorCode.INVALID_REGISTRATION, "twice"),
    ("another's directory", {"log_directories": (uuid(1),)}, ErrorCode.INVALID_REGISTRATION, "belongs to broker 1"),
    ("no listener", {"endpoints": ()}, ErrorCode.INVALID_REGISTRATION, "listeners"),
    ("a listener twice", {"endpoints": (INTERNAL, INTERNAL)}, ErrorCode.INVALID_REGISTRATION, "listeners"),
    ("no port", {"endpoints": (Endpoint(name="A", host="h", port=0),)}, ErrorCode.INVALID_REGISTRATION, "port"),
    ("no id", {"broker_id": -1}, ErrorCode.INVALID_REGISTRATION, "needs an id"),
    ("a range from level 0", {"features": (ranged(0, 2),)}, ErrorCode.INVALID_REGISTRATION, "one range of levels"),
    ("a range without levels", {"features": (ranged(2, 1),)}, ErrorCode.INVALID_REGISTRATION, "one range of levels"),
    ("two ranges", {"features": (ranged(1, 2), ranged(1, 2))}, ErrorCode.INVALID_REGISTRATION, "one range of levels"),
    (
        "older software",
        {"features": (ranged(1, 1),)},
        ErrorCode.UNSUPPORTED_VERSION,
        f"from level 1 to 1; .* level {LATEST_LEVEL}",
    ),
    ("software without levels", {"features": ()}, ErrorCode.UNSUPPORTED_VERSION, f"uses level {LATEST_LEVEL}: upgrade"),
    (
        "newer software alone",
        {"features": (ranged(LATEST_LEVEL + 1, LATEST_LEVEL + 2),)},
        ErrorCode.UNSUPPORTED_VERSION,
        f"from level {LATEST_LEVEL + 1} to {LATEST_LEVEL + 2}",
    ),
    ("a short incarnation", {"incarnation_id": b"x"}, ErrorCode.INVALID_REGISTRATION, "incarnation id"),
]


@rule("kraft 8.1")
@pytest.mark.parametrize(("changes", "code", "says"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(changes: dict[str, Any], code: ErrorCode, says: str) -> None:
    world = cluster(1)
    before = world.tip
    with pytest.raises(ApiError, match=says) as raised:
        world.ask(registration(2, **changes))
    assert raised.value.code is code and world.tip is before


@rule("kraft 8.2")
def test_the_epoch_is_the_offset_of_the_record_and_the_broker_starts_fenced() -> None:
    world = World()
    offset = len(world.log)
    assert world.ask(registration(1)).broker_epoch == offset
    broker = world.tip.brokers[1]
    assert (broker.broker_epoch, broker.fenced) == (offset, True)


@rule("kraft 8.3")
def test_a_retry_keeps_the_epoch_and_writes_nothing() -> None:
    world = cluster(1)
    epoch, end = world.tip.brokers[1].broker_epoch, len(world.log)
    assert world.ask(registration(1)).broker_epoch == epoch
    assert len(world.log) == end and not world.tip.brokers[1].fenced


def test_the_same_process_with_another_address_keeps_epoch_and_state() -> None:
    world = cluster(1)
    epoch = world.tip.brokers[1].broker_epoch
    assert world.ask(registration(1, endpoints=(INTERNAL,))).broker_epoch == epoch
    broker = world.tip.brokers[1]
    assert (broker.endpoints, broker.fenced) == ((INTERNAL,), False)


def test_a_directory_that_comes_back_is_registered_before_it_is_led_from() -> None:
    world = cluster(1)
    world.create(replicas=(1,))
    world.heartbeat(1, offline_directories=(uuid(1),))
    assert world.partition().leader == -1
    world.ask(registration(1))
    assert (world.partition().leader, world.partition().isr) == (1, (1,))


@rule("kraft 8.4")
def test_a_second_process_waits_for_the_first_ones_session() -> None:
    world = cluster(1)
    world.now_ms += SESSION_MS - 1
    with pytest.raises(ApiError) as raised:
        world.ask(registration(1, 1))
    assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.now_ms += 1
    assert world.ask(registration(1, 1)).broker_epoch == len(world.log) - 1
    assert world.tip.brokers[1].fenced


def test_a_second_process_may_register_at_once_when_the_first_is_fenced_as_dead() -> None:
    world = cluster(1)
    world.fence(1)
    world.ask(registration(1, 1))


def restarted(clean: bool, durability: str, **changes: Any) -> World:
    """Broker 1 led alone, ISR below the minimum, its session ended; then a new process of it registers."""
    world = cluster(1, 2)
    world.create(replicas=(1, 2), configs={"min.insync.replicas": "2", "durability": durability})
    world.alter((1,))
    assert world.partition().eligible_leader_replicas == (2,)
    epoch = world.tip.brokers[1].broker_epoch
    world.now_ms += SESSION_MS
    world.heartbeat(2)
    world.ask(registration(1, 1, previous_broker_epoch=epoch if clean else -1, **changes))
    return world


ELIGIBLE = [
    ("clean, synced", True, "synced", (1,)),
    ("unclean, synced: all that was acknowledged is on disk", False, "synced", (1,)),
    ("clean, page cache", True, "replicated", (1,)),
    ("unclean, page cache", False, "replicated", ()),
]


@rule("kraft 8.6")
@pytest.mark.parametrize(
    ("clean", "durability", "own"), [case[1:] for case in ELIGIBLE], ids=[case[0] for case in ELIGIBLE]
)
def test_which_replicas_stay_eligible_after_a_restart(clean: bool, durability: str, own: tuple[int, ...]) -> None:
    partition = restarted(clean, durability).partition()
    # Broker 2 is alive and eligible, so it leads at once; it makes an ISR of its own.
    assert (partition.leader, partition.isr, partition.eligible_leader_replicas) == (2, (2,), own)


@rule("kraft 9.12")
def test_a_damaged_replica_is_not_eligible_and_the_others_of_its_broker_stay() -> None:
    world = cluster(1, 2)
    for name in ("t", "u"):
        world.create(name, replicas=(1, 2), configs={"min.insync.replicas": "2"})
    world.fence(2)
    world.fence(1)
    assert [world.partition(name).eligible_leader_replicas for name in ("t", "u")] == [(1, 2), (1, 2)]
    world.ask(registration(1, 1, damaged_partitions=damaged(world, "t")))
    assert [world.partition(name).eligible_leader_replicas for name in ("t", "u")] == [(2,), (1, 2)]
    assert not world.heartbeat(1).is_fenced
    assert [world.partition(name).leader for name in ("t", "u")] == [-1, 1]


def test_damage_that_is_found_after_the_registration_is_told_with_a_second_one() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2), configs={"min.insync.replicas": "2"})
    world.fence(2)
    world.fence(1)
    epoch = world.ask(registration(1, 1)).broker_epoch
    assert world.partition().eligible_leader_replicas == (1, 2)
    assert world.ask(registration(1, 1, damaged_partitions=damaged(world, "t"))).broker_epoch == epoch
    assert world.partition().eligible_leader_replicas == (2,)


@rule("kraft 9.12")
def test_a_damaged_replica_that_leads_makes_room_for_one_that_is_whole() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    assert (world.partition().leader, world.partition().isr) == (1, (1, 2))
    world.ask(registration(1, damaged_partitions=damaged(world, "t")))
    assert (world.partition().leader, world.partition().isr) == (2, (2,))


@rule("kraft 9.9")
def test_what_is_left_of_the_last_known_leader_is_led_from_where_nobody_is_eligible() -> None:
    world = cluster(1)
    world.create(replicas=(1,))
    world.fence(1)
    world.ask(registration(1, 1, damaged_partitions=damaged(world, "t")))
    assert (world.partition().leader, world.partition().eligible_leader_replicas) == (-1, ())
    assert not world.heartbeat(1).is_fenced
    partition = world.partition()
    assert (partition.leader, partition.leader_recovery_state) == (1, RECOVERING)


def test_damage_of_partitions_that_are_gone_changes_nothing() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    before = world.partition()
    gone = (DamagedPartition(topic_id=uuid(99), index=0), DamagedPartition(topic_id=world.tip.topic_ids["t"], index=7))
    world.ask(registration(1, damaged_partitions=gone))
    assert world.partition() == before


def damaged(world: World, name: str) -> tuple[DamagedPartition, ...]:
    return (DamagedPartition(topic_id=world.tip.topic_ids[name], index=0),)


def test_a_replica_on_an_empty_disk_cannot_be_elected_and_is_no_longer_eligible() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    world.fence(2)
    world.fence(1)
    assert world.partition().eligible_leader_replicas == (1,)
    world.ask(registration(1, 1, log_directories=(uuid(77),)))
    assert not world.heartbeat(1).is_fenced
    assert world.partition().leader == -1, "the recorded directory is not there"
    assignment = DirectoryAssignment(topic_id=world.tip.topic_ids["t"], index=0, directory_id=uuid(77))
    epoch = world.tip.brokers[1].broker_epoch
    world.ask(Assign(broker_id=1, broker_epoch=epoch, assignments=(assignment,)))
    partition = world.partition()
    assert (partition.leader, partition.eligible_leader_replicas, partition.last_known_elr) == (-1, (), ())


@rule("kraft 8.5")
def test_the_old_process_leaves_before_the_new_one_is_registered() -> None:
    world = cluster(1, 2)
    world.create(replicas=(1, 2))
    world.now_ms += SESSION_MS
    world.heartbeat(2)
    start = len(world.log)
    epoch = world.ask(registration(1, 1)).broker_epoch
    assert [type(record).__name__ for record in world.log[start:]] == ["PartitionChangeRecord", "RegisterBrokerRecord"]
    assert epoch == start + 1


OTHER = FeatureRange(name="a.feature", min_level=1, max_level=1)


@rule("kraft 12.11")
def test_a_new_cluster_begins_with_the_latest_level_and_keeps_each_brokers_ranges() -> None:
    world = World()
    assert world.log[0] == FeatureLevelRecord(name="metadata.version", level=LATEST_LEVEL)
    world.ask(registration(1, features=(*SUPPORTED, OTHER)))
    assert world.tip.brokers[1].features == (OTHER, *SUPPORTED), "in the order of names"


BEFORE_LEVELS = (ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),)


@pytest.mark.parametrize("features", [(), SUPPORTED], ids=["older software", "this software"])
def test_a_cluster_from_before_there_were_levels_stays_at_level_1(features: tuple[FeatureRange, ...]) -> None:
    world = World(log=BEFORE_LEVELS)
    assert world.tip.metadata_version == 1 and not world.tip.features
    world.ask(registration(1, features=features))
    assert world.tip.brokers[1].features == (), "the record of this level does not carry them"
    before = len(world.log)
    world.ask(registration(1, features=features))
    assert len(world.log) == before, "a retry changes nothing"


def test_level_1_refuses_software_that_no_longer_supports_it() -> None:
    with pytest.raises(ApiError) as raised:
        World(log=BEFORE_LEVELS).ask(registration(1, features=(ranged(2, 3),)))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_second_process_is_refused_before_the_first_ones_first_heartbeat() -> None:
    world = World()
    epoch = world.ask(registration(1)).broker_epoch
    world.now_ms += SESSION_MS - 1
    with pytest.raises(ApiError) as raised:
        world.ask(registration(1, 1))
    assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert world.heartbeat(1).is_fenced is False and world.tip.brokers[1].broker_epoch == epoch


def test_a_process_that_registers_again_keeps_its_session() -> None:
    world = World()
    for _ in range(3):
        world.ask(registration(1))
        world.now_ms += SESSION_MS - 1
    with pytest.raises(ApiError) as raised:
        world.ask(registration(1, 1))
    assert raised.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.now_ms += 1
    world.ask(registration(1, 1))


def test_a_process_that_dies_before_its_first_heartbeat_holds_its_id_for_one_session_unless_proven_dead() -> None:
    world = World()
    world.ask(registration(1))
    world.submit(world.core.fencing(1))
    world.finish()
    assert world.ask(registration(1, 1)).broker_epoch == len(world.log) - 1


@rule("kraft 13.6")
def test_a_recovered_cluster_notes_its_incarnation_once_its_level_has_the_record() -> None:
    level_2 = (FeatureLevelRecord(name="metadata.version", level=2), *BEFORE_LEVELS)
    assert World(log=level_2, incarnation=RECOVERED).tip.incarnation == FIRST
    upgraded = World(log=(FeatureLevelRecord(name="metadata.version", level=3), *BEFORE_LEVELS), incarnation=RECOVERED)
    assert upgraded.tip.incarnation == RECOVERED
    again = World(log=tuple(upgraded.log), incarnation=RECOVERED)
    assert len(again.log) == len(upgraded.log)


@rule("kraft 12.11")
@pytest.mark.parametrize(("first", "begins"), [(None, LATEST_LEVEL), (1, 1), (2, 2)])
def test_a_new_cluster_begins_at_the_level_that_it_was_formatted_for(first: int | None, begins: int) -> None:
    assert World(first_level=first).tip.metadata_version == begins
    level_2 = (FeatureLevelRecord(name="metadata.version", level=2), *BEFORE_LEVELS)
    assert World(log=level_2, first_level=first).tip.metadata_version == 2, "it has begun already"
