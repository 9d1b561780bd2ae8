"""Consumers for pages of records: as the principal of the request, few at a time; and refusals in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import NoSuchTopic, QuorumlogError, RequestFailed, TopicReplaced
from quorumlog.errors import ErrorCode
from quorumlog.rpc.transport import RpcError
from quorumlog.watch.reading import reason
from quorumlog_console.access import Access
from quorumlog_console.slots import Busy

FETCH_BYTES = 256 << 10  # of a partition at a time; one batch at least, however large
WHOLE_FETCH_BYTES = 2 << 20
API_MS = 3_000


@asynccontextmanager
async def reading(access: Access, *, sees_uncommitted: bool = False) -> AsyncIterator[AsyncConsumer]:
    """A consumer without a group, which takes little memory. It is closed at the end."""
    options: dict[str, Any] = {
        "isolation_level": "read_uncommitted" if sees_uncommitted else "read_committed",
        "max_partition_fetch_bytes": FETCH_BYTES,
        "fetch_max_bytes": WHOLE_FETCH_BYTES,
        "prefetch_bytes": WHOLE_FETCH_BYTES,
        "prefetch_chunks": 1,
        "default_api_timeout_ms": API_MS,
        "auto_offset_reset": "earliest",
    }
    consumer: AsyncConsumer = access.consumer(**options)
    try:
        yield consumer
    finally:
        await consumer.close(commit=False)


def why(error: QuorumlogError | RpcError | Busy, topic: str, principal: str) -> tuple[int, str, str]:
    """An HTTP status, what went wrong, and what to do."""
    match error:
        case Busy():
            return 503, "The console is busy", str(error)
        case NoSuchTopic():
            return 404, f"There is no topic {topic}", f"{error}."
        case TopicReplaced():
            return 410, f"Topic {topic} was deleted and made again", "This address is of the former one. Begin again."
        case RequestFailed(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            text = (
                f"{principal} needs the right Read on topic {topic}. An administrator gives it: "
                f"quorumlog acl create topic:{topic} --allow {principal} -o read"
            )
            return 403, f"You may not read topic {topic}", text
        case _:
            assert not isinstance(error, Busy)
            return 502, "The records cannot be read", reason(error)
