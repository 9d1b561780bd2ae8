"""Produce (acks=all, three replicas, durable) and consume, beside the floor of the same round.

A round is a floor's produce and read, then ours over the same transport, for each record size and each of the two
transports, every time on a new topic. Our followers always fetch over the lane, those of the gRPC floor over gRPC.
Rates count the values' bytes, which are the same for both. The floor sends batches that our codec encoded beforehand;
ours encodes them during the measurement.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.floor.client import Floor, FloorClient, LaneFloorClient
from bench.measuring.loads import Load
from bench.measuring.machine import MEGABYTE
from bench.measuring.report import Row
from bench.nodes.subject import Subject

SINGLE_RECORDS = 60_000  # most records in a round of single records
IN_FLIGHT = 5  # messages per log of the floor, as our producer has batches per partition
POLL_MS = 5_000


@dataclass(frozen=True, slots=True)
class Wire:
    """transport: the option of our clients. Goals are shares of this transport's own floor, by record size."""

    name: str
    transport: str
    lane: bool
    produce_goals: dict[int, float]
    consume_goal: float | None


WIRES = (Wire("gRPC", "grpc", False, {1024: 0.5, 100: 0.4}, 0.5), Wire("lane", "auto", True, {1024: 0.6}, None))


@dataclass(slots=True)
class Times:
    """Records per second of each round."""

    floor_produce: list[float] = field(default_factory=list)
    floor_read: list[float] = field(default_factory=list)
    produce: list[float] = field(default_factory=list)
    produce_single: list[float] = field(default_factory=list)
    consume_bytes: list[float] = field(default_factory=list)
    consume: list[float] = field(default_factory=list)
    consume_single: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Side:
    """One transport: its floor, and our cluster over it. times: one per load."""

    wire: Wire
    subject: Subject
    floor: FloorClient
    times: list[Times]


async def measure(subject: Subject, folder: Path, loads: Sequence[Load], partitions: int, rounds: int) -> list[Row]:
    with ExitStack() as floors:
        sides = [_side(wire, subject, folder, partitions, len(loads), floors) for wire in WIRES]
        for turn in range(rounds + 1):
            for number, load in enumerate(loads):
                for side in sides:
                    await _floor_round(side.floor, load, side.times[number])
                    await _our_round(side.subject, load, side.times[number], partitions)
                    if turn == 0:
                        _forget(side.times[number])  # the first round: compilation, first touch of memory
        for side in sides:
            await side.floor.close()
    return [row for side in sides for load, found in zip(loads, side.times, strict=True)
            for row in _rows(load, found, side.wire)]  # fmt: skip


def _side(wire: Wire, subject: Subject, folder: Path, partitions: int, loads: int, floors: ExitStack) -> Side:
    floor = floors.enter_context(Floor(folder / wire.name, partitions, lane=wire.lane))
    client = (LaneFloorClient if wire.lane else FloorClient)(floor.ports, partitions)
    return Side(wire, subject.by(wire.transport), client, [Times() for _ in range(loads)])


async def _floor_round(client: FloorClient, load: Load, times: Times) -> None:
    times.floor_produce.append(load.records / await client.produce(load.messages, IN_FLIGHT))
    times.floor_read.append(load.records / await client.read())


async def _our_round(subject: Subject, load: Load, times: Times, partitions: int) -> None:
    async with subject.topic(partitions) as topic:
        times.produce.append(load.records / await produce_columns(subject, topic, load, partitions))
        ways = ((read_chunk, times.consume_bytes), (read_columns, times.consume), (read_single, times.consume_single))
        for read, found in ways:
            if read is read_single and load.records > SINGLE_RECORDS:
                found.append(SINGLE_RECORDS / await consume(subject, topic, SINGLE_RECORDS, read))
            else:
                found.append(load.records / await consume(subject, topic, load.records, read))
    async with subject.topic(partitions) as topic:
        values = load.values(SINGLE_RECORDS)
        times.produce_single.append(len(values) / await produce_single(subject, topic, values, partitions))


async def produce_columns(subject: Subject, topic: str, load: Load, partitions: int) -> float:
    """Seconds until all records are acknowledged."""
    async with subject.producer() as producer:
        await _warm(producer, topic, partitions)
        start = time.perf_counter()
        deliveries = [await producer.send_arrow(topic, columns) for columns in load.columns]
        for delivery in deliveries:
            await delivery
        return time.perf_counter() - start


async def produce_single(subject: Subject, topic: str, values: Sequence[bytes], partitions: int) -> float:
    async with subject.producer() as producer:
        await _warm(producer, topic, partitions)
        start = time.perf_counter()
        for value in values:
            await producer.send(topic, value)
        await producer.flush()
        return time.perf_counter() - start


async def _warm(producer: Any, topic: str, partitions: int) -> None:
    """Send one record to each partition, to connect to every leader. After it all replicas have opened their logs, as
    the floor's processes have. For a topic of 1,000 partitions that takes the nodes seconds."""
    import pyarrow as pa

    arrays: list[Any] = [pa.array([b"warm"] * partitions), pa.array(range(partitions))]
    await (await producer.send_arrow(topic, pa.RecordBatch.from_arrays(arrays, ["value", "partition"])))


async def read_chunk(consumer: Any) -> int:
    chunk = await consumer.next_chunk(POLL_MS)
    return 0 if chunk is None else chunk.stop_offset - chunk.first_offset


async def read_columns(consumer: Any) -> int:
    found = await consumer.next_arrow(POLL_MS)
    return 0 if found is None else int(found[1].num_rows)


async def read_single(consumer: Any) -> int:
    return len(await consumer.poll(10_000, POLL_MS))


async def consume(subject: Subject, topic: str, records: int, read: Any) -> float:
    async with subject.consumer() as consumer:
        await consumer.assign_topic(topic, "latest", stop="latest")  # connects to every leader
        await consumer.assign_topic(topic, "earliest", stop="latest")
        start = time.perf_counter()  # the first fetches start now: nothing was awaited since the positions were known
        done = 0
        while done < records:
            found = await read(consumer)
            assert found > 0, f"{done} of {records} records, then none for {POLL_MS} ms"
            done += found
        return time.perf_counter() - start


def _forget(times: Times) -> None:
    for name in Times.__slots__:
        getattr(times, name).clear()


def _rows(load: Load, times: Times, wire: Wire) -> list[Row]:
    def both(name: str, rates: list[float], floor: list[float] | None, of: str, goal: float | None) -> list[Row]:
        shares = [rate / base for rate, base in zip(rates, floor, strict=True)] if floor else []
        megabytes = [rate * load.record_bytes / MEGABYTE for rate in rates]
        title = f"{wire.name} {name}, {load.name}"
        return [
            Row(name=title, unit="MB/s", rounds=megabytes, shares=shares, of=of, goal=goal),
            Row(name="", unit="records/s", rounds=rates),
        ]

    floor, read = "the floor", "a bare read"
    return [
        *both("floor: produce", times.floor_produce, None, "", None),
        *both("produce columns", times.produce, times.floor_produce, floor, wire.produce_goals.get(load.record_bytes)),
        *both("produce one by one", times.produce_single, times.floor_produce, floor, None),
        *both("floor: read", times.floor_read, None, "", None),
        *both("consume as batches", times.consume_bytes, times.floor_read, read, wire.consume_goal),
        *both("consume columns", times.consume, times.floor_read, read, None),
        *both("consume one by one", times.consume_single, times.floor_read, read, None),
    ]
