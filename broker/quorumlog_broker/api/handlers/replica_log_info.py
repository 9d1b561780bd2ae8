"""GetReplicaLogInfo: the active controller asks for the ends of this broker's logs (KIP-966)."""

from __future__ import annotations

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import GetReplicaLogInfoRequest, GetReplicaLogInfoResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.services import Services

MAX_PARTITIONS = 1_000  # as in Kafka


async def handle_get_replica_log_info(
    services: Services, context: Context, request: GetReplicaLogInfoRequest
) -> GetReplicaLogInfoResponse:
    if not context.listener.internal:
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only the controller asks for the ends of logs")
    if request.broker_id != services.node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {services.node_id}, not {request.broker_id}")
    if len(request.partitions) > MAX_PARTITIONS:
        text = f"{len(request.partitions)} partitions in one request, limit {MAX_PARTITIONS}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    return services.log_ends.describe(request)
