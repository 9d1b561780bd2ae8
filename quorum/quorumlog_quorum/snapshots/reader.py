"""Reads a snapshot file in pieces, and verifies everything that it returns.

The first piece holds the header, so `heading` is known after it. The last one is followed by an empty one: then the
footer was there and nothing after it. A file that is read to its end is intact.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog.records import BATCH_OVERHEAD, CorruptRecords, TruncatedRecords, headers, parse_header
from quorumlog_quorum.snapshots.codec import SnapshotCheck, SnapshotHeading
from quorumlog_quorum.snapshots.names import snapshot_name
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.rules.fetch_rule import SnapshotId

PIECE_BYTES = 1 << 20  # of one read; a batch that is larger is read whole


class CorruptSnapshot(Exception):
    """The file is not a whole snapshot of this id. position: bytes from its start."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"snapshot {path} at byte {position}: {reason}")
        self.path, self.position, self.reason = path, position, reason


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """An intact snapshot. size: bytes; records: without the control records."""

    heading: SnapshotHeading
    size: int
    records: int


class SnapshotReader:
    """One pass over one file. Any thread may use it, one at a time."""

    def __init__(self, disk: Disk, path: str, snapshot: SnapshotId, piece_bytes: int = PIECE_BYTES) -> None:
        """Raises FileMissing, DiskError."""
        self.path, self._piece_bytes = path, max(piece_bytes, BATCH_OVERHEAD)
        self._file = disk.open(path)
        self.size = self._file.size()
        self._check = SnapshotCheck(snapshot)
        self._position = 0
        self.records = 0  # read so far, without the control records

    @property
    def heading(self) -> SnapshotHeading:
        """Complete once the first piece was read."""
        return self._check.heading

    def read(self) -> bytes:
        """The next whole batches, verified; empty at the end. Raises CorruptSnapshot, DiskError."""
        try:
            batches = self._next_batches()
            self._check.take(batches)
            if not batches:
                self._check.finish(0)
        except CorruptRecords as error:
            raise CorruptSnapshot(self.path, self._position + error.position, error.reason) from error
        self.records += sum(header.count for header in headers(batches) if not header.is_control)
        self._position += len(batches)
        return batches

    def close(self) -> None:
        self._file.close()

    def _next_batches(self) -> bytes:
        """Whole batches of about a piece; at least one."""
        data = self._file.pread(self._position, self._piece_bytes)
        if not data:
            return b""
        first = parse_header(data)
        if first.size > self.size - self._position:
            raise TruncatedRecords(0, f"a batch of {first.size} bytes, {self.size - self._position} are left")
        if first.size > len(data):
            return self._read_large(first.size)
        whole = headers(data, partial_tail=True)
        return data[: whole[-1].end]

    def _read_large(self, size: int) -> bytes:
        """A batch that is larger than a piece."""
        return self._file.pread(self._position, size)


def snapshot_path(directory: str, snapshot: SnapshotId) -> str:
    return f"{directory}/{snapshot_name(snapshot)}"


def verify_snapshot(disk: Disk, path: str, snapshot: SnapshotId) -> SnapshotSummary:
    """Read the whole file. Raises CorruptSnapshot, FileMissing, DiskError."""
    reader = SnapshotReader(disk, path, snapshot)
    try:
        while reader.read():
            pass
        return SnapshotSummary(reader.heading, reader.size, reader.records)
    finally:
        reader.close()
