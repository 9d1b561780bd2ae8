"""Records on their way: queued by partition, joined to batches, sent in order, tried again, given up in time. Pure.

Rules:
1. A partition has at most one batch under way, so that a retry cannot overtake: its records keep their order. What
   waits meanwhile is the next batch. (An idempotent producer may have more under way; `in_flight_limit` is the place.)
2. Every batch ends exactly once: delivered, failed, or given up `delivery_timeout_ms` after it was begun.
3. A try whose outcome is unknown counts in `unknown_outcomes`: if such a batch is sent again, the log may hold it more
   than once.
4. Memory is bounded by `buffer_memory`, counted from append to the end of the batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quorumlog.ids import Offset
from quorumlog.records import BATCH_OVERHEAD, Codec, Record, encode_batch

RECORD_OVERHEAD = 24  # upper bound of a record's bytes beside key, value and headers
Headers = tuple[tuple[str, bytes | None], ...]
TopicPartition = tuple[str, int]


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that are sent, and succeed or fail, together."""

    topic: str
    partition: int
    created_ms: int
    on_done: Callable[[Batch], None]
    size_bytes: int = BATCH_OVERHEAD  # upper bound before encoding
    count: int = 0
    records: list[tuple[int, bytes | None, bytes | None, Headers]] = field(default_factory=list)
    encoded: bytes | None = None
    attempts: int = 0
    unknown_outcomes: int = 0
    not_before_ms: int = 0
    base_offset: Offset = -1
    log_append_time_ms: int = -1
    error: Exception | None = None
    done: bool = False

    @property
    def may_be_duplicated(self) -> bool:
        """True where an earlier try may be in the log beside the one that counted."""
        return self.unknown_outcomes > (1 if self.error is not None else 0)

    def encode(self, codec: Codec) -> bytes:
        """The batch as bytes, made once. Offsets are relative to 0: the leader sets the base."""
        if self.encoded is None:
            self.encoded = encode_batch(
                [
                    Record(offset=i, timestamp_ms=ts, key=key, value=value, headers=headers)
                    for i, (ts, key, value, headers) in enumerate(self.records)
                ],
                codec=codec,
            )
        return self.encoded


@dataclass(slots=True)
class _Queue:
    waiting: deque[Batch] = field(default_factory=deque)
    in_flight: int = 0


class Accumulator:
    def __init__(
        self,
        *,
        batch_size: int,
        buffer_memory: int,
        delivery_timeout_ms: int,
        linger_ms: int = 0,
        in_flight_limit: int = 1,
    ) -> None:
        self._batch_size = batch_size
        self._buffer_memory = buffer_memory
        self._delivery_timeout_ms = delivery_timeout_ms
        self._linger_ms = linger_ms
        self._in_flight_limit = in_flight_limit
        self._queues: dict[TopicPartition, _Queue] = {}
        self.buffered_bytes = 0
        self.unfinished = 0  # batches that have not ended

    def has_room(self, size_bytes: int) -> bool:
        """True where so much more may be appended. A thing larger than the memory may be when nothing else waits."""
        return self.buffered_bytes + size_bytes <= self._buffer_memory or self.buffered_bytes == 0

    def append(
        self,
        topic: str,
        partition: int,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        *,
        now_ms: int,
        on_done: Callable[[Batch], None],
    ) -> tuple[Batch, int, bool]:
        """Queue a record. Gives its batch, its place in it, and whether the batch is new (then `on_done` is kept)."""
        size = record_bytes(key, value, headers)
        queue = self._queues.setdefault((topic, partition), _Queue())
        batch = queue.waiting[-1] if queue.waiting else None
        new = (
            batch is None
            or batch.encoded is not None
            or batch.attempts > 0
            or batch.size_bytes + size > self._batch_size
        )
        if batch is None or new:
            batch = self._begin(queue, topic, partition, now_ms, on_done)
        batch.records.append((timestamp_ms, key, value, headers))
        batch.count += 1
        batch.size_bytes += size
        self.buffered_bytes += size
        return batch, batch.count - 1, new

    def append_encoded(
        self, topic: str, partition: int, data: bytes, count: int, *, now_ms: int, on_done: Callable[[Batch], None]
    ) -> Batch:
        """Queue a batch that is bytes already; nothing is added to it."""
        queue = self._queues.setdefault((topic, partition), _Queue())
        batch = self._begin(queue, topic, partition, now_ms, on_done)
        batch.encoded, batch.count = data, count
        self.buffered_bytes += len(data) - batch.size_bytes
        batch.size_bytes = len(data)
        return batch

    def sendable(self, now_ms: int, *, flushing: bool = False) -> Iterator[TopicPartition]:
        """Partitions whose first batch may be sent now, in the order in which they were first used."""
        for key, queue in self._queues.items():
            if queue.waiting and queue.in_flight < self._in_flight_limit and self._due_ms(queue, flushing) <= now_ms:
                yield key

    def next_due_ms(self, *, flushing: bool = False) -> int | None:
        """When the next batch becomes sendable or is given up; None: when nothing waits."""
        due: int | None = None
        for queue in self._queues.values():
            if queue.waiting:
                at = queue.waiting[0].created_ms + self._delivery_timeout_ms
                if queue.in_flight < self._in_flight_limit:
                    at = min(at, self._due_ms(queue, flushing))
                due = at if due is None else min(due, at)
        return due

    def peek(self, key: TopicPartition) -> Batch:
        """The batch that `take` would give."""
        return self._queues[key].waiting[0]

    def take(self, key: TopicPartition) -> Batch:
        """The first batch of a sendable partition, now under way until `delivered`, `failed` or `retry`."""
        queue = self._queues[key]
        assert queue.waiting and queue.in_flight < self._in_flight_limit
        queue.in_flight += 1
        batch = queue.waiting.popleft()
        batch.attempts += 1
        return batch

    def delivered(self, batch: Batch, base_offset: Offset, log_append_time_ms: int = -1) -> None:
        batch.base_offset, batch.log_append_time_ms = base_offset, log_append_time_ms
        self._land(batch)
        self._end(batch, None)

    def failed(self, batch: Batch, error: Exception) -> None:
        self._land(batch)
        self._end(batch, error)

    def retry(self, batch: Batch, not_before_ms: int) -> None:
        """Back to the front of its queue, to be sent again no sooner than given."""
        self._land(batch)
        batch.not_before_ms = not_before_ms
        self._queues[batch.topic, batch.partition].waiting.appendleft(batch)

    def expired(self, batch: Batch, now_ms: int) -> bool:
        return now_ms - batch.created_ms >= self._delivery_timeout_ms

    def give_up_expired(self, now_ms: int, error: Callable[[Batch], Exception]) -> None:
        """End every waiting batch that is too old. One that is under way ends with its answer."""
        for queue in self._queues.values():
            while queue.waiting and self.expired(queue.waiting[0], now_ms):
                batch = queue.waiting.popleft()
                self._end(batch, error(batch))

    def fail_all(self, error: Callable[[Batch], Exception]) -> None:
        """End every waiting batch: the producer is being closed."""
        for queue in self._queues.values():
            while queue.waiting:
                batch = queue.waiting.popleft()
                self._end(batch, error(batch))

    def _due_ms(self, queue: _Queue, flushing: bool) -> int:
        first = queue.waiting[0]
        lingers = not flushing and first.attempts == 0 and first.encoded is None and len(queue.waiting) == 1
        full = first.size_bytes >= self._batch_size
        linger_until = first.created_ms + self._linger_ms if lingers and not full else 0
        return max(first.not_before_ms, linger_until)

    def _begin(self, queue: _Queue, topic: str, partition: int, now_ms: int, on_done: Callable[[Batch], None]) -> Batch:
        batch = Batch(topic, partition, now_ms, on_done)
        queue.waiting.append(batch)
        self.unfinished += 1
        self.buffered_bytes += batch.size_bytes
        return batch

    def _land(self, batch: Batch) -> None:
        queue = self._queues[batch.topic, batch.partition]
        assert queue.in_flight > 0, "a batch landed that was not under way"
        queue.in_flight -= 1

    def _end(self, batch: Batch, error: Exception | None) -> None:
        assert not batch.done, "a batch ended twice"
        batch.done, batch.error = True, error
        self.buffered_bytes -= batch.size_bytes
        self.unfinished -= 1
        assert self.buffered_bytes >= 0 and self.unfinished >= 0
        batch.on_done(batch)


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Upper bound of what a record takes in a batch."""
    size = RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 10 + 4 * len(name) + (len(content) if content else 0)
    return size
