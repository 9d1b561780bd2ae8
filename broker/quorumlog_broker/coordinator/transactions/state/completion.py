"""From the committed decision to the last marker: which are still missing, and the record when none is.

Nothing of this is durable. A coordinator that loads a decision has every marker written again; a partition that has it
already is not harmed (quorumlog_storage/producers/producer_state.py, rule 6).

The Prepare record names the partitions, so a decision that waits for its turn is no more than its id here, however many
there are. Whoever sends the markers takes as many as it has room for, and may ask again for what is missing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import NamedTuple

from quorumlog.records.coordinator.transactions import NO_PRODUCER_ID, TransactionStatus, TransactionValue
from quorumlog_broker.coordinator.transactions.state.states import States, TransactionTurn
from quorumlog_broker.coordinator.transactions.state.table import (
    COMPLETES,
    PREPARE_COMMIT,
    PREPARED,
    Partition,
    TransactionTable,
    partitions_of,
)
from quorumlog_broker.produce.transactional import EndTransaction
from quorumlog_storage.producers.producer_state import EPOCH_PER_TRANSACTION


class DecidedTransaction(NamedTuple):
    """partitions: those whose markers are not confirmed, each once, in the order of the record."""

    transactional_id: str
    ending: EndTransaction
    partitions: tuple[Partition, ...]


class Completion:
    """given_up: transactions that a newer coordinator ends, or nobody can."""

    def __init__(self, turn: TransactionTurn, table: TransactionTable, states: States) -> None:
        self._turn, self._table, self._states = turn, table, states
        self._missing: dict[str, set[Partition] | None] = {}  # of committed decisions. None: every marker is
        self._waiting: deque[str] = deque()  # those of them that nobody has taken, in the order of their commit
        self._loaded: dict[str, None] = {}  # until the end of the loaded log is committed
        self.given_up: set[str] = set()

    def begin_once_committed(self, transactional_id: str) -> None:
        """The decision was appended: a marker must not be written before nobody can undo it."""
        self._turn.after_commit(lambda: self._begin(transactional_id))

    def load(self, transactional_id: str, value: TransactionValue) -> None:
        """A decision of an earlier coordinator: all its markers are written again."""
        if value.transaction_status in PREPARED:
            if not self._loaded:
                self._turn.after_commit(self._begin_loaded)
            self._loaded[transactional_id] = None

    def _begin(self, transactional_id: str) -> None:
        self._missing[transactional_id] = None
        self._waiting.append(transactional_id)

    def _begin_loaded(self) -> None:
        """All of them in one step, which therefore makes nothing for each. No call was taken before it."""
        assert not self._missing and not self._waiting
        self._waiting.extend(self._loaded)
        self._missing, self._loaded = {**self._loaded}, {}

    # --- asked by who sends the markers ---

    @property
    def has_waiting(self) -> bool:
        """`take` has something to do."""
        return bool(self._waiting)

    def take(self, limit: int) -> list[DecidedTransaction]:
        """The next decided transactions, `limit` of them at most. One that has no partition is completed instead."""
        found: list[DecidedTransaction] = []
        for _ in range(min(limit, len(self._waiting))):
            transactional_id = self._waiting.popleft()
            decided = self.unconfirmed(transactional_id)
            assert decided is not None
            if decided.partitions:
                found.append(decided)
            else:
                self._complete(transactional_id)
        return found

    def unconfirmed(self, transactional_id: str) -> DecidedTransaction | None:
        """What is missing of a committed decision now. None: it is complete, or was given up."""
        if transactional_id not in self._missing:
            return None
        value, missing = self._table.get(transactional_id), self._missing[transactional_id]
        assert value is not None and value.transaction_status in PREPARED
        partitions = dict.fromkeys(one for one in partitions_of(value) if missing is None or one in missing)
        ending = EndTransaction(
            value.producer_id,
            value.producer_epoch,
            value.transaction_status == PREPARE_COMMIT,
            self._states.coordinator_epoch,
            value.client_transaction_version,
        )
        return DecidedTransaction(transactional_id, ending, tuple(partitions))

    # --- told by it ---

    def written(self, transactional_id: str, producer_epoch: int, partition: Partition) -> None:
        """The marker is on all in-sync replicas of the partition, or the partition is gone. Told twice, it counts once.

        producer_epoch: of the marker.
        """
        value = self._table.get(transactional_id)
        if transactional_id not in self._missing or value is None or value.producer_epoch != producer_epoch:
            return
        missing = self._missing[transactional_id]
        if missing is None:
            missing = self._missing[transactional_id] = set(partitions_of(value))
        missing.discard(partition)
        if not missing:
            self._complete(transactional_id)

    def refused(self, transactional_id: str, producer_epoch: int) -> None:
        """A leader knows a newer epoch of the coordinator or of the producer: this coordinator has to stop."""
        value = self._table.get(transactional_id)
        is_this = value is not None and value.producer_epoch == producer_epoch
        if is_this and transactional_id in self._missing:
            del self._missing[transactional_id]
            self.given_up.add(transactional_id)

    def _complete(self, transactional_id: str) -> None:
        del self._missing[transactional_id]
        value = self._table.get(transactional_id)
        assert value is not None
        producer_id, epoch = value.producer_id, value.producer_epoch
        if value.client_transaction_version >= EPOCH_PER_TRANSACTION and value.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = value.next_producer_id, 0
        complete = replace(
            value,
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_status=COMPLETES[TransactionStatus(value.transaction_status)],
            transaction_partitions=(),
            transaction_last_update_timestamp_ms=self._turn.wall_ms,
            previous_producer_id=value.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )
        self._states.put(transactional_id, complete)
