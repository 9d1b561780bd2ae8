"""Asks leaders how many bytes which offsets take, and where batches end: for plans that are cut by bytes.

A call of quorumlog's own: Kafka has none like it. An answer is bounded, so a leader is asked again for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import NoProtocol, RequestFailed
from quorumlog.client.offsets import by_leader
from quorumlog.client.options import ISOLATION_LEVELS
from quorumlog.errors import ErrorCode
from quorumlog.ids import Offset, TopicPartition
from quorumlog.messages.fetch import (
    DescribedRanges,
    DescribeRangesPartition,
    DescribeRangesRequest,
    DescribeRangesResponse,
    DescribeRangesTopic,
    OffsetRange,
)
from quorumlog.rpc.transport import NotServed


class RangeQuery(NamedTuple):
    """From start to end (exclusive; -1: the end of what can be read) of a partition.

    max_range_bytes: of a range, except where the index knows no smaller one; 0: a range for each segment. enough_bytes:
    no more is described than the ranges that reach so many; 0: all.
    """

    start: Offset
    end: Offset = -1
    max_range_bytes: int = 0
    enough_bytes: int = 0


async def describe_ranges(
    link: Link,
    wanted: Mapping[TopicPartition, RangeQuery],
    *,
    isolation_level: str = "read_uncommitted",
    timeout_ms: int | None = None,
) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
    """What lies in each partition. Two ranges meet between batches, except at a start or an end that was asked for.

    Retries while leaders move. Raises RequestFailed; NoProtocol for a cluster that has no such call, as Kafka's.
    """
    found: dict[TopicPartition, list[OffsetRange]] = {key: [] for key in wanted}
    left = dict(wanted)

    async def ask() -> None:
        for node_id, keys in (await by_leader(link, left)).items():
            request = DescribeRangesRequest(
                topics=_topics(link, {key: left[key] for key in keys}),
                isolation_level=ISOLATION_LEVELS[isolation_level],
            )
            response: DescribeRangesResponse = await link.call_node(node_id, request)
            check(response)
            for topic in response.topics:
                for part in topic.partitions:
                    _take(topic.name, part)

    def _take(topic: str, part: DescribedRanges) -> None:
        key = (topic, part.index)
        if part.error_code != ErrorCode.NONE:
            raise RequestFailed(ErrorCode(part.error_code), f"ranges of {topic}-{part.index}: {part.error_message}")
        found[key] += part.ranges
        is_enough = 0 < wanted[key].enough_bytes <= sum(one.size_bytes for one in found[key])
        if part.next_offset < 0 or is_enough:
            left.pop(key, None)
        else:
            left[key] = left[key]._replace(start=part.next_offset)

    try:
        while left:
            await link.until(ask, timeout_ms or link.options.default_api_timeout_ms)
    except NotServed as error:
        raise NoProtocol(
            f"this cluster cannot say how many bytes which offsets take (DescribeRanges): {error}"
        ) from error
    return {key: tuple(ranges) for key, ranges in found.items()}


def _topics(link: Link, wanted: Mapping[TopicPartition, RangeQuery]) -> tuple[DescribeRangesTopic, ...]:
    """Of the lives of the topics that the client knows, as in ListOffsets."""
    topics: dict[str, list[DescribeRangesPartition]] = {}
    for (topic, index), query in wanted.items():
        part = DescribeRangesPartition(
            index=index,
            start_offset=query.start,
            end_offset=query.end,
            max_range_bytes=query.max_range_bytes,
            enough_bytes=query.enough_bytes,
        )
        topics.setdefault(topic, []).append(part)
    return tuple(
        DescribeRangesTopic(name=name, topic_id=link.cache.life_of(name).topic_id, partitions=tuple(parts))
        for name, parts in topics.items()
    )
