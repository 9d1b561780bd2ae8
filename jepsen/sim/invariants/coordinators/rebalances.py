"""Rebalances of classic groups, looked at as they end and as members go.

- rebalance-awaits (7): a generation that begins before the time of its rebalance is over has every member, and nobody
  who was given an id is still about to join.
- member-thrown-out: a member goes because it leaves, because a timer of it or of its rebalance has ended, or because
  its group has no room. Nothing else takes it away.
"""

from __future__ import annotations

from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.reasons import because
from quorumlog_broker.coordinator.group_turn import DelayEnds, JoinEnds
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, Member
from quorumlog_broker.coordinator.groups.shard import GroupShard

AWAITS, THROWN_OUT = "rebalance-awaits", "member-thrown-out"
COMPLETED = "rebalances completed"


class Rebalances:
    """counts: rebalances that were looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.counts = {COMPLETED: 0}

    def listen(self, shard: GroupShard) -> None:
        """Call once for each core."""
        reasons: list[object] = []  # for which somebody may go now
        rebalance: Any = shard._rebalance
        timers: Any = shard._classic_timers
        complete, remove, run = rebalance.complete, rebalance.remove, timers.run

        def completed(group: ClassicGroup) -> None:
            if not (reasons and isinstance(reasons[-1], JoinEnds | DelayEnds)):
                self._look(group)
            self.counts[COMPLETED] += 1
            complete(group)

        def removed(group: ClassicGroup, member: Member) -> None:
            if not reasons:
                text = f"group {group.group_id} throws {member.member_id} out, {group.state.value}"
                self._findings.broken(THROWN_OUT, text)
            remove(group, member)

        rebalance.complete, rebalance.remove = completed, removed
        timers.run = because(reasons, run)
        generation: Any = shard._generation
        membership: Any = shard._membership
        generation.leave = because(reasons, generation.leave)
        membership._drop_overflow = because(reasons, membership._drop_overflow)

    def _look(self, group: ClassicGroup) -> None:
        missing = sorted(name for name, member in group.members.items() if member.join is None)
        if missing or group.pending_ids:
            text = (
                f"group {group.group_id} goes on without {missing}, and {sorted(group.pending_ids)} are about to join"
            )
            self._findings.broken(AWAITS, text)
