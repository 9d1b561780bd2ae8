"""Batches of transactions, and a second answer to what they mean: a scan of all of them each time."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog.records.control import EndTxnMarker, control_batch
from quorumlog.records.format.batch import NO_SEQUENCE
from quorumlog_storage.producers.replay import marker_of
from quorumlog_storage.producers.transactions import NEVER
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches
from quorumlog_storage.segment.transaction_index import AbortedTransaction

TIME_MS = 1_700_000_000_000


def data_batch(
    base_offset: Offset,
    producer_id: int,
    sequence: int = 0,
    *,
    count: int = 1,
    producer_epoch: int = 0,
    epoch: Epoch = 1,
    transactional: bool = True,
) -> StoredBatch:
    data = encode_batch(
        [Record(n, TIME_MS + n, None, b"v%d" % (base_offset + n), ()) for n in range(count)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    (stored,) = stamped_batches(data, headers(data), base_offset, epoch)
    return stored


def marker(
    base_offset: Offset,
    producer_id: int,
    *,
    committed: bool = False,
    coordinator_epoch: Epoch = 0,
    producer_epoch: int = 0,
    epoch: Epoch = 1,
) -> StoredBatch:
    data = control_batch(
        [EndTxnMarker(committed, coordinator_epoch)],
        base_offset=0,
        timestamp_ms=TIME_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    (stored,) = stamped_batches(data, headers(data), base_offset, epoch)
    return stored


@dataclass
class Meaning:
    """open: first offset by producer. ended: (first offset, marker). aborted: in the order of the markers."""

    open: dict[int, Offset] = field(default_factory=dict)
    ended: list[tuple[Offset, Offset]] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def first_unstable(self, high_watermark: Offset) -> Offset:
        waiting = [first for first, marker_at in self.ended if marker_at >= high_watermark]
        return min([*self.open.values(), *waiting, NEVER])

    def aborted_between(self, fetch_offset: Offset, end_offset: Offset) -> list[AbortedTransaction]:
        return [one for one in self.aborted if one.last_offset >= fetch_offset and one.first_offset < end_offset]

    def is_visible(self, batch: StoredBatch) -> bool:
        """A read_committed consumer gets this batch, if it lies below the last stable offset."""
        return not batch.is_control and not any(
            one.producer_id == batch.producer_id and one.first_offset <= batch.base_offset < one.last_offset
            for one in self.aborted
            if batch.is_transactional
        )


def meaning(batches: list[StoredBatch]) -> Meaning:
    found = Meaning()
    for batch in batches:
        end = marker_of(batch)
        if end is not None:
            first = found.open.pop(batch.producer_id, None)
            if first is not None:
                found.ended.append((first, batch.base_offset))
                stable = min([*found.open.values(), batch.base_offset + 1])
                if not end.committed:
                    entry = AbortedTransaction(batch.producer_id, first, batch.base_offset, stable)
                    found.aborted.append(entry)
        elif batch.is_transactional and not batch.is_control and batch.base_sequence != NO_SEQUENCE:
            found.open.setdefault(batch.producer_id, batch.base_offset)
    return found
