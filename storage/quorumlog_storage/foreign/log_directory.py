"""What lies in a log directory that belongs to somebody else, by names and by the text files of its broker.

Nothing is changed, locked or recovered. A broker may work in it meanwhile, so what is found may be gone a moment later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorumlog.ids import Offset, Uuid
from quorumlog_storage.directory.offset_files import HIGH_WATERMARKS, LOG_STARTS, TopicPartition, offsets_at
from quorumlog_storage.directory.partition_metadata import read_topic_id
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.files.names import BadDirectoryName, PartitionName, parse_directory, partition_directory
from quorumlog_storage.foreign.log_reader import LogReader, names_in
from quorumlog_storage.foreign.source import CLEANED


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One directory of `log.dirs`, as it was when it was listed.

    partitions: those in use. marked: by name, those on their way out (`-delete`), set aside (`-stray`) or not there yet
    (`-future`). high_watermarks: None where there is no file.
    """

    disk: Disk
    path: str
    partitions: frozenset[TopicPartition] = frozenset()
    marked: Mapping[str, PartitionName] = field(default_factory=dict)
    high_watermarks: Mapping[TopicPartition, Offset] | None = None
    log_starts: Mapping[TopicPartition, Offset] = field(default_factory=dict)
    cleaned: Mapping[TopicPartition, Offset] = field(default_factory=dict)

    def path_of(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition_directory(*partition)}"

    def topic_id(self, partition: TopicPartition) -> Uuid | None:
        """None where no file says it, as before Kafka 2.8. Raises BadPartitionMetadata, DiskError."""
        return read_topic_id(self.disk, self.path_of(partition))

    def reader_of(self, partition: TopicPartition) -> LogReader:
        """Its log as it is now. Raises as `LogReader`."""
        return LogReader(
            self.disk,
            self.path_of(partition),
            log_start=self.log_starts.get(partition, 0),
            cleaned=self.cleaned.get(partition, 0),
        )


def look_into(disk: Disk, path: str) -> LogDirectory:
    """The offset files are read before the names, so that no high watermark is newer than what it is about.

    Raises FileMissing if there is no such directory, CorruptCheckpoint, DiskError.
    """
    high_watermarks = offsets_at(disk, f"{path}/{HIGH_WATERMARKS}")
    log_starts, cleaned = offsets_at(disk, f"{path}/{LOG_STARTS}"), offsets_at(disk, f"{path}/{CLEANED}")
    partitions, marked = set(), {}
    for name in names_in(disk, path):
        try:
            found = parse_directory(name)
        except BadDirectoryName:
            continue
        if not disk.is_directory(f"{path}/{name}"):
            continue
        if found.mark:
            marked[name] = found
        elif name == partition_directory(found.topic, found.partition):  # not t-00
            partitions.add((found.topic, found.partition))
    return LogDirectory(disk, path, frozenset(partitions), marked, high_watermarks, log_starts or {}, cleaned or {})
