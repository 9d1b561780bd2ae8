"""Live coordinators of joint transactions (decision 112).

- joint-told-early: a decision is told while its record is not committed, whoever tells it.
- joint-complete-early: CommitJoint says "complete" while markers of a commit of the group are missing.

What the core holds is compared with a fresh replay like the rest (state-is-replay, invariant 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.compacted_replay import Replayed
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import AbortJointResponse, BeginJointResponse, CommitJointResponse
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import JointKey
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.table import PREPARE_COMMIT

TOLD, COMPLETE = "joint-told-early", "joint-complete-early"
ANSWERS, REMOVED = "joint decisions told", "joint decisions compacted away"


class JointCores:
    """counts: what was looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.counts = {ANSWERS: 0, REMOVED: 0}

    def listen(self, shard: TransactionShard, where: str) -> None:
        """Call once for each core, before anybody else listens to its answers."""
        groups: dict[int, str] = {}  # of calls that are not answered
        parts: tuple[Any, ...] = (shard._begin, shard._commit, shard._abort)
        for part in parts:
            part.call = _noting(groups, part.call)
        turn: Any = shard._turn
        answer: Callable[[int, Any], None] = turn.answer

        def answered(call: int, response: Any) -> None:
            group = groups.pop(call, None)
            if group is not None and says_decided(response):
                self.counts[ANSWERS] += 1
                self._look(shard, group, response, f"{where}: {group}: {response}")
            answer(call, response)

        turn.answer = answered

    def _look(self, shard: TransactionShard, group: str, response: Any, what: str) -> None:
        if shard._turn.is_pending(group):
            self._findings.broken(TOLD, f"{what}, and its record is not committed")
        if not isinstance(response, CommitJointResponse) or not response.complete:
            return
        under_way = [
            transactional_id
            for transactional_id, value in shard._table.items()
            if value.joint is not None and value.joint.group == group and value.transaction_status == PREPARE_COMMIT
        ]
        if under_way:
            self._findings.broken(COMPLETE, f"{what}, and {under_way} wait for markers")

    def compacted(self, records: Sequence[Replayed], kept: Sequence[Replayed]) -> None:
        """A core was compared with one that has loaded `kept` of these records."""
        self.counts[REMOVED] += _decisions(records) - _decisions(kept)


def _noting(groups: dict[int, str], step: Any) -> Any:
    def call(of: Any, request: Any) -> Any:
        groups[of.number] = request.group_id
        return step(of, request)

    return call


def says_decided(response: Any) -> bool:
    if isinstance(response, BeginJointResponse | AbortJointResponse):
        return response.error_code == ErrorCode.NONE and response.decided
    return isinstance(response, CommitJointResponse) and response.error_code == ErrorCode.NONE


def _decisions(records: Sequence[Replayed]) -> int:
    keys = [one.key for one in records if one.marker is None]
    return sum(isinstance(decode(TRANSACTION_TYPES, key, None).key, JointKey) for key in keys)


def joint_state(shard: TransactionShard) -> dict[str, Any]:
    """What records alone decide."""
    return {
        f"joint group {name}": (
            group.decision, dict(group.ids), dict(group.tokens), [*group.open], dict(group.preparing),
            dict(group.ending), set(group.idle),
        )
        for name, group in shard._table.joint_groups.items()
    }  # fmt: skip
