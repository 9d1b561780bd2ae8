"""Which transactions are open at the end of some batches of a partition, read in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorumlog.ids import Epoch, Offset
from quorumlog.records.control import EndTxnMarker, control_batch, decode_control
from quorumlog.records.format.batch import BatchHeader, headers
from quorumlog.records.rowwise.plain import decode_batch

NO_COORDINATOR_EPOCH: Epoch = 0  # of our markers; nobody compares it, because no coordinator knows the transaction


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

    def abort_markers(self, end: Offset, leader_epoch: Epoch) -> Iterator[bytes]:
        """A batch for each that is open, in the order in which they began. end: where the first one goes.

        A marker has the timestamp of its transaction's last batch, so that a second copy has the same bytes.
        """
        for number, (producer_id, one) in enumerate(self.by_producer.items()):
            yield control_batch(
                [EndTxnMarker(committed=False, coordinator_epoch=NO_COORDINATOR_EPOCH)],
                base_offset=end + number,
                timestamp_ms=one.timestamp_ms,
                leader_epoch=max(0, leader_epoch),
                producer_id=producer_id,
                producer_epoch=one.producer_epoch,
            )
