"""Offsets that transactions commit: input is taken once, and offsets and output of a transaction appear together.

- offset-invented: a fetch shows an offset that some transaction has tried to commit.
- offset-of-aborted: and that one was not aborted, nor is its output missing.
- offset-precommitted: nor had it not yet been asked to commit.
- offset-lost: a fetch shows every commit that was acknowledged before it began, or a later one.
- offset-undone: a fetch shows what an earlier fetch had shown, or more.
- offset-behind-output: once a reader has seen the output of a transaction, a fetch shows its offsets.
- input-twice, offsets-without-output, output-without-offsets: the input of the transactions whose output is in the
  final read, laid end to end, is exactly what lies before the offset of the final fetch.

A transaction that commits offsets also sends a value, by which it is known whether it was committed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from jepsen.checkers.transactional.events import NO_OFFSET, VALUES_MAX, OffsetShown, Outcome, Transaction
from jepsen.checkers.transactional.report import Report
from jepsen.checkers.transactional.values import NOT_SENT, Transactions, Values


class _Taken(NamedTuple):
    start: int
    end: int
    transaction: int


class _Bound(NamedTuple):
    """From at_ns on, a fetch that begins shows `offset` or more."""

    at_ns: int
    offset: int
    name: str
    text: str


class Offsets:
    def __init__(self, transactions: Transactions, values: Values, report: Report) -> None:
        self.transactions, self.values, self.report = transactions, values, report
        self.taken: dict[int, list[_Taken]] = defaultdict(list)
        self.shown: dict[int, list[OffsetShown]] = defaultdict(list)

    def note_consumed(self, one: Transaction) -> None:
        assert one.sent or not one.consumed, f"transaction {one.number} commits offsets and sends nothing"
        for unit, start, end in one.consumed:
            assert start < end, f"transaction {one.number} took nothing of unit {unit}"
            self.taken[unit].append(_Taken(start, end, one.number))

    def note_shown(self, shown: OffsetShown) -> None:
        self.shown[shown.unit].append(shown)

    def check(self) -> None:
        for unit in sorted({*self.taken, *self.shown}):
            visible = sorted(one for one in self.taken[unit] if self._has_output(one.transaction))
            self._check_values(unit, visible)
            self._check_times(unit, visible)
            self._check_input(unit, visible)

    def _has_output(self, number: int) -> bool:
        first = number * VALUES_MAX
        return any(self.values.final[first : first + VALUES_MAX])

    def _first_read_ns(self, number: int) -> int:
        first = number * VALUES_MAX
        slots = range(first, first + VALUES_MAX)
        return min(self.values.first_read_ns[value] for value in slots if self.values.partition[value] != NOT_SENT)

    def _check_values(self, unit: int, visible: list[_Taken]) -> None:
        tried: dict[int, list[int]] = defaultdict(list)
        for one in self.taken[unit]:
            tried[one.end].append(one.transaction)
        committed = {one.end for one in visible}
        transactions = self.transactions
        for shown in self.shown[unit]:
            if shown.offset == NO_OFFSET:
                continue
            by = tried.get(shown.offset)
            if not by:
                self.report.found("offset-invented", f"nobody has committed what {shown} shows")
            elif shown.offset not in committed:
                who = ", ".join(transactions.describe(number) for number in by)
                self.report.found("offset-of-aborted", f"{shown}: {who}, without output")
            elif shown.ended_ns < min(transactions.ending_ns[number] for number in by):
                self.report.found("offset-precommitted", f"{shown}: before the commit of {by}")

    def _check_times(self, unit: int, visible: list[_Taken]) -> None:
        bounds = [_Bound(one.ended_ns, one.offset, "offset-undone", str(one)) for one in self.shown[unit]]
        for one in visible:
            who = self.transactions.describe(one.transaction)
            if self.transactions.outcome[one.transaction] == Outcome.COMMITTED:
                ended_ns = self.transactions.ended_ns[one.transaction]
                bounds.append(_Bound(ended_ns, one.end, "offset-lost", f"the commit of {who}"))
            read_ns = self._first_read_ns(one.transaction)
            bounds.append(_Bound(read_ns, one.end, "offset-behind-output", f"a read of the output of {who}"))
        bounds.sort()
        at, known = 0, _Bound(0, NO_OFFSET, "", "")
        for shown in sorted(self.shown[unit], key=lambda one: one.invoked_ns):
            while at < len(bounds) and bounds[at].at_ns < shown.invoked_ns:
                if bounds[at].offset > known.offset:
                    known = bounds[at]
                at += 1
            if shown.offset < known.offset:
                self.report.found(known.name, f"{shown}, though {known.text} gave {known.offset} before it")

    def _check_input(self, unit: int, visible: list[_Taken]) -> None:
        final = max((one.offset for one in self.shown[unit] if one.final), default=None)
        if final is None:
            return
        end = 0
        for one in visible:
            who = f"unit {unit}: {self.transactions.describe(one.transaction)}, which took {one.start}..{one.end}"
            if one.end > max(final, 0):
                self.report.found("output-without-offsets", f"{who}, has output, and the group is at {final}")
            if one.start < end:
                self.report.found("input-twice", f"{who}, took what others had taken up to {end}")
            elif end < one.start:
                self.report.found("offsets-without-output", f"{who}, and nobody has taken {end}..{one.start}")
            end = max(end, one.end)
        if end < final:
            self.report.found("offsets-without-output", f"unit {unit} is at {final}, and output ends at {end}")
