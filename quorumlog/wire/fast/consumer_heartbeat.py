"""Fast ConsumerGroupHeartbeat, versions 0 and 1: a few hundred topics and partitions at most, since the fast path
takes one slice."""

from __future__ import annotations

import struct
from functools import lru_cache

from quorumlog.ids import ZERO_UUID
from quorumlog.messages.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MemberTopicPartitions,
    SubscribedTopicNames,
    TopicIdPartitions,
)
from quorumlog.wire.convert.consumer_groups import FIRST_WITH_MEMBERS_OWN_ID, told_as
from quorumlog.wire.fast.form import (
    UUID_BYTES,
    FastPath,
    Unusual,
    bounded,
    count,
    known_id,
    no_tags,
    nullable_text,
    text,
    write_nullable_text,
    write_text,
)
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

OLDEST = 0
FIRST_WITH_REGEX = FIRST_WITH_MEMBERS_OWN_ID
_NUMBER = struct.Struct(">i")
_INDEX_BYTES = _NUMBER.size
_ANSWER = struct.Struct(">ih")  # throttle time, error code
_MEMBER = struct.Struct(">ii")  # epoch, interval of heartbeats
_IS_THERE, _IS_NULL = 1, 0xFF  # what a struct begins with


def read_request(data: memoryview, position: int, version: int) -> ConsumerGroupHeartbeatRequest:
    group_id, position = text(data, position)
    member_id, position = text(data, position)
    (member_epoch,) = _NUMBER.unpack_from(data, position)
    instance_id, position = nullable_text(data, position + _NUMBER.size)
    rack_id, position = nullable_text(data, position)
    (rebalance_timeout_ms,) = _NUMBER.unpack_from(data, position)
    names, position = _read_names(data, position + _NUMBER.size)
    regex = None
    if version >= FIRST_WITH_REGEX:
        regex, position = nullable_text(data, position)
    assignor, position = nullable_text(data, position)
    owned = None
    if data[position]:
        owned, position = _read_owned(data, position)
    else:
        position += 1
    no_tags(data, position)
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=member_epoch,
        group_instance_id=instance_id,
        rack_id=rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=owned,
        chooses_member_id=version >= FIRST_WITH_MEMBERS_OWN_ID,
    )


def _read_names(data: memoryview, position: int) -> tuple[SubscribedTopicNames | None, int]:
    if not data[position]:
        return None, position + 1
    elements, position = count(data, position)
    names = []
    for _ in range(bounded(elements)):
        name, position = text(data, position)
        names.append(name)
    return SubscribedTopicNames(names=tuple(names)), position


def _read_owned(data: memoryview, position: int) -> tuple[MemberTopicPartitions, int]:
    topics, position = count(data, position)
    elements, found = topics, []
    for _ in range(bounded(topics)):
        topic_id = bytes(data[position : position + UUID_BYTES])
        in_topic, position = count(data, position + UUID_BYTES)
        elements = bounded(elements + in_topic)
        partitions = _indexes(in_topic).unpack_from(data, position)
        found.append(TopicIdPartitions(topic_id=known_id(topic_id), partitions=partitions))
        position = no_tags(data, position + in_topic * _INDEX_BYTES)
    return MemberTopicPartitions(topic_partitions=tuple(found)), position


@lru_cache(maxsize=64)
def _indexes(number: int) -> struct.Struct:
    """Of so many partitions."""
    return struct.Struct(f">{number}i")


def write_request(writer: FrameWriter, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    tail, names = writer.tail, request.subscribed_topic_names
    write_text(tail, request.group_id)
    write_text(tail, request.member_id)
    tail += _NUMBER.pack(request.member_epoch)
    write_nullable_text(tail, request.group_instance_id)
    write_nullable_text(tail, request.rack_id)
    tail += _NUMBER.pack(request.rebalance_timeout_ms)
    if names is None:
        tail.append(0)
    else:
        write_uvarint(tail, bounded(len(names.names)) + 1)
        for name in names.names:
            write_text(tail, name)
    if version >= FIRST_WITH_REGEX:
        write_nullable_text(tail, request.subscribed_topic_regex)
    write_nullable_text(tail, request.server_assignor)
    if request.topic_partitions is None:
        tail.append(0)
    else:
        _write_owned(tail, request.topic_partitions)
    tail.append(0)


def _write_owned(out: bytearray, owned: MemberTopicPartitions) -> None:
    elements = bounded(len(owned.topic_partitions))
    write_uvarint(out, elements + 1)
    for topic in owned.topic_partitions:
        in_topic = len(topic.partitions)
        elements = bounded(elements + in_topic)
        out += topic.topic_id or ZERO_UUID
        write_uvarint(out, in_topic + 1)
        out += _indexes(in_topic).pack(*topic.partitions)
        out.append(0)


def read_response(
    data: memoryview, position: int, _request: ConsumerGroupHeartbeatRequest, _version: int
) -> ConsumerGroupHeartbeatResponse:
    throttle_time_ms, error_code = _ANSWER.unpack_from(data, position)
    error_message, position = nullable_text(data, position + _ANSWER.size)
    member_id, position = nullable_text(data, position)
    member_epoch, heartbeat_interval_ms = _MEMBER.unpack_from(data, position)
    position += _MEMBER.size
    assignment = None
    if data[position] == _IS_THERE:
        assignment, position = _read_owned(data, position + 1)
        position = no_tags(data, position)
    elif data[position] == _IS_NULL:
        position += 1
    else:
        raise Unusual
    if no_tags(data, position) != len(data):
        raise Unusual
    return ConsumerGroupHeartbeatResponse(
        error_code=error_code,
        error_message=error_message or "",
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms,
        assignment=assignment,
        throttle_time_ms=throttle_time_ms,
    )


def write_response(writer: FrameWriter, response: ConsumerGroupHeartbeatResponse, _version: int) -> None:
    tail = writer.tail
    tail += _ANSWER.pack(response.throttle_time_ms, told_as(response.error_code))
    write_nullable_text(tail, response.error_message or None)
    write_nullable_text(tail, response.member_id)
    tail += _MEMBER.pack(response.member_epoch, response.heartbeat_interval_ms)
    if response.assignment is None:
        tail.append(_IS_NULL)
    else:
        tail.append(_IS_THERE)
        _write_owned(tail, response.assignment)
        tail.append(0)
    tail.append(0)


CONSUMER_HEARTBEAT = FastPath(OLDEST, read_request, write_request, read_response, write_response)
