"""Checks what clients of transactions saw: appends to lists, reads of lists, and offsets in one transaction.

A list is a partition; its elements are unique values. The parts say what each finding means: `transactional.reads`,
`transactional.offsets`, `transactional.sessions`, and here

- g1c: no cycle of transactions of which each has read what the one before it wrote;
- g1c-process: nor with the order of each client's own transactions added.

Allowed and only counted, because Kafka does not isolate writers from each other: cycles of ww edges alone (G0), where
transactions interleave in partitions in different orders, and cycles of ww and wr edges.

Source of the names: Adya's phenomena, as Jepsen applies them to Kafka. Pure; about 400 bytes of memory a transaction.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from jepsen.checkers.findings import Finding
from jepsen.checkers.transactional.cycles import Edges, cycles
from jepsen.checkers.transactional.events import NOT_IN_ONE, OffsetShown, Outcome, Poll, Session, Transaction, writer_of
from jepsen.checkers.transactional.offsets import Offsets
from jepsen.checkers.transactional.reads import Reads
from jepsen.checkers.transactional.report import Report
from jepsen.checkers.transactional.sessions import Sessions
from jepsen.checkers.transactional.values import Transactions, Values
from quorumlog.ids import Offset

SHOWN_MAX = 8  # transactions of a cycle


@dataclass(frozen=True, slots=True)
class Verdict:
    """findings: at most `FINDINGS_MAX` of a name. number: of all findings, by name. counts: what was looked at."""

    findings: list[Finding]
    number: dict[str, int]
    counts: dict[str, int]


class TransactionalHistory:
    """Takes events in any order, and judges them when all are there."""

    def __init__(self) -> None:
        self._report = Report()
        self._transactions, self._values = Transactions(), Values()
        self._reads = Reads(self._transactions, self._values, self._report)
        self._offsets = Offsets(self._transactions, self._values, self._report)
        self._sessions = Sessions(self._transactions, self._report)
        self.events = 0

    def add_session(self, session: Session) -> int:
        """Its index, for `Transaction.session`."""
        self.events += 1
        self._sessions.all.append(session)
        return len(self._sessions.all) - 1

    def add_transaction(self, one: Transaction) -> None:
        self.events += 1
        self._grow(one.number)
        self._transactions.note(one)
        self._reads.note_sent(one)
        self._offsets.note_consumed(one)

    def add_poll(self, poll: Poll) -> None:
        self.events += 1
        if poll.transaction != NOT_IN_ONE:
            self._grow(poll.transaction)
        self._reads.note_poll(poll)

    def add_shown(self, shown: OffsetShown) -> None:
        self.events += 1
        self._offsets.note_shown(shown)

    @property
    def committed(self) -> Iterator[tuple[int, int]]:
        """Each transaction whose commit was acknowledged, and when, in ns."""
        transactions = self._transactions
        for number in range(transactions.count):
            if transactions.outcome[number] == Outcome.COMMITTED:
                yield number, transactions.ended_ns[number]

    @property
    def taken(self) -> Iterator[tuple[int, int, Offset]]:
        """A unit, a transaction that took input of it, and the offset that it commits with its output."""
        for unit, all_of in self._offsets.taken.items():
            for one in all_of:
                yield unit, one.transaction, one.end

    def _grow(self, number: int) -> None:
        assert number >= 0, number
        self._transactions.grow(number + 1)
        self._values.grow(number + 1)

    def verdict(self) -> Verdict:
        """Once, at the end."""
        self._reads.check()
        self._offsets.check()
        self._sessions.check()
        self._check_wr_cycles()
        counts = self._count()
        return Verdict(self._report.findings, dict(self._report.number), counts)

    def _check_wr_cycles(self) -> None:
        wr = self._reads.wr
        self._report_cycles("g1c", wr)
        if self._report.number["g1c"]:
            return
        with_process = Edges()
        with_process.extend(wr)
        newest: dict[int, int] = {}
        for number in range(self._transactions.count):
            if self._transactions.is_known(number):
                client = self._transactions.client[number]
                if client in newest:
                    with_process.add(newest[client], number)
                newest[client] = number
        self._report_cycles("g1c-process", with_process)

    def _report_cycles(self, name: str, edges: Edges) -> None:
        for component in cycles(edges, self._transactions.count):
            who = "; ".join(self._transactions.describe(number) for number in component[:SHOWN_MAX])
            self._report.found(name, f"{len(component)} transactions read from each other: {who}")

    def _count(self) -> dict[str, int]:
        outcomes = array("B", self._transactions.outcome)
        known = [number for number in range(self._transactions.count) if self._transactions.is_known(number)]
        by_outcome = {outcome: sum(1 for number in known if outcomes[number] == outcome) for outcome in Outcome}
        ww = self._ww()
        both = Edges()
        both.extend(ww)
        both.extend(self._reads.wr)
        nodes = self._transactions.count
        return {
            "transactions": len(known),
            "transactions committed": by_outcome[Outcome.COMMITTED],
            "transactions aborted": by_outcome[Outcome.ABORTED],
            "transactions of unknown outcome": by_outcome[Outcome.UNKNOWN],
            "transactional values at the end": sum(self._values.final),
            "transactional values read": self._reads.values_read,
            "wr edges": len(self._reads.wr),
            "ww cycles (allowed)": len(cycles(ww, nodes)),
            "ww and wr cycles (allowed)": len(cycles(both, nodes)),
            "producer sessions": len(self._sessions.all),
            "offsets shown": sum(len(shown) for shown in self._offsets.shown.values()),
        }

    def _ww(self) -> Edges:
        """Between the writers of neighbours in a partition."""
        edges = Edges()
        for log in self._reads.logs.values():
            before = -1
            for value in log.final_values():
                writer = writer_of(value)
                if before not in (-1, writer):
                    edges.add(before, writer)
                before = writer
        return edges
