"""Times of records, of creation and of append, from a produce request to the files and to searches."""

from __future__ import annotations

from replica_cluster import TOPIC_ID, ReplicaCluster, batch

from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import ConfigRecord
from quorumlog.records import decode_batch, headers
from quorumlog.records.format.batch import LOG_APPEND_TIME, verify_crc
from quorumlog_quorum.metadata.image import TOPIC_RESOURCE
from tests.rules import rule

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000


def led_cluster(**configs: str) -> ReplicaCluster:
    cluster = ReplicaCluster()
    cluster.create_topic(**configs)
    cluster.wait_led(1)
    return cluster


def change(cluster: ReplicaCluster, name: str, value: str) -> None:
    cluster.commit(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=name, value=value))
    cluster.run_for(200)


def produce_at(cluster: ReplicaCluster, *times: int) -> None:
    for time in times:
        cluster.produce_batch(1, batch("x", timestamp_ms=time))
    cluster.run_for(1_000)


def stored(cluster: ReplicaCluster, node_id: int) -> bytes:
    log = cluster.nodes[node_id].log()
    return b"".join(segment.log.read(0, segment.size) for segment in log.view.segments)


def ask(cluster: ReplicaCluster, timestamp_ms: int) -> tuple[int, Offset, int]:
    node = cluster.nodes[1]
    found = node.run(node.data_plane.offset_queries.list_offset(TOPIC_ID, 0, timestamp_ms))
    assert not found.error_code
    return found.timestamp_ms, found.offset, found.leader_epoch


@rule("storage 1.11")
def test_the_append_time_replaces_what_the_producer_says() -> None:
    cluster = led_cluster(message_timestamp_type="LogAppendTime")
    before_ms = cluster.nodes[1].clock.wall_ms()
    produce_at(cluster, START_MS - 10 * HOUR_MS, START_MS + 900 * HOUR_MS)
    written = stored(cluster, 1)
    assert [stored(cluster, node_id) for node_id in (2, 3)] == [written] * 2
    first, second = headers(written)
    for header in (first, second):
        verify_crc(written, header)
        assert header.attributes & LOG_APPEND_TIME
        assert [record.timestamp_ms for record in decode_batch(written, header)] == [header.max_timestamp]
    assert before_ms <= first.max_timestamp <= second.max_timestamp < before_ms + HOUR_MS
    assert ask(cluster, before_ms) == (first.max_timestamp, 0, first.leader_epoch)
    assert ask(cluster, second.max_timestamp + 1)[1] == -1


@rule("storage 1.11")
def test_the_type_may_change_between_two_batches() -> None:
    """Each batch says which it has; a search and a roll go by what is stored."""
    cluster = led_cluster(message_timestamp_type="LogAppendTime", internal_segment_bytes="1000000")
    produce_at(cluster, START_MS)
    change(cluster, "message.timestamp.type", "CreateTime")
    produce_at(cluster, START_MS)
    first, second = headers(stored(cluster, 1))
    assert first.attributes & LOG_APPEND_TIME and not second.attributes & LOG_APPEND_TIME
    assert second.max_timestamp == START_MS != first.max_timestamp
    latest = max((first.max_timestamp, 0), (START_MS, 1), key=lambda one: (one[0], -one[1]))
    assert ask(cluster, -3)[:2] == latest


@rule("storage 1.19")
def test_leader_and_followers_roll_at_the_same_records_and_after_a_change() -> None:
    cluster = led_cluster(message_timestamp_after_max_ms=str(1 << 40))
    produce_at(cluster, START_MS, START_MS + 2 * HOUR_MS)
    logs = [node.log() for node in cluster.nodes.values()]
    assert [log.segment_bases for log in logs] == [(0,)] * 3
    change(cluster, "segment.ms", str(HOUR_MS))
    produce_at(cluster, START_MS + HOUR_MS, START_MS + HOUR_MS + 1, START_MS + 2 * HOUR_MS + 1)
    produce_at(cluster, START_MS + 2 * HOUR_MS + 2)
    assert [log.segment_bases for log in logs] == [(0, 3, 5)] * 3
    assert [ask(cluster, START_MS + late)[1] for late in (0, 1, 2 * HOUR_MS + 1, 2 * HOUR_MS + 2)] == [0, 1, 4, 5]
    assert ask(cluster, START_MS + 3 * HOUR_MS) == (-1, -1, -1)
