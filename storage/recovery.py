"""Reading a segment as if nothing about it were known: how far its batches are whole and follow one another.

Used when a log was not closed cleanly. Rules (RELIABILITY 6.1, ORACLES 3.2): the log ends before the first batch that
is torn, fails its checksum, goes back in offset or in epoch, or, above the recovery point, leaves a hole; what comes
after is cut, however good it looks. Below the recovery point a hole is what compaction leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quorumlog.ids import Epoch, Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.batch import BATCH_OVERHEAD, BatchHeader, parse_header, verify_crc
from storage.disk import File
from storage.epochs import LeaderEpochCache
from storage.offset_index import OffsetIndex
from storage.segment import Segment

SCAN_BYTES = 1 << 20  # read at once


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What opening a log found. scanned_bytes: verified by checksum. cut_bytes: thrown away at the end."""

    scanned_bytes: int = 0
    cut_bytes: int = 0
    reason: str = ""  # why the log ends where it ends, if something was cut
    lost_below_recovery_point: bool = False  # synced records are gone: this replica no longer holds all it acknowledged


@dataclass(frozen=True, slots=True)
class ScanRules:
    """recovery_point: records before it were synced once. holes_below: before it offsets may be missing."""

    recovery_point: Offset
    holes_below: Offset
    index_interval_bytes: int


@dataclass(slots=True)
class Scan:
    """A pass over consecutive segments. Follows offsets and epochs from one to the next."""

    rules: ScanRules
    epochs: LeaderEpochCache
    next_offset: Offset
    last_epoch: Epoch
    reason: str = ""  # set once something does not fit: the log ends there

    def follows(self, base_offset: Offset) -> bool:
        """True if records may go on at `base_offset`: right here, or after a hole that compaction may have left."""
        return base_offset == self.next_offset or self.next_offset < base_offset <= self.rules.holes_below

    def segment(self, segment: Segment) -> None:
        """Scan one segment, which takes on its valid size and a new index. `reason` then says why it is cut, if so."""
        index, end = OffsetIndex(), 0
        self.next_offset = max(self.next_offset, segment.base_offset)
        for position, header in self._valid_batches(segment.file, segment.file.size()):
            if position - index.last_position > self.rules.index_interval_bytes:
                index.append(header.last_offset - segment.base_offset, position)
            end = position + header.size
            self.next_offset, self.last_epoch = header.next_offset, header.leader_epoch
            self.epochs.assign(header.leader_epoch, header.base_offset)
        if self.reason:
            self.reason = f"{segment.path} at byte {end}: {self.reason}"
        segment.adopt(end, index)

    def _valid_batches(self, file: File, size: int) -> Iterator[tuple[int, BatchHeader]]:
        window, position = _Window(file), 0
        try:
            while position < size:
                header = parse_header(*window.at(position, BATCH_OVERHEAD))
                if header.size > size - position:
                    raise CorruptRecords(position, f"a batch of {header.size} bytes, {size - position} are left")
                self._must_follow(header)
                data, at = window.at(position, header.size)
                verify_crc(data, replace(header, position=at))
                yield position, header
                position += header.size
        except CorruptRecords as error:
            self.reason = error.reason

    def _must_follow(self, header: BatchHeader) -> None:
        if not self.follows(header.base_offset) or header.leader_epoch < max(0, self.last_epoch):
            raise CorruptRecords(
                header.position,
                f"offset {header.base_offset} of epoch {header.leader_epoch} cannot follow "
                f"offset {self.next_offset - 1} of epoch {self.last_epoch}",
            )


class _Window:
    """A file read front to back in large pieces."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._start, self._data = 0, b""

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """(bytes, index) such that bytes[index:] holds `length` bytes from `position`, as far as the file goes."""
        index = position - self._start
        if index + length > len(self._data):
            self._start, self._data, index = position, self._file.pread(position, max(length, SCAN_BYTES)), 0
        return self._data, index
