"""Checks a batch of an idempotent producer at the leader, before it is queued: new, a repetition, or out of order.

The log's producer state covers what is written. This module covers the batches that still wait in the directory's
queue, so that pipelined batches are checked in their order. An entry is removed once the log has caught up with it. All
are removed when a leadership begins (the log then holds everything that was queued before) or a write fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.batch import NO_PRODUCER, BatchHeader
from storage.batch import StoredBatch
from storage.log import Log
from storage.producer_state import ProducerEntry, Remembered, after, check


class ProducerSequences:
    """The queued batches of one replica, while it leads. Used on the loop only."""

    def __init__(self) -> None:
        self._queued: dict[int, ProducerEntry] = {}

    def __len__(self) -> int:
        """The number of producers whose batches wait to be written."""
        return len(self._queued)

    def check(self, log: Log, found: Sequence[BatchHeader]) -> Remembered | None:
        """The earlier batch that the request's only batch repeats; None if all of `found` may be appended.

        Raises ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH; INVALID_RECORD for several batches of
        which one has sequence numbers, since one of them might be a repetition and another not.
        """
        if len(found) == 1:
            header = found[0]
            return None if header.producer_id == NO_PRODUCER else check(self._entry(log, header.producer_id), header)
        if any(header.producer_id != NO_PRODUCER for header in found):
            text = f"{len(found)} batches for one partition; a producer that numbers its batches sends one at a time"
            raise ApiError(ErrorCode.INVALID_RECORD, text)
        return None

    def knows(self, log: Log, producer_id: int) -> bool:
        """False: nothing of this producer was appended, or it was forgotten."""
        return self._entry(log, producer_id) is not None

    def upcoming(self, log: Log, batch: StoredBatch) -> ProducerEntry | None:
        """The entry of the batch's producer with `batch`; None if it has no number.

        Ask before the log's writer can have the batch: it would note it in the log's entry, too, and the batch would
        take two of the five remembered places.
        """
        if batch.producer_id == NO_PRODUCER:
            return None
        return after(self._entry(log, batch.producer_id), batch)

    def queued(self, batch: StoredBatch, entry: ProducerEntry | None) -> None:
        """The batch is in the directory's queue. entry: `upcoming`."""
        if entry is not None:
            self._queued[batch.producer_id] = entry

    def written(self, log: Log, batches: Sequence[StoredBatch]) -> None:
        """The batches are in the log. Its state replaces the entries here, unless later batches still wait."""
        for batch in batches:
            entry = self._queued.get(batch.producer_id)
            if entry is not None and entry.last_offset < log.end_offset:
                del self._queued[batch.producer_id]

    def clear(self) -> None:
        self._queued.clear()

    def _entry(self, log: Log, producer_id: int) -> ProducerEntry | None:
        assert log.producers is not None, "a partition's log keeps producer state"
        queued = self._queued.get(producer_id)
        return queued if queued is not None else log.producers.entry(producer_id)
