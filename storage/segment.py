"""One segment: whole batches from a base offset on, in a log file and the caches that are made from it.

The log's writer appends and truncates. Readers on any thread `find` and `read` below a limit that was published to
them: the exclusive end of the log file's bytes that they may see.

The offsets of a segment end where the next segment begins. Between two batches of a segment, and before its first one,
offsets may be missing: compaction removes records, and a follower copies what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from quorumlog.ids import Offset
from quorumlog.records.batch import BatchHeader
from storage.batch import StoredBatch
from storage.disk import Disk
from storage.log_file import CorruptBatch, LogFile
from storage.names import index_name, log_name
from storage.offset_index import MAX_POSITION, MAX_RELATIVE_OFFSET, START, IndexEntry, OffsetIndexFile
from storage.segment_file import SegmentCache


class Segment:
    """Offsets [base_offset, base offset of the next segment)."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: Offset, index_interval_bytes: int, suffix: str = ""
    ) -> None:
        """suffix: of the files' names, such as `.cleaned`; see `rename`."""
        self.base_offset = base_offset
        self.log = LogFile(disk, f"{directory}/{log_name(base_offset)}", suffix)
        index_path = f"{directory}/{index_name(base_offset)}"
        self._index = OffsetIndexFile(disk, index_path, base_offset, self.log, index_interval_bytes, suffix)
        self.caches: tuple[SegmentCache, ...] = (self._index,)

    @property
    def size(self) -> int:
        """Bytes of whole batches, as the writer knows them. A reader of the last segment uses the published size."""
        return self.log.size

    # --- names ---

    def create(self) -> None:
        """Make an empty segment. Its name is not durable until the directory is synced."""
        self.log.create()
        for cache in self.caches:
            cache.create()

    def rename(self, suffix: str) -> None:
        """Give all files a suffix such as `.deleted`; "" makes the segment live. Durable once the directory is synced.

        The caches go first and the log file last: after a crash in between, no cache lies beside a log file that it was
        not made from, and a cache that is missing is built again. Readers that hold this segment read on.
        """
        for cache in self.caches:
            cache.rename(suffix)
        self.log.rename(suffix)

    def remove(self) -> None:
        """Remove the files, the caches first. Readers that hold the open file read on."""
        self.remove_caches()
        self.log.remove()

    def abandon(self) -> None:
        """The directory is about to get another name: no file is opened any more. Readers of open ones read on."""
        for cache in self.caches:
            cache.abandon()
        self.log.abandon()

    def remove_caches(self) -> None:
        for cache in self.caches:
            cache.remove()

    # --- for the log's writer ---

    def has_room(self, start: int, batch: StoredBatch, segment_bytes: int) -> bool:
        """True if a batch may follow at position `start`. An empty segment takes a batch of any size."""
        end = start + batch.size
        return batch.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET and (
            end <= segment_bytes or (start == 0 and end <= MAX_POSITION)
        )

    def append(self, batches: Sequence[StoredBatch], *, read_soon: bool = True) -> None:
        """Write the batches at the end, with one vectored write. read_soon: as for `File.pwritev`."""
        position = self.log.append([part for batch in batches for part in batch.parts], read_soon=read_soon)
        for cache in self.caches:
            cache.note(batches, position)

    def truncate_to(self, position: int) -> None:
        """Forget the batches from `position` on. The files are untouched until `remove_caches` and `log.cut`."""
        for cache in self.caches:
            cache.truncate_to(position)
        self.log.truncate_to(position)

    def flush_caches(self) -> None:
        """Write the caches' files for the next start. Not synced."""
        for cache in self.caches:
            cache.flush()

    def flush_held_caches(self) -> None:
        """`flush_caches` for those that have changed since."""
        for cache in self.caches:
            if cache.is_held:
                cache.flush()

    # --- for readers; limit: exclusive end of the published bytes ---

    def find(self, offset: Offset, limit: int) -> int:
        """Position of the first batch that ends at or after `offset` (inclusive last offset); `limit` if none does."""
        for position, header in self._walk_from(self._index.index.floor_offset(offset - self.base_offset), limit):
            if header.last_offset >= offset:
                return position
        return limit

    def floor_boundary(self, position: int, limit: int) -> int:
        """The last position at or before `position` where a batch begins or the published bytes end."""
        if position >= limit:
            return limit
        found = 0
        for start, _ in self._walk_from(self._index.index.floor_position(position), limit):
            if start > position:
                return found
            found = start
        return found

    def batch_end(self, position: int, limit: int) -> int:
        """Exclusive end of the batch that begins at `position`."""
        start, header = next(self.log.walk(position, limit))
        return start + header.size

    def end_offset_before(self, limit: int) -> Offset:
        """One past the last record below `limit`; the base offset if there is none."""
        return self._last_end(self._index.index.floor_position(limit - 1), limit)

    def end_offset(self) -> Offset:
        """One past the last record of a segment that is not written to, found without loading the caches."""
        return self._last_end(self._index.last_entry(), self.size)

    def _last_end(self, entry: IndexEntry, limit: int) -> Offset:
        end = self.base_offset
        for _, header in self._walk_from(entry, limit):
            end = header.next_offset
        return end

    def _walk_from(self, entry: IndexEntry, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """`LogFile.walk` from an index entry, or from the first byte if the log does not agree with the entry."""
        if entry == START:
            return self.log.walk(0, limit)
        if entry.position < limit:
            walk = self.log.walk(entry.position, limit)
            first = _first_of(walk)
            if first is not None and first[1].last_offset == self.base_offset + entry.relative_offset:
                return chain((first,), walk)
            self._index.distrust()
        return self.log.walk(0, limit)


def _first_of(walk: Iterator[tuple[int, BatchHeader]]) -> tuple[int, BatchHeader] | None:
    try:
        return next(walk, None)
    except CorruptBatch:
        return None
