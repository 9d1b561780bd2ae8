"""Which batches of a fetch answer a read_committed consumer delivers (KIP-98). Pure.

The leader gives batches below the last stable offset only, and names the aborted transactions among them: a producer
and a first offset. From there on the producer's transactional batches did not happen, until its next abort marker.
Control batches are never delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.fetch import AbortedTransaction
from quorumlog.records import BatchHeader, iter_batch
from quorumlog.records.control import EndTxnMarker, decode_control


def committed_batches(
    records: Buffer, found: Iterable[BatchHeader], aborted: Sequence[AbortedTransaction]
) -> list[BatchHeader]:
    """Of the batches `found` in `records`, in their order, those that count. Raises CorruptRecords."""
    waiting = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    live: set[int] = set()  # producers in the middle of an aborted transaction
    kept = []
    for header in found:
        while waiting and waiting[-1].first_offset <= header.last_offset:
            live.add(waiting.pop().producer_id)
        if header.is_control:
            if header.producer_id in live and _is_abort(records, header):
                live.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in live):
            kept.append(header)
    return kept


def _is_abort(records: Buffer, header: BatchHeader) -> bool:
    for record in iter_batch(records, header):
        marker = decode_control(record.key, record.value)
        return isinstance(marker, EndTxnMarker) and not marker.committed
    return False
