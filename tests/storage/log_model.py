"""A partition's log as a list of batches: what a log must hold after each operation, and what a crash may leave of it.

The states that a crash may leave are one list of batches, of which a prefix may be there, and the offsets at which the
log may start. Compaction takes records and whole batches out of the list: it notes which later record allowed that,
because a record may only be gone while its successor, or a successor of that, is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record, encode_batch, headers
from quorumlog_storage.rules.epochs import EpochStart
from quorumlog_storage.segment.batch import StoredBatch, stamped_batches

REMEMBERED = 5  # batches of a producer
KEYS = 5
CUT: Offset = -1  # a successor that a truncation took

Entry = tuple[Offset, Epoch, bytes]


def key_of(value: bytes) -> bytes:
    """The key under which a value is written; values are `written/number`."""
    return b"k%d" % (sum(map(int, value.split(b"/"))) % KEYS)


class ModelBatch(NamedTuple):
    """producer: -1 for none; sequence: of its first record. gone: the numbers of the records that compaction took, with
    the offset of the record that each gave way to. has_left: it took the batch itself, too.
    """

    base: Offset
    epoch: Epoch
    values: tuple[bytes, ...]
    producer: int = -1
    sequence: int = -1
    gone: Mapping[int, Offset] = MappingProxyType({})
    has_left: bool = False

    @property
    def end(self) -> Offset:
        return self.base + len(self.values)

    def stored(self) -> StoredBatch:
        records = [Record(n, 1_700_000_000_000 + n, key_of(value), value, ()) for n, value in enumerate(self.values)]
        if self.producer < 0:
            data = encode_batch(records)
        else:
            data = encode_batch(records, producer_id=self.producer, producer_epoch=0, base_sequence=self.sequence)
        (stored,) = stamped_batches(data, headers(data), self.base, self.epoch)
        return stored


@dataclass
class LogModel:
    """batches: in order, with those before `start` that were not forgotten. start: the first offset that is served.

    first: where the log would start without deletions: 0, or where it was restarted. begun: an epoch that a leader has
    begun and not written in.
    """

    start: Offset = 0
    first: Offset = 0
    synced: Offset = 0
    batches: list[ModelBatch] = field(default_factory=list)
    begun: EpochStart | None = None

    @property
    def end(self) -> Offset:
        return self.batches[-1].end if self.batches else self.first

    @property
    def last_epoch(self) -> Epoch:
        if self.begun is not None:
            return self.begun.epoch
        return self.batches[-1].epoch if self.batches else -1

    @property
    def entries(self) -> list[Entry]:
        return [
            (batch.base + number, batch.epoch, value)
            for batch in self.batches
            for number, value in enumerate(batch.values)
            if batch.base + number >= self.start and number not in batch.gone
        ]

    def epochs(self) -> list[EpochStart]:
        """Of the batches that hold records from the start on, and the epoch that was begun. Compaction changes none."""
        found: list[EpochStart] = []
        for batch in self.batches:
            if batch.end > self.start and (not found or found[-1].epoch != batch.epoch):
                found.append(EpochStart(batch.epoch, batch.base))
        return [*found, *([self.begun] if self.begun is not None else [])]

    def of_producer(self, producer: int, first: Offset = 0) -> list[tuple[int, Offset]]:
        """(last sequence, last offset) of its batches that begin at `first` or later, oldest first."""
        own = [batch for batch in self.batches if batch.producer == producer and batch.base >= first]
        return [(batch.sequence + len(batch.values) - 1, batch.end - 1) for batch in own]

    def read(self, offset: Offset, upper_bound: Offset) -> list[ModelBatch]:
        """The batches from the one that holds `offset`, or follows it, up to the last that ends at `upper_bound`."""
        return [batch for batch in self.batches if offset < batch.end <= upper_bound and not batch.has_left]

    # --- operations ---

    def appended(self, batches: Sequence[ModelBatch]) -> LogModel:
        begun = self.begun
        if begun is not None and any(batch.epoch >= begun.epoch for batch in batches):
            begun = None
        return replace(self, batches=[*self.batches, *batches], begun=begun)

    def truncated(self, offset: Offset) -> LogModel:
        """Without the batches that hold a record at or after `offset`; empty if that takes the start's batch."""
        kept = [batch._replace(gone=_cut(batch.gone, offset)) for batch in self.batches if batch.end <= offset]
        while kept and kept[-1].has_left:
            del kept[-1]
        end = kept[-1].end if kept else self.first
        if offset >= self.end:
            return replace(self, begun=None if self.begun and self.begun.start_offset >= offset else self.begun)
        if end < self.start:
            return self.restarted(self.start)
        return replace(self, batches=kept, synced=min(self.synced, end), begun=None)

    def restarted(self, offset: Offset) -> LogModel:
        return LogModel(start=offset, first=offset, synced=offset)

    def cut_after_crash(self, end: Offset) -> LogModel:
        """What is left if the log ends at `end` after a start: all of it is on the disk then."""
        kept = [batch for batch in self.batches if batch.end <= end]
        lost = [(batch.base, number) for batch in kept for number, by in batch.gone.items() if by >= end]
        assert not lost, f"records gave way to others that were not on the disk: {lost}"
        left = replace(self, batches=kept, synced=end, begun=None)
        return left if left.end >= self.start else self.restarted(self.start)

    def compacted(self, first_dirty: Offset, until: Offset, there: Mapping[Offset, int]) -> LogModel:
        """After a round over the records from `first_dirty` to `until`, exclusive.

        there: the batches that the log holds now, base offset and count of records.
        """
        newest: dict[bytes, Offset] = {}
        for offset, value in self._records():
            if first_dirty <= offset < until:
                newest[key_of(value)] = offset
        batches = []
        for batch in self.batches:
            gone = dict(batch.gone)
            for number, value in enumerate(batch.values):
                by, offset = newest.get(key_of(value), -1), batch.base + number
                if offset < min(by, until):
                    gone.setdefault(number, by)
            batches.append(batch._replace(gone=gone, has_left=batch.base not in there))
        return replace(self, batches=batches)

    def with_what_is_left(self, there: Mapping[Offset, set[Offset]]) -> LogModel:
        """After a round that broke off: any record may have given way to a later one of its key that is there.

        there: the batches that the log holds, base offset and the offsets of their records.
        """
        present = set().union(*there.values())
        newest = {key_of(value): offset for offset, value in self._records() if offset in present}
        batches = []
        for batch in self.batches:
            gone = dict(batch.gone)
            for number, value in enumerate(batch.values):
                offset = batch.base + number
                if offset not in present and number not in gone and offset >= self.start:
                    by = newest.get(key_of(value), -1)
                    assert by > offset, f"the record at {offset} is gone, and none of its key is behind it"
                    gone[number] = by
            batches.append(batch._replace(gone=gone, has_left=batch.base not in there))
        return replace(self, batches=batches)

    def being_truncated(self, end: Offset) -> LogModel:
        """Before a cut at `end` that may or may not be carried out: what it takes may be gone with its predecessors."""
        return replace(self, batches=[batch._replace(gone=_cut(batch.gone, end)) for batch in self.batches])

    def _records(self) -> list[tuple[Offset, bytes]]:
        return [
            (batch.base + number, value)
            for batch in self.batches
            for number, value in enumerate(batch.values)
            if number not in batch.gone
        ]


def _cut(gone: Mapping[int, Offset], end: Offset) -> Mapping[int, Offset]:
    return {number: by if by < end else CUT for number, by in gone.items()}
