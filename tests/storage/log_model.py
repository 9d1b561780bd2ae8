"""A partition's log as a list of batches: what a log must hold after each operation, and what a crash may leave of it.

The states that a crash may leave are one list of batches, of which a prefix may be there, and the offsets at which the
log may start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from quorumlog.ids import Epoch, Offset
from quorumlog.records import Record, encode_batch, headers
from storage.batch import StoredBatch, stamped_batches
from storage.epochs import EpochStart

REMEMBERED = 5  # batches of a producer

Entry = tuple[Offset, Epoch, bytes]


class ModelBatch(NamedTuple):
    """producer: -1 for none; sequence: of its first record."""

    base: Offset
    epoch: Epoch
    values: tuple[bytes, ...]
    producer: int = -1
    sequence: int = -1

    @property
    def end(self) -> Offset:
        return self.base + len(self.values)

    def stored(self) -> StoredBatch:
        records = [Record(n, 1_700_000_000_000 + n, None, value, ()) for n, value in enumerate(self.values)]
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
            if batch.base + number >= self.start
        ]

    def epochs(self) -> list[EpochStart]:
        """Of the batches that hold records from the start on, and the epoch that was begun."""
        found: list[EpochStart] = []
        for batch in self.batches:
            if batch.end > self.start and (not found or found[-1].epoch != batch.epoch):
                found.append(EpochStart(batch.epoch, batch.base))
        return [*found, *([self.begun] if self.begun is not None else [])]

    def of_producer(self, producer: int, first: Offset = 0) -> list[tuple[int, Offset]]:
        """(last sequence, last offset) of its batches that begin at `first` or later, at most five, oldest first."""
        own = [batch for batch in self.batches if batch.producer == producer and batch.base >= first]
        return [(batch.sequence + len(batch.values) - 1, batch.end - 1) for batch in own[-REMEMBERED:]]

    def read(self, offset: Offset, upper_bound: Offset) -> list[ModelBatch]:
        """The batches from the one that holds `offset`, or follows it, up to the last that ends at `upper_bound`."""
        return [batch for batch in self.batches if offset < batch.end <= upper_bound]

    # --- operations ---

    def appended(self, batches: Sequence[ModelBatch]) -> LogModel:
        begun = self.begun
        if begun is not None and any(batch.epoch >= begun.epoch for batch in batches):
            begun = None
        return replace(self, batches=[*self.batches, *batches], begun=begun)

    def truncated(self, offset: Offset) -> LogModel:
        """Without the batches that hold a record at or after `offset`; empty if that takes the start's batch."""
        kept = [batch for batch in self.batches if batch.end <= offset]
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
        left = replace(self, batches=kept, synced=end, begun=None)
        return left if left.end >= self.start else self.restarted(self.start)
