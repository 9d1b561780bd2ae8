"""What a restore appends to a partition's batches, so that no transaction is open in the new cluster. Pure.

A transaction that is open at the cut was never committed (decision 151), so an abort marker follows the records
(`OpenTransactions.abort_markers`). In `__transaction_state` its id gets a Prepare record of an abort with the next
epoch; the coordinator completes it when it has loaded, as one that a crash has interrupted, and so fences a producer
that still runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quorumlog.ids import Epoch, Offset
from quorumlog.records import BatchHeader, Record, encode_batch
from quorumlog.records.coordinator import TRANSACTION_TYPES, decode, encode_key
from quorumlog.records.coordinator.transactions import TRANSACTION, TransactionKey
from quorumlog.records.format.batch import headers
from quorumlog.records.rowwise.plain import decode_batch
from quorumlog_broker.coordinator.transactions.state.table import ONGOING, PREPARE_ABORT, TransactionTable

LARGEST_EPOCH = 2**15 - 1  # an int16, and only of markers


def empty_batch(start: Offset, end: Offset, leader_epoch: Epoch) -> bytes:
    """Without records, over these offsets, as compaction leaves one behind at the end of a log."""
    return encode_batch(
        [], base_offset=start, leader_epoch=max(0, leader_epoch), last_offset_delta=end - start - 1, max_timestamp_ms=-1
    )


class TransactionStates:
    """A partition of `__transaction_state`, followed batch by batch."""

    def __init__(self) -> None:
        self._table = TransactionTable()

    def follow(self, header: BatchHeader, data: bytes) -> None:
        """Raises CorruptRecords."""
        if header.is_control:
            return
        (alone,) = headers(data)
        for record in decode_batch(data, alone):
            self._table.replay_record(decode(TRANSACTION_TYPES, record.key, record.value))

    def abort_open(self, end: Offset, leader_epoch: Epoch, cut_ms: int, version: int) -> Iterator[bytes]:
        """A batch for each id that is open, as of the cut: each node that restores the partition writes the same bytes.

        version: of the records, by the level of transaction.version.
        """
        for transactional_id, value in self._table.items():
            if value.transaction_status != ONGOING:
                continue
            ended = replace(
                value,
                producer_epoch=min(value.producer_epoch + 1, LARGEST_EPOCH),
                transaction_status=PREPARE_ABORT,
                transaction_last_update_timestamp_ms=cut_ms,
            )
            key = encode_key(TransactionKey(transactional_id))
            record = Record(end, cut_ms, key, TRANSACTION.encode(ended, version), ())
            yield encode_batch([record], base_offset=end, leader_epoch=max(0, leader_epoch))
            end += 1
