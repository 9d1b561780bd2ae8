"""How many snapshots are kept, and with them how much of the log (KIP-630). Pure.

The oldest snapshot goes only if a newer one exists; then the log starts where the next one ends. Both limits are soft:
the newest snapshot and the log after it stay, whatever their size and age.

Removing snapshots that are not needed any more, and the part of the log that a newer one stands for.

Runs in the worker of the log. The order makes every crash harmless: the new start is noted, then segments go, the
oldest first, then snapshots. A start removes what a crash has left of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.settings.metadata_log import SnapshotRetention
from quorumlog_quorum.snapshots.names import deleted_name, list_snapshots
from quorumlog_quorum.snapshots.reader import snapshot_path
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import OffsetFile
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.rules.fetch_rule import SnapshotId

NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """size: bytes. last_contained_timestamp_ms: see SnapshotHeading."""

    id: SnapshotId
    size: int
    last_contained_timestamp_ms: int


def snapshots_to_drop(
    stored: Sequence[StoredSnapshot], log_bytes: int, now_ms: int, limits: SnapshotRetention
) -> tuple[StoredSnapshot, ...]:
    """The oldest ones that are over a limit; never the last one.

    stored: intact ones, oldest first. log_bytes: of the log before anything is dropped. now_ms: wall clock.
    """
    total = log_bytes + sum(snapshot.size for snapshot in stored)
    dropped: list[StoredSnapshot] = []
    for snapshot in stored[:-1]:
        is_large = limits.bytes != NO_LIMIT and total > limits.bytes
        is_old = limits.ms != NO_LIMIT and now_ms - snapshot.last_contained_timestamp_ms > limits.ms
        if not is_large and not is_old:
            break
        dropped.append(snapshot)
        total -= snapshot.size
    return tuple(dropped)


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
