"""Judges a run of the pipeline: each row of each batch is readable once, in order, and nothing else is. Pure.

- pipeline-lost: a row of a batch that the driver was told is decided is not readable, and none of its batch is. Also a
  record of the source that was acknowledged and is not there.
- pipeline-torn: nothing is open any more, and a part of a batch is readable and a part of it is not.
- pipeline-unfinished: a batch is not decided at the end, or records of the source are in none.
- pipeline-open: a transaction is open at the end.
- pipeline-twice: a row is readable at two places.
- pipeline-order: rows of one series stand in a partition in another order than in their batches.
- pipeline-key: a row has another key than its record.
- pipeline-invented: a row that no batch should have written, or a decision of a batch that nobody has planned.
- pipeline-totals: the driver was told of another number of rows than the batch has.
- pipeline-reads: what readers of committed records got is not what lies there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from jepsen.checkers.findings import Finding
from jepsen.checkers.transactional.report import Report
from jepsen.pipeline.history import History, Record, Row, Shape

Identity = tuple[str, str, int]
"""A row's series, value and turn: no other row has all of them."""


class Judgement:
    """findings: some of each name. number: all of them, by name. counts: what was looked at."""

    def __init__(self, history: History) -> None:
        self._history, self._report = history, Report()
        self.counts: Counter[str] = Counter()
        self._rows: dict[Identity, Row] = {_identity(row): row for row in history.expected()}
        self._read = self._identified()
        shown = self._shown()
        self._check_order()
        self._check_batches(shown)
        self._check_told()
        self._check_source()
        self._check_reads()
        for one in history.open:
            self._report.found("pipeline-open", f"{one} is open at the end")

    @property
    def findings(self) -> list[Finding]:
        return self._report.findings

    @property
    def number(self) -> Mapping[str, int]:
        return self._report.number

    def _identified(self) -> list[tuple[Identity, Record]]:
        """What is readable, by place. Rows that are alike are of batches in their order."""
        found = []
        turns: Counter[tuple[str, str]] = Counter()
        for record in sorted(self._history.committed):
            series = record.value.partition("/")[0] if self._history.shape is Shape.MAP else record.key
            found.append(((series, record.value, turns[series, record.value]), record))
            turns[series, record.value] += 1
        return found

    def _shown(self) -> set[Identity]:
        for (series, value, turn), record in self._read:
            row = self._rows.get((series, value, turn))
            if row is None and turn and (series, value, turn - 1) in self._rows:
                self._report.found("pipeline-twice", f"{record} is there {turn + 1} times, which is once too often")
            elif row is None and not turn:
                self._report.found("pipeline-invented", f"{record} is of no batch")
            elif row is not None and row.key != record.key:
                self._report.found("pipeline-key", f"{record} should have the key {row.key}, of batch {row.batch}")
        self.counts["rows readable"] = len(self._read)
        return {identity for identity, _ in self._read}

    def _check_order(self) -> None:
        last: dict[tuple[int, str], tuple[int, int, Record]] = {}
        for identity, record in self._read:
            row = self._rows.get(identity)
            if row is None:
                continue
            at, now = (record.partition, row.series), (row.batch, row.rank)
            if at in last and last[at][:2] > now:
                self._report.found("pipeline-order", f"{record} stands behind {last[at][2]}")
            last[at] = (*now, record)

    def _check_batches(self, shown: set[Identity]) -> None:
        by_batch: dict[int, list[Row]] = defaultdict(list)
        for row in self._rows.values():
            by_batch[row.batch].append(row)
        told = {one.number for one in self._history.told}
        is_open = bool(self._history.open)
        for planned in self._history.planned:
            rows = by_batch[planned.number]
            missing = [row for row in rows if _identity(row) not in shown]
            if not missing and (rows or planned.number in told):
                self.counts["batches whole"] += 1
            if not missing:
                continue
            text = f"batch {planned.number}: {len(missing)} of {len(rows)} rows are not readable: {missing[:3]}"
            if is_open:
                name = "pipeline-unfinished"
            elif len(missing) < len(rows):
                name = "pipeline-torn"
            else:
                name = "pipeline-lost" if planned.number in told else "pipeline-unfinished"
            self._report.found(name, text)
        self.counts["batches planned"] = len(self._history.planned)
        self._sizes = {number: len(rows) for number, rows in by_batch.items()}

    def _check_told(self) -> None:
        planned = {one.number for one in self._history.planned}
        for told in self._history.told:
            if told.number not in planned:
                self._report.found("pipeline-invented", f"{told} is decided, and nobody has planned it")
            elif told.rows != self._sizes.get(told.number, 0):
                self._report.found("pipeline-totals", f"{told} has {self._sizes.get(told.number, 0)} rows")
        self.counts["batches decided"] = len({one.number for one in self._history.told})
        self.counts["decisions told"] = len(self._history.told)
        self.counts["replays counted"] = sum(one.replayed for one in self._history.told)

    def _check_source(self) -> None:
        ends = self._history.end_of_plans()
        there = {(one.partition, one.offset) for one in self._history.source}
        left = [one for one in self._history.source if one.offset >= ends.get(one.partition, 0)]
        if left or not self._history.is_finished:
            text = f"{len(left)} records of the source are in no batch: {left[:3]}"
            self._report.found("pipeline-unfinished", text if left else "the driver has not ended by itself")
        lost = [place for place in self._history.acknowledged if place not in there]
        if lost:
            self._report.found("pipeline-lost", f"{len(lost)} acknowledged records of the source: {lost[:3]}")
        self.counts["source records"] = len(there)

    def _check_reads(self) -> None:
        """Whoever reads everything gets the committed records, too, at their places."""
        lies = set(self._history.uncommitted)
        strange = [one for one in self._history.committed if one not in lies]
        if strange:
            self._report.found("pipeline-reads", f"{len(strange)} committed rows are not there: {strange[:3]}")
        self.counts["rows of attempts that did not commit"] = len(lies) - len(set(self._history.committed))


def _identity(row: Row) -> Identity:
    return row.series, row.value, row.turn
