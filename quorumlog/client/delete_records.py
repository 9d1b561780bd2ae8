"""Asks leaders to delete records before an offset, or all committed records."""

from __future__ import annotations

from collections.abc import Mapping

from quorumlog.client.errors import RequestFailed
from quorumlog.client.fetch_position import TopicPartition
from quorumlog.client.link import Link, check
from quorumlog.client.offsets import by_leader
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset
from quorumlog.messages.admin import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

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
