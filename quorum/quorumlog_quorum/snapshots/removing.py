"""Removing snapshots that are not needed any more, and the part of the log that a newer one stands for.

Runs in the worker of the log. The order makes every crash harmless: the new start is noted, then segments go, the
oldest first, then snapshots. A start removes what a crash has left of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from quorumlog_quorum.snapshots.listing import list_snapshots
from quorumlog_quorum.snapshots.names import deleted_name
from quorumlog_quorum.snapshots.reader import snapshot_path
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import OffsetFile
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.rules.fetch_rule import SnapshotId


def raise_log_start(
    checkpointed: CheckpointedLog, starts: OffsetFile, oldest: SnapshotId, dropped: Sequence[SnapshotId]
) -> None:
    """The log begins where `oldest` ends; the dropped snapshots get another name. Durable. Raises DiskError."""
    log = checkpointed.log
    starts.raise_to(checkpointed.partition, oldest.offset)
    log.advance_start(oldest.offset)
    log.sync()
    set_deleted(log.disk, log.path, dropped)


def set_deleted(disk: Disk, directory: str, snapshots: Sequence[SnapshotId]) -> None:
    """A reader that has one of them open reads on; `free_deleted` frees the bytes later. Durable. Raises DiskError."""
    for snapshot in snapshots:
        with contextlib.suppress(FileMissing):
            disk.rename(snapshot_path(directory, snapshot), f"{directory}/{deleted_name(snapshot)}")
    disk.sync_directory(directory)


def free_deleted(disk: Disk, directory: str) -> None:
    """Raises DiskError."""
    for name in list_snapshots(disk.list(directory)).deleted:
        disk.unlink(f"{directory}/{name}")
