"""Partitions that transactional producers write to, without a log: the production rules for batches and markers."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.errors import ApiError
from quorumlog.errors import ErrorCode as E
from quorumlog.records.format.batch import CONTROL, NO_SEQUENCE, TRANSACTIONAL
from quorumlog_broker.produce.transactional import EndTransaction
from quorumlog_storage.producers.producer_state import ProducerStates, check_marker
from quorumlog_storage.producers.verification import Guard, Verifications


class Batch(NamedTuple):
    """What `ProducerStates` needs of a batch of one record."""

    producer_id: int
    producer_epoch: int
    base_offset: int
    attributes: int
    base_sequence: int = NO_SEQUENCE
    max_timestamp: int = 0

    @property
    def last_offset(self) -> int:
        return self.base_offset


class Entry(NamedTuple):
    """A value of a producer, or the end of its transaction."""

    producer_id: int
    producer_epoch: int
    value: int | None
    committed: bool | None = None


class PartitionModel:
    """Its log is never cut: the failures here are those of coordinators and calls."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.states = ProducerStates()
        self._verifications = Verifications()

    def is_open(self, producer: tuple[int, int]) -> bool:
        found = self.states.entries.get(producer[0])
        return found is not None and found.is_open and found.epoch == producer[1]

    def open_producers(self) -> list[tuple[int, int]]:
        return [(number, one.epoch) for number, one in self.states.entries.items() if one.is_open]

    def guard(self, producer: tuple[int, int]) -> Guard | None:
        if self.is_open(producer):
            return None
        return self._verifications.begin(*producer, 0, now_ms=0)

    def append(self, producer: tuple[int, int], value: int, guard: Guard | None) -> E:
        """As `ProducerSequences` checks it, but for sequence numbers."""
        found = self.states.entries.get(producer[0])
        if not self.is_open(producer):
            if not self._verifications.holds(producer[0], guard):
                return E.INVALID_TXN_STATE
            if found is not None and producer[1] < found.epoch:
                return E.INVALID_PRODUCER_EPOCH
        self.states.note(Batch(*producer, len(self.entries), TRANSACTIONAL))
        self.entries.append(Entry(*producer, value))
        self._verifications.end(producer[0])
        return E.NONE

    def end(self, ending: EndTransaction) -> E:
        producer_id, epoch = ending.producer_id, ending.producer_epoch
        found = self.states.entries.get(producer_id)
        try:
            check_marker(found, producer_id, epoch, ending.marker, ending.transaction_version)
        except ApiError as error:
            return error.code
        self.states.note(Batch(producer_id, epoch, len(self.entries), TRANSACTIONAL | CONTROL), ending.marker)
        self.entries.append(Entry(producer_id, epoch, None, ending.committed))
        self._verifications.end(producer_id)
        return E.NONE

    def outcomes(self) -> dict[int, bool | None]:
        """By value: whether its transaction was committed here; None while it is open. Each value lies here once."""
        found: dict[int, bool | None] = {}
        open_ones: dict[int, list[int]] = {}
        for entry in self.entries:
            if entry.value is not None:
                assert entry.value not in found, "[26] a record is there twice"
                found[entry.value] = None
                open_ones.setdefault(entry.producer_id, []).append(entry.value)
            else:
                for value in open_ones.pop(entry.producer_id, ()):
                    found[value] = entry.committed
        return found
