"""The client and DescribeRanges: leaders are asked until all is described, and a Kafka cannot say it."""

from __future__ import annotations

import random
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.ranges import RangeQuery
from quorumlog.client.errors import NoProtocol
from quorumlog.errors import ErrorCode
from quorumlog.messages.fetch import (
    DescribedRanges,
    DescribeRangesRequest,
    DescribeRangesResponse,
    DescribeRangesTopicResponse,
    OffsetRange,
)
from quorumlog.rpc.transport import NotServed


class Ranges(FakeCluster):
    """Ranges of ten offsets and ten bytes up to `end`; two of them in an answer, which the first partition may take."""

    end = 50

    async def _DescribeRangesRequest(self, node: int, request: DescribeRangesRequest) -> DescribeRangesResponse:
        topics, room = [], 2
        for topic in request.topics:
            assert topic.topic_id == self.ids[topic.name]
            described = []
            for part in topic.partitions:
                if self.topics[topic.name][part.index].leader != node:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    described.append(DescribedRanges(index=part.index, error_code=code))
                    continue
                end = self.end if part.end_offset < 0 else part.end_offset
                starts = list(range(part.start_offset, end, 10))[:room]
                room -= len(starts)
                ranges = [OffsetRange(start_offset=o, end_offset=min(o + 10, end), size_bytes=10) for o in starts]
                after = ranges[-1].end_offset if ranges else part.start_offset
                next_offset = -1 if after >= end else after
                described.append(DescribedRanges(index=part.index, ranges=tuple(ranges), next_offset=next_offset))
            topics.append(DescribeRangesTopicResponse(name=topic.name, partitions=tuple(described)))
        return DescribeRangesResponse(topics=tuple(topics))


def describe(cluster: FakeCluster, wanted: dict[tuple[str, int], tuple[int, ...]]) -> Any:
    async def ask() -> Any:
        admin = AsyncAdmin(
            cluster,  # type: ignore[arg-type]
            clock=TestClock(),
            rng=random.Random(1),
            bootstrap_servers="b1",
        )
        try:
            found = await admin.describe_ranges({key: RangeQuery(*query) for key, query in wanted.items()})
            return {key: [(one.start_offset, one.end_offset) for one in ranges] for key, ranges in found.items()}
        finally:
            await admin.close()

    return virtual_time.run(ask())


def test_leaders_are_asked_until_all_is_described() -> None:
    cluster = Ranges(partitions=4)  # broker 1 leads two
    found = describe(cluster, {("t", 0): (5, -1), ("t", 1): (0, 15), ("t", 2): (40, 40), ("t", 3): (20, -1)})
    assert found == {
        ("t", 0): [(5, 15), (15, 25), (25, 35), (35, 45), (45, 50)],
        ("t", 1): [(0, 10), (10, 15)],
        ("t", 2): [],
        ("t", 3): [(20, 30), (30, 40), (40, 50)],
    }


def test_a_leader_that_has_moved_is_found_and_enough_is_enough() -> None:
    cluster = Ranges()
    moved = DescribeRangesResponse(
        topics=(
            DescribeRangesTopicResponse(
                name="t", partitions=(DescribedRanges(index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),)
            ),
        )
    )
    cluster.fault(DescribeRangesRequest, lambda _: moved)
    assert describe(cluster, {("t", 0): (0, -1, 0, 30)}) == {("t", 0): [(n, n + 10) for n in (0, 10, 20, 30)]}


def test_a_kafka_cannot_say_it() -> None:
    cluster = Ranges()
    cluster.fault(DescribeRangesRequest, *[lambda _: NotServed("no api of Kafka's")] * 9)
    with pytest.raises(NoProtocol, match="DescribeRanges"):
        describe(cluster, {("t", 0): (0, -1)})
