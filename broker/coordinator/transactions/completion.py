"""From the committed decision to the last marker: which are still missing, and the record when none is.

Nothing of this is durable. A coordinator that loads a decision has every marker written again; a partition that has it
already is not harmed (storage/producer_state.py, rule 6).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from broker.coordinator.transactions.states import States, TransactionTurn
from broker.coordinator.transactions.table import (
    COMPLETES,
    PREPARE_COMMIT,
    PREPARED,
    Partition,
    TransactionTable,
)
from broker.produce.transactional import EndTransaction
from quorumlog.records.coordinator.transactions import NO_PRODUCER_ID, TransactionStatus, TransactionValue
from storage.producer_state import EPOCH_PER_TRANSACTION


class DecidedTransaction(NamedTuple):
    """Its markers have to be written until each partition has one."""

    transactional_id: str
    ending: EndTransaction
    partitions: frozenset[Partition]


class Completion:
    """decided: to be taken by the owner. given_up: transactions that a newer coordinator ends, or nobody can."""

    def __init__(self, turn: TransactionTurn, table: TransactionTable, states: States) -> None:
        self._turn, self._table, self._states = turn, table, states
        self._missing: dict[str, set[Partition]] = {}
        self.decided: list[DecidedTransaction] = []
        self.given_up: set[str] = set()

    def begin_once_committed(self, transactional_id: str) -> None:
        """The decision was appended: a marker must not be written before nobody can undo it."""
        self._turn.after_commit(lambda: self._begin(transactional_id))

    def load(self, transactional_id: str, value: TransactionValue) -> None:
        """A decision of an earlier coordinator: all its markers are written again."""
        if value.transaction_status in PREPARED:
            self.begin_once_committed(transactional_id)

    def _begin(self, transactional_id: str) -> None:
        value = self._table.get(transactional_id)
        assert value is not None and value.transaction_status in PREPARED
        partitions = self._table.partitions(transactional_id)
        if not partitions:
            self._complete(transactional_id, value)
            return
        self._missing[transactional_id] = set(partitions)
        ending = EndTransaction(
            value.producer_id,
            value.producer_epoch,
            value.transaction_status == PREPARE_COMMIT,
            self._states.coordinator_epoch,
            value.client_transaction_version,
        )
        self.decided.append(DecidedTransaction(transactional_id, ending, partitions))

    def written(self, transactional_id: str, producer_epoch: int, partition: Partition) -> None:
        """The marker is on all in-sync replicas of the partition, or the partition is gone. Told twice, it counts once.

        producer_epoch: of the marker.
        """
        value, missing = self._table.get(transactional_id), self._missing.get(transactional_id)
        if missing is None or value is None or value.producer_epoch != producer_epoch:
            return
        missing.discard(partition)
        if not missing:
            del self._missing[transactional_id]
            self._complete(transactional_id, value)

    def refused(self, transactional_id: str, producer_epoch: int) -> None:
        """A leader knows a newer epoch of the coordinator or of the producer: this coordinator has to stop."""
        value = self._table.get(transactional_id)
        is_this = value is not None and value.producer_epoch == producer_epoch
        if is_this and self._missing.pop(transactional_id, None) is not None:
            self.given_up.add(transactional_id)

    def _complete(self, transactional_id: str, value: TransactionValue) -> None:
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
