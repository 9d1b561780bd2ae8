"""Fetch: read batches, as a consumer (below the high watermark) or as a following broker (to the end of the log).

`replica` reaches this handler on an internal listener only; the wire refuses it elsewhere, and so does this handler,
since a forged one would move a high watermark. With an incremental session (KIP-227, `fetch_sessions.py`) the request
names only what changes, and so does the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.api.endpoints import leader_endpoints
from broker.api.handlers.limits import check_topic_count
from broker.api.services import Services
from broker.fetch.fetch_path import FetchTarget
from broker.fetch.session import Answered, Topic
from broker.fetch.sessions import FetchTurn
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.rpc.transport import Context

ISOLATION_LEVELS = (0, 1)


async def handle_fetch(services: Services, context: Context, request: FetchRequest) -> FetchResponse:
    _check(services, context, request)
    turn = services.fetch_sessions.begin(request, services.clock.now_ms())
    answers, behind = await _answers(services, request, turn)
    session_id, told = services.fetch_sessions.end(turn, answers, services.clock.now_ms(), behind)
    hints = [answer.current_leader for _, answer in told]
    return FetchResponse(
        topics=_by_topic(request, answers) if turn.whole else _grouped(told),
        session_id=session_id,
        node_endpoints=leader_endpoints(services, context, hints),
    )


async def _answers(
    services: Services, request: FetchRequest, turn: FetchTurn
) -> tuple[list[FetchPartitionResponse], list[bool] | None]:
    max_wait_ms = max(0, min(request.max_wait_ms, services.limits.max_wait_ms))
    max_bytes = min(request.max_bytes, services.limits.max_fetch_bytes)
    if turn.incremental is not None:
        return await services.fetch_path.fetch_changed(
            turn, max_wait_ms=max_wait_ms, min_bytes=request.min_bytes, max_bytes=max_bytes
        )
    answers = await services.fetch_path.fetch(
        [FetchTarget(topic, partition) for topic, partition in turn.wanted],
        replica=request.replica,
        max_wait_ms=max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=max_bytes,
        ended=turn.ended,
    )
    return answers, None


def _check(services: Services, context: Context, request: FetchRequest) -> None:
    if request.replica is not None:
        peer = context.peer
        if not context.listener.internal or peer is None or peer.node_id != request.replica.replica_id:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only a broker of this cluster fetches as a replica")
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level}: must be 0 or 1")
    if request.max_bytes <= 0 or request.min_bytes < 0:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"max_bytes={request.max_bytes}, min_bytes={request.min_bytes}: out of range"
        )
    check_topic_count(request.topics, services.limits)
    check_topic_count(request.forgotten, services.limits)


def _by_topic(request: FetchRequest, answers: Sequence[FetchPartitionResponse]) -> tuple[FetchTopicResponse, ...]:
    """The answers, which come in the order of the request, under their topics again."""
    topics, position = [], 0
    for topic in request.topics:
        end = position + len(topic.partitions)
        partitions = tuple(answers[position:end])
        topics.append(FetchTopicResponse(topic_id=topic.topic_id, name=topic.name, partitions=partitions))
        position = end
    assert position == len(answers)
    return tuple(topics)


def _grouped(told: Sequence[Answered]) -> tuple[FetchTopicResponse, ...]:
    """What a session tells, each topic once."""
    topics: dict[Topic, list[FetchPartitionResponse]] = {}
    for topic, answer in told:
        topics.setdefault(topic, []).append(answer)
    return tuple(
        FetchTopicResponse(
            topic_id=topic if isinstance(topic, bytes) else b"",
            name=topic if isinstance(topic, str) else "",
            partitions=tuple(partitions),
        )
        for topic, partitions in topics.items()
    )
