"""Metadata transactions as a reader of the log sees them (KIP-866): a change that is larger than one batch.

    BeginTransactionRecord    the first record of its batch
    ...                       held back, in one or more batches
    EndTransactionRecord      the last record of its batch: what was held back takes effect here, as a whole
    AbortTransactionRecord    instead: it never does

Everybody who makes an image from the log reads it through `HeldBack`. At most one transaction is open. The controller
that wrote its beginning writes its end, or the next active controller aborts it, so nothing stands between them but the
transaction's own records and the quorum's control records.

Records that are held back are replayed at the offsets that they would have had in one batch in place of the
transaction: the first one at the offset of the BeginTransactionRecord. So the controller can decide them, and replay
them on its tip, before it knows how they are cut into batches. No image ends inside a transaction, so whoever compares
one of these offsets with an image's offset gets the same answer as with the record's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from quorumlog.records import BatchHeader
from quorumlog_quorum.metadata.frame import ReplayError

Replayable = tuple[Offset, MetadataRecord]  # a record and the offset to replay it at
NOTHING: tuple[Replayable, ...] = ()


class HeldBack:
    """The records of the open transaction, if one is open."""

    def __init__(self) -> None:
        self._records: list[Replayable] | None = None  # None: no transaction is open
        self._begin: Offset = 0

    @property
    def is_open(self) -> bool:
        return self._records is not None

    def take(self, record: MetadataRecord, offset: Offset, header: BatchHeader) -> Sequence[Replayable]:
        """What is to be replayed now. header: of the record's batch. Raises ReplayError."""
        if isinstance(record, BeginTransactionRecord):
            self._open(record, offset, header)
            return NOTHING
        if isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            records = self._close(record, offset, header)
            return records if isinstance(record, EndTransactionRecord) else NOTHING
        if self._records is None:
            return ((offset, record),)
        self._records.append((self._begin + len(self._records), record))
        return NOTHING

    def _open(self, record: BeginTransactionRecord, offset: Offset, header: BatchHeader) -> None:
        if self._records is not None:
            raise ReplayError(record, "a transaction is open already")
        if offset != header.base_offset:
            raise ReplayError(record, "a transaction begins in the middle of a batch")
        self._records, self._begin = [], offset

    def _close(
        self, record: EndTransactionRecord | AbortTransactionRecord, offset: Offset, header: BatchHeader
    ) -> list[Replayable]:
        records, self._records = self._records, None
        if records is None:
            raise ReplayError(record, "no transaction is open")
        if offset + 1 != header.next_offset:
            raise ReplayError(record, "a transaction ends in the middle of a batch")
        return records


def replayable(records: Iterable[MetadataRecord], header: BatchHeader, held_back: HeldBack) -> Iterator[Replayable]:
    """What is to be replayed of one batch, where nobody waits for the turn to end. Raises ReplayError."""
    for offset, record in enumerate(records, header.base_offset):
        yield from held_back.take(record, offset, header)
