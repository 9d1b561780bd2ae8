"""Bytes and records are counted where they pass, by topic; what is deleted is not shown any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from replica_cluster import TOPIC_ID, Node, ReplicaCluster

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.metadata_records import DirectoryList, NodeList, PartitionChangeRecord
from quorumlog.records import Record, encode_batch
from quorumlog.records.validation.record_check import InvalidRecord, RecordFault
from quorumlog_broker.replicas.traffic import Traffic
from quorumlog_server.metrics import traffic
from quorumlog_server.metrics.reading import Labels, Reading, Source, Value
from quorumlog_server.metrics.series import Series

BATCH = encode_batch([Record(number, 1_700_000_000_000, None, b"value", ()) for number in range(3)])


def shown(node: Node, detail: str = "low") -> dict[Series, dict[Labels, Value]]:
    broker = SimpleNamespace(data_plane=node.data_plane, chunk_streams=SimpleNamespace(count=0, chunks=0, bytes=0))
    config = SimpleNamespace(process=SimpleNamespace(metrics_detail=detail))
    whole: Any = SimpleNamespace(broker=broker, config=config)
    out = Reading()
    traffic.collect(Source(whole, Any, 0, 0), out)  # type: ignore[arg-type]
    return out.rows


def written(partitions: int = 1) -> ReplicaCluster:
    """A topic `t` on three brokers, of which 1 leads, with two batches of three records."""
    cluster = ReplicaCluster()
    cluster.create_topic(partitions=partitions)
    cluster.wait_led(1)
    for _ in range(2):
        cluster.produce_batch(1, BATCH)
    return cluster


def test_what_goes_in_and_out_is_counted_by_topic() -> None:
    cluster = written()
    cluster.fetch(1, 0)
    cluster.fetch(1, 3)
    found, follower = shown(cluster.nodes[1]), shown(cluster.nodes[2])
    assert found[traffic.BYTES_IN] == {("t",): 2 * len(BATCH)}
    assert found[traffic.RECORDS_IN] == {("t",): 6}
    assert found[traffic.BYTES_OUT] == {("t",): 3 * len(BATCH)}
    assert found[traffic.REPLICATION_OUT] == {(): 2 * 2 * len(BATCH)} and found[traffic.REPLICATION_IN] == {(): 0}
    assert follower[traffic.REPLICATION_IN] == {(): 2 * len(BATCH)} and follower[traffic.REASSIGNMENT] == {(): 0}
    assert follower[traffic.BYTES_IN] == {("t",): 0}


def test_partitions_are_shown_where_details_are_wanted() -> None:
    cluster = written(partitions=2)
    low, high = shown(cluster.nodes[1]), shown(cluster.nodes[1], "high")
    assert traffic.PARTITION_BYTES_IN not in low
    assert high[traffic.PARTITION_RECORDS_IN] == {("t", "0"): 6, ("t", "1"): 0}
    assert high[traffic.BYTES_IN] == low[traffic.BYTES_IN]


def test_what_a_new_replica_copies_is_of_a_reassignment() -> None:
    cluster = ReplicaCluster()
    cluster.create_topic(replicas=(1,))
    cluster.wait_led(1)
    cluster.produce_batch(1, BATCH)
    more, added = NodeList(nodes=(1, 2)), NodeList(nodes=(2,))
    places = DirectoryList(directories=tuple(cluster.nodes[node].directory_id("/d0") for node in (1, 2)))
    change = PartitionChangeRecord(
        partition=0, topic_id=TOPIC_ID, replicas=more, adding_replicas=added, directories=places
    )
    cluster.commit(change)
    cluster.run_until(lambda: cluster.nodes[2].data_plane.registry.traffic.replication_in > 0)
    assert shown(cluster.nodes[2])[traffic.REASSIGNMENT] == {(): len(BATCH)}


def test_a_deleted_topic_is_gone_with_the_next_scrape_and_its_counts_with_it() -> None:
    cluster = written()
    node = cluster.nodes[1]
    kept = node.data_plane.registry.traffic.topics
    cluster.delete_topic()
    cluster.run_for(1_000)
    assert traffic.BYTES_IN not in shown(node) and kept == {}


def test_a_topic_that_the_broker_has_not_forgotten_yet_is_not_shown() -> None:
    node = written().nodes[1]
    node.data_plane.registry.traffic.of((b"deleted before  ", 0)).bytes_in = 7
    assert shown(node)[traffic.BYTES_IN] == {("t",): 2 * len(BATCH)}


def test_a_topic_made_again_begins_at_nothing() -> None:
    cluster = written()
    cluster.delete_topic()
    cluster.run_for(1_000)
    cluster.create_topic(topic_id=b"another topic id")
    cluster.run_for(1_000)
    assert shown(cluster.nodes[1])[traffic.BYTES_IN] == {("t",): 0}


def test_a_replica_that_leaves_and_comes_back_goes_on_counting() -> None:
    cluster = written()
    node = cluster.nodes[1]
    before = node.data_plane.registry.traffic.of((TOPIC_ID, 0))
    del node.data_plane.registry.replicas[TOPIC_ID, 0]
    assert shown(node)[traffic.BYTES_IN] == {("t",): 2 * len(BATCH)}
    assert node.data_plane.registry.traffic.of((TOPIC_ID, 0)) is before


def test_a_refused_fetch_is_counted() -> None:
    cluster = written()
    cluster.fetch(1, 10_000)
    assert shown(cluster.nodes[1])[traffic.FETCH_FAILED] == {(): 1}
    assert shown(cluster.nodes[1])[traffic.BYTES_OUT] == {("t",): 0}


REFUSALS = [
    ("too large", ApiError(ErrorCode.MESSAGE_TOO_LARGE, ""), 100, {}),
    ("too large together", ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, ""), 100, {}),
    ("three of its records", InvalidRecord("", [RecordFault(n, "") for n in range(3)]), 0, {"invalid": 3}),
    ("a batch", ApiError(ErrorCode.CORRUPT_MESSAGE, ""), 0, {"corrupt": 1}),
    ("elsewhere", ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, ""), 0, {}),
]


@pytest.mark.parametrize(("error", "rejected", "invalid"), [c[1:] for c in REFUSALS], ids=[c[0] for c in REFUSALS])
def test_refusals_of_producers(error: ApiError, rejected: int, invalid: dict[str, int]) -> None:
    found = Traffic()
    found.refused(error, 100)
    assert (found.produce_failed, found.rejected, dict(found.invalid)) == (1, rejected, invalid)
