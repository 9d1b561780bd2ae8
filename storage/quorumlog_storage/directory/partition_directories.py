"""The partitions' directories inside one log directory, and the offset files that they share.

A partition lies in `<topic>-<partition>`. `partition.metadata` in it holds the topic id. A directory that leaves is
renamed first: `...-stray` is kept for the operator, `...-delete` is freed in steps. One that a move fills
from another log directory is `...-future` (quorumlog_storage/moves/).

Everything here runs in the turns of the directory's writer.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

from quorumlog.ids import Uuid
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_storage.directory.mark import PromotionMark, read_mark
from quorumlog_storage.directory.offset_files import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    LOST_OFFSETS,
    RECOVERY_POINTS,
    OffsetFile,
    TopicPartition,
)
from quorumlog_storage.directory.partition_metadata import BadPartitionMetadata, read_topic_id
from quorumlog_storage.files.disk import Disk, DiskError, FileMissing
from quorumlog_storage.files.names import (
    CUT_SUFFIX,
    DELETE,
    DELETED_SUFFIX,
    FUTURE,
    LOG_SUFFIX,
    BadDirectoryName,
    marked_directory,
    parse_directory,
    partition_directory,
)
from quorumlog_storage.segment.log_file import holds_records
from quorumlog_storage.segment.retired import Retired

PartitionId = tuple[Uuid, int]  # topic id, partition number


@dataclass(frozen=True, slots=True)
class FoundPartitions:
    """What a log directory holds when it is opened.

    partitions: topic names. nameless: half made, without a topic id and without records. unreadable: with records, but
    without a readable topic id. leftovers: names of directories whose deletion was committed and not finished.
    futures: names of `-future` directories and their marks; one at most for each partition. bad_futures: those that
    cannot be filled further, because they have no topic id or are a second one.
    """

    partitions: dict[PartitionId, str]
    nameless: tuple[TopicPartition, ...]
    unreadable: tuple[TopicPartition, ...]
    leftovers: tuple[str, ...]
    futures: dict[PartitionId, tuple[str, PromotionMark | None]] = field(default_factory=dict)
    bad_futures: tuple[tuple[TopicPartition, str], ...] = ()


class PartitionDirectories:
    """path: of the log directory. clean: its clean-shutdown marker was there when it was opened.

    verifies: it has failed before in this process, so every log is verified from its first byte when it is opened.

    on_broken_log: told when a change of a partition's log broke off. What the log holds is not known then, and nothing
    may be acknowledged from it.
    """

    def __init__(self, disk: Disk, path: str, clean: bool = False, *, verifies: bool = False) -> None:
        self.disk, self.path, self.clean, self.verifies = disk, path, clean, verifies
        self.recovery_points = OffsetFile(disk, f"{path}/{RECOVERY_POINTS}")
        self.log_starts = OffsetFile(disk, f"{path}/{LOG_STARTS}")
        self.lost_offsets = OffsetFile(disk, f"{path}/{LOST_OFFSETS}")
        self.high_watermarks = OffsetFile(disk, f"{path}/{HIGH_WATERMARKS}")
        self.cleaner_offsets = OffsetFile(disk, f"{path}/{CLEANER_OFFSETS}")
        self.retired = Retired()  # the segments that have left these partitions' logs and wait to be freed
        self.on_broken_log: Callable[[BaseException], object] = lambda _: None
        self._identity: tuple[int, int] | None = None  # device and inode of `path` when it was listed
        self._unsynced_names: set[TopicPartition] = set()  # of directories that were made; never iterated

    def path_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition_directory(*partition)}"

    def find(self) -> FoundPartitions:
        """Files, and directories that are not a partition's, are left alone. Raises DiskError.

        Afterwards recovery points and log starts are in memory: jobs beside the writer look at them.
        """
        self.recovery_points.load()
        self.log_starts.load()
        self._identity = self.disk.identity(self.path)
        partitions: dict[PartitionId, str] = {}
        nameless: list[TopicPartition] = []
        unreadable: list[TopicPartition] = []
        leftovers: list[str] = []
        futures: dict[PartitionId, tuple[str, PromotionMark | None]] = {}
        bad_futures: list[tuple[TopicPartition, str]] = []
        for name in self.disk.list(self.path):
            if not self.disk.is_directory(f"{self.path}/{name}"):
                continue
            try:
                parsed = parse_directory(name)
            except BadDirectoryName:
                continue
            if parsed.topic == METADATA_TOPIC:
                continue
            if parsed.mark == DELETE:
                leftovers.append(name)
            elif parsed.mark == FUTURE:
                topic_id = self._readable_topic_id(f"{self.path}/{name}")
                if topic_id is None or (topic_id, parsed.partition) in futures:
                    bad_futures.append(((parsed.topic, parsed.partition), name))
                else:
                    futures[topic_id, parsed.partition] = (name, read_mark(self.disk, f"{self.path}/{name}"))
            elif not parsed.mark:
                topic_id = self._readable_topic_id(f"{self.path}/{name}")
                if topic_id is not None:
                    partitions[topic_id, parsed.partition] = parsed.topic
                elif holds_records(self.disk, f"{self.path}/{name}"):
                    unreadable.append((parsed.topic, parsed.partition))
                else:
                    nameless.append((parsed.topic, parsed.partition))
        return FoundPartitions(
            partitions, tuple(nameless), tuple(unreadable), tuple(leftovers), futures, tuple(bad_futures)
        )

    def belongs_to(self, partition: TopicPartition, topic_id: Uuid) -> bool:
        """True if the directory is that topic's, holds nothing, or is not there. Raises DiskError."""
        path = self.path_of(partition)
        found = self._readable_topic_id(path)
        return found == topic_id if found is not None else not holds_records(self.disk, path)

    @property
    def findings(self) -> list[str]:
        """What is damaged among the offset files, a text for each."""
        return [file.finding for file in self._files if file.finding]

    @property
    def _files(self) -> tuple[OffsetFile, ...]:
        return (
            self.recovery_points,
            self.log_starts,
            self.lost_offsets,
            self.high_watermarks,
            self.cleaner_offsets,
        )

    def make_name(self, partition: TopicPartition) -> None:
        """Make the directory, unless it is there. Its name is durable after `sync_name`. Raises DiskError.

        Not at a mount point whose file system is gone: a new log there would be acknowledged until the next probe, and
        hidden afterwards. What was open before lies on the right disk, and new segments find no directory there.
        """
        self.check_identity("make directory")
        self._unsynced_names.add(partition)
        self.disk.make_directory(self.path_of(partition))

    def check_identity(self, operation: str) -> None:
        """Raises DiskError if the path names another directory than the one that was listed, or none."""
        if self._identity is not None and self.disk.identity(self.path) != self._identity:
            what = "another directory is at this path now: it was removed, replaced or unmounted while the node used it"
            raise DiskError(self.path, operation, errno.ESTALE, what)

    def sync_name(self, partition: TopicPartition) -> None:
        """Make the name durable if this object made it. All older names were synced when the log directory was opened.

        Raises DiskError.
        """
        if partition in self._unsynced_names:
            self.disk.sync_directory(self.path)
            self._unsynced_names.discard(partition)

    def forget_offsets(self, partition: TopicPartition) -> None:
        """Remove the partition's line from every offset file. Durable when it returns. Raises DiskError."""
        for file in self._files:
            file.update({partition: None})

    def move_away(self, partition: TopicPartition, unique: Uuid, mark: str) -> str:
        """Rename the directory, if it is there, and forget its offsets. Durable. Returns the marked name.

        The order matters. Offsets without a directory do no harm (creating one removes them first); a directory
        without its offsets would bring deleted records back, if the move were undone by a power cut or an operator.
        unique: any fresh id. mark: DELETE or STRAY. The quorum's log stays, whatever asks for it. Raises DiskError,
        also where the file system is gone: a name that is not at its mount point may still be on the disk.
        """
        name = marked_directory(*partition, unique, mark)
        if partition[0] == METADATA_TOPIC:
            return name
        self.check_identity("rename")
        try:
            self.disk.rename(self.path_of(partition), f"{self.path}/{name}")
            self.disk.sync_directory(self.path)
        except FileMissing:
            pass
        self.forget_offsets(partition)
        return name

    def free(self, name: str, step_bytes: int) -> bool:
        """Free at most `step_bytes` of a directory that is marked DELETE. True once it is gone. Raises DiskError.

        A segment shrinks from its end on. After a crash the next start frees what is left.
        """
        assert name.endswith(f"-{DELETE}"), f"{name} is not marked for deletion"
        path = f"{self.path}/{name}"
        try:
            if not _free_segments(self.disk, path, step_bytes):
                return False
            self.disk.remove_tree(path)
            self.disk.sync_directory(self.path)
        except FileMissing:
            pass
        return True

    def _readable_topic_id(self, path: str) -> Uuid | None:
        try:
            return read_topic_id(self.disk, path)
        except BadPartitionMetadata:
            return None


def _free_segments(disk: Disk, path: str, step_bytes: int) -> bool:
    """True if no segment is left; what then remains is small."""
    for name in disk.list(path):
        if not name.endswith((LOG_SUFFIX, LOG_SUFFIX + DELETED_SUFFIX, CUT_SUFFIX)):
            continue
        file = disk.open(f"{path}/{name}")
        size = file.size()
        if size > step_bytes:
            file.truncate(size - step_bytes)
            file.close()
            return False
        file.close()
        disk.unlink(f"{path}/{name}")
        step_bytes -= size
    return True
