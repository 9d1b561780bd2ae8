"""Partition directories on a disk: found at start, made, set aside, deleted. Runs in the directory's worker.

`partition.metadata` in each says whose topic id it is: a name alone may be of a topic that was deleted and made again.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.partition.key import PartitionKey
from quorumlog.ids import Offset, Uuid
from storage.checkpoint import HIGH_WATERMARKS, RecoveryPoints, TopicPartition, read_offsets
from storage.disk import Disk, FileMissing
from storage.log import Log
from storage.log_config import LogConfig
from storage.log_starts import LogStarts
from storage.names import DELETE, LOG_SUFFIX, BadDirectoryName, parse_directory, partition_directory
from storage.partition_metadata import BadPartitionMetadata, make_partition, read_topic_id, write_topic_id
from storage.text_checkpoint import CorruptCheckpoint

QUORUM_TOPIC = "__cluster_metadata"  # the quorum's own log may lie beside ours; it is none of our business


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a directory holds at start.

    partitions: topic names by key. nameless: in use, without a readable topic id: half made, and so empty. leftovers:
    whose deletion was decided by a committed record and not finished. high_watermarks: by name and partition, a hint.
    """

    partitions: dict[PartitionKey, str]
    nameless: tuple[TopicPartition, ...]
    leftovers: tuple[str, ...]
    high_watermarks: dict[TopicPartition, Offset]


def look_through(disk: Disk, path: str) -> Holdings:
    """Raises DiskError. Files and directories that are not partitions' are left alone."""
    partitions: dict[PartitionKey, str] = {}
    nameless: list[TopicPartition] = []
    leftovers: list[str] = []
    for name in disk.list(path):
        if not disk.is_directory(f"{path}/{name}"):
            continue
        try:
            parsed = parse_directory(name)
        except BadDirectoryName:
            continue
        if parsed.topic == QUORUM_TOPIC:
            continue
        if parsed.mark == DELETE:
            leftovers.append(name)
        elif not parsed.mark:
            topic_id = _topic_id(disk, f"{path}/{name}")
            if topic_id is None:
                nameless.append((parsed.topic, parsed.partition))
            else:
                partitions[topic_id, parsed.partition] = parsed.topic
    return Holdings(partitions, tuple(nameless), tuple(leftovers), _high_watermarks(disk, path))


def open_log(
    disk: Disk,
    path: str,
    topic: str,
    key: PartitionKey,
    config: LogConfig,
    points: RecoveryPoints,
    starts: LogStarts,
    clean: bool,
) -> Log:
    """The log of a partition in log directory `path`, made if it is not there. Raises DiskError.

    Each sync of a new name is a commit of the file system's journal: a new partition's are two, one for each directory,
    the first of them for its metadata and its first segment together.
    """
    partition_path = f"{path}/{partition_directory(topic, key[1])}"
    makes = not disk.exists(partition_path)
    if makes:
        make_partition(disk, partition_path, key[0])
    log = Log.open(disk, partition_path, config, recovery_point=points.get((topic, key[1])), clean=clean)
    if makes:
        disk.sync_directory(path)  # that of the partition was synced with its first segment
    elif read_topic_id(disk, partition_path) is None:
        write_topic_id(disk, partition_path, key[0])
    start = starts.get((topic, key[1]))
    if start > log.end_offset:  # all that was left has been lost; what was deleted before that stays so
        points.lower(partition_path, 0)
        log.truncate_fully(start)
    log.advance_start(start)
    return log


def set_aside(disk: Disk, path: str, topic: str, index: int, name: str) -> None:
    """Rename a partition's directory to the marked `name`, durably, so that its own name is free."""
    try:
        disk.rename(f"{path}/{partition_directory(topic, index)}", f"{path}/{name}")
        disk.sync_directory(path)
    except FileMissing:
        pass


def removal_step(disk: Disk, path: str, name: str, step_bytes: int) -> bool:
    """Free `step_bytes` of a directory that was marked for deletion, at most; True once it is gone.

    Segments shrink from their end on: what a crash leaves is as good as what it found, to be removed.
    """
    assert name.endswith(f"-{DELETE}"), f"{name} is not marked for deletion"
    try:
        if not _free(disk, f"{path}/{name}", step_bytes):
            return False
        disk.remove_tree(f"{path}/{name}")
        disk.sync_directory(path)
    except FileMissing:
        pass
    return True


def _free(disk: Disk, path: str, step_bytes: int) -> bool:
    """True if no segment is left: then what remains is small."""
    for name in disk.list(path):
        if not name.endswith(LOG_SUFFIX):
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


def _topic_id(disk: Disk, path: str) -> Uuid | None:
    try:
        return read_topic_id(disk, path)
    except BadPartitionMetadata:
        return None


def _high_watermarks(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    try:
        return read_offsets(disk, f"{path}/{HIGH_WATERMARKS}")
    except CorruptCheckpoint:
        return {}
