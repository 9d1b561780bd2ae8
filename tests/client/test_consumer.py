"""The consumer against brokers in memory: every record once and in order, over leader changes and lost offsets."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from fake_cluster import TOPIC_ID, FakeCluster, TestClock
from virtual_time import run

from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import ConfigError, NoProtocol, RequestFailed, Unavailable
from quorumlog.client.fetching.loop import TruncatedLog
from quorumlog.client.fetching.position import Position
from quorumlog.client.options import ConsumerOptions
from quorumlog.errors import ErrorCode
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import (
    FetchChunkRequest,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopicResponse,
)
from quorumlog.records import Record, encode_batch
from quorumlog.rpc.transport import NotDelivered, OutcomeUnknown
from tests.rules import rule

DEFAULT_PREFETCH = ConsumerOptions().prefetch_chunks


def filled(records: int = 100, partitions: int = 2, per_batch: int = 7) -> FakeCluster:
    cluster = FakeCluster(partitions=partitions)
    for index, log in enumerate(cluster.topics["t"]):
        for start in range(0, records, per_batch):
            values = range(start, min(start + per_batch, records))
            log.append(
                encode_batch(
                    [
                        Record(offset=i, timestamp_ms=5, key=None, value=b"%d-%d" % (index, v))
                        for i, v in enumerate(values)
                    ]
                )
            )
    return cluster


def make(cluster: FakeCluster, **options: Any) -> AsyncConsumer:
    options = {
        "bootstrap_servers": "b2",
        "retry_backoff_ms": 2,
        "retry_backoff_max_ms": 5,
        "fetch_max_wait_ms": 10,
        **options,
    }
    return AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


async def read_all(consumer: AsyncConsumer) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    async for record in consumer:
        assert record.value == b"%d-%d" % (record.partition, record.offset)
        found.setdefault(record.partition, []).append(record.offset)
    return found


def asked_bytes(cluster: FakeCluster) -> list[int]:
    fetches = [request for _, request in cluster.requests if isinstance(request, FetchRequest)]
    return [part.max_bytes for fetch in fetches for topic in fetch.topics for part in topic.partitions]


@pytest.mark.parametrize(("least", "most"), [(1, 20 * 128), (5_000, 5_000)])
def test_a_range_that_ends_soon_asks_for_few_bytes(least: int, most: int) -> None:
    """By calls, which do not tell the broker where it ends."""
    cluster = filled(partitions=1)

    async def scenario() -> None:
        async with make(cluster, fetch_min_bytes=least) as consumer:
            await consumer.assign([("t", 0, 0)], stop=20)
            assert [record.offset async for record in consumer] == list(range(20))

    run(scenario())
    assert asked_bytes(cluster) == [most]


def test_a_range_of_large_records_is_read_in_few_fetches() -> None:
    cluster = FakeCluster(partitions=1)
    for _ in range(300):
        cluster.topics["t"][0].append(encode_batch([Record(offset=0, timestamp_ms=5, key=None, value=bytes(2_000))]))

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 0)], stop=100)
            assert [record.offset async for record in consumer] == list(range(100))

    run(scenario())
    assert len(asked_bytes(cluster)) <= 3 and max(asked_bytes(cluster)) < 250_000


def test_what_an_answer_had_no_room_for_is_asked_for_whole() -> None:
    """Kafka gives a batch that is larger than what is asked for to the first partition of a fetch only. The others
    would wait for all that the first one has."""
    most = 1 << 20
    position = Position("t", 0, 5, stop_offset=10)
    position.received(b"", 5, check_crcs=True)  # at the end of what can be read
    assert position.wanted_bytes(1, most) == 5 * 128
    position.received(b"", 10, check_crcs=True)
    assert position.wanted_bytes(1, most) == most
    record = Record(offset=5, timestamp_ms=5, key=None, value=bytes(2_000))
    data = encode_batch([record], base_offset=5)
    position.received(data, 10, check_crcs=True)
    assert position.wanted_bytes(1, most) == 4 * len(data)
    position.received(data[:100], 10, check_crcs=True)  # as brokers answer that are older than KIP-74
    assert position.wanted_bytes(1, most) == most


@pytest.mark.parametrize("fetch_bytes", [1, 500, 10**6])
def test_reads_everything_once_and_in_order_up_to_the_stop(fetch_bytes: int) -> None:
    async def scenario() -> None:
        async with make(filled(), max_partition_fetch_bytes=fetch_bytes) as consumer:
            await consumer.assign_topic("t", stop="latest")
            assert await read_all(consumer) == {0: list(range(100)), 1: list(range(100))}
            assert await consumer.poll(timeout_ms=1) == [] and consumer.lag("t", 0) == 0

    run(scenario())


def test_start_and_stop_inside_batches() -> None:
    async def scenario() -> None:
        async with make(filled()) as consumer:
            await consumer.assign([("t", 0, 10)], stop=38)
            assert await read_all(consumer) == {0: list(range(10, 38))}

    run(scenario())


@pytest.mark.parametrize("fault", [NotDelivered("refused"), OutcomeUnknown("broken")])
def test_failed_fetches_are_retried(fault: Exception) -> None:
    cluster = filled()
    cluster.fault(FetchRequest, *[lambda _: fault, lambda _: None] * 4)

    async def scenario() -> None:
        async with make(cluster, max_partition_fetch_bytes=200) as consumer:
            await consumer.assign_topic("t", stop="latest")
            assert await read_all(consumer) == {0: list(range(100)), 1: list(range(100))}

    run(scenario())


def test_a_moved_leader_is_followed() -> None:
    cluster = filled()

    async def scenario() -> None:
        async with make(cluster, max_partition_fetch_bytes=200) as consumer:
            await consumer.assign_topic("t", stop="latest")
            first = await consumer.poll()
            assert first
            cluster.move("t", 0, 3)
            found = await read_all(consumer)
            assert sum(len(offsets) for offsets in found.values()) + len(first) == 200

    run(scenario())


def test_a_lost_offset_resets_the_position_or_raises() -> None:
    cluster = filled()
    cluster.topics["t"][0].start = 50
    cluster.topics["t"][0].batches = [batch for batch in cluster.topics["t"][0].batches if batch[1] > 50]

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 3)], stop="latest")
            found = (await read_all(consumer))[0]
            assert found[-1] == 99 and found[0] <= 50
        async with make(cluster, auto_offset_reset="none") as consumer:
            await consumer.assign([("t", 0, 3)])
            with pytest.raises(RequestFailed, match="OFFSET_OUT_OF_RANGE"):
                await consumer.poll(timeout_ms=5000)

    run(scenario())


@rule("storage 6.7")
def test_a_truncated_log_raises() -> None:
    cluster = filled(partitions=1)

    def diverging(request: FetchRequest) -> FetchResponse:
        part = FetchPartitionResponse(index=0, diverging_epoch=EpochEndOffset(epoch=1, end_offset=4))
        return FetchResponse(topics=(FetchTopicResponse(topic_id=b"t" * 16, name="t", partitions=(part,)),))

    async def scenario() -> None:
        cluster.fault(FetchRequest, diverging)
        async with make(cluster, auto_offset_reset="none") as consumer:
            await consumer.assign([("t", 0, 8)])
            with pytest.raises(TruncatedLog) as truncated:
                await consumer.poll(timeout_ms=5000)
            assert truncated.value.offset == 4

    run(scenario())


def test_a_start_may_name_the_epoch_of_the_record_before_it() -> None:
    cluster = filled(partitions=1)

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 8)], epochs={("t", 0): 1})
            await consumer.poll(timeout_ms=5000)
        (first, *_) = [request for _, request in cluster.requests if isinstance(request, FetchRequest)]
        assert first.topics[0].partitions[0].last_fetched_epoch == 1

    run(scenario())


def test_prefetching_is_bounded() -> None:
    cluster = filled(records=1000, partitions=1)

    async def scenario() -> None:
        async with make(cluster, max_partition_fetch_bytes=100) as consumer:
            await consumer.assign_topic("t")
            await consumer.poll(max_records=1)
            for _ in range(50):
                await asyncio.sleep(0)
            assert sum(isinstance(request, FetchRequest) for _, request in cluster.requests) <= 4

    run(scenario())


def test_corrupt_batches_raise_and_are_not_returned() -> None:
    cluster = filled(partitions=1)
    base, end, data = cluster.topics["t"][0].batches[0]
    cluster.topics["t"][0].batches[0] = (base, end, data[:-1] + bytes([data[-1] ^ 1]))

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign_topic("t")
            with pytest.raises(RequestFailed, match="CORRUPT_MESSAGE"):
                await consumer.poll(timeout_ms=5000)

    run(scenario())


@pytest.mark.parametrize("start", ["newest", "@", "@x", -5, True])
def test_a_bad_start_is_named(start: Any) -> None:
    async def scenario() -> None:
        async with make(filled()) as consumer:
            with pytest.raises(ConfigError, match="not a start position"):
                await consumer.assign([("t", 0, start)])

    run(scenario())


def test_unknown_partition_and_unreachable_cluster() -> None:
    async def scenario() -> None:
        async with make(filled(), default_api_timeout_ms=100) as consumer:
            with pytest.raises(RequestFailed, match="UNKNOWN_TOPIC"):
                await consumer.assign([("t", 9, "latest")])
        async with make(filled(), bootstrap_servers="nobody", default_api_timeout_ms=100) as consumer:
            with pytest.raises(Unavailable, match="nobody:9092"):
                await consumer.assign([("t", 0, 0)])

    run(scenario())


def test_columns_are_the_records() -> None:
    async def scenario() -> None:
        async with make(filled(partitions=1)) as consumer:
            await consumer.assign([("t", 0, 5)], stop=95)
            offsets: list[int] = []
            while (found := await consumer.next_arrow(1000)) is not None:
                chunk, batch = found
                assert batch.column("value").to_pylist() == [b"0-%d" % o for o in batch.column("offset").to_pylist()]
                offsets += batch.column("offset").to_pylist()
                assert chunk.topic == "t"
            assert offsets == list(range(5, 95))

    run(scenario())


def test_admin_creates_once_and_lists() -> None:
    cluster = FakeCluster()

    async def scenario() -> None:
        admin = AsyncAdmin(cluster, clock=TestClock(), rng=random.Random(1), bootstrap_servers="b1")  # type: ignore[arg-type]
        async with admin:
            await admin.create_topic("new", partitions=2)
            with pytest.raises(RequestFailed) as failure:
                await admin.create_topic("new", partitions=2)
            assert failure.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
            await admin.create_topic("new", partitions=2, exist_ok=True)
            assert [topic.name for topic in await admin.list_topics()] == ["new", "t"]

    run(scenario())


def corrupted(cluster: FakeCluster, number: int) -> None:
    base, end, data = cluster.topics["t"][0].batches[number]
    cluster.topics["t"][0].batches[number] = (base, end, data[:-1] + bytes([data[-1] ^ 1]))


def test_a_corrupt_batch_is_fetched_once_and_raised_until_the_reader_goes_on() -> None:
    """The consumer fetched it 37,303 times in two seconds. What lies before it is read, as Kafka's consumer does."""
    cluster = filled(partitions=1)
    corrupted(cluster, 2)

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign_topic("t")
            assert [record.offset for record in await consumer.poll(timeout_ms=5000)] == list(range(14))
            for _ in range(3):
                with pytest.raises(RequestFailed, match="t-0 at offset 14"):
                    await consumer.poll(timeout_ms=5000)
            fetches = fetches_of(cluster)
            await asyncio.sleep(0.3)
            assert fetches_of(cluster) == fetches <= 3
            await consumer.assign([("t", 0, 21)])
            assert [record.offset for record in await consumer.poll(timeout_ms=5000)] == list(range(21, 100))

    run(scenario())


def test_other_partitions_are_read_beside_a_corrupt_one() -> None:
    cluster = filled(partitions=2)
    corrupted(cluster, 0)

    async def scenario() -> None:
        offsets: list[int] = []
        async with make(cluster, max_partition_fetch_bytes=1) as consumer:
            await consumer.assign_topic("t")
            refusals = 0
            while len(offsets) < 100:
                try:
                    offsets += [record.offset for record in await consumer.poll(timeout_ms=1000)]
                except RequestFailed:
                    refusals += 1
            assert offsets == list(range(100)) and refusals > 0

    run(scenario())


def test_a_leader_that_finds_its_records_corrupt_is_asked_with_pauses() -> None:
    cluster = filled(partitions=1)
    part = FetchPartitionResponse(index=0, error_code=ErrorCode.CORRUPT_MESSAGE)
    answer = FetchResponse(topics=(FetchTopicResponse(topic_id=TOPIC_ID, name="t", partitions=(part,)),))
    cluster.fault(FetchRequest, *[lambda _: answer] * 3)

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign_topic("t")
            with pytest.raises(RequestFailed, match="CORRUPT_MESSAGE"):
                await consumer.poll(timeout_ms=5000)

    run(scenario())


def fetches_of(cluster: FakeCluster) -> int:
    return sum(isinstance(request, FetchRequest) for _, request in cluster.requests)


def test_a_broker_without_streams_of_chunks_is_read_by_calls() -> None:
    """As Apache Kafka is, and a node of older software; it is asked for a stream once."""
    cluster = filled(partitions=1)

    async def scenario() -> list[int]:
        async with make(cluster, stream_chunks="auto", max_partition_fetch_bytes=200) as consumer:
            await consumer.assign([("t", 0, 0)], stop="latest")
            return [record.offset async for record in consumer]

    assert run(scenario()) == list(range(100))
    asked = [type(request) for _, request in cluster.requests]
    assert asked.count(FetchRequest) > 5 and asked.count(FetchChunkRequest) <= DEFAULT_PREFETCH


def test_a_reader_that_needs_a_stream_is_told_that_there_is_none() -> None:
    cluster = filled(partitions=1)

    async def scenario() -> None:
        async with make(cluster, stream_chunks="true") as consumer:
            await consumer.assign([("t", 0, 0)])
            with pytest.raises(NoProtocol, match="b1:9092: it serves no stream of chunks by gRPC"):
                await consumer.poll(timeout_ms=10_000)

    run(scenario())
    assert not [request for _, request in cluster.requests if isinstance(request, FetchRequest)]


def test_two_partitions_are_read_by_calls() -> None:
    cluster = filled()

    async def scenario() -> int:
        async with make(cluster, stream_chunks="true") as consumer:
            await consumer.assign_topic("t", stop="latest")
            return len([record async for record in consumer])

    assert run(scenario()) == 200
    assert not [request for _, request in cluster.requests if isinstance(request, FetchChunkRequest)]
