"""Which transactions of the batches that a read_committed consumer gets did not happen (KIP-98).

The transaction indexes say it, those of the segments from the first batch on: a transaction of this batch may end far
behind it. A consumer leaves out the batches of a producer from a transaction's first offset to its marker.

An index that came from elsewhere is compared with the log at its first use. One that contradicts it is not used: the
segment is read instead, and the log's writer makes the index again with its next checkpoint.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter

from quorumlog.ids import Offset
from quorumlog.records.format.batch import BatchHeader
from quorumlog_storage.log.log_view import LogView
from quorumlog_storage.producers.log_producers import LogProducers
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_file import CorruptBatch
from quorumlog_storage.segment.transaction_index import (
    AbortedTransaction,
    CorruptTransactionIndex,
    TransactionIndexFile,
)

TransactionalBatch = tuple[int, Offset]  # producer id, base offset


class NotInMemory(Exception):
    """A file has to be read, and the caller may not wait for one."""


def transactional(found: Iterable[BatchHeader | StoredBatch]) -> list[TransactionalBatch]:
    """Of the batches of an answer, those that a transaction may concern."""
    return [(one.producer_id, one.base_offset) for one in found if one.is_transactional and not one.is_control]


def aborted_for(
    view: LogView,
    producers: LogProducers,
    batches: Iterable[TransactionalBatch],
    *,
    in_memory: bool = False,
) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions that hold one of `batches`, in the order of their ends; at most one for each batch.

    batches: in the order of the log, all in `view`. in_memory: read no file, but raise NotInMemory. Raises DiskError,
    CorruptBatch.
    """
    first_offsets: dict[int, list[Offset]] = {}
    for producer_id, base_offset in batches:
        first_offsets.setdefault(producer_id, []).append(base_offset)
    if not view.aborted or not first_offsets:
        return ()
    first = min(offsets[0] for offsets in first_offsets.values())
    end = max(offsets[-1] for offsets in first_offsets.values()) + 1
    return tuple(
        [
            entry
            for entry in _collect(view, producers, first, end, in_memory)
            if _holds_one(entry, first_offsets.get(entry.producer_id, ()))
        ]
    )


def _holds_one(entry: AbortedTransaction, base_offsets: list[Offset] | tuple[()]) -> bool:
    place = bisect_left(base_offsets, entry.first_offset)
    return place < len(base_offsets) and base_offsets[place] < entry.last_offset


def _collect(
    view: LogView, producers: LogProducers, fetch_offset: Offset, end_offset: Offset, in_memory: bool
) -> list[AbortedTransaction]:
    """Those that end at or after `fetch_offset` and begin before `end_offset`."""
    found: list[AbortedTransaction] = []
    base = view.bases[view.number_for(fetch_offset)]
    for index in view.aborted[bisect_left(view.aborted, base, key=attrgetter("base_offset")) :]:
        if in_memory and not (index.is_loaded and index.is_trusted):
            raise NotInMemory
        number = view.number_for(index.base_offset)
        try:
            if not index.is_trusted:
                _compare(view, number, index)
            entries, is_all = index.collect(fetch_offset, end_offset)
        except CorruptTransactionIndex:
            index.must_build = True  # the writer does it with its next checkpoint
            if in_memory:
                raise NotInMemory from None
            entries, is_all = _without_index(view, producers, number, fetch_offset, end_offset)
        found += entries
        if is_all:
            break
    return found


def _without_index(
    view: LogView, producers: LogProducers, number: int, fetch_offset: Offset, end_offset: Offset
) -> tuple[list[AbortedTransaction], bool]:
    entries = producers.aborted_in(view.segments, number)
    wanted = [one for one in entries if one.last_offset >= fetch_offset and one.first_offset < end_offset]
    return wanted, any(one.last_stable_offset >= end_offset for one in entries)


def _compare(view: LogView, number: int, index: TransactionIndexFile) -> None:
    """Raises CorruptTransactionIndex unless each entry's marker and first batch are where it says.

    Compaction may have removed a first batch; then another one follows its offset. The last stable offset never falls.
    """
    stable = 0
    for entry in index.entries():
        marker = _batch_at(view, entry.last_offset)
        if marker is None or marker.base_offset != entry.last_offset or not marker.is_control:
            raise CorruptTransactionIndex(f"{entry} ends where no marker is")
        first = _batch_at(view, max(entry.first_offset, view.start_offset))
        begins = first is not None and first.base_offset >= min(entry.first_offset, view.start_offset)
        is_other = first is not None and first.base_offset == entry.first_offset and _is_other(first, entry)
        if marker.producer_id != entry.producer_id or not begins or is_other:
            raise CorruptTransactionIndex(f"{entry} is not what the log holds")
        if not stable <= entry.last_stable_offset <= entry.last_offset + 1:
            raise CorruptTransactionIndex(f"{entry} behind a last stable offset of {stable}")
        stable = entry.last_stable_offset
    index.is_trusted = True


def _is_other(batch: BatchHeader, entry: AbortedTransaction) -> bool:
    return batch.producer_id != entry.producer_id or not batch.is_transactional or batch.is_control


def _batch_at(view: LogView, offset: Offset) -> BatchHeader | None:
    """The first batch that ends at or after `offset`, in the segment that the offset belongs to."""
    number = view.number_for(offset)
    segment, limit = view.segments[number], view.limit(number)
    try:
        position = segment.find(offset, limit)
        return next(segment.log.walk(position, limit), (0, None))[1]
    except CorruptBatch:
        return None
