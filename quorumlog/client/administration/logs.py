"""Deletes records, and moves replicas to other log directories: each broker is asked for its own part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import RequestFailed
from quorumlog.client.offsets import by_leader
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId, Offset, TopicPartition
from quorumlog.messages.admin import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    LogDirDescription,
    LogDirPartition,
)

ALL_COMMITTED: Offset = -1  # as an offset: the high watermark


def current_replicas(
    described: Mapping[NodeId, Iterable[LogDirDescription]],
) -> dict[tuple[str, int, NodeId], LogDirPartition]:
    """Of each broker's directories, by topic, partition and broker. A copy that is to replace one is left out."""
    return {
        (topic.name, part.index, node_id): part
        for node_id, directories in described.items()
        for directory in directories
        for topic in directory.topics
        for part in topic.partitions
        if not part.is_future
    }


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


MOVE_TIMEOUT_MS = 60_000  # a broker makes the directories of the copies before it answers


async def alter_replica_log_dirs(link: Link, wanted: Mapping[tuple[str, int, NodeId], str]) -> None:
    """See `AsyncAdmin.alter_replica_log_dirs`."""
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
        response: AlterReplicaLogDirsResponse = await link.call_node(node_id, request, MOVE_TIMEOUT_MS)
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
