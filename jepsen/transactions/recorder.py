"""What all clients of one run write down, and who has which number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from jepsen.checkers.transactional.events import OffsetShown, Poll, Session, Transaction
from jepsen.checkers.transactional_history import TransactionalHistory


class Recorder:
    """counts: for the report. The time does not jump. stopping: clients end after what they do now."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self.history = TransactionalHistory()
        self.counts: Counter[str] = Counter()
        self.stopping = False
        self.waiting_for = ""  # at the end: what is not over yet
        self.ends: dict[int, int] = {}  # by partition: how far anybody has read
        self._numbers = self._clients = self._recorded = 0
        self._producer_ids: dict[str, int] = {}  # by transactional id: the newest

    def next_transaction(self) -> int:
        number, self._numbers = self._numbers, self._numbers + 1
        return number

    def next_client(self) -> int:
        """A client is one life of a producer: its values are in the order of its sending."""
        number, self._clients = self._clients, self._clients + 1
        return number

    @property
    def committed(self) -> int:
        return self.counts["transactions committed"]

    @property
    def ended(self) -> int:
        """Committed or aborted, as acknowledged."""
        return self.committed + self.counts["transactions aborted"]

    @property
    def open(self) -> int:
        """Transactions that have begun and not ended yet."""
        return self._numbers - self._recorded

    def producer_id(self, transactional_id: str, producer_id: int) -> None:
        """What the coordinator has given it; another one when the epochs of the former have run out."""
        former = self._producer_ids.get(transactional_id, producer_id)
        self.counts["producer ids run out"] += former != producer_id
        self._producer_ids[transactional_id] = producer_id

    def transaction(self, one: Transaction) -> None:
        self._recorded += 1
        self.counts[f"transactions {one.outcome.name.lower()}"] += 1
        self.history.add_transaction(one)

    def poll(self, poll: Poll) -> None:
        self.counts["transactional reads"] += bool(poll.values)
        self.ends[poll.partition] = max(self.ends.get(poll.partition, 0), poll.next)
        self.history.add_poll(poll)

    def shown(self, shown: OffsetShown) -> None:
        self.counts["transactional offsets shown"] += 1
        self.history.add_shown(shown)

    def session(self, session: Session) -> int:
        self.counts["producer sessions"] += 1
        return self.history.add_session(session)
