"""What a worker process of `quorumlog bench` does: produces, consumes, or both with a clock between."""

from __future__ import annotations

import asyncio
import random
import string
import time
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from quorumlog_cli.measuring.latencies import Latencies, Schedule

if TYPE_CHECKING:
    from quorumlog.client.consumer import AsyncConsumer

PATIENCE_S = 10.0  # of a consumer, without any record
PAYLOADS = 64  # different ones, so that compression finds what it would find


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Of one worker. options: of its clients. partitions: that it reads. per_s: records a second; None: all it can."""

    topic: str
    records: int
    record_bytes: int = 100
    per_s: float | None = None
    partitions: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Done:
    """began_us, ended_us: on the clock of the machine, the same in all processes. latencies: from the sending;
    corrected: from when the record was due. failed: records, and first: why."""

    records: int = 0
    bytes: int = 0
    failed: int = 0
    first: str = ""
    began_us: int = 0
    ended_us: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    corrected: Latencies = field(default_factory=Latencies)

    def measured(self, due_us: int, sent_us: int, ended_us: int) -> None:
        """One record."""
        self.records += 1
        self.latencies.add(ended_us - sent_us)
        self.corrected.add(ended_us - min(due_us, sent_us))

    def merge(self, other: Done) -> None:
        self.records += other.records
        self.bytes += other.bytes
        self.failed += other.failed
        self.first = self.first or other.first
        self.began_us = min(self.began_us or other.began_us, other.began_us)
        self.ended_us = max(self.ended_us, other.ended_us)
        self.latencies.merge(other.latencies)
        self.corrected.merge(other.corrected)


def now_us() -> int:
    return time.monotonic_ns() // 1_000


def payloads(size: int) -> list[bytes]:
    """Capital letters, as kafka-producer-perf-test makes them; the same ones in each run."""
    rng = random.Random(0)
    return ["".join(rng.choices(string.ascii_uppercase, k=size)).encode() for _ in range(PAYLOADS)]


def produce(work: Work) -> Done:
    return asyncio.run(_produce(work))


async def _produce(work: Work) -> Done:
    from quorumlog.client.asynchronous import AsyncProducer

    done, values = Done(), payloads(work.record_bytes)
    async with AsyncProducer(work.options) as producer:
        await producer.partition_count(work.topic, producer.options.max_block_ms)  # a first connection is no latency
        done.began_us = now_us()
        schedule = Schedule(done.began_us, work.per_s)
        for index in range(work.records):
            due_us = schedule.due_us(index, now_us())
            await _wait_until(due_us)
            try:
                await producer.send(work.topic, values[index % PAYLOADS], on_delivery=_told(done, now_us(), due_us))
            except Exception as error:  # `on_delivery` has counted it
                done.first = done.first or str(error)
        await producer.flush()
        done.ended_us = now_us()
        await producer.close(raise_errors=False)
    done.bytes = done.records * work.record_bytes
    return done


async def _wait_until(due_us: int) -> None:
    left_us = due_us - now_us()
    if left_us > 0:
        await asyncio.sleep(left_us / 1_000_000)


def _told(done: Done, sent_us: int, due_us: int) -> Any:
    def on_delivery(_metadata: Any, error: Exception | None) -> None:
        if error is not None:
            done.failed += 1
            done.first = done.first or str(error)
            return
        done.measured(due_us, sent_us, now_us())

    return on_delivery


def consume(work: Work) -> Done:
    return asyncio.run(_consume(work))


async def _consume(work: Work) -> Done:
    """Until it has its records, the end, or nothing for PATIENCE_S."""
    from quorumlog.client.asynchronous import AsyncConsumer

    done = Done()
    async with AsyncConsumer(work.options) as consumer:
        await consumer.assign([(work.topic, index, "earliest") for index in work.partitions], stop="latest")
        done.began_us = done.ended_us = now_us()
        while done.records < work.records and not consumer.finished:
            found = await consumer.poll(work.records - done.records, int(PATIENCE_S * 1_000))
            if not found:
                break
            done.records += len(found)
            done.bytes += sum(len(record.value or b"") + len(record.key or b"") for record in found)
            done.ended_us = now_us()
    return done


def end_to_end(work: Work) -> Done:
    return asyncio.run(_end_to_end(work))


async def _end_to_end(work: Work) -> Done:
    """Each record from `send` to the poll that returns it. Without a rate one after the other, as Kafka's tool does."""
    from quorumlog.client.asynchronous import AsyncConsumer, AsyncProducer
    from quorumlog.client.options import ConsumerOptions, ProducerOptions

    done, values, arrived = Done(), payloads(work.record_bytes), asyncio.Event()
    of_producer = _without(work.options, ConsumerOptions, ProducerOptions)
    of_consumer = _without(work.options, ProducerOptions, ConsumerOptions)
    async with AsyncProducer(of_producer) as producer, AsyncConsumer(of_consumer) as consumer:
        await producer.partition_count(work.topic, producer.options.max_block_ms)
        await consumer.assign_topic(work.topic, "latest")
        run = random.Random().randbytes(8)  # records of others may lie in between
        sent: dict[bytes, tuple[int, int]] = {}
        done.began_us = now_us()
        schedule = Schedule(done.began_us, work.per_s)
        reading = asyncio.create_task(_receive(consumer, sent, done, work.records, arrived))
        for index in range(work.records):
            due_us = schedule.due_us(index, now_us())
            await _wait_until(due_us)
            key = run + index.to_bytes(8)
            sent[key] = due_us, now_us()
            delivery = await producer.send(work.topic, values[index % PAYLOADS], key=key)
            if work.per_s is None:
                await delivery
                await arrived.wait()
                arrived.clear()
                if reading.done():
                    break  # it has given up
        await reading
        done.ended_us = now_us()
    done.bytes, done.failed = done.records * work.record_bytes, len(sent)
    done.first = "they were not read in time" if sent else ""
    return done


async def _receive(
    consumer: AsyncConsumer, sent: dict[bytes, tuple[int, int]], done: Done, wanted: int, arrived: asyncio.Event
) -> None:
    """Until `wanted` records have come, or none for PATIENCE_S. arrived: set at each, and at the end."""
    while done.records < wanted:
        found = await consumer.poll(timeout_ms=int(PATIENCE_S * 1_000))
        arrived_us = now_us()
        for record in found:
            at = sent.pop(record.key or b"", None)
            if at is not None:
                done.measured(*at, arrived_us)
                arrived.set()
        if not found:
            break
    arrived.set()


def _without(options: dict[str, Any], other: type, own: type) -> dict[str, Any]:
    """Leaves out options that only the other kind of client has; what neither has stays, and is refused."""
    only_other = {one.name for one in fields(other)} - {one.name for one in fields(own)}
    return {name: value for name, value in options.items() if name.replace(".", "_") not in only_other}
