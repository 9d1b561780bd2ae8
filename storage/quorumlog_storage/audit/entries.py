"""The entries of the fixed-size files beside a segment, decoded without an index in memory."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.records.format.crc import crc32c
from quorumlog_storage.files.disk import File

CHUNK_ENTRIES = 4_096  # read at once

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
TRANSACTION_ENTRY = Struct(">hqqqq")
SNAPSHOT_HEAD = Struct(">hIi")
SNAPSHOT_ROW = Struct(">qhiqiqiq")
SNAPSHOT_CHECKED_FROM = 6
SNAPSHOT_VERSION = 1
TRANSACTION_VERSION = 0

assert TRANSACTION_ENTRY.size == 34 and SNAPSHOT_HEAD.size == 10 and SNAPSHOT_ROW.size == 46


class OffsetEntry(NamedTuple):
    """A batch that begins at `position` ends with this offset, which is relative to the segment's base."""

    relative_offset: int
    position: int


class TimeEntry(NamedTuple):
    """No record up to this offset, which is relative to the segment's base, has a larger timestamp (ms)."""

    timestamp_ms: int
    relative_offset: int


class AbortedTransaction(NamedTuple):
    """last_offset: of the marker. last_stable_offset: once that marker was appended."""

    version: int
    producer_id: int
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class ProducerRow(NamedTuple):
    """One row of a producer snapshot. last_sequence, last_offset: inclusive. transaction_offset: -1 for none open."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_offset: Offset


class BadSnapshot(Exception):
    """The content of a producer snapshot is impossible. position: bytes from its start."""

    def __init__(self, position: int, expected: str, found: str) -> None:
        super().__init__(f"byte {position}: expected {expected}, found {found}")
        self.position, self.expected, self.found = position, expected, found


def read_entries(file: File, size: int, form: Struct) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(position, fields) of every whole entry. Raises DiskError."""
    position, whole = 0, size - size % form.size
    while position < whole:
        data = file.pread(position, min(CHUNK_ENTRIES * form.size, whole - position))
        count = len(data) // form.size
        if not count:
            return  # the file has shrunk meanwhile
        for fields in form.iter_unpack(memoryview(data)[: count * form.size]):
            yield position, fields
            position += form.size


def read_snapshot(content: bytes) -> list[ProducerRow]:
    """The rows in the file's order; a producer may have several, one for each remembered batch. Raises BadSnapshot."""
    if len(content) < SNAPSHOT_HEAD.size:
        raise BadSnapshot(0, f"at least {SNAPSHOT_HEAD.size} bytes", str(len(content)))
    version, crc, count = SNAPSHOT_HEAD.unpack_from(content)
    if version != SNAPSHOT_VERSION:
        raise BadSnapshot(0, f"version {SNAPSHOT_VERSION}", str(version))
    computed = crc32c(memoryview(content)[SNAPSHOT_CHECKED_FROM:])
    if crc != computed:
        raise BadSnapshot(2, f"checksum {computed:#010x} of what follows", f"{crc:#010x}")
    if count < 0 or len(content) != SNAPSHOT_HEAD.size + count * SNAPSHOT_ROW.size:
        raise BadSnapshot(SNAPSHOT_CHECKED_FROM, f"{count} rows", f"{len(content)} bytes")
    return [ProducerRow(*row) for row in SNAPSHOT_ROW.iter_unpack(memoryview(content)[SNAPSHOT_HEAD.size :])]
