"""The calls of a membership, and what a refusal means to its application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorumlog.client.errors import RequestFailed
from quorumlog.client.group.assignors import STICKY, STRATEGIES, Joined
from quorumlog.client.group.effects import GroupSettings, TopicPartitions
from quorumlog.client.group.protocol import (
    Kept,
    Subscription,
    by_topic,
    read_subscription,
    write_assignment,
    write_kept,
    write_subscription,
)
from quorumlog.client.group.racks import Racks
from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupProtocol,
    JoinedMember,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    MemberAssignment,
    SyncGroupRequest,
)
from quorumlog.records import CorruptRecords
from quorumlog.records.format.flexible import INT32

PROTOCOL_TYPE = "consumer"


def join_request(
    settings: GroupSettings,
    member_id: str,
    generation: int,
    topics: tuple[str, ...],
    owned: TopicPartitions,
    kept: Kept,
) -> JoinGroupRequest:
    """A cooperative strategy says the generation in its own bytes, too, for leaders of old software. kept: what it had
    in its last generation, which the eager `sticky` says in its bytes."""
    protocols = []
    for name in settings.strategies:
        data = INT32.pack(generation) if STRATEGIES[name].cooperative else b""
        if name == STICKY:
            data = write_kept(kept)
        metadata = write_subscription(Subscription(topics, owned, generation, data, settings.rack))
        protocols.append(GroupProtocol(name=name, metadata=metadata))
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=tuple(protocols),
    )


def sync_request(
    settings: GroupSettings,
    member_id: str,
    generation: int,
    strategy: str,
    assignments: tuple[MemberAssignment, ...],
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=strategy,
        assignments=assignments,
    )


def heartbeat_request(settings: GroupSettings, member_id: str, generation: int) -> GroupHeartbeatRequest:
    return GroupHeartbeatRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.instance_id,
    )


def leave_request(settings: GroupSettings, member_id: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=settings.group_id, members=(LeavingMember(member_id=member_id),))


def read_members(members: Sequence[JoinedMember]) -> list[Joined]:
    """As their leader is told. One whose bytes cannot be read wants nothing; the others go on without it."""
    return [Joined(one.member_id, _said(one.metadata), one.group_instance_id) for one in members]


def assign(
    strategy: str, members: Sequence[Joined], counts: Mapping[str, int], racks: Racks
) -> tuple[MemberAssignment, ...]:
    found = STRATEGIES[strategy].assign(members, counts, racks)
    return tuple(
        MemberAssignment(member_id=one.member_id, assignment=write_assignment(by_topic(found[one.member_id])))
        for one in members
    )


def refusal(settings: GroupSettings, code: ErrorCode, message: str = "") -> RequestFailed:
    """message: the coordinator's own words."""
    text = message or _HINTS.get(code, "its coordinator refused")
    return RequestFailed(code, f"group {settings.group_id!r}: {text}")


def _said(metadata: bytes) -> Subscription:
    try:
        return read_subscription(metadata)
    except CorruptRecords:
        return Subscription(())


_HINTS = {
    ErrorCode.FENCED_INSTANCE_ID: "another consumer has joined with this group_instance_id; give each its own",
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "its members have no assignor in common with this one; set partition_assignment_strategy as theirs"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "session_timeout_ms lies outside of the brokers' group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: "it has as many members as group.max.size allows",
    ErrorCode.UNSUPPORTED_VERSION: "the cluster does not serve the consumer protocol; see `quorumlog feature`",
    ErrorCode.INVALID_GROUP_ID: "it is not a name of a group",
}
