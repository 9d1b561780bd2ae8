"""What the writer of a log directory notes of its open logs: high watermarks, recovery points, log starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorumlog.ids import Offset
from quorumlog_storage.directory.checkpointed_log import note_recovery_points
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.log.log import Log


def checkpoint_high_watermarks(directories: PartitionDirectories, marks: Mapping[PartitionLog, Offset]) -> None:
    """Note these high watermarks; those of logs that are not open stay as they are. Durable. Raises DiskError."""
    here = {held.partition: min(mark, held.log.end_offset) for held, mark in marks.items() if held.is_in(directories)}
    directories.high_watermarks.update(here)


def checkpoint_logs(directories: PartitionDirectories, held: Iterable[PartitionLog]) -> None:
    """Note the recovery points of these logs, and remove log starts that are not needed any more. Durable.

    The lines of other logs stay as they are. Indexes of logs that were not written to for long leave the memory where
    there are too many. Raises DiskError.
    """
    here = [partition_log for partition_log in held if partition_log.is_in(directories)]
    for one in here:
        if not one.log.guard.is_closed:
            one.log.mend_indexes()
            one.log.let_indexes_go()
    note_recovery_points(directories.recovery_points, [one.checkpointed for one in here])
    starts = directories.log_starts
    starts.update({one.partition: None for one in here if _needs_no_line(one.log, starts.get(one.partition))})


def _needs_no_line(log: Log, noted: Offset) -> bool:
    """The log starts with its first segment, durably: no removal of an earlier one waits for its sync.

    noted: the line. One above the start is a plan of retention.
    """
    return noted <= log.start_offset == log.segment_bases[0] and not log.unsynced
