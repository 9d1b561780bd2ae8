"""Fetch: read batches, as a consumer (below the high watermark) or as a following broker (to the end of the log).

`replica` may come by an internal listener only, since a forged one would move a high watermark: the wire refuses it
elsewhere, and so does this handler. In an incremental session (KIP-227, `quorumlog_broker/fetch/session.py`) the
request names only what changes, and the response holds only what has changed. Limits of bytes below 0 mean 0, as in
Kafka, and a response has one batch at least, so that a reader with any limit gets on.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.rpc.transport import Context
from quorumlog_broker.api.endpoints import leader_endpoints, listener_for
from quorumlog_broker.api.handlers.limits import check_topic_count
from quorumlog_broker.api.services import Services
from quorumlog_broker.fetch.fetch_path import FetchParams
from quorumlog_broker.fetch.isolation import ISOLATION_LEVELS
from quorumlog_broker.fetch.near_replicas import RackReader
from quorumlog_broker.fetch.session import NO_SESSION
from quorumlog_broker.fetch.targets import Topic, TopicResponse


async def handle_fetch(services: Services, context: Context, request: FetchRequest) -> FetchResponse:
    _check(services, context, request)
    fetch_context = services.fetch_sessions.begin(request, services.clock.now_ms())
    quotas, most_bytes = services.quotas, services.limits.max_fetch_bytes
    if quotas.limits(context):
        if throttle_ms := quotas.before_fetch(context):  # the session goes on, and nothing is known to the reader
            session = fetch_context.session
            return FetchResponse(session_id=NO_SESSION if session is None else session.id, throttle_time_ms=throttle_ms)
        most_bytes = quotas.most_fetched(context, most_bytes)
    params = _params(services, context, request, most_bytes)
    responses, has_more = await services.fetch_path.fetch(fetch_context, params)
    now_ms = services.clock.now_ms()
    session_id, sent = services.fetch_sessions.end(fetch_context, responses, has_more, now_ms)
    hints = [response.current_leader for _, response in sent]
    is_limited = quotas.limits(context)  # by now: it may have waited
    return FetchResponse(
        topics=_as_requested(request, responses) if fetch_context.is_full else _grouped(sent),
        session_id=session_id,
        node_endpoints=leader_endpoints(services, context, hints),
        throttle_time_ms=quotas.fetched(context, sum(len(one.records) for one in responses)) if is_limited else 0,
    )


def _params(services: Services, context: Context, request: FetchRequest, most_bytes: int) -> FetchParams:
    is_near = bool(request.rack) and request.replica is None
    return FetchParams(
        max_wait_ms=max(0, min(request.max_wait_ms, services.limits.max_wait_ms)),
        min_bytes=max(0, request.min_bytes),
        max_bytes=max(0, min(request.max_bytes, most_bytes)),
        isolation_level=request.isolation_level,
        reader=RackReader(request.rack, listener_for(services, context)) if is_near else None,
    )


def _check(services: Services, context: Context, request: FetchRequest) -> None:
    if request.replica is not None:
        peer = context.peer
        if not context.listener.internal or peer is None or peer.node_id != request.replica.replica_id:
            raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "only a broker of this cluster fetches as a replica")
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"isolation level {request.isolation_level}: must be 0 or 1")
    check_topic_count(request.topics, services.limits)
    check_topic_count(request.forgotten, services.limits)


def _as_requested(request: FetchRequest, responses: Sequence[FetchPartitionResponse]) -> tuple[FetchTopicResponse, ...]:
    """The responses under the request's topics; they come in the order of its partitions."""
    topics, position = [], 0
    for topic in request.topics:
        end = position + len(topic.partitions)
        partitions = tuple(responses[position:end])
        topics.append(FetchTopicResponse(topic_id=topic.topic_id, name=topic.name, partitions=partitions))
        position = end
    assert position == len(responses)
    return tuple(topics)


def _grouped(sent: Sequence[TopicResponse]) -> tuple[FetchTopicResponse, ...]:
    """A session's responses, each topic once, in the order of their first partitions."""
    topics: dict[Topic, list[FetchPartitionResponse]] = {}
    for topic, response in sent:
        topics.setdefault(topic, []).append(response)
    return tuple(
        FetchTopicResponse(
            topic_id=topic if isinstance(topic, bytes) else b"",
            name=topic if isinstance(topic, str) else "",
            partitions=tuple(partitions),
        )
        for topic, partitions in topics.items()
    )
