"""Requests of consumer groups that a node alone answers without an error. Each makes the group that it is about."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from quorumlog.messages.admin import FindCoordinatorRequest
from quorumlog.messages.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupHeartbeatRequest,
    GroupProtocol,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    MemberTopicPartitions,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
    OffsetFetchTopics,
    SubscribedTopicNames,
    SyncGroupRequest,
)

Call = Callable[[Any], Any]
TRIES = 400
INSTANCE = "i1"

_numbers = count(1)


def join(group_id: str) -> JoinGroupRequest:
    """Of a static member: it needs no id before it joins."""
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(GroupProtocol(name="range", metadata=b"\x00\x00"),),
        group_instance_id=INSTANCE,
    )


def commit(group_id: str, topic: str, offset: int = 1) -> OffsetCommitRequest:
    partitions = (OffsetCommitPartition(index=0, committed_offset=offset),)
    return OffsetCommitRequest(group_id=group_id, topics=(OffsetCommitTopic(name=topic, partitions=partitions),))


def new_group(call: Call, topic: str) -> str:
    """A group that has committed an offset of `topic`. Its coordinator is ready."""
    group_id = f"group-{next(_numbers)}"
    for _ in range(TRIES):
        (coordinator,) = call(FindCoordinatorRequest(keys=(group_id,))).coordinators
        if coordinator.error_code == 0:
            answer = call(commit(group_id, topic))
            if answer.error_code == 0 and answer.topics[0].partitions[0].error_code == 0:
                return group_id
        time.sleep(0.02)  # pause between two requests; the awaited condition is the answer
    raise AssertionError(f"{group_id} cannot commit")


def joined(call: Call, group_id: str) -> JoinGroupResponse:
    response: JoinGroupResponse = call(join(group_id))
    assert response.error_code == 0
    return response


def sync(group_id: str, member: JoinGroupResponse) -> SyncGroupRequest:
    """Of the leader."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=INSTANCE,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(MemberAssignment(member_id=member.member_id, assignment=b"all"),),
    )


def heartbeat(group_id: str, member: JoinGroupResponse) -> GroupHeartbeatRequest:
    return GroupHeartbeatRequest(
        group_id=group_id,
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=INSTANCE,
    )


def leave(group_id: str, member: JoinGroupResponse) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group_id, members=(LeavingMember(member_id=member.member_id, group_instance_id=INSTANCE),)
    )


def with_member(request: Callable[[str, JoinGroupResponse], Any], call: Call, topic: str) -> Any:
    group_id = new_group(call, topic)
    return request(group_id, joined(call, group_id))


def stable_heartbeat(call: Call, topic: str) -> GroupHeartbeatRequest:
    group_id = new_group(call, topic)
    member = joined(call, group_id)
    assert call(sync(group_id, member)).assignment == b"all"
    return heartbeat(group_id, member)


def consumer_heartbeat(call: Call, topic: str) -> ConsumerGroupHeartbeatRequest:
    """Of a member that joins a group whose last protocol was another one."""
    return ConsumerGroupHeartbeatRequest(
        group_id=new_group(call, topic),
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=SubscribedTopicNames(names=(topic,)),
        topic_partitions=MemberTopicPartitions(),
    )


def consumer_describe(call: Call, topic: str) -> ConsumerGroupDescribeRequest:
    heartbeat = consumer_heartbeat(call, topic)
    response: ConsumerGroupHeartbeatResponse = call(heartbeat)
    assert (response.error_code, response.member_id) == (0, "m1") and response.member_epoch > 0
    assert response.assignment is not None and len(response.assignment.topic_partitions) == 1
    return ConsumerGroupDescribeRequest(group_ids=(heartbeat.group_id,))


def fetch(call: Call, topic: str) -> OffsetFetchRequest:
    topics = OffsetFetchTopics(topics=(OffsetFetchTopic(name=topic, partitions=(0,)),))
    return OffsetFetchRequest(groups=(OffsetFetchGroup(group_id=new_group(call, topic), topics=topics),))


def delete_offsets(call: Call, topic: str) -> OffsetDeleteRequest:
    topics = (OffsetDeleteTopic(name=topic, partitions=(0,)),)
    return OffsetDeleteRequest(group_id=new_group(call, topic), topics=topics)


OF_GROUPS: dict[type, Callable[[Call, str], Any]] = {
    JoinGroupRequest: lambda call, topic: join(new_group(call, topic)),
    SyncGroupRequest: lambda call, topic: with_member(sync, call, topic),
    GroupHeartbeatRequest: stable_heartbeat,
    LeaveGroupRequest: lambda call, topic: with_member(leave, call, topic),
    OffsetCommitRequest: lambda call, topic: commit(new_group(call, topic), topic, 2),
    OffsetFetchRequest: fetch,
    OffsetDeleteRequest: delete_offsets,
    DescribeGroupsRequest: lambda call, topic: DescribeGroupsRequest(groups=(new_group(call, topic),)),
    ConsumerGroupHeartbeatRequest: consumer_heartbeat,
    ConsumerGroupDescribeRequest: consumer_describe,
    DeleteGroupsRequest: lambda call, topic: DeleteGroupsRequest(groups=(new_group(call, topic),)),
}
