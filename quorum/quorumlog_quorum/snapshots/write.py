"""Writes a snapshot in one call: for tools and for the bootstrap snapshot, where no event loop waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorumlog_quorum.snapshots.codec import SnapshotEncoder, SnapshotHeading
from quorumlog_quorum.snapshots.part_file import PartFile
from quorumlog_storage.files.disk import Disk


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
