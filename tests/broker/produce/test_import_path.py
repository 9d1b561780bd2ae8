"""Import at the brokers, on simulated machines: what a replica takes, what a crash leaves of it, who may lead then."""

from __future__ import annotations

from typing import Any

import pytest
from replica_cluster import TOPIC_ID, ReplicaCluster, values_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import NO_NODE
from quorumlog.messages.imports import ImportRecordsRequest, ImportRecordsResponse
from quorumlog.messages.metadata_records import NodeList, PartitionChangeRecord, PartitionRecord, TopicRecord
from quorumlog.records import Record, encode_batch, headers
from quorumlog_quorum.metadata.registration import IMPORTING, RECOVERED

EPOCH = 6  # of the imported records, and of the partition while it is imported
START = 40  # of the foreign log
NODES = (1, 2, 3)


def importing(last_epoch: int = EPOCH) -> ReplicaCluster:
    cluster = ReplicaCluster()
    directories = tuple(cluster.nodes[node].directory_id(cluster.nodes[node].paths[0]) for node in NODES)
    cluster.commit(
        TopicRecord(name="t", topic_id=TOPIC_ID),
        PartitionRecord(
            partition=0, topic_id=TOPIC_ID, replicas=NODES, isr=(), leader=NO_NODE, directories=directories,
            leader_epoch=last_epoch, partition_epoch=last_epoch, leader_recovery_state=IMPORTING,
        ),
    )  # fmt: skip
    cluster.run_for(1_000)
    return cluster


def foreign(base: int, *values: str, epoch: int = EPOCH) -> bytes:
    records = [Record(base + n, 1_600_000_000_000, None, value.encode()) for n, value in enumerate(values)]
    return encode_batch(records, base_offset=base, leader_epoch=epoch)


def send(cluster: ReplicaCluster, node_id: int, **fields: Any) -> ImportRecordsResponse:
    node = cluster.nodes[node_id]
    given = {"start_offset": START, "records": b""} | fields
    request = ImportRecordsRequest(topic_id=TOPIC_ID, index=0, **given)
    return node.run(node.data_plane.import_path.take(request))


def refusal(cluster: ReplicaCluster, **fields: Any) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        send(cluster, 1, **fields)
    return refused.value.code


def activate(cluster: ReplicaCluster, leader: int = 1) -> None:
    cluster.commit(
        PartitionChangeRecord(
            partition=0, topic_id=TOPIC_ID, isr=NodeList(nodes=NODES), leader=leader,
            leader_recovery_state=RECOVERED,
        )
    )  # fmt: skip
    cluster.wait_led(leader)


def test_what_is_sent_is_what_the_first_leader_serves() -> None:
    cluster = importing()
    for node in NODES:
        assert send(cluster, node, end_offset=START, records=foreign(START, "a", "b")).end_offset == 42
        assert send(cluster, node, end_offset=42, records=foreign(45, "c")).end_offset == 46  # a gap: compaction
        told = send(cluster, node, end_offset=46, seal_at_log_start=41)
        assert (told.sealed, told.end_offset, told.start_offset) == (True, 46, 41)
        assert told.last_checksum == headers(foreign(45, "c"))[0].crc
        assert told.broker_epoch == cluster.image.brokers[node].broker_epoch
    activate(cluster)
    assert cluster.core(1).leader_epoch == EPOCH + 1
    cluster.produce(1, "d")
    for node in NODES:
        log = cluster.nodes[node].log()
        assert (log.start_offset, log.end_offset) == (41, 47)
        assert [(entry.epoch, entry.start_offset) for entry in log.epochs.entries] == [(EPOCH, 41), (EPOCH + 1, 46)]
    assert values_of(cluster.fetch(1, 41).records) == ["a", "b", "c"]
    assert [cluster.nodes[node].log_values() for node in NODES] == [["a", "b", "c", "d"]] * 3


def test_a_request_that_expects_another_end_appends_nothing() -> None:
    cluster = importing()
    assert send(cluster, 1, end_offset=START, records=foreign(START, "a")).end_offset == 41
    for end in (START, 45):  # a repeated request, and one that comes too early
        told = send(cluster, 1, end_offset=end, records=foreign(end, "x"), seal_at_log_start=START)
        assert (told.end_offset, told.sealed) == (41, False)
    assert send(cluster, 1).end_offset == 41  # who only asks


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("a flipped bit", {"records": foreign(START, "a")[:-2] + b"?\0"}, ErrorCode.CORRUPT_MESSAGE),
    ("an epoch above the announced one", {"records": foreign(START, "a", epoch=EPOCH + 1)}, ErrorCode.INVALID_RECORD),
    ("offsets that fall", {"records": foreign(START, "a") + foreign(START, "a")}, ErrorCode.INVALID_RECORD),
    (
        "epochs that fall",
        {"records": foreign(START, "a") + foreign(START + 1, "b", epoch=EPOCH - 1)},
        ErrorCode.INVALID_RECORD,
    ),
]


@pytest.mark.parametrize(("fields", "want"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_must_not_be_appended_is_refused(fields: dict[str, Any], want: ErrorCode) -> None:
    cluster = importing()
    assert refusal(cluster, end_offset=START, **fields) is want
    told = send(cluster, 1)
    assert (told.end_offset, told.last_checksum) == (told.start_offset, 0)


def test_a_partition_that_is_led_takes_no_import() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic()
    cluster.wait_led(1)
    assert refusal(cluster, end_offset=0, records=foreign(0, "a")) is ErrorCode.INVALID_REQUEST
    late = importing()
    for node in NODES:
        send(late, node, end_offset=START, records=foreign(START, "a"), seal_at_log_start=START)
    activate(late)
    assert refusal(late, end_offset=41, records=foreign(41, "b")) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("lose", ["process", "power"])
def test_what_was_sealed_survives_and_what_was_not_is_asked_for(lose: str) -> None:
    cluster = importing()
    assert send(cluster, 1, end_offset=START, records=foreign(START, "a"), seal_at_log_start=START).sealed
    sealed_by = send(cluster, 1, end_offset=41, seal_at_log_start=START).broker_epoch
    assert cluster.nodes[1].log().synced_end == 41
    send(cluster, 1, end_offset=41, records=foreign(41, "b"))
    if lose == "process":
        cluster.kill(1)
    else:
        cluster.nodes[1].cut_power()
    cluster.start(1)
    cluster.run_for(1_000)
    told = send(cluster, 1)
    assert 41 <= told.end_offset <= 42  # the second batch was not sealed
    if lose == "process":
        assert told.end_offset == 42
    assert told.broker_epoch > sealed_by  # so what it said before does not count any more
    if told.end_offset == 41:
        send(cluster, 1, end_offset=41, records=foreign(41, "b"))
    assert send(cluster, 1, end_offset=42, seal_at_log_start=START).sealed
    for node in (2, 3):
        send(cluster, node, end_offset=START, records=foreign(START, "a") + foreign(41, "b"), seal_at_log_start=START)
    activate(cluster)
    assert [cluster.nodes[node].log_values() for node in NODES] == [["a", "b"]] * 3


def test_no_replica_follows_or_leads_before_the_import_is_finished() -> None:
    cluster = importing()
    send(cluster, 1, end_offset=START, records=foreign(START, "a"), seal_at_log_start=START)
    cluster.run_for(5_000)
    assert [cluster.nodes[node].log_values() for node in NODES] == [["a"], [], []]
    assert not any(cluster.core(node).is_leader for node in NODES)
    with pytest.raises(ApiError):
        cluster.produce(1, "x")
