"""Consumer groups: membership of both protocols, and the offsets that groups commit.

Field by field these are Kafka's messages under our names. The leader of a group's partition of
__consumer_offsets,
its coordinator, answers them. Where Kafka's answer has no error, or no message, of its own, `error_code` and
`error_message` of ours are spread over its parts (quorumlog/wire/convert/groups.py).

Written by `./dev proto` from proto/quorumlog/v1/groups.proto; edit that instead.
"""

from __future__ import annotations

from quorumlog.messages.message import message


@message(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest:
    """rebalance_timeout_ms: -1: of software that has no such field; the session's time-out is used.
    member_id: Empty for a member that has no id yet.
    takes_member_id: The member understands MEMBER_ID_REQUIRED (KIP-394; version 4 of Kafka's message).
    takes_skip_assignment: The member understands skip_assignment (KIP-814; version 9).
    """

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str
    protocols: tuple[GroupProtocol, ...] = ()
    takes_member_id: bool = True
    takes_skip_assignment: bool = True


@message(frozen=True, slots=True, kw_only=True)
class GroupProtocol:
    name: str
    metadata: bytes


@message(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse:
    """skip_assignment: The leader keeps the assignment that there is.
    members: Only in the leader's answer.
    """

    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinedMember, ...] = ()
    throttle_time_ms: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    member_id: str
    group_instance_id: str | None = None
    metadata: bytes


@message(frozen=True, slots=True, kw_only=True)
class SyncGroupRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[MemberAssignment, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class MemberAssignment:
    member_id: str
    assignment: bytes


@message(frozen=True, slots=True, kw_only=True)
class SyncGroupResponse:
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
    throttle_time_ms: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class GroupHeartbeatRequest:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class GroupHeartbeatResponse:
    error_code: int = 0
    throttle_time_ms: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequest:
    group_id: str
    members: tuple[LeavingMember, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class LeavingMember:
    """member_id: Empty, with an instance id, when an administrator removes a static member."""

    member_id: str = ""
    group_instance_id: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponse:
    error_code: int = 0
    members: tuple[LeftMember, ...] = ()
    throttle_time_ms: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class LeftMember:
    member_id: str
    group_instance_id: str | None = None
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest:
    """generation_id: -1 outside a group's protocol.
    retention_time_ms: -1: the broker's retention. Only old clients send another.
    takes_member_epoch: The member understands STALE_MEMBER_EPOCH, as one of the consumer protocol must (KIP-848;
    version 9 of Kafka's
        message).
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: tuple[OffsetCommitTopic, ...] = ()
    takes_member_epoch: bool = True


@message(frozen=True, slots=True, kw_only=True)
class OffsetCommitTopic:
    name: str = ""
    topic_id: bytes = b""
    partitions: tuple[OffsetCommitPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetCommitPartition:
    index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


@message(frozen=True, slots=True, kw_only=True)
class OffsetCommitResponse:
    topics: tuple[OffsetCommitTopicResult, ...] = ()
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class OffsetCommitTopicResult:
    name: str = ""
    topic_id: bytes = b""
    partitions: tuple[OffsetCommitPartitionResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetCommitPartitionResult:
    index: int
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchRequest:
    """require_stable: Offsets that an open transaction may still change are an error."""

    groups: tuple[OffsetFetchGroup, ...] = ()
    require_stable: bool = False


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchGroup:
    """topics: None: all partitions that the group has committed."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: OffsetFetchTopics | None = None


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchTopics:
    topics: tuple[OffsetFetchTopic, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchTopic:
    name: str = ""
    topic_id: bytes = b""
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchResponse:
    groups: tuple[OffsetFetchGroupResult, ...] = ()
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchGroupResult:
    group_id: str
    error_code: int = 0
    topics: tuple[OffsetFetchTopicResult, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchTopicResult:
    name: str = ""
    topic_id: bytes = b""
    partitions: tuple[OffsetFetchPartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetFetchPartition:
    """An offset of -1: the group has committed none."""

    index: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str = ""
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class OffsetDeleteRequest:
    group_id: str
    topics: tuple[OffsetDeleteTopic, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetDeleteTopic:
    name: str
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetDeleteResponse:
    error_code: int = 0
    topics: tuple[OffsetDeleteTopicResult, ...] = ()
    throttle_time_ms: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class OffsetDeleteTopicResult:
    name: str
    partitions: tuple[OffsetDeletePartition, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class OffsetDeletePartition:
    index: int
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class DescribeGroupsRequest:
    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@message(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponse:
    groups: tuple[DescribedGroup, ...] = ()
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """protocol_data: The protocol of the generation."""

    error_code: int = 0
    error_message: str = ""
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: int = -2147483648


@message(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@message(frozen=True, slots=True, kw_only=True)
class DeleteGroupsRequest:
    groups: tuple[str, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse:
    results: tuple[DeletedGroup, ...] = ()
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DeletedGroup:
    group_id: str
    error_code: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatRequest:
    """A member of the consumer protocol (KIP-848) tells what it wants and what it owns.
    A field that is not there has not changed since the member's last heartbeat.

    member_epoch: 0: join. -1: leave. -2: a static member leaves, and comes back. Otherwise the epoch that the
    member has reached.
    rebalance_timeout_ms: -1: not changed.
    subscribed_topic_regex: "": no regular expression any more.
    topic_partitions: What the member owns.
    chooses_member_id: The member chooses its own id (version 1 of Kafka's message). If not, the broker gives an
    id to one that joins.
    """

    group_id: str
    member_id: str = ""
    member_epoch: int
    group_instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: SubscribedTopicNames | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: MemberTopicPartitions | None = None
    chooses_member_id: bool = True


@message(frozen=True, slots=True, kw_only=True)
class SubscribedTopicNames:
    names: tuple[str, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class MemberTopicPartitions:
    topic_partitions: tuple[TopicIdPartitions, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class TopicIdPartitions:
    topic_id: bytes
    partitions: tuple[int, ...] = ()


@message(frozen=True, slots=True, kw_only=True)
class ConsumerGroupHeartbeatResponse:
    """heartbeat_interval_ms: Until the next heartbeat of this member.
    assignment: What the member may own; None: as it was told before.
    """

    error_code: int = 0
    error_message: str = ""
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: MemberTopicPartitions | None = None
    throttle_time_ms: int = 0


@message(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeRequest:
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


@message(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescribeResponse:
    groups: tuple[DescribedConsumerGroup, ...] = ()
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str = ""


@message(frozen=True, slots=True, kw_only=True)
class DescribedConsumerGroup:
    error_code: int = 0
    error_message: str = ""
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumerMember, ...] = ()
    authorized_operations: int = -2147483648


@message(frozen=True, slots=True, kw_only=True)
class DescribedConsumerMember:
    """member_type: 0: a member of the classic protocol, 1: of the consumer protocol, -1: not told."""

    member_id: str
    group_instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    assignment: tuple[AssignedTopic, ...] = ()
    target_assignment: tuple[AssignedTopic, ...] = ()
    member_type: int = -1


@message(frozen=True, slots=True, kw_only=True)
class AssignedTopic:
    """topic_name: Empty if the topic is deleted."""

    topic_id: bytes
    topic_name: str
    partitions: tuple[int, ...] = ()
