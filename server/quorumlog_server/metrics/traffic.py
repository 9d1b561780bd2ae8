"""What goes in and out of this node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorumlog_broker.replicas.traffic import REASONS
from quorumlog_server.metrics.reading import Reading, Source
from quorumlog_server.metrics.series import Kind, Series

if TYPE_CHECKING:
    from quorumlog_broker.node import Broker

_TOPICS = "kafka.server:type=BrokerTopicMetrics,name="


def _total(name: str, asks: str, mbean: str = "", unit: str = "", labels: tuple[str, ...] = ()) -> Series:
    return Series(f"{name}_total", Kind.COUNTER, unit, labels, asks, f"{_TOPICS}{mbean}" if mbean else "")


_OF_TOPIC, _OF_PARTITION = ("topic",), ("topic", "partition")
BYTES_IN = _total(
    "bytes_in", "Which topics are written, and how much? Bytes of batches.", "BytesInPerSec,topic=", "bytes", _OF_TOPIC
)
BYTES_OUT = _total("bytes_out", "Which topics are read, and how much?", "BytesOutPerSec,topic=", "bytes", _OF_TOPIC)
RECORDS_IN = _total("records_in", "How many records are written?", "MessagesInPerSec,topic=", labels=_OF_TOPIC)
PARTITION_BYTES_IN = _total(
    "partition_bytes_in", "Which partition is hot? Shown with `metrics.detail=high`.", "", "bytes", _OF_PARTITION
)
PARTITION_BYTES_OUT = _total(
    "partition_bytes_out", "Which partition is read most? Shown with `metrics.detail=high`.", "", "bytes", _OF_PARTITION
)
PARTITION_RECORDS_IN = _total(
    "partition_records_in", "How many records does it get? Shown with `metrics.detail=high`.", labels=_OF_PARTITION
)
REJECTED = _total("bytes_rejected", "How much was too large to be taken?", "BytesRejectedPerSec", "bytes")
PRODUCE_FAILED = _total(
    "produce_failed", "How many batches of producers were refused, whatever for?", "FailedProduceRequestsPerSec"
)
FETCH_FAILED = _total(
    "fetch_failed", "How many partitions of fetches were refused, whatever for?", "FailedFetchRequestsPerSec"
)
REPLICATION_IN = _total(
    "replication_bytes_in", "How much did this broker copy from leaders?", "ReplicationBytesInPerSec", "bytes"
)
REPLICATION_OUT = _total(
    "replication_bytes_out", "How much did followers copy from this broker?", "ReplicationBytesOutPerSec", "bytes"
)
REASSIGNMENT = _total(
    "reassignment_bytes",
    "How much of what it copied was for replicas that are being added?",
    "ReassignmentBytesInPerSec",
    "bytes",
)
INVALID = _total(
    "records_invalid",
    "How many records were refused for what they are?",
    "InvalidMessageCrcRecordsPerSec, NoKeyCompactedTopicRecordsPerSec, InvalidOffsetOrSequenceRecordsPerSec",
    labels=("reason",),
)
CHUNK_STREAMS = Series(
    "fetch_chunk_streams", Kind.GAUGE, "", (), "How many readers by gRPC take streams of chunks (Spark)?"
)
CHUNKS = _total("fetch_chunks", "How many chunks of records have such streams sent?")
CHUNK_BYTES = _total("fetch_chunk_bytes", "How many bytes of records were in them?", unit="bytes")

SERIES: Final = (
    BYTES_IN, BYTES_OUT, RECORDS_IN, PARTITION_BYTES_IN, PARTITION_BYTES_OUT, PARTITION_RECORDS_IN, REJECTED,
    PRODUCE_FAILED, FETCH_FAILED, REPLICATION_IN, REPLICATION_OUT, REASSIGNMENT, INVALID, CHUNK_STREAMS, CHUNKS,
    CHUNK_BYTES,
)  # fmt: skip


def collect(source: Source, out: Reading) -> None:
    broker = source.node.broker
    if broker is None:
        return
    traffic = broker.data_plane.registry.traffic
    _collect_topics(broker, out, is_detailed=source.is_detailed)
    out.add(REJECTED, traffic.rejected)
    out.add(PRODUCE_FAILED, traffic.produce_failed)
    out.add(FETCH_FAILED, traffic.fetch_failed)
    out.add(REPLICATION_IN, traffic.replication_in)
    out.add(REPLICATION_OUT, traffic.replication_out)
    out.add(REASSIGNMENT, traffic.reassignment)
    for reason in sorted(set(REASONS.values())):
        out.add(INVALID, traffic.invalid[reason], reason)
    streams = broker.chunk_streams
    out.add(CHUNK_STREAMS, streams.count)
    out.add(CHUNKS, streams.chunks)
    out.add(CHUNK_BYTES, streams.bytes)


def _collect_topics(broker: Broker, out: Reading, *, is_detailed: bool) -> None:
    """A topic that was deleted is not shown, also where the broker has not forgotten it yet."""
    registry = broker.data_plane.registry
    topics = registry.image.topics
    for topic_id, partitions in out.each(registry.traffic.topics.items()):
        topic = topics.get(topic_id)
        if topic is None:
            continue
        bytes_in = bytes_out = records_in = 0
        for index, one in out.each(partitions.items()):
            bytes_in += one.bytes_in
            bytes_out += one.bytes_out
            records_in += one.records_in
            if is_detailed:
                out.add(PARTITION_BYTES_IN, one.bytes_in, topic.name, str(index))
                out.add(PARTITION_BYTES_OUT, one.bytes_out, topic.name, str(index))
                out.add(PARTITION_RECORDS_IN, one.records_in, topic.name, str(index))
        out.add(BYTES_IN, bytes_in, topic.name)
        out.add(BYTES_OUT, bytes_out, topic.name)
        out.add(RECORDS_IN, records_in, topic.name)
