"""Latency from a record's due time to its acknowledgement, at a fixed rate. A stall counts for every record that waits
behind it, because each has a due time (no coordinated omission)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from bench.floor.client import Floor, FloorClient, LaneFloorClient
from bench.measuring.report import Row
from bench.nodes.subject import Subject
from bench.three.throughput import WIRES, Wire

RECORD_BYTES = 1024
RATES = (200.0, 2_000.0)  # records per second
PARTS = (("p50", 0.5), ("p99", 0.99))
VALUE = bytes(RECORD_BYTES)


async def measure(subject: Subject, folder: Path, rounds: int, seconds: float) -> list[Row]:
    """One log of each floor and one partition of ours over each transport; `seconds` per round and rate."""
    rows = []
    for rate in RATES:
        for wire in WIRES:
            place = folder / f"{wire.name}-{rate:g}"
            rows += await _measure_wire(subject.by(wire.transport), place, wire, rounds, rate, int(rate * seconds))
    return rows


async def _measure_wire(subject: Subject, folder: Path, wire: Wire, rounds: int, rate: float, count: int) -> list[Row]:
    floors, ours = [], []
    async with subject.topic(1) as topic:
        with Floor(folder, 1, lane=wire.lane) as floor:
            client = (LaneFloorClient if wire.lane else FloorClient)(floor.ports, 1)
            for turn in range(rounds + 1):
                found = await client.latencies([VALUE] * count, rate), await _ours(subject, topic, count, rate)
                if turn > 0:
                    floors.append(sorted(found[0]))
                    ours.append(sorted(found[1]))
            await client.close()
    title = f"{RECORD_BYTES >> 10} KiB at {rate:g}/s"
    return [
        *(_row(f"{wire.name} floor: latency {name}, {title}", floors, part) for name, part in PARTS),
        *(_row(f"{wire.name} latency {name}, {title}", ours, part) for name, part in PARTS),
    ]


async def _ours(subject: Subject, topic: str, count: int, rate: float) -> list[float]:
    """Latency of each record in seconds."""
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
            due = start + index / rate
            await asyncio.sleep(due - time.perf_counter())
            tasks.append(asyncio.create_task(send(due)))
        for task in tasks:
            await task
    return found


def _row(name: str, rounds: Sequence[Sequence[float]], part: float) -> Row:
    return Row(name=name, unit="ms", rounds=[1000 * found[int(part * (len(found) - 1))] for found in rounds])
