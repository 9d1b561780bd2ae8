"""The time index of one segment, as a file and in memory: a `SegmentCache` beside the offset index.

Rules (Kafka's `TimeIndex` and `LogSegment.append`):

1. Whenever the offset index gets an entry, the time index gets the largest timestamp so far, if that has risen. So at
   each entry of the offset index the largest timestamp is known, and a search begins at such an entry.
2. When the file is written, for a segment that is closed or a node that stops, the largest timestamp of all comes last.
   So the last entry says whether a segment holds a time at all.

Kafka allows the two files to be of different builds. Here they are not: they are rebuilt together (index_pair.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorumlog.ids import Offset
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.segment.index_file import CorruptIndex, IndexFile
from quorumlog_storage.segment.log_file import LogFile
from quorumlog_storage.segment.offset_index import OffsetIndexFile
from quorumlog_storage.segment.segment_file import IndexedBatch
from quorumlog_storage.segment.time_entries import NO_TIME, TIME_ENTRY_BYTES, TimeEntries, TimeEntry


def largest_of(batches: Sequence[IndexedBatch], base_offset: Offset, before: TimeEntry) -> TimeEntry:
    """The largest timestamp, where `before` is the largest so far. Of two equal ones the first."""
    for batch in batches:
        if batch.max_timestamp > before.timestamp:
            before = TimeEntry(batch.max_timestamp, batch.last_offset - base_offset)
    return before


class TimeIndexFile(IndexFile[TimeEntries]):
    """offsets: the segment's offset index; its `note` and `truncate_to` are called before those of this one."""

    entry_bytes = TIME_ENTRY_BYTES

    def __init__(
        self,
        disk: Disk,
        live_path: str,
        base_offset: Offset,
        log: LogFile,
        offsets: OffsetIndexFile,
        on_damage: Callable[[], None],
        suffix: str = "",
    ) -> None:
        super().__init__(disk, live_path, log, on_damage, suffix)
        self._base_offset, self._offsets = base_offset, offsets
        self._noted: TimeEntry | None = None  # the largest up to the writer's last batch; None: not known yet
        self._known: dict[None, TimeEntry] = {}  # the same for readers; a new one after each truncation

    @property
    def largest(self) -> TimeEntry:
        """The largest timestamp of the segment; NO_TIME where no batch has one.

        Found without loading the index. The last entry of a file counts if the batch that it names agrees, and if no
        batch after the last entry of the offset index is later; otherwise the indexes are built again. Raises
        CorruptBatch, DiskError.
        """
        kept = self._known
        known = kept.get(None)
        return known if known is not None else kept.setdefault(None, self._find_largest())

    def empty(self) -> TimeEntries:
        return TimeEntries()

    def decode(self, content: bytes) -> TimeEntries:
        return TimeEntries.decode(content)

    def create(self) -> None:
        super().create()
        self._noted = NO_TIME
        self._known = {None: NO_TIME}

    def get_ready(self) -> None:
        """Called before batches are written to the log. Raises what `largest` raises."""
        if self._noted is None:
            self._noted = self.largest

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        largest = self._noted
        assert largest is not None, "not ready"
        self._is_ahead = True  # before the index is asked for: from now on no other thread lets it leave
        index = self.index
        indexed = self._offsets.index.positions_since(position)
        if indexed:
            number = 0
            for batch in batches:
                largest = largest_of((batch,), self._base_offset, largest)
                if number < len(indexed) and position == indexed[number]:
                    index.append_if_later(largest)
                    number += 1
                position += batch.size
        else:
            largest = largest_of(batches, self._base_offset, largest)
        self._noted = self._known[None] = largest

    def truncate_to(self, position: int) -> None:
        """Raises CorruptBatch, DiskError where the batches between the last entry and `position` cannot be read."""
        self._is_ahead = True
        start = self._offsets.index.floor_position(position - 1)
        kept = self.index.up_to(start.relative_offset)
        largest = kept.last
        for _, header in (self._offsets.walk_from(start, position) if position else None) or ():
            largest = largest_of((header,), self._base_offset, largest)
        self.slot = {None: kept}
        self._noted = largest
        self._known = {None: largest}

    def rebuilt(self, slot: dict[None, TimeEntries], index: TimeEntries, largest: TimeEntry) -> None:
        """`install`, with the largest timestamp of all."""
        kept = self._known
        self.install(slot, index)
        if self._noted is None:
            kept[None] = largest

    def flush(self) -> None:
        index, largest = self.index, self.largest
        self._is_ahead = True
        index.append_if_later(largest)
        super().flush()

    def last_entry(self) -> TimeEntry:
        """The last entry, without loading the others; like every entry, a hint. NO_TIME if there is none."""
        if not self.slot:
            try:
                return self.read_last().last
            except (FileMissing, CorruptIndex):
                pass
        return self.index.last

    def agrees(self, entry: TimeEntry, limit: int) -> bool:
        """The batch that an entry names lies below `limit` and has its timestamp, or lies behind what is published."""
        if entry == NO_TIME:
            return True
        start = self._offsets.index.floor_before(entry.relative_offset + 1, limit)
        walk = self._offsets.walk_from(start, limit)
        if walk is None:
            return False
        for _, header in walk:
            if header.last_offset >= self._base_offset + entry.relative_offset:
                return (header.last_offset, header.max_timestamp) == self._stored(entry)
        return limit < self._log.size

    def _stored(self, entry: TimeEntry) -> tuple[Offset, int]:
        return self._base_offset + entry.relative_offset, entry.timestamp

    def _find_largest(self) -> TimeEntry:
        size, last = self._log.size, self.last_entry()
        walk = self._offsets.walk_from(self._offsets.last_entry(), size)
        if walk is not None:
            largest, is_met = NO_TIME, last == NO_TIME
            for _, header in walk:
                largest = largest_of((header,), self._base_offset, largest)
                is_met = is_met or (header.last_offset, header.max_timestamp) == self._stored(last)
            if largest.timestamp <= last.timestamp and (is_met or self.agrees(last, size)):
                return last
        self._on_damage()
        return self._known.get(None, last)
