"""AlterReplicaLogDirs (KIP-113): replicas of this broker move to other log directories of it, or their moves end.

Each partition is answered by itself, in the order of the request. A partition that is named twice goes where it is
named last, because the later request replaces the earlier one.
"""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.admin import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services


async def handle_alter_replica_log_dirs(
    services: Services, _context: Context, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    for directory in request.dirs:
        check_topic_count(directory.topics, services.limits)
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                results.setdefault(topic.name, []).append(await _alter(services, topic.name, index, directory.path))
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirTopicResult(name=name, partitions=tuple(partitions))
            for name, partitions in results.items()
        )
    )


async def _alter(services: Services, topic: str, index: int, path: str) -> AlterReplicaLogDirPartitionResult:
    try:
        await services.moves.alter(topic, index, path)
    except ApiError as error:
        return AlterReplicaLogDirPartitionResult(index=index, error_code=error.code, error_message=error.message)
    return AlterReplicaLogDirPartitionResult(index=index, error_code=ErrorCode.NONE)
