"""A full read of segments whose files are not trusted: how far their batches are undamaged and in order.

The log ends before the first batch that (RELIABILITY 6.1, ORACLES 3.2)

- is torn, or fails its checksum;
- goes back in offset or in epoch, or lies 2^31 or more after its segment's base;
- comes after a gap that a later offset contradicts: the checksum does not cover offsets, so one with a flipped bit can
  look like a gap, until the next batch or segment begins inside it.

What comes after is not part of the log, even if it is undamaged. A gap that nothing contradicts comes from compaction.

Bytes of another format are no damage: the scan raises UnknownFormat, and nothing is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from struct import Struct
from zlib import crc32

from quorumlog.ids import Epoch, Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.batch import BATCH_OVERHEAD, LOG_OVERHEAD, MAGIC, BatchHeader, parse_header, verify_crc
from storage.disk import File
from storage.epochs import LeaderEpochCache
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.segment import Segment

SCAN_BYTES = 1 << 20  # read at once

_OLD_ENTRY = Struct(">qiIb")  # of magic 0 and 1: offset, size of what follows, CRC-32, magic
_OLD_CHECKED_FROM = 16  # the checksum covers what follows it, from the magic on


class UnknownFormat(Exception):
    """Another version wrote the log. Nothing was changed. position: bytes from the start of the file."""

    def __init__(self, path: str, position: int, magic: int) -> None:
        super().__init__(
            f"{path} at byte {position}: records of magic {magic}, and this version reads magic {MAGIC} only; nothing "
            "was changed: open the log with the version that wrote it, or move its directory out of log.dirs"
        )
        self.path, self.position, self.magic = path, position, magic


class Scan:
    """A pass over consecutive segments. Follows offsets and epochs from one to the next.

    next_offset: where the log ends as far as it was scanned. epochs: those of the log before it; the scan adds its own.
    reason: set once something does not fit; the log ends there.
    """

    def __init__(self, epochs: LeaderEpochCache, next_offset: Offset) -> None:
        self.next_offset = next_offset
        self.reason = ""
        self._epochs = epochs
        self._last_epoch: Epoch = epochs.last_epoch

    def segment(self, segment: Segment, successor: Offset | None) -> None:
        """Scan one segment; set its valid size and new caches. If it is cut, `reason` says why.

        successor: base offset of the next segment, if there is one. Raises UnknownFormat, DiskError.
        """
        assert segment.base_offset == self.next_offset
        size, end = segment.log.file.size(), 0
        for cache in segment.caches:
            cache.create()
        for position, header in self._valid_batches(segment, size, successor):
            for cache in segment.caches:
                cache.note((header,), position)
            end = position + header.size
            self.next_offset, self._last_epoch = header.next_offset, header.leader_epoch
            self._epochs.assign(header.leader_epoch, header.base_offset)
        if self.reason:
            self.reason = f"{segment.log.path} at byte {end}: {self.reason}"
        segment.log.truncate_to(end)

    def _valid_batches(
        self, segment: Segment, size: int, successor: Offset | None
    ) -> Iterator[tuple[int, BatchHeader]]:
        window, position = _Window(segment.log.file), 0
        try:
            while position < size:
                header = parse_header(*window.at(position, BATCH_OVERHEAD))
                if header.size > size - position:
                    raise CorruptRecords(position, f"a batch of {header.size} bytes, {size - position} are left")
                self._check_order(header, segment.base_offset)
                data, at = window.at(position, header.size)
                verify_crc(data, replace(header, position=at))
                if header.base_offset > self.next_offset:
                    end = position + header.size
                    self._check_gap(header, _offset_at(window, end) if end < size else successor)
                yield position, header
                position += header.size
        except CorruptRecords as error:
            self.reason = error.reason
            _refuse_other_formats(segment, window, position, size, self.next_offset)

    def _check_order(self, header: BatchHeader, segment_base: Offset) -> None:
        goes_back = header.base_offset < self.next_offset or header.leader_epoch < max(0, self._last_epoch)
        if goes_back or header.last_offset - segment_base > MAX_RELATIVE_OFFSET:
            raise CorruptRecords(
                header.position,
                f"offset {header.base_offset} of epoch {header.leader_epoch} cannot follow "
                f"offset {self.next_offset - 1} of epoch {self._last_epoch}",
            )

    def _check_gap(self, header: BatchHeader, following: Offset | None) -> None:
        """following: the offset where the next batch or segment begins; None if there is none."""
        without_gap = self.next_offset + header.last_offset_delta + 1
        if following is not None and without_gap <= following < header.next_offset:
            raise CorruptRecords(
                header.position, f"offset {header.base_offset} after a gap, but offset {following} comes next"
            )


class _Window:
    """Reads a file from front to back in large pieces."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._start, self._data = 0, b""

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """(bytes, index) such that bytes[index:] holds `length` bytes from `position`, as far as the file goes."""
        index = position - self._start
        if index < 0 or index + length > len(self._data):
            self._start, self._data, index = position, self._file.pread(position, max(length, SCAN_BYTES)), 0
        return self._data, index


def _offset_at(window: _Window, position: int) -> Offset | None:
    """The base offset of the batch at `position`; None if there is no batch."""
    try:
        return parse_header(*window.at(position, BATCH_OVERHEAD)).base_offset
    except CorruptRecords:
        return None


def _refuse_other_formats(segment: Segment, window: _Window, position: int, size: int, next_offset: Offset) -> None:
    """Raises UnknownFormat if the bytes, which are no batch of ours, are complete in another format.

    Magic 0 and 1: an entry with its own checksum, so that a torn tail of zeroes is not taken for one. Later formats are
    recognized by what they must share with ours, the offset and the length; a batch whose magic alone has rotted still
    has the checksum of ours.
    """
    data, at = window.at(position, min(size - position, _OLD_ENTRY.size))
    if len(data) - at < _OLD_ENTRY.size:
        return
    offset, length, crc, magic = _OLD_ENTRY.unpack_from(data, at)
    if magic == MAGIC or magic < 0 or not 0 < length <= size - position - LOG_OVERHEAD:
        return
    data, at = window.at(position, LOG_OVERHEAD + length)
    entry = data[at : at + LOG_OVERHEAD + length]
    if magic < MAGIC:
        is_whole = crc32(entry[_OLD_CHECKED_FROM:]) == crc
    else:
        is_whole = next_offset <= offset <= next_offset + MAX_RELATIVE_OFFSET and not _is_ours_but_for_the_magic(entry)
    if is_whole:
        raise UnknownFormat(segment.log.path, position, magic)


def _is_ours_but_for_the_magic(entry: bytes) -> bool:
    mended = entry[:_OLD_CHECKED_FROM] + bytes([MAGIC]) + entry[_OLD_CHECKED_FROM + 1 :]
    try:
        verify_crc(mended, parse_header(mended))
    except CorruptRecords:
        return False
    return True
