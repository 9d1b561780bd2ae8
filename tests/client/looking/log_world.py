"""Logs to look at, on brokers in memory: plain and transactional batches, markers, compacted gaps, and times that fall
back; and beside them the plain list of what a reader of committed records may see."""

from __future__ import annotations

import random
from typing import Any

from fake_cluster import FakeCluster, FakeLog, TestClock

from quorumlog.client.consumer import AsyncConsumer
from quorumlog.records import Record, encode_batch
from quorumlog.records.control import EndTxnMarker, control_batch

Seen = tuple[int, int, int]  # time, partition, offset
PRODUCER = 77


class LogWorld:
    """visible: what a reader may see, by time, partition and offset, in the order in which it was written."""

    def __init__(self, partitions: int) -> None:
        self.cluster = FakeCluster(partitions=partitions)
        self.visible: list[Seen] = []
        self.values: dict[Seen, bytes | None] = {}

    def log(self, partition: int) -> FakeLog:
        return self.cluster.topics["t"][partition]

    def write(
        self,
        partition: int,
        times: list[int],
        *,
        keep: list[int] | None = None,
        aborted: bool | None = None,
        value: bytes | None = None,
        padding: int = 0,
    ) -> None:
        """One batch. keep: the places in it that compaction left. aborted: None: not transactional."""
        log = self.log(partition)
        base = log.end
        kept = range(len(times)) if keep is None else keep
        rows = [
            Record(
                base + at,
                times[at],
                b"k%d" % (base + at),
                (value or b"%d-%d" % (partition, at)) + b" " * padding,
            )
            for at in kept
        ]
        data = encode_batch(
            rows,
            base_offset=base,
            producer_id=-1 if aborted is None else PRODUCER,
            producer_epoch=-1 if aborted is None else 0,
            base_sequence=-1 if aborted is None else base,
            transactional=aborted is not None,
            last_offset_delta=len(times) - 1,
            max_timestamp_ms=max(times),
        )
        log.batches.append((base, base + len(times), data))
        log.end += len(times)
        if aborted is not None:
            self._end(log, base, times[-1], aborted)
        if not aborted:
            for row in rows:
                seen = (row.timestamp_ms, partition, row.offset)
                self.visible.append(seen)
                self.values[seen] = row.value

    def _end(self, log: FakeLog, first: int, time_ms: int, aborted: bool) -> None:
        marker = control_batch(
            [EndTxnMarker(not aborted, 1)],
            base_offset=log.end,
            timestamp_ms=time_ms,
            producer_id=PRODUCER,
            producer_epoch=0,
        )
        log.batches.append((log.end, log.end + 1, marker))
        if aborted:
            log.aborted.append((PRODUCER, first, log.end))
        log.end += 1

    def consumer(self, **options: Any) -> AsyncConsumer:
        options = {
            "bootstrap_servers": "b1",
            "retry_backoff_ms": 2,
            "retry_backoff_max_ms": 5,
            "fetch_max_wait_ms": 10,
            "isolation_level": "read_committed",
            **options,
        }
        return AsyncConsumer(self.cluster, clock=TestClock(), rng=random.Random(1), **options)  # type: ignore[arg-type]


def seen_of(record: Any) -> Seen:
    return record.timestamp_ms, record.partition, record.offset


def random_world(rng: random.Random, *, falls_back: bool) -> LogWorld:
    """A few hundred records, markers and gaps. falls_back: times may, by a little or by a lot."""
    world = LogWorld(rng.choice([1, 2, 3, 7]))
    now = 1_000
    for _ in range(rng.randrange(0, 30)):
        partition = rng.randrange(len(world.cluster.topics["t"]))
        times = []
        for _ in range(rng.randrange(1, 9)):
            now += rng.choice([0, 0, 1, 5])
            times.append(now - rng.choice([0, 0, 0, 3, 400]) if falls_back else now)
        left = sorted(rng.sample(range(len(times)), rng.randrange(0, len(times) + 1)))
        keep = left if rng.random() < 0.3 else None
        world.write(
            partition, [max(0, time) for time in times], keep=keep, aborted=rng.choice([None, None, True, False])
        )
    return world
