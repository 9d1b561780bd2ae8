"""The place of one future log: a log directory in which the partition has its `-future` name.

A log directory holds a partition or its future log, never both. So the partition's lines in the offset files belong to
whichever is there, as in Kafka, and stay right when the future log gets its live name.
"""

from __future__ import annotations

from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_directories import PartitionDirectories


class FutureDirectories(PartitionDirectories):
    """Shares everything with the log directory's own object but the name of the partition's directory."""

    def __init__(self, here: PartitionDirectories, name: str) -> None:
        """name: of the `-future` directory."""
        super().__init__(here.disk, here.path, here.clean, verifies=here.verifies)
        self.here, self.name = here, name
        self.recovery_points, self.log_starts = here.recovery_points, here.log_starts
        self.lost_offsets, self.high_watermarks = here.lost_offsets, here.high_watermarks
        self.cleaner_offsets, self.retired = here.cleaner_offsets, here.retired
        self.on_broken_log = here.on_broken_log

    def path_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{self.name}"

    def check_identity(self, operation: str) -> None:
        self.here.check_identity(operation)
