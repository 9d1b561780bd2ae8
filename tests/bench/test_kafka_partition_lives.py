"""Thousands of partitions beside Kafka: what counts as seen, which bytes move, and the rows with their goals."""

from __future__ import annotations

import asyncio

import pytest

from bench.kafka import partitions as kafka_partitions
from bench.kafka.figures import Size
from bench.kafka.partitions import (
    CREATED,
    KILLED,
    RESTARTED,
    ROWS,
    START,
    Work,
    is_led_without,
    is_whole,
    partition_rows,
)
from bench.kafka.reassignment import (
    PARTITIONS,
    RATE,
    Sent,
    between,
    is_moved,
    percentile,
    replicas,
    target,
)
from bench.kafka.table import Samples
from bench.raw import partitions as raw_partitions
from bench.raw.client import prepared
from bench.raw.partitions import (
    LIST_OFFSETS_VERSION,
    PRODUCE_VERSION,
    Watcher,
    carried_out,
    ends_of,
    is_seen,
    one_record_each,
)
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse, PartitionMetadata, TopicMetadata
from quorumlog.messages.produce import ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopicResponse
from quorumlog.records.format.batch import headers


def partition(leader: int, isr: tuple[int, ...] = (1, 2, 3), index: int = 0) -> PartitionMetadata:
    return PartitionMetadata(index=index, leader_id=leader, replicas=(1, 2, 3), isr=isr)


def test_seen_are_only_all_partitions_that_were_asked_for() -> None:
    assert is_seen([partition(1), partition(2)], 2, is_whole)
    assert not is_seen([partition(1)], 2, is_whole), "one is not there yet"
    assert not is_seen([partition(1), partition(-1)], 2, is_whole), "one has no leader"
    assert not is_seen([partition(1), partition(1, isr=(1, 2))], 2, is_whole), "one ISR is not whole"


def test_a_live_leader_is_neither_the_killed_one_nor_none() -> None:
    assert [is_led_without(2)(partition(leader)) for leader in (1, 2, -1)] == [True, False, False]


def test_the_topics_hold_all_partitions() -> None:
    assert Work(partitions=250, per_topic=100).topics == {"many-0": 100, "many-1": 100, "many-2": 50}
    assert sum(Size().partitions.topics.values()) == 5_000


def test_each_partition_moves_from_one_broker_to_the_one_that_had_no_replica() -> None:
    for index in range(PARTITIONS):
        assert len({*replicas(index), *target(index)}) == 3
        assert len(set(replicas(index)) & set(target(index))) == 1
    assert {target(index)[0] for index in range(PARTITIONS)} == {1, 2, 3}, "every broker takes some"
    moved = PartitionMetadata(index=0, leader_id=2, replicas=target(0), isr=(2, 3))
    assert is_moved(moved)
    assert not is_moved(PartitionMetadata(index=0, leader_id=2, replicas=replicas(0), isr=(1, 2)))


def test_latencies_are_those_of_records_sent_meanwhile() -> None:
    sent = [Sent(0.5, 90.0), Sent(1.0, 2.0), Sent(1.5, 1.0), Sent(2.0, 80.0)]
    assert between(sent, 1.0, 2.0) == [1.0, 2.0]
    assert percentile([float(number) for number in range(100)], 0.99) == 99.0
    with pytest.raises(AssertionError, match="no record"):
        between(sent, 3.0, 4.0)


def test_one_request_writes_a_record_to_every_partition_of_a_leader() -> None:
    request = one_record_each([("a", 0), ("b", 3), ("a", 1)])
    assert {topic.name: [one.index for one in topic.partitions] for topic in request.topics} == {"a": [0, 1], "b": [3]}
    assert [header.count for header in headers(request.topics[0].partitions[0].records)] == [1]
    assert prepared(request, PRODUCE_VERSION)[1]
    asked = ends_of([("a", 0), ("b", 3), ("a", 1)])
    assert {topic.name: [one.index for one in topic.partitions] for topic in asked.topics} == {"a": [0, 1], "b": [3]}
    assert prepared(asked, LIST_OFFSETS_VERSION)[1]


class FakeConnection:
    """A broker that refuses the first write of partition 1, and then knows another leader."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []

    async def ask(self, request: object, _version: int) -> object:
        if isinstance(request, MetadataRequest):
            found = tuple(partition(1, index=index) for index in range(2))
            return MetadataResponse(topics=(TopicMetadata(name="a", partitions=found),))
        assert isinstance(request, ProduceRequest)
        asked = [one.index for one in request.topics[0].partitions]
        self.writes.append(asked)
        rows = tuple(
            ProducePartitionResponse(index=index, error_code=6 if index == 1 and len(self.writes) == 1 else 0)
            for index in asked
        )
        return ProduceResponse(topics=(ProduceTopicResponse(name="a", partitions=rows),))

    def close(self) -> None:
        pass


def test_a_refused_write_is_tried_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = FakeConnection()

    async def opened(_host: str, _port: int) -> FakeConnection:
        return connection

    monkeypatch.setattr(raw_partitions.Connection, "open", opened)
    asyncio.run(Watcher("localhost:1").write_to_all([1], {"a": 2}))
    assert connection.writes == [[0, 1], [1]]


def test_only_partitions_without_an_error_are_written() -> None:
    rows = (ProducePartitionResponse(index=0), ProducePartitionResponse(index=1, error_code=6))
    assert carried_out(ProduceResponse(topics=(ProduceTopicResponse(name="a", partitions=rows),))) == [("a", 0)]


def measured(name: str, seconds: float, rate: float) -> Samples:
    found = Samples(name)
    for _, unit, figure, _, _ in ROWS:
        found.add(figure, rate if unit == "MB/s" else seconds)
    return found


def test_the_goals() -> None:
    rows = {row.name: row for row in partition_rows(measured("Kafka", 10.0, 100.0), measured("ours", 4.0, 90.0))}
    assert rows["partitions created until all are led, ISRs whole"].reached is False
    assert rows["kill -9 of a broker until all have a live leader"].reached is False
    assert rows["controlled restart until back in all ISRs"].reached is True
    assert rows["reassignment"].reached is False
    assert rows["  producers' p99 meanwhile"].reached is True
    goals = {figure: goal for _, _, figure, goal, _ in ROWS}
    assert (goals[CREATED], goals[KILLED], goals[RESTARTED], goals[RATE]) == (0.3, 0.3, 0.5, 1.0)


def test_a_life_ends_with_the_phase_that_fails_and_the_next_life_leaves_it_out() -> None:
    figures, seen = Samples("ours"), list[str]()

    def fail() -> None:
        seen.append("fails")
        raise OSError("no disk")

    assert kafka_partitions._attempt(figures, (START,), lambda: seen.append("starts"))
    assert not kafka_partitions._attempt(figures, (CREATED,), fail)
    assert kafka_partitions._attempt(figures, (CREATED,), fail)
    assert seen == ["starts", "fails"]
