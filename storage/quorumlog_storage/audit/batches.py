"""Reads the batches of a log file from front to back, and goes on behind damage where it finds a whole batch again.

A batch is held whole up to MAX_HELD_BATCH_BYTES, so that its records can be looked at; of a larger one only the
checksum is computed, piece by piece. Memory: one window, or one such batch.

`record_problem` says whether the records inside a batch are whole, which the checksum covers, but does not explain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

from quorumlog.errors import ApiError
from quorumlog.ids import Offset
from quorumlog.records.control import decode_control
from quorumlog.records.format.batch import BATCH_OVERHEAD, CRC_START, MAGIC, BatchHeader, parse_header
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.crc import crc32c
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import decode_batch, iter_batch
from quorumlog.records.validation.record_check import check_records, look_at_once
from quorumlog_storage.files.disk import File

WINDOW_BYTES = 1 << 20  # read at once
MAX_HELD_BATCH_BYTES = 128 << 20
MAGIC_AT = 16
MAX_SEARCHED_GAP = 1 << 31  # of offsets: a batch that is found behind damage begins at most so far on
MAX_TRIES = 64  # checksums that are computed behind one damage: bytes of records may look like headers

_MAGIC = bytes([MAGIC])


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """position: bytes from the start of the file. `header.position` is an index of `data`.

    data: b"" for a batch of more than MAX_HELD_BATCH_BYTES. crc: as computed.
    """

    position: int
    header: BatchHeader
    data: bytes
    crc: int

    @property
    def crc_ok(self) -> bool:
        return self.crc == self.header.crc

    def records(self) -> list[Record]:
        """Decoded. Raises CorruptRecords, also for a batch that is not held."""
        if not self.data:
            raise CorruptRecords(self.position, f"a batch of {self.header.size} bytes is not decoded")
        return decode_batch(self.data, self.header)


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes [position, end) are no batch. end: where the next batch was found, or the file's end.

    torn: the file ends inside what may be a batch, as a crash leaves it.
    """

    position: int
    end: int
    reason: str
    torn: bool = False


class Window:
    """A file, read from front to back in large pieces."""

    def __init__(self, file: File, size: int) -> None:
        self.size = size
        self._file = file
        self._start, self._data = 0, b""

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """(bytes, index) such that bytes[index:] holds `length` bytes from `position`, as far as the file goes."""
        index = position - self._start
        if index < 0 or index + length > len(self._data):
            wanted = min(max(length, WINDOW_BYTES), max(0, self.size - position))
            self._start, self._data, index = position, self._file.pread(position, wanted), 0
        return self._data, index

    def crc(self, position: int, end: int) -> int:
        """Of any number of bytes, in pieces."""
        crc = 0
        while position < end:
            data, at = self.at(position, min(WINDOW_BYTES, end - position))
            piece = data[at : at + end - position]
            if not piece:
                break  # the file has shrunk meanwhile
            crc, position = crc32c(piece, crc), position + len(piece)
        return crc


def read_batches(file: File, size: int) -> Iterator[FoundBatch | Damage]:
    """Every batch of the first `size` bytes, and every stretch between two that is none. Raises DiskError."""
    window, position, next_offset = Window(file, size), 0, 0
    while position < size:
        found = _read_one(window, position)
        if isinstance(found, Damage):
            end = _next_batch(window, position + 1, next_offset)
            found = Damage(position, end, found.reason, found.torn and end == size)
            position = end
        else:
            position, next_offset = position + found.header.size, found.header.next_offset
        yield found


def read_batch_at(file: File, size: int, position: int) -> FoundBatch | Damage:
    """The one that begins there. Raises DiskError."""
    return _read_one(Window(file, size), position)


def _read_one(window: Window, position: int) -> FoundBatch | Damage:
    data, at = window.at(position, BATCH_OVERHEAD)
    left = window.size - position
    if left < BATCH_OVERHEAD:
        return Damage(position, window.size, f"{left} bytes, fewer than a batch header", torn=True)
    try:
        header = parse_header(data, at)
    except CorruptRecords as error:
        return Damage(position, window.size, error.reason, torn=not any(data[at : at + BATCH_OVERHEAD]))
    if header.size > left:
        return Damage(position, window.size, f"a batch of {header.size} bytes, {left} are left", torn=True)
    if header.size > MAX_HELD_BATCH_BYTES:
        return FoundBatch(position, header, b"", window.crc(position + CRC_START, position + header.size))
    data, at = window.at(position, header.size)
    header.position = at
    if len(data) - at < header.size:
        return Damage(position, window.size, f"a batch of {header.size} bytes, the file has shrunk", torn=True)
    if header.magic < MAGIC:  # an older format, whose checksum is another one
        return FoundBatch(position, header, data, crc32(memoryview(data)[at + MAGIC_AT : at + header.size]))
    return FoundBatch(position, header, data, crc32c(memoryview(data)[at + CRC_START : at + header.size]))


def _next_batch(window: Window, position: int, next_offset: Offset) -> int:
    """Where a whole batch begins, from `position` on; the file's end if there is none that MAX_TRIES finds."""
    tries = 0
    while position + BATCH_OVERHEAD <= window.size and tries < MAX_TRIES:
        data, at = window.at(position, BATCH_OVERHEAD)
        found = data.find(_MAGIC, at + MAGIC_AT)
        if found < 0:
            position += max(1, len(data) - at - MAGIC_AT)
            continue
        position += found - MAGIC_AT - at
        header = _near_header(window, position, next_offset)
        if header is not None:
            tries += 1
            if window.crc(position + CRC_START, position + header.size) == header.crc:
                return position
        position += 1
    return window.size


def _near_header(window: Window, position: int, next_offset: Offset) -> BatchHeader | None:
    """A header that the next batch of this log may have."""
    try:
        header = parse_header(*window.at(position, BATCH_OVERHEAD))
    except CorruptRecords:
        return None
    is_near = next_offset <= header.base_offset <= next_offset + MAX_SEARCHED_GAP
    return header if is_near and header.size <= window.size - position else None


def record_problem(found: FoundBatch) -> str:
    """Why the records of a batch with the right checksum cannot be read; "" if they can. A huge batch is believed."""
    header, data = found.header, found.data
    if not data:
        return ""
    try:
        is_dense = header.count == header.last_offset_delta + 1 and header.magic == MAGIC
        if is_dense and not header.is_control:
            if look_at_once(data, header) is None:
                for _ in check_records(data, header):
                    pass
            return ""
        for record in iter_batch(data, header):
            if header.is_control:
                decode_control(record.key, record.value)
    except CorruptRecords as error:
        return error.reason
    except ApiError as error:
        return str(error)
    return ""
