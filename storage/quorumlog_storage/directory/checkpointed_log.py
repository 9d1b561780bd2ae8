"""A log and its recovery point: the line in an offset file that says up to where the log was synced.

Rules, of every log that has a recovery point, a partition's or the quorum's:

- The point on disk is never above what is synced. So it is lowered before anything is cut, and noted only from
  `synced_end`. Used by the log's writer only, so that no cut comes between.
- A cut lowers it to the base of the segment that will be cut. The log's new end lies there or after it, also where the
  cut takes the whole batch that holds its offset.
- `open` trusts the point only as far as the log reaches (quorumlog_storage/recovery/recovery.py), and then lowers it to
  the log's end.

What a crash leaves: a point that is too low, and the log as before, as after, or a prefix that still holds everything
before the cut. Recovery then scans more than it must, and loses nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable

from quorumlog.ids import Offset
from quorumlog_storage.directory.offset_files import OffsetFile, TopicPartition
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.log.log import Log
from quorumlog_storage.segment.log_config import LogConfig


class CheckpointedLog:
    """points: the offset file with the line of `partition`. Every method may raise DiskError."""

    def __init__(self, log: Log, points: OffsetFile, partition: TopicPartition) -> None:
        self.log, self.partition = log, partition
        self._points = points

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        config: LogConfig,
        points: OffsetFile,
        partition: TopicPartition,
        *,
        clean: bool,
        on_loss: Callable[[Offset], None],
    ) -> CheckpointedLog:
        """`Log.open` with the noted point. Raises what it raises.

        on_loss: called with the point where the log ends before it. It notes that durably, for afterwards the point is
        lowered, and no later start would see the loss.
        """
        log = Log.open(disk, path, config, recovery_point=points.get(partition), clean=clean)
        return cls.adopt(log, points, partition, on_loss=on_loss)

    @classmethod
    def adopt(
        cls, log: Log, points: OffsetFile, partition: TopicPartition, *, on_loss: Callable[[Offset], None]
    ) -> CheckpointedLog:
        """A log that was opened with the noted point, which nobody has changed since. on_loss: see `open`."""
        if log.recovery.lost_below_recovery_point:
            on_loss(points.get(partition))
        points.lower_to(partition, log.end_offset)
        return cls(log, points, partition)

    def truncate_to(self, offset: Offset) -> Offset:
        """`Log.truncate_to`. Returns the new end, which is at most `offset`."""
        if offset < self.log.end_offset:
            bases = self.log.segment_bases
            self._points.lower_to(self.partition, bases[bisect_right(bases, offset) - 1])
        return self.log.truncate_to(offset)

    def truncate_fully(self, start_offset: Offset) -> None:
        """`Log.truncate_fully`."""
        self._points.lower_to(self.partition, 0)
        self.log.truncate_fully(start_offset)

    def note(self) -> None:
        """Note what is synced now. Durable when it returns."""
        note_recovery_points(self._points, [self])

    def close(self) -> None:
        """Sync and close the log, then note its recovery point."""
        self.log.close()
        self.note()


def note_recovery_points(points: OffsetFile, logs: Iterable[CheckpointedLog]) -> None:
    """Note what is synced now of these logs of one offset file, with one write. Durable. Raises DiskError."""
    points.update({each.partition: each.log.synced_end for each in logs})
