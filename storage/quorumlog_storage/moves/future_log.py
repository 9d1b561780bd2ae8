"""A future log: the copy of a partition's log that a move makes in another directory of the same broker.

It is a partition's log under another name, filled as a follower's is (quorumlog_storage/moves/steps.py). Every method
that changes it is a call of its own directory's writer, or of a job that has its files. It may be lost at any time
without harm: the source has everything until the promotion (quorumlog_storage/moves/promotion.py).

`FutureDirectories` is the place of one future log: a log directory in which the partition has its `-future` name.

A log directory holds a partition or its future log, never both. So the partition's lines in the offset files belong to
whichever is there, as in Kafka, and stay right when the future log gets its live name.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.ids import Offset, Uuid
from quorumlog_storage.directory.mark import remove_mark
from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.files.names import DELETE, FUTURE, marked_directory
from quorumlog_storage.log.log import Log
from quorumlog_storage.recovery.recovery import ScanProgress
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_config import LogConfig


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


def future_name(partition: TopicPartition, unique: Uuid) -> str:
    """unique: any fresh id."""
    return marked_directory(*partition, unique, FUTURE)


class FutureLog:
    """Made by `create` or `adopt`. here: of the target's log directory. Readers on any thread use `log`."""

    def __init__(self, here: PartitionDirectories, name: str, held: PartitionLog) -> None:
        self.here, self.name, self.held = here, name, held

    @classmethod
    def create(
        cls,
        here: PartitionDirectories,
        partition: TopicPartition,
        topic_id: Uuid,
        name: str,
        config: LogConfig,
        start_offset: Offset,
    ) -> FutureLog:
        """An empty one that starts at `start_offset`. Raises DiskError."""
        held = PartitionLog.create(FutureDirectories(here, name), partition, topic_id, config)
        future = cls(here, name, held)
        held.follow()
        future.restart_at(start_offset)
        return future

    @classmethod
    def load(
        cls,
        here: PartitionDirectories,
        partition: TopicPartition,
        topic_id: Uuid,
        name: str,
        config: LogConfig,
        progress: ScanProgress | None = None,
    ) -> Log:
        """Open one that an earlier process left, beside the writer; `adopt` is the second part.

        Its mark goes first: its source serves, and so it will not be complete any more. Raises what
        `PartitionLog.load` raises.
        """
        remove_mark(here.disk, f"{here.path}/{name}")
        return PartitionLog.load(FutureDirectories(here, name), partition, topic_id, config, progress)

    @classmethod
    def adopt(
        cls, here: PartitionDirectories, partition: TopicPartition, topic_id: Uuid, name: str, log: Log
    ) -> FutureLog:
        """In the writer's turn. What it may have lost is copied again. Raises DiskError."""
        held = PartitionLog.adopt(FutureDirectories(here, name), partition, topic_id, log)
        held.forget_loss()
        held.follow()
        return cls(here, name, held)

    @property
    def log(self) -> Log:
        return self.held.log

    @property
    def path(self) -> str:
        return f"{self.here.path}/{self.name}"

    # --- changes ---

    def restart_at(self, offset: Offset) -> None:
        """Remove everything and go on at `offset`, which is not before its start. Raises DiskError."""
        if not self.log.start_offset == self.log.end_offset == offset:
            self.held.restart_at(offset)

    def cut(self, offset: Offset) -> None:
        """Remove every batch that holds a record at or after `offset`. Raises DiskError, LogUnreadable."""
        self.held.truncate_to(offset)

    def raise_start(self, offset: Offset) -> None:
        """Raises DiskError."""
        self.held.raise_start(offset)

    def append(self, batches: Sequence[StoredBatch]) -> None:
        """Batches of the source, verified, from this log's end on. Synced where the topic asks for that.

        Raises UnexpectedAppend where they do not follow this log's end; DiskError.
        """
        log = self.log
        if batches and batches[0].base_offset < log.end_offset == log.start_offset < batches[0].next_offset:
            self.held.begin_inside(batches)
            return
        log.append(batches, gaps=True)
        if log.must_sync:
            log.sync()

    def note(self, high_watermark: Offset = 0, first_dirty: Offset = 0) -> None:
        """Sync it and note that, so that the next process need not read what is copied. Raises DiskError.

        high_watermark, first_dirty: of the source.
        """
        held, here = self.held, self.here
        held.log.sync()
        held.checkpointed.note()
        here.high_watermarks.update({held.partition: min(high_watermark, held.log.end_offset)})
        held.note_cleaned(min(first_dirty, held.log.end_offset))

    # --- the end ---

    def close(self) -> None:
        """Sync and close it, and note how far it got: the next process goes on there. Raises DiskError."""
        self.held.close()
        self.held.checkpointed.note()

    def delete(self, unique: Uuid) -> str:
        """Rename its directory to `...-delete`, to be freed. Returns that name. unique: any fresh id."""
        return self.held.delete(unique)


def delete_future(here: PartitionDirectories, partition: TopicPartition, name: str, unique: Uuid) -> str:
    """`FutureLog.delete`, of one that is not open. Returns the new name. Raises DiskError."""
    return FutureDirectories(here, name).move_away(partition, unique, DELETE)
