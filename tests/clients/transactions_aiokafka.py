"""Transactions of aiokafka, which calls the oldest versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import client_matrix as matrix
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import NewTopic
from aiokafka.errors import ProducerFenced
from cells_aiokafka import admin, cell, produce, producer, read
from client_matrix import Place


@asynccontextmanager
async def reader(place: Place, isolation_level: str = "read_committed") -> AsyncIterator[Any]:
    made = AIOKafkaConsumer(
        bootstrap_servers=place.servers, enable_auto_commit=False, auto_offset_reset="earliest",
        isolation_level=isolation_level,
    )  # fmt: skip
    await made.start()
    made.assign([TopicPartition(place.topic, 0)])
    try:
        yield made
    finally:
        await made.stop()


async def values(made: Any, count: int) -> list[bytes]:
    return [record.value for record in await read(made, count)]


async def transaction(place: Place) -> None:
    async with producer(place, transactional_id=place.topic) as made, reader(place) as committed:
        for value, commits in ((b"a", True), (b"b", False), (b"c", True), (b"d", False), (b"e", True)):
            await made.begin_transaction()
            await made.send_and_wait(place.topic, value)
            await (made.commit_transaction() if commits else made.abort_transaction())
        assert await values(committed, 3) == [b"a", b"c", b"e"]
        await made.begin_transaction()
        await made.send_and_wait(place.topic, b"f")
        await produce(place, [b"plain"])
        assert await committed.getmany(timeout_ms=1_000) == {}, "it is open, and what follows waits"
        await made.commit_transaction()
        assert await values(committed, 2) == [b"f", b"plain"]
    async with reader(place, "read_uncommitted") as everything:
        assert await values(everything, 7) == [b"a", b"b", b"c", b"d", b"e", b"f", b"plain"]


async def transform(place: Place) -> None:
    """The first try is aborted: neither its records nor its offsets are seen."""
    out, partition = Place(place.servers, f"{place.topic}-out"), TopicPartition(place.topic, 0)
    async with admin(place) as client:
        await client.create_topics([NewTopic(out.topic, 1, 3)])
    await produce(place, [b"1", b"2", b"3"])
    source = AIOKafkaConsumer(
        place.topic, bootstrap_servers=place.servers, group_id=place.topic, auto_offset_reset="earliest",
        enable_auto_commit=False,
    )  # fmt: skip
    await source.start()
    try:
        async with producer(place, transactional_id=place.topic) as made:
            for commits in (False, True):
                found = await read(source, 3)
                await made.begin_transaction()
                for record in found:
                    await made.send(out.topic, record.value * 2)
                await made.send_offsets_to_transaction({partition: await source.position(partition)}, place.topic)
                if commits:
                    await made.commit_transaction()
                else:
                    await made.abort_transaction()
                    assert await source.committed(partition) is None
                    source.seek(partition, 0)
            for _ in range(50):  # it cannot ask for stable offsets, and the answer to a commit comes before its markers
                if await source.committed(partition) == 3:
                    break
                await asyncio.sleep(0.1)
            assert await source.committed(partition) == 3
    finally:
        await source.stop()
    async with reader(out) as sink:
        assert await values(sink, 3) == [b"11", b"22", b"33"]
        assert await sink.getmany(timeout_ms=1_000) == {}
    async with admin(place) as client:
        await client.delete_topics([out.topic])


async def fencing(place: Place) -> None:
    """The second producer of an id ends the transaction of the first, which cannot go on."""
    async with producer(place, transactional_id=place.topic) as old:
        await old.begin_transaction()
        await old.send_and_wait(place.topic, b"of the old")
        async with producer(place, transactional_id=place.topic) as new:
            with pytest.raises(ProducerFenced):
                await old.commit_transaction()
            await new.begin_transaction()
            await new.send_and_wait(place.topic, b"of the new")
            await new.commit_transaction()
    async with reader(place) as committed:
        assert await values(committed, 1) == [b"of the new"]


CELLS = {matrix.TRANSACTION: cell(transaction), matrix.TRANSFORM: cell(transform), matrix.FENCING: cell(fencing)}
