"""What a start makes of the snapshots beside a metadata log (KIP-630). Runs in the worker of the log.

1. Unfinished and deleted files are removed.
2. Every snapshot is read. A damaged one is set aside under another name and counted; nothing else follows from it.
3. Where the newest intact one ends after the log, or is of another history than the log, the log is cut fully and goes
   on where the snapshot ends: what a snapshot holds is committed.
4. A log that begins after offset 0 needs a snapshot that reaches its start. Without one, the records in between are
   lost here, and the node does not start.
5. Intact snapshots that end before the log's start are removed.

The log's start lies inside a segment as a rule. It is noted in an offset file before anything is removed, because the
epochs before it are forgotten with it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from quorumlog.ids import Offset
from quorumlog_quorum.snapshots.names import damaged_name, list_snapshots, order, outdated, snapshot_name
from quorumlog_quorum.snapshots.reader import CorruptSnapshot, snapshot_path, verify_snapshot
from quorumlog_quorum.snapshots.retention import StoredSnapshot
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import OffsetFile
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.fetch_rule import SnapshotId

_log = logging.getLogger("quorumlog.quorum")


class SnapshotMissing(Exception):
    """The metadata log begins after offset 0, and no snapshot stands for the records before it."""

    def __init__(self, path: str, start: Offset, damaged: Sequence[str]) -> None:
        found = f"; damaged: {', '.join(damaged)}" if damaged else ""
        super().__init__(
            f"metadata log {path} begins at offset {start}, and no intact snapshot holds what was before it{found}. "
            "This node cannot rebuild the metadata alone; `quorumlog storage refetch-metadata -c FILE` sets the log "
            "aside, and the node fetches everything from the other voters at its next start"
        )
        self.path, self.start = path, start


@dataclass(frozen=True, slots=True)
class OpenedSnapshots:
    """stored: intact ones, oldest first. damaged: names of files that this start or an earlier one has set aside."""

    stored: tuple[StoredSnapshot, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def latest(self) -> StoredSnapshot | None:
        return self.stored[-1] if self.stored else None


def open_snapshots(disk: Disk, path: str, checkpointed: CheckpointedLog, starts: OffsetFile) -> OpenedSnapshots:
    """Make log and snapshots agree. starts: holds the log's start. Raises SnapshotMissing, DiskError."""
    listing = list_snapshots(disk.list(path))
    for name in (*listing.parts, *listing.deleted):
        disk.unlink(f"{path}/{name}")
    stored, damaged = _verify(disk, path, listing.snapshots)
    damaged = [*listing.damaged, *damaged]
    latest = stored[-1].id if stored else None
    log = checkpointed.log
    if latest is not None and is_beyond(latest, log):
        _log.warning("the metadata log ends at %d, before its snapshot %s", log.end_offset, latest)
        checkpointed.truncate_fully(latest.offset)
    else:
        epochs = log.epochs.entries
        start = max(starts.get(checkpointed.partition), log.start_offset, epochs[0].start_offset if epochs else 0)
        if start > (latest.offset if latest is not None else 0) or start > log.end_offset:
            raise SnapshotMissing(path, start, damaged)
        log.advance_start(start)
        log.sync()
    gone = outdated([one.id for one in stored], log.start_offset)
    for snapshot in gone:
        disk.unlink(snapshot_path(path, snapshot))
    if gone or listing.parts or listing.deleted:
        disk.sync_directory(path)
    return OpenedSnapshots(tuple(one for one in stored if one.id not in gone), tuple(damaged))


def is_beyond(snapshot: SnapshotId, log: Log) -> bool:
    """Whether the log lacks records that the snapshot holds, or has others in their place."""
    if snapshot.offset > log.end_offset:
        return True
    entries = log.epochs.entries
    if snapshot.offset <= log.start_offset or not entries or entries[0].start_offset >= snapshot.offset:
        return False  # the log says nothing of the snapshot's last record
    return log.epochs.epoch_for(snapshot.offset - 1) != snapshot.epoch


def _verify(disk: Disk, path: str, snapshots: Sequence[SnapshotId]) -> tuple[list[StoredSnapshot], list[str]]:
    """The intact ones, oldest first, and the new names of the others."""
    stored, damaged = [], []
    for snapshot in sorted(snapshots, key=order):
        try:
            found = verify_snapshot(disk, snapshot_path(path, snapshot), snapshot)
        except CorruptSnapshot as error:
            damaged.append(set_aside(disk, path, snapshot, str(error)))
        else:
            stored.append(StoredSnapshot(snapshot, found.size, found.heading.last_contained_timestamp_ms))
    return stored, damaged


def set_aside(disk: Disk, path: str, snapshot: SnapshotId, reason: str) -> str:
    """Give a damaged snapshot a name under which it is kept and never read. Returns it; durable."""
    name = damaged_name(snapshot)
    disk.rename(f"{path}/{snapshot_name(snapshot)}", f"{path}/{name}")
    disk.sync_directory(path)
    _log.error("damaged: %s; it is kept as %s, and nothing was deleted because of it", reason, name)
    return name
