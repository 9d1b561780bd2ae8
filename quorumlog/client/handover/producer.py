"""Of the blocking producer, what is no plain call: records queue in the caller's thread, the loop takes many at a time.

What has to come after the records that were sent before it (a flush, the end of a transaction) waits for this handover.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from quorumlog.client import real_edges as edge
from quorumlog.client.handover.loop import Blocking, LoopThread

if TYPE_CHECKING:
    from quorumlog.client.batches.delivery import ArrowDelivery, DeliveredRange, Delivery, RecordMetadata
    from quorumlog.client.batches.record_parts import HeadersLike
    from quorumlog.client.plugins.acknowledgements import OnDelivery
    from quorumlog.client.producer import AsyncProducer, ProducerStats
    from quorumlog.client.transactions.driver import TransactionScope

    Queued = tuple["SendFuture", tuple[str, Any, Any, HeadersLike | None, int | None, int | None], OnDelivery | None]

HANDOVER_LIMIT = 20_000  # records between the callers' threads and the loop
HANDOVER_RECORDS = 100  # taken by the loop at once: more would delay a caller, fewer cost a lock each


class SendFuture:
    """Returned by `Producer.send`. Call `result` to wait for the acknowledgement, or drop it."""

    __slots__ = ("_delivery", "_failure", "_handed", "_producer")

    def __init__(self, producer: QueueingProducer) -> None:
        self._producer = producer
        self._delivery: Delivery | None = None
        self._failure: Exception | None = None
        self._handed = False

    @property
    def done(self) -> bool:
        """True if `result` would not wait."""
        delivered = self._delivery is not None and self._delivery.done()
        return self._handed and (delivered or self._failure is not None)

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement. Raises the delivery's error, or TimeoutError.

        timeout_s: of the delivery; an outcome that is there is told at any timeout, as 0 asks for.
        """
        return self._producer._thread.run(self._wait(), None if self.done else timeout_s)

    async def _wait(self) -> RecordMetadata:
        while not self._handed:
            await self._producer._handed_over()
        if self._failure is not None:
            self._producer._forget_failure(self._failure)
            raise self._failure
        assert self._delivery is not None
        return await self._delivery


class ArrowFuture:
    """Returned by `Producer.queue_arrow`. `result` waits for the acknowledgements; drop none before it is asked."""

    __slots__ = ("_delivery", "_producer")

    def __init__(self, producer: QueueingProducer, delivery: ArrowDelivery) -> None:
        self._producer = producer
        self._delivery = delivery

    @property
    def done(self) -> bool:
        """True if `result` would not wait."""
        return self._delivery.done

    def result(self, timeout_s: float | None = None) -> list[DeliveredRange]:
        """Raises the first error, after all batches have ended; TimeoutError. timeout_s: as of SendFuture."""
        return self._producer._thread.run(self._wait(), None if self.done else timeout_s)

    async def _wait(self) -> list[DeliveredRange]:
        return await self._delivery


class QueueingProducer(Blocking):
    """`send` only appends to a queue; the loop takes many records from it at a time."""

    _client: AsyncProducer

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(lambda: edge.producer(dict(config or {}), **options))
        self._queue: deque[Queued] = deque()
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._scheduled = False
        self._queued = self._handed = 0  # records so far: queued by callers; given to the asynchronous producer
        self._moved = asyncio.Event()  # set whenever `_handed` grows
        self._draining: asyncio.Task[None] | None = None
        self._unseen: Exception | None = None

    @property
    def stats(self) -> ProducerStats:
        stats: ProducerStats = self._client.stats
        return stats

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> SendFuture:
        """See AsyncProducer.send. Interceptors and serializers run here, in the caller's thread, so SerializationFailed
        is raised here; `on_delivery` runs on the clients' loop: it may send, and must not wait for a client."""
        self._client.check_sending()
        given = self._client.prepared(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        future = SendFuture(self)
        with self._lock:
            while len(self._queue) >= HANDOVER_LIMIT and not self._thread.is_current:
                self._room.wait()
            self._queue.append((future, given, on_delivery))
            self._queued += 1
            wake = not self._scheduled
            self._scheduled = True
        if wake:
            self._thread.loop.call_soon_threadsafe(self._start_draining)
        return future

    def send_arrow(
        self, topic: str, columns: Any, partition: int | None = None, *, timeout_s: float | None = None
    ) -> list[DeliveredRange]:
        """Send the rows of a Table or RecordBatch and wait until all are acknowledged."""

        async def send() -> list[DeliveredRange]:
            return await (await self._client.send_arrow(topic, columns, partition))

        return self._thread.run(send(), timeout_s)

    def queue_arrow(self, topic: str, columns: Any, **how: Any) -> ArrowFuture:
        """As `send_arrow`, but waits only until the rows are queued. how: as there."""
        delivery = self._thread.run(self._client.send_arrow(topic, columns, **how))
        return ArrowFuture(self, delivery)

    def partition_count(self, topic: str, timeout_s: float) -> int:
        """How many partitions the topic has, as this client knows it. Raises Unavailable, RequestFailed."""
        return self._thread.run(self._client.partition_count(topic, int(timeout_s * 1000)))

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record sent so far has been acknowledged or has failed."""
        self._thread.run(self._flush(), timeout_s)

    # --- transactions; see AsyncProducer ---

    def transaction(self) -> BlockingTransaction:
        """`with producer.transaction():` commits at the end of the block, and aborts on an exception."""
        return BlockingTransaction(self._thread, self._client.transaction, self._handed_over)

    def commit(self) -> None:
        self._thread.run(self._after_handover(self._client.commit))

    def abort(self) -> None:
        self._thread.run(self._after_handover(self._client.abort))

    async def _after_handover(self, step: Callable[[], Awaitable[None]]) -> None:
        await self._handed_over()
        await step()

    def close(self) -> None:
        """Flush and stop. Raises the first error that the caller has not seen."""
        if self._closed:
            return
        self._thread.run(self._handed_over())
        super().close()
        if self._unseen is not None:
            raise self._unseen

    def abandon(self) -> None:
        """Stop at once, in place of `close`: what is queued is dropped, and what is in flight may be stored or not."""
        if not self._closed:
            self._closed = True
            self._thread.run(self._client.close(raise_errors=False, flush=False))

    def leave_open(self) -> None:
        """Flush and stop, in place of `close`; the transaction stays open, for somebody else to end."""
        if not self._closed:
            self._thread.run(self._handed_over())
            self._closed = True
            self._thread.run(self._client.close(end_transaction=False))

    async def _flush(self) -> None:
        await self._handed_over()
        await self._client.flush()

    async def _handed_over(self) -> None:
        """Wait until the asynchronous producer has every record queued so far; later records are not waited for."""
        until = self._queued
        while self._handed < until:
            self._moved.clear()
            await self._moved.wait()

    def _forget_failure(self, error: Exception) -> None:
        if self._unseen is error:
            self._unseen = None

    def _start_draining(self) -> None:
        assert self._draining is None
        self._draining = self._thread.loop.create_task(self._drain(), name="producer handover")

    async def _drain(self) -> None:
        while taken := self._take():
            for future, given, on_delivery in taken:
                try:
                    future._delivery = await self._client.send_bytes(*given, on_delivery)
                except Exception as error:  # concerns this one record, not the loop
                    future._failure = error
                    self._client.refused(given[0], given[4], error, on_delivery)
                    if not self._client.fail_transaction(error):
                        self._unseen = self._unseen or error
                future._handed = True
                self._handed += 1
                self._moved.set()

    def _take(self) -> list[Queued]:
        """The oldest queued records. If there are none, the next `send` starts another task."""
        with self._lock:
            taken = [self._queue.popleft() for _ in range(min(len(self._queue), HANDOVER_RECORDS))]
            if not taken:
                self._scheduled = False
                self._draining = None
            self._room.notify_all()
        return taken


class BlockingTransaction:
    """`with producer.transaction():`. handed_over: waits until the loop has every record of the block."""

    def __init__(
        self, thread: LoopThread, scope: Callable[[], TransactionScope], handed_over: Callable[[], Awaitable[None]]
    ) -> None:
        self._thread, self._make, self._handed_over = thread, scope, handed_over
        self._scope: TransactionScope | None = None

    def __enter__(self) -> None:
        self._thread.run(self._begin())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.run(self._end(error))

    async def _begin(self) -> None:
        self._scope = self._make()
        await self._scope.__aenter__()

    async def _end(self, error: BaseException | None) -> None:
        assert self._scope is not None
        await self._handed_over()
        await self._scope.end(error)
