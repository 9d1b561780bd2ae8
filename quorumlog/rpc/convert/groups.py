"""Converts between dataclasses and protobuf.

Written by `./dev proto` from proto/quorumlog/v1/groups.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.groups import (
    AssignedTopic,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    GroupHeartbeatRequest,
    GroupHeartbeatResponse,
    GroupProtocol,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    MemberAssignment,
    MemberTopicPartitions,
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopic,
    OffsetDeleteTopicResult,
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
    OffsetFetchTopics,
    SubscribedTopicNames,
    SyncGroupRequest,
    SyncGroupResponse,
    TopicIdPartitions,
)
from quorumlog.rpc.convert.parsing import parse
from quorumlog.rpc.pb import groups_pb2 as pb


def fill_JoinGroupRequest(m: JoinGroupRequest, p: pb.JoinGroupRequest) -> None:
    p.group_id = m.group_id
    p.session_timeout_ms = m.session_timeout_ms
    p.rebalance_timeout_ms = m.rebalance_timeout_ms
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    p.protocol_type = m.protocol_type
    for x_protocols in m.protocols:
        fill_GroupProtocol(x_protocols, p.protocols.add())
    p.takes_member_id = m.takes_member_id
    p.takes_skip_assignment = m.takes_skip_assignment


def read_JoinGroupRequest(p: pb.JoinGroupRequest) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=p.group_id,
        session_timeout_ms=p.session_timeout_ms,
        rebalance_timeout_ms=p.rebalance_timeout_ms,
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        protocol_type=p.protocol_type,
        protocols=tuple([read_GroupProtocol(x) for x in p.protocols]),
        takes_member_id=p.takes_member_id,
        takes_skip_assignment=p.takes_skip_assignment,
    )


def encode_JoinGroupRequest(m: JoinGroupRequest) -> bytes:
    p = pb.JoinGroupRequest()
    fill_JoinGroupRequest(m, p)
    return p.SerializeToString()


def decode_JoinGroupRequest(data: Buffer) -> JoinGroupRequest:
    return read_JoinGroupRequest(parse(pb.JoinGroupRequest, data))


def fill_GroupProtocol(m: GroupProtocol, p: pb.GroupProtocol) -> None:
    p.name = m.name
    p.metadata = m.metadata


def read_GroupProtocol(p: pb.GroupProtocol) -> GroupProtocol:
    return GroupProtocol(
        name=p.name,
        metadata=p.metadata,
    )


def encode_GroupProtocol(m: GroupProtocol) -> bytes:
    p = pb.GroupProtocol()
    fill_GroupProtocol(m, p)
    return p.SerializeToString()


def decode_GroupProtocol(data: Buffer) -> GroupProtocol:
    return read_GroupProtocol(parse(pb.GroupProtocol, data))


def fill_JoinGroupResponse(m: JoinGroupResponse, p: pb.JoinGroupResponse) -> None:
    p.error_code = m.error_code
    p.generation_id = m.generation_id
    if m.protocol_type is not None:
        p.protocol_type = m.protocol_type
    if m.protocol_name is not None:
        p.protocol_name = m.protocol_name
    p.leader = m.leader
    p.skip_assignment = m.skip_assignment
    p.member_id = m.member_id
    for x_members in m.members:
        fill_JoinedMember(x_members, p.members.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_message = m.error_message


def read_JoinGroupResponse(p: pb.JoinGroupResponse) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=p.error_code,
        generation_id=p.generation_id,
        protocol_type=p.protocol_type if p.HasField("protocol_type") else None,
        protocol_name=p.protocol_name if p.HasField("protocol_name") else None,
        leader=p.leader,
        skip_assignment=p.skip_assignment,
        member_id=p.member_id,
        members=tuple([read_JoinedMember(x) for x in p.members]),
        throttle_time_ms=p.throttle_time_ms,
        error_message=p.error_message,
    )


def encode_JoinGroupResponse(m: JoinGroupResponse) -> bytes:
    p = pb.JoinGroupResponse()
    fill_JoinGroupResponse(m, p)
    return p.SerializeToString()


def decode_JoinGroupResponse(data: Buffer) -> JoinGroupResponse:
    return read_JoinGroupResponse(parse(pb.JoinGroupResponse, data))


def fill_JoinedMember(m: JoinedMember, p: pb.JoinedMember) -> None:
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    p.metadata = m.metadata


def read_JoinedMember(p: pb.JoinedMember) -> JoinedMember:
    return JoinedMember(
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        metadata=p.metadata,
    )


def encode_JoinedMember(m: JoinedMember) -> bytes:
    p = pb.JoinedMember()
    fill_JoinedMember(m, p)
    return p.SerializeToString()


def decode_JoinedMember(data: Buffer) -> JoinedMember:
    return read_JoinedMember(parse(pb.JoinedMember, data))


def fill_SyncGroupRequest(m: SyncGroupRequest, p: pb.SyncGroupRequest) -> None:
    p.group_id = m.group_id
    p.generation_id = m.generation_id
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    if m.protocol_type is not None:
        p.protocol_type = m.protocol_type
    if m.protocol_name is not None:
        p.protocol_name = m.protocol_name
    for x_assignments in m.assignments:
        fill_MemberAssignment(x_assignments, p.assignments.add())


def read_SyncGroupRequest(p: pb.SyncGroupRequest) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=p.group_id,
        generation_id=p.generation_id,
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        protocol_type=p.protocol_type if p.HasField("protocol_type") else None,
        protocol_name=p.protocol_name if p.HasField("protocol_name") else None,
        assignments=tuple([read_MemberAssignment(x) for x in p.assignments]),
    )


def encode_SyncGroupRequest(m: SyncGroupRequest) -> bytes:
    p = pb.SyncGroupRequest()
    fill_SyncGroupRequest(m, p)
    return p.SerializeToString()


def decode_SyncGroupRequest(data: Buffer) -> SyncGroupRequest:
    return read_SyncGroupRequest(parse(pb.SyncGroupRequest, data))


def fill_MemberAssignment(m: MemberAssignment, p: pb.MemberAssignment) -> None:
    p.member_id = m.member_id
    p.assignment = m.assignment


def read_MemberAssignment(p: pb.MemberAssignment) -> MemberAssignment:
    return MemberAssignment(
        member_id=p.member_id,
        assignment=p.assignment,
    )


def encode_MemberAssignment(m: MemberAssignment) -> bytes:
    p = pb.MemberAssignment()
    fill_MemberAssignment(m, p)
    return p.SerializeToString()


def decode_MemberAssignment(data: Buffer) -> MemberAssignment:
    return read_MemberAssignment(parse(pb.MemberAssignment, data))


def fill_SyncGroupResponse(m: SyncGroupResponse, p: pb.SyncGroupResponse) -> None:
    p.error_code = m.error_code
    if m.protocol_type is not None:
        p.protocol_type = m.protocol_type
    if m.protocol_name is not None:
        p.protocol_name = m.protocol_name
    p.assignment = m.assignment
    p.throttle_time_ms = m.throttle_time_ms
    p.error_message = m.error_message


def read_SyncGroupResponse(p: pb.SyncGroupResponse) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=p.error_code,
        protocol_type=p.protocol_type if p.HasField("protocol_type") else None,
        protocol_name=p.protocol_name if p.HasField("protocol_name") else None,
        assignment=p.assignment,
        throttle_time_ms=p.throttle_time_ms,
        error_message=p.error_message,
    )


def encode_SyncGroupResponse(m: SyncGroupResponse) -> bytes:
    p = pb.SyncGroupResponse()
    fill_SyncGroupResponse(m, p)
    return p.SerializeToString()


def decode_SyncGroupResponse(data: Buffer) -> SyncGroupResponse:
    return read_SyncGroupResponse(parse(pb.SyncGroupResponse, data))


def fill_GroupHeartbeatRequest(m: GroupHeartbeatRequest, p: pb.GroupHeartbeatRequest) -> None:
    p.group_id = m.group_id
    p.generation_id = m.generation_id
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id


def read_GroupHeartbeatRequest(p: pb.GroupHeartbeatRequest) -> GroupHeartbeatRequest:
    return GroupHeartbeatRequest(
        group_id=p.group_id,
        generation_id=p.generation_id,
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
    )


def encode_GroupHeartbeatRequest(m: GroupHeartbeatRequest) -> bytes:
    p = pb.GroupHeartbeatRequest()
    fill_GroupHeartbeatRequest(m, p)
    return p.SerializeToString()


def decode_GroupHeartbeatRequest(data: Buffer) -> GroupHeartbeatRequest:
    return read_GroupHeartbeatRequest(parse(pb.GroupHeartbeatRequest, data))


def fill_GroupHeartbeatResponse(m: GroupHeartbeatResponse, p: pb.GroupHeartbeatResponse) -> None:
    p.error_code = m.error_code
    p.throttle_time_ms = m.throttle_time_ms
    p.error_message = m.error_message


def read_GroupHeartbeatResponse(p: pb.GroupHeartbeatResponse) -> GroupHeartbeatResponse:
    return GroupHeartbeatResponse(
        error_code=p.error_code,
        throttle_time_ms=p.throttle_time_ms,
        error_message=p.error_message,
    )


def encode_GroupHeartbeatResponse(m: GroupHeartbeatResponse) -> bytes:
    p = pb.GroupHeartbeatResponse()
    fill_GroupHeartbeatResponse(m, p)
    return p.SerializeToString()


def decode_GroupHeartbeatResponse(data: Buffer) -> GroupHeartbeatResponse:
    return read_GroupHeartbeatResponse(parse(pb.GroupHeartbeatResponse, data))


def fill_LeaveGroupRequest(m: LeaveGroupRequest, p: pb.LeaveGroupRequest) -> None:
    p.group_id = m.group_id
    for x_members in m.members:
        fill_LeavingMember(x_members, p.members.add())


def read_LeaveGroupRequest(p: pb.LeaveGroupRequest) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=p.group_id,
        members=tuple([read_LeavingMember(x) for x in p.members]),
    )


def encode_LeaveGroupRequest(m: LeaveGroupRequest) -> bytes:
    p = pb.LeaveGroupRequest()
    fill_LeaveGroupRequest(m, p)
    return p.SerializeToString()


def decode_LeaveGroupRequest(data: Buffer) -> LeaveGroupRequest:
    return read_LeaveGroupRequest(parse(pb.LeaveGroupRequest, data))


def fill_LeavingMember(m: LeavingMember, p: pb.LeavingMember) -> None:
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id


def read_LeavingMember(p: pb.LeavingMember) -> LeavingMember:
    return LeavingMember(
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
    )


def encode_LeavingMember(m: LeavingMember) -> bytes:
    p = pb.LeavingMember()
    fill_LeavingMember(m, p)
    return p.SerializeToString()


def decode_LeavingMember(data: Buffer) -> LeavingMember:
    return read_LeavingMember(parse(pb.LeavingMember, data))


def fill_LeaveGroupResponse(m: LeaveGroupResponse, p: pb.LeaveGroupResponse) -> None:
    p.error_code = m.error_code
    for x_members in m.members:
        fill_LeftMember(x_members, p.members.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_message = m.error_message


def read_LeaveGroupResponse(p: pb.LeaveGroupResponse) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_code=p.error_code,
        members=tuple([read_LeftMember(x) for x in p.members]),
        throttle_time_ms=p.throttle_time_ms,
        error_message=p.error_message,
    )


def encode_LeaveGroupResponse(m: LeaveGroupResponse) -> bytes:
    p = pb.LeaveGroupResponse()
    fill_LeaveGroupResponse(m, p)
    return p.SerializeToString()


def decode_LeaveGroupResponse(data: Buffer) -> LeaveGroupResponse:
    return read_LeaveGroupResponse(parse(pb.LeaveGroupResponse, data))


def fill_LeftMember(m: LeftMember, p: pb.LeftMember) -> None:
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    p.error_code = m.error_code


def read_LeftMember(p: pb.LeftMember) -> LeftMember:
    return LeftMember(
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        error_code=p.error_code,
    )


def encode_LeftMember(m: LeftMember) -> bytes:
    p = pb.LeftMember()
    fill_LeftMember(m, p)
    return p.SerializeToString()


def decode_LeftMember(data: Buffer) -> LeftMember:
    return read_LeftMember(parse(pb.LeftMember, data))


def fill_OffsetCommitRequest(m: OffsetCommitRequest, p: pb.OffsetCommitRequest) -> None:
    p.group_id = m.group_id
    p.generation_id = m.generation_id
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    p.retention_time_ms = m.retention_time_ms
    for x_topics in m.topics:
        fill_OffsetCommitTopic(x_topics, p.topics.add())
    p.takes_member_epoch = m.takes_member_epoch


def read_OffsetCommitRequest(p: pb.OffsetCommitRequest) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=p.group_id,
        generation_id=p.generation_id,
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        retention_time_ms=p.retention_time_ms,
        topics=tuple([read_OffsetCommitTopic(x) for x in p.topics]),
        takes_member_epoch=p.takes_member_epoch,
    )


def encode_OffsetCommitRequest(m: OffsetCommitRequest) -> bytes:
    p = pb.OffsetCommitRequest()
    fill_OffsetCommitRequest(m, p)
    return p.SerializeToString()


def decode_OffsetCommitRequest(data: Buffer) -> OffsetCommitRequest:
    return read_OffsetCommitRequest(parse(pb.OffsetCommitRequest, data))


def fill_OffsetCommitTopic(m: OffsetCommitTopic, p: pb.OffsetCommitTopic) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    for x_partitions in m.partitions:
        fill_OffsetCommitPartition(x_partitions, p.partitions.add())


def read_OffsetCommitTopic(p: pb.OffsetCommitTopic) -> OffsetCommitTopic:
    return OffsetCommitTopic(
        name=p.name,
        topic_id=p.topic_id,
        partitions=tuple([read_OffsetCommitPartition(x) for x in p.partitions]),
    )


def encode_OffsetCommitTopic(m: OffsetCommitTopic) -> bytes:
    p = pb.OffsetCommitTopic()
    fill_OffsetCommitTopic(m, p)
    return p.SerializeToString()


def decode_OffsetCommitTopic(data: Buffer) -> OffsetCommitTopic:
    return read_OffsetCommitTopic(parse(pb.OffsetCommitTopic, data))


def fill_OffsetCommitPartition(m: OffsetCommitPartition, p: pb.OffsetCommitPartition) -> None:
    p.index = m.index
    p.committed_offset = m.committed_offset
    p.committed_leader_epoch = m.committed_leader_epoch
    if m.committed_metadata is not None:
        p.committed_metadata = m.committed_metadata


def read_OffsetCommitPartition(p: pb.OffsetCommitPartition) -> OffsetCommitPartition:
    return OffsetCommitPartition(
        index=p.index,
        committed_offset=p.committed_offset,
        committed_leader_epoch=p.committed_leader_epoch,
        committed_metadata=p.committed_metadata if p.HasField("committed_metadata") else None,
    )


def encode_OffsetCommitPartition(m: OffsetCommitPartition) -> bytes:
    p = pb.OffsetCommitPartition()
    fill_OffsetCommitPartition(m, p)
    return p.SerializeToString()


def decode_OffsetCommitPartition(data: Buffer) -> OffsetCommitPartition:
    return read_OffsetCommitPartition(parse(pb.OffsetCommitPartition, data))


def fill_OffsetCommitResponse(m: OffsetCommitResponse, p: pb.OffsetCommitResponse) -> None:
    for x_topics in m.topics:
        fill_OffsetCommitTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_OffsetCommitResponse(p: pb.OffsetCommitResponse) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple([read_OffsetCommitTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_OffsetCommitResponse(m: OffsetCommitResponse) -> bytes:
    p = pb.OffsetCommitResponse()
    fill_OffsetCommitResponse(m, p)
    return p.SerializeToString()


def decode_OffsetCommitResponse(data: Buffer) -> OffsetCommitResponse:
    return read_OffsetCommitResponse(parse(pb.OffsetCommitResponse, data))


def fill_OffsetCommitTopicResult(m: OffsetCommitTopicResult, p: pb.OffsetCommitTopicResult) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    for x_partitions in m.partitions:
        fill_OffsetCommitPartitionResult(x_partitions, p.partitions.add())


def read_OffsetCommitTopicResult(p: pb.OffsetCommitTopicResult) -> OffsetCommitTopicResult:
    return OffsetCommitTopicResult(
        name=p.name,
        topic_id=p.topic_id,
        partitions=tuple([read_OffsetCommitPartitionResult(x) for x in p.partitions]),
    )


def encode_OffsetCommitTopicResult(m: OffsetCommitTopicResult) -> bytes:
    p = pb.OffsetCommitTopicResult()
    fill_OffsetCommitTopicResult(m, p)
    return p.SerializeToString()


def decode_OffsetCommitTopicResult(data: Buffer) -> OffsetCommitTopicResult:
    return read_OffsetCommitTopicResult(parse(pb.OffsetCommitTopicResult, data))


def fill_OffsetCommitPartitionResult(m: OffsetCommitPartitionResult, p: pb.OffsetCommitPartitionResult) -> None:
    p.index = m.index
    p.error_code = m.error_code


def read_OffsetCommitPartitionResult(p: pb.OffsetCommitPartitionResult) -> OffsetCommitPartitionResult:
    return OffsetCommitPartitionResult(
        index=p.index,
        error_code=p.error_code,
    )


def encode_OffsetCommitPartitionResult(m: OffsetCommitPartitionResult) -> bytes:
    p = pb.OffsetCommitPartitionResult()
    fill_OffsetCommitPartitionResult(m, p)
    return p.SerializeToString()


def decode_OffsetCommitPartitionResult(data: Buffer) -> OffsetCommitPartitionResult:
    return read_OffsetCommitPartitionResult(parse(pb.OffsetCommitPartitionResult, data))


def fill_OffsetFetchRequest(m: OffsetFetchRequest, p: pb.OffsetFetchRequest) -> None:
    for x_groups in m.groups:
        fill_OffsetFetchGroup(x_groups, p.groups.add())
    p.require_stable = m.require_stable


def read_OffsetFetchRequest(p: pb.OffsetFetchRequest) -> OffsetFetchRequest:
    return OffsetFetchRequest(
        groups=tuple([read_OffsetFetchGroup(x) for x in p.groups]),
        require_stable=p.require_stable,
    )


def encode_OffsetFetchRequest(m: OffsetFetchRequest) -> bytes:
    p = pb.OffsetFetchRequest()
    fill_OffsetFetchRequest(m, p)
    return p.SerializeToString()


def decode_OffsetFetchRequest(data: Buffer) -> OffsetFetchRequest:
    return read_OffsetFetchRequest(parse(pb.OffsetFetchRequest, data))


def fill_OffsetFetchGroup(m: OffsetFetchGroup, p: pb.OffsetFetchGroup) -> None:
    p.group_id = m.group_id
    if m.member_id is not None:
        p.member_id = m.member_id
    p.member_epoch = m.member_epoch
    if m.topics is not None:
        p.topics.SetInParent()
        fill_OffsetFetchTopics(m.topics, p.topics)


def read_OffsetFetchGroup(p: pb.OffsetFetchGroup) -> OffsetFetchGroup:
    return OffsetFetchGroup(
        group_id=p.group_id,
        member_id=p.member_id if p.HasField("member_id") else None,
        member_epoch=p.member_epoch,
        topics=read_OffsetFetchTopics(p.topics) if p.HasField("topics") else None,
    )


def encode_OffsetFetchGroup(m: OffsetFetchGroup) -> bytes:
    p = pb.OffsetFetchGroup()
    fill_OffsetFetchGroup(m, p)
    return p.SerializeToString()


def decode_OffsetFetchGroup(data: Buffer) -> OffsetFetchGroup:
    return read_OffsetFetchGroup(parse(pb.OffsetFetchGroup, data))


def fill_OffsetFetchTopics(m: OffsetFetchTopics, p: pb.OffsetFetchTopics) -> None:
    for x_topics in m.topics:
        fill_OffsetFetchTopic(x_topics, p.topics.add())


def read_OffsetFetchTopics(p: pb.OffsetFetchTopics) -> OffsetFetchTopics:
    return OffsetFetchTopics(
        topics=tuple([read_OffsetFetchTopic(x) for x in p.topics]),
    )


def encode_OffsetFetchTopics(m: OffsetFetchTopics) -> bytes:
    p = pb.OffsetFetchTopics()
    fill_OffsetFetchTopics(m, p)
    return p.SerializeToString()


def decode_OffsetFetchTopics(data: Buffer) -> OffsetFetchTopics:
    return read_OffsetFetchTopics(parse(pb.OffsetFetchTopics, data))


def fill_OffsetFetchTopic(m: OffsetFetchTopic, p: pb.OffsetFetchTopic) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    p.partitions.extend(m.partitions)


def read_OffsetFetchTopic(p: pb.OffsetFetchTopic) -> OffsetFetchTopic:
    return OffsetFetchTopic(
        name=p.name,
        topic_id=p.topic_id,
        partitions=tuple(p.partitions[:]),
    )


def encode_OffsetFetchTopic(m: OffsetFetchTopic) -> bytes:
    p = pb.OffsetFetchTopic()
    fill_OffsetFetchTopic(m, p)
    return p.SerializeToString()


def decode_OffsetFetchTopic(data: Buffer) -> OffsetFetchTopic:
    return read_OffsetFetchTopic(parse(pb.OffsetFetchTopic, data))


def fill_OffsetFetchResponse(m: OffsetFetchResponse, p: pb.OffsetFetchResponse) -> None:
    for x_groups in m.groups:
        fill_OffsetFetchGroupResult(x_groups, p.groups.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_OffsetFetchResponse(p: pb.OffsetFetchResponse) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=tuple([read_OffsetFetchGroupResult(x) for x in p.groups]),
        throttle_time_ms=p.throttle_time_ms,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_OffsetFetchResponse(m: OffsetFetchResponse) -> bytes:
    p = pb.OffsetFetchResponse()
    fill_OffsetFetchResponse(m, p)
    return p.SerializeToString()


def decode_OffsetFetchResponse(data: Buffer) -> OffsetFetchResponse:
    return read_OffsetFetchResponse(parse(pb.OffsetFetchResponse, data))


def fill_OffsetFetchGroupResult(m: OffsetFetchGroupResult, p: pb.OffsetFetchGroupResult) -> None:
    p.group_id = m.group_id
    p.error_code = m.error_code
    for x_topics in m.topics:
        fill_OffsetFetchTopicResult(x_topics, p.topics.add())


def read_OffsetFetchGroupResult(p: pb.OffsetFetchGroupResult) -> OffsetFetchGroupResult:
    return OffsetFetchGroupResult(
        group_id=p.group_id,
        error_code=p.error_code,
        topics=tuple([read_OffsetFetchTopicResult(x) for x in p.topics]),
    )


def encode_OffsetFetchGroupResult(m: OffsetFetchGroupResult) -> bytes:
    p = pb.OffsetFetchGroupResult()
    fill_OffsetFetchGroupResult(m, p)
    return p.SerializeToString()


def decode_OffsetFetchGroupResult(data: Buffer) -> OffsetFetchGroupResult:
    return read_OffsetFetchGroupResult(parse(pb.OffsetFetchGroupResult, data))


def fill_OffsetFetchTopicResult(m: OffsetFetchTopicResult, p: pb.OffsetFetchTopicResult) -> None:
    p.name = m.name
    p.topic_id = m.topic_id
    for x_partitions in m.partitions:
        fill_OffsetFetchPartition(x_partitions, p.partitions.add())


def read_OffsetFetchTopicResult(p: pb.OffsetFetchTopicResult) -> OffsetFetchTopicResult:
    return OffsetFetchTopicResult(
        name=p.name,
        topic_id=p.topic_id,
        partitions=tuple([read_OffsetFetchPartition(x) for x in p.partitions]),
    )


def encode_OffsetFetchTopicResult(m: OffsetFetchTopicResult) -> bytes:
    p = pb.OffsetFetchTopicResult()
    fill_OffsetFetchTopicResult(m, p)
    return p.SerializeToString()


def decode_OffsetFetchTopicResult(data: Buffer) -> OffsetFetchTopicResult:
    return read_OffsetFetchTopicResult(parse(pb.OffsetFetchTopicResult, data))


def fill_OffsetFetchPartition(m: OffsetFetchPartition, p: pb.OffsetFetchPartition) -> None:
    p.index = m.index
    p.committed_offset = m.committed_offset
    p.committed_leader_epoch = m.committed_leader_epoch
    p.metadata = m.metadata
    p.error_code = m.error_code


def read_OffsetFetchPartition(p: pb.OffsetFetchPartition) -> OffsetFetchPartition:
    return OffsetFetchPartition(
        index=p.index,
        committed_offset=p.committed_offset,
        committed_leader_epoch=p.committed_leader_epoch,
        metadata=p.metadata,
        error_code=p.error_code,
    )


def encode_OffsetFetchPartition(m: OffsetFetchPartition) -> bytes:
    p = pb.OffsetFetchPartition()
    fill_OffsetFetchPartition(m, p)
    return p.SerializeToString()


def decode_OffsetFetchPartition(data: Buffer) -> OffsetFetchPartition:
    return read_OffsetFetchPartition(parse(pb.OffsetFetchPartition, data))


def fill_OffsetDeleteRequest(m: OffsetDeleteRequest, p: pb.OffsetDeleteRequest) -> None:
    p.group_id = m.group_id
    for x_topics in m.topics:
        fill_OffsetDeleteTopic(x_topics, p.topics.add())


def read_OffsetDeleteRequest(p: pb.OffsetDeleteRequest) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=p.group_id,
        topics=tuple([read_OffsetDeleteTopic(x) for x in p.topics]),
    )


def encode_OffsetDeleteRequest(m: OffsetDeleteRequest) -> bytes:
    p = pb.OffsetDeleteRequest()
    fill_OffsetDeleteRequest(m, p)
    return p.SerializeToString()


def decode_OffsetDeleteRequest(data: Buffer) -> OffsetDeleteRequest:
    return read_OffsetDeleteRequest(parse(pb.OffsetDeleteRequest, data))


def fill_OffsetDeleteTopic(m: OffsetDeleteTopic, p: pb.OffsetDeleteTopic) -> None:
    p.name = m.name
    p.partitions.extend(m.partitions)


def read_OffsetDeleteTopic(p: pb.OffsetDeleteTopic) -> OffsetDeleteTopic:
    return OffsetDeleteTopic(
        name=p.name,
        partitions=tuple(p.partitions[:]),
    )


def encode_OffsetDeleteTopic(m: OffsetDeleteTopic) -> bytes:
    p = pb.OffsetDeleteTopic()
    fill_OffsetDeleteTopic(m, p)
    return p.SerializeToString()


def decode_OffsetDeleteTopic(data: Buffer) -> OffsetDeleteTopic:
    return read_OffsetDeleteTopic(parse(pb.OffsetDeleteTopic, data))


def fill_OffsetDeleteResponse(m: OffsetDeleteResponse, p: pb.OffsetDeleteResponse) -> None:
    p.error_code = m.error_code
    for x_topics in m.topics:
        fill_OffsetDeleteTopicResult(x_topics, p.topics.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_message = m.error_message


def read_OffsetDeleteResponse(p: pb.OffsetDeleteResponse) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        error_code=p.error_code,
        topics=tuple([read_OffsetDeleteTopicResult(x) for x in p.topics]),
        throttle_time_ms=p.throttle_time_ms,
        error_message=p.error_message,
    )


def encode_OffsetDeleteResponse(m: OffsetDeleteResponse) -> bytes:
    p = pb.OffsetDeleteResponse()
    fill_OffsetDeleteResponse(m, p)
    return p.SerializeToString()


def decode_OffsetDeleteResponse(data: Buffer) -> OffsetDeleteResponse:
    return read_OffsetDeleteResponse(parse(pb.OffsetDeleteResponse, data))


def fill_OffsetDeleteTopicResult(m: OffsetDeleteTopicResult, p: pb.OffsetDeleteTopicResult) -> None:
    p.name = m.name
    for x_partitions in m.partitions:
        fill_OffsetDeletePartition(x_partitions, p.partitions.add())


def read_OffsetDeleteTopicResult(p: pb.OffsetDeleteTopicResult) -> OffsetDeleteTopicResult:
    return OffsetDeleteTopicResult(
        name=p.name,
        partitions=tuple([read_OffsetDeletePartition(x) for x in p.partitions]),
    )


def encode_OffsetDeleteTopicResult(m: OffsetDeleteTopicResult) -> bytes:
    p = pb.OffsetDeleteTopicResult()
    fill_OffsetDeleteTopicResult(m, p)
    return p.SerializeToString()


def decode_OffsetDeleteTopicResult(data: Buffer) -> OffsetDeleteTopicResult:
    return read_OffsetDeleteTopicResult(parse(pb.OffsetDeleteTopicResult, data))


def fill_OffsetDeletePartition(m: OffsetDeletePartition, p: pb.OffsetDeletePartition) -> None:
    p.index = m.index
    p.error_code = m.error_code


def read_OffsetDeletePartition(p: pb.OffsetDeletePartition) -> OffsetDeletePartition:
    return OffsetDeletePartition(
        index=p.index,
        error_code=p.error_code,
    )


def encode_OffsetDeletePartition(m: OffsetDeletePartition) -> bytes:
    p = pb.OffsetDeletePartition()
    fill_OffsetDeletePartition(m, p)
    return p.SerializeToString()


def decode_OffsetDeletePartition(data: Buffer) -> OffsetDeletePartition:
    return read_OffsetDeletePartition(parse(pb.OffsetDeletePartition, data))


def fill_DescribeGroupsRequest(m: DescribeGroupsRequest, p: pb.DescribeGroupsRequest) -> None:
    p.groups.extend(m.groups)
    p.include_authorized_operations = m.include_authorized_operations


def read_DescribeGroupsRequest(p: pb.DescribeGroupsRequest) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(
        groups=tuple(p.groups[:]),
        include_authorized_operations=p.include_authorized_operations,
    )


def encode_DescribeGroupsRequest(m: DescribeGroupsRequest) -> bytes:
    p = pb.DescribeGroupsRequest()
    fill_DescribeGroupsRequest(m, p)
    return p.SerializeToString()


def decode_DescribeGroupsRequest(data: Buffer) -> DescribeGroupsRequest:
    return read_DescribeGroupsRequest(parse(pb.DescribeGroupsRequest, data))


def fill_DescribeGroupsResponse(m: DescribeGroupsResponse, p: pb.DescribeGroupsResponse) -> None:
    for x_groups in m.groups:
        fill_DescribedGroup(x_groups, p.groups.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_DescribeGroupsResponse(p: pb.DescribeGroupsResponse) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=tuple([read_DescribedGroup(x) for x in p.groups]),
        throttle_time_ms=p.throttle_time_ms,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_DescribeGroupsResponse(m: DescribeGroupsResponse) -> bytes:
    p = pb.DescribeGroupsResponse()
    fill_DescribeGroupsResponse(m, p)
    return p.SerializeToString()


def decode_DescribeGroupsResponse(data: Buffer) -> DescribeGroupsResponse:
    return read_DescribeGroupsResponse(parse(pb.DescribeGroupsResponse, data))


def fill_DescribedGroup(m: DescribedGroup, p: pb.DescribedGroup) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.group_id = m.group_id
    p.group_state = m.group_state
    p.protocol_type = m.protocol_type
    p.protocol_data = m.protocol_data
    for x_members in m.members:
        fill_DescribedMember(x_members, p.members.add())
    p.authorized_operations = m.authorized_operations


def read_DescribedGroup(p: pb.DescribedGroup) -> DescribedGroup:
    return DescribedGroup(
        error_code=p.error_code,
        error_message=p.error_message,
        group_id=p.group_id,
        group_state=p.group_state,
        protocol_type=p.protocol_type,
        protocol_data=p.protocol_data,
        members=tuple([read_DescribedMember(x) for x in p.members]),
        authorized_operations=p.authorized_operations,
    )


def encode_DescribedGroup(m: DescribedGroup) -> bytes:
    p = pb.DescribedGroup()
    fill_DescribedGroup(m, p)
    return p.SerializeToString()


def decode_DescribedGroup(data: Buffer) -> DescribedGroup:
    return read_DescribedGroup(parse(pb.DescribedGroup, data))


def fill_DescribedMember(m: DescribedMember, p: pb.DescribedMember) -> None:
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    p.client_id = m.client_id
    p.client_host = m.client_host
    p.member_metadata = m.member_metadata
    p.member_assignment = m.member_assignment


def read_DescribedMember(p: pb.DescribedMember) -> DescribedMember:
    return DescribedMember(
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        client_id=p.client_id,
        client_host=p.client_host,
        member_metadata=p.member_metadata,
        member_assignment=p.member_assignment,
    )


def encode_DescribedMember(m: DescribedMember) -> bytes:
    p = pb.DescribedMember()
    fill_DescribedMember(m, p)
    return p.SerializeToString()


def decode_DescribedMember(data: Buffer) -> DescribedMember:
    return read_DescribedMember(parse(pb.DescribedMember, data))


def fill_DeleteGroupsRequest(m: DeleteGroupsRequest, p: pb.DeleteGroupsRequest) -> None:
    p.groups.extend(m.groups)


def read_DeleteGroupsRequest(p: pb.DeleteGroupsRequest) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(
        groups=tuple(p.groups[:]),
    )


def encode_DeleteGroupsRequest(m: DeleteGroupsRequest) -> bytes:
    p = pb.DeleteGroupsRequest()
    fill_DeleteGroupsRequest(m, p)
    return p.SerializeToString()


def decode_DeleteGroupsRequest(data: Buffer) -> DeleteGroupsRequest:
    return read_DeleteGroupsRequest(parse(pb.DeleteGroupsRequest, data))


def fill_DeleteGroupsResponse(m: DeleteGroupsResponse, p: pb.DeleteGroupsResponse) -> None:
    for x_results in m.results:
        fill_DeletedGroup(x_results, p.results.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_DeleteGroupsResponse(p: pb.DeleteGroupsResponse) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple([read_DeletedGroup(x) for x in p.results]),
        throttle_time_ms=p.throttle_time_ms,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_DeleteGroupsResponse(m: DeleteGroupsResponse) -> bytes:
    p = pb.DeleteGroupsResponse()
    fill_DeleteGroupsResponse(m, p)
    return p.SerializeToString()


def decode_DeleteGroupsResponse(data: Buffer) -> DeleteGroupsResponse:
    return read_DeleteGroupsResponse(parse(pb.DeleteGroupsResponse, data))


def fill_DeletedGroup(m: DeletedGroup, p: pb.DeletedGroup) -> None:
    p.group_id = m.group_id
    p.error_code = m.error_code


def read_DeletedGroup(p: pb.DeletedGroup) -> DeletedGroup:
    return DeletedGroup(
        group_id=p.group_id,
        error_code=p.error_code,
    )


def encode_DeletedGroup(m: DeletedGroup) -> bytes:
    p = pb.DeletedGroup()
    fill_DeletedGroup(m, p)
    return p.SerializeToString()


def decode_DeletedGroup(data: Buffer) -> DeletedGroup:
    return read_DeletedGroup(parse(pb.DeletedGroup, data))


def fill_ConsumerGroupHeartbeatRequest(m: ConsumerGroupHeartbeatRequest, p: pb.ConsumerGroupHeartbeatRequest) -> None:
    p.group_id = m.group_id
    p.member_id = m.member_id
    p.member_epoch = m.member_epoch
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    if m.rack_id is not None:
        p.rack_id = m.rack_id
    p.rebalance_timeout_ms = m.rebalance_timeout_ms
    if m.subscribed_topic_names is not None:
        p.subscribed_topic_names.SetInParent()
        fill_SubscribedTopicNames(m.subscribed_topic_names, p.subscribed_topic_names)
    if m.subscribed_topic_regex is not None:
        p.subscribed_topic_regex = m.subscribed_topic_regex
    if m.server_assignor is not None:
        p.server_assignor = m.server_assignor
    if m.topic_partitions is not None:
        p.topic_partitions.SetInParent()
        fill_MemberTopicPartitions(m.topic_partitions, p.topic_partitions)
    p.chooses_member_id = m.chooses_member_id


def read_ConsumerGroupHeartbeatRequest(p: pb.ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=p.group_id,
        member_id=p.member_id,
        member_epoch=p.member_epoch,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        rack_id=p.rack_id if p.HasField("rack_id") else None,
        rebalance_timeout_ms=p.rebalance_timeout_ms,
        subscribed_topic_names=read_SubscribedTopicNames(p.subscribed_topic_names)
        if p.HasField("subscribed_topic_names")
        else None,
        subscribed_topic_regex=p.subscribed_topic_regex if p.HasField("subscribed_topic_regex") else None,
        server_assignor=p.server_assignor if p.HasField("server_assignor") else None,
        topic_partitions=read_MemberTopicPartitions(p.topic_partitions) if p.HasField("topic_partitions") else None,
        chooses_member_id=p.chooses_member_id,
    )


def encode_ConsumerGroupHeartbeatRequest(m: ConsumerGroupHeartbeatRequest) -> bytes:
    p = pb.ConsumerGroupHeartbeatRequest()
    fill_ConsumerGroupHeartbeatRequest(m, p)
    return p.SerializeToString()


def decode_ConsumerGroupHeartbeatRequest(data: Buffer) -> ConsumerGroupHeartbeatRequest:
    return read_ConsumerGroupHeartbeatRequest(parse(pb.ConsumerGroupHeartbeatRequest, data))


def fill_SubscribedTopicNames(m: SubscribedTopicNames, p: pb.SubscribedTopicNames) -> None:
    p.names.extend(m.names)


def read_SubscribedTopicNames(p: pb.SubscribedTopicNames) -> SubscribedTopicNames:
    return SubscribedTopicNames(
        names=tuple(p.names[:]),
    )


def encode_SubscribedTopicNames(m: SubscribedTopicNames) -> bytes:
    p = pb.SubscribedTopicNames()
    fill_SubscribedTopicNames(m, p)
    return p.SerializeToString()


def decode_SubscribedTopicNames(data: Buffer) -> SubscribedTopicNames:
    return read_SubscribedTopicNames(parse(pb.SubscribedTopicNames, data))


def fill_MemberTopicPartitions(m: MemberTopicPartitions, p: pb.MemberTopicPartitions) -> None:
    for x_topic_partitions in m.topic_partitions:
        fill_TopicIdPartitions(x_topic_partitions, p.topic_partitions.add())


def read_MemberTopicPartitions(p: pb.MemberTopicPartitions) -> MemberTopicPartitions:
    return MemberTopicPartitions(
        topic_partitions=tuple([read_TopicIdPartitions(x) for x in p.topic_partitions]),
    )


def encode_MemberTopicPartitions(m: MemberTopicPartitions) -> bytes:
    p = pb.MemberTopicPartitions()
    fill_MemberTopicPartitions(m, p)
    return p.SerializeToString()


def decode_MemberTopicPartitions(data: Buffer) -> MemberTopicPartitions:
    return read_MemberTopicPartitions(parse(pb.MemberTopicPartitions, data))


def fill_TopicIdPartitions(m: TopicIdPartitions, p: pb.TopicIdPartitions) -> None:
    p.topic_id = m.topic_id
    p.partitions.extend(m.partitions)


def read_TopicIdPartitions(p: pb.TopicIdPartitions) -> TopicIdPartitions:
    return TopicIdPartitions(
        topic_id=p.topic_id,
        partitions=tuple(p.partitions[:]),
    )


def encode_TopicIdPartitions(m: TopicIdPartitions) -> bytes:
    p = pb.TopicIdPartitions()
    fill_TopicIdPartitions(m, p)
    return p.SerializeToString()


def decode_TopicIdPartitions(data: Buffer) -> TopicIdPartitions:
    return read_TopicIdPartitions(parse(pb.TopicIdPartitions, data))


def fill_ConsumerGroupHeartbeatResponse(
    m: ConsumerGroupHeartbeatResponse, p: pb.ConsumerGroupHeartbeatResponse
) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    if m.member_id is not None:
        p.member_id = m.member_id
    p.member_epoch = m.member_epoch
    p.heartbeat_interval_ms = m.heartbeat_interval_ms
    if m.assignment is not None:
        p.assignment.SetInParent()
        fill_MemberTopicPartitions(m.assignment, p.assignment)
    p.throttle_time_ms = m.throttle_time_ms


def read_ConsumerGroupHeartbeatResponse(p: pb.ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=p.error_code,
        error_message=p.error_message,
        member_id=p.member_id if p.HasField("member_id") else None,
        member_epoch=p.member_epoch,
        heartbeat_interval_ms=p.heartbeat_interval_ms,
        assignment=read_MemberTopicPartitions(p.assignment) if p.HasField("assignment") else None,
        throttle_time_ms=p.throttle_time_ms,
    )


def encode_ConsumerGroupHeartbeatResponse(m: ConsumerGroupHeartbeatResponse) -> bytes:
    p = pb.ConsumerGroupHeartbeatResponse()
    fill_ConsumerGroupHeartbeatResponse(m, p)
    return p.SerializeToString()


def decode_ConsumerGroupHeartbeatResponse(data: Buffer) -> ConsumerGroupHeartbeatResponse:
    return read_ConsumerGroupHeartbeatResponse(parse(pb.ConsumerGroupHeartbeatResponse, data))


def fill_ConsumerGroupDescribeRequest(m: ConsumerGroupDescribeRequest, p: pb.ConsumerGroupDescribeRequest) -> None:
    p.group_ids.extend(m.group_ids)
    p.include_authorized_operations = m.include_authorized_operations


def read_ConsumerGroupDescribeRequest(p: pb.ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(
        group_ids=tuple(p.group_ids[:]),
        include_authorized_operations=p.include_authorized_operations,
    )


def encode_ConsumerGroupDescribeRequest(m: ConsumerGroupDescribeRequest) -> bytes:
    p = pb.ConsumerGroupDescribeRequest()
    fill_ConsumerGroupDescribeRequest(m, p)
    return p.SerializeToString()


def decode_ConsumerGroupDescribeRequest(data: Buffer) -> ConsumerGroupDescribeRequest:
    return read_ConsumerGroupDescribeRequest(parse(pb.ConsumerGroupDescribeRequest, data))


def fill_ConsumerGroupDescribeResponse(m: ConsumerGroupDescribeResponse, p: pb.ConsumerGroupDescribeResponse) -> None:
    for x_groups in m.groups:
        fill_DescribedConsumerGroup(x_groups, p.groups.add())
    p.throttle_time_ms = m.throttle_time_ms
    p.error_code = m.error_code
    p.error_message = m.error_message


def read_ConsumerGroupDescribeResponse(p: pb.ConsumerGroupDescribeResponse) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=tuple([read_DescribedConsumerGroup(x) for x in p.groups]),
        throttle_time_ms=p.throttle_time_ms,
        error_code=p.error_code,
        error_message=p.error_message,
    )


def encode_ConsumerGroupDescribeResponse(m: ConsumerGroupDescribeResponse) -> bytes:
    p = pb.ConsumerGroupDescribeResponse()
    fill_ConsumerGroupDescribeResponse(m, p)
    return p.SerializeToString()


def decode_ConsumerGroupDescribeResponse(data: Buffer) -> ConsumerGroupDescribeResponse:
    return read_ConsumerGroupDescribeResponse(parse(pb.ConsumerGroupDescribeResponse, data))


def fill_DescribedConsumerGroup(m: DescribedConsumerGroup, p: pb.DescribedConsumerGroup) -> None:
    p.error_code = m.error_code
    p.error_message = m.error_message
    p.group_id = m.group_id
    p.group_state = m.group_state
    p.group_epoch = m.group_epoch
    p.assignment_epoch = m.assignment_epoch
    p.assignor_name = m.assignor_name
    for x_members in m.members:
        fill_DescribedConsumerMember(x_members, p.members.add())
    p.authorized_operations = m.authorized_operations


def read_DescribedConsumerGroup(p: pb.DescribedConsumerGroup) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        error_code=p.error_code,
        error_message=p.error_message,
        group_id=p.group_id,
        group_state=p.group_state,
        group_epoch=p.group_epoch,
        assignment_epoch=p.assignment_epoch,
        assignor_name=p.assignor_name,
        members=tuple([read_DescribedConsumerMember(x) for x in p.members]),
        authorized_operations=p.authorized_operations,
    )


def encode_DescribedConsumerGroup(m: DescribedConsumerGroup) -> bytes:
    p = pb.DescribedConsumerGroup()
    fill_DescribedConsumerGroup(m, p)
    return p.SerializeToString()


def decode_DescribedConsumerGroup(data: Buffer) -> DescribedConsumerGroup:
    return read_DescribedConsumerGroup(parse(pb.DescribedConsumerGroup, data))


def fill_DescribedConsumerMember(m: DescribedConsumerMember, p: pb.DescribedConsumerMember) -> None:
    p.member_id = m.member_id
    if m.group_instance_id is not None:
        p.group_instance_id = m.group_instance_id
    if m.rack_id is not None:
        p.rack_id = m.rack_id
    p.member_epoch = m.member_epoch
    p.client_id = m.client_id
    p.client_host = m.client_host
    p.subscribed_topic_names.extend(m.subscribed_topic_names)
    if m.subscribed_topic_regex is not None:
        p.subscribed_topic_regex = m.subscribed_topic_regex
    for x_assignment in m.assignment:
        fill_AssignedTopic(x_assignment, p.assignment.add())
    for x_target_assignment in m.target_assignment:
        fill_AssignedTopic(x_target_assignment, p.target_assignment.add())
    p.member_type = m.member_type


def read_DescribedConsumerMember(p: pb.DescribedConsumerMember) -> DescribedConsumerMember:
    return DescribedConsumerMember(
        member_id=p.member_id,
        group_instance_id=p.group_instance_id if p.HasField("group_instance_id") else None,
        rack_id=p.rack_id if p.HasField("rack_id") else None,
        member_epoch=p.member_epoch,
        client_id=p.client_id,
        client_host=p.client_host,
        subscribed_topic_names=tuple(p.subscribed_topic_names[:]),
        subscribed_topic_regex=p.subscribed_topic_regex if p.HasField("subscribed_topic_regex") else None,
        assignment=tuple([read_AssignedTopic(x) for x in p.assignment]),
        target_assignment=tuple([read_AssignedTopic(x) for x in p.target_assignment]),
        member_type=p.member_type,
    )


def encode_DescribedConsumerMember(m: DescribedConsumerMember) -> bytes:
    p = pb.DescribedConsumerMember()
    fill_DescribedConsumerMember(m, p)
    return p.SerializeToString()


def decode_DescribedConsumerMember(data: Buffer) -> DescribedConsumerMember:
    return read_DescribedConsumerMember(parse(pb.DescribedConsumerMember, data))


def fill_AssignedTopic(m: AssignedTopic, p: pb.AssignedTopic) -> None:
    p.topic_id = m.topic_id
    p.topic_name = m.topic_name
    p.partitions.extend(m.partitions)


def read_AssignedTopic(p: pb.AssignedTopic) -> AssignedTopic:
    return AssignedTopic(
        topic_id=p.topic_id,
        topic_name=p.topic_name,
        partitions=tuple(p.partitions[:]),
    )


def encode_AssignedTopic(m: AssignedTopic) -> bytes:
    p = pb.AssignedTopic()
    fill_AssignedTopic(m, p)
    return p.SerializeToString()


def decode_AssignedTopic(data: Buffer) -> AssignedTopic:
    return read_AssignedTopic(parse(pb.AssignedTopic, data))
