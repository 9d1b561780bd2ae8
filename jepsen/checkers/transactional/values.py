"""What is known about each value and each transaction, in arrays: about 25 bytes a value, 30 a transaction."""

from __future__ import annotations

from array import array

from jepsen.checkers.transactional.events import NO_OFFSET, OPEN_NS, VALUES_MAX, Outcome, Transaction

UNKNOWN_CLIENT = -1
NOT_SENT = -1


class Values:
    """Arrays by value (`value_of`). Grows with the highest transaction that was named."""

    def __init__(self) -> None:
        self.partition = array("h")  # where it was sent to; NOT_SENT
        self.offset = array("q")  # where it was read first
        self.read_in = array("h")  # the partition of that read
        self.first_read_ns = array("q")
        self.final = bytearray()  # 1: a final read shows it

    def grow(self, transactions: int) -> None:
        more = transactions * VALUES_MAX - len(self.partition)
        if more > 0:
            more += len(self.partition) // 4  # fewer steps
            self.partition.extend(array("h", [NOT_SENT]) * more)
            self.offset.extend(array("q", [NO_OFFSET]) * more)
            self.read_in.extend(array("h", [NOT_SENT]) * more)
            self.first_read_ns.extend(array("q", [OPEN_NS]) * more)
            self.final.extend(bytes(more))


class Transactions:
    """Arrays by transaction."""

    def __init__(self) -> None:
        self.count = 0  # one past the highest number
        self.client = array("i")
        self.outcome = bytearray()
        self.ending_ns, self.ended_ns = array("q"), array("q")
        self.session = array("i")

    def grow(self, transactions: int) -> None:
        self.count = max(self.count, transactions)
        more = transactions - len(self.client)
        if more > 0:
            more += len(self.client) // 4
            self.client.extend(array("i", [UNKNOWN_CLIENT]) * more)
            self.outcome.extend(bytes(more))
            self.ending_ns.extend(array("q", [OPEN_NS]) * more)
            self.ended_ns.extend(array("q", [OPEN_NS]) * more)
            self.session.extend(array("i", [-1]) * more)

    def note(self, one: Transaction) -> None:
        number = one.number
        assert self.client[number] == UNKNOWN_CLIENT, f"two transactions have the number {number}"
        self.client[number], self.outcome[number] = one.client, one.outcome
        self.ending_ns[number], self.ended_ns[number] = one.ending_ns, one.ended_ns
        self.session[number] = one.session

    def is_known(self, number: int) -> bool:
        return number < self.count and self.client[number] != UNKNOWN_CLIENT

    def describe(self, number: int) -> str:
        if not self.is_known(number):
            return f"transaction {number}"
        outcome = Outcome(self.outcome[number]).name.lower()
        return f"transaction {number} of client {self.client[number]} ({outcome})"
