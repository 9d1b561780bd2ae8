"""Closing the logs of a stop: in the pool, all directories at once, against one log after the other.

Each round reopens the logs of two directories, gives each one record of a new idempotent producer, and closes them in
one of the two ways, alternately. What a close writes then is what it writes in a node: indexes, a snapshot of the
producers, and the syncs of both and of the name.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measuring.report import Row
from quorumlog.records import Record, encode_batch, headers
from quorumlog_broker.logdirs.closing import close_logs
from quorumlog_broker.logdirs.log_directory import DirectoryQueue, LogDirectory
from quorumlog_storage.directory.partition_directories import PartitionDirectories
from quorumlog_storage.directory.partition_log import PartitionLog
from quorumlog_storage.edge.disk import RealDisk
from quorumlog_storage.edge.worker import ThreadWorker
from quorumlog_storage.segment.batch import stamped_batches
from quorumlog_storage.segment.log_config import LogConfig
from quorumlog_storage.writer.directory_life import DirectoryLife, LifeEvent
from quorumlog_storage.writer.writer import DirectoryWriter

DIRECTORIES = 2
TOPIC_ID = bytes(15) + b"1"
CONFIG = LogConfig(remembers_producers=True)


class _Served:
    """One directory, with its logs open."""

    def __init__(self, disk: RealDisk, path: Path, count: int, producer_id: int) -> None:
        life = DirectoryLife(str(path))
        life.step(LifeEvent.OPENED, life.generation)
        loop = asyncio.get_running_loop()
        writer = DirectoryWriter(str(path), life.generation)
        self.directory = LogDirectory(
            directory_id=b"d" * 16,
            life=life,
            generation=life.generation,
            partitions=PartitionDirectories(disk, str(path), True),
            worker=ThreadWorker(writer, loop.call_soon_threadsafe),
        )
        self.queue = DirectoryQueue(self.directory, lambda *_: None, lambda *_: None)
        self.logs = [self._written(number, producer_id) for number in range(count)]

    def _written(self, number: int, producer_id: int) -> PartitionLog:
        held = PartitionLog.open_or_create(self.directory.partitions, ("t", number), TOPIC_ID, CONFIG)
        data = encode_batch(
            [Record(0, 1_700_000_000_000, None, b"v" * 100, ())],
            producer_id=producer_id, producer_epoch=0, base_sequence=0,
        )  # fmt: skip
        held.log.append(stamped_batches(data, headers(data), held.log.end_offset, 1))
        held.log.sync()
        return held

    async def one_by_one(self) -> None:
        def close() -> None:
            for held in self.logs:
                held.close()

        await self.queue.run(close)

    async def in_the_pool(self) -> None:
        await close_logs(self.queue, lambda: self.logs)


def measure(folder: Path, count: int, rounds: int) -> list[Row]:
    """count: logs of both directories together."""
    before, after = list[float](), list[float]()
    for number in range(rounds):
        for pooled in (False, True) if number % 2 else (True, False):
            took_s = asyncio.run(_close(folder, count // DIRECTORIES, 2 * number + pooled + 1, pooled=pooled))
            (after if pooled else before).append(took_s)
    ratios = [new / old for old, new in zip(before, after, strict=True)]
    name = f"close {count:,} logs that were written to, {DIRECTORIES} directories"
    return [
        Row(name=f"{name}, one by one", unit="s", rounds=before),
        Row(name=f"{name}, in the pool", unit="s", rounds=after),
        Row(name="  in the pool / one by one", unit="", rounds=ratios, at_least=False, goal=1.0),
    ]


async def _close(folder: Path, count: int, producer_id: int, *, pooled: bool) -> float:
    disk = RealDisk()
    served: list[_Served] = []
    for number in range(DIRECTORIES):
        path = folder / f"d{number}"
        path.mkdir(parents=True, exist_ok=True)
        served.append(_Served(disk, path, count, producer_id))
    begun_s = time.monotonic()
    await _all(served, pooled=pooled)
    took_s = time.monotonic() - begun_s
    for one in served:
        one.directory.worker.close()
    return took_s


async def _all(served: Sequence[_Served], *, pooled: bool) -> None:
    if pooled:
        await asyncio.gather(*(one.in_the_pool() for one in served))
        return
    for one in served:
        await one.one_by_one()
