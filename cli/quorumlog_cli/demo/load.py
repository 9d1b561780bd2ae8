"""Loads the flights into the topic: columns in slices, several in flight; notes where each row was stored.

Acknowledged rows are noted by partition and offset. A slice whose outcome is unknown, because its leader was killed, is
sent again. The producer is idempotent, so the topic still holds each row once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from quorumlog.client import real_edges as edge
from quorumlog.client.batches.delivery import ArrowDelivery
from quorumlog_cli.demo.flights import Flights

SLICE_ROWS = 1_000
SLICES_UNDER_WAY = 6
DELIVERY_TIMEOUT_MS = 120_000


@dataclass(slots=True)
class Loaded:
    """One entry per row. partitions: -1 if not acknowledged. samples: (s since the start, rows acknowledged)."""

    partitions: Any
    offsets: Any
    started: float = field(default_factory=time.monotonic)
    samples: list[tuple[float, int]] = field(default_factory=list)
    acknowledged: int = 0

    @classmethod
    def empty(cls, rows: int) -> Loaded:
        return cls(np.full(rows, -1, np.int32), np.full(rows, -1, np.int64))

    @property
    def took_s(self) -> float:
        return self.samples[-1][0]

    def longest_pause(self) -> tuple[float, float]:
        """(start, length) in s of the longest pause between two acknowledgements."""
        times = [0.0, *(when for when, _ in self.samples)]
        length, begin = max((after - before, before) for before, after in pairwise(times))
        return begin, length


async def load(flights: Flights, topic: str, bootstrap_servers: str, on_acknowledged: Callable[[int], None]) -> Loaded:
    """Send all rows and wait for their acknowledgements. on_acknowledged: called with the number so far.

    Raises the client's errors; a row that is not acknowledged in time ends the demo.
    """
    loaded = Loaded.empty(len(flights))
    under_way: deque[tuple[int, ArrowDelivery]] = deque()

    async def collect() -> None:
        first_row, delivery = under_way.popleft()
        for part in await delivery:
            rows = first_row + part.rows
            loaded.partitions[rows] = part.partition
            loaded.offsets[rows] = part.base_offset + np.arange(part.count)
            loaded.acknowledged += part.count
        loaded.samples.append((time.monotonic() - loaded.started, loaded.acknowledged))
        on_acknowledged(loaded.acknowledged)

    options = {"bootstrap_servers": bootstrap_servers, "delivery_timeout_ms": DELIVERY_TIMEOUT_MS}
    async with edge.producer(options, acks="all") as producer:
        for first_row in range(0, len(flights), SLICE_ROWS):
            rows = flights.records.slice(first_row, SLICE_ROWS)
            under_way.append((first_row, await producer.send_arrow(topic, rows)))
            if len(under_way) >= SLICES_UNDER_WAY:
                await collect()
        while under_way:
            await collect()
    return loaded
