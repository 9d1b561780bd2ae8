"""Answers about a classic group that say the same of all its parts."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    DescribedGroup,
    DescribedMember,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
)
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State


def unknown_group(group_id: str, why: str = "does not exist") -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"group {group_id} {why}",
        group_id=group_id,
        group_state=State.DEAD.value,
    )


def described_group(group: ClassicGroup) -> DescribedGroup:
    stable = group.state is State.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=tuple(
            DescribedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ),
    )


def all_refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitPartitionResult(index=one.index, error_code=error) for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
