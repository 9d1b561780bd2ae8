"""Which broker is asked to move which replicas, and what it says (AlterReplicaLogDirs)."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.client.errors import RequestFailed
from quorumlog.client.link import Link
from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.admin import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

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
