"""Getting a node out of a damaged metadata directory while it is stopped, for `quorumlog storage`.

Both repairs hold the lock of the log directory and leave its clean-shutdown marker alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog_quorum.disk.metadata_log import METADATA_DIRECTORY, METADATA_PARTITION
from quorumlog_quorum.raft.quorum_state import QUORUM_STATE_NAME, QuorumState, renew_quorum_state
from quorumlog_quorum.snapshots import list_snapshots
from quorumlog_quorum.snapshots.log_aside import set_log_aside
from quorumlog_server.config.config import NodeConfig
from quorumlog_storage.directory.directory import LOCK_NAME, read_meta
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.text_checkpoint import CorruptCheckpoint
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME, LeaderEpochCache


def renew(disk: Disk, config: NodeConfig, others_epoch: Epoch) -> QuorumState:
    """See `renew_quorum_state`. Raises QuorumStateNotRenewed, NotFormatted, DirectoryLocked, DiskError."""
    with _stopped(disk, config) as path:
        return renew_quorum_state(disk, f"{path}/{QUORUM_STATE_NAME}", others_epoch, _last_epoch(disk, path))


def accept_loss(disk: Disk, config: NodeConfig) -> Offset:
    """Forget that this voter's log was longer: from its next start on it votes with what it has.

    Returns the offset up to which records were on disk once, exclusive; 0 where nothing was lost, and then nothing is
    changed. Raises NotFormatted, DirectoryLocked, DiskError.
    """
    with _stopped(disk, config) as path:
        lost = OffsetFile(disk, f"{path}/{LOST_OFFSETS}")
        lost_before = lost.get(METADATA_PARTITION)
        if lost_before:
            # The recovery point goes first: alone, it would bring the note back.
            OffsetFile(disk, f"{path}/{RECOVERY_POINTS}").update({METADATA_PARTITION: None})
            lost.update({METADATA_PARTITION: None})
        return lost_before


def refetch(disk: Disk, config: NodeConfig) -> Offset:
    """Set the metadata log aside, so that the node fetches everything anew. Returns the end that it may have had.

    Raises NotFormatted, DirectoryLocked, DiskError.
    """
    with _stopped(disk, config) as path:
        return set_log_aside(disk, path, METADATA_PARTITION)


@contextmanager
def _stopped(disk: Disk, config: NodeConfig) -> Iterator[str]:
    """The metadata log's directory, of a node that does not run."""
    read_meta(disk, config.metadata_log_dir)
    lock = disk.lock(f"{config.metadata_log_dir}/{LOCK_NAME}")
    try:
        yield f"{config.metadata_log_dir}/{METADATA_DIRECTORY}"
    finally:
        lock.release()


def _last_epoch(disk: Disk, path: str) -> Epoch:
    """Of the last record of the log or of a snapshot, as far as their names and the checkpoint of the epochs tell."""
    checkpoint = f"{path}/{CHECKPOINT_NAME}"
    snapshots = [snapshot.epoch for snapshot in list_snapshots(disk.list(path)).snapshots if snapshot.offset > 0]
    try:
        in_log = LeaderEpochCache.parse(checkpoint, disk.read_bytes(checkpoint)).last_epoch
    except (FileMissing, CorruptCheckpoint):
        in_log = NO_EPOCH
    return max(in_log, *snapshots, NO_EPOCH)
