"""Members of consumer groups that go, or stand aside for a moment, looked at as it is decided.

- consumer-thrown-out: a member goes because it, or an administrator, says so, because a timer of that member has ended,
  or because its place is taken under its instance id. Nothing else takes it away.
- revocation-fences (12): a member that has not given up its partitions in time is no member any more. It may still use
  them, and is told by its next heartbeat.
- paused-keeps (18): a static member that stands aside keeps what it was assigned.
"""

from __future__ import annotations

from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.reasons import because
from quorumlog.messages.groups import ConsumerGroupHeartbeatRequest, LeaveGroupRequest
from quorumlog_broker.coordinator.group_turn import RevocationEnds
from quorumlog_broker.coordinator.groups.consumer.protocol import ConsumerProtocol
from quorumlog_broker.coordinator.groups.consumer.reconcile import MemberState
from quorumlog_broker.coordinator.groups.consumer.state import ConsumerGroup
from quorumlog_broker.coordinator.groups.shard import GroupShard

THROWN_OUT, FENCES, KEEPS = "consumer-thrown-out", "revocation-fences", "paused-keeps"
GONE, PAUSED, LATE = "consumers gone", "consumers paused", "revocations late"
_LEAVES, _JOINS = -1, 0


class ConsumerSessions:
    """counts: what was looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.counts = {GONE: 0, PAUSED: 0, LATE: 0}

    def listen(self, shard: GroupShard) -> None:
        """Call once for each core."""
        reasons: list[Any] = []
        consumers = shard._consumers
        heartbeats: Any = consumers.heartbeats
        classic: Any = consumers.classic_members
        heartbeats.heartbeat = because(reasons, heartbeats.heartbeat)
        classic.leave = because(reasons, classic.leave)
        self._listen_to_sessions(consumers, reasons)
        pause = heartbeats._pause

        def paused(group: ConsumerGroup, member_id: str) -> None:
            before = set(group.current_of(member_id).assigned)
            pause(group, member_id)
            self.counts[PAUSED] += 1
            after = group.owned(member_id)
            if before != after:
                text = f"{member_id} of group {group.group_id} stands aside with {before}, and has {after} then"
                self._findings.broken(KEEPS, text)

        heartbeats._pause = paused

    def _listen_to_sessions(self, consumers: ConsumerProtocol, reasons: list[Any]) -> None:
        sessions: Any = consumers.sessions
        remove, timer = sessions.remove, sessions.timer

        def removed(group: ConsumerGroup, member_ids: tuple[str, ...]) -> None:
            self.counts[GONE] += len(member_ids)
            for member_id in member_ids:
                if not (reasons and _may_go(reasons[-1], group, member_id)):
                    text = f"group {group.group_id} throws {member_id} out, because of {reasons[-1:]}"
                    self._findings.broken(THROWN_OUT, text)
            remove(group, member_ids)

        def ended(key: Any) -> None:
            is_late = isinstance(key, RevocationEnds) and _is_unrevoked(consumers, key)
            timer(key)
            if is_late:
                self.counts[LATE] += 1
                group = consumers.groups.get(key.group_id)
                if group is not None and key.member_id in group.members:
                    text = f"{key.member_id} of group {key.group_id} goes on, and has not given up its partitions"
                    self._findings.broken(FENCES, text)

        sessions.remove, sessions.timer = removed, because(reasons, ended)


def _is_unrevoked(consumers: ConsumerProtocol, key: RevocationEnds) -> bool:
    group = consumers.groups.get(key.group_id)
    if group is None or key.member_id not in group.members:
        return False
    return group.current_of(key.member_id).state is MemberState.UNREVOKED


def _may_go(reason: Any, group: ConsumerGroup, member_id: str) -> bool:
    """reason: a request, or the key of a timer."""
    if isinstance(reason, LeaveGroupRequest):
        instances = [group.static.get(one.group_instance_id or "") for one in reason.members]
        return member_id in (*instances, *(one.member_id for one in reason.members))
    if isinstance(reason, ConsumerGroupHeartbeatRequest):
        leaves = reason.member_epoch == _LEAVES and reason.member_id == member_id
        return leaves or (reason.member_epoch == _JOINS and reason.group_instance_id is not None)
    return getattr(reason, "member_id", None) == member_id
