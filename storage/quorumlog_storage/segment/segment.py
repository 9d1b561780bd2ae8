"""One segment: whole batches from a base offset on, in a log file and the caches that are made from it.

The log's writer appends and truncates. Readers on any thread `find` and `read` below a limit that was published to
them: the exclusive end of the log file's bytes that they may see.

The offsets of a segment end where the next segment begins. Between two batches of a segment, and before its first one,
offsets may be missing: compaction removes records, and a follower copies what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog.records.format.batch import NO_TIMESTAMP, BatchHeader
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import index_name, log_name, time_index_name, transaction_index_name
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.index_pair import IndexPair
from quorumlog_storage.segment.log_file import LogFile, SegmentCache
from quorumlog_storage.segment.offset_index import MAX_POSITION, MAX_RELATIVE_OFFSET
from quorumlog_storage.segment.transaction_index import TransactionIndexFile


class Segment:
    """Offsets [base_offset, base offset of the next segment)."""

    def __init__(
        self, disk: Disk, directory: str, base_offset: Offset, index_interval_bytes: int, suffix: str = ""
    ) -> None:
        """suffix: of the files' names, such as `.cleaned`; see `rename`."""
        self.base_offset = base_offset
        self.log = LogFile(disk, f"{directory}/{log_name(base_offset)}", suffix)
        index_path, times_path = (f"{directory}/{name(base_offset)}" for name in (index_name, time_index_name))
        self.indexes = IndexPair(disk, index_path, times_path, base_offset, self.log, index_interval_bytes, suffix)
        transactions_path = f"{directory}/{transaction_index_name(base_offset)}"
        self.transactions = TransactionIndexFile(disk, transactions_path, base_offset, self.log, suffix)
        # noted in this order
        self.caches: tuple[SegmentCache, ...] = (self.indexes.offsets, self.indexes.times, self.transactions)
        self._first_timestamp: int | None = None  # None: not known

    @property
    def size(self) -> int:
        """Bytes of whole batches, as the writer knows them. A reader of the last segment uses the published size."""
        return self.log.size

    @property
    def largest_timestamp(self) -> int:
        """Of all batches, in ms; -1 where none has a time. Of the last segment also batches that are not published yet.

        Cheap: the writer's memory, or else the end of the time index and of the log, read once. Raises CorruptBatch,
        DiskError.
        """
        return self.indexes.times.largest.timestamp

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch, by which the segment's age is measured; -1: no time, or no batch.

        Noted by the append, or else read once. Raises CorruptBatch, DiskError.
        """
        first = self._first_timestamp
        if first is None:
            if self.size == 0:
                return NO_TIMESTAMP
            first = self._first_timestamp = next(self.log.walk(0, self.size))[1].max_timestamp
        return first

    # --- names ---

    def create(self) -> None:
        """Make an empty segment. Its name is not durable until the directory is synced."""
        self.log.create()
        self._first_timestamp = None
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
        for cache in self.caches:
            cache.abandon()  # a reader must not keep in memory what it builds of a file that is gone
        self.remove_caches()
        self.log.remove()

    def abandon(self) -> None:
        """The directory is about to get another name: no file is opened any more. Readers of open ones read on."""
        for cache in self.caches:
            cache.abandon()
        self.log.abandon()

    def let_go(self) -> None:
        """`abandon`, and nobody reads on but those whose read is under way."""
        self.abandon()
        self.log.let_go()

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
        self.indexes.times.get_ready()
        position = self.log.append([part for batch in batches for part in batch.parts], read_soon=read_soon)
        if position == 0 and batches:
            self._first_timestamp = batches[0].max_timestamp
        for cache in self.caches:
            cache.note(batches, position)

    def truncate_to(self, position: int) -> None:
        """Forget the batches from `position` on. The files are untouched until `remove_caches` and `log.cut`."""
        for cache in self.caches:
            cache.truncate_to(position)
        self.log.truncate_to(position)
        if position == 0:
            self._first_timestamp = None

    def flush_caches(self) -> None:
        """Write the caches' files for the next start. Not synced."""
        for cache in self.caches:
            cache.flush()

    def flush_held_caches(self) -> None:
        """`flush_caches` for those that have changed since."""
        for cache in self.caches:
            if cache.is_held:
                cache.flush()

    def save_rebuilt(self) -> None:
        """Write indexes that a look-up found wrong and built again. Not synced. Raises DiskError."""
        if self.indexes.is_rebuilt:
            self.indexes.save()

    # --- for readers; limit: exclusive end of the published bytes ---

    def find(self, offset: Offset, limit: int) -> int:
        """Position of the first batch that ends at or after `offset` (inclusive last offset); `limit` if none does."""
        for position, header in self.indexes.walk_from_offset(offset - self.base_offset, limit):
            if header.last_offset >= offset:
                return position
        return limit

    def floor_boundary(self, position: int, limit: int) -> int:
        """The last position at or before `position` where a batch begins or the published bytes end."""
        if position >= limit:
            return limit
        found = 0
        for start, _ in self.indexes.walk_from_position(position, limit):
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
        return self._last_end(self.indexes.walk_from_position(limit - 1, limit))

    def end_offset(self) -> Offset:
        """One past the last record of a segment that is not written to, found without loading the caches."""
        offsets, size = self.indexes.offsets, self.size
        walk = offsets.walk_from(offsets.last_entry(), size)
        return self.end_offset_before(size) if walk is None else self._last_end(walk)

    def _last_end(self, walk: Iterator[tuple[int, BatchHeader]]) -> Offset:
        end = self.base_offset
        for _, header in walk:
            end = header.next_offset
        return end
