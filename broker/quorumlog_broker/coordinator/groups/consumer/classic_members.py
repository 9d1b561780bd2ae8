"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (KIP-848).

To them the epoch of a member is the generation. They join again whenever they are to give up or may get something; then
the coordinator reconciles them as it does the others, and SyncGroup tells them what they have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    GroupHeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.records import CorruptRecords
from quorumlog.records.coordinator.consumer_groups import ClassicMemberMetadata, ClassicProtocol
from quorumlog_broker.coordinator.group_turn import Call, MemberJoinEnds, MemberSyncEnds, Turn
from quorumlog_broker.coordinator.groups.classic.consumer_protocol import (
    Subscription,
    read_subscription,
    write_assignment,
)
from quorumlog_broker.coordinator.groups.classic.subscription import CONSUMER
from quorumlog_broker.coordinator.groups.consumer.assignment import Partition, by_topic
from quorumlog_broker.coordinator.groups.consumer.heartbeat import Heartbeats
from quorumlog_broker.coordinator.groups.consumer.reconcile import Current, MemberState
from quorumlog_broker.coordinator.groups.consumer.records import rename_member
from quorumlog_broker.coordinator.groups.consumer.sessions import Sessions
from quorumlog_broker.coordinator.groups.consumer.settings import Settings
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup, Member


class ClassicMembers:
    """new_uuid: a fresh one as text, for ids of members."""

    def __init__(
        self, turn: Turn, settings: Settings, heartbeats: Heartbeats, sessions: Sessions, new_uuid: Callable[[], str]
    ) -> None:
        self._turn, self._settings, self._heartbeats = turn, settings, heartbeats
        self._sessions, self._new_uuid = sessions, new_uuid

    # --- join ---

    def take_place(self, group: ConsumerGroup, call: Call, request: JoinGroupRequest) -> str | None:
        """A static member without an id takes the place of the one that holds its instance id (KIP-345): its new id.

        None: it is not such a member, or it may not join.
        """
        holder = group.static.get(request.group_instance_id or "")
        if holder is None or request.member_id:
            return None
        error, subscription = self._refusal(group, request)
        if error != ErrorCode.NONE or subscription is None:
            return None
        member_id = f"{request.group_instance_id}-{self._new_uuid()}"
        classic = _member(call, request, subscription).classic_member_metadata
        member = replace(group.members[holder], classic_member_metadata=classic)  # the rest changes as it joins
        rename_member(self._turn, group, holder, member_id, member)
        self._sessions.forget(group.group_id, holder)
        return member_id

    def join(self, group: ConsumerGroup, call: Call, request: JoinGroupRequest, member_id: str | None = None) -> None:
        """Answered once its records are committed. The session's time-out is good. member_id: from `take_place`."""
        error, subscription = self._refusal(group, request)
        if subscription is None or error != ErrorCode.NONE:
            response = JoinGroupResponse(error_code=error, member_id=request.member_id)
            self._turn.answer_read(group.group_id, call.number, response)
            return
        member_id = member_id or request.member_id
        if not member_id:
            instance = request.group_instance_id
            member_id = f"{call.client_id if instance is None else instance}-{self._new_uuid()}"
            if instance is None and request.takes_member_id:
                response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
                self._turn.answer(call.number, response)
                return
        self._enter(group, call, request, member_id, subscription)

    def _refusal(self, group: ConsumerGroup, request: JoinGroupRequest) -> tuple[ErrorCode, Subscription | None]:
        names = [protocol.name for protocol in request.protocols]
        if request.protocol_type != CONSUMER or not names or not self._common(group, names, request.member_id):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None
        try:
            subscription = read_subscription(request.protocols[0].metadata)
        except CorruptRecords:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None
        instance, member_id = request.group_instance_id, request.member_id
        if instance is not None and member_id:
            return _speaks_for(group, member_id, instance), subscription
        is_known = member_id in group.members or instance in group.static
        if not is_known and len(group.members) >= self._settings.consumer.max_size:
            return ErrorCode.GROUP_MAX_SIZE_REACHED, subscription
        return ErrorCode.NONE, subscription

    def _common(self, group: ConsumerGroup, names: list[str], member_id: str) -> list[str]:
        """Of these protocols, those that all members of the classic protocol support."""
        found = names
        for other_id, member in group.members.items():
            classic = member.classic_member_metadata
            if classic is not None and other_id != member_id:
                theirs = {protocol.name for protocol in classic.supported_protocols}
                found = [name for name in found if name in theirs]
        return found

    def _enter(
        self,
        group: ConsumerGroup,
        call: Call,
        request: JoinGroupRequest,
        member_id: str,
        subscription: Subscription,
    ) -> None:
        member = _member(call, request, subscription)
        group, has_changed = self._heartbeats.change(group, member_id, member)
        current = self._heartbeats.reconcile(group, member_id, self._owned(subscription), has_changed=has_changed)
        self._sessions.forget(group.group_id, member_id)
        self._sessions.hear(group, member_id)
        self._sessions.reconciled(group, member_id)
        sync_ends_ms = self._turn.now_ms + member.rebalance_timeout_ms
        self._turn.timers.arm(MemberSyncEnds(group.group_id, member_id), sync_ends_ms)
        response = JoinGroupResponse(
            generation_id=current.epoch,
            protocol_type=CONSUMER,
            protocol_name=request.protocols[0].name,
            member_id=member_id,
        )
        self._turn.answer_read(group.group_id, call.number, response)

    def _owned(self, subscription: Subscription) -> set[Partition]:
        """What it says that it has; nothing if it speaks of nothing: then it gives up all before it joins."""
        found: set[Partition] = set()
        for name, indexes in subscription.owned:
            topic = self._settings.cluster.topic(name)
            if topic is not None:
                found.update((topic.topic_id, index) for index in indexes)
        return found

    # --- sync ---

    def sync_group(self, group: ConsumerGroup, call: Call, request: SyncGroupRequest) -> None:
        error = _refusal(group, request.member_id, request.group_instance_id, request.generation_id)
        if error == ErrorCode.NONE:
            error = self._sync_refusal(group, request)
        response = SyncGroupResponse(error_code=error)
        if error == ErrorCode.NONE:
            member_id = request.member_id
            self._turn.timers.cancel(MemberSyncEnds(group.group_id, member_id))
            self._sessions.hear(group, member_id)
            response = SyncGroupResponse(
                protocol_type=CONSUMER,
                protocol_name=_protocol(group, member_id),
                assignment=self._assignment(group, member_id),
            )
        self._turn.answer_read(group.group_id, call.number, response)

    def _sync_refusal(self, group: ConsumerGroup, request: SyncGroupRequest) -> ErrorCode:
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (
            None,
            _protocol(group, request.member_id),
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        current = group.current_of(request.member_id)
        if current.state is not MemberState.UNREVOKED and current.epoch < group.assignment_epoch:
            self._await_join(group, request.member_id)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _assignment(self, group: ConsumerGroup, member_id: str) -> bytes:
        classic = group.members[member_id].classic_member_metadata
        assert classic is not None
        try:
            version = read_subscription(classic.supported_protocols[0].metadata).version
        except CorruptRecords:
            version = 0
        names: dict[str, list[int]] = {}
        for topic_id, indexes in by_topic(group.current_of(member_id).assigned).items():
            name = self._settings.cluster.name_of(topic_id)
            if name is not None:
                names[name] = indexes
        return write_assignment(version, names)

    # --- heartbeat, leave ---

    def heartbeat(self, group: ConsumerGroup, call: Call, request: GroupHeartbeatRequest) -> None:
        error = _refusal(group, request.member_id, request.group_instance_id, request.generation_id)
        if error == ErrorCode.NONE:
            self._sessions.hear(group, request.member_id)
            self._heartbeats.bump_if(group, has_changed=False)
            self._heartbeats.targets.wanted(group)
            if self._has_to_join(group, request.member_id):
                self._await_join(group, request.member_id)
                error = ErrorCode.REBALANCE_IN_PROGRESS
        self._turn.answer_read(group.group_id, call.number, GroupHeartbeatResponse(error_code=error))

    def _has_to_join(self, group: ConsumerGroup, member_id: str) -> bool:
        """There is a newer target, it has to give up something, or something that it waits for is free."""
        current = group.current_of(member_id)
        if current.epoch < group.assignment_epoch or current.state is MemberState.UNREVOKED:
            return True
        return current.state is MemberState.UNRELEASED and self._gains(group, member_id, current)

    def _gains(self, group: ConsumerGroup, member_id: str, current: Current) -> bool:
        target = self._heartbeats.target_of(group, member_id)
        return any(group.is_free_for(member_id, one) for one in target - current.assigned.keys())

    def _await_join(self, group: ConsumerGroup, member_id: str) -> None:
        key = MemberJoinEnds(group.group_id, member_id)
        if key not in self._turn.timers:
            self._turn.timers.arm(key, self._turn.now_ms + group.members[member_id].rebalance_timeout_ms)

    def leave(self, group: ConsumerGroup, call: Call, request: LeaveGroupRequest) -> None:
        """One result for each. Also of members of the consumer protocol: an administrator removes them."""
        left: list[str] = []
        results: list[LeftMember] = []
        for one in request.members:
            member_id, error = _leaving(group, one)
            if member_id in left:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            if error == ErrorCode.NONE:
                left.append(member_id)
            results.append(
                LeftMember(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error)
            )
        if left:
            self._sessions.remove(group, tuple(left))
        self._turn.answer_read(group.group_id, call.number, LeaveGroupResponse(members=tuple(results)))


def _protocol(group: ConsumerGroup, member_id: str) -> str:
    """What it is told: its own first one, as in Kafka. The coordinator assigns, so members need not agree, and what it
    was told stays true when others join."""
    classic = group.members[member_id].classic_member_metadata
    assert classic is not None
    return classic.supported_protocols[0].name


def _leaving(group: ConsumerGroup, one: LeavingMember) -> tuple[str, ErrorCode]:
    member_id = one.member_id
    if not member_id and one.group_instance_id is not None:
        member_id = group.static.get(one.group_instance_id, "")
    if one.group_instance_id is not None:
        return member_id, _speaks_for(group, member_id, one.group_instance_id)
    return member_id, ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def _speaks_for(group: ConsumerGroup, member_id: str, instance: str) -> ErrorCode:
    holder = group.static.get(instance)
    if holder is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if holder == member_id else ErrorCode.FENCED_INSTANCE_ID


def _refusal(group: ConsumerGroup, member_id: str, instance: str | None, generation: int) -> ErrorCode:
    if instance is not None:
        error = _speaks_for(group, member_id, instance)
        if error != ErrorCode.NONE:
            return error
    member = group.members.get(member_id)
    if member is None or member.classic_member_metadata is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if generation == group.current_of(member_id).epoch else ErrorCode.ILLEGAL_GENERATION


def _member(call: Call, request: JoinGroupRequest, subscription: Subscription) -> Member:
    timeout_ms = request.rebalance_timeout_ms
    return Member(
        instance_id=request.group_instance_id,
        rack_id=subscription.rack,
        client_id=call.client_id,
        client_host=call.client_host,
        subscribed_topic_names=tuple(sorted(set(subscription.topics))),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=request.session_timeout_ms if timeout_ms < 0 else timeout_ms,
        server_assignor=None,
        classic_member_metadata=ClassicMemberMetadata(
            request.session_timeout_ms,
            tuple(ClassicProtocol(one.name, one.metadata) for one in request.protocols),
        ),
    )
