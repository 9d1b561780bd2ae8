"""Requests of a client about one topic and one of its partitions, for scenarios with whole nodes.

Each API has one builder here; tables in the tests choose the arguments. timeout_ms: how long the node may take.
At the end: what is wrong in an answer.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from quorumlog.errors import ErrorCode
from quorumlog.messages.admin import (
    AlterableConfig,
    AlterConfigsResource,
    CreatePartitionsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    IncrementalAlterConfigsRequest,
    PartitionsOfTopic,
)
from quorumlog.messages.buffer import Buffer
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
    ReplicaState,
)
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic

TOPIC_RESOURCE = 2
LATEST = -1
TIMEOUT_MS = 10_000


def produce(
    topic: str,
    records: Buffer,
    *,
    topic_id: bytes = b"",
    index: int = 0,
    acks: int = -1,
    timeout_ms: int = TIMEOUT_MS,
) -> ProduceRequest:
    of = ProduceTopic(name=topic, topic_id=topic_id, partitions=(ProducePartition(index=index, records=records),))
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topics=(of,))


def fetch(
    topic: str,
    topic_id: bytes,
    *,
    index: int = 0,
    offset: int = 0,
    epoch: int = -1,
    max_bytes: int = 1 << 20,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
    replica: ReplicaState | None = None,
) -> FetchRequest:
    wanted = FetchPartition(index=index, fetch_offset=offset, max_bytes=max_bytes, current_leader_epoch=epoch)
    of = FetchTopic(name=topic, topic_id=topic_id, partitions=(wanted,))
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=(of,), replica=replica
    )


def offsets(topic: str, timestamp_ms: int = LATEST, *, index: int = 0, epoch: int = -1) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(index=index, timestamp_ms=timestamp_ms, current_leader_epoch=epoch)
    return ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))


def epoch_end(topic: str, *, index: int = 0, epoch: int = -1) -> OffsetForLeaderEpochRequest:
    """Asks where epoch 0 ends. epoch: the sender's current leader epoch."""
    asked = EpochPartition(index=index, leader_epoch=0, current_leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(topics=(EpochTopic(name=topic, partitions=(asked,)),))


def delete_records(topic: str, offset: int, *, index: int = 0, timeout_ms: int = TIMEOUT_MS) -> DeleteRecordsRequest:
    asked = DeleteRecordsPartition(index=index, offset=offset)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(asked,)),), timeout_ms=timeout_ms)


def metadata(topic: str, topic_id: bytes = b"", *, may_create: bool = False) -> MetadataRequest:
    """By id if one is given, otherwise by name."""
    query = TopicQuery(topic_id=topic_id) if topic_id else TopicQuery(name=topic)
    return MetadataRequest(all_topics=False, topics=(query,), allow_auto_topic_creation=may_create)


def create(
    topic: str, *, partitions: int = 1, timeout_ms: int = TIMEOUT_MS, validate_only: bool = False
) -> CreateTopicsRequest:
    made = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=(made,), timeout_ms=timeout_ms, validate_only=validate_only)


def delete(topic: str, *, timeout_ms: int = TIMEOUT_MS) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(TopicQuery(name=topic),), timeout_ms=timeout_ms)


def grow(topic: str, count: int, *, timeout_ms: int = TIMEOUT_MS) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=(PartitionsOfTopic(name=topic, count=count),), timeout_ms=timeout_ms)


def alter(topic: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, value=value)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(resource,))


def configs(topic: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(resources=(ConfigResource(resource_type=TOPIC_RESOURCE, resource_name=topic),))


def errors_in(message: Any) -> list[ErrorCode]:
    """Every error code other than NONE in a response, at any depth."""
    if isinstance(message, tuple):
        return [code for one in message for code in errors_in(one)]
    if not dataclasses.is_dataclass(message):
        return []
    code = getattr(message, "error_code", 0)
    own = [ErrorCode(code)] if code else []
    return own + [code for field in dataclasses.fields(message) for code in errors_in(getattr(message, field.name))]
