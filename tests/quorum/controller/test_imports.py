"""Import at the controller: a topic without leaders, and the change that gives it leaders (decision 37)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from controller_world import World, cluster, code

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import CreatePartitionsRequest, PartitionsOfTopic
from quorumlog.messages.cluster import DeleteTopicsRequest, ReplicaAssignment, TopicQuery
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.controller import AllocateProducerIdsRequest
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    ImportedPartition,
    SealedReplica,
)
from quorumlog_quorum.metadata.registration import IMPORTING, RECOVERED

END = 100


def begin(world: World, **changes: Any) -> BeginImportResponse:
    fields: dict[str, Any] = {
        "name": "t",
        "assignments": (ReplicaAssignment(partition=0, broker_ids=(1, 2, 3)),),
        "last_epochs": (7,),
        "next_producer_id": 5_000,
        "timeout_ms": 1,
    }
    response: BeginImportResponse = world.ask(BeginImportRequest(**fields | changes))
    return response


def refusal(world: World, **changes: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        begin(world, **changes)
    return refused.value.code


def told(world: World, **changes: Any) -> FinishImportRequest:
    """What an importer says when every broker has sealed its replica."""
    partition = world.partition()
    sealed = tuple(
        SealedReplica(broker_id=node, broker_epoch=world.tip.brokers[node].broker_epoch, end_offset=END)
        for node in partition.replicas
    )
    topic = world.tip.topic("t")
    assert topic is not None
    fields: dict[str, Any] = {
        "topic_id": topic.id,
        "partitions": (ImportedPartition(index=0, replicas=sealed),),
        "timeout_ms": 1,
    }
    return FinishImportRequest(**fields | changes)


def finish(world: World, request: FinishImportRequest) -> ErrorCode:
    try:
        return code(world.ask(request))
    except ApiError as error:
        return error.code


def with_replica(request: FinishImportRequest, number: int, **changes: Any) -> FinishImportRequest:
    (partition,) = request.partitions
    replicas = list(partition.replicas)
    replicas[number] = replace(replicas[number], **changes)
    return replace(request, partitions=(replace(partition, replicas=tuple(replicas)),))


def test_the_topic_has_no_leader_and_its_epoch_is_the_imported_one() -> None:
    world = cluster(1, 2, 3)
    response = begin(world, configs=(ConfigEntry(name="retention.paused", value="true"),))
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (-1, (), IMPORTING)
    assert (partition.leader_epoch, partition.replicas) == (7, (1, 2, 3))
    assert [one.broker_ids for one in response.assignments] == [(1, 2, 3)] and not response.resumed
    assert world.tip.topic_config("t")["retention.paused"] == "true"


def test_the_next_producer_id_is_above_every_imported_one() -> None:
    world = cluster(1, 2, 3)
    begin(world)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=world.tip.brokers[1].broker_epoch)
    assert world.ask(request).first_producer_id == 5_000
    before = world.tip.next_producer_id
    begin(world, name="u", next_producer_id=3)  # ids below are given out already: nothing goes back
    assert world.tip.next_producer_id == before


def test_no_election_gives_it_a_leader() -> None:
    world = cluster(1, 2, 3)
    begin(world, configs=(ConfigEntry(name="unclean.leader.election.enable", value="true"),))
    for node in (1, 2, 3):
        world.fence(node)
        assert (world.partition().leader, world.partition().isr) == (-1, ())
    for node in (1, 2, 3):
        world.start(node, 1)
        world.heartbeat(node)
        assert (world.partition().leader, world.partition().isr) == (-1, ())
    assert world.partition().leader_epoch == 7


def test_a_finished_import_is_led_in_a_later_epoch_with_every_replica_in_sync() -> None:
    world = cluster(1, 2, 3)
    begin(world)
    assert finish(world, told(world)) is ErrorCode.NONE
    partition = world.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1, 2, 3), RECOVERED)
    assert partition.leader_epoch == 8
    assert finish(world, told(world)) is ErrorCode.NONE  # a repeated request
    assert world.partition().leader_epoch == 8


def test_what_a_former_life_of_a_broker_said_does_not_count() -> None:
    world = cluster(1, 2, 3)
    begin(world)
    request = told(world)
    world.fence(2)
    assert finish(world, request) is ErrorCode.REPLICA_NOT_AVAILABLE
    world.start(2, 1)
    world.heartbeat(2)
    assert finish(world, request) is ErrorCode.STALE_BROKER_EPOCH
    assert world.partition().leader == -1
    assert finish(world, told(world)) is ErrorCode.NONE


FAULTS = [
    ("another end", lambda request: with_replica(request, 1, end_offset=END - 1)),
    ("a replica is missing", lambda request: with_replica(request, 1, broker_id=1)),
    ("not a replica", lambda request: with_replica(request, 1, broker_id=4)),
    ("no partition", lambda request: replace(request, partitions=())),
    ("a partition twice", lambda request: replace(request, partitions=request.partitions * 2)),
    ("an unknown partition", lambda request: replace(request, partitions=(replace(request.partitions[0], index=1),))),
]


@pytest.mark.parametrize(("change",), [(c[1],) for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_a_faulty_finish_changes_nothing(change: Any) -> None:
    world = cluster(1, 2, 3)
    begin(world)
    before = world.tip
    assert finish(world, change(told(world))) is ErrorCode.INVALID_REQUEST
    assert world.tip is before


def grow(world: World, count: int) -> ErrorCode:
    asked = CreatePartitionsRequest(topics=(PartitionsOfTopic(name="t", count=count),), timeout_ms=1)
    return code(world.ask(asked).results[0])


def test_a_topic_gets_no_partitions_while_it_takes_an_import() -> None:
    """The importer does not know of them, and so the import could never be finished."""
    world = cluster(1, 2, 3)
    begin(world)
    before = world.tip
    assert grow(world, 2) is ErrorCode.INVALID_PARTITIONS
    assert world.tip is before
    assert finish(world, told(world)) is ErrorCode.NONE
    assert grow(world, 2) is ErrorCode.NONE


def test_an_import_is_finished_where_older_software_has_added_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    world = cluster(1, 2, 3)
    begin(world)
    monkeypatch.setattr("quorumlog_quorum.controller.requests.create_partitions.IMPORTING", None)
    assert grow(world, 2) is ErrorCode.NONE
    assert finish(world, told(world)) is ErrorCode.NONE
    assert [world.partition("t", index).leader_recovery_state for index in (0, 1)] == [RECOVERED, RECOVERED]


def test_an_interrupted_import_finds_its_topic_again() -> None:
    world = cluster(1, 2, 3)
    first = begin(world)
    again = begin(world)
    assert again.resumed and (again.topic_id, again.assignments) == (first.topic_id, first.assignments)
    assert refusal(world, last_epochs=(8,)) is ErrorCode.TOPIC_ALREADY_EXISTS
    assert refusal(world, last_epochs=(7, 7)) is ErrorCode.TOPIC_ALREADY_EXISTS
    finish(world, told(world))
    assert refusal(world) is ErrorCode.TOPIC_ALREADY_EXISTS


def test_an_import_is_dropped_with_its_topic() -> None:
    world = cluster(1, 2, 3)
    begin(world)
    request = told(world)
    world.ask(DeleteTopicsRequest(topics=(TopicQuery(name="t"),), timeout_ms=1))
    assert finish(world, request) is ErrorCode.UNKNOWN_TOPIC_ID
    assert not begin(world).resumed


REFUSALS: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("no partition", {"last_epochs": ()}, ErrorCode.INVALID_PARTITIONS),
    ("epoch below -1", {"last_epochs": (-2,)}, ErrorCode.INVALID_REQUEST),
    ("no epoch above it", {"last_epochs": (2**31 - 1,)}, ErrorCode.INVALID_REQUEST),
    ("producer id", {"next_producer_id": -1}, ErrorCode.INVALID_REQUEST),
    ("other partitions", {"last_epochs": (1, 2)}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("bad name", {"name": "a/b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("bad setting", {"configs": (ConfigEntry(name="retention.ms", value="x"),)}, ErrorCode.INVALID_CONFIG),
    (
        "too many replicas",
        {"assignments": (), "replication_factor": 9},
        ErrorCode.INVALID_REPLICATION_FACTOR,
    ),
]


@pytest.mark.parametrize(("changes", "want"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_refused(changes: dict[str, Any], want: ErrorCode) -> None:
    world = cluster(1, 2, 3)
    before = world.tip
    assert refusal(world, **changes) is want
    assert world.tip is before


def test_software_that_does_not_know_the_state_is_not_given_it() -> None:
    world = World(first_level=3)
    for node in (1, 2, 3):
        world.start(node)
        world.heartbeat(node)
    assert world.tip.metadata_version == 3
    assert refusal(world) is ErrorCode.UNSUPPORTED_VERSION
