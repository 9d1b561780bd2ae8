"""The outcome of a record: an awaitable of two words, because the batch holds the answer for all its records."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from quorumlog.client.batches.accumulator import Batch
from quorumlog.ids import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMetadata:
    """Where a record is stored. offset: -1 with acks=0.

    may_be_duplicated: an earlier try had an unknown outcome, so the log may hold the record more than once. Never true
    with an idempotent producer.
    """

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    may_be_duplicated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredRange:
    """The records of one batch. rows: their row numbers in what `send_arrow` was given, in the order of offsets."""

    topic: str
    partition: int
    base_offset: Offset
    count: int
    may_be_duplicated: bool
    rows: Any = None  # numpy array of int64, or None: all rows, in order


MAX_UNSEEN = 100


class BatchFate:
    """The outcome of one batch, shared by the deliveries of its records."""

    __slots__ = ("_future", "looked_at")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._future: asyncio.Future[Batch] = loop.create_future()
        self.looked_at = False

    def on_done(self, batch: Batch) -> None:
        if not self._future.done():
            self._future.set_result(batch)

    def __await__(self) -> Generator[Any, None, Batch]:
        """The batch, once it has been delivered; raises the batch's error otherwise."""
        self.looked_at = True
        batch = yield from asyncio.shield(self._future).__await__()
        if batch.error is not None:
            raise batch.error
        return batch

    @property
    def done(self) -> bool:
        return self._future.done()


class UnseenErrors:
    """Failures that no caller has looked at. Beyond MAX_UNSEEN, a failure counts as never looked at."""

    def __init__(self) -> None:
        self._failures: list[tuple[BatchFate | None, Exception]] = []  # oldest first

    def add(self, fate: BatchFate | None, error: Exception) -> None:
        self._failures = self._unseen()
        if len(self._failures) < MAX_UNSEEN:
            self._failures.append((fate, error))
        else:
            self._failures[-1] = (None, self._failures[-1][1])

    def first(self) -> Exception | None:
        return next((error for _, error in self._unseen()), None)

    def _unseen(self) -> list[tuple[BatchFate | None, Exception]]:
        return [(fate, error) for fate, error in self._failures if fate is None or not fate.looked_at]


class Delivery:
    """Await it for the record's RecordMetadata. Raises RequestFailed or DeliveryTimeout."""

    __slots__ = ("_fate", "_index", "_timestamp_ms")

    def __init__(self, fate: BatchFate, index: int, timestamp_ms: int) -> None:
        self._fate = fate
        self._index = index
        self._timestamp_ms = timestamp_ms

    def done(self) -> bool:
        return self._fate.done

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        batch = yield from self._fate.__await__()
        return RecordMetadata(
            topic=batch.topic,
            partition=batch.partition,
            offset=batch.base_offset + self._index if batch.base_offset >= 0 else -1,
            timestamp_ms=batch.log_append_time_ms if batch.log_append_time_ms >= 0 else self._timestamp_ms,
            may_be_duplicated=batch.may_be_duplicated,
        )


class ArrowDelivery:
    """Await it for the DeliveredRanges of one `send_arrow`. Raises the first error after all batches have ended."""

    __slots__ = ("_parts",)

    def __init__(self, parts: list[tuple[BatchFate, Any]]) -> None:
        self._parts = parts

    @property
    def done(self) -> bool:
        """True if all batches have ended."""
        return all(fate.done for fate, _ in self._parts)

    def __await__(self) -> Generator[Any, None, list[DeliveredRange]]:
        return self._collect().__await__()

    async def _collect(self) -> list[DeliveredRange]:
        ranges: list[DeliveredRange] = []
        first_error: Exception | None = None
        for fate, rows in self._parts:
            try:
                batch = await fate
            except Exception as error:
                first_error = first_error or error
                continue
            ranges.append(
                DeliveredRange(
                    topic=batch.topic,
                    partition=batch.partition,
                    base_offset=batch.base_offset,
                    count=batch.count,
                    may_be_duplicated=batch.may_be_duplicated,
                    rows=rows,
                )
            )
        if first_error is not None:
            raise first_error
        return ranges
