"""Fast Produce, versions 9 to 13: a request without transaction; a response without refused batch and other leader."""

from __future__ import annotations

import struct

from quorumlog.messages.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from quorumlog.wire.convert.produce import FIRST_WITH_TOPIC_IDS
from quorumlog.wire.fast.form import FastPath, Unusual, count, no_tags, topic_head, uvarint, write_topic_head
from quorumlog.wire.format.cursor import MAX_ELEMENTS
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

OLDEST = 9
_REQUEST = struct.Struct(">Bhi")  # no transactional id, acks, timeout
_INDEX = struct.Struct(">iB")  # index, and the first byte of the records' length
_INDEX_ALONE = struct.Struct(">i")
_THROTTLE = struct.Struct(">iB")  # throttle time, and tags
_ANSWER = struct.Struct(">ihqqqBBB")  # a partition of a response: record errors (1: none), error message, tags


def read_request(data: memoryview, position: int, version: int) -> ProduceRequest:
    transactional, acks, timeout_ms = _REQUEST.unpack_from(data, position)
    if transactional:
        raise Unusual
    topic_count, position = count(data, position + _REQUEST.size)
    elements, by_id = topic_count, version >= FIRST_WITH_TOPIC_IDS
    topics = []
    for _ in range(topic_count):
        name, topic_id, in_topic, position = topic_head(data, position, by_id)
        elements += in_topic
        if elements > MAX_ELEMENTS:
            raise Unusual
        partitions, position = _read_partitions(data, position, in_topic)
        topics.append(ProduceTopic(name=name, topic_id=topic_id, partitions=partitions))
        position = no_tags(data, position)
    no_tags(data, position)
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topics=tuple(topics), transactional_id=None)


def _read_partitions(data: memoryview, position: int, partition_count: int) -> tuple[tuple[ProducePartition, ...], int]:
    partitions = []
    for _ in range(partition_count):
        index, size = _INDEX.unpack_from(data, position)
        position += 5
        if size > 0x7F:
            size, position = uvarint(data, position - 1)
        if size > 1:
            end = position + size - 1
            partitions.append(ProducePartition(index=index, records=data[position:end]))
            position = end
        else:
            partitions.append(ProducePartition(index=index, records=b""))
        position = no_tags(data, position)
    return tuple(partitions), position


def write_request(writer: FrameWriter, request: ProduceRequest, version: int) -> None:
    if request.transactional_id is not None:
        raise Unusual
    tail = writer.tail
    tail += _REQUEST.pack(0, request.acks, request.timeout_ms)
    write_uvarint(tail, len(request.topics) + 1)
    for topic in request.topics:
        write_topic_head(writer.tail, topic, by_id=version >= FIRST_WITH_TOPIC_IDS)
        for partition in topic.partitions:
            tail = writer.tail
            tail += _INDEX_ALONE.pack(partition.index)
            write_uvarint(tail, len(partition.records) + 1)
            writer.attach(partition.records)
            writer.tail.append(0)
        writer.tail.append(0)
    writer.tail.append(0)


def read_response(data: memoryview, position: int, request: ProduceRequest, version: int) -> ProduceResponse:
    """From version 13 on a response has no topic names: they are taken from the request."""
    topic_count, position = count(data, position)
    elements, by_id = topic_count, version >= FIRST_WITH_TOPIC_IDS
    names = {topic.topic_id: topic.name for topic in request.topics} if by_id else {}
    topics = []
    for _ in range(topic_count):
        name, topic_id, in_topic, position = topic_head(data, position, by_id)
        name = names.get(topic_id, "") if by_id else name
        elements += in_topic
        if elements > MAX_ELEMENTS:
            raise Unusual
        end = position + in_topic * _ANSWER.size
        partitions = [_partition(*fields) for fields in _ANSWER.iter_unpack(data[position:end])]
        topics.append(ProduceTopicResponse(name=name, topic_id=topic_id, partitions=tuple(partitions)))
        position = no_tags(data, end)
    throttle_time_ms, tags = _THROTTLE.unpack_from(data, position)
    if tags or position + _THROTTLE.size != len(data):
        raise Unusual
    return ProduceResponse(topics=tuple(topics), throttle_time_ms=throttle_time_ms)


def _partition(
    index: int, code: int, base: int, time_ms: int, start: int, errors: int, error_text: int, tags: int
) -> ProducePartitionResponse:
    if errors != 1 or error_text or tags:
        raise Unusual
    return ProducePartitionResponse(
        index=index, error_code=code, base_offset=base, log_append_time_ms=time_ms, log_start_offset=start
    )


def write_response(writer: FrameWriter, response: ProduceResponse, version: int) -> None:
    if response.error_code or response.node_endpoints:
        raise Unusual
    tail = writer.tail
    write_uvarint(tail, len(response.topics) + 1)
    for topic in response.topics:
        write_topic_head(tail, topic, by_id=version >= FIRST_WITH_TOPIC_IDS)
        for partition in topic.partitions:
            if partition.error_code:
                raise Unusual
            offset, time_ms, start = partition.base_offset, partition.log_append_time_ms, partition.log_start_offset
            tail += _ANSWER.pack(partition.index, 0, offset, time_ms, start, 1, 0, 0)
        tail.append(0)
    tail += _THROTTLE.pack(response.throttle_time_ms, 0)


PRODUCE = FastPath(OLDEST, read_request, write_request, read_response, write_response)
