"""What an admin client asks of logs and of their directories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from quorumlog.client.administration.export_partition import ExportedPart, PartitionExport
from quorumlog.client.administration.import_topic import Source, TopicImport
from quorumlog.client.administration.ranges import RangeQuery, describe_ranges
from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.client.offsets import FoundOffset, by_leader, resolve_offsets, resolve_ranges
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset, TopicPartition, Uuid
from quorumlog.messages.admin import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    BringLogDirOnlineRequest,
    BringLogDirOnlineResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogDirDescription,
)
from quorumlog.messages.fetch import OffsetRange
from quorumlog.messages.imports import BeginImportResponse
from quorumlog.rpc.transport import RpcError

ALL_COMMITTED: Offset = -1  # as an offset: the high watermark


async def delete_records(
    link: Link, before: Mapping[TopicPartition, Offset], timeout_ms: int | None = None
) -> dict[TopicPartition, Offset]:
    """Returns the first remaining offset of each partition. Retries while leaders move; the request is idempotent.

    Raises RequestFailed (with the last error at the deadline; other partitions may be done), Unavailable.
    """
    left: dict[TopicPartition, Offset] = {}

    async def ask() -> None:
        asked = {key: offset for key, offset in before.items() if key not in left}
        for node_id, keys in (await by_leader(link, asked)).items():
            request = _request(keys, before, link.options.request_timeout_ms)
            response: DeleteRecordsResponse = await link.call_node(node_id, request)
            check(response)
            _collect(response, left)

    await link.until(ask, timeout_ms or link.options.default_api_timeout_ms)
    return left


def _request(
    keys: list[TopicPartition], before: Mapping[TopicPartition, Offset], timeout_ms: int
) -> DeleteRecordsRequest:
    """The broker's deadline comes before ours, so that its answer still reaches us."""
    topics: dict[str, list[DeleteRecordsPartition]] = {}
    for topic, partition in keys:
        part = DeleteRecordsPartition(index=partition, offset=before[topic, partition])
        topics.setdefault(topic, []).append(part)
    return DeleteRecordsRequest(
        topics=tuple(DeleteRecordsTopic(name=name, partitions=tuple(parts)) for name, parts in topics.items()),
        timeout_ms=max(1, timeout_ms * 3 // 4),
    )


def _collect(response: DeleteRecordsResponse, left: dict[TopicPartition, Offset]) -> None:
    """Takes the successful partitions, then raises RequestFailed for the first one that failed."""
    failed: RequestFailed | None = None
    for topic in response.topics:
        for part in topic.partitions:
            if part.error_code == ErrorCode.NONE:
                left[topic.name, part.index] = part.low_watermark
            else:
                failed = failed or RequestFailed(ErrorCode(part.error_code), f"{topic.name}-{part.index}")
    if failed is not None:
        raise failed


TIMEOUT_MS = 60_000  # a broker makes the directories of the copies before it answers


async def alter_replica_log_dirs(link: Link, wanted: Mapping[tuple[str, int, NodeId], str]) -> None:
    """See `LogAdmin.alter_replica_log_dirs`."""
    await link.refresh([])
    refused: list[RequestFailed] = []
    for node_id in sorted({node_id for _, _, node_id in wanted}):
        paths: dict[str, dict[str, list[int]]] = {}
        for (topic, index, of_node), path in sorted(wanted.items()):
            if of_node == node_id:
                paths.setdefault(path, {}).setdefault(topic, []).append(index)
        request = AlterReplicaLogDirsRequest(
            dirs=tuple(
                AlterReplicaLogDir(
                    path=path,
                    topics=tuple(
                        AlterReplicaLogDirTopic(name=name, partitions=tuple(partitions))
                        for name, partitions in topics.items()
                    ),
                )
                for path, topics in paths.items()
            )
        )
        response: AlterReplicaLogDirsResponse = await link.call_node(node_id, request, TIMEOUT_MS)
        refused += _refused(node_id, response)
    if refused:
        raise refused[0]


def _refused(node_id: NodeId, response: AlterReplicaLogDirsResponse) -> list[RequestFailed]:
    if response.error_code:
        return [RequestFailed(ErrorCode(response.error_code), response.error_message)]
    return [
        RequestFailed(ErrorCode(one.error_code), f"{topic.name}-{one.index} on broker {node_id}: {one.error_message}")
        for topic in response.results
        for one in topic.partitions
        if one.error_code
    ]


LOG_DIR_TIMEOUT_MS = 60_000  # the controller has to know first that it is offline; then it is locked and read


class LogAdmin:
    """A part of `AsyncAdmin`, which makes the link."""

    _link: Link

    async def import_topic(
        self,
        name: str,
        sources: Sequence[Source],
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> BeginImportResponse:
        """Copy foreign logs into a new topic: source n into partition n. `import_topic.py` says what holds.

        on_progress: bytes that replicas have taken, and that they will take in all. Raises RequestFailed: among others
        TOPIC_ALREADY_EXISTS; OtherSource; Unavailable.
        """
        return await TopicImport(self._link, name, sources, on_progress).run(replication, configs or {})

    async def export_partition(self, topic: str, index: int, take: Callable[[ExportedPart], None]) -> Uuid:
        """Read a partition's batches as they are stored, up to its high watermark. Returns the topic's id.

        take: called with each part in order, on the client's loop. Raises RequestFailed, Unavailable, ExportFailed.
        """
        return await PartitionExport(self._link, topic, index, take).run()

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete all records before these offsets (-1: the high watermark). Returns each partition's first offset."""
        return await delete_records(self._link, before)

    async def describe_log_dirs(
        self, *, timeout_ms: int | None = None, silent: dict[NodeId, str] | None = None
    ) -> dict[NodeId, tuple[LogDirDescription, ...]]:
        """The log directories of every broker that is not fenced, by broker id.

        timeout_ms: of each broker; None: request.timeout.ms. silent: is given why a broker has not answered, and that
        one is left out; a dead broker is not fenced before its session ends, and one that has just started reads the
        metadata first. Without it, raises RpcError and RequestFailed.
        """
        await self._link.refresh([])
        found: dict[NodeId, tuple[LogDirDescription, ...]] = {}
        for node_id in sorted(self._link.cache.brokers):
            try:
                response: DescribeLogDirsResponse = await self._link.call_node(
                    node_id, DescribeLogDirsRequest(), timeout_ms
                )
                check(response)
            except (RequestFailed, RpcError) as error:
                if silent is None or (isinstance(error, RequestFailed) and not error.code.retriable):
                    raise
                silent[node_id] = str(error)
                continue
            found[node_id] = response.directories
        return found

    async def alter_replica_log_dirs(self, wanted: Mapping[tuple[str, int, NodeId], str]) -> None:
        """Move replicas to other log directories of their brokers, or cancel their moves.

        wanted: the path by topic, partition and broker. Returns once the moves have begun; `describe_log_dirs` shows
        them. Raises RequestFailed for the first that was refused, after all were asked: LOG_DIR_NOT_FOUND,
        KAFKA_STORAGE_ERROR; REPLICA_NOT_AVAILABLE where it is not there yet, and will be made there.
        """
        await alter_replica_log_dirs(self._link, wanted)

    async def bring_log_dir_online(self, node_id: NodeId, path: str) -> None:
        """Let a broker verify a log directory that was repaired; `describe_log_dirs` tells when it is online.

        Raises RequestFailed: LOG_DIR_NOT_FOUND, INVALID_REQUEST where it is not offline, KAFKA_STORAGE_ERROR where it
        stays so.
        """
        await self._link.refresh([])
        response: BringLogDirOnlineResponse = await self._link.call_node(
            node_id, BringLogDirOnlineRequest(path=path), LOG_DIR_TIMEOUT_MS
        )
        check(response)

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, FoundOffset]:
        """Offsets for timestamps in ms, or for LATEST, EARLIEST, MAX_TIMESTAMP of `quorumlog.client.offsets`."""
        return await resolve_offsets(self._link, wanted, isolation_level=isolation_level)

    async def list_offset_ranges(
        self,
        wanted: Iterable[TopicPartition],
        timeout_ms: int | None = None,
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[FoundOffset, FoundOffset]]:
        """EARLIEST and LATEST of each partition; all leaders are asked at once. timeout_ms: None: the default."""
        return await resolve_ranges(self._link, wanted, timeout_ms, isolation_level=isolation_level)

    async def describe_ranges(
        self,
        wanted: Mapping[TopicPartition, RangeQuery],
        *,
        isolation_level: str = "read_uncommitted",
    ) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        """How many bytes which offsets take, and where batches end: see `ranges.describe_ranges`."""
        return await describe_ranges(self._link, wanted, isolation_level=isolation_level)
