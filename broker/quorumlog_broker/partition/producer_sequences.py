"""Checks a batch of an idempotent producer at the leader, before it is queued: new, a repetition, or out of order.

The log's producer state covers what is written. This module covers the batches that still wait in the directory's
queue, so that pipelined batches are checked in their order. An entry is removed once the log has caught up with it. All
are removed when a leadership begins (the log then holds everything that was queued before) or a write fails.

A transactional batch that begins a transaction here needs the guard that was taken before the coordinator was asked
(quorumlog_storage/producers/verification.py). It is compared here, where the order of a partition's batches is decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.records.control import EndTxnMarker
from quorumlog.records.format.batch import NO_PRODUCER, NO_SEQUENCE, BatchHeader
from quorumlog_storage.log.log import Log
from quorumlog_storage.producers.producer_state import (
    ProducerEntry,
    Remembered,
    after,
    check,
    check_marker,
    repeated_by,
)
from quorumlog_storage.producers.replay import marker_of
from quorumlog_storage.producers.verification import Guard, Verifications
from quorumlog_storage.segment.batch import StoredBatch


class ProducerSequences:
    """The queued batches of one replica, while it leads. Used on the loop only."""

    def __init__(self) -> None:
        self._queued: dict[int, tuple[ProducerEntry, Offset]] = {}  # and the end of the producer's last queued batch
        self._verifications = Verifications()

    def __len__(self) -> int:
        """The number of producers whose batches wait to be written."""
        return len(self._queued)

    def check(self, log: Log, found: Sequence[BatchHeader], guard: Guard | None = None) -> Remembered | None:
        """The earlier batch that the request's only batch repeats; None if all of `found` may be appended.

        guard: of a transactional batch; not needed while a transaction of its producer and epoch is open here. Raises
        ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE; INVALID_RECORD for several
        batches of which one has sequence numbers, since one of them might be a repetition and another not.
        """
        if len(found) == 1:
            header = found[0]
            if header.is_transactional:
                return self._check_transactional(log, header, guard)
            return None if header.producer_id == NO_PRODUCER else check(self._entry(log, header.producer_id), header)
        if any(header.producer_id != NO_PRODUCER for header in found):
            text = f"{len(found)} batches for one partition; a producer that numbers its batches sends one at a time"
            raise ApiError(ErrorCode.INVALID_RECORD, text)
        return None

    def knows(self, log: Log, producer_id: int) -> bool:
        """False: nothing of this producer was appended, or it was forgotten."""
        return self._entry(log, producer_id) is not None

    def begin_verification(
        self, log: Log, header: BatchHeader, *, epoch_per_transaction: bool = False, now_ms: int
    ) -> Guard | None:
        """The guard of a transactional batch, to be taken before the coordinator is asked; None: no need to ask.

        epoch_per_transaction: as transaction.version 2 has it; then an unknown producer begins with sequence 0.
        """
        if self._has_open(log, header):
            return None
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        return self._verifications.begin(
            producer_id, epoch, sequence, epoch_per_transaction=epoch_per_transaction, now_ms=now_ms
        )

    # --- a coordinator's batches in a transaction, which have no numbers ---

    def begin_unnumbered(
        self, log: Log, producer_id: int, producer_epoch: int, *, epoch_per_transaction: bool = False, now_ms: int
    ) -> Guard | None:
        """As `begin_verification`."""
        if self._is_open(log, producer_id, producer_epoch):
            return None
        return self._verifications.begin(
            producer_id, producer_epoch, NO_SEQUENCE, epoch_per_transaction=epoch_per_transaction, now_ms=now_ms
        )

    def check_unnumbered(self, log: Log, producer_id: int, producer_epoch: int, guard: Guard | None) -> None:
        """guard: not needed while a transaction of this producer and epoch is open here. Raises ApiError:
        INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE."""
        entry = self._entry(log, producer_id)
        if entry is not None and producer_epoch < entry.epoch:
            text = f"producer {producer_id} has epoch {entry.epoch} now, not {producer_epoch}"
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
        if not self._is_open(log, producer_id, producer_epoch) and not self._verifications.holds(producer_id, guard):
            raise _unverified(producer_id)

    def expire_verifications(self, now_ms: int, max_age_ms: int) -> None:
        """Guards whose batches never came."""
        self._verifications.expire(now_ms, max_age_ms)

    def check_marker(
        self, log: Log, producer_id: int, producer_epoch: int, marker: EndTxnMarker, transaction_version: int
    ) -> None:
        """Raises ApiError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED."""
        check_marker(self._entry(log, producer_id), producer_id, producer_epoch, marker, transaction_version)

    def upcoming(self, log: Log, batch: StoredBatch) -> ProducerEntry | None:
        """The entry of the batch's producer with `batch`; None if it has no number.

        Ask before the log's writer can have the batch: it would note it in the log's entry, too, and the batch would
        take two of the five remembered places.
        """
        if batch.producer_id == NO_PRODUCER:
            return None
        return after(self._entry(log, batch.producer_id), batch, marker_of(batch))

    def queued(self, batch: StoredBatch, entry: ProducerEntry | None) -> None:
        """The batch is in the directory's queue. entry: `upcoming`."""
        if entry is not None:
            self._queued[batch.producer_id] = entry, batch.next_offset
            if batch.is_control:
                self._verifications.end_by_marker(batch.producer_id, entry.epoch)
            elif batch.is_transactional:
                self._verifications.end(batch.producer_id)

    def written(self, log: Log, batches: Sequence[StoredBatch]) -> None:
        """The batches are in the log. Its state replaces the entries here, unless later batches still wait."""
        for batch in batches:
            queued = self._queued.get(batch.producer_id)
            if queued is not None and queued[1] <= log.end_offset:
                del self._queued[batch.producer_id]

    def clear(self) -> None:
        self._queued.clear()
        self._verifications.clear()

    def _entry(self, log: Log, producer_id: int) -> ProducerEntry | None:
        assert log.producers is not None, "a partition's log keeps producer state"
        queued = self._queued.get(producer_id)
        return queued[0] if queued is not None else log.producers.entry(producer_id)

    def _has_open(self, log: Log, header: BatchHeader) -> bool:
        return self._is_open(log, header.producer_id, header.producer_epoch)

    def _is_open(self, log: Log, producer_id: int, producer_epoch: int) -> bool:
        entry = self._entry(log, producer_id)
        return entry is not None and entry.is_open and entry.epoch == producer_epoch

    def _check_transactional(self, log: Log, header: BatchHeader, guard: Guard | None) -> Remembered | None:
        producer_id, entry = header.producer_id, self._entry(log, header.producer_id)
        repeated = repeated_by(entry, header)
        if repeated is not None or self._has_open(log, header):
            return repeated or check(entry, header)
        if not self._verifications.holds(producer_id, guard):
            raise _unverified(producer_id)
        lowest = self._verifications.lowest_sequence(producer_id)
        if lowest is not None and header.base_sequence > lowest:
            text = f"producer {producer_id} sent sequence {header.base_sequence} first; {lowest} came before it"
            raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
        return check(entry, header, begins_at_0=self._verifications.begins_at_0(producer_id))


def _unverified(producer_id: int) -> ApiError:
    text = (
        f"producer {producer_id} has no transaction open here, and its batch was not verified by the "
        "coordinator, or the transaction has ended since; abort it and begin another one"
    )
    return ApiError(ErrorCode.INVALID_TXN_STATE, text)
