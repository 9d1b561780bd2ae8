"""Reads the marker that ends a transaction in one partition (Kafka's `EndTxnMarker`)."""

from __future__ import annotations

from quorumlog.errors import ApiError
from quorumlog.records import CorruptRecords, decode_batch, parse_header
from quorumlog.records.batch import NO_PRODUCER
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog_storage.files.disk import Buffer
from quorumlog_storage.segment.batch import StoredBatch


def marker_in(data: Buffer) -> EndTxnMarker | None:
    """The marker of a whole control batch.

    None: the batch is empty, because compaction removed the marker with its transaction; or it holds something else,
    which ends no transaction. Damaged bytes are told by the readers of the log, and end no transaction either.
    """
    try:
        for record in decode_batch(data, parse_header(data)):
            found = decode_control(record.key, record.value)
            return found if isinstance(found, EndTxnMarker) else None
    except (CorruptRecords, ApiError):
        pass
    return None


def marker_of(batch: StoredBatch) -> EndTxnMarker | None:
    """The marker that a batch holds; None: it is no marker."""
    if not batch.is_control or batch.producer_id == NO_PRODUCER:
        return None
    return marker_in(b"".join(batch.parts))
