"""Fetch: read batches, as a consumer (below the high watermark) or as a following broker (to the end of the log).

`replica` reaches this handler on an internal listener only; the wire refuses it elsewhere, and so does this handler,
since a forged one would move a high watermark. Incremental sessions are not offered: every answer says session 0,
which makes clients send whole requests.
"""

from __future__ import annotations

from broker.endpoints import leader_endpoints
from broker.handlers.limits import check_topic_count
from broker.replicas import FetchTarget
from broker.services import Services
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.rpc.transport import Context

ISOLATION_LEVELS = (0, 1)


async def handle_fetch(services: Services, context: Context, request: FetchRequest) -> FetchResponse:
    _check(services, context, request)
    targets = [
        FetchTarget(topic.topic_id or topic.name, partition)
        for topic in request.topics
        for partition in topic.partitions
    ]
    answers = await services.replicas.fetch(
        targets,
        replica=request.replica,
        max_wait_ms=max(0, min(request.max_wait_ms, services.limits.max_wait_ms)),
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, services.limits.max_fetch_bytes),
    )
    hints = [answer.current_leader for answer in answers]
    return FetchResponse(topics=_by_topic(request, answers), node_endpoints=leader_endpoints(services, context, hints))


def _check(services: Services, context: Context, request: FetchRequest) -> None:
    if request.replica is not None:
        peer = context.peer
        if not context.listener.internal or peer is None or peer.node_id != request.replica.replica_id:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only a broker of this cluster fetches as a replica")
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level}: must be 0 or 1")
    if request.session_id != 0:
        raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
    if request.max_bytes <= 0 or request.min_bytes < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"max_bytes={request.max_bytes}, min_bytes={request.min_bytes}: out of range"
        )
    check_topic_count(request.topics, services.limits)


def _by_topic(request: FetchRequest, answers: list[FetchPartitionResponse]) -> tuple[FetchTopicResponse, ...]:
    """The answers, which come in the order of the request, under their topics again."""
    topics, position = [], 0
    for topic in request.topics:
        end = position + len(topic.partitions)
        partitions = tuple(answers[position:end])
        topics.append(FetchTopicResponse(topic_id=topic.topic_id, name=topic.name, partitions=partitions))
        position = end
    assert position == len(answers)
    return tuple(topics)
