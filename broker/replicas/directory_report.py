"""What lies in each log directory of this broker, and how much room there is (DescribeLogDirs, KIP-827)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from broker.logdirs.busy import Busy
from broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from broker.logdirs.partition_store import PartitionStore
from broker.replicas.registry import Registry
from broker.replicas.replica import Replica
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import LogDirDescription, LogDirPartition, LogDirTopic
from storage.disk import DiskError


class DirectoryReport:
    def __init__(self, directories: Sequence[LogDirectory], store: PartitionStore, registry: Registry) -> None:
        self._directories = directories
        self._store = store
        self._registry = registry

    async def describe(self) -> list[LogDirDescription]:
        """Every directory, in the order of `log.dirs`; one that is offline is described by an error."""
        replicas = list(self._registry.replicas.values())
        return [await self._describe(directory, replicas) for directory in self._directories]

    async def _describe(self, directory: LogDirectory, replicas: Sequence[Replica]) -> LogDirDescription:
        queue = self._store.queues.get(directory.directory_id)
        if queue is None or not queue.is_usable:
            return _offline(directory)
        disk, path = directory.partitions.disk, directory.path
        try:
            total_bytes, usable_bytes = await queue.read(lambda: (disk.total_bytes(path), disk.free_bytes(path)))
        except Busy as busy:
            return replace(_offline(directory), error_code=busy.code)
        except (ApiError, DiskError):
            return _offline(directory)
        return LogDirDescription(
            path=path,
            directory_id=directory.directory_id,
            topics=_topics(replicas, queue),
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
        )


def _offline(directory: LogDirectory) -> LogDirDescription:
    return LogDirDescription(
        path=directory.path, directory_id=directory.directory_id, error_code=ErrorCode.KAFKA_STORAGE_ERROR
    )


def _topics(replicas: Sequence[Replica], queue: DirectoryQueue) -> tuple[LogDirTopic, ...]:
    """By name and partition. A log that is not open yet is left out."""
    topics: dict[str, list[LogDirPartition]] = {}
    held = [replica for replica in replicas if replica.queue is queue]
    for replica in sorted(held, key=lambda replica: (replica.topic, replica.key[1])):
        log = replica.log
        if log is not None:
            lag = max(0, replica.core.high_watermark - log.end_offset)
            partition = LogDirPartition(index=replica.key[1], size_bytes=log.size_bytes, offset_lag=lag)
            topics.setdefault(replica.topic, []).append(partition)
    return tuple(LogDirTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items())
