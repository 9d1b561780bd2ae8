"""A topic is made anew while a broker is cut off: a position belongs to one life, and another one is told by name."""

from __future__ import annotations

import asyncio
import copy
import random
from typing import Any

import pytest
from fake_cluster import TOPIC_ID, FakeCluster, FakeLog, TestClock
from virtual_time import run

from quorumlog.client.cluster.metadata_cache import TopicLife
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import TopicReplaced
from quorumlog.client.producer import AsyncProducer
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest
from quorumlog.messages.produce import ProduceRequest
from quorumlog.records import Record, encode_batch

NEW_ID = b"n" * 16
FAST = {"retry_backoff_ms": 2, "retry_backoff_max_ms": 5}


def write(cluster: FakeCluster, life: bytes, values: range) -> None:
    records = [Record(offset=i, timestamp_ms=5, key=None, value=b"%s-%d" % (life, v)) for i, v in enumerate(values)]
    cluster.topics["t"][0].append(encode_batch(records))


def made_anew(*, metadata_offset: int, behind: int = 3) -> FakeCluster:
    """Broker 3, which leads the former topic with 35 records, knows that one only. The new one has 81, led by 1."""
    cluster = FakeCluster(partitions=1)
    cluster.metadata_offset = metadata_offset
    cluster.move("t", 0, behind)
    write(cluster, b"old", range(35))
    former = FakeCluster(partitions=1)
    former.metadata_offset = metadata_offset
    former.topics, former.requests = copy.deepcopy(cluster.topics), cluster.requests
    cluster.make_anew("t", NEW_ID, 1)
    write(cluster, b"new", range(81))
    cluster.behind[behind] = former
    return cluster


def make(cluster: FakeCluster, **options: Any) -> AsyncConsumer:
    options = {"bootstrap_servers": "b1", "fetch_max_wait_ms": 10, **FAST, **options}
    return AsyncConsumer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


async def polled(consumer: AsyncConsumer, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        found += [record.value for record in await consumer.poll()]
    return found


def ask_broker_3(consumer: AsyncConsumer) -> None:
    """As if it were its turn."""
    consumer._link._next = 2


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
@pytest.mark.parametrize("metadata_offset", [100, -1], ids=["metadata say how far they reach", "they do not"])
def test_a_broker_that_is_behind_does_not_move_a_reader(reset: str, metadata_offset: int) -> None:
    cluster = made_anew(metadata_offset=metadata_offset)

    async def scenario() -> None:
        async with make(cluster, auto_offset_reset=reset) as consumer:
            if metadata_offset < 0:
                consumer._link.cache.learn("t", TopicLife(TOPIC_ID))  # it was there while there was the former topic
            await consumer.assign([("t", 0, 0)])
            assert len(await polled(consumer, 81)) == 81
            for _ in range(3):
                ask_broker_3(consumer)
                await consumer._link.refresh(["t"])
                assert await consumer.poll(timeout_ms=20) == []
            write(cluster, b"new", range(81, 85))
            assert await polled(consumer, 4) == [b"new-%d" % value for value in range(81, 85)]
        assert not any(node == 3 and isinstance(request, FetchRequest) for node, request in cluster.requests)

    run(scenario())


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_another_life_is_told_once_by_name_and_read_from_the_reset(reset: str) -> None:
    cluster = FakeCluster(partitions=1)
    write(cluster, b"old", range(35))

    async def scenario() -> None:
        async with make(cluster, auto_offset_reset=reset) as consumer:
            await consumer.assign([("t", 0, 0)])
            assert len(await polled(consumer, 35)) == 35
            cluster.make_anew("t", NEW_ID, 1)
            write(cluster, b"new", range(81))
            with pytest.raises(TopicReplaced, match="topic 't' was deleted and made again") as told:
                await polled(consumer, 1)
            assert (told.value.topic, told.value.topic_id, told.value.new_id) == ("t", TOPIC_ID, NEW_ID)
            if reset == "latest":
                assert await consumer.poll(timeout_ms=50) == [] and await consumer.position("t", 0) == 81
                write(cluster, b"new", range(81, 82))
            else:
                assert await polled(consumer, 81) == [b"new-%d" % value for value in range(81)]
            assert await consumer.poll(timeout_ms=20) == [] or reset == "latest"

    run(scenario())


@pytest.mark.parametrize("options", [{"auto_offset_reset": "none"}, {}], ids=["no reset", "a stop"])
def test_without_a_reset_nothing_is_read_until_the_application_says_where(options: dict[str, Any]) -> None:
    cluster = FakeCluster(partitions=1)
    write(cluster, b"old", range(35))

    async def scenario() -> None:
        async with make(cluster, **options) as consumer:
            await consumer.assign([("t", 0, 30)], stop=None if options else 50)
            await polled(consumer, 5)
            cluster.make_anew("t", NEW_ID, 1)
            write(cluster, b"new", range(81))
            for _ in range(3):
                with pytest.raises(TopicReplaced):
                    await polled(consumer, 1)
            await consumer.seek("t", 0, 40)
            assert (await polled(consumer, 1))[0] == b"new-40"

    run(scenario())


@pytest.mark.parametrize("reset", ["earliest", "none"])
def test_a_busy_topic_does_not_keep_the_error_back(reset: str) -> None:
    cluster = FakeCluster(partitions=1)
    cluster.topics["busy"], cluster.ids["busy"] = [FakeLog(leader=2)], b"b" * 16
    write(cluster, b"old", range(35))

    record = Record(offset=0, timestamp_ms=5, key=None, value=b"busy")
    for _ in range(60):
        cluster.topics["busy"][0].append(encode_batch([record]))

    async def scenario() -> None:
        async with make(cluster, auto_offset_reset=reset, max_partition_fetch_bytes=1) as consumer:
            await consumer.assign([("t", 0, 35), ("busy", 0, 0)])
            await polled(consumer, 1)
            cluster.make_anew("t", NEW_ID, 1)
            await consumer._link.refresh(["t"])
            found: list[int] = []
            for _ in range(30):
                await asyncio.sleep(0.02)  # so that there is always a record ahead
                try:
                    found.append(len(await consumer.poll(1)))
                except TopicReplaced:
                    found.append(-1)
            assert found.count(-1) == 1 and found.count(1) == 29

    run(scenario())


def test_a_read_that_has_reached_its_stop_ends_well() -> None:
    cluster = FakeCluster(partitions=2)
    write(cluster, b"old", range(35))

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 0), ("t", 1, 0)], stop="latest")
            await polled(consumer, 35)
            cluster.make_anew("t", NEW_ID, 2)
            await consumer._link.refresh(["t"])
            assert await consumer.poll(timeout_ms=20) == [] and consumer.finished
            with pytest.raises(TopicReplaced):
                await consumer.seek("t", 1, 0)
            assert await consumer.poll(timeout_ms=20) == [] and consumer.finished

    run(scenario())


def test_a_seek_by_number_means_the_topic_that_was_read() -> None:
    cluster = FakeCluster(partitions=1)
    write(cluster, b"old", range(35))

    async def scenario() -> None:
        async with make(cluster) as consumer:
            await consumer.assign([("t", 0, 0)])
            await polled(consumer, 35)
            cluster.make_anew("t", NEW_ID, 1)
            write(cluster, b"new", range(81))
            with pytest.raises(TopicReplaced):
                await consumer.seek("t", 0, 20)
            await consumer.seek("t", 0, 20)
            assert (await polled(consumer, 1))[0] == b"new-20"

    run(scenario())


def test_an_assignment_may_name_the_life_that_its_offsets_belong_to() -> None:
    """As a Spark task does, whose plan another process has made."""
    cluster = made_anew(metadata_offset=100)
    life = TopicLife(NEW_ID, cluster.metadata_offset)

    async def scenario() -> None:
        async with make(cluster, bootstrap_servers="b3,b1", auto_offset_reset="none") as consumer:
            await consumer.assign([("t", 0, 20)], stop=81, lives={"t": life})
            assert await polled(consumer, 61) == [b"new-%d" % value for value in range(20, 81)]
        async with make(cluster, auto_offset_reset="none") as consumer:
            await consumer.assign([("t", 0, 20)], stop=81, lives={"t": TopicLife(TOPIC_ID, 100)})
            with pytest.raises(TopicReplaced):
                await polled(consumer, 1)

    run(scenario())


def test_a_producer_does_not_go_back_to_a_former_life() -> None:
    cluster = made_anew(metadata_offset=100)

    async def scenario() -> None:
        options: dict[str, Any] = {"bootstrap_servers": "b1", **FAST}
        producer = AsyncProducer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]
        async with producer:
            first = await (await producer.send("t", b"new-81", partition=0))
            producer._link._next = 2
            await producer._link.refresh(["t"])
            second = await (await producer.send("t", b"new-82", partition=0))
            assert (first.offset, second.offset) == (81, 82)
        assert not any(node == 3 and isinstance(request, ProduceRequest) for node, request in cluster.requests)

    run(scenario())


def test_a_producer_that_knows_a_former_life_is_refused_and_goes_on() -> None:
    cluster = made_anew(metadata_offset=100)
    former = cluster.behind.pop(3)

    async def scenario() -> None:
        old = await former.answer(3, MetadataRequest(all_topics=True))
        cluster.fault(MetadataRequest, lambda _: old)
        options: dict[str, Any] = {"bootstrap_servers": "b1", **FAST}
        producer = AsyncProducer(cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]
        async with producer:
            assert (await (await producer.send("t", b"new-81", partition=0))).offset == 81
        asked = [request.topics[0].topic_id for _, request in cluster.requests if isinstance(request, ProduceRequest)]
        assert asked[0] == TOPIC_ID and asked[-1] == NEW_ID

    run(scenario())


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_a_client_that_began_at_a_broker_that_is_behind_asks_another_one(reset: str) -> None:
    """Where it is sent by the former metadata, nobody knows the former topic any more."""
    cluster = made_anew(metadata_offset=100)
    cluster.behind[3].move("t", 0, 2)

    async def scenario() -> None:
        options: dict[str, Any] = {"bootstrap_servers": "b3,b1", **FAST}
        async with make(cluster, **options, auto_offset_reset=reset) as consumer:
            await consumer.assign([("t", 0, 20)])
            with pytest.raises(TopicReplaced):
                await polled(consumer, 1)
        async with make(cluster, **options) as consumer:
            await consumer.assign([("t", 0, "earliest")], stop="latest")
            assert len(await polled(consumer, 81)) == 81
        edges: dict[str, Any] = {"clock": TestClock(), "rng": random.Random(1)}
        async with AsyncProducer(cluster, **edges, **options) as producer:  # type: ignore[arg-type]
            assert (await (await producer.send("t", b"new-81", partition=0))).offset == 81

    run(scenario())


def test_a_leader_that_has_not_heard_of_its_topic_answers_nothing_of_the_former_one() -> None:
    """It led the former topic, and still does as far as it knows; offsets, records and writes there mean nothing."""
    cluster = made_anew(metadata_offset=100)
    cluster.move("t", 0, 3)

    async def heal() -> None:
        await asyncio.sleep(0.1)
        cluster.behind.clear()

    async def scenario() -> None:
        healing = asyncio.create_task(heal())
        edges: dict[str, Any] = {"clock": TestClock(), "rng": random.Random(1)}
        options: dict[str, Any] = {"bootstrap_servers": "b1", **FAST}
        async with make(cluster) as consumer, make(cluster) as late:
            await consumer.assign([("t", 0, 20)])
            async with AsyncProducer(cluster, **edges, **options) as producer:  # type: ignore[arg-type]
                sent = await producer.send("t", b"new-81", partition=0)
                await late.assign([("t", 0, "latest")])
                assert healing.done() and await late.position("t", 0) in (81, 82)
                assert (await sent).offset == 81
            assert (await polled(consumer, 62))[:2] == [b"new-20", b"new-21"]

    run(scenario())
