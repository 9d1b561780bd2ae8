"""aiokafka: producers and admin clients with their defaults, consumers by assignment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import client_matrix as matrix
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from client_matrix import Cell, Client, Place

TIMEOUT_S = 15.0
START_MS = time.time_ns() // 1_000_000 - 3_600_000  # what is a week old may be deleted while a cell reads it
TOPIC_ALREADY_EXISTS = 36


def cell(work: Callable[[Place], Awaitable[None]]) -> Cell:
    """Runs in its own event loop, with a time limit."""

    async def within(place: Place) -> None:
        async with asyncio.timeout(2 * TIMEOUT_S):
            await work(place)

    return lambda place: asyncio.run(within(place))


@asynccontextmanager
async def admin(place: Place) -> AsyncIterator[Any]:
    made = AIOKafkaAdminClient(bootstrap_servers=place.servers)
    await made.start()
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def producer(place: Place, **settings: Any) -> AsyncIterator[Any]:
    made = AIOKafkaProducer(bootstrap_servers=place.servers, **settings)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def consumer(place: Place) -> AsyncIterator[Any]:
    made = AIOKafkaConsumer(bootstrap_servers=place.servers, enable_auto_commit=False, auto_offset_reset="earliest")
    await made.start()
    made.assign([TopicPartition(place.topic, 0)])
    try:
        yield made
    finally:
        await made.stop()


async def produce(place: Place, values: list[bytes], **settings: Any) -> list[int]:
    async with producer(place, **settings) as made:
        sent = [await made.send(place.topic, value) for value in values]
        return [(await future).offset for future in sent]


async def read(made: Any, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        for records in (await made.getmany(timeout_ms=500, max_records=count - len(found))).values():
            found += records
    assert len(found) == count
    return found


async def metadata(place: Place) -> None:
    async with admin(place) as client:
        assert len((await client.describe_cluster())["brokers"]) == 3
        assert place.topic in await client.list_topics()


async def create_topic(place: Place) -> None:
    topic = NewTopic(f"{place.topic}-made", 2, 3)
    async with admin(place) as client:
        await client.create_topics([topic])
        again = await client.create_topics([topic])
        assert again.topic_errors[0][1] == TOPIC_ALREADY_EXISTS
        await client.delete_topics([topic.name])


async def add_partitions(place: Place) -> None:
    async with admin(place) as client:
        await client.create_partitions({place.topic: NewPartitions(3)})
        deadline = time.monotonic() + TIMEOUT_S
        while len((await client.describe_topics([place.topic]))[0]["partitions"]) != 3:
            assert time.monotonic() < deadline


async def describe_configs(place: Place) -> None:
    async with admin(place) as client:
        found = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, place.topic)])
    assert "min.insync.replicas" in str(found)


async def replace_configs(place: Place) -> None:
    """The second request removes the setting that it does not name."""
    async with admin(place) as client:
        for key, value in (("retention.ms", "3600007"), ("segment.ms", "3600009")):
            await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, place.topic, {key: value})])
            await _until_told(client, place, value)


async def _until_told(client: Any, place: Place, value: str) -> None:
    """Waits until only this one of the two values is shown; the asked broker may lag."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = str(await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, place.topic)]))
        if [told for told in ("3600007", "3600009") if told in found] == [value]:
            return
        assert time.monotonic() < deadline


async def produce_defaults(place: Place) -> None:
    assert await produce(place, [b"one", b"two"]) == [0, 1]


async def idempotent(place: Place) -> None:
    assert await produce(place, [b"one", b"two"], enable_idempotence=True) == [0, 1]


async def no_acks(place: Place) -> None:
    await produce_unanswered(place, b"value")
    async with consumer(place) as made:
        assert (await read(made, 1))[0].value == b"value"


async def produce_unanswered(place: Place, value: bytes) -> None:
    async with producer(place, acks=0) as made:
        await made.send_and_wait(place.topic, value)


def compressed(codec: str) -> Cell:
    async def work(place: Place) -> None:
        values = [b"value %d" % number * 20 for number in range(100)]
        await produce(place, values, compression_type=codec, linger_ms=50)
        async with consumer(place) as made:
            assert [record.value for record in await read(made, len(values))] == values

    return cell(work)


async def whole_record(place: Place) -> None:
    headers = [("first", b"1"), ("empty", b"")]
    async with producer(place) as made:
        await made.send_and_wait(place.topic, b"value", b"key", headers=headers, timestamp_ms=START_MS)
        await made.send_and_wait(place.topic, None, b"key")
    async with consumer(place) as made:
        first, second = await read(made, 2)
    assert (first.key, first.value, list(first.headers), first.timestamp) == (b"key", b"value", headers, START_MS)
    assert second.value is None


async def large(place: Place) -> None:
    value = bytes(900_000)
    await produce(place, [value])
    async with consumer(place) as made:
        assert (await read(made, 1))[0].value == value


async def consume(place: Place) -> None:
    values = [b"%d" % number for number in range(100)]
    await produce(place, values)
    async with consumer(place) as made:
        assert [record.value for record in await read(made, 100)] == values


async def seek(place: Place) -> None:
    await produce(place, [b"0", b"1", b"2"])
    async with consumer(place) as made:
        await read(made, 3)
        made.seek(TopicPartition(place.topic, 0), 1)
        assert (await read(made, 1))[0].value == b"1"


async def ends(place: Place) -> None:
    await produce(place, [b"0", b"1"], acks="all")  # with acks=1 the high watermark could lag behind the append
    partition = TopicPartition(place.topic, 0)
    async with consumer(place) as made:
        assert await made.beginning_offsets([partition]) == {partition: 0}
        assert await made.end_offsets([partition]) == {partition: 2}


async def by_time(place: Place) -> None:
    async with producer(place, acks="all") as made:
        for number in range(3):
            await made.send_and_wait(place.topic, b"value", timestamp_ms=START_MS + 1_000 * number)
    partition = TopicPartition(place.topic, 0)
    async with consumer(place) as made:
        assert (await made.offsets_for_times({partition: START_MS + 500}))[partition].offset == 1


async def delete_records(place: Place) -> None:
    await produce(place, [b"0", b"1", b"2"], acks="all")  # only records on all replicas can be deleted
    partition = TopicPartition(place.topic, 0)
    async with admin(place) as client:
        assert await client.delete_records({partition: RecordsToDelete(2)}) == {partition: 2}


@asynccontextmanager
async def member(place: Place) -> AsyncIterator[Any]:
    made = AIOKafkaConsumer(
        place.topic, bootstrap_servers=place.servers, group_id=place.topic, auto_offset_reset="earliest"
    )
    await made.start()
    try:
        yield made
    finally:
        await made.stop()  # commits, and leaves the group


async def group(place: Place) -> None:
    await produce(place, [b"0", b"1"])
    async with member(place) as made:
        assert [record.value for record in await read(made, 2)] == [b"0", b"1"]
    await produce(place, [b"2"])
    async with member(place) as made:
        assert [record.value for record in await read(made, 1)] == [b"2"]
        await made.commit()
        assert await made.committed(TopicPartition(place.topic, 0)) == 3


async def list_groups(place: Place) -> None:
    """It cannot delete groups."""
    await produce(place, [b"0"])
    async with admin(place) as client, member(place) as made:
        await read(made, 1)
        assert (place.topic, "consumer") in await client.list_consumer_groups()
        assert "Stable" in str(await client.describe_consumer_groups([place.topic]))


AIOKAFKA = Client(
    "aiokafka",
    lambda: aiokafka.__version__,
    lambda: "",
    {
        matrix.METADATA: cell(metadata),
        matrix.CREATE_TOPIC: cell(create_topic),
        matrix.ADD_PARTITIONS: cell(add_partitions),
        matrix.DESCRIBE_CONFIGS: cell(describe_configs),
        matrix.REPLACE_CONFIGS: cell(replace_configs),
        matrix.PRODUCE: cell(produce_defaults),
        matrix.IDEMPOTENT: cell(idempotent),
        matrix.NO_ACKS: cell(no_acks),
        matrix.GZIP: compressed("gzip"),
        matrix.SNAPPY: compressed("snappy"),
        matrix.LZ4: compressed("lz4"),
        matrix.ZSTD: compressed("zstd"),
        matrix.WHOLE_RECORD: cell(whole_record),
        matrix.LARGE: cell(large),
        matrix.CONSUME: cell(consume),
        matrix.SEEK: cell(seek),
        matrix.ENDS: cell(ends),
        matrix.BY_TIME: cell(by_time),
        matrix.DELETE_RECORDS: cell(delete_records),
        matrix.GROUP: cell(group),
        matrix.LIST_GROUPS: cell(list_groups),
    },
)
