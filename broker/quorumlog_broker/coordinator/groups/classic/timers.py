"""What happens when a timer of a classic group ends."""

from __future__ import annotations

from quorumlog_broker.coordinator.group_turn import ClassicTimer, DelayEnds, JoinEnds, SessionEnds, SyncEnds
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.rebalance import Rebalance
from quorumlog_broker.coordinator.groups.classic.sync import Generation


class ClassicTimers:
    def __init__(self, rebalance: Rebalance, generation: Generation) -> None:
        self._rebalance, self._generation = rebalance, generation

    def run(self, group: ClassicGroup, key: ClassicTimer) -> None:
        match key:
            case SessionEnds(_, member_id):
                self._session_ended(group, member_id)
            case DelayEnds():
                if group.state is State.PREPARING:
                    self._rebalance.delay_ended(group)
            case JoinEnds():
                if group.state is State.PREPARING:
                    self._rebalance.complete(group)
            case SyncEnds():
                self._syncs_missing(group)

    def _session_ended(self, group: ClassicGroup, member_id: str) -> None:
        if member_id in group.pending_ids:
            self._rebalance.forget_pending(group, member_id)
            return
        member = group.members.get(member_id)
        if member is None or (member.is_waiting and not member.is_new):
            return  # while a call of it is parked it cannot send heartbeats
        text = f"member {member_id} was not heard of for {member.session_timeout_ms} ms, its session, and is out"
        self._rebalance.notice(group, text)
        self._rebalance.remove(group, member)
        self._generation.went(group)

    def _syncs_missing(self, group: ClassicGroup) -> None:
        if group.state not in (State.COMPLETING, State.STABLE) or not group.unsynced:
            return
        for member_id in list(group.unsynced):
            self._rebalance.notice(group, f"member {member_id} did not fetch its assignment in time and is out")
            self._rebalance.remove(group, group.members[member_id])
        self._rebalance.begin(group)
