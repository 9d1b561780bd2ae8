"""May this batch be appended, has it been appended, or is it out of order? Asked at the leader before it is queued.

The log's producer state knows what is written; batches that wait in the directory's queue are known here, so that what
one connection pipelines is judged in its order. An entry goes once the log has caught up with it, and all of them when
a leadership begins (by then the log holds everything that was queued before) or a write fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.records.batch import NO_PRODUCER, BatchHeader
from storage.batch import StoredBatch
from storage.log import Log
from storage.producer_state import ProducerEntry, Remembered, after, check


class ProducerSequences:
    """Of one replica, while it leads. Used on the loop only."""

    def __init__(self) -> None:
        self._queued: dict[int, ProducerEntry] = {}

    def __len__(self) -> int:
        """Producers with batches that wait to be written."""
        return len(self._queued)

    def check(self, log: Log, found: Sequence[BatchHeader]) -> Remembered | None:
        """What the one batch of a request repeats; None where all of `found` may be appended.

        Raises ApiError: OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH; INVALID_RECORD for a numbered batch in
        company, of which one might be a repetition and another not.
        """
        if len(found) == 1:
            header = found[0]
            return None if header.producer_id == NO_PRODUCER else check(self._entry(log, header.producer_id), header)
        if any(header.producer_id != NO_PRODUCER for header in found):
            text = f"{len(found)} batches for one partition; a producer that numbers its batches sends one at a time"
            raise ApiError(ErrorCode.INVALID_RECORD, text)
        return None

    def queued(self, log: Log, batches: Sequence[StoredBatch]) -> None:
        """They wait to be written, and will be, unless the directory fails."""
        for batch in batches:
            if batch.producer_id != NO_PRODUCER:
                self._queued[batch.producer_id] = after(self._entry(log, batch.producer_id), batch)

    def written(self, log: Log, batches: Sequence[StoredBatch]) -> None:
        """They are in the log, which knows more now than this does, unless more of the same producer waits."""
        for batch in batches:
            entry = self._queued.get(batch.producer_id)
            if entry is not None and entry.last_offset < log.end_offset:
                del self._queued[batch.producer_id]

    def clear(self) -> None:
        self._queued.clear()

    def _entry(self, log: Log, producer_id: int) -> ProducerEntry | None:
        assert log.producers is not None, "a partition's log remembers producers"
        queued = self._queued.get(producer_id)
        return queued if queued is not None else log.producers.entry(producer_id)
