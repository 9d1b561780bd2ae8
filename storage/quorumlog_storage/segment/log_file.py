"""The files of one segment: its `.log` file, and what a cache that is made from it has to do.

The log file holds whole batches, one after the other, from the first byte on. The log's writer appends and truncates.
Readers on any thread read below a limit that was published to them: the exclusive end of the bytes that they may see.

A cache is an index: of offsets, of timestamps, or of aborted transactions. A new one is a class that keeps
`SegmentCache` and an entry in `Segment.caches`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import BATCH_OVERHEAD, BatchHeader, parse_header
from quorumlog_storage.files.disk import Buffer, Disk, File, FileMissing, write_fully
from quorumlog_storage.files.file_handle import FileHandle
from quorumlog_storage.files.names import LOG_SUFFIX


class IndexedBatch(Protocol):
    """What caches need of a batch: of one that is stored now (`StoredBatch`), or the header of one that is read back.

    Both have the batch's producer and attributes, too; a cache that needs them adds them here.
    """

    @property
    def size(self) -> int: ...  # bytes, header included
    @property
    def last_offset(self) -> Offset: ...  # inclusive
    @property
    def max_timestamp(self) -> int: ...  # ms since 1970; -1 where no record has a time
    @property
    def producer_id(self) -> int: ...
    @property
    def attributes(self) -> int: ...


class SegmentFile(Protocol):
    """One file of a segment. One thread changes it. Every method may raise DiskError."""

    @property
    def path(self) -> str:
        """The name that the file has now."""
        ...

    @property
    def size(self) -> int:
        """Bytes of the file's content."""
        ...

    def create(self) -> None:
        """Make the file, empty, for a segment without batches."""
        ...

    def truncate_to(self, position: int) -> None:
        """Forget batches that begin at or after `position`, in bytes of the log file. The file is not changed yet."""
        ...

    def flush(self) -> None:
        """Put on disk what memory holds: a log file durably, a cache without a sync."""
        ...

    def rename(self, suffix: str) -> None:
        """Append `suffix` to the file's first name; "" gives that name back. A cache without a file does nothing."""
        ...

    def remove(self) -> None:
        """Remove the file. A cache without a file does nothing."""
        ...

    def abandon(self) -> None:
        """Do not open the file any more: its directory is about to get another name."""
        ...


class SegmentCache(SegmentFile, Protocol):
    """A file that can be built again from the log. Loaded, or else built, at its first use."""

    @property
    def is_held(self) -> bool:
        """The memory holds what the file lacks."""
        ...

    def note(self, batches: Sequence[IndexedBatch], position: int) -> None:
        """`batches` are in the log now, one after the other from `position` on."""
        ...


def suffixed(live_path: str, suffix: str) -> str:
    """The name of a segment's file under a suffix such as `.deleted`, `.cleaned`, `.swap`; "" for a live one."""
    assert suffix == "" or (suffix.startswith(".") and "/" not in suffix), suffix
    return live_path + suffix


WALK_BYTES = 4096  # read at once while going from header to header


class CorruptBatch(Exception):
    """A batch that was written completely is damaged. position: bytes from the start of the file."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(
            f"{path} at byte {position}: {reason}; check the disk, then restart the node: it cuts the log there and "
            "fetches the rest from the leader"
        )
        self.path, self.position, self.reason = path, position, reason


class LogFile:
    """A `SegmentFile`."""

    def __init__(self, disk: Disk, live_path: str, suffix: str = "") -> None:
        self._live_path = live_path
        self._handle = FileHandle(disk, suffixed(live_path, suffix))
        self._size: int | None = None  # None: not known yet
        self._has_room = False  # it was reserved, by this process

    @property
    def path(self) -> str:
        return self._handle.path

    @property
    def file(self) -> File:
        return self._handle.file

    @property
    def size(self) -> int:
        """Bytes of whole batches, as the writer knows them. A reader of the last segment uses the published size."""
        if self._size is None:
            self._size = self._handle.file.size()
        return self._size

    def create(self) -> None:
        self._handle.create()
        self._size = 0

    def get_ready(self) -> None:
        """Have a descriptor for the next append. Raises DiskError, for example where too many files are open."""
        assert self._handle.file_to_change is not None

    def append(self, buffers: Sequence[Buffer], *, read_soon: bool = True) -> int:
        """One vectored write at the end. Returns the position where it began. read_soon: see `File.pwritev`."""
        position = self.size
        handle = self._handle
        file = handle.file_to_change
        self._size = position + write_fully(file, handle.path, buffers, position, read_soon=read_soon)
        return position

    def truncate_to(self, position: int) -> None:
        self._size = position

    def cut(self) -> None:
        """Cut the file where its last batch ends. Not durable until `flush`."""
        size, file = self.size, self._handle.file_to_change
        file.truncate(size)

    def reserve_room(self, size: int) -> None:
        """Have room on the disk for `size` bytes. A hint (`File.reserve`)."""
        self._handle.reserve(size)
        self._has_room = True

    def give_room_back(self) -> None:
        """Nothing more is appended: what was reserved behind the end is free again."""
        if self._has_room:
            self._handle.reserve(0)
            self._has_room = False

    def begin_sync(self) -> None:
        """See `File.begin_sync`."""
        self._handle.begin_sync()

    def flush(self) -> None:
        self._handle.sync()

    def rename(self, suffix: str) -> None:
        self._handle.rename(suffixed(self._live_path, suffix))

    def remove(self) -> None:
        self._handle.remove()

    def abandon(self) -> None:
        """See `FileHandle.abandon`."""
        self._handle.abandon()

    def let_go(self) -> None:
        """`abandon`, and those who hold this segment need it no more: its descriptor closes now, or with a read that is
        under way. A segment lies in a cycle of references, and the collector may be long in coming; until the last
        descriptor is closed, a disk keeps the bytes of a file that was removed."""
        self._handle.abandon()
        self._handle.leave()

    # --- for readers; limit: exclusive end of the published bytes ---

    def read(self, position: int, length: int) -> bytes:
        """Raises CorruptBatch if the file is shorter than what was published."""
        data = self._handle.file.pread(position, length)
        if len(data) != length:
            raise CorruptBatch(self.path, position, f"{length} bytes were written, {len(data)} are there")
        return data

    def walk(self, position: int, limit: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every batch from `position` to `limit`. Checksums are not checked.

        Raises CorruptBatch if the bytes are no header, or if a batch ends after `limit`.
        """
        file = self._handle.file
        window, window_start = b"", position
        while position < limit:
            if position + BATCH_OVERHEAD > window_start + len(window):
                window_start, window = position, file.pread(position, min(WALK_BYTES, limit - position))
            try:
                header = parse_header(window, position - window_start)
            except CorruptRecords as error:
                raise CorruptBatch(self.path, position, error.reason) from error
            if position + header.size > limit:
                raise CorruptBatch(self.path, position, f"a batch of {header.size} bytes, {limit - position} are left")
            yield position, header
            position += header.size


def holds_records(disk: Disk, path: str) -> bool:
    """True if the log in directory `path` has a segment with bytes. No directory: False. Raises DiskError."""
    try:
        names = disk.list(path)
    except FileMissing:
        return False
    return any(disk.open(f"{path}/{name}").size() for name in names if name.endswith(LOG_SUFFIX))
