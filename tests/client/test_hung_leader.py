"""Clients of a leader that answers nothing: they find the next leader by another node, long before calls time out."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from fake_cluster import FakeCluster, TestClock
from virtual_time import run

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.producer import AsyncProducer
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.records import Record, encode_batch, headers

PAUSES = {"retry_backoff_ms": 2, "retry_backoff_max_ms": 10}


def make_producer(cluster: FakeCluster, **options: Any) -> AsyncProducer:
    options = {"bootstrap_servers": "b1,b2", **PAUSES, **options}
    return AsyncProducer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


def make_consumer(cluster: FakeCluster, **options: Any) -> AsyncConsumer:
    options = {"bootstrap_servers": "b1", "fetch_max_wait_ms": 10, **PAUSES, **options}
    return AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


def numbers_at(cluster: FakeCluster, partition: int = 0) -> list[tuple[int, int]]:
    """Producer epoch and base sequence of each stored batch."""
    batches = cluster.topics["t"][partition].batches
    return [(header.producer_epoch, header.base_sequence) for _, _, data in batches for header in headers(data)]


def test_a_hung_leader_delays_the_next_acknowledgement_by_seconds_not_by_a_minute() -> None:
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        async with make_producer(cluster, batch_size=120) as producer:
            await (await producer.send("t", "0"))
            cluster.hung.add(1)
            waiting = [await producer.send("t", f"{number:050}") for number in range(1, 8)]
            await asyncio.sleep(0.05)
            cluster.move("t", 0, 2)
            begun_s = asyncio.get_running_loop().time()
            found = [await delivery for delivery in waiting]
            assert asyncio.get_running_loop().time() - begun_s < 5
            assert [metadata.offset for metadata in found] == list(range(1, 8))
        assert producer.stats.duplicates_possible == 0 and producer.stats.unknown_outcomes > 0

    run(scenario())
    assert [int(value or b"") for value in cluster.values("t", 0)] == list(range(8))
    assert numbers_at(cluster) == [(0, sequence) for sequence in range(8)]


def test_an_append_of_the_hung_leader_is_recognized_at_the_next_one() -> None:
    """The request was carried out before the leader hung. The retry has its numbers, so nothing is stored twice."""
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        async with make_producer(cluster) as producer:
            await (await producer.send("t", "0"))
            never = asyncio.Event()
            carried_out = cluster._ProduceRequest

            async def hang(node: int, request: ProduceRequest) -> Any:
                answer = await carried_out(node, request)
                if node == 1:
                    await never.wait()
                return answer

            cluster._ProduceRequest = hang  # type: ignore[method-assign]
            cluster.hung.discard(1)
            delivery = await producer.send("t", "1")
            await asyncio.sleep(0.05)
            cluster.hung.add(1)
            cluster.move("t", 0, 3)
            assert (await delivery).offset == 1

    run(scenario())
    assert cluster.values("t", 0) == [b"0", b"1"]


def test_a_slow_leader_that_still_leads_is_waited_for() -> None:
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        async with make_producer(cluster) as producer:
            await (await producer.send("t", "0"))
            cluster.gate = asyncio.Event()
            delivery = await producer.send("t", "1")
            await asyncio.sleep(2.5)
            cluster.gate.set()
            assert (await delivery).offset == 1
        assert producer.stats.unknown_outcomes == 0

    run(scenario())
    assert sum(isinstance(request, ProduceRequest) for _, request in cluster.requests) == 2


def test_partitions_that_stay_with_a_silent_node_keep_their_request() -> None:
    cluster = FakeCluster(partitions=2, brokers=2)
    cluster.move("t", 1, 1)

    async def scenario() -> None:
        async with make_producer(cluster) as producer:
            for partition in (0, 1):
                await (await producer.send("t", "first", partition=partition))
            cluster.gate = asyncio.Event()
            stays, moves = [await producer.send("t", "then", partition=partition) for partition in (0, 1)]
            await asyncio.sleep(0.05)
            old_gate, cluster.gate = cluster.gate, None
            cluster.move("t", 1, 2)
            assert (await moves).offset == 1
            old_gate.set()
            assert (await stays).offset == 1
        assert producer.stats.unknown_outcomes == 1

    run(scenario())


def test_metadata_are_asked_of_the_next_node_after_a_second() -> None:
    cluster = FakeCluster(partitions=1)
    cluster.hung.add(1)
    cluster.topics["t"][0].leader = 2

    async def scenario() -> None:
        begun_s = asyncio.get_running_loop().time()
        async with make_producer(cluster) as producer:
            await (await producer.send("t", "0"))
            assert asyncio.get_running_loop().time() - begun_s < 4

    run(scenario())


def test_a_consumer_leaves_a_hung_leader() -> None:
    cluster = FakeCluster(partitions=1)
    log = cluster.topics["t"][0]
    for value in (b"0", b"1"):
        log.append(encode_batch([Record(offset=0, timestamp_ms=5, key=None, value=value)]))

    async def scenario() -> None:
        async with make_consumer(cluster) as consumer:
            await consumer.assign_topic("t")
            assert [record.value for record in await consumer.poll(timeout_ms=2_000)] == [b"0", b"1"]
            cluster.hung.add(1)
            await asyncio.sleep(0.1)
            cluster.move("t", 0, 2)
            log.append(encode_batch([Record(offset=0, timestamp_ms=5, key=None, value=b"2")]))
            assert [record.value for record in await consumer.poll(timeout_ms=5_000)] == [b"2"]

    run(scenario())


@pytest.mark.parametrize("max_age_ms", [200, 0])
def test_a_running_producer_learns_of_added_partitions(max_age_ms: int) -> None:
    cluster = FakeCluster(partitions=1)

    async def scenario() -> None:
        async with make_producer(cluster, metadata_max_age_ms=max_age_ms) as producer:
            await (await producer.send("t", "0"))
            cluster.topics["t"].append(type(cluster.topics["t"][0])(leader=2))
            await asyncio.sleep(0.5)
            assert (await (await producer.send("t", "1", partition=1))).partition == 1

    run(scenario())
    refreshes = [request for _, request in cluster.requests if isinstance(request, MetadataRequest)]
    assert len(refreshes) <= 10 and not any(request.allow_auto_topic_creation for request in refreshes[1:])
