"""Writes a partition directory that another broker can take in the place of its own, by our own engine.

Everything is made in a log directory of its own beside the target, `<topic>-<partition>.unfinished`, and renamed once
it is whole and durable. The offset files of the target get the partition's lines: recovery point, high watermark, and
log start where it is not the first segment's base.
"""

from __future__ import annotations

from quorumlog.ids import Offset, Uuid
from quorumlog_storage.directory.log_checkpoints import checkpoint_logs
from quorumlog_storage.directory.offset_files import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    OffsetFile,
    TopicPartition,
)
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import partition_directory
from quorumlog_storage.segment.batch import received_batches
from quorumlog_storage.segment.log_config import LogConfig

UNFINISHED = ".unfinished"


class TargetExists(Exception):
    """The directory is there already. Nothing was changed."""


class Export:
    """Made empty; `take` in order, then `finish`. An instance that is dropped leaves the unfinished directory only."""

    def __init__(
        self,
        disk: Disk,
        out: str,
        partition: TopicPartition,
        topic_id: Uuid,
        *,
        segment_bytes: int,
        interval_bytes: int,
    ) -> None:
        """out: an existing directory. Raises TargetExists, DiskError."""
        self._disk, self._out, self._partition = disk, out, partition
        self.path = f"{out}/{partition_directory(*partition)}"
        if disk.exists(self.path):
            raise TargetExists(f"{self.path} exists; export into another directory, or move it away")
        self._work = self.path + UNFINISHED
        if disk.exists(self._work):
            disk.remove_tree(self._work)
        disk.make_directory(self._work)
        self._directories = PartitionDirectories(disk, self._work)
        config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval_bytes,
            durable=False,
            remembers_producers=True,
        )
        self._held = PartitionLog.create(self._directories, partition, topic_id, config)
        self._is_empty = True

    @property
    def end_offset(self) -> Offset:
        return self._held.log.end_offset

    def take(self, records: bytes, log_start: Offset) -> None:
        """Whole batches, in order. log_start: of the partition; it may lie inside the first batch."""
        batches = received_batches(records)
        if self._is_empty and (batches or log_start):
            begin = min(log_start, batches[0].base_offset) if batches else log_start
            if begin > 0:
                self._held.restart_at(begin)
            self._is_empty = not batches
        if batches:
            self._held.log.append(batches, gaps=True)

    def finish(self, log_start: Offset, high_watermark: Offset) -> None:
        """Make it durable and give it its name. Raises DiskError."""
        held, log = self._held, self._held.log
        held.raise_start(min(max(log_start, log.start_offset), log.end_offset))
        held.close()
        checkpoint_logs(self._directories, [held])
        lines = {
            RECOVERY_POINTS: log.end_offset,
            HIGH_WATERMARKS: min(high_watermark, log.end_offset),
            LOG_STARTS: log.start_offset if log.start_offset > log.segment_bases[0] else None,
        }
        log.abandon()
        self._disk.rename(self._directories.path_of(self._partition), self.path)
        self._disk.sync_directory(self._out)
        for name, offset in lines.items():
            OffsetFile(self._disk, f"{self._out}/{name}").update({self._partition: offset})
        self._disk.remove_tree(self._work)
        self._disk.sync_directory(self._out)
