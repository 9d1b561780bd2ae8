"""The blocking clients: the methods of the asynchronous clients, without `await`.

with Cluster("localhost:9092") as cluster:
    cluster.admin.create_topic("orders", partitions=3, replication=3, exist_ok=True)
    with cluster.producer() as producer:
        metadata = producer.send("orders", b"{}", key="u-1").result(5)
    for record in cluster.consumer("orders", start="earliest", stop="latest"):
        print(record.partition, record.offset, record.key, record.value)
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from quorumlog.client import edge
from quorumlog.client.admin import TOPIC_RESOURCE, AsyncAdmin, NewTopic
from quorumlog.client.config_change import ConfigChange
from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord, Start
from quorumlog.client.delivery import DeliveredRange, Delivery, RecordMetadata
from quorumlog.client.fetch_position import Chunk, TopicPartition
from quorumlog.client.loop_thread import loop_thread
from quorumlog.client.offsets import FoundOffset
from quorumlog.client.producer import ProducerStats
from quorumlog.client.record_parts import HeadersLike
from quorumlog.messages.admin import LogDirDescription
from quorumlog.messages.cluster import ConfigDescription, CreateTopicResult, DescribeClusterResponse, TopicMetadata
from quorumlog.messages.quorum import DescribeQuorumResponse

HANDOVER_LIMIT = 20_000  # records between the callers' threads and the loop
HANDOVER_RECORDS = 100  # taken by the loop at once: more would delay a caller, fewer cost a lock each
Self = TypeVar("Self", bound="_Blocking")


class _Blocking:
    """Creates its asynchronous client on the background loop and closes it there."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._thread = loop_thread()
        self._closed = False
        self._client = self._thread.run(self._make(make))

    @staticmethod
    async def _make(make: Callable[[], Any]) -> Any:
        return make()  # on the loop: a transport belongs to one event loop

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        if not self._closed:
            self._closed = True
            self._thread.run(self._client.close())


class SendFuture:
    """Returned by `Producer.send`. Call `result` to wait for the acknowledgement, or drop it."""

    __slots__ = ("_delivery", "_failure", "_handed", "_producer")

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._delivery: Delivery | None = None
        self._failure: Exception | None = None
        self._handed = False

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait for the acknowledgement. Raises the delivery's error, or TimeoutError."""
        return self._producer._thread.run(self._wait(), timeout_s)

    async def _wait(self) -> RecordMetadata:
        while not self._handed:
            await self._producer._handed_over()
        if self._failure is not None:
            self._producer._forget_failure(self._failure)
            raise self._failure
        assert self._delivery is not None
        return await self._delivery


class Producer(_Blocking):
    """See AsyncProducer. `send` only appends to a queue; the loop takes many records from it at a time."""

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(lambda: edge.producer(dict(config or {}), **options))
        self._queue: deque[tuple[SendFuture, tuple[Any, ...]]] = deque()
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
        value: bytes | str | None,
        key: bytes | str | None = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> SendFuture:
        future = SendFuture(self)
        with self._lock:
            while len(self._queue) >= HANDOVER_LIMIT:
                self._room.wait()
            self._queue.append((future, (topic, value, key, headers, partition, timestamp_ms)))
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
            return await (await self._client.send_arrow(topic, columns, partition))  # type: ignore[no-any-return]

        return self._thread.run(send(), timeout_s)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record sent so far has been acknowledged or has failed."""
        self._thread.run(self._flush(), timeout_s)

    def close(self) -> None:
        """Flush and stop. Raises the first error that the caller has not seen."""
        if self._closed:
            return
        self._thread.run(self._handed_over())
        super().close()
        if self._unseen is not None:
            raise self._unseen

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
            for future, arguments in taken:
                try:
                    future._delivery = await self._client.send(*arguments)
                except Exception as error:  # concerns this one record, not the loop
                    future._failure = error
                    self._unseen = self._unseen or error
                future._handed = True
                self._handed += 1
                self._moved.set()

    def _take(self) -> list[tuple[SendFuture, tuple[Any, ...]]]:
        """The oldest queued records. If there are none, the next `send` starts another task."""
        with self._lock:
            taken = [self._queue.popleft() for _ in range(min(len(self._queue), HANDOVER_RECORDS))]
            if not taken:
                self._scheduled = False
                self._draining = None
            self._room.notify_all()
        return taken


class Consumer(_Blocking):
    """See AsyncConsumer. Iterating gives records."""

    _client: AsyncConsumer

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(lambda: edge.consumer(dict(config or {}), **options))

    def assign(self, partitions: Iterable[tuple[str, int, Start]], *, stop: Start | None = None) -> None:
        self._thread.run(self._client.assign(list(partitions), stop=stop))

    def assign_topic(self, topic: str, start: Start = "earliest", *, stop: Start | None = None) -> None:
        self._thread.run(self._client.assign_topic(topic, start, stop=stop))

    @property
    def finished(self) -> bool:
        return self._client.finished

    def position(self, topic: str, partition: int) -> int:
        return self._client.position(topic, partition)

    def poll(self, max_records: int | None = None, timeout_ms: int = 500) -> list[ConsumedRecord]:
        return self._thread.run(self._client.poll(max_records, timeout_ms))

    def next_chunk(self, timeout_ms: int = 500) -> Chunk | None:
        return self._thread.run(self._client.next_chunk(timeout_ms))

    def next_arrow(self, timeout_ms: int = 500, *, include_headers: bool = False) -> tuple[Chunk, Any] | None:
        return self._thread.run(self._client.next_arrow(timeout_ms, include_headers=include_headers))

    def __iter__(self) -> Iterator[ConsumedRecord]:
        while not self.finished:
            yield from self.poll(timeout_ms=1_000)


class Admin(_Blocking):
    """See AsyncAdmin."""

    _client: AsyncAdmin

    def __init__(self, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(lambda: edge.admin(dict(config or {}), **options))

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication: int = -1,
        configs: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
        validate_only: bool = False,
    ) -> CreateTopicResult:
        return self._thread.run(
            self._client.create_topic(
                name, partitions, replication, configs, exist_ok=exist_ok, validate_only=validate_only
            )
        )

    def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool = False) -> list[CreateTopicResult]:
        return self._thread.run(self._client.create_topics(list(topics), validate_only=validate_only))

    def delete_topic(self, name: str) -> None:
        self._thread.run(self._client.delete_topic(name))

    def list_topics(self) -> list[TopicMetadata]:
        return self._thread.run(self._client.list_topics())

    def describe_topic(self, name: str) -> TopicMetadata:
        return self._thread.run(self._client.describe_topic(name))

    def describe_cluster(self) -> DescribeClusterResponse:
        return self._thread.run(self._client.describe_cluster())

    def describe_quorum(self) -> DescribeQuorumResponse:
        return self._thread.run(self._client.describe_quorum())

    def describe_configs(
        self, name: str, *, resource_type: int = TOPIC_RESOURCE, names: Sequence[str] = ()
    ) -> ConfigDescription:
        return self._thread.run(self._client.describe_configs(name, resource_type=resource_type, names=names))

    def alter_configs(
        self,
        name: str,
        changes: Mapping[str, ConfigChange],
        *,
        resource_type: int = TOPIC_RESOURCE,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.alter_configs(name, changes, resource_type=resource_type, validate_only=validate_only)
        )

    def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignment: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.create_partitions(name, count, assignment=assignment, validate_only=validate_only)
        )

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.delete_records(before))

    def describe_log_dirs(self) -> dict[int, tuple[LogDirDescription, ...]]:
        return self._thread.run(self._client.describe_log_dirs())

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        return self._thread.run(self._client.list_offsets(wanted))


class Cluster:
    """The blocking clients of one cluster, with common options."""

    def __init__(self, bootstrap_servers: str | Sequence[str] = "localhost:9092", **options: Any) -> None:
        self._options = {"bootstrap_servers": bootstrap_servers, **options}
        self._open: list[_Blocking] = []
        self._admin: Admin | None = None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self._options)
            self._open.append(self._admin)
        return self._admin

    def producer(self, **options: Any) -> Producer:
        producer = Producer(self._options, **options)
        self._open.append(producer)
        return producer

    def consumer(
        self, topic: str | None = None, *, start: Start = "earliest", stop: Start | None = None, **options: Any
    ) -> Consumer:
        """A consumer. If `topic` is given, all its partitions are assigned."""
        consumer = Consumer(self._options, **options)
        self._open.append(consumer)
        if topic is not None:
            consumer.assign_topic(topic, start, stop=stop)
        return consumer

    def close(self) -> None:
        for client in reversed(self._open):
            client.close()
        self._open.clear()
        self._admin = None
