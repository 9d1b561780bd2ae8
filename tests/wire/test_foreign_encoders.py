"""We read what aiokafka's own structs write, and they read what we write; they share no code with ours."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from aiokafka.protocol import admin, fetch, metadata, produce

from quorumlog.messages import cluster
from quorumlog.messages import fetch as our_fetch
from quorumlog.messages import produce as our_produce
from quorumlog.wire.format.cursor import Cursor
from quorumlog.wire.format.header import RequestHeader, read_fixed
from quorumlog.wire.protocol.apis import BY_KEY
from quorumlog.wire.protocol.codec import WireRequest, decode_request, encode_response

RECORDS = bytes(range(200))


def header_of(api_key: int, version: int) -> bytes:
    return struct.pack(">hhih", api_key, version, 77, 3) + b"aio"


def asked(struct_: Any) -> WireRequest:
    """Our reading of a request that aiokafka wrote."""
    cursor = Cursor(memoryview(header_of(struct_.API_KEY, struct_.API_VERSION) + struct_.encode()))
    found = decode_request(BY_KEY[struct_.API_KEY], cursor, read_fixed(cursor))
    assert found.header == RequestHeader(struct_.API_KEY, struct_.API_VERSION, 77, "aio")
    return found


def answered(struct_: Any, response: Any) -> Any:
    """aiokafka's reading of our response to its request."""
    frame = b"".join(encode_response(asked(struct_), response))
    assert struct.unpack(">ii", frame[:8]) == (len(frame) - 4, 77)
    return struct_.RESPONSE_TYPE.decode(io.BytesIO(frame[8:]))


def our_produce_request() -> our_produce.ProduceRequest:
    partition = our_produce.ProducePartition(index=4, records=RECORDS)
    topic = our_produce.ProduceTopic(name="t", partitions=(partition,))
    return our_produce.ProduceRequest(acks=-1, timeout_ms=99, topics=(topic,))


@pytest.mark.parametrize("version", range(3, 9))
def test_produce(version: int) -> None:
    made = getattr(produce, f"ProduceRequest_v{version}")(
        transactional_id=None, required_acks=-1, timeout=99, topics=[("t", [(4, RECORDS)])]
    )
    assert asked(made).request == our_produce_request()
    partition = our_produce.ProducePartitionResponse(index=4, base_offset=17, log_append_time_ms=-1, log_start_offset=3)
    topic = our_produce.ProduceTopicResponse(name="t", partitions=(partition,))
    result = answered(made, our_produce.ProduceResponse(topics=(topic,), throttle_time_ms=5))
    assert result.throttle_time_ms == 5
    assert result.topics[0][0] == "t" and result.topics[0][1][0][:4] == (4, 0, 17, -1)


@pytest.mark.parametrize("version", range(4, 12))
def test_fetch(version: int) -> None:
    kind = getattr(fetch, f"FetchRequest_v{version}")
    fields: dict[str, Any] = {
        "replica_id": -1,
        "max_wait_time": 500,
        "min_bytes": 1,
        "max_bytes": 1000,
        "isolation_level": 1,
        "session_id": 0,
        "session_epoch": -1,
        "forgotten_topics_data": [],
        "rack_id": "r1",
    }
    partition: list[Any] = [4, 10, 900]
    if version >= 5:
        partition.insert(2, -1)
    if version >= 9:
        partition.insert(1, 6)
    fields["topics"] = [("t", [tuple(partition)])]
    made = kind(**{name: value for name, value in fields.items() if name in kind.SCHEMA.names})
    request = asked(made).request
    wanted = our_fetch.FetchPartition(
        index=4, fetch_offset=10, max_bytes=900, current_leader_epoch=6 if version >= 9 else -1
    )
    topic = our_fetch.FetchTopic(topic_id=b"", name="t", partitions=(wanted,))
    assert request.topics == (topic,) and request.replica is None
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level) == (500, 1, 1000, 1)
    assert request.rack == ("r1" if version >= 11 else "")
    part = our_fetch.FetchPartitionResponse(
        index=4, high_watermark=12, last_stable_offset=12, log_start_offset=0, records=memoryview(RECORDS)
    )
    response = our_fetch.FetchResponse(
        topics=(our_fetch.FetchTopicResponse(topic_id=b"", name="t", partitions=(part,)),), throttle_time_ms=5
    )
    result = answered(made, response)
    assert result.throttle_time_ms == 5
    name, partitions = result.topics[0]
    assert name == "t" and partitions[0][:4] == (4, 0, 12, 12) and partitions[0][-1] == RECORDS


@pytest.mark.parametrize("version", range(6))
def test_metadata(version: int) -> None:
    kind = getattr(metadata, f"MetadataRequest_v{version}")
    made = kind(["t"], True) if version >= 4 else kind(["t"])
    assert asked(made).request == cluster.MetadataRequest(all_topics=False, topics=(cluster.TopicQuery(name="t"),))
    everything = kind([] if version == 0 else None, *([True] if version >= 4 else []))
    assert asked(everything).request.all_topics
    partition = cluster.PartitionMetadata(index=2, leader_id=1, leader_epoch=3, replicas=(1, 2), isr=(1,))
    topic = cluster.TopicMetadata(name="t", topic_id=b"i" * 16, partitions=(partition,))
    broker = cluster.BrokerMetadata(node_id=1, host="h", port=9092, rack="r")
    response = cluster.MetadataResponse(brokers=(broker,), cluster_id="c", controller_id=1, topics=(topic,))
    result = answered(made, response)
    assert result.brokers[0][:3] == (1, "h", 9092)
    assert result.topics[0][0:2] == (0, "t") and result.topics[0][-1][0][:5] == (0, 2, 1, [1, 2], [1])


@pytest.mark.parametrize("version", [2, 3])
def test_create_topics(version: int) -> None:
    kind = getattr(admin, f"CreateTopicsRequest_v{version}")
    topics = [("t", -1, -1, [(0, [1, 2])], [("retention.ms", "5")])]
    made = kind(create_topic_requests=topics, timeout=9, validate_only=True)
    request = asked(made).request
    assert (request.timeout_ms, request.validate_only) == (9, True)
    assert request.topics[0].assignments == (cluster.ReplicaAssignment(partition=0, broker_ids=(1, 2)),)
    assert [(entry.name, entry.value) for entry in request.topics[0].configs] == [("retention.ms", "5")]
    refused = cluster.CreateTopicsResponse(error_code=41, error_message="no controller")
    result = answered(made, refused)
    assert result.topic_errors == [("t", 41, "no controller")]


@pytest.mark.parametrize("version", [1, 2])
def test_delete_topics(version: int) -> None:
    made = getattr(admin, f"DeleteTopicsRequest_v{version}")(topics=["a", "b"], timeout=9)
    assert [query.name for query in asked(made).request.topics] == ["a", "b"]
    assert answered(made, cluster.DeleteTopicsResponse(error_code=41)).topic_error_codes == [("a", 41), ("b", 41)]
