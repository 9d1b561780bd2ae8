"""DescribeRanges: an answer is bounded, and says from where to ask again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from quorumlog.errors import ApiError
from quorumlog.messages.fetch import (
    DescribedRanges,
    DescribeRangesPartition,
    DescribeRangesRequest,
    DescribeRangesTopic,
    OffsetRange,
)
from quorumlog.settings.requests import HandlerLimits
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_broker.fetch.range_search import WantedRanges


class Queries:
    """Every partition has five ranges."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, int, int]] = []

    async def describe_ranges(
        self, topic: Any, index: int, start: int, end: int, wanted: WantedRanges, **_: Any
    ) -> DescribedRanges:
        self.asked.append((topic, index, wanted.most))
        count = min(5, wanted.most)
        ranges = [OffsetRange(start_offset=start + n, end_offset=start + n + 1, size_bytes=9) for n in range(count)]
        return DescribedRanges(index=index, ranges=tuple(ranges), next_offset=-1 if count == 5 else start + count)


def ask(queries: Queries, *, first_start: int = 10, **fields: int) -> Any:
    """Of three partitions, whose starts are `first_start` apart."""
    services = SimpleNamespace(
        limits=HandlerLimits(max_described_ranges=8),
        offset_queries=queries,
        clock=SimpleNamespace(now_ms=lambda: 0),
    )
    starts = [(index, first_start * index) for index in (1, 2, 3)]
    parts = tuple(DescribeRangesPartition(index=index, start_offset=start, **fields) for index, start in starts)
    named = DescribeRangesTopic(name="t", topic_id=b"i" * 16, partitions=parts)
    request = DescribeRangesRequest(topics=(named,))
    return asyncio.run(HANDLERS[DescribeRangesRequest](services, None, request))  # type: ignore[arg-type]


def test_partitions_share_the_room_of_an_answer() -> None:
    queries = Queries()
    (topic,) = ask(queries).topics
    assert [(len(one.ranges), one.next_offset) for one in topic.partitions] == [(5, -1), (3, 23), (0, 30)]
    assert queries.asked == [(b"i" * 16, 1, 8), (b"i" * 16, 2, 3)]


def test_a_partition_without_room_is_not_whole_wherever_it_was_to_begin() -> None:
    """An offset below zero would be taken for -1, which says that the description is whole."""
    (topic,) = ask(Queries(), first_start=-1).topics
    assert [one.next_offset for one in topic.partitions] == [-1, 1, 0]


@pytest.mark.parametrize("field", ["max_range_bytes", "enough_bytes"])
def test_bounds_below_zero_are_refused(field: str) -> None:
    with pytest.raises(ApiError, match="0, for none, or above"):
        ask(Queries(), **{field: -1})
