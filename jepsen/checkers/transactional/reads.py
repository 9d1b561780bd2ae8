"""What readers saw against what was sent, and what they had to see at the end.

While polls come in:
- unknown-value: somebody sent it, and to this partition.
- inconsistent-offsets: an offset has one value, in every read and in every acknowledgement.
- duplicate: a value has one offset.
- unordered-read: the offsets of a read rise, and lie between its positions.
- precommitted-read: no transaction reads what it has sent itself.

At the end:
- aborted-read (G1a): no value of an aborted transaction was read.
- precommitted-read: nor one before its transaction was asked to commit.
- lost-write: every value of a committed transaction is in the final read.
- torn-transaction (G1b): of any other transaction all values are in it, or none.
- lost-after-read: so is every value that was read.
- skipped-read: a read delivers every record between its positions that the final read shows there.
- unordered-sends: a client's values are in a partition in the order in which it sent them.
"""

from __future__ import annotations

from jepsen.checkers.transactional.cycles import Edges
from jepsen.checkers.transactional.events import (
    NO_OFFSET,
    NOT_IN_ONE,
    OPEN_NS,
    VALUES_MAX,
    Outcome,
    Poll,
    Transaction,
    writer_of,
)
from jepsen.checkers.transactional.partition_log import NOTHING, PartitionLog
from jepsen.checkers.transactional.report import Report
from jepsen.checkers.transactional.values import NOT_SENT, Transactions, Values

GAP_MAX = 1 << 20  # numbers above the highest known transaction: a value beyond is nobody's


class Reads:
    """wr: edges from a writer to the transaction that read a value of it."""

    def __init__(self, transactions: Transactions, values: Values, report: Report) -> None:
        self.transactions, self.values, self.report = transactions, values, report
        self.logs: dict[int, PartitionLog] = {}
        self.wr = Edges()
        self.values_read = 0

    def log(self, partition: int) -> PartitionLog:
        log = self.logs.get(partition)
        if log is None:
            log = self.logs[partition] = PartitionLog()
        return log

    def note_sent(self, one: Transaction) -> None:
        for partition, value, offset in one.sent:
            assert writer_of(value) == one.number, f"value {value} is not of transaction {one.number}"
            assert self.values.partition[value] == NOT_SENT, f"value {value} was sent twice"
            self.values.partition[value] = partition
            if offset != NO_OFFSET:
                self._put(partition, offset, value, "was acknowledged")

    def note_poll(self, poll: Poll) -> None:
        log, values, report = self.log(poll.partition), self.values, self.report
        self.values_read += len(poll.values)
        last = poll.start - 1
        for offset, value in zip(poll.offsets, poll.values, strict=True):
            if not last < offset < poll.next:
                report.found("unordered-read", f"offset {offset} behind {last} in {_brief(poll)}")
                continue
            last = offset
            writer = writer_of(value)
            if not 0 <= writer < self.transactions.count + GAP_MAX:
                report.found("unknown-value", f"nobody has sent {value} at {offset} of {_brief(poll)}")
                continue
            if writer >= self.transactions.count:
                self._grow(writer)
            if values.offset[value] == NO_OFFSET:
                values.offset[value], values.read_in[value] = offset, poll.partition
            elif (values.offset[value], values.read_in[value]) != (offset, poll.partition):
                places = f"{values.read_in[value]}@{values.offset[value]} and {poll.partition}@{offset}"
                report.found("duplicate", f"value {value} is at {places}")
            self._put(poll.partition, offset, value, "was read")
            if poll.ended_ns < values.first_read_ns[value]:
                values.first_read_ns[value] = poll.ended_ns
            if poll.final:
                values.final[value] = 1
                log.final[offset] = 1
            if poll.transaction != NOT_IN_ONE:
                self._read_in_transaction(poll, value, writer)
        log.note_read(poll.start, poll.next, len(poll.values), final=poll.final)

    def _grow(self, writer: int) -> None:
        self.values.grow(writer + 1)
        self.transactions.grow(writer + 1)

    def _put(self, partition: int, offset: int, value: int, how: str) -> None:
        known = self.log(partition).put(offset, value)
        if known != value:
            text = f"{partition}@{offset}: {value} {how}, and it was {known} before"
            self.report.found("inconsistent-offsets", text)

    def _read_in_transaction(self, poll: Poll, value: int, writer: int) -> None:
        if writer == poll.transaction:
            self.report.found("precommitted-read", f"transaction {writer} read its own value {value}")
        else:
            self.wr.add(writer, poll.transaction)

    # --- at the end ---

    def check(self) -> None:
        for number in range(self.transactions.count):
            self._check_transaction(number)
        for partition, log in self.logs.items():
            for skip in log.skips():
                self.report.found("skipped-read", f"partition {partition}: {skip}")
            self._check_order(partition, log)

    def _check_transaction(self, number: int) -> None:
        values = self.values
        first = number * VALUES_MAX
        slots = range(first, first + VALUES_MAX)
        for value in slots:
            self._check_read(number, value)
        sent = [value for value in slots if values.partition[value] != NOT_SENT]
        missing = [value for value in sent if not values.final[value]]
        for value in missing:
            if values.offset[value] != NO_OFFSET:
                place = f"{values.read_in[value]}@{values.offset[value]}"
                self.report.found("lost-after-read", f"value {value} was read at {place}, and it has gone")
        if not missing or not self.transactions.is_known(number):
            return
        what = f"{self.transactions.describe(number)} has sent {sent}, and {missing} are not there"
        if self.transactions.outcome[number] == Outcome.COMMITTED:
            self.report.found("lost-write", what)
        if len(missing) < len(sent):
            self.report.found("torn-transaction", what)

    def _check_read(self, number: int, value: int) -> None:
        values, transactions = self.values, self.transactions
        if values.offset[value] == NO_OFFSET:
            return
        place = f"{values.read_in[value]}@{values.offset[value]}"
        if values.partition[value] != values.read_in[value]:
            self.report.found("unknown-value", f"nobody has sent {value}, which was read at {place}, there")
            return
        if transactions.outcome[number] == Outcome.ABORTED:
            self.report.found("aborted-read", f"{value} was read at {place}: {transactions.describe(number)}")
        elif values.first_read_ns[value] < transactions.ending_ns[number]:
            when = "which never asked to commit" if transactions.ending_ns[number] == OPEN_NS else "before its commit"
            self.report.found("precommitted-read", f"{value} was read: {transactions.describe(number)}, {when}")

    def _check_order(self, partition: int, log: PartitionLog) -> None:
        """Numbers of a client's transactions rise, and so do the indexes of its values."""
        newest: dict[int, int] = {}
        for value in log.final_values():
            number = writer_of(value)
            if value == NOTHING or not self.transactions.is_known(number):
                continue
            client = self.transactions.client[number]
            if value < newest.get(client, -1):
                text = f"partition {partition}: {value} of client {client} is behind {newest[client]}"
                self.report.found("unordered-sends", text)
            newest[client] = value


def _brief(poll: Poll) -> str:
    return f"a read of partition {poll.partition} from {poll.start} to {poll.next}"
