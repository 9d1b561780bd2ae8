"""JoinGroup: who may enter a classic group, and what the member has to wait for (KIP-394, KIP-345, KIP-814)."""

from __future__ import annotations

from collections.abc import Callable

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import JoinGroupRequest, JoinGroupResponse
from quorumlog.records.coordinator.offsets import GroupMetadataKey
from quorumlog.settings.groups import GroupConfig
from quorumlog_broker.coordinator.group_turn import Call, SessionEnds, Turn
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, Member, Protocols, State
from quorumlog_broker.coordinator.groups.classic.rebalance import GROUP_VERSION, Rebalance


class Membership:
    """new_uuid: a fresh one as text, for member ids."""

    def __init__(self, turn: Turn, config: GroupConfig, rebalance: Rebalance, new_uuid: Callable[[], str]) -> None:
        self._turn, self._config, self._rebalance, self._new_uuid = turn, config, rebalance, new_uuid

    def join(self, group: ClassicGroup, call: Call, request: JoinGroupRequest) -> None:
        """Answered now, or parked until the rebalance completes. The group's id and the session's time-out are good."""
        protocols = tuple((one.name, one.metadata) for one in request.protocols)
        if not group.supports(request.protocol_type, protocols):
            self._refuse(call, request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif self._is_full(group, request.member_id):
            self._drop_overflow(group, request.member_id)
            self._turn.answer(call.number, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        elif request.member_id:
            self._join_known(group, call, request, protocols)
        elif request.group_instance_id is None:
            self._join_dynamic(group, call, request, protocols)
        else:
            self._join_static(group, call, request, protocols, request.group_instance_id)

    def _is_full(self, group: ClassicGroup, member_id: str) -> bool:
        """In a rebalance, places are given to those that wait; the others may not come back."""
        if group.state in (State.EMPTY, State.DEAD):
            return False
        if group.state is State.PREPARING:
            known = group.members.get(member_id)
            return not (known is not None and known.join is not None) and group.waiting_joins >= self._config.max_size
        return member_id not in group.members and len(group.members) >= self._config.max_size

    def _drop_overflow(self, group: ClassicGroup, member_id: str) -> None:
        """Nobody waits for it any more: those that have joined may be all by now."""
        known = group.members.get(member_id)
        if known is not None:
            self._rebalance.remove(group, known)
            self._rebalance.complete_if_all_joined(group)
        elif member_id in group.pending_ids:
            self._rebalance.forget_pending(group, member_id)

    # --- a member without an id ---

    def _join_dynamic(self, group: ClassicGroup, call: Call, request: JoinGroupRequest, protocols: Protocols) -> None:
        member_id = f"{call.client_id}-{self._new_uuid()}"
        if not request.takes_member_id:
            self._add(group, call, request, protocols, member_id)
            return
        group.pending_ids.add(member_id)
        key = SessionEnds(group.group_id, member_id)
        self._turn.timers.arm(key, self._turn.now_ms + request.session_timeout_ms)
        response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        self._turn.answer(call.number, response)

    def _add(
        self, group: ClassicGroup, call: Call, request: JoinGroupRequest, protocols: Protocols, member_id: str
    ) -> None:
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=call.client_id,
            client_host=call.client_host,
            rebalance_timeout_ms=_rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocols,
            is_new=True,
        )
        if group.is_initial:
            group.has_new_member = True
        group.add(member, request.protocol_type)
        group.park_join(member, call.number)
        key = SessionEnds(group.group_id, member_id)
        self._turn.timers.arm(key, self._turn.now_ms + self._config.new_member_join_timeout_ms)
        self._rebalance.begin_or_go_on(group)

    # --- a static member (KIP-345) ---

    def _join_static(
        self, group: ClassicGroup, call: Call, request: JoinGroupRequest, protocols: Protocols, instance: str
    ) -> None:
        new_id = f"{instance}-{self._new_uuid()}"
        old_id = group.static.get(instance)
        if old_id is None:
            self._add(group, call, request, protocols, new_id)
            return
        old_leader = group.leader or ""
        old = group.members[old_id]
        self._rebalance.refuse_join(group, old, ErrorCode.FENCED_INSTANCE_ID)
        self._rebalance.answer_sync(group, old, ErrorCode.FENCED_INSTANCE_ID)
        self._turn.timers.cancel(SessionEnds(group.group_id, old_id))
        member = group.rename(instance, new_id)
        self._update(group, member, request, protocols)
        self._rebalance.hear(group, member)
        if group.state is State.STABLE and group.selected_protocol() == group.protocol:
            self._take_over(group, member, call, request, old_leader)
            return
        group.park_join(member, call.number)
        self._rebalance.begin_or_go_on(group)

    def _take_over(
        self, group: ClassicGroup, member: Member, call: Call, request: JoinGroupRequest, old_leader: str
    ) -> None:
        """No rebalance: the member has the place of its earlier life. It is told once the log says so, too.

        Before version 9 it is told its old id as the leader's, so that it does not assign anew.
        """
        leads = group.is_leader(member.member_id) and request.takes_skip_assignment
        response = JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "" if request.takes_skip_assignment else old_leader,
            skip_assignment=leads,
            member_id=member.member_id,
            members=group.joined_members() if leads else (),
        )
        assignments = {one.member_id: one.assignment for one in group.members.values()}
        key, value = GroupMetadataKey(group.group_id), group.to_value(assignments)
        if not self._turn.fits(key, value, GROUP_VERSION):
            self._refuse(call, request, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._turn.write(key, value, GROUP_VERSION)
        self._turn.answer_after_commit(call.number, response)

    # --- a member that has an id ---

    def _join_known(self, group: ClassicGroup, call: Call, request: JoinGroupRequest, protocols: Protocols) -> None:
        if request.member_id in group.pending_ids and request.group_instance_id is None:
            self._turn.timers.cancel(SessionEnds(group.group_id, request.member_id))
            self._add(group, call, request, protocols, request.member_id)
            return
        error = unknown_or_fenced(group, request.member_id, request.group_instance_id)
        if error == ErrorCode.NONE and group.state in (State.EMPTY, State.DEAD):
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error != ErrorCode.NONE:
            self._refuse(call, request, error)
            return
        member = group.members[request.member_id]
        if self._repeats(group, member, protocols):
            self._answer_again(group, member, call)
            return
        self._rebalance.refuse_join(group, member, ErrorCode.REBALANCE_IN_PROGRESS)  # of a connection that is gone
        self._update(group, member, request, protocols)
        group.park_join(member, call.number)
        self._rebalance.begin_or_go_on(group)

    def _repeats(self, group: ClassicGroup, member: Member, protocols: Protocols) -> bool:
        """It asks for what it has: the answer was lost, or nothing has changed. A leader may want a new assignment."""
        if member.protocols != protocols:
            return False
        return group.state is State.COMPLETING or (
            group.state is State.STABLE and not group.is_leader(member.member_id)
        )

    def _answer_again(self, group: ClassicGroup, member: Member, call: Call) -> None:
        is_leader = group.is_leader(member.member_id)
        response = JoinGroupResponse(
            generation_id=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol,
            leader=group.leader or "",
            member_id=member.member_id,
            members=group.joined_members() if is_leader and group.state is State.COMPLETING else (),
        )
        self._turn.answer(call.number, response)

    def _update(self, group: ClassicGroup, member: Member, request: JoinGroupRequest, protocols: Protocols) -> None:
        group.set_protocols(member, protocols)
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
        member.session_timeout_ms = request.session_timeout_ms

    def _refuse(self, call: Call, request: JoinGroupRequest, error: int) -> None:
        self._turn.answer(call.number, JoinGroupResponse(error_code=error, member_id=request.member_id))


def unknown_or_fenced(group: ClassicGroup, member_id: str, instance: str | None) -> ErrorCode:
    """Whether a request may speak for this member: a static one by its current id only."""
    if instance is not None:
        current = group.static.get(instance)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def _rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    timeout_ms = request.rebalance_timeout_ms
    return request.session_timeout_ms if timeout_ms < 0 else timeout_ms
