"""A snapshot file on its way: bytes go into a `.checkpoint.part`, which gets its final name once it is whole.

Each call is one bounded piece of work for the worker of the metadata log. A crash leaves a `.part`, which the next
start removes, or the finished snapshot, never a half of one under its final name: the bytes are synced before the
rename, and the name is synced after it.

Writes a snapshot in one call: for tools and for the bootstrap snapshot, where no event loop waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from quorumlog_quorum.snapshots.codec import SnapshotEncoder, SnapshotHeading
from quorumlog_quorum.snapshots.names import part_name, snapshot_name
from quorumlog_storage.files.disk import Buffer, Disk, FileMissing, write_fully
from quorumlog_storage.rules.fetch_rule import SnapshotId


class PartFile:
    """Written by one thread at a time."""

    def __init__(self, disk: Disk, directory: str, snapshot: SnapshotId, unique: str) -> None:
        """unique: see `part_name`. Nothing is made before `create`."""
        self._disk, self._directory, self.snapshot = disk, directory, snapshot
        self.path = f"{directory}/{part_name(snapshot, unique)}"
        self.size = 0  # bytes written

    def create(self) -> None:
        """Raises DiskError."""
        self._file = self._disk.open(self.path, create=True)
        self._file.truncate(0)

    def append(self, data: Buffer) -> None:
        """Raises DiskError; then the file must be discarded."""
        self.size += write_fully(self._file, self.path, [data], self.size, read_soon=False)
        self._file.begin_sync()

    def freeze(self) -> str:
        """Durable under its final name when this returns; that is what it returns. Raises DiskError.

        A snapshot of the same id is replaced: both hold the same.
        """
        self._sync_bytes()
        final = f"{self._directory}/{snapshot_name(self.snapshot)}"
        self._disk.rename(self.path, final)
        self._disk.sync_directory(self._directory)
        return final

    def _sync_bytes(self) -> None:
        self._file.sync()
        self._file.close()

    def discard(self) -> None:
        """Remove it. Raises DiskError."""
        self._file.close()
        with contextlib.suppress(FileMissing):
            self._disk.unlink(self.path)


def write_snapshot(
    disk: Disk, directory: str, heading: SnapshotHeading, values: Iterable[Sequence[bytes]], unique: str = "0"
) -> str:
    """values: those of one batch each. Durable when it returns the file's path. Raises DiskError.

    unique: letters and digits, as for `part_name`.
    """
    part = PartFile(disk, directory, heading.id, unique)
    encoder = SnapshotEncoder(heading)
    part.create()
    part.append(encoder.begin())
    for batch in values:
        part.append(encoder.values(batch))
    part.append(encoder.end())
    return part.freeze()
