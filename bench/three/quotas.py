"""Quotas on three nodes: what a client gets of its own, and what others feel of one that reads everything again.

share     a producer and a reader that go as fast as they may, at one broker: bytes a second in the 30 s after the
          first ten seconds' worth, beside the quota
victim    records at a fixed rate, and a reader at the end of their log: from the record's due time to its arrival,
          alone and while Spark reads a large topic again and again under a quota. By turns; p99 of each
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.measuring.report import Row
from bench.nodes.subject import Subject
from quorumlog.client.administration.quotas import QuotaChange
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.producer import AsyncProducer

QUOTA = 1_000_000  # bytes a second
MEASURED_S, QUICK_MEASURED_S = 30.0, 12.0
AFTER_BURST_S = 22.0  # the window forgets the burst after eleven seconds; what it cost is paid by then
VALUE = bytes(10_000)
SENDERS, FETCH_BYTES = 10, 100_000  # so that one request is a small part of what the quota lets through in that time
RATE = 100.0  # of the victim's records, a second
VICTIM_S, QUICK_VICTIM_S = 20.0, 8.0
HISTORY_BYTES, QUICK_HISTORY_BYTES = 400_000_000, 100_000_000
REREAD = "reread"  # the client id
REREAD_QUOTA = 10_000_000  # of each broker
FEWEST_S = 5.0  # that Spark has read before a round begins
GOAL_VICTIM = 1.5


async def measure(subject: Subject, rounds: int, *, quick: bool) -> list[Row]:
    rows = await _shares(subject, QUICK_MEASURED_S if quick else MEASURED_S)
    if importlib.util.find_spec("pyspark") is None:
        return [*rows, _note("not measured: a re-read by Spark, which is not installed here")]
    return rows + await _victim(subject, rounds, quick=quick)


# --- what a client gets


async def _shares(subject: Subject, measured_s: float) -> list[Row]:
    async with subject.topic(1) as topic:
        async with _quota(subject, "bench-in", "producer_byte_rate", QUOTA):
            produced = await _produced(subject, topic, measured_s)
        async with _quota(subject, "bench-out", "consumer_byte_rate", QUOTA):
            fetched = await _fetched(subject, topic, measured_s)
    found = (("producer", produced), ("reader", fetched))
    return [
        Row(
            name=f"a {who} under a quota of {QUOTA:,} bytes/s, after its burst", unit="MB/s", rounds=[a_second / 1e6],
            shares=[a_second / QUOTA], of="the quota", goal=0.95, at_most=1.05,
        )
        for who, a_second in found
    ]  # fmt: skip


async def _produced(subject: Subject, topic: str, measured_s: float) -> float:
    """Bytes a second that were acknowledged."""
    acknowledged: list[float] = []

    async def keep_sending() -> None:
        while True:
            await (await producer.send(topic, VALUE))
            acknowledged.append(time.perf_counter())

    async with subject.producer(client_id="bench-in", linger_ms=5, delivery_timeout_ms=600_000) as producer:
        sending = [asyncio.create_task(keep_sending()) for _ in range(SENDERS)]
        begins = time.perf_counter() + AFTER_BURST_S
        await asyncio.sleep(AFTER_BURST_S + measured_s)
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
    ends = begins + measured_s
    return sum(begins <= at < ends for at in acknowledged) * len(VALUE) / measured_s


async def _fetched(subject: Subject, topic: str, measured_s: float) -> float:
    """Bytes a second that came."""
    came: list[tuple[float, int]] = []
    async with subject.consumer(client_id="bench-out", fetch_max_bytes=FETCH_BYTES) as consumer:
        await consumer.assign([(topic, 0, "earliest")])
        begins = time.perf_counter() + AFTER_BURST_S
        ends = begins + measured_s
        while time.perf_counter() < ends:
            records = await consumer.poll()
            came.append((time.perf_counter(), sum(len(record.value or b"") for record in records)))
            if not records:
                continue
            await _again_at_the_end(consumer, topic, records[-1].offset)
    return sum(size for at, size in came if begins <= at < ends) / measured_s


async def _again_at_the_end(consumer: AsyncConsumer, topic: str, offset: int) -> None:
    """From the begin, before there is nothing left to read."""
    if offset >= 2_000:
        await consumer.seek(topic, 0, 0)


# --- what others feel


async def _victim(subject: Subject, rounds: int, *, quick: bool) -> list[Row]:
    seconds, history_bytes = (QUICK_VICTIM_S, QUICK_HISTORY_BYTES) if quick else (VICTIM_S, HISTORY_BYTES)
    alone, beside = [], []
    async with subject.topic(3) as history, subject.topic(1) as live:
        await _fill(subject, history, history_bytes)
        async with _quota(subject, REREAD, "consumer_byte_rate", REREAD_QUOTA):
            for turn in range(rounds + 1):
                one = await _latencies(subject, live, seconds)
                async with _reread(subject, history):
                    other = await _latencies(subject, live, seconds)
                if turn > 0:
                    alone.append(_p99_ms(one))
                    beside.append(_p99_ms(other))
    return [
        Row(name="a live reader's p99, alone", unit="ms", rounds=alone),
        Row(
            name="the same beside a re-read by Spark under a quota", unit="ms", rounds=beside,
            shares=[more / less for more, less in zip(beside, alone, strict=True)], of="alone",
            goal=GOAL_VICTIM, at_least=False,
        ),
    ]  # fmt: skip


async def _fill(subject: Subject, topic: str, size_bytes: int) -> None:
    async with subject.producer(linger_ms=20) as producer:
        for _ in range(size_bytes // 100 // len(VALUE)):
            sent = [await producer.send(topic, VALUE) for _ in range(100)]
            await asyncio.gather(*sent)


async def _latencies(subject: Subject, topic: str, seconds: float) -> list[float]:
    """Of each record, from its due time to its arrival (s)."""
    found: list[float] = []
    count = int(RATE * seconds)
    async with subject.producer() as producer, subject.consumer() as consumer:
        await consumer.assign([(topic, 0, "latest")])
        await consumer.poll()  # finds the end
        sending = asyncio.create_task(_send_on_time(producer, topic, count))
        while len(found) < count:
            for record in await consumer.poll():
                found.append(time.perf_counter() - float(record.value or b"0"))
        await sending
    return found


async def _send_on_time(producer: AsyncProducer, topic: str, count: int) -> None:
    start = time.perf_counter()
    sent = []
    for index in range(count):
        due = start + index / RATE
        await asyncio.sleep(due - time.perf_counter())
        sent.append(await producer.send(topic, repr(due).encode()))
    await asyncio.gather(*sent)


@asynccontextmanager
async def _reread(subject: Subject, topic: str) -> AsyncIterator[None]:
    """Spark reads the topic again and again, in a process of its own."""
    script = Path(__file__).with_name("reread_script.py")
    said = Path(subject.nodes.layout.root) / "spark.log"
    with said.open("wb") as log:
        spark = await asyncio.create_subprocess_exec(
            sys.executable, str(script), subject.nodes.layout.bootstrap_servers, topic, REREAD,
            stdout=asyncio.subprocess.PIPE, stderr=log,
            env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
    assert spark.stdout is not None
    try:
        assert (await spark.stdout.readline()).strip() == b"reads", f"Spark has not begun: {said}"
        await asyncio.sleep(FEWEST_S)
        yield
    finally:
        assert spark.returncode is None, f"Spark has ended: {said}"
        spark.terminate()
        await spark.communicate()


# --- common


@asynccontextmanager
async def _quota(subject: Subject, client_id: str, key: str, value: float) -> AsyncIterator[None]:
    """Of this client, at each broker, while the block runs."""
    admin = subject.admin()
    who = {"client-id": client_id}
    try:
        await admin.alter_client_quotas([QuotaChange(who, {key: value})])
        yield
        await admin.alter_client_quotas([QuotaChange(who, {key: None})])
    finally:
        await admin.close()


def _p99_ms(found: list[float]) -> float:
    return 1000 * sorted(found)[int(0.99 * (len(found) - 1))]


def _note(text: str) -> Row:
    return Row(name=text, unit="", rounds=[], note=text)
