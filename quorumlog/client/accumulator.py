"""Records on their way: queued by partition, joined to batches, sent in order, tried again, given up in time. Pure.

Rules:
1. Records of a partition keep their order. Without numbers it has at most one batch under way, so that a retry cannot
   overtake. With numbers (an idempotent producer, `numbering.py`) it has up to `in_flight_limit`, counted from the
   oldest unanswered one, and a batch that is tried again goes only when it is the oldest. What waits meanwhile is the
   next batch: it follows one that is under way only when it is full. (Median latency at 2,000 records/s on one
   partition of a busy machine: 6.5 ms so, 9.5 with a second part-filled batch under way, 12 with five, since each
   request costs three nodes more than the wait. A linger of 5 ms more than doubled it at 200 records/s.)
2. Every batch ends exactly once: delivered, failed, or given up `delivery_timeout_ms` after it was begun.
3. A try whose outcome is unknown counts in `unknown_outcomes`: if such a batch is sent again, the log may hold it more
   than once, unless it is numbered.
4. Memory is bounded by `buffer_memory`, counted from append to the end of the batch.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quorumlog.client.numbering import MAX_IN_FLIGHT, Identity, Number, Numbering
from quorumlog.ids import Offset
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

RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5  # length, attributes, both deltas, three counts, each at its longest
HEADER_OVERHEAD = 5 + 5  # two counts
UTF8_MAX_BYTES = 4  # of one character
NO_NUMBER = Number(NO_PRODUCER, -1, NO_SEQUENCE)
Headers = tuple[tuple[str, bytes | None], ...]
TopicPartition = tuple[str, int]


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that are sent, and succeed or fail, together."""

    topic: str
    partition: int
    created_ms: int
    on_done: Callable[[Batch], None]
    place: int = 0  # among the batches of its partition, in the order of their records
    number: Number = NO_NUMBER
    size_bytes: int = BATCH_OVERHEAD  # upper bound before encoding
    count: int = 0
    records: list[Row] = field(default_factory=list)  # until they are laid out: nobody holds them twice
    unsealed: UnsealedBatch | None = None  # made of the records, or of columns in their place
    encoded: Buffer | None = None
    encoded_as: Number = NO_NUMBER
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
        return not self.is_numbered and self.unknown_outcomes > (1 if self.error is not None else 0)

    @property
    def is_numbered(self) -> bool:
        return self.number is not NO_NUMBER

    @property
    def is_closed(self) -> bool:
        """True where it takes no more records."""
        return self.unsealed is not None or self.attempts > 0

    def encode(self, codec: Codec) -> Buffer:
        """The batch as bytes, made once for each number. Offsets are relative to 0: the leader sets the base."""
        if self.unsealed is None:
            self.unsealed, self.records = lay_out_rows(self.records, codec), []
        if self.encoded is None or self.encoded_as != self.number:
            self.encoded, self.encoded_as = self.unsealed.seal(*self.number), self.number
        return self.encoded


@dataclass(slots=True)
class _Queue:
    """Both in the order of their places. numbering: None until the first batch is numbered, or without numbers."""

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
    ) -> None:
        """idempotent: number the batches; nothing is sent before `identity` is set. in_flight_limit: batches of a
        partition that may be under way then."""
        self._batch_size = batch_size
        self._buffer_memory = buffer_memory
        self._delivery_timeout_ms = delivery_timeout_ms
        self._linger_ms = linger_ms
        self._idempotent = idempotent
        self._in_flight_limit = in_flight_limit if idempotent else 1
        self.identity: Identity | None = None  # for partitions that begin to number, and those that ran out of epochs
        self._queues: dict[TopicPartition, _Queue] = {}
        self._waiting: dict[TopicPartition, _Queue] = {}  # those in which something waits, in the order of its coming
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
        size: int,
        now_ms: int,
        on_done: Callable[[Batch], None],
    ) -> tuple[Batch, int, bool]:
        """Queue a record. Gives its batch, its place in it, and whether the batch is new (then `on_done` is kept).

        size: `record_bytes` of it.
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
        """Queue a batch whose records are bytes already; nothing is added to it."""
        queue = self._queue(topic, partition)
        batch = self._begin(queue, topic, partition, now_ms, on_done)
        batch.unsealed, batch.count = unsealed, unsealed.count
        self.buffered_bytes += len(unsealed.buffer) - batch.size_bytes
        batch.size_bytes = len(unsealed.buffer)
        return batch

    @property
    def needs_identity(self) -> bool:
        """True where nothing can be sent before `identity` is set."""
        return self._idempotent and self.identity is None

    def sendable(self, now_ms: int, *, flushing: bool = False) -> Iterator[TopicPartition]:
        """Partitions whose first batch may be sent now; in which something has waited longest come first."""
        for key, queue in self._waiting.items():
            due_ms = self._due_ms(queue, flushing)
            if due_ms is not None and due_ms <= now_ms:
                yield key

    def next_due_ms(self, *, flushing: bool = False) -> int | None:
        """When the next batch becomes sendable or is given up; None: when nothing waits."""
        due: int | None = None
        for queue in self._waiting.values():
            at = queue.waiting[0].created_ms + self._delivery_timeout_ms
            ready = self._due_ms(queue, flushing)
            at = at if ready is None else min(at, ready)
            due = at if due is None else min(due, at)
        return due

    def peek(self, key: TopicPartition) -> Batch:
        """The batch that `take` would give."""
        return self._queues[key].waiting[0]

    def take(self, key: TopicPartition) -> Batch:
        """The first batch of a sendable partition, now under way until `delivered`, `failed` or `retry`."""
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
        """Back to its place in the queue, to be sent again no sooner than given. out_of_order: so it was refused."""
        queue = self._queues[batch.topic, batch.partition]
        if out_of_order and queue.numbering is not None and _is_oldest(queue, batch):
            queue.numbering.lost = True
        batch.not_before_ms = not_before_ms
        at = next((i for i, other in enumerate(queue.waiting) if other.place > batch.place), len(queue.waiting))
        queue.waiting.insert(at, batch)
        self._waiting.setdefault((batch.topic, batch.partition), queue)
        self._land(batch)
        self._begin_epoch_if_due(queue)

    def expired(self, batch: Batch, now_ms: int) -> bool:
        return now_ms - batch.created_ms >= self._delivery_timeout_ms

    def give_up_expired(self, now_ms: int, error: Callable[[Batch], Exception]) -> None:
        """End every waiting batch that is too old. One that is under way ends with its answer."""
        for queue in list(self._waiting.values()):
            while queue.waiting and self.expired(queue.waiting[0], now_ms):
                batch = self._pop(queue)
                self._end(batch, error(batch))

    def fail_all(self, error: Callable[[Batch], Exception], *, under_way: bool = False) -> None:
        """End every waiting batch. under_way: those, too: nobody will hear any more what became of them."""
        for queue in self._queues.values():
            for batch in list(queue.under_way) if under_way else ():
                batch.unknown_outcomes += 1
                self.failed(batch, error(batch))
            while queue.waiting:
                batch = self._pop(queue)
                self._end(batch, error(batch))

    def _due_ms(self, queue: _Queue, flushing: bool) -> int | None:
        """When the first waiting batch may go; None: only something else that happens lets it."""
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
            return False  # however many behind the oldest have been answered: a broker remembers no more than these
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
        batch = Batch(topic, partition, now_ms, on_done, place=queue.begun)
        queue.begun += 1
        queue.waiting.append(batch)
        self._waiting.setdefault((topic, partition), queue)
        self.unfinished += 1
        self.buffered_bytes += batch.size_bytes
        return batch

    def _pop(self, queue: _Queue) -> Batch:
        """The first batch that waits. Others of its partition wait behind all that came meanwhile."""
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
        """Once nothing is under way: where numbers were lost, or are in doubt and nothing is left to resolve it."""
        numbering = queue.numbering
        if numbering is None or queue.under_way:
            return
        resolved = not queue.waiting or not queue.waiting[0].is_numbered
        if not numbering.lost and not (numbering.in_doubt and resolved):
            return
        for batch in queue.waiting:
            batch.number, batch.unknown_outcomes = NO_NUMBER, 0  # none of them is in the log
        if not numbering.new_epoch():
            queue.numbering = self.identity = None


def _is_oldest(queue: _Queue, batch: Batch) -> bool:
    """True for a batch under way that nothing of its partition goes before."""
    return queue.under_way[0] is batch and (not queue.waiting or queue.waiting[0].place > batch.place)


def _place(batch: Batch) -> int:
    return batch.place


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Upper bound of what a record takes in a batch."""
    size = RECORD_OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += HEADER_OVERHEAD + UTF8_MAX_BYTES * len(name) + (len(content) if content else 0)
    return size
