"""The lag of a group as the client tells it: from leaders that count, and from an Apache Kafka, which tells offsets."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import virtual_time
from fake_cluster import FakeCluster, TestClock

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.administration.group_lag import GroupLag, PartitionLag, group_lag, read_topics
from quorumlog.client.administration.groups import GroupDescription
from quorumlog.client.errors import NoProtocol
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.client.group.protocol import write_assignment
from quorumlog.errors import ErrorCode
from quorumlog.ids import TopicPartition, Uuid
from quorumlog.messages.fetch import (
    CountedRecords,
    CountRecordsRequest,
    CountRecordsResponse,
    CountRecordsTopicResponse,
)
from quorumlog.messages.groups import (
    AssignedTopic,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedGroup,
    DescribedMember,
)
from quorumlog.rpc.transport import NotServed

END = 50


class Counting(FakeCluster):
    """Every second offset is a record, and the first unread one is a minute old."""

    async def _CountRecordsRequest(self, node: int, request: CountRecordsRequest) -> CountRecordsResponse:
        topics = []
        for topic in request.topics:
            assert topic.topic_id == self.ids[topic.name]
            counted = []
            for part in topic.partitions:
                if self.topics[topic.name][part.index].leader != node:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    counted.append(CountedRecords(index=part.index, error_code=code))
                    continue
                records = (END - part.start_offset) // 2
                times = {"first_timestamp_ms": 1, "age_ms": 60_000} if records else {}
                counted.append(CountedRecords(index=part.index, records=records, end_offset=END, **times))
            topics.append(CountRecordsTopicResponse(name=topic.name, partitions=tuple(counted)))
        return CountRecordsResponse(topics=tuple(topics))


def kafka() -> FakeCluster:
    cluster = FakeCluster()
    cluster.fault(CountRecordsRequest, *[lambda _: NotServed("no api of Kafka's")] * 9)
    return cluster


def empty_group(*members: DescribedMember, state: str = "Empty") -> GroupDescription:
    return GroupDescription(
        1, DescribedGroup(group_id="g", group_state=state, protocol_type="consumer", members=members)
    )


def member(assignment: bytes) -> DescribedMember:
    return DescribedMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=b"", member_assignment=assignment
    )


def told(
    cluster: FakeCluster, description: GroupDescription, offsets: Mapping[TopicPartition, int | CommittedOffset]
) -> GroupLag:
    async def ask() -> Any:
        admin = AsyncAdmin(
            cluster,  # type: ignore[arg-type]
            clock=TestClock(),
            rng=random.Random(1),
            bootstrap_servers="b1",
        )
        try:
            committed = {key: CommittedOffset(one) if isinstance(one, int) else one for key, one in offsets.items()}
            return await group_lag(admin._link, description, committed)
        finally:
            await admin.close()

    found: GroupLag = virtual_time.run(ask())
    return found


@pytest.mark.parametrize("cluster", [Counting, kafka])
def test_the_offset_of_a_former_topic_is_no_lag(cluster: Callable[[], FakeCluster]) -> None:
    made = cluster()
    own, former = CommittedOffset(10, topic_id=Uuid(made.ids["t"])), CommittedOffset(10, topic_id=Uuid(b"f" * 16))
    assert told(made, empty_group(), {("t", 0): own}).partitions["t", 0].distance is not None
    lag = told(made, empty_group(), {("t", 0): former})
    assert lag.partitions["t", 0] == PartitionLag(10, None, None, None, False, None, True)
    assert (lag.records, lag.distance, lag.behind_ms) == (0, 0, 0)


def test_leaders_count_and_the_distance_is_a_field_of_its_own() -> None:
    lag = told(Counting(partitions=4), empty_group(), {("t", 0): 10, ("t", 3): END, ("gone", 0): 5})
    assert lag.partitions == {
        ("gone", 0): PartitionLag(5, None, None, None, False, None, True),
        ("t", 0): PartitionLag(10, END, 40, 20, False, 60_000, True),
        ("t", 3): PartitionLag(END, END, 0, 0, False, 0, True),
    }
    assert (lag.records, lag.distance, lag.behind_ms, lag.is_estimate) == (20, 40, 60_000, False)


def test_a_leader_that_has_moved_is_found() -> None:
    cluster = Counting()
    moved = CountedRecords(index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = CountRecordsResponse(topics=(CountRecordsTopicResponse(name="t", partitions=(moved,)),))
    cluster.fault(CountRecordsRequest, lambda _: answer)
    assert told(cluster, empty_group(), {("t", 0): 40}).records == 5


def test_a_kafka_tells_the_distance_and_says_so() -> None:
    cluster = kafka()
    cluster.topics["t"][0].end = 70
    lag = told(cluster, empty_group(), {("t", 0): 45, ("t", 1): 0})
    assert lag.partitions == {
        ("t", 0): PartitionLag(45, 70, 25, None, False, None, True),
        ("t", 1): PartitionLag(0, 0, 0, None, False, 0, True),
    }
    assert (lag.records, lag.distance, lag.behind_ms) == (None, 25, None)


def test_counts_alone_are_refused_by_name() -> None:
    async def ask() -> None:
        admin = AsyncAdmin(kafka(), clock=TestClock(), rng=random.Random(1), bootstrap_servers="b1")  # type: ignore[arg-type]
        try:
            await admin.count_records({("t", 0): 0})
        finally:
            await admin.close()

    with pytest.raises(NoProtocol, match="CountRecords"):
        virtual_time.run(ask())


def test_what_no_member_reads_is_left_out_of_the_sums() -> None:
    reads = member(write_assignment({"t": (0,)}))
    lag = told(Counting(), empty_group(reads, state="Stable"), {("t", 0): 10, ("former", 0): 0})
    assert [one.is_read for one in lag.partitions.values()] == [False, True] and lag.records == 20


@pytest.mark.parametrize(
    ("description", "want"),
    [
        (empty_group(), None),
        (empty_group(member(b""), state="PreparingRebalance"), None),
        (empty_group(member(write_assignment({"t": (0,), "u": (1,)})), state="Stable"), {"t", "u"}),
    ],
)
def test_what_members_read(description: GroupDescription, want: set[str] | None) -> None:
    assert read_topics(description) == want


def test_a_member_of_the_consumer_protocol_reads_what_it_subscribes_to() -> None:
    assigned = AssignedTopic(topic_id=bytes(16), topic_name="t", partitions=(0,))
    one = DescribedConsumerMember(
        member_id="m",
        member_epoch=1,
        client_id="c",
        client_host="/h",
        assignment=(assigned,),
        subscribed_topic_names=("u",),
    )
    group = DescribedConsumerGroup(
        group_id="g", group_epoch=1, assignment_epoch=1, assignor_name="range", members=(one,)
    )
    assert read_topics(GroupDescription(1, group)) == {"t", "u"}
