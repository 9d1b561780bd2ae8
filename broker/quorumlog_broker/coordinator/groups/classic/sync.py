"""SyncGroup, Heartbeat and LeaveGroup of a classic group."""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import (
    GroupHeartbeatRequest,
    LeavingMember,
    LeftMember,
    SyncGroupRequest,
    SyncGroupResponse,
)
from quorumlog.records.coordinator import encode_key
from quorumlog.records.coordinator.offsets import GROUP_METADATA, GroupMetadataKey
from quorumlog.slices import Pace, Sliced
from quorumlog_broker.coordinator.group_turn import Call, SyncEnds, Turn
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.membership import unknown_or_fenced
from quorumlog_broker.coordinator.groups.classic.rebalance import GROUP_VERSION, Rebalance


class Generation:
    """What the members of a generation say."""

    def __init__(self, turn: Turn, rebalance: Rebalance) -> None:
        self._turn, self._rebalance = turn, rebalance

    # --- sync ---

    def sync_group(self, group: ClassicGroup, call: Call, request: SyncGroupRequest) -> Sliced[None]:
        """Answered now, or parked until the leader's assignment is committed."""
        error = self._refusal(group, request)
        if error != ErrorCode.NONE:
            self._turn.answer(call.number, SyncGroupResponse(error_code=error))
            return
        member = group.members[request.member_id]
        group.unsynced.discard(member.member_id)
        if not group.unsynced:
            self._turn.timers.cancel(SyncEnds(group.group_id))
        if member.parked_sync is not None:  # of a connection that is gone
            self._turn.answer(member.parked_sync, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.parked_sync = call.number
        if group.state is State.STABLE:
            self._rebalance.answer_sync(group, member)
        elif group.is_leader(member.member_id):
            yield from self._assign(group, {one.member_id: one.assignment for one in request.assignments})

    def _refusal(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        error = unknown_or_fenced(group, request.member_id, request.group_instance_id)
        if error != ErrorCode.NONE:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
            None,
            group.protocol,
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state in (State.EMPTY, State.DEAD):
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE

    def _assign(self, group: ClassicGroup, assignments: dict[str, bytes]) -> Sliced[None]:
        """Write the generation. It is stable, and its members hear of it, once the record is committed."""
        generation = group.generation
        value = yield from GROUP_METADATA.encode_sliced(group.to_value(assignments), GROUP_VERSION, Pace())
        if group.state is not State.COMPLETING or group.generation != generation:
            return  # a timer has begun another rebalance between two steps, and sent those that wait to join again
        key = encode_key(GroupMetadataKey(group.group_id))
        if len(key) + len(value) > self._turn.largest_record_bytes:
            self._rebalance.answer_syncs(group, ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka does
            self._rebalance.begin(group)
            return
        self._turn.append(group.group_id, key, value)

        def stable() -> None:
            if group.state is not State.COMPLETING or group.generation != generation:
                return  # another rebalance has begun meanwhile
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
            group.enter(State.STABLE, self._turn.wall_ms)
            self._rebalance.answer_syncs(group)

        self._turn.after_commit(stable)

    # --- heartbeat ---

    def heartbeat(self, group: ClassicGroup, request: GroupHeartbeatRequest) -> ErrorCode:
        """Never waits: it changes nothing that is written."""
        error = unknown_or_fenced(group, request.member_id, request.group_instance_id)
        if error != ErrorCode.NONE:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state in (State.EMPTY, State.DEAD):
            return ErrorCode.UNKNOWN_MEMBER_ID
        self._rebalance.hear(group, group.members[request.member_id])
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE

    # --- leave ---

    def leave(self, group: ClassicGroup, leaving: tuple[LeavingMember, ...]) -> tuple[LeftMember, ...]:
        """One result for each. The group rebalances once for all of them."""
        results, left = [], 0
        for one in leaving:
            error = self._leave(group, one)
            results.append(
                LeftMember(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error)
            )
            left += error == ErrorCode.NONE
        if left:
            self.went(group)
        return tuple(results)

    def _leave(self, group: ClassicGroup, one: LeavingMember) -> ErrorCode:
        member_id = one.member_id
        if not member_id and one.group_instance_id is not None:  # an administrator removes it
            member_id = group.static.get(one.group_instance_id, "")
        elif member_id in group.pending_ids and one.group_instance_id is None:
            self._rebalance.forget_pending(group, member_id)
            return ErrorCode.NONE
        error = unknown_or_fenced(group, member_id, one.group_instance_id)
        if error == ErrorCode.NONE:
            self._rebalance.remove(group, group.members[member_id])
        return error

    def went(self, group: ClassicGroup) -> None:
        """Members were removed: those that are left share their work."""
        if group.state in (State.STABLE, State.COMPLETING):
            self._rebalance.begin(group)
        else:
            self._rebalance.complete_if_all_joined(group)
