"""A reader with a fetch session (KIP-227), as our own client is none: it names topics once, and then what has moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.buffer import whole
from quorumlog.messages.cluster import MetadataRequest, TopicQuery
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from quorumlog.records.format.batch import headers
from quorumlog.rpc.transport import Connection

_WAIT_MS, _CALL_MS, _MOST_BYTES = 500, 3_000, 1 << 20

Place = tuple[bytes, int]  # topic id and partition


async def read_in_session(connection: Connection, topics: Sequence[str], goes_on: Callable[[], bool]) -> None:
    """Raises ApiError as soon as something is refused, and RpcError."""
    asked = MetadataRequest(all_topics=False, topics=tuple(TopicQuery(name=name) for name in topics))
    metadata = await connection.call(asked, _CALL_MS)
    known = [topic for topic in metadata.topics if topic.error_code == ErrorCode.NONE]
    offsets: dict[Place, int] = {(topic.topic_id, one.index): 0 for topic in known for one in topic.partitions}
    names = {topic.topic_id: topic.name for topic in known}
    moved, session, epoch = list(offsets), 0, 0
    while offsets and goes_on():
        request = _request(names, {place: offsets[place] for place in moved}, session, epoch)
        response: FetchResponse = await connection.call(request, _CALL_MS)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code), response.error_message)
        session, epoch = response.session_id, epoch + 1
        moved = []
        for topic in response.topics:
            for one in topic.partitions:
                place = topic.topic_id or _id_of(names, topic.name), one.index
                if one.records:
                    offsets[place] = headers(whole(one.records))[-1].next_offset
                    moved.append(place)
                elif one.error_code not in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                    raise ApiError(ErrorCode(one.error_code), f"{topic.name}-{one.index}")
        if session == 0:
            return


def _request(names: dict[bytes, str], places: dict[Place, int], session: int, epoch: int) -> FetchRequest:
    topics = tuple(
        FetchTopic(
            topic_id=topic_id,
            name=name,
            partitions=tuple(
                FetchPartition(index=index, fetch_offset=offset, max_bytes=_MOST_BYTES)
                for (of, index), offset in places.items()
                if of == topic_id
            ),
        )
        for topic_id, name in names.items()
        if any(of == topic_id for of, _ in places)
    )
    options: dict[str, Any] = {"max_wait_ms": _WAIT_MS, "min_bytes": 1, "max_bytes": _MOST_BYTES}
    return FetchRequest(topics=topics, session_id=session, session_epoch=epoch, **options)


def _id_of(names: dict[bytes, str], name: str) -> bytes:
    return next(topic_id for topic_id, other in names.items() if other == name)
