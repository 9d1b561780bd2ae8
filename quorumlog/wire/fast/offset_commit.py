"""Fast OffsetCommit, versions 8 to 10: a few hundred partitions at most, since the fast path takes one slice.

A consumer commits all of its partitions every few seconds, most often without metadata: then the partitions of a
request are elements of one size.
"""

from __future__ import annotations

import struct

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)
from quorumlog.wire.convert.group_offsets import (
    FIRST_WITH_MEMBER_EPOCH,
    FIRST_WITH_TOPIC_IDS,
    FIRST_WITH_UNKNOWN_GROUPS,
)
from quorumlog.wire.fast.form import (
    FastPath,
    Unusual,
    bounded,
    count,
    known_id,
    no_tags,
    nullable_text,
    text,
    topic_head,
    write_nullable_text,
    write_text,
    write_topic_head,
)
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

OLDEST = 8
_GENERATION = struct.Struct(">i")
_HEAD = struct.Struct(">iqi")  # of a partition: index, offset, leader epoch
_WITHOUT_METADATA = struct.Struct(">iqiBB")  # that, the length of an empty text plus one, and no tags
_EMPTY = 1
_ANSWER = struct.Struct(">ihB")  # a partition of a response: index, error code, tags
_THROTTLE = struct.Struct(">i")


def read_request(data: memoryview, position: int, version: int) -> OffsetCommitRequest:
    group_id, position = text(data, position)
    (generation_id,) = _GENERATION.unpack_from(data, position)
    member_id, position = text(data, position + _GENERATION.size)
    instance_id, position = nullable_text(data, position)
    topic_count, position = count(data, position)
    elements, by_id = topic_count, version >= FIRST_WITH_TOPIC_IDS
    topics = []
    for _ in range(topic_count):
        name, topic_id, in_topic, position = topic_head(data, position, by_id)
        elements = bounded(elements + in_topic)
        partitions, position = _read_partitions(data, position, in_topic)
        topics.append(OffsetCommitTopic(name=name, topic_id=known_id(topic_id), partitions=partitions))
        position = no_tags(data, position)
    no_tags(data, position)
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        takes_member_epoch=version >= FIRST_WITH_MEMBER_EPOCH,
        topics=tuple(topics),
    )


def _read_partitions(data: memoryview, position: int, partitions: int) -> tuple[tuple[OffsetCommitPartition, ...], int]:
    end = position + partitions * _WITHOUT_METADATA.size
    found = []
    for index, offset, epoch, length, tags in _WITHOUT_METADATA.iter_unpack(data[position:end]):
        if length != _EMPTY or tags:
            return _read_each(data, position, partitions)
        found.append(_partition(index, offset, epoch, ""))
    return tuple(found), end


def _read_each(data: memoryview, position: int, partitions: int) -> tuple[tuple[OffsetCommitPartition, ...], int]:
    found = []
    for _ in range(partitions):
        index, offset, epoch = _HEAD.unpack_from(data, position)
        metadata, position = nullable_text(data, position + _HEAD.size)
        found.append(_partition(index, offset, epoch, metadata))
        position = no_tags(data, position)
    return tuple(found), position


def _partition(index: int, offset: int, epoch: int, metadata: str | None) -> OffsetCommitPartition:
    return OffsetCommitPartition(
        index=index, committed_offset=offset, committed_leader_epoch=epoch, committed_metadata=metadata
    )


def write_request(writer: FrameWriter, request: OffsetCommitRequest, version: int) -> None:
    tail = writer.tail
    write_text(tail, request.group_id)
    tail += _GENERATION.pack(request.generation_id)
    write_text(tail, request.member_id)
    write_nullable_text(tail, request.group_instance_id)
    write_uvarint(tail, len(request.topics) + 1)
    elements, by_id = len(request.topics), version >= FIRST_WITH_TOPIC_IDS
    for topic in request.topics:
        elements = bounded(elements + len(topic.partitions))
        write_topic_head(tail, topic, by_id)
        for one in topic.partitions:
            tail += _HEAD.pack(one.index, one.committed_offset, one.committed_leader_epoch)
            write_nullable_text(tail, one.committed_metadata)
            tail.append(0)
        tail.append(0)
    tail.append(0)


def read_response(data: memoryview, position: int, _request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
    (throttle_time_ms,) = _THROTTLE.unpack_from(data, position)
    topic_count, position = count(data, position + _THROTTLE.size)
    elements, by_id = topic_count, version >= FIRST_WITH_TOPIC_IDS
    topics = []
    for _ in range(topic_count):
        name, topic_id, in_topic, position = topic_head(data, position, by_id)
        elements = bounded(elements + in_topic)
        end = position + in_topic * _ANSWER.size
        partitions = tuple([_result(*fields) for fields in _ANSWER.iter_unpack(data[position:end])])
        topics.append(OffsetCommitTopicResult(name=name, topic_id=known_id(topic_id), partitions=partitions))
        position = no_tags(data, end)
    if no_tags(data, position) != len(data):
        raise Unusual
    return OffsetCommitResponse(topics=tuple(topics), throttle_time_ms=throttle_time_ms)


def _result(index: int, error_code: int, tags: int) -> OffsetCommitPartitionResult:
    if tags:
        raise Unusual
    return OffsetCommitPartitionResult(index=index, error_code=error_code)


def write_response(writer: FrameWriter, response: OffsetCommitResponse, version: int) -> None:
    if response.error_code:
        raise Unusual
    tail = writer.tail
    tail += _THROTTLE.pack(response.throttle_time_ms)
    write_uvarint(tail, len(response.topics) + 1)
    elements, by_id = len(response.topics), version >= FIRST_WITH_TOPIC_IDS
    for topic in response.topics:
        elements = bounded(elements + len(topic.partitions))
        write_topic_head(tail, topic, by_id)
        for one in topic.partitions:
            if one.error_code == ErrorCode.GROUP_ID_NOT_FOUND and version < FIRST_WITH_UNKNOWN_GROUPS:
                raise Unusual
            tail += _ANSWER.pack(one.index, one.error_code, 0)
        tail.append(0)
    tail.append(0)


OFFSET_COMMIT = FastPath(OLDEST, read_request, write_request, read_response, write_response)
