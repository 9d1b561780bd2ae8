"""One segment: a `.log` file of whole batches from a base offset on, and its offset index.

The log's writer appends and truncates; readers on any thread `find` and `read` below a limit that was published to
them. The file and the index of a segment that nobody has asked for yet are not opened: a log of a thousand segments
opens at once. A removed segment is only dropped, not closed: its file closes with the last reader that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.batch import BATCH_OVERHEAD, BatchHeader, parse_header
from storage.batch import StoredBatch
from storage.disk import Buffer, Disk, File, FileMissing, write_fully
from storage.names import index_name, log_name
from storage.offset_index import MAX_POSITION, MAX_RELATIVE_OFFSET, START, CorruptIndex, IndexEntry, OffsetIndex

WALK_BYTES = 4096  # read at once while going from header to header


class CorruptBatch(Exception):
    """A batch that was written whole is not whole any more. position: bytes from the start of the file."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(
            f"{path} at byte {position}: {reason}; check the disk, then restart the node: it cuts the log there and "
            "fetches the rest from the leader"
        )
        self.path, self.position, self.reason = path, position, reason


class Segment:
    """Batches [base_offset, base offset of the next segment)."""

    def __init__(self, disk: Disk, directory: str, base_offset: Offset, index_interval_bytes: int) -> None:
        self.base_offset = base_offset
        self.path = f"{directory}/{log_name(base_offset)}"
        self.index_path = f"{directory}/{index_name(base_offset)}"
        self._disk = disk
        self._interval = index_interval_bytes
        self._file: File | None = None
        self._size: int | None = None  # None: not asked yet
        self._index: OffsetIndex | None = None

    @property
    def file(self) -> File:
        """Two threads that come first at the same time may both open it; the loser's closes itself."""
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    @property
    def size(self) -> int:
        """Bytes of whole batches, as the writer knows them. A reader of the last segment uses the published size."""
        if self._size is None:
            self._size = self.file.size()
        return self._size

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = self._load_index()
        return self._index

    def create(self) -> None:
        """Make the file, empty. Its name is not durable until the directory is synced."""
        self._file = self._disk.open(self.path, create=True)
        self._file.truncate(0)
        self._size = 0
        self._index = OffsetIndex()

    # --- the writer's part ---

    def fits(self, pending_bytes: int, batch: StoredBatch, segment_bytes: int) -> bool:
        """True if a batch may follow here after `pending_bytes` more. An empty segment takes any."""
        start = self.size + pending_bytes
        end = start + batch.size
        return batch.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET and (
            end <= segment_bytes or (start == 0 and end <= MAX_POSITION)
        )

    def append(self, buffers: Sequence[Buffer], *, read_soon: bool = True) -> int:
        """One vectored write at the end. Returns the position where it began. read_soon: see `File.pwritev`."""
        position = self.size
        self._size = position + write_fully(self.file, self.path, buffers, position, read_soon=read_soon)
        return position

    def note(self, position: int, last_offset: Offset) -> None:
        """Index a batch that was written, if it begins more than the interval after the last one indexed."""
        if position - self.index.last_position > self._interval:
            self.index.append(last_offset - self.base_offset, position)

    def forget(self, position: int) -> None:
        """Batches from `position` on are no longer this segment's. The file is untouched until `truncate`."""
        self.index.truncate_to(position)
        self._size = position

    def truncate(self) -> None:
        """Cut the file where its last batch ends. Not durable until `sync`."""
        self.file.truncate(self.size)

    def adopt(self, size: int, index: OffsetIndex) -> None:
        """What a scan of the whole file found: its valid size and a new index."""
        self._size, self._index = size, index

    def begin_sync(self) -> None:
        self.file.begin_sync()

    def sync(self) -> None:
        self.file.sync()

    def write_index(self) -> None:
        """Leave the index for the next start. Not synced, not atomic: it is a cache."""
        file = self._disk.open(self.index_path, create=True)
        content = self.index.encode()
        write_fully(file, self.index_path, [content], 0)
        file.truncate(len(content))
        file.close()

    def remove_index(self) -> None:
        if self._disk.exists(self.index_path):
            self._disk.unlink(self.index_path)

    def remove(self) -> None:
        """Take the names away, the index first: an index without a log is removed at the next start too."""
        self.remove_index()
        self._disk.unlink(self.path)

    # --- the readers' part; limit: exclusive end of the published bytes ---

    def find(self, offset: Offset, limit: int) -> int:
        """Position of the first batch that ends at or after `offset` (inclusive last offset); `limit` if none does."""
        for position, header in self._walk_from(self.index.floor_offset(offset - self.base_offset), limit):
            if header.last_offset >= offset:
                return position
        return limit

    def boundary(self, position: int, limit: int) -> int:
        """The last place at or before `position` where a batch begins or the published bytes end."""
        if position >= limit:
            return limit
        found = 0
        for start, _ in self._walk_from(self.index.floor_position(position), limit):
            if start > position:
                return found
            found = start
        return found

    def batch_end(self, position: int, limit: int) -> int:
        """Exclusive end of the batch that begins at `position`."""
        start, header = next(self.walk(position, limit))
        return start + header.size

    def next_offset(self, limit: int) -> Offset:
        """One past the last record below `limit`; the base offset of an empty segment."""
        end = self.base_offset
        for _, header in self._walk_from(self.index.floor_position(limit - 1), limit):
            end = header.next_offset
        return end

    def read(self, position: int, length: int) -> bytes:
        """Raises CorruptBatch where the file is shorter than what was published."""
        data = self.file.pread(position, length)
        if len(data) != length:
            raise CorruptBatch(self.path, position, f"{length} bytes were written, {len(data)} are there")
        return data

    def walk(self, position: int, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every batch from `position` to `limit`. Checksums are not looked at.

        Raises CorruptBatch where something is no header or a batch does not end at or before `limit`.
        """
        window, window_start = b"", position
        while position < limit:
            if position + BATCH_OVERHEAD > window_start + len(window):
                window_start, window = position, self.file.pread(position, min(WALK_BYTES, limit - position))
            header = self._header(window, position - window_start, position)
            if position + header.size > limit:
                raise CorruptBatch(self.path, position, f"a batch of {header.size} bytes, {limit - position} are left")
            yield position, header
            position += header.size

    def _header(self, window: bytes, at: int, position: int) -> BatchHeader:
        try:
            return parse_header(window, at)
        except CorruptRecords as error:
            raise CorruptBatch(self.path, position, error.reason) from error

    def _walk_from(self, entry: IndexEntry, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """`walk` from an index entry, or from the first byte if the log does not agree with the entry."""
        return self.walk(entry.position if self._agrees(entry, limit) else 0, limit)

    def _agrees(self, entry: IndexEntry, limit: int) -> bool:
        if entry == START or entry.position >= limit:
            return entry == START
        try:
            _, header = next(self.walk(entry.position, limit))
        except CorruptBatch:
            header = None
        if header is not None and header.last_offset == self.base_offset + entry.relative_offset:
            return True
        self._index = OffsetIndex()  # damaged: from now on this segment is searched from its first byte
        return False

    def _load_index(self) -> OffsetIndex:
        try:
            return OffsetIndex.decode(self._disk.read_bytes(self.index_path), self.size)
        except (FileMissing, CorruptIndex):
            return self._rebuild_index()

    def _rebuild_index(self) -> OffsetIndex:
        index = OffsetIndex()
        for position, header in self.walk(0, self.size):
            if position - index.last_position > self._interval:
                index.append(header.last_offset - self.base_offset, position)
        return index
