"""What a fuzz of a whole node damages: requests that mean something there, of every API and version.

Reads of what is there; changes of it that are refused however they are damaged, for they name what is not there, or
ask again for what is; and changes of a topic on which nothing depends.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    CreatePartitionsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    LogDirsTopic,
    PartitionCursor,
    PartitionsOfTopic,
)
from quorumlog.messages.cluster import (
    ConfigResource,
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    TopicQuery,
)
from quorumlog.messages.fetch import (
    EpochPartition,
    EpochTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
)
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.records.batch import CRC_POSITION, CRC_START
from quorumlog.records.plain import encode_batch
from quorumlog.wire.apis import APIS
from quorumlog.wire.parts import LENGTH_BYTES, Parts
from tests.wire.frames import BATCH, RECORDS, Bodies
from tests.wire.fuzz import SEEDS
from tests.wire.places import Body

TOPIC, SCRATCH, NOT_THERE = "fuzz", "scratch", "nope"
TOPIC_RESOURCE = 2
CRC = slice(CRC_POSITION, CRC_START)
DAMAGED = BATCH[: CRC.start] + bytes(byte ^ 0x5A for byte in BATCH[CRC]) + BATCH[CRC.stop :]  # no chance will mend that
OF_A_PRODUCER = encode_batch(RECORDS, producer_id=7, producer_epoch=0, base_sequence=0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """Of the two topics, 16 bytes each."""

    topic: bytes
    scratch: bytes


def bodies_of(ids: Ids) -> Bodies:
    """Bodies to be damaged, of every API and version: almost empty ones, full ones, and ones that mean something."""
    found = {key: list(bodies) for key, bodies in SEEDS.items()}
    for request in requests(ids):
        for api in (api for api in APIS if api.method.request is type(request)):
            for version in range(api.oldest, api.version_for(request, api.newest) + 1):
                parts, shape = Parts(), api.request_shape(version)
                shape.write(parts, api.write_request(request, version))
                found[api.key, version].append(Body(b"".join(parts.frame())[LENGTH_BYTES:], shape))
    return found


def requests(ids: Ids) -> list[Any]:
    return [*_reads(TOPIC, ids.topic), *_reads(SCRATCH, ids.scratch), *_refused(ids), *_changes(ids)]


def configs_of(name: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(resources=(ConfigResource(resource_type=TOPIC_RESOURCE, resource_name=name),))


def offsets_of(name: str, timestamp_ms: int) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(index=0, timestamp_ms=timestamp_ms)
    return ListOffsetsRequest(topics=(ListOffsetsTopic(name=name, partitions=(asked,)),))


def _reads(name: str, topic_id: bytes) -> list[Any]:
    wanted = FetchPartition(index=0, fetch_offset=0, max_bytes=4096)
    fetch = FetchRequest(
        max_wait_ms=1,
        min_bytes=1,
        max_bytes=4096,
        topics=(FetchTopic(topic_id=topic_id, name=name, partitions=(wanted,)),),
    )
    epochs = EpochTopic(name=name, partitions=(EpochPartition(index=0, leader_epoch=0),))
    return [
        fetch,
        dataclasses.replace(fetch, session_id=0, session_epoch=0),
        offsets_of(name, -1),
        offsets_of(name, 1_700_000_000_000),
        configs_of(name),
        OffsetForLeaderEpochRequest(topics=(epochs,)),
        MetadataRequest(all_topics=False, topics=(TopicQuery(name=name),)),
        DescribeTopicPartitionsRequest(topics=(name,), cursor=PartitionCursor(topic_name=name, partition_index=0)),
        DescribeLogDirsRequest(all_topics=False, topics=(LogDirsTopic(name=name, partitions=(0,)),)),
    ]


def _refused(ids: Ids) -> list[Any]:
    return [
        *_produce(TOPIC, ids.topic, DAMAGED),
        CreateTopicsRequest(topics=(CreatableTopic(name=TOPIC),), timeout_ms=5, validate_only=True),
        DeleteTopicsRequest(topics=(TopicQuery(name=NOT_THERE),), timeout_ms=5),
        CreatePartitionsRequest(topics=(PartitionsOfTopic(name=NOT_THERE, count=2),), timeout_ms=5),
        _alter(NOT_THERE, "retention.ms", "1"),
        _delete(NOT_THERE),
    ]


def _changes(ids: Ids) -> list[Any]:
    return [
        *_produce(SCRATCH, ids.scratch, BATCH),
        *_produce(SCRATCH, ids.scratch, OF_A_PRODUCER),
        _alter(SCRATCH, "max.message.bytes", "1000000"),
        _alter(SCRATCH, "min.insync.replicas", "1"),
        _delete(SCRATCH),
    ]


def _produce(name: str, topic_id: bytes, records: bytes) -> list[ProduceRequest]:
    """By name, and by both."""
    topic = ProduceTopic(name=name, partitions=(ProducePartition(index=0, records=records),))
    by_name = ProduceRequest(acks=-1, timeout_ms=5, topics=(topic,))
    return [by_name, dataclasses.replace(by_name, topics=(dataclasses.replace(topic, topic_id=topic_id),))]


def _alter(name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def _delete(name: str) -> DeleteRecordsRequest:
    topic = DeleteRecordsTopic(name=name, partitions=(DeleteRecordsPartition(index=0, offset=-1),))
    return DeleteRecordsRequest(topics=(topic,), timeout_ms=5)
