"""The partitions in each log directory of this broker, and its free space (DescribeLogDirs, KIP-827)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from broker.logdirs.partition_store import PartitionStore
from broker.replicas.replica import Replica
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import LogDirDescription, LogDirPartition, LogDirTopic
from storage.disk import DiskError


async def report_directories(
    directories: Sequence[LogDirectory], store: PartitionStore, replicas: Iterable[Replica]
) -> list[LogDirDescription]:
    """One for each directory, in the order of `log.dirs`. A directory that is offline is reported with an error."""
    held = list(replicas)
    return [await _report(directory, store.queues.get(directory.directory_id), held) for directory in directories]


async def _report(
    directory: LogDirectory, queue: DirectoryQueue | None, replicas: Sequence[Replica]
) -> LogDirDescription:
    offline = LogDirDescription(
        path=directory.path, directory_id=directory.directory_id, error_code=ErrorCode.KAFKA_STORAGE_ERROR
    )
    if queue is None or not queue.is_usable:
        return offline
    disk, path = directory.partitions.disk, directory.path
    try:
        total_bytes, usable_bytes = await queue.read(lambda: (disk.total_bytes(path), disk.free_bytes(path)))
    except (ApiError, DiskError):
        return offline
    return LogDirDescription(
        path=path,
        directory_id=directory.directory_id,
        topics=_topics([replica for replica in replicas if replica.queue is queue]),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _topics(replicas: Sequence[Replica]) -> tuple[LogDirTopic, ...]:
    """Sorted by name and partition. A log that is still being opened is left out."""
    topics: dict[str, list[LogDirPartition]] = {}
    for replica in sorted(replicas, key=lambda replica: (replica.topic, replica.key[1])):
        log = replica.log
        if log is not None:
            lag = max(0, replica.core.high_watermark - log.end_offset)
            partition = LogDirPartition(index=replica.key[1], size_bytes=log.size_bytes, offset_lag=lag)
            topics.setdefault(replica.topic, []).append(partition)
    return tuple(LogDirTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items())
