"""What lies in each log directory of this broker, and how much room there is (DescribeLogDirs, KIP-827)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.admin import AlterConfigsResource, LogDirDescription, LogDirPartition, LogDirTopic
from quorumlog_broker.logdirs.cordoned import LiveCordoned
from quorumlog_broker.logdirs.failures import Busy
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from quorumlog_broker.logdirs.partition_store import PartitionStore
from quorumlog_broker.replicas.opening_progress import DirectoryProgress
from quorumlog_broker.replicas.registry import Registry
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.directory.directory import DirectoryGone
from quorumlog_storage.files.disk import DiskError, FileMissing
from quorumlog_storage.writer.directory_life import DirectoryState


class FutureCopy(NamedTuple):
    """Of a move that is under way. lag: offsets that the copy lacks."""

    topic: str
    partition: int
    size_bytes: int
    lag: Offset


class DirectoryReport:
    def __init__(
        self,
        directories: Sequence[LogDirectory],
        store: PartitionStore,
        registry: Registry,
        progress: Callable[[], list[DirectoryProgress]] = list,
        copies: Callable[[DirectoryQueue], Sequence[FutureCopy]] = lambda _: (),
        cordoned: LiveCordoned | None = None,
    ) -> None:
        """progress: of directories whose logs are being opened. copies: what moves have put into a directory so far."""
        self._copies, self._cordoned = copies, cordoned
        self._directories = directories
        self._store = store
        self._registry = registry
        self._progress = progress

    def check_settings(self, asked: AlterConfigsResource) -> None:
        """Raises ApiError for a change that names a directory which is not here."""
        if self._cordoned is not None:
            self._cordoned.check(asked)

    async def describe(self) -> list[LogDirDescription]:
        """Every directory, in the order of `log.dirs`; one that is offline is described by an error, and has no usable
        byte if a write found no room, else an unknown number: the lane's answer has no room for the error's text."""
        replicas = list(self._registry.replicas.values())
        return [await self._describe(directory, replicas) for directory in self._directories]

    def _why_offline(self, directory: LogDirectory) -> LogDirDescription:
        life = directory.life
        why = str(life.failure.cause) if life.failure is not None else life.state.value
        if life.state is DirectoryState.VERIFYING:
            found = [str(one) for one in self._progress() if one.path == directory.path]
            why = f"verifying: {found[0] if found else 'listing what is there'}"
        offline, queue = replace(_offline(directory), error_message=why), self._store.queues.get(directory.directory_id)
        if queue is None or not queue.space.ran_out:
            return offline
        return replace(offline, total_bytes=queue.space.total_bytes, usable_bytes=0)

    async def _describe(self, directory: LogDirectory, replicas: Sequence[Replica]) -> LogDirDescription:
        queue = self._store.queues.get(directory.directory_id)
        if queue is None or not queue.is_usable or not directory.life.is_online:
            return replace(self._why_offline(directory), is_cordoned=directory.path in self._store.cordoned)
        disk, path = directory.partitions.disk, directory.path
        try:
            total_bytes, usable_bytes = await queue.read(lambda: (disk.total_bytes(path), disk.free_bytes(path)))
        except Busy as busy:
            return replace(_offline(directory), error_code=busy.code)
        except ApiError:
            return self._why_offline(directory)
        except DiskError as error:  # of the directory itself; what is told as offline must be offline
            gone = isinstance(error, FileMissing)
            queue.fail(DirectoryGone(path, "it is not there any more") if gone else error)
            return self._why_offline(directory)
        return LogDirDescription(
            path=path,
            directory_id=directory.directory_id,
            topics=_topics(replicas, queue, self._copies(queue)),
            total_bytes=total_bytes,
            usable_bytes=usable_bytes,
            is_cordoned=directory.path in self._store.cordoned,
        )


def _offline(directory: LogDirectory) -> LogDirDescription:
    return LogDirDescription(
        path=directory.path, directory_id=directory.directory_id, error_code=ErrorCode.KAFKA_STORAGE_ERROR
    )


def _topics(
    replicas: Sequence[Replica], queue: DirectoryQueue, copies: Sequence[FutureCopy]
) -> tuple[LogDirTopic, ...]:
    """By name and partition. A log that is not open yet is left out."""
    topics: dict[str, list[LogDirPartition]] = {}
    held = [replica for replica in replicas if replica.queue is queue]
    for replica in sorted(held, key=lambda replica: (replica.topic, replica.key[1])):
        log = replica.log
        if log is not None:
            lag = max(0, replica.core.high_watermark - log.end_offset)
            partition = LogDirPartition(index=replica.key[1], size_bytes=log.size_bytes, offset_lag=lag)
            topics.setdefault(replica.topic, []).append(partition)
    for copy in copies:
        partition = LogDirPartition(
            index=copy.partition, size_bytes=copy.size_bytes, offset_lag=copy.lag, is_future=True
        )
        topics.setdefault(copy.topic, []).append(partition)
    return tuple(LogDirTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items())
