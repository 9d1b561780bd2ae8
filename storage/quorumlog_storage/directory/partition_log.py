"""One partition on a disk: its directory, topic id, log, and its lines in the directory's offset files.

Every operation is one call in the turn of the directory's writer. When it returns, its cuts, names, offsets and epochs
are durable. The records in the log are durable where the topic asks for that (`Log.must_sync`): a topic may leave them
to the page cache. A killed process keeps what it wrote; a power cut loses what was not synced.

Owners of offsets. The offset files name topic and partition, as Kafka's do, so a topic that was deleted and created
again finds the lines of the first one under its own name. Rule: **a line belongs to the topic id in the directory of
that name; where there is no such directory, the line belongs to no topic.** Two orders keep it:

- `create` removes the lines durably before it makes the directory. No new directory ever meets an old line.
- `set_aside` and `delete` rename the directory durably before they remove the lines. A crash in between leaves lines
  without a directory: `create` removes them.

`open` compares the topic id in the directory with the one that it was asked for.

What a crash leaves, operation by operation:

- `create`. Before the directory is made: at most fewer lines. After that: a directory without a topic id, or with it
  and without a segment, or whole. Nothing was acknowledged in any of them; `open_or_create` finishes it.
- `open` cuts what recovery rejects, and then lowers the recovery point and the high watermark to the log's end. A crash
  in between repeats both. Where the log ends before its recovery point, that is noted first: the replica lacks records
  that it may have acknowledged, and that must not be forgotten before the controller knows it (`forget_loss`). A start
  above the end means that the rest of the log was lost, or that a restart was under
  way: the log restarts there.
- `truncate_to` lowers the recovery point, then cuts (quorumlog_storage/directory/checkpointed_log.py). A crash leaves
  the log long, or a prefix that still holds everything before the cut. The high watermark is lowered last; `open` does
  it after a crash. Where the cut takes the batch that the log start lies in, nothing readable is left: the log restarts
  at its start, and `open` does the same after a crash.
- `restart_at` first notes the new start. From then on `open` completes the restart, whatever else was done.
- `raise_start` first notes the new start. A crash leaves segments before it; `open` removes them again. Retention notes
  the starts of many logs at once, and takes them one by one (quorumlog_storage/retention/expiry.py): a crash in between
  leaves a noted start that no reader has seen. It is at most the end, and nothing before it is needed.
- `begin_inside` notes the start before it moves the log's base below it. Until the batches are synced, `open` finds a
  log that ends at or before the start, and restarts it there.
- `lead` notes the epoch in memory, and syncs the records. The note reaches the disk with the first records of the epoch
  (decision 43). `open` forgets an epoch that has no records; the next leader gets a later epoch.
- `follow` forgets such an epoch, too, then syncs the records. A crash in between repeats both.
- `configure` syncs the records that the old settings left unsynced before the new ones are visible. A crash leaves the
  log as any crash under the old settings does.
- Where compaction goes on is lowered before records go, and raised after the compacted segments are in their places. A
  crash leaves it too low: then a part that is clean is cleaned again.
- The checkpoints note recovery points at or below what is synced. A log start needs no line where the first segment's
  name says it, but the line goes only once the removal of the segments before it is durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from quorumlog.ids import Epoch, Offset, Uuid, show_uuid
from quorumlog_storage.directory.checkpointed_log import CheckpointedLog
from quorumlog_storage.directory.offset_files import TopicPartition
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_metadata import read_topic_id, write_unsynced_topic_id
from quorumlog_storage.files.names import DELETE, STRAY
from quorumlog_storage.log.log import Log
from quorumlog_storage.log.log_errors import reading
from quorumlog_storage.recovery.recovery import ScanProgress
from quorumlog_storage.segment.batch import StoredBatch
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.segment.log_file import holds_records


class WrongTopicId(Exception):
    """A partition's directory that belongs to another topic, or to none. Nothing was changed. found: None for none."""

    def __init__(self, path: str, found: Uuid | None, expected: Uuid) -> None:
        holder = "no topic" if found is None else f"topic {show_uuid(found)}"
        super().__init__(
            f"{path} belongs to {holder}, not to topic {show_uuid(expected)}; move it out of the log directory, then "
            "restart the node: it copies the partition from its leader"
        )
        self.path, self.found, self.expected = path, found, expected


class PartitionLog:
    """Made by `create`, `open` or `open_or_create`. Readers on any thread use `log`; only its writer calls the rest.

    high_watermark: as noted when the log was opened, at most its end; 0 for a new one.
    lost_before: this log was synced up to there once, exclusive, and was found shorter, and the controller may not know
    it yet; 0: nothing of that kind.
    first_dirty: where compaction goes on, as noted; any thread may read it.
    """

    def __init__(
        self,
        directories: PartitionDirectories,
        partition: TopicPartition,
        topic_id: Uuid,
        checkpointed: CheckpointedLog,
        high_watermark: Offset = 0,
        lost_before: Offset = 0,
    ) -> None:
        self.partition, self.topic_id, self.log = partition, topic_id, checkpointed.log
        self.checkpointed = checkpointed
        self.high_watermark, self.lost_before = high_watermark, lost_before
        self.first_dirty: Offset = 0
        self.is_here = True  # False: set aside or deleted; the name may be another's
        self._directories = directories
        self.log.guard.on_failure = directories.on_broken_log

    @classmethod
    def open_or_create(
        cls, directories: PartitionDirectories, partition: TopicPartition, topic_id: Uuid, config: LogConfig
    ) -> PartitionLog:
        """Raises WrongTopicId, BadPartitionMetadata, LogUnreadable, DiskError."""
        disk, path = directories.disk, directories.path_of(partition)
        with reading(path):
            found = read_topic_id(disk, path) if disk.exists(path) else None
            is_new = found is None and not holds_records(disk, path)  # or half made when its process ended
        if is_new:
            return cls.create(directories, partition, topic_id, config)
        return cls._open(directories, partition, found, topic_id, config)

    @classmethod
    def create(
        cls, directories: PartitionDirectories, partition: TopicPartition, topic_id: Uuid, config: LogConfig
    ) -> PartitionLog:
        """A new, empty log from offset 0 on. No directory of that name is there, or one that was half made.

        Each directory is synced once, the partition's for its topic id and its first segment together: each sync of a
        new name is a commit of the file system's journal. Raises DiskError.
        """
        disk, path = directories.disk, directories.path_of(partition)
        directories.forget_offsets(partition)
        directories.make_name(partition)
        write_unsynced_topic_id(disk, path, topic_id)
        log = Log.open(disk, path, config, retired=directories.retired)
        assert log.end_offset == 0, f"{path} is new and ends at {log.end_offset}"
        directories.sync_name(partition)
        return cls(directories, partition, topic_id, CheckpointedLog(log, directories.recovery_points, partition))

    @classmethod
    def open(
        cls, directories: PartitionDirectories, partition: TopicPartition, topic_id: Uuid, config: LogConfig
    ) -> PartitionLog:
        """A log that is there. Raises WrongTopicId, BadPartitionMetadata, LogUnreadable, DiskError."""
        path = directories.path_of(partition)
        with reading(path):
            found = read_topic_id(directories.disk, path)
        return cls._open(directories, partition, found, topic_id, config)

    @classmethod
    def _open(
        cls,
        directories: PartitionDirectories,
        partition: TopicPartition,
        found: Uuid | None,
        expected: Uuid,
        config: LogConfig,
    ) -> PartitionLog:
        path = directories.path_of(partition)
        if found != expected:
            raise WrongTopicId(path, found, expected)
        return cls.adopt(directories, partition, expected, open_log(directories, partition, config))

    @classmethod
    def load(
        cls,
        directories: PartitionDirectories,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        progress: ScanProgress | None = None,
        *,
        defers_sync: bool = False,
    ) -> Log:
        """The first part of `open`, for a job beside the writer: it has the partition's files meanwhile.

        `adopt` is the second part, in the writer's turn. Nothing is lost where it never follows. Offset files are only
        looked at; the writer has read them before (`PartitionDirectories.find`). defers_sync: see `Log.open`; the turn
        that adopts the log then ends with its sync. Raises what `open` raises.
        """
        path = directories.path_of(partition)
        with reading(path):
            found = read_topic_id(directories.disk, path)
        if found != topic_id:
            raise WrongTopicId(path, found, topic_id)
        return open_log(directories, partition, config, progress, defers_sync=defers_sync)

    @classmethod
    def adopt(
        cls, directories: PartitionDirectories, partition: TopicPartition, topic_id: Uuid, log: Log
    ) -> PartitionLog:
        """Take over a log that `load` has opened. Raises DiskError."""
        on_loss = partial(directories.lost_offsets.raise_to, partition)
        start = directories.log_starts.get(partition)
        checkpointed = CheckpointedLog.adopt(log, directories.recovery_points, partition, on_loss=on_loss)
        directories.sync_name(partition)
        directories.high_watermarks.lower_to(partition, log.end_offset)
        opened = cls(
            directories, partition, topic_id, checkpointed, lost_before=directories.lost_offsets.get(partition)
        )
        if start > log.end_offset:
            opened.restart_at(start)
        else:
            log.advance_start(start)
        opened.high_watermark = directories.high_watermarks.get(partition)
        opened.first_dirty = directories.cleaner_offsets.get(partition)
        return opened

    # --- changes ---

    def truncate_to(self, offset: Offset) -> Offset:
        """Remove every batch that holds a record at or after `offset`. Returns the new end. Raises DiskError.

        offset: not before the log's start. The new end is at most `offset`, and never before the log's start.
        """
        start = self.log.start_offset
        self._lower_first_dirty(offset)
        self._directories.log_starts.lower_to(self.partition, start)  # it may be above, where retention planned it
        end = self.checkpointed.truncate_to(offset)
        if end < start:
            self.restart_at(start)
            return start
        self._directories.high_watermarks.lower_to(self.partition, end)
        return end

    def restart_at(self, offset: Offset) -> None:
        """Remove everything and go on at `offset`, which is not before the log's start. Raises DiskError.

        For a follower whose log ends before its leader's starts.
        """
        assert offset >= self.log.start_offset, f"restart at {offset}, before the start {self.log.start_offset}"
        self._directories.log_starts.update({self.partition: offset})  # not above it, where retention planned more
        self._empty(offset)

    def raise_start(self, offset: Offset) -> Offset:
        """Delete the records before `offset`, which is at most the log's end. Returns the log's start.

        The start may lie inside a batch; the batch stays, and its records before the start are not served. Raises
        DiskError.
        """
        log = self.log
        assert offset <= log.end_offset, f"start {offset} after the end {log.end_offset}"
        self._directories.log_starts.raise_to(self.partition, offset)
        log.advance_start(offset)
        return log.start_offset

    def begin_inside(self, batches: Sequence[StoredBatch]) -> None:
        """Fill an empty log whose start lies inside the first of `batches`. Raises DiskError.

        Records were deleted up to there, and a batch is copied whole. The batches are synced where the topic asks for
        that.
        """
        log, start, base = self.log, self.log.start_offset, batches[0].base_offset
        assert log.end_offset == start and base < start < batches[0].next_offset
        self._directories.log_starts.raise_to(self.partition, start)
        self._empty(base)
        log.append(batches, gaps=True)
        log.advance_start(start)
        self._sync_if_asked()

    def seal(self, start: Offset) -> None:
        """The end of an import: all is on disk. Records before the start: alone, it would lie where no batch begins."""
        self.log.sync()
        self.raise_start(start)
        self.log.sync()

    # --- roles and settings ---

    def lead(self, epoch: Epoch, *, defers_sync: bool = False) -> Offset:
        """Prepare the log for being written by the leader of `epoch`. Returns the offset at which that epoch starts.

        That is the log's end, or an earlier offset where the log has records of the epoch. Afterwards this replica may
        acknowledge all that the log holds. defers_sync: after the sync that ends the turn. Raises DiskError.
        """
        log = self.log
        log.has_readers = True
        start = log.begin_epoch(epoch)
        if not defers_sync:
            self._sync_if_asked()
        return start

    def follow(self, *, defers_sync: bool = False) -> None:
        """Prepare the log for copying from a leader. Afterwards its last epoch is that of a record. Raises DiskError.

        A leadership of this replica that wrote nothing is forgotten: a fetch names the epoch of the last record. The
        first fetch acknowledges all that the log holds. defers_sync: as for `lead`.
        """
        log = self.log
        log.has_readers = False
        log.truncate_to(log.end_offset)
        if not defers_sync:
            self._sync_if_asked()

    def configure(self, config: LogConfig) -> None:
        """Use other settings from now on. Raises DiskError.

        The sync comes first, because the loop reads settings and synced end together: under the stricter settings it
        must not see records that only the looser ones allowed to be unsynced.
        """
        if config.ever_syncs:
            self.log.sync()
        self.log.config = config

    def note_cleaned(self, first_dirty: Offset) -> None:
        """Everything before `first_dirty` is clean. Durable. Raises DiskError."""
        if self.is_here and first_dirty != self.first_dirty:
            self._directories.cleaner_offsets.update({self.partition: first_dirty})
            self.first_dirty = first_dirty

    def is_in(self, directories: PartitionDirectories) -> bool:
        """It is here, and not moved to another log directory meanwhile."""
        return self.is_here and self._directories is directories

    def forget_loss(self) -> None:
        """The controller knows that this replica may lack acknowledged records. Raises DiskError."""
        if self.is_here:
            self._directories.lost_offsets.update({self.partition: None})

    # --- the end ---

    def close(self) -> None:
        """Sync and close the log; its offsets are noted by the checkpoints. Raises DiskError."""
        self.log.close()

    def set_aside(self, unique: Uuid) -> str:
        """Close the log and rename its directory to `...-stray`. Returns that name. unique: any fresh id.

        `create` may follow under the same name: a copy from the leader then begins at nothing. Raises DiskError.
        """
        return self._leave(unique, STRAY)

    def delete(self, unique: Uuid) -> str:
        """Close the log and rename its directory to `...-delete`, for `PartitionDirectories.free`. Returns that name.

        unique: any fresh id. Raises DiskError.
        """
        return self._leave(unique, DELETE)

    # --- details ---

    def _leave(self, unique: Uuid, mark: str) -> str:
        self.log.close()
        self.log.abandon()
        self.is_here = False
        return self._directories.move_away(self.partition, unique, mark)

    def _sync_if_asked(self) -> None:
        if self.log.must_sync:
            self.log.sync()

    def _lower_first_dirty(self, offset: Offset) -> None:
        """Before records from `offset` on go: others that take their offsets are dirty."""
        if self.first_dirty > offset:
            self._directories.cleaner_offsets.lower_to(self.partition, offset)
            self.first_dirty = offset

    def _empty(self, offset: Offset) -> None:
        self._lower_first_dirty(0)
        self.checkpointed.truncate_fully(offset)
        self._directories.high_watermarks.lower_to(self.partition, offset)


def open_log(
    directories: PartitionDirectories,
    partition: TopicPartition,
    config: LogConfig,
    progress: ScanProgress | None = None,
    *,
    defers_sync: bool = False,
) -> Log:
    """With the recovery point and the start that are noted. Raises what `Log.open` raises."""
    return Log.open(
        directories.disk,
        directories.path_of(partition),
        config,
        recovery_point=directories.recovery_points.get(partition),
        clean=directories.clean,
        log_start=directories.log_starts.get(partition),
        retired=directories.retired,
        progress=progress,
        whole=directories.verifies,
        defers_sync=defers_sync,
    )
