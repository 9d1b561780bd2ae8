"""From when a record was due to its acknowledgement, at a fixed rate: the wait behind a slow one counts for those that
wait (coordinated omission), since they are due all the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from bench.floor_client import Floor, FloorClient
from bench.report import Row
from bench.subject import Subject

RECORD_BYTES = 1024
RATE = 200.0  # records per second
VALUE = bytes(RECORD_BYTES)


async def measure(subject: Subject, folder: Path, rounds: int, seconds: float) -> list[Row]:
    """One log of the floor and one partition of ours, `seconds` each per round."""
    count = int(RATE * seconds)
    floors, ours = [], []
    async with subject.topic(1) as topic:
        with Floor(folder, 1) as floor:
            client = FloorClient(floor.ports, 1)
            for turn in range(rounds + 1):
                found = await client.latencies([VALUE] * count, RATE), await _ours(subject, topic, count)
                if turn > 0:
                    floors.append(sorted(found[0]))
                    ours.append(sorted(found[1]))
            await client.close()
    title = f"{RECORD_BYTES >> 10} KiB at {RATE:g}/s"
    return [
        *(_row(f"floor: latency {name}, {title}", floors, part) for name, part in (("p50", 0.5), ("p99", 0.99))),
        *(_row(f"latency {name}, {title}", ours, part) for name, part in (("p50", 0.5), ("p99", 0.99))),
    ]


async def _ours(subject: Subject, topic: str, count: int) -> list[float]:
    """Seconds of each record."""
    found: list[float] = []

    async def send(due: float) -> None:
        await (await producer.send(topic, VALUE))
        found.append(time.perf_counter() - due)

    async with subject.producer() as producer:
        await send(time.perf_counter())  # connects
        found.clear()
        start = time.perf_counter()
        tasks = []
        for index in range(count):
            due = start + index / RATE
            await asyncio.sleep(due - time.perf_counter())
            tasks.append(asyncio.create_task(send(due)))
        for task in tasks:
            await task
    return found


def _row(name: str, rounds: Sequence[Sequence[float]], part: float) -> Row:
    return Row(name=name, unit="ms", rounds=[1000 * found[int(part * (len(found) - 1))] for found in rounds])
