"""Fast JoinGroup (versions 6 to 9), SyncGroup (4 and 5) and Heartbeat (4): of a few hundred members at most, since the
fast path takes one slice.

All members of a group that rebalances call within moments; only the messages of its leader hold the others.
"""

from __future__ import annotations

import struct

from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupHeartbeatResponse,
    GroupProtocol,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.wire.convert.groups import (
    FIRST_WITH_MEMBER_ID_REQUIRED,
    FIRST_WITH_PROTOCOL_IN_SYNC,
    FIRST_WITH_SKIP_ASSIGNMENT,
)
from quorumlog.wire.fast.form import (
    FastPath,
    Unusual,
    blob,
    bounded,
    count,
    no_tags,
    nullable_text,
    text,
    write_blob,
    write_nullable_text,
    write_text,
)
from quorumlog.wire.format.frame_writer import FrameWriter, write_uvarint

OLDEST_JOIN, OLDEST_SYNC, OLDEST_HEARTBEAT = 6, 4, 4
FIRST_WITH_PROTOCOL_TYPE, FIRST_WITH_REASON = 7, 8  # of JoinGroup
_TIMEOUTS = struct.Struct(">ii")  # of a session, of a rebalance
_GENERATION = struct.Struct(">i")
_JOINED = struct.Struct(">ihi")  # throttle time, error code, generation
_ANSWER = struct.Struct(">ih")  # throttle time, error code
assert OLDEST_JOIN >= FIRST_WITH_MEMBER_ID_REQUIRED


# --- JoinGroup ---


def read_join_request(data: memoryview, position: int, version: int) -> JoinGroupRequest:
    group_id, position = text(data, position)
    session_timeout_ms, rebalance_timeout_ms = _TIMEOUTS.unpack_from(data, position)
    member_id, position = text(data, position + _TIMEOUTS.size)
    instance_id, position = nullable_text(data, position)
    protocol_type, position = text(data, position)
    elements, position = count(data, position)
    protocols = []
    for _ in range(bounded(elements)):
        name, position = text(data, position)
        metadata, position = blob(data, position)
        protocols.append(GroupProtocol(name=name, metadata=metadata))
        position = no_tags(data, position)
    if version >= FIRST_WITH_REASON:
        _, position = nullable_text(data, position)
    no_tags(data, position)
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=tuple(protocols),
        takes_skip_assignment=version >= FIRST_WITH_SKIP_ASSIGNMENT,
    )


def write_join_request(writer: FrameWriter, request: JoinGroupRequest, version: int) -> None:
    tail = writer.tail
    write_text(tail, request.group_id)
    tail += _TIMEOUTS.pack(request.session_timeout_ms, request.rebalance_timeout_ms)
    write_text(tail, request.member_id)
    write_nullable_text(tail, request.group_instance_id)
    write_text(tail, request.protocol_type)
    write_uvarint(tail, bounded(len(request.protocols)) + 1)
    for one in request.protocols:
        write_text(writer.tail, one.name)
        write_blob(writer, one.metadata)
        writer.tail.append(0)
    if version >= FIRST_WITH_REASON:
        writer.tail.append(0)
    writer.tail.append(0)


def read_join_response(data: memoryview, position: int, _request: JoinGroupRequest, version: int) -> JoinGroupResponse:
    throttle_time_ms, error_code, generation_id = _JOINED.unpack_from(data, position)
    position += _JOINED.size
    protocol_type, skips = None, False
    if version >= FIRST_WITH_PROTOCOL_TYPE:
        protocol_type, position = nullable_text(data, position)
        protocol_name, position = nullable_text(data, position)
    else:
        protocol_name, position = text(data, position)
    leader, position = text(data, position)
    if version >= FIRST_WITH_SKIP_ASSIGNMENT:
        skips, position = bool(data[position]), position + 1
    member_id, position = text(data, position)
    elements, position = count(data, position)
    members = []
    for _ in range(bounded(elements)):
        name, position = text(data, position)
        instance_id, position = nullable_text(data, position)
        metadata, position = blob(data, position)
        members.append(JoinedMember(member_id=name, group_instance_id=instance_id, metadata=metadata))
        position = no_tags(data, position)
    _must_end(data, position)
    return JoinGroupResponse(
        error_code=error_code,
        generation_id=generation_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        leader=leader,
        skip_assignment=skips,
        member_id=member_id,
        members=tuple(members),
        throttle_time_ms=throttle_time_ms,
    )


def write_join_response(writer: FrameWriter, response: JoinGroupResponse, version: int) -> None:
    tail = writer.tail
    tail += _JOINED.pack(response.throttle_time_ms, response.error_code, response.generation_id)
    if version >= FIRST_WITH_PROTOCOL_TYPE:
        write_nullable_text(tail, response.protocol_type)
        write_nullable_text(tail, response.protocol_name)
    else:
        write_text(tail, response.protocol_name or "")
    write_text(tail, response.leader)
    if version >= FIRST_WITH_SKIP_ASSIGNMENT:
        tail.append(response.skip_assignment)
    write_text(tail, response.member_id)
    write_uvarint(tail, bounded(len(response.members)) + 1)
    for one in response.members:
        write_text(writer.tail, one.member_id)
        write_nullable_text(writer.tail, one.group_instance_id)
        write_blob(writer, one.metadata)
        writer.tail.append(0)
    writer.tail.append(0)


JOIN_GROUP = FastPath(OLDEST_JOIN, read_join_request, write_join_request, read_join_response, write_join_response)


# --- SyncGroup ---


def read_sync_request(data: memoryview, position: int, version: int) -> SyncGroupRequest:
    """A protocol that is null becomes the empty one: see `convert.groups`."""
    group_id, generation_id, member_id, instance_id, position = _read_member(data, position)
    protocol_type = protocol_name = None
    if version >= FIRST_WITH_PROTOCOL_IN_SYNC:
        protocol_type, position = nullable_text(data, position)
        protocol_name, position = nullable_text(data, position)
        protocol_type, protocol_name = protocol_type or "", protocol_name or ""
    elements, position = count(data, position)
    assignments = []
    for _ in range(bounded(elements)):
        name, position = text(data, position)
        assignment, position = blob(data, position)
        assignments.append(MemberAssignment(member_id=name, assignment=assignment))
        position = no_tags(data, position)
    no_tags(data, position)
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=tuple(assignments),
    )


def write_sync_request(writer: FrameWriter, request: SyncGroupRequest, version: int) -> None:
    tail = writer.tail
    _write_member(tail, request)
    if version >= FIRST_WITH_PROTOCOL_IN_SYNC:
        write_nullable_text(tail, request.protocol_type)
        write_nullable_text(tail, request.protocol_name)
    write_uvarint(tail, bounded(len(request.assignments)) + 1)
    for one in request.assignments:
        write_text(writer.tail, one.member_id)
        write_blob(writer, one.assignment)
        writer.tail.append(0)
    writer.tail.append(0)


def read_sync_response(data: memoryview, position: int, _request: SyncGroupRequest, version: int) -> SyncGroupResponse:
    throttle_time_ms, error_code = _ANSWER.unpack_from(data, position)
    position += _ANSWER.size
    protocol_type = protocol_name = None
    if version >= FIRST_WITH_PROTOCOL_IN_SYNC:
        protocol_type, position = nullable_text(data, position)
        protocol_name, position = nullable_text(data, position)
    assignment, position = blob(data, position)
    _must_end(data, position)
    return SyncGroupResponse(
        error_code=error_code,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignment=assignment,
        throttle_time_ms=throttle_time_ms,
    )


def write_sync_response(writer: FrameWriter, response: SyncGroupResponse, version: int) -> None:
    tail = writer.tail
    tail += _ANSWER.pack(response.throttle_time_ms, response.error_code)
    if version >= FIRST_WITH_PROTOCOL_IN_SYNC:
        write_nullable_text(tail, response.protocol_type)
        write_nullable_text(tail, response.protocol_name)
    write_blob(writer, response.assignment)
    writer.tail.append(0)


SYNC_GROUP = FastPath(OLDEST_SYNC, read_sync_request, write_sync_request, read_sync_response, write_sync_response)


# --- Heartbeat ---


def read_heartbeat_request(data: memoryview, position: int, _version: int) -> GroupHeartbeatRequest:
    group_id, generation_id, member_id, instance_id, position = _read_member(data, position)
    no_tags(data, position)
    return GroupHeartbeatRequest(
        group_id=group_id, generation_id=generation_id, member_id=member_id, group_instance_id=instance_id
    )


def write_heartbeat_request(writer: FrameWriter, request: GroupHeartbeatRequest, _version: int) -> None:
    _write_member(writer.tail, request)
    writer.tail.append(0)


def read_heartbeat_response(
    data: memoryview, position: int, _request: GroupHeartbeatRequest, _version: int
) -> GroupHeartbeatResponse:
    throttle_time_ms, error_code = _ANSWER.unpack_from(data, position)
    _must_end(data, position + _ANSWER.size)
    return GroupHeartbeatResponse(error_code=error_code, throttle_time_ms=throttle_time_ms)


def write_heartbeat_response(writer: FrameWriter, response: GroupHeartbeatResponse, _version: int) -> None:
    writer.tail += _ANSWER.pack(response.throttle_time_ms, response.error_code)
    writer.tail.append(0)


HEARTBEAT = FastPath(
    OLDEST_HEARTBEAT,
    read_heartbeat_request,
    write_heartbeat_request,
    read_heartbeat_response,
    write_heartbeat_response,
)


# --- what they have in common ---


def _read_member(data: memoryview, position: int) -> tuple[str, int, str, str | None, int]:
    """Group, generation, member and instance, and the position after them."""
    group_id, position = text(data, position)
    (generation_id,) = _GENERATION.unpack_from(data, position)
    member_id, position = text(data, position + _GENERATION.size)
    instance_id, position = nullable_text(data, position)
    return group_id, generation_id, member_id, instance_id, position


def _write_member(out: bytearray, request: SyncGroupRequest | GroupHeartbeatRequest) -> None:
    write_text(out, request.group_id)
    out += _GENERATION.pack(request.generation_id)
    write_text(out, request.member_id)
    write_nullable_text(out, request.group_instance_id)


def _must_end(data: memoryview, position: int) -> None:
    """Behind the tags of a response nothing follows."""
    if no_tags(data, position) != len(data):
        raise Unusual
