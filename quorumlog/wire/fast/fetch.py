"""Fast Fetch, versions 12 to 18: a request without forgotten topics and cluster id; a response without diverging
epoch, other leader and aborted transactions."""

from __future__ import annotations

import struct

from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResponse,
    ReplicaState,
)
from quorumlog.wire.convert.fetch import FIRST_WITH_REPLICA_STATE, FIRST_WITH_TOPIC_IDS, NO_REPLICA
from quorumlog.wire.fast.form import (
    FastPath,
    Unusual,
    count,
    no_tags,
    text,
    topic_head,
    uvarint,
    write_text,
    write_topic_head,
)
from quorumlog.wire.format.cursor import MAX_ELEMENTS
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

OLDEST = 12
_REPLICA_ID = struct.Struct(">i")
_REQUEST = struct.Struct(">iiibii")
_WANTED = struct.Struct(">iiqiqiB")  # a partition of a request, and its tags
_REPLICA = struct.Struct(">BBBiqB")  # one tag, number 1, 13 bytes: replica id, epoch, no tags inside
_REPLICA_HEAD = (1, 1, 13)
_ANSWER = struct.Struct(">ihi")
_PARTITION = struct.Struct(
    ">ihqqqBi"
)  # a partition of a response, up to its records; `B`: no aborted transactions, 0 or 1


def read_request(data: memoryview, position: int, version: int) -> FetchRequest:
    replica_id = NO_REPLICA
    if version < FIRST_WITH_REPLICA_STATE:
        (replica_id,) = _REPLICA_ID.unpack_from(data, position)
        position += _REPLICA_ID.size
    max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = _REQUEST.unpack_from(data, position)
    topics, position = _read_topics(data, position + _REQUEST.size, version)
    forgotten, position = count(data, position)
    if forgotten:
        raise Unusual
    rack, position = text(data, position)
    replica = None if replica_id < 0 else ReplicaState(replica_id=replica_id, broker_epoch=-1)
    if data[position]:
        replica = _read_replica(data, position, version)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=topics,
        replica=replica,
        isolation_level=isolation,
        session_id=session_id,
        session_epoch=session_epoch,
        rack=rack,
    )


def _read_replica(data: memoryview, position: int, version: int) -> ReplicaState | None:
    *head, replica_id, broker_epoch, tags = _REPLICA.unpack_from(data, position)
    if version < FIRST_WITH_REPLICA_STATE or tuple(head) != _REPLICA_HEAD or tags:
        raise Unusual
    return None if replica_id < 0 else ReplicaState(replica_id=replica_id, broker_epoch=broker_epoch)


def _read_topics(data: memoryview, position: int, version: int) -> tuple[tuple[FetchTopic, ...], int]:
    topic_count, position = count(data, position)
    elements, by_id = topic_count, version >= FIRST_WITH_TOPIC_IDS
    topics = []
    for _ in range(topic_count):
        name, topic_id, in_topic, position = topic_head(data, position, by_id)
        elements += in_topic
        if elements > MAX_ELEMENTS:
            raise Unusual
        end = position + in_topic * _WANTED.size
        partitions = [_wanted(*fields) for fields in _WANTED.iter_unpack(data[position:end])]
        topics.append(FetchTopic(topic_id=topic_id, name=name, partitions=tuple(partitions)))
        position = no_tags(data, end)
    return tuple(topics), position


def _wanted(
    index: int, epoch: int, offset: int, fetched_epoch: int, start: int, size: int, tags: int
) -> FetchPartition:
    if tags:
        raise Unusual
    return FetchPartition(
        index=index,
        fetch_offset=offset,
        max_bytes=size,
        current_leader_epoch=epoch,
        last_fetched_epoch=fetched_epoch,
        log_start_offset=start,
    )


def write_request(writer: FrameWriter, request: FetchRequest, version: int) -> None:
    if request.forgotten:
        raise Unusual
    tail, replica = writer.tail, request.replica
    if version < FIRST_WITH_REPLICA_STATE:
        tail += _REPLICA_ID.pack(NO_REPLICA if replica is None else replica.replica_id)
    tail += _REQUEST.pack(
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    )
    write_uvarint(tail, len(request.topics) + 1)
    for topic in request.topics:
        write_topic_head(tail, topic, by_id=version >= FIRST_WITH_TOPIC_IDS)
        for wanted in topic.partitions:
            epoch, fetched_epoch, start = (
                wanted.current_leader_epoch,
                wanted.last_fetched_epoch,
                wanted.log_start_offset,
            )
            tail += _WANTED.pack(wanted.index, epoch, wanted.fetch_offset, fetched_epoch, start, wanted.max_bytes, 0)
        tail.append(0)
    tail.append(1)  # an empty array of forgotten topics
    write_text(tail, request.rack)
    if replica is None or version < FIRST_WITH_REPLICA_STATE:
        tail.append(0)
    else:
        tail += _REPLICA.pack(*_REPLICA_HEAD, replica.replica_id, replica.broker_epoch, 0)


def read_response(data: memoryview, position: int, request: FetchRequest, version: int) -> FetchResponse:
    """From version 13 on a response has no topic names: they are taken from the request."""
    throttle_time_ms, error_code, session_id = _ANSWER.unpack_from(data, position)
    topic_count, position = count(data, position + _ANSWER.size)
    elements, by_id = topic_count, version >= FIRST_WITH_TOPIC_IDS
    names = {topic.topic_id: topic.name for topic in request.topics} if by_id else {}
    topics = []
    for _ in range(topic_count):
        name, topic_id, in_topic, position = topic_head(data, position, by_id)
        name = names.get(topic_id, "") if by_id else name
        elements += in_topic
        if elements > MAX_ELEMENTS:
            raise Unusual
        partitions, position = _read_partitions(data, position, in_topic)
        topics.append(FetchTopicResponse(topic_id=topic_id, name=name, partitions=partitions))
        position = no_tags(data, position)
    if no_tags(data, position) != len(data):
        raise Unusual
    return FetchResponse(
        error_code=error_code, topics=tuple(topics), session_id=session_id, throttle_time_ms=throttle_time_ms
    )


def _read_partitions(
    data: memoryview, position: int, partition_count: int
) -> tuple[tuple[FetchPartitionResponse, ...], int]:
    partitions = []
    for _ in range(partition_count):
        index, code, watermark, stable, start, aborted, preferred = _PARTITION.unpack_from(data, position)
        size, position = uvarint(data, position + _PARTITION.size)
        if aborted > 1:
            raise Unusual
        end = position + max(0, size - 1)
        partitions.append(
            FetchPartitionResponse(
                index=index,
                error_code=code,
                high_watermark=watermark,
                last_stable_offset=stable,
                log_start_offset=start,
                records=data[position:end] if end > position else b"",
                preferred_read_replica=preferred,
            )
        )
        position = no_tags(data, end)
    return tuple(partitions), position


def write_response(writer: FrameWriter, response: FetchResponse, version: int) -> None:
    if response.node_endpoints:
        raise Unusual
    writer.tail += _ANSWER.pack(response.throttle_time_ms, response.error_code, response.session_id)
    write_uvarint(writer.tail, len(response.topics) + 1)
    for topic in response.topics:
        write_topic_head(writer.tail, topic, by_id=version >= FIRST_WITH_TOPIC_IDS)
        for partition in topic.partitions:
            _write_partition(writer, partition)
        writer.tail.append(0)
    writer.tail.append(0)


def _write_partition(writer: FrameWriter, partition: FetchPartitionResponse) -> None:
    if partition.diverging_epoch is not None or partition.current_leader is not None or partition.aborted_transactions:
        raise Unusual
    tail = writer.tail
    tail += _PARTITION.pack(
        partition.index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        0,
        partition.preferred_read_replica,
    )
    write_uvarint(tail, len(partition.records) + 1)
    writer.attach(partition.records)
    writer.tail.append(0)


FETCH = FastPath(OLDEST, read_request, write_request, read_response, write_response)
