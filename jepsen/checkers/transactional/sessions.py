"""Producers of transactional ids: what InitProducerId gave to whom, and who went on after another one had come.

- producer-id-shared: a producer id belongs to one transactional id.
- epoch-fell: of two sessions of one producer id, the one that began after the other had ended has the higher epoch.
- producer-id-returned: an id that was given a new producer id does not get the former one again.
- zombie-commit: no commit is asked for and acknowledged once a later session of the id has begun.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import accumulate

from jepsen.checkers.transactional.events import OPEN_NS, Outcome, Session
from jepsen.checkers.transactional.report import Report
from jepsen.checkers.transactional.values import Transactions


class Sessions:
    def __init__(self, transactions: Transactions, report: Report) -> None:
        self.transactions, self.report = transactions, report
        self.all: list[Session] = []

    def check(self) -> None:
        owners: dict[int, str] = {}
        by_id: dict[str, list[Session]] = defaultdict(list)
        for one in self.all:
            by_id[one.transactional_id].append(one)
            owner = owners.setdefault(one.producer_id, one.transactional_id)
            if owner != one.transactional_id:
                self.report.found("producer-id-shared", f"{one}, which is of {owner}")
        ended_before: dict[str, _EndOf] = {}
        for name, sessions in by_id.items():
            self._check_order(sessions)
            ended_before[name] = _EndOf(sessions)
        self._check_zombies(ended_before)

    def _check_order(self, sessions: list[Session]) -> None:
        """Looks at each session and what had ended before it began."""
        newest: dict[int, Session] = {}  # by producer id: the highest epoch of an ended session
        gone: dict[int, Session] = {}  # by producer id: a session that had another one, later
        ended = sorted(sessions, key=lambda one: one.ended_ns)
        at = 0
        last: Session | None = None  # the ended one that began last
        for one in sorted(sessions, key=lambda one: one.invoked_ns):
            while at < len(ended) and ended[at].ended_ns < one.invoked_ns:
                former = ended[at]
                if former.producer_id not in newest or newest[former.producer_id].epoch < former.epoch:
                    newest[former.producer_id] = former
                if last is not None and last.producer_id != former.producer_id and last.ended_ns < former.invoked_ns:
                    gone[last.producer_id] = former
                if last is None or last.invoked_ns < former.invoked_ns:
                    last = former
                at += 1
            same = newest.get(one.producer_id)
            if same is not None and one.epoch <= same.epoch:
                self.report.found("epoch-fell", f"{one}, after {same}")
            if one.producer_id in gone:
                self.report.found("producer-id-returned", f"{one}, after {gone[one.producer_id]}")

    def _check_zombies(self, later: dict[str, _EndOf]) -> None:
        transactions = self.transactions
        for number in range(transactions.count):
            index = transactions.session[number]
            if index < 0 or transactions.outcome[number] != Outcome.COMMITTED:
                continue
            mine = self.all[index]
            if later[mine.transactional_id].first_after(mine.ended_ns) < transactions.ending_ns[number]:
                who = transactions.describe(number)
                self.report.found("zombie-commit", f"{who} was committed by {mine} after a later session had begun")


class _EndOf:
    """When the first session ended that began after a given time."""

    def __init__(self, sessions: list[Session]) -> None:
        ordered = sorted(sessions, key=lambda one: one.invoked_ns)
        self._invoked = [one.invoked_ns for one in ordered]
        ends = [one.ended_ns for one in reversed(ordered)]
        self._first_end = [*reversed(list(accumulate(ends, min))), OPEN_NS]

    def first_after(self, at_ns: int) -> int:
        return self._first_end[bisect_left(self._invoked, at_ns + 1)]
