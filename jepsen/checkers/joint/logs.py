"""The log of coordinators of joint transactions: what was decided, and whether each child ended as that says.

Names of findings, with the invariants of decision 112:
- joint-decided-twice (1): a sequence of a group is decided again.
- joint-gap (1): a stream's decision does not follow the one before it, or a writer's version falls.
- joint-copy: a group's decisions come from two checkpoints.
- joint-superseded (3): a run decides after another one has.
- joint-not-open (2): a decision names a child that is not open with this epoch and sequence.
- joint-undone (2): a child that a decision has found open ends in another way than the decision says, or goes on.
- joint-unasked (2, 5): a child commits without a decision, or aborts without one, an AbortJoint or its time-out.
- joint-epoch: a child's markers do not have the epoch behind its own.
- joint-opened (4): a child opens again with the token that it had, so by a late batch.
- joint-token-twice (4): a token has two open children.
- joint-elsewhere: a group has records in two partitions.
- joint-slot (7): a slot has two ids.
- joint-open (5): a child is open at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from jepsen.checkers.findings import Finding
from jepsen.checkers.joint.events import Abort, ChildRecord, Decided, DecisionRecord
from jepsen.checkers.transactional.report import Report

ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = 1, 2, 3, 4, 5
STREAM = 0
NO_CAUSE, TIMED_OUT, ABORTED, NOT_NAMED = range(4)
LogRecord = ChildRecord | DecisionRecord


class _Group:
    """newest: records by slot. due: by slot, whether the child that a decision has found open has to commit."""

    def __init__(self) -> None:
        self.decided: list[DecisionRecord] = []
        self.newest: dict[int, ChildRecord] = {}
        self.due: dict[int, bool] = {}


class JointLogs:
    """aborts: all that was asked for. counts: what was looked at."""

    def __init__(self, aborts: Iterable[Abort]) -> None:
        self._aborts = frozenset(aborts)
        self._report = Report()
        self._groups: dict[str, _Group] = {}
        self._where: dict[str, int] = {}
        self.decided: list[Decided] = []
        self.counts: Counter[str] = Counter()

    @property
    def findings(self) -> list[Finding]:
        return self._report.findings

    def check(self, logs: Sequence[Sequence[LogRecord]]) -> None:
        """logs: whole, of each partition, in the order of offsets. Once."""
        for partition, log in enumerate(logs):
            for record in log:
                if self._where.setdefault(record.group, partition) != partition:
                    text = f"partition {partition} has {record}, and others lie in {self._where[record.group]}"
                    self._report.found("joint-elsewhere", text)
                group = self._groups.setdefault(record.group, _Group())
                if isinstance(record, DecisionRecord):
                    self._decide(group, record)
                else:
                    self._child(group, record)
        for group in self._groups.values():
            for one in group.newest.values():
                if one.status not in (COMPLETE_COMMIT, COMPLETE_ABORT):
                    self._report.found("joint-open", f"at the end: {one}")

    # --- decisions ---

    def _decide(self, group: _Group, one: DecisionRecord) -> None:
        self.counts["joint decisions"] += 1
        self._check_order(group, one)
        tokens = []
        for slot, epoch in one.children.items():
            child = group.newest.get(slot)
            is_open = child is not None and child.status == ONGOING and slot not in group.due
            if child is None or not is_open or (child.epoch, child.sequence) != (epoch, one.sequence):
                self._report.found("joint-not-open", f"{one} names slot {slot}, epoch {epoch}, which is {child}")
            tokens.append("?" if child is None else child.token)
        for slot, child in group.newest.items():
            if child.status == ONGOING and slot not in group.due:
                group.due[slot] = one.children.get(slot) == child.epoch
                self.counts["joint children not named"] += not group.due[slot]
        group.decided.append(one)
        rows = one.facts.get("rows", -1)
        self.decided.append(Decided(one.group, one.sequence, one.run, one.location, rows, frozenset(tokens)))

    def _check_order(self, group: _Group, one: DecisionRecord) -> None:
        if any(other.sequence == one.sequence for other in group.decided):
            self._report.found("joint-decided-twice", f"{one} after {group.decided[-1]}")
        last = group.decided[-1] if group.decided else None
        before = -1 if last is None else last.sequence
        if one.sequence < before or (one.kind == STREAM and one.sequence > before + 1):
            self._report.found("joint-gap", f"{one} after {last}")
        if last is None:
            return
        if one.location != last.location:
            self._report.found("joint-copy", f"{one} after {last}")
        if one.run != last.run:
            self.counts["joint runs superseded"] += 1
            if any(other.run == one.run for other in group.decided):
                self._report.found("joint-superseded", f"{one}, and {last.run} had decided since")

    # --- children ---

    def _child(self, group: _Group, one: ChildRecord) -> None:
        before = group.newest.get(one.slot)
        if before is not None and before.transactional_id != one.transactional_id:
            self._report.found("joint-slot", f"{one} after {before}")
        if one.status == ONGOING:
            self._open(group, before, one)
        elif one.status in (PREPARE_COMMIT, PREPARE_ABORT):
            self._prepare(group, before, one)
        group.newest[one.slot] = one

    def _open(self, group: _Group, before: ChildRecord | None, one: ChildRecord) -> None:
        if one.slot in group.due:
            self._report.found("joint-undone", f"{one} goes on behind a decision")
        if before is not None and before.status == ONGOING:
            return  # it has more partitions
        self.counts["joint children"] += 1
        self.counts["joint slots"] += before is None
        if before is not None and before.token == one.token:
            self._report.found("joint-opened", f"{one} after {before}")
        for other in group.newest.values():
            if other.token == one.token and other.slot != one.slot and other.status == ONGOING:
                self._report.found("joint-token-twice", f"{one} beside {other}")

    def _prepare(self, group: _Group, before: ChildRecord | None, one: ChildRecord) -> None:
        if before is None or before.status != ONGOING or before.token != one.token:
            self._report.found("joint-unasked", f"{one} after {before}")
            return
        if (one.producer_id, one.epoch) != (before.producer_id, before.epoch + 1):
            self._report.found("joint-epoch", f"{one} after {before}")
        commits = one.status == PREPARE_COMMIT
        due = group.due.pop(one.slot, None)
        if due is not None:
            if due != commits or one.cause != (NO_CAUSE if commits else NOT_NAMED):
                self._report.found("joint-undone", f"{one}, and its group had decided {due}")
        elif commits or not self._is_asked(one):
            self._report.found("joint-unasked", f"{one} without a decision")
        self.counts["joint children timed out"] += one.cause == TIMED_OUT
        self.counts["joint children aborted"] += one.cause == ABORTED

    def _is_asked(self, one: ChildRecord) -> bool:
        """To abort without a decision."""
        if one.cause != ABORTED:
            return one.cause == TIMED_OUT
        asked = Abort(one.group, one.sequence, one.location)
        runs, tokens = ("", one.run), ("", one.token)
        return any(asked._replace(run=run, token=token) in self._aborts for run in runs for token in tokens)
