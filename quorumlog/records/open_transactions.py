"""Which transactions are open at the end of some batches of a partition, read in order."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.format.batch import BatchHeader, headers
from quorumlog.records.rowwise.plain import decode_batch


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """first_offset: of its first batch. producer_epoch, timestamp_ms: of its last one."""

    first_offset: Offset
    producer_epoch: int
    timestamp_ms: int


class OpenTransactions:
    """by_producer: in the order in which they began."""

    def __init__(self) -> None:
        self.by_producer: dict[int, OpenTransaction] = {}

    def follow(self, header: BatchHeader, data: bytes) -> None:
        """The next batch. data: its bytes, alone. Raises CorruptRecords."""
        if not header.is_transactional:
            return
        if not header.is_control:
            known = self.by_producer.get(header.producer_id)
            first = header.base_offset if known is None else known.first_offset
            self.by_producer[header.producer_id] = OpenTransaction(first, header.producer_epoch, header.max_timestamp)
            return
        (alone,) = headers(data)
        kinds = [decode_control(record.key, record.value) for record in decode_batch(data, alone)]
        if any(isinstance(kind, EndTxnMarker) for kind in kinds):
            self.by_producer.pop(header.producer_id, None)
