"""The asynchronous consumer with assigned partitions: reads from a given start, as records, Arrow or batches.

async with AsyncConsumer(transport, bootstrap_servers="localhost:9092") as consumer:
    await consumer.assign([("orders", 0, "earliest")], stop="latest")
    async for record in consumer:
        print(record.offset, record.value)
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from quorumlog.client.errors import ClientClosed, ConfigError
from quorumlog.client.fetch_loop import FetchLoop
from quorumlog.client.fetch_position import Chunk, Position, TopicPartition
from quorumlog.client.link import Link
from quorumlog.client.offsets import EARLIEST, LATEST, resolve_offsets
from quorumlog.client.options import ConsumerOptions, parse_options
from quorumlog.clock import Clock
from quorumlog.ids import Offset
from quorumlog.nursery import Nursery
from quorumlog.records import RecordHeaders, decode_fields, headers
from quorumlog.rpc.transport import Transport

Start = int | str  # an offset, "earliest", "latest", or "@<ms since 1970>"
NAMED = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: RecordHeaders


class AsyncConsumer:
    """transport, clock, rng: the edges; `quorumlog.client.edge` makes the real ones. options: ConsumerOptions."""

    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        **options: Any,
    ) -> None:
        self.options = parse_options(ConsumerOptions, config, options)
        self._link = Link(transport, self.options, clock=clock, rng=rng)
        self._nursery = Nursery(lambda name, error: self._loop.fail(ClientClosed(f"{name} failed: {error!r}")))
        self._loop = FetchLoop(self._link, self.options, self._nursery)
        self._records: deque[ConsumedRecord] = deque()
        self._started = False
        self._closed = False

    async def __aenter__(self) -> AsyncConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def assign(self, partitions: Iterable[tuple[str, int, Start]], *, stop: Start | None = None) -> None:
        """Read these partitions, each from its start. Replaces the previous assignment.

        stop: exclusive end of each partition, resolved now ("latest": what is readable at this moment). Iteration ends
        there.
        """
        wanted = list(partitions)
        starts = await self._resolve({(topic, index): start for topic, index, start in wanted})
        stops = await self._resolve({(topic, index): stop for topic, index, _ in wanted}) if stop is not None else {}
        self._loop.positions.clear()
        while self._loop.chunks:
            self._loop.take()
        self._records.clear()
        for topic, index, _ in wanted:
            self._loop.add(Position(topic, index, starts[topic, index], stops.get((topic, index))))
        if not self._started:
            self._started = True
            self._loop.start()

    async def assign_topic(self, topic: str, start: Start = "earliest", *, stop: Start | None = None) -> None:
        """Assign every partition that the topic has now."""
        await self._link.topic_ready(topic, self.options.default_api_timeout_ms)
        partitions = sorted(self._link.cache.topics[topic].partitions)
        await self.assign([(topic, index, start) for index in partitions], stop=stop)

    def position(self, topic: str, partition: int) -> Offset:
        """Offset after the last record received; records before it may still be in the buffer."""
        return self._loop.positions[topic, partition].next_offset

    def lag(self, topic: str, partition: int) -> int:
        """Records behind the last known high watermark; -1: not known yet."""
        return self._loop.positions[topic, partition].lag

    @property
    def finished(self) -> bool:
        """True once everything before the stop offsets has been taken."""
        return not self._records and self._loop.finished

    async def poll(self, max_records: int | None = None, timeout_ms: int = 500) -> list[ConsumedRecord]:
        """Up to `max_records` records. An empty list if `timeout_ms` passes without any, or at the end."""
        limit = max_records or self.options.max_poll_records
        if not self._records:
            chunk = await self.next_chunk(timeout_ms)
            if chunk is not None:
                self._records.extend(decode_chunk(chunk))
        return [self._records.popleft() for _ in range(min(limit, len(self._records)))]

    async def next_chunk(self, timeout_ms: int) -> Chunk | None:
        """Received batches as bytes. None after `timeout_ms` without any, or at the end. Raises the loop's error."""
        if self._closed:
            raise ClientClosed("the consumer is closed")
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not self._loop.chunks and not self._loop.finished:
                    self._loop.arrived.clear()
                    if self._loop.has_error:
                        await asyncio.sleep(0)  # a reader that polls on at once must not stop the fetches of the others
                        self._raise_error()
                    await self._loop.arrived.wait()
        except TimeoutError:
            return None
        if self._loop.chunks:
            return self._loop.take()
        self._raise_error()
        return None

    async def next_arrow(self, timeout_ms: int, *, include_headers: bool = False) -> tuple[Chunk, Any] | None:
        """The next chunk and its records as a pyarrow RecordBatch: key, value, offset, timestamp[, headers]."""
        from quorumlog.records.columnar import decode_columns  # imports pyarrow: only if columns are wanted

        chunk = await self.next_chunk(timeout_ms)
        if chunk is None:
            return None
        columns = decode_columns(
            chunk.records,
            from_offset=chunk.first_offset,
            to_offset=chunk.stop_offset,
            include_headers=include_headers,
            check_crc=False,  # checked on receipt, if `check_crcs` is set
        )
        return chunk, columns

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        """Records as they arrive. Ends at the stop offsets; without them it never ends."""
        while not self.finished:
            for record in await self.poll(timeout_ms=1_000):
                yield record

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._nursery.close()
        await self._link.close()

    def _raise_error(self) -> None:
        error = self._loop.take_error()
        if error is not None:
            raise error

    async def _resolve(self, wanted: Mapping[TopicPartition, Start]) -> dict[TopicPartition, Offset]:
        found: dict[TopicPartition, Offset] = {}
        asked: dict[TopicPartition, int] = {}
        for key, start in wanted.items():
            if isinstance(start, int) and not isinstance(start, bool) and start >= 0:
                found[key] = start
            else:
                asked[key] = _timestamp_of(start)
        topics = list(dict.fromkeys(topic for topic, _ in wanted))
        await self._link.refresh(topics)
        if asked:
            answers = await resolve_offsets(self._link, asked)
            nowhere = {key: LATEST for key, answer in answers.items() if answer.offset < 0}
            ends = await resolve_offsets(self._link, nowhere) if nowhere else {}
            found.update({key: (ends.get(key) or answer).offset for key, answer in answers.items()})
        return found


def decode_chunk(chunk: Chunk) -> list[ConsumedRecord]:
    """Every wanted record of a chunk. Control batches are left out."""
    found: list[ConsumedRecord] = []
    for header in headers(chunk.records, partial_tail=True):
        if header.is_control or header.next_offset <= chunk.first_offset or header.base_offset >= chunk.stop_offset:
            continue
        found += [
            ConsumedRecord(chunk.topic, chunk.partition, *fields)
            for fields in decode_fields(chunk.records, header)
            if chunk.first_offset <= fields[0] < chunk.stop_offset
        ]
    return found


def _timestamp_of(start: Start) -> int:
    if isinstance(start, str):
        if start in NAMED:
            return NAMED[start]
        if start.startswith("@") and start[1:].isascii() and start[1:].isdigit():
            return int(start[1:])
    raise ConfigError(f"not a start position: {start!r}; give an offset, earliest, latest or @<ms since 1970>")
