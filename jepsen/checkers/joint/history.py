"""Checks what drivers, tasks and readers of joint transactions saw, against what was decided.

- joint-lost: nothing of a decided batch's acknowledged records is readable, or a read went past one and left it out.
- joint-torn: at the end, when nothing is open, a part of a decided batch is readable, and an acknowledged part is not.
- joint-leak: a record of an attempt that no decision names was shown.
- joint-twice: a record was shown at two offsets, or an offset has shown two records.
- joint-forgotten: an acknowledged decision is not in the log, or a call behind it was told that it is missing.
- joint-invented: a decision of the log that no CommitJoint has asked for, with these children and totals.
- joint-replay: a CommitJoint with other totals, or of another checkpoint, is told that its batch is decided.
- joint-begun: behind the acknowledged decision of a batch, one of its tasks got a child, or a copy heard "decided".
- joint-shared: two tokens got one child.
- joint-given-up: a task got a child of a batch that its run had aborted as a whole, and had heard so, before it asked.
- joint-aborted: AbortJoint of a batch whose decision was acknowledged says that it is not decided.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from jepsen.checkers.findings import Finding
from jepsen.checkers.joint.events import (
    NO_OFFSET,
    OPEN_NS,
    AbortAnswer,
    Attempt,
    Begun,
    Commit,
    Decided,
    Missing,
    Poll,
    Row,
)
from jepsen.checkers.transactional.report import Report

Batch = tuple[str, int]
"""(group, sequence)"""


class JointHistory:
    """Takes events in any order, and judges them when all are there.

    versioned: groups of which a coordinator knows the last version alone: it cannot tell whether one below was decided.
    """

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.begun: list[Begun] = []
        self.commits: list[Commit] = []
        self.aborts: list[AbortAnswer] = []
        self.missing: list[Missing] = []
        self.polls: list[Poll] = []
        self.versioned: set[str] = set()
        self._report = Report()

    def check(self, decided: Sequence[Decided]) -> list[Finding]:
        """decided: all that the logs of coordinators hold. Once."""
        by_batch = {(one.group, one.sequence): one for one in decided}
        self._check_reads(by_batch)
        self._check_commits(decided, by_batch)
        self._check_answers(by_batch)
        return self._report.findings

    # --- what was read ---

    def _check_reads(self, by_batch: dict[Batch, Decided]) -> None:
        shown = self._shown(by_batch)
        at: dict[int, dict[int, str]] = defaultdict(dict)  # acknowledged and decided, by partition and offset
        for attempt in self.attempts:
            if self._commits(attempt, by_batch):
                for row in attempt.rows:
                    if row.acked and row.offset != NO_OFFSET:
                        at[row.partition][row.offset] = row.value
        for poll in self.polls:
            offsets = frozenset(poll.offsets)
            for offset in range(poll.start, poll.next):
                value = at[poll.partition].get(offset)
                if value is not None and offset not in offsets:
                    text = f"a read of {poll.partition} from {poll.start} to {poll.next} left out {value} at {offset}"
                    self._report.found("joint-lost", text)
        self._check_whole(by_batch, shown)

    def _shown(self, by_batch: dict[Batch, Decided]) -> set[str]:
        """Every value of the final reads. Names what no read may show."""
        tokens = {attempt.token: attempt for attempt in self.attempts}
        places: dict[str, tuple[int, int]] = {}
        values: dict[tuple[int, int], str] = {}
        final: set[str] = set()
        for poll in self.polls:
            for offset, value in zip(poll.offsets, poll.values, strict=True):
                place = (poll.partition, offset)
                if places.setdefault(value, place) != place:
                    self._report.found("joint-twice", f"{value} at {place} and at {places[value]}")
                if values.setdefault(place, value) != value:
                    self._report.found("joint-twice", f"{place} shows {value}, and showed {values[place]}")
                attempt = tokens.get(value.split("/")[-2])
                if attempt is None or not self._commits(attempt, by_batch):
                    self._report.found("joint-leak", f"{value} was read at {place}, and no decision names it")
            if poll.final:
                final.update(poll.values)
        return final

    @staticmethod
    def _commits(attempt: Attempt, by_batch: dict[Batch, Decided]) -> bool:
        one = by_batch.get((attempt.group, attempt.sequence))
        return one is not None and attempt.token in one.tokens

    def _check_whole(self, by_batch: dict[Batch, Decided], shown: set[str]) -> None:
        rows: dict[Batch, list[Row]] = defaultdict(list)
        for attempt in self.attempts:
            if self._commits(attempt, by_batch):
                rows[attempt.group, attempt.sequence] += attempt.rows
        for batch, of_batch in rows.items():
            lost = [row.value for row in of_batch if row.acked and row.value not in shown]
            if lost:
                name = "joint-torn" if any(row.value in shown for row in of_batch) else "joint-lost"
                self._report.found(name, f"{by_batch[batch]}: {len(lost)} of {len(of_batch)} are not there: {lost[:3]}")

    # --- what was told ---

    def _check_commits(self, decided: Sequence[Decided], by_batch: dict[Batch, Decided]) -> None:
        asked = {(one.group, one.sequence, one.run, one.location, one.rows, one.tokens) for one in self.commits}
        for one in decided:
            if tuple(one) not in asked:
                self._report.found("joint-invented", f"nobody has asked for {one}")
        for commit in self.commits:
            found = by_batch.get((commit.group, commit.sequence))
            if commit.acked_ns == OPEN_NS:
                continue
            if found is None:
                self._report.found("joint-forgotten", f"{commit} is not in the log")
            elif (found.rows, found.location) != (commit.rows, commit.location):
                self._report.found("joint-replay", f"{commit} is told as decided, and decided was {found}")

    def _check_answers(self, by_batch: dict[Batch, Decided]) -> None:
        acked: dict[Batch, int] = {}  # the first acknowledgement
        for commit in self.commits:
            batch = (commit.group, commit.sequence)
            acked[batch] = min(acked.get(batch, OPEN_NS), commit.acked_ns)
        by_group: dict[str, list[Decided]] = defaultdict(list)
        for one in by_batch.values():
            by_group[one.group].append(one)
        children: dict[tuple[str, int, int], str] = {}
        given_up, runs = self._given_up(), {one.token: one.run for one in self.attempts}
        for begun in self.begun:
            found = by_batch.get((begun.group, begun.sequence))
            if begun.child is None:
                if found is None or found.location != begun.location:
                    self._report.found("joint-begun", f"{begun} is told as decided, and decided was {found}")
                continue
            if acked.get((begun.group, begun.sequence), OPEN_NS) <= begun.invoked_ns:
                self._report.found("joint-begun", f"{begun}, behind the decision of its batch")
            if children.setdefault(begun.child, begun.token) != begun.token:
                self._report.found("joint-shared", f"{begun}: {children[begun.child]} has that child")
            if given_up.get((begun.group, begun.sequence, runs.get(begun.token, "")), OPEN_NS) < begun.invoked_ns:
                self._report.found("joint-given-up", f"{begun}, behind the abort of its run")
        for answer in self.aborts:
            batch = (answer.abort.group, answer.abort.sequence)
            if batch[0] in self.versioned and any(one.sequence > batch[1] for one in by_group[batch[0]]):
                continue
            if acked.get(batch, OPEN_NS) <= answer.invoked_ns and not answer.decided:
                self._report.found("joint-aborted", f"{answer}, behind the decision of its batch")
        for missing in self.missing:
            before = (missing.group, missing.sequence - 1)
            if acked.get(before, OPEN_NS) <= missing.invoked_ns:
                self._report.found("joint-forgotten", f"{missing}, and the decision before it was acknowledged")

    def _given_up(self) -> dict[tuple[str, int, str], int]:
        """When it was first answered, by (group, sequence, run)."""
        found: dict[tuple[str, int, str], int] = {}
        for answer in self.aborts:
            abort = answer.abort
            if abort.run and not abort.token and not answer.decided:
                key = (abort.group, abort.sequence, abort.run)
                found[key] = min(found.get(key, OPEN_NS), answer.answered_ns)
        return found

    def count(self, decided: Sequence[Decided]) -> Counter[str]:
        """What was looked at."""
        by_batch = {(one.group, one.sequence): one for one in decided}
        committed = [one for one in self.attempts if self._commits(one, by_batch)]
        return Counter(
            {
                "joint attempts": len(self.attempts),
                "joint records committed": sum(row.acked for one in committed for row in one.rows),
                "joint records of others": sum(
                    row.acked for one in self.attempts if not self._commits(one, by_batch) for row in one.rows
                ),
                "joint reads": sum(bool(poll.values) for poll in self.polls),
            }
        )
