"""Sets a metadata log aside that cannot be used any more, of a node that does not run.

The segments are kept as `.cut` files and never read again. Snapshots stay: the next start uses an intact one and sets
aside the others. First of all it is noted up to where the log was on disk: until the node has caught up with a leader
that others elect, it does not vote, because it may have acknowledged what it lacks now.
"""

from __future__ import annotations

import contextlib

from quorumlog.ids import Offset
from quorumlog.records import CorruptRecords, iter_headers
from quorumlog_quorum.snapshots.names import list_snapshots
from quorumlog_storage.directory.offset_files import (
    LOG_STARTS,
    LOST_OFFSETS,
    RECOVERY_POINTS,
    OffsetFile,
    TopicPartition,
)
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.names import CACHE_SUFFIXES, LOG_SUFFIX, cut_suffix, log_name, parse_segment_name
from quorumlog_storage.rules.epochs import CHECKPOINT_NAME


def set_log_aside(disk: Disk, path: str, partition: TopicPartition) -> Offset:
    """Returns the exclusive end that the log may have had. It may be repeated after a crash. Raises DiskError."""
    lost, points = OffsetFile(disk, f"{path}/{LOST_OFFSETS}"), OffsetFile(disk, f"{path}/{RECOVERY_POINTS}")
    starts = OffsetFile(disk, f"{path}/{LOG_STARTS}")
    names = disk.list(path)
    segments = sorted({found[0] for name in names if (found := parse_segment_name(name)) is not None})
    snapshots = [snapshot.offset for snapshot in list_snapshots(names).snapshots]
    ends = [_end_of(disk, f"{path}/{log_name(segments[-1])}", segments[-1])] if segments else []
    end = max(0, *ends, *snapshots, points.get(partition), starts.get(partition), lost.get(partition))
    lost.raise_to(partition, end)
    for base in reversed(segments):  # the last one first: what a crash leaves is the beginning of a log
        _set_aside(disk, path, log_name(base))
    with contextlib.suppress(FileMissing):
        disk.unlink(f"{path}/{CHECKPOINT_NAME}")
    for name in names:
        if name.endswith(CACHE_SUFFIXES):
            with contextlib.suppress(FileMissing):
                disk.unlink(f"{path}/{name}")
    disk.sync_directory(path)
    starts.update({partition: None})
    points.update({partition: None})
    return end


def _set_aside(disk: Disk, path: str, name: str) -> None:
    assert name.endswith(LOG_SUFFIX)
    number = 0
    while disk.exists(f"{path}/{name}{cut_suffix(0, number)}"):
        number += 1
    with contextlib.suppress(FileMissing):
        disk.rename(f"{path}/{name}", f"{path}/{name}{cut_suffix(0, number)}")


def _end_of(disk: Disk, path: str, base: Offset) -> Offset:
    """The end of a segment's batches, as far as they can be read."""
    try:
        data = disk.read_bytes(path)
    except FileMissing:
        return base
    end = base
    try:
        for header in iter_headers(data, partial_tail=True):
            end = max(end, header.next_offset)
    except CorruptRecords:
        pass
    return end
