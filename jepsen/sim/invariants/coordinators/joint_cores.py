"""Live coordinators of joint transactions (decision 112).

- joint-told-early: a decision is told while its record is not committed, whoever tells it.
- joint-complete-early: CommitJoint says "complete" while markers of a commit of the group are missing.
- joint-slots-above-need (7): a group gets another slot while one is idle.
- joint-slot-uncommitted: a slot is given again before the end of its last transaction is committed.
- joint-decided-unprepared: a decision comes before the Prepare records of the last one are committed, and compaction
  could take it.
- joint-timed-out-early (5): a child times out before its time.
- joint-level: a child begins, or a batch is decided, below the level of joint.version that this takes, as far as the
  coordinator knows; or something of a group is open at level 0.

What the core holds is compared with a fresh replay like the rest (state-is-replay, invariant 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.coordinators.compacted_replay import Replayed
from quorumlog.errors import ErrorCode
from quorumlog.messages.joint import AbortJointResponse, BeginJointResponse, CommitJointResponse
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode
from quorumlog.records.coordinator.joint import Cause, JointKey
from quorumlog.records.coordinator.transactions import TransactionValue
from quorumlog_broker.coordinator.transactions.shard import TransactionShard
from quorumlog_broker.coordinator.transactions.state.joint_group import JointGroup
from quorumlog_broker.coordinator.transactions.state.table import ONGOING, PREPARE_COMMIT
from quorumlog_quorum.metadata.features import JOINT_BEGINS, JOINT_ENDS

TOLD, COMPLETE, LEVEL = "joint-told-early", "joint-complete-early", "joint-level"
MORE_SLOTS, UNCOMMITTED, UNPREPARED = "joint-slots-above-need", "joint-slot-uncommitted", "joint-decided-unprepared"
ANSWERS, REMOVED = "joint decisions told", "joint decisions compacted away"

EARLY = "joint-timed-out-early"


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
        self._listen_to_changes(shard, where)
        turn: Any = shard._turn
        answer: Callable[[int, Any], None] = turn.answer

        def answered(call: int, response: Any) -> None:
            group = groups.pop(call, None)
            if group is not None and says_decided(response):
                self.counts[ANSWERS] += 1
                self._look(shard, group, response, f"{where}: {group}: {response}")
            answer(call, response)

        turn.answer = answered

    def _listen_to_changes(self, shard: TransactionShard, where: str) -> None:
        states, preparing = cast(Any, shard._states), cast(Any, shard._preparing)
        put, decided, abort = states.put, preparing.decided, preparing.abort
        began: dict[str, int] = {}  # when, by this core

        def opened(transactional_id: str, value: TransactionValue, **named: Any) -> None:
            before = shard._table.get(transactional_id)
            begins = value.transaction_status == ONGOING and (before is None or before.transaction_status != ONGOING)
            if value.joint is not None and begins:
                self._look_at_begin(shard, transactional_id, value.joint.group, is_new=before is None, where=where)
                began[transactional_id] = shard._turn.now_ms
            put(transactional_id, value, **named)

        def noted(group: JointGroup) -> None:
            if states.joint_version() < JOINT_ENDS:
                self._findings.broken(LEVEL, f"{where}: {group.decision} at level {states.joint_version()}")
            end = group.prepared_end  # of the last one, until `decided` changes it
            if end > shard._turn.high_watermark:
                self._findings.broken(UNPREPARED, f"{where}: {group.decision}; the last one goes to {end}")
            decided(group)

        def aborted(transactional_id: str, cause: Cause) -> None:
            value = shard._table.get(transactional_id)
            began_ms = began.pop(transactional_id, None)
            if cause == Cause.TIMED_OUT and value is not None and began_ms is not None:
                lasted_ms = shard._turn.now_ms - began_ms
                if lasted_ms < value.transaction_timeout_ms:
                    text = f"{where}: {transactional_id} after {lasted_ms} of {value.transaction_timeout_ms} ms"
                    self._findings.broken(EARLY, text)
            abort(transactional_id, cause)

        states.put, preparing.decided, preparing.abort = opened, noted, aborted

    def _look_at_begin(
        self, shard: TransactionShard, transactional_id: str, name: str, *, is_new: bool, where: str
    ) -> None:
        """Before the first record of a child."""
        level, pending = shard._states.joint_version(), shard._turn.is_pending
        if level < JOINT_BEGINS:
            self._findings.broken(LEVEL, f"{where}: {transactional_id} begins at level {level}")
        if pending(transactional_id):
            self._findings.broken(UNCOMMITTED, f"{where}: {transactional_id} begins, and its last end is not committed")
        group = shard._table.joint_groups.get(name)
        idle = [] if group is None else [group.ids[slot] for slot in group.idle if not pending(group.ids[slot])]
        if is_new and idle:
            self._findings.broken(MORE_SLOTS, f"{where}: {transactional_id} is new, and {idle} are idle")

    def look(self, shard: TransactionShard, where: str) -> None:
        """At a core that is active, when there is a new record."""
        if shard._states.joint_version() >= JOINT_ENDS:
            return
        for name, group in shard._table.joint_groups.items():
            if not group.is_at_rest:
                self._findings.broken(LEVEL, f"{where}: {name} is not at rest at level 0: {joint_state(shard)}")

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
    given_up = {"joint batches given up": [*shard._table.given_up.items()]}
    return given_up | {
        f"joint group {name}": (
            group.decision, dict(group.ids), dict(group.tokens), [*group.open], dict(group.preparing),
            dict(group.ending), set(group.idle),
        )
        for name, group in shard._table.joint_groups.items()
    }  # fmt: skip
