"""The producer's queue of batches: per partition, in order, with retries and a delivery deadline. Pure.

Rules:
1. Records of a partition keep their order. A producer without sequence numbers has at most one batch of a partition in
   flight, so that a retry cannot be overtaken. An idempotent producer (`numbering.py`) has up to `in_flight_limit`,
   counted from the oldest unanswered batch; it retries a batch only when that batch is the oldest. A batch that is not
   full waits while another one of its partition is in flight. (Median latency at 2,000 records/s on one partition of a
   busy machine: 6.5 ms so, 9.5 ms with a second part-filled batch in flight, 12 ms with five, since each request costs
   three nodes more than the wait. A linger of 5 ms more than doubled the latency at 200 records/s.)
2. Every batch ends exactly once: delivered, failed, or given up `delivery_timeout_ms` after it was begun.
3. A try with an unknown outcome counts in `unknown_outcomes`. If such a batch is sent again, the log may hold it more
   than once, unless the batch is numbered.
4. Memory is bounded by `buffer_memory`. A batch counts from its first record until it ends.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quorumlog.client.batches.numbering import MAX_IN_FLIGHT, Identity, Number, Numbering
from quorumlog.ids import Offset, TopicPartition
from quorumlog.records import (
    BATCH_OVERHEAD,
    NO_PRODUCER,
    NO_SEQUENCE,
    Buffer,
    Codec,
    Row,
    UnsealedBatch,
    lay_out_rows,
)
from quorumlog.records.format.batch import TRANSACTIONAL

RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5  # length, attributes, both deltas, three counts, each at its longest
HEADER_OVERHEAD = 5 + 5  # two counts
UTF8_MAX_BYTES = 4  # of one character
NO_NUMBER = Number(NO_PRODUCER, -1, NO_SEQUENCE)
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that are sent, and succeed or fail, together."""

    topic: str
    partition: int
    created_ms: int
    on_done: Callable[[Batch], None]
    place: int = 0  # this batch's index among all batches of its partition
    number: Number = NO_NUMBER
    size_bytes: int = BATCH_OVERHEAD  # upper bound before encoding
    count: int = 0
    records: list[Row] = field(default_factory=list)  # emptied by `encode`, so that no record is held twice
    unsealed: UnsealedBatch | None = None  # encoded from `records`, or given by the caller (columns)
    encoded: Buffer | None = None
    encoded_as: Number = NO_NUMBER
    attempts: int = 0
    unknown_outcomes: int = 0
    not_before_ms: int = 0
    base_offset: Offset = -1
    log_append_time_ms: int = -1
    error: Exception | None = None
    done: bool = False
    transactional: bool = False

    @property
    def may_be_duplicated(self) -> bool:
        """True if an earlier try may have put a second copy into the log."""
        return not self.is_numbered and self.unknown_outcomes > (1 if self.error is not None else 0)

    @property
    def is_numbered(self) -> bool:
        return self.number is not NO_NUMBER

    @property
    def is_closed(self) -> bool:
        """True if no more records can be added."""
        return self.unsealed is not None or self.attempts > 0

    def encode(self, codec: Codec) -> Buffer:
        """Encode the batch, once per sequence number. Offsets start at 0: the leader assigns the base offset."""
        if self.unsealed is None:
            self.unsealed, self.records = lay_out_rows(self.records, codec), []
        if self.transactional:
            self.unsealed.attributes |= TRANSACTIONAL
        if self.encoded is None or self.encoded_as != self.number:
            self.encoded, self.encoded_as = self.unsealed.seal(*self.number), self.number
        return self.encoded


@dataclass(slots=True)
class _Queue:
    """Batches of one partition, in the order of `place`. numbering: None until the first batch gets a number."""

    waiting: deque[Batch] = field(default_factory=deque)
    under_way: list[Batch] = field(default_factory=list)
    begun: int = 0  # batches so far
    numbering: Numbering | None = None


class Accumulator:
    def __init__(
        self,
        *,
        batch_size: int,
        buffer_memory: int,
        delivery_timeout_ms: int,
        linger_ms: int = 0,
        idempotent: bool = False,
        in_flight_limit: int = MAX_IN_FLIGHT,
        transactional: bool = False,
    ) -> None:
        """idempotent: number the batches; nothing is sent before `identity` is set.
        transactional: an idempotent producer whose identity changes by `adopt` only: lost numbers fail a transaction.
        in_flight_limit: batches of one partition that an idempotent producer may have in flight."""
        self._batch_size = batch_size
        self._buffer_memory = buffer_memory
        self._delivery_timeout_ms = delivery_timeout_ms
        self._linger_ms = linger_ms
        self._idempotent = idempotent
        self._transactional = transactional
        self._in_flight_limit = in_flight_limit if idempotent else 1
        self.identity: Identity | None = None  # for partitions that start to number or have used up their epochs
        self._queues: dict[TopicPartition, _Queue] = {}
        self._waiting: dict[TopicPartition, _Queue] = {}  # queues with a waiting batch, longest wait first
        self.buffered_bytes = 0
        self.unfinished = 0  # batches that have not ended

    def adopt(self, identity: Identity) -> None:
        """Number the batches of the next transaction so. With the identity of the last one the numbers go on."""
        if identity == self.identity:
            return
        self.identity = identity
        for queue in self._queues.values():
            assert not queue.waiting and not queue.under_way, "a transaction begins before the last one has ended"
            queue.numbering = None

    def has_room(self, size_bytes: int) -> bool:
        """True if this many bytes may be appended. An empty buffer takes a batch of any size."""
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
        size: int,
        now_ms: int,
        on_done: Callable[[Batch], None],
    ) -> tuple[Batch, int, bool]:
        """Queue a record. Returns its batch, its index in the batch, and whether the batch is new.

        size: `record_bytes` of the record. on_done: kept only if the batch is new.
        """
        queue = self._queue(topic, partition)
        batch = queue.waiting[-1] if queue.waiting else None
        new = batch is None or batch.is_closed or batch.size_bytes + size > self._batch_size
        if batch is None or new:
            batch = self._begin(queue, topic, partition, now_ms, on_done)
        batch.records.append((timestamp_ms, key, value, headers))
        batch.count += 1
        batch.size_bytes += size
        self.buffered_bytes += size
        return batch, batch.count - 1, new

    def append_unsealed(
        self, topic: str, partition: int, unsealed: UnsealedBatch, *, now_ms: int, on_done: Callable[[Batch], None]
    ) -> Batch:
        """Queue a batch whose records are encoded already; no record is added to it."""
        queue = self._queue(topic, partition)
        batch = self._begin(queue, topic, partition, now_ms, on_done)
        batch.unsealed, batch.count = unsealed, unsealed.count
        self.buffered_bytes += len(unsealed.buffer) - batch.size_bytes
        batch.size_bytes = len(unsealed.buffer)
        return batch

    @property
    def needs_identity(self) -> bool:
        """True if the producer is idempotent and has no `identity` yet: nothing can be sent."""
        return self._idempotent and self.identity is None

    def sendable(self, now_ms: int, *, flushing: bool = False) -> Iterator[TopicPartition]:
        """Partitions whose first batch may be sent now, longest wait first."""
        for key, queue in self._waiting.items():
            due_ms = self._due_ms(queue, flushing)
            if due_ms is not None and due_ms <= now_ms:
                yield key

    def next_due_ms(self, *, flushing: bool = False) -> int | None:
        """When the next batch becomes sendable or expires; None if no batch waits."""
        due: int | None = None
        for queue in self._waiting.values():
            at = queue.waiting[0].created_ms + self._delivery_timeout_ms
            ready = self._due_ms(queue, flushing)
            at = at if ready is None else min(at, ready)
            due = at if due is None else min(due, at)
        return due

    def peek(self, key: TopicPartition) -> Batch:
        """The batch that `take` would return."""
        return self._queues[key].waiting[0]

    def take(self, key: TopicPartition) -> Batch:
        """Remove the first batch of a sendable partition. It is in flight until `delivered`, `failed` or `retry`."""
        queue = self._queues[key]
        assert self._may_go(queue)
        batch = self._pop(queue)
        if self._idempotent and not batch.is_numbered:
            batch.number = self._numbering(queue).next(batch.count)
        insort(queue.under_way, batch, key=_place)
        batch.attempts += 1
        return batch

    def delivered(self, batch: Batch, base_offset: Offset, log_append_time_ms: int = -1) -> None:
        batch.base_offset, batch.log_append_time_ms = base_offset, log_append_time_ms
        queue = self._queues[batch.topic, batch.partition]
        if queue.numbering is not None:
            queue.numbering.delivered(batch.number)
        self._land(batch)
        self._end(batch, None)

    def failed(self, batch: Batch, error: Exception) -> None:
        self._land(batch)
        self._end(batch, error)

    def retry(self, batch: Batch, not_before_ms: int, *, out_of_order: bool = False) -> None:
        """Put a batch back into its place in the queue. out_of_order: the leader refused its sequence number."""
        queue = self._queues[batch.topic, batch.partition]
        if out_of_order and queue.numbering is not None and _is_oldest(queue, batch):
            queue.numbering.lost = True
        batch.not_before_ms = not_before_ms
        at = next((i for i, other in enumerate(queue.waiting) if other.place > batch.place), len(queue.waiting))
        queue.waiting.insert(at, batch)
        self._waiting.setdefault((batch.topic, batch.partition), queue)
        self._land(batch)
        self._begin_epoch_if_due(queue)

    def is_oldest(self, batch: Batch) -> bool:
        """The batch is in flight, and no other batch of its partition comes before it."""
        return _is_oldest(self._queues[batch.topic, batch.partition], batch)

    def expired(self, batch: Batch, now_ms: int) -> bool:
        return now_ms - batch.created_ms >= self._delivery_timeout_ms

    def give_up_expired(self, now_ms: int, error: Callable[[Batch], Exception]) -> None:
        """End every waiting batch that has expired. A batch in flight ends with its answer."""
        for queue in list(self._waiting.values()):
            while queue.waiting and self.expired(queue.waiting[0], now_ms):
                batch = self._pop(queue)
                self._end(batch, error(batch))

    def fail_all(self, error: Callable[[Batch], Exception], *, under_way: bool = False) -> None:
        """End every waiting batch. under_way: also end the batches in flight, whose outcome stays unknown."""
        for queue in self._queues.values():
            for batch in list(queue.under_way) if under_way else ():
                batch.unknown_outcomes += 1
                self.failed(batch, error(batch))
            while queue.waiting:
                batch = self._pop(queue)
                self._end(batch, error(batch))

    def _due_ms(self, queue: _Queue, flushing: bool) -> int | None:
        """When the first waiting batch may be sent; None if it first needs another event (an answer, more records)."""
        if not self._may_go(queue):
            return None
        first = queue.waiting[0]
        grows = not first.is_closed and len(queue.waiting) == 1
        if not grows or first.size_bytes >= self._batch_size:
            return first.not_before_ms
        if queue.under_way:
            return None
        return first.not_before_ms if flushing else max(first.not_before_ms, first.created_ms + self._linger_ms)

    def _may_go(self, queue: _Queue) -> bool:
        if not queue.waiting or self.needs_identity:
            return False
        first, numbering = queue.waiting[0], queue.numbering
        if not queue.under_way:
            return True
        if first.place - queue.under_way[0].place >= self._in_flight_limit:
            return False  # a broker remembers only this many batches of a producer
        if numbering is not None and (numbering.lost or not numbering.proven):
            return False
        if first.attempts:
            return first.place < queue.under_way[0].place
        return numbering is None or not numbering.in_doubt

    def _numbering(self, queue: _Queue) -> Numbering:
        if queue.numbering is None:
            assert self.identity is not None
            queue.numbering = Numbering(self.identity)
        return queue.numbering

    def _queue(self, topic: str, partition: int) -> _Queue:
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = self._queues[topic, partition] = _Queue()
        return queue

    def _begin(self, queue: _Queue, topic: str, partition: int, now_ms: int, on_done: Callable[[Batch], None]) -> Batch:
        batch = Batch(topic, partition, now_ms, on_done, place=queue.begun, transactional=self._transactional)
        queue.begun += 1
        queue.waiting.append(batch)
        self._waiting.setdefault((topic, partition), queue)
        self.unfinished += 1
        self.buffered_bytes += batch.size_bytes
        return batch

    def _pop(self, queue: _Queue) -> Batch:
        """Remove the first waiting batch; the partition then queues behind all other partitions."""
        batch = queue.waiting.popleft()
        key = batch.topic, batch.partition
        del self._waiting[key]
        if queue.waiting:
            self._waiting[key] = queue
        return batch

    def _land(self, batch: Batch) -> None:
        queue = self._queues[batch.topic, batch.partition]
        assert batch in queue.under_way, "a batch landed that was not under way"
        queue.under_way.remove(batch)

    def _end(self, batch: Batch, error: Exception | None) -> None:
        assert not batch.done, "a batch ended twice"
        batch.done, batch.error = True, error
        self.buffered_bytes -= batch.size_bytes
        self.unfinished -= 1
        assert self.buffered_bytes >= 0 and self.unfinished >= 0
        queue = self._queues[batch.topic, batch.partition]
        if queue.numbering is not None and batch.is_numbered and error is not None:
            queue.numbering.in_doubt = True
        self._begin_epoch_if_due(queue)
        batch.on_done(batch)

    def _begin_epoch_if_due(self, queue: _Queue) -> None:
        """Begin a new epoch if numbers were lost, or are in doubt with no numbered batch left to settle the doubt.

        Does nothing while a batch is in flight.
        """
        numbering = queue.numbering
        if numbering is None or queue.under_way or self._transactional:
            return
        resolved = not queue.waiting or not queue.waiting[0].is_numbered
        if not numbering.lost and not (numbering.in_doubt and resolved):
            return
        for batch in queue.waiting:
            batch.number, batch.unknown_outcomes = NO_NUMBER, 0  # none of these batches is in the log
        if not numbering.new_epoch():
            queue.numbering = self.identity = None


def _is_oldest(queue: _Queue, batch: Batch) -> bool:
    """True if the batch is in flight and no other batch of its partition comes before it."""
    return queue.under_way[0] is batch and (not queue.waiting or queue.waiting[0].place > batch.place)


def _place(batch: Batch) -> int:
    return batch.place


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Upper bound of a record's size in a batch, in bytes."""
    size = RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += HEADER_OVERHEAD + UTF8_MAX_BYTES * len(name) + (len(content) if content else 0)
    return size
