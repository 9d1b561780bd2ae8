"""A full read of segments whose files are not trusted: how far their batches are undamaged and in order.

The log ends before the first batch that (Kafka's `LogLoader`)

- is torn, or fails its checksum;
- goes back in offset or in epoch, or lies 2^31 or more after its segment's base;
- comes after a gap that a later offset contradicts: the checksum does not cover offsets, so one with a flipped bit can
  look like a gap, until the next batch or segment begins inside it.

What comes after is not part of the log, even if it is undamaged. A gap that nothing contradicts comes from compaction.

Bytes of a later format are no damage: the scan raises UnknownFormat, and nothing is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import (
    BATCH_OVERHEAD,
    LOG_OVERHEAD,
    MAGIC,
    STAMP,
    STAMP_BYTES,
    BatchHeader,
    parse_header,
    verify_crc,
)
from quorumlog_storage.files.disk import File
from quorumlog_storage.producers.replay import ScannedProducers
from quorumlog_storage.rules.epochs import EpochStart, LeaderEpochCache
from quorumlog_storage.segment.offset_index import MAX_RELATIVE_OFFSET
from quorumlog_storage.segment.segment import Segment

SCAN_BYTES = 4 << 20  # read at once


class UnknownFormat(Exception):
    """Another version wrote the log. Nothing was changed. position: bytes from the start of the file."""

    def __init__(self, path: str, position: int, magic: int) -> None:
        super().__init__(
            f"{path} at byte {position}: records of magic {magic}, and this version reads up to magic {MAGIC}; nothing "
            "was changed: open the log with the version that wrote it, or move its directory out of log.dirs"
        )
        self.path, self.position, self.magic = path, position, magic


class Scan:
    """A pass over consecutive segments. Follows offsets and epochs from one to the next.

    next_offset: where the log ends as far as it was scanned. epochs: those of the log before it; the scan adds its own.
    told: the epochs as the checkpoint has them. reason: set once something does not fit; the log ends there.
    producers: their state, if it is wanted.
    """

    def __init__(
        self,
        epochs: LeaderEpochCache,
        next_offset: Offset,
        producers: ScannedProducers | None = None,
        told: tuple[EpochStart, ...] = (),
    ) -> None:
        self.next_offset = next_offset
        self.reason = ""
        self._epochs, self._producers, self._told = epochs, producers, told
        self._last_epoch: Epoch = epochs.last_epoch

    def segment(self, segment: Segment, successor: Offset | None) -> None:
        """Scan one segment; set its valid size and new caches. If it is cut, `reason` says why.

        successor: base offset of the next segment, if there is one. Raises UnknownFormat, DiskError.
        """
        assert segment.base_offset == self.next_offset
        size, end = segment.log.file.size(), 0
        for cache in segment.caches:
            cache.create()
        producers = self._producers
        if producers is not None:
            producers.begin_segment(segment.base_offset)
        for position, header, data in self._valid_batches(segment, size, successor):
            if producers is not None:
                producers.note(segment.base_offset, header, data)
            for cache in segment.caches:
                cache.note((header,), position)
            end = position + header.size
            if header.leader_epoch != NO_EPOCH:
                if header.base_offset > self.next_offset:
                    self._take_told(header)
                self._last_epoch = header.leader_epoch
                self._epochs.assign(header.leader_epoch, header.base_offset)
            self.next_offset = header.next_offset
        if self.reason:
            self.reason = f"{segment.log.path} at byte {end}: {self.reason}"
        segment.log.truncate_to(end)

    def _take_told(self, header: BatchHeader) -> None:
        """The gap before this batch may have held the first records of its epoch, and whole epochs, which compaction
        took. Only the checkpoint tells where they began: without it this log would tell its followers that the epoch
        before lasted longer, and they would keep records that it never had (KIP-101).
        """
        for epoch, start_offset in self._told:
            is_here = self.next_offset <= start_offset <= header.base_offset
            if is_here and self._last_epoch < epoch <= header.leader_epoch:
                self._epochs.assign(epoch, start_offset)

    def _valid_batches(
        self, segment: Segment, size: int, successor: Offset | None
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """(position, header, bytes) of each batch. The bytes are valid until the next one is asked for."""
        window, position = _Window(segment.log.file.past_cache(), size), 0
        try:
            while position < size:
                header = parse_header(*window.at(position, BATCH_OVERHEAD))
                if header.size > size - position:
                    raise CorruptRecords(position, f"a batch of {header.size} bytes, {size - position} are left")
                self._check_order(header, segment.base_offset)
                data, at = window.at(position, header.size)
                verify_crc(data, header if at == header.position else replace(header, position=at))
                if header.base_offset > self.next_offset:
                    end = position + header.size
                    self._check_gap(header, _offset_at(window, end) if end < size else successor)
                yield position, header, memoryview(data)[at : at + header.size]
                position += header.size
        except CorruptRecords as error:
            self.reason = error.reason
            _refuse_other_formats(segment, window, position, size, self.next_offset)

    def _check_order(self, header: BatchHeader, segment_base: Offset) -> None:
        has_epoch = header.magic >= MAGIC  # formats 0 and 1 have none
        goes_back = has_epoch and header.leader_epoch < max(0, self._last_epoch)
        goes_back |= header.base_offset < self.next_offset
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
    """Reads a file of `size` bytes from front to back in large pieces."""

    def __init__(self, file: File, size: int) -> None:
        self._file, self._size = file, size
        self._start, self._data = 0, b""

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """(bytes, index) such that bytes[index:] holds `length` bytes from `position`, as far as the file goes."""
        index = position - self._start
        if index < 0 or index + length > len(self._data):
            wanted = min(max(length, SCAN_BYTES), max(0, self._size - position))
            self._start, self._data, index = position, self._file.pread(position, wanted), 0
        return self._data, index


def _offset_at(window: _Window, position: int) -> Offset | None:
    """The base offset of the batch at `position`; None if there is no batch."""
    try:
        return parse_header(*window.at(position, BATCH_OVERHEAD)).base_offset
    except CorruptRecords:
        return None


def _refuse_other_formats(segment: Segment, window: _Window, position: int, size: int, next_offset: Offset) -> None:
    """Raises UnknownFormat if the bytes, which are no batch of ours, are complete in another format.

    They are recognized by what they must share with ours, the offset and the length; a batch whose magic alone has
    rotted still has the checksum of ours. Formats 0 and 1 are ours to read (quorumlog/records/format/legacy.py).
    """
    data, at = window.at(position, min(size - position, STAMP_BYTES))
    if len(data) - at < STAMP_BYTES:
        return
    offset, length, _, magic = STAMP.unpack_from(data, at)
    if magic <= MAGIC or not 0 < length <= size - position - LOG_OVERHEAD:
        return
    data, at = window.at(position, LOG_OVERHEAD + length)
    entry = data[at : at + LOG_OVERHEAD + length]
    if next_offset <= offset <= next_offset + MAX_RELATIVE_OFFSET and not _is_ours_but_for_the_magic(entry):
        raise UnknownFormat(segment.log.path, position, magic)


def _is_ours_but_for_the_magic(entry: bytes) -> bool:
    mended = entry[: STAMP_BYTES - 1] + bytes([MAGIC]) + entry[STAMP_BYTES:]
    try:
        verify_crc(mended, parse_header(mended))
    except CorruptRecords:
        return False
    return True
