"""Reads the segments that a round compacts, in pieces of bounded size, and verifies every checksum.

A piece holds whole batches. A batch that is larger than the buffer is read by itself, if its header is possible and it
ends inside the file; otherwise the segment is damaged there (CorruptBatch) and the round ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import BATCH_OVERHEAD, CRC_START, BatchHeader, parse_header, verify_crc
from quorumlog.records.format.crc import crc32c
from quorumlog_storage.files.disk import Disk, File
from quorumlog_storage.files.names import log_name
from quorumlog_storage.segment.log_file import WALK_BYTES, CorruptBatch, LogFile


class Scanned(Protocol):
    """The batches of a piece as one table (`compiled_keys.py`). There is at least one.

    is_simple: each has records, without compression, and none belongs to a transaction or is a marker. first: offset
    of the first one. end_offset: exclusive. size: bytes. records: of all.
    """

    is_simple: bool
    first: Offset
    end_offset: Offset
    size: int
    records: int

    def checksums(self) -> Iterable[tuple[int, int, int]]:
        """Of each batch: (first byte that its checksum covers, exclusive end, checksum)."""
        ...

    def headers(self) -> list[BatchHeader]: ...


Scan = Callable[[bytes], Scanned | None]  # None: the first batch is cut off, of an older format, or damaged


class Piece(NamedTuple):
    """Whole batches from the first byte of `data` on, which may end with a part of another one. position: of `data`.

    found: their headers, positions counted from the first byte.
    """

    data: bytes
    position: int
    found: list[BatchHeader] | Scanned

    @property
    def size(self) -> int:
        """Bytes of the whole batches."""
        return self.found[-1].end if isinstance(self.found, list) else self.found.size

    @property
    def headers(self) -> list[BatchHeader]:
        return self.found if isinstance(self.found, list) else self.found.headers()

    @property
    def simple(self) -> Scanned | None:
        """Its table, if all its batches are simple."""
        return None if isinstance(self.found, list) or not self.found.is_simple else self.found


class SourceFile(NamedTuple):
    """A segment as a round reads it. size: bytes of whole batches. end_offset: where the next segment begins."""

    directory: str
    base_offset: Offset
    size: int
    end_offset: Offset

    @property
    def path(self) -> str:
        return f"{self.directory}/{log_name(self.base_offset)}"

    def pieces(
        self, disk: Disk, buffer_bytes: int, start: int = 0, end: int | None = None, scan: Scan | None = None
    ) -> Iterator[Piece]:
        """The batches of the bytes [start, end), in order. Raises CorruptBatch, DiskError."""
        file, position = disk.open(self.path), start  # closed when it is dropped
        end = self.size if end is None else end
        while position < end:
            piece = self._piece(file, position, min(max(buffer_bytes, BATCH_OVERHEAD), end - position), scan)
            yield piece
            position += piece.size

    def walk(self, disk: Disk) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each batch; reads little more than the headers. Raises CorruptBatch, DiskError."""
        file = LogFile(disk, self.path)
        try:
            yield from file.walk(0, self.size)
        finally:
            file.let_go()  # the segment may leave the log; a disk keeps what is open

    @property
    def walk_bytes(self) -> int:
        """What `walk` reads, at most and about."""
        return min(self.size, WALK_BYTES * (self.size // WALK_BYTES + 1))

    def read(self, disk: Disk, position: int, length: int) -> bytes:
        """One batch. Raises CorruptBatch, DiskError."""
        data = disk.open(self.path).pread(position, length)
        if len(data) != length:
            raise CorruptBatch(self.path, position, f"{length} bytes were written, {len(data)} are there")
        return data

    def _piece(self, file: File, position: int, length: int, scan: Scan | None) -> Piece:
        data = file.pread(position, length)
        scanned = None if scan is None else scan(data)
        if scanned is not None:
            self._verify(data, position, scanned)
            return Piece(data, position, scanned)
        header = self._header(data, position, 0)
        if header.size > self.size - position:
            raise CorruptBatch(self.path, position, f"{header.size} bytes of a batch, {self.size - position} are left")
        if header.size > len(data):
            data = file.pread(position, header.size)
            if len(data) < header.size:
                raise CorruptBatch(self.path, position, f"a batch of {header.size} bytes, {len(data)} are there")
        headers = []
        while True:
            try:
                verify_crc(data, header)
            except CorruptRecords as error:
                raise CorruptBatch(self.path, position + header.position, error.reason) from error
            headers.append(header)
            if len(data) - header.end < BATCH_OVERHEAD:
                break
            header = self._header(data, position, header.end)
            if header.end > len(data):
                break
        return Piece(data, position, headers)

    def _verify(self, data: bytes, position: int, scanned: Scanned) -> None:
        for start, end, crc in scanned.checksums():
            if (got := crc32c(data[start:end])) != crc:
                at = position + start - CRC_START
                raise CorruptBatch(self.path, at, f"checksum is {got:#010x}, the header says {crc:#010x}")

    def _header(self, data: bytes, position: int, at: int) -> BatchHeader:
        try:
            return parse_header(data, at)
        except CorruptRecords as error:
            raise CorruptBatch(self.path, position + at, error.reason) from error
