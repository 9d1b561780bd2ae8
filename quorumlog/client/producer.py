"""The asynchronous producer: chooses partitions, queues records, returns deliveries; the sender does the rest.

    async with AsyncProducer(transport, bootstrap_servers="localhost:9092") as producer:
        delivery = await producer.send("orders", b"{}", key=b"u-1")
        print((await delivery).offset)

It is idempotent by default: the log holds each acknowledged record once, and each partition's records in the order of
`send`, in spite of retries. `send` waits only for memory and for the topic's first metadata. A failure is not lost if
its delivery is never awaited: `close` raises the first error that the caller has not seen.

With a `transactional_id`, records are sent in transactions: `async with producer.transaction():`.
"""

from __future__ import annotations

import asyncio
import operator
import random
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any

from quorumlog.client.batches.accumulator import Accumulator, Batch, Headers, record_bytes
from quorumlog.client.batches.delivery import ArrowDelivery, BatchFate, Delivery, UnseenErrors
from quorumlog.client.batches.numbering import MAX_IN_FLIGHT, Identity
from quorumlog.client.batches.partitioning import StickyPartitioner, TableTurns
from quorumlog.client.batches.record_parts import HeadersLike, checked_timestamp, header_pairs, raw_bytes
from quorumlog.client.cluster.link import Link
from quorumlog.client.cluster.topic_limit import NO_LIMIT, BatchLimit, ask_limit
from quorumlog.client.errors import BufferExhausted, ClientClosed, ConfigError, RecordTooLarge, RequestFailed
from quorumlog.client.extras import importing_arrow
from quorumlog.client.group_metadata import GroupMetadata
from quorumlog.client.options import ProducerOptions, parse_options
from quorumlog.client.plugins.acknowledgements import Acknowledgements, OnDelivery
from quorumlog.client.plugins.sending import SendArguments, preparation
from quorumlog.client.sender import Sender
from quorumlog.client.transactions.driver import BegunTransaction, TransactionDriver, TransactionScope
from quorumlog.client.transactions.machine import TransactionMachine
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import Uuid
from quorumlog.nursery import Nursery
from quorumlog.records import BATCH_OVERHEAD, UnsealedBatch
from quorumlog.rpc.transport import Transport

Given = tuple[str, Any, Any, HeadersLike | None, int | None, int | None]
"""Arguments of `send_bytes`, in their order."""


class ProducerStats:
    """Counts since the start. duplicates_possible: records of which the log may hold more than one copy."""

    __slots__ = ("acknowledged", "duplicates_possible", "failed", "unknown_outcomes")

    def __init__(self) -> None:
        self.acknowledged = 0
        self.failed = 0
        self.duplicates_possible = 0
        self.unknown_outcomes = 0  # tries of whole batches


class AsyncProducer:
    """transport, clock, rng: the edges; `quorumlog.client.real_edges` makes the real ones. options: ProducerOptions.

    begun: it sends in this transaction, and neither begins nor ends one; `close` leaves it open.
    """

    def __init__(
        self,
        transport: Transport,
        config: Mapping[str, Any] | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        begun: BegunTransaction | None = None,
        **options: Any,
    ) -> None:
        if begun is not None:
            options = {**options, "transactional_id": begun.transactional_id}
        self.options = parse_options(ProducerOptions, config, options)
        self.stats = ProducerStats()
        self._clock = clock
        self._link = Link(transport, self.options, clock=clock, rng=rng)
        self._batch_size = min(self.options.batch_size, self.options.max_request_size)
        self._accumulator = Accumulator(
            batch_size=self._batch_size,
            buffer_memory=self.options.buffer_memory,
            delivery_timeout_ms=self.options.delivery_timeout_ms,
            linger_ms=self.options.linger_ms,
            idempotent=self.options.idempotent,
            in_flight_limit=min(MAX_IN_FLIGHT, self.options.max_in_flight_requests_per_connection),
            transactional=self.options.transactional_id is not None,
        )
        self._nursery = Nursery(self._crashed)
        self._sender = Sender(self._link, self._accumulator, self.options, self._nursery)
        self._begun = begun
        self._transactions = self._sender.transactions = self._make_transactions()
        self._partitioner = StickyPartitioner(rng, self._batch_size)
        self._preparation = preparation(self.options)
        self._acknowledgements = Acknowledgements(self.options.on_delivery, tuple(self.options.interceptors))
        self._is_plain = self._preparation is None and not self._acknowledgements.hears_all
        self._fates: dict[Batch, BatchFate] = {}
        self._changed = asyncio.Event()  # set whenever a batch ends
        self._unseen_errors = UnseenErrors()
        self._started = False
        self._closed = False
        self._failure: ClientClosed | None = None  # an error in the client itself; nothing is sent after it
        self._table_turns = TableTurns(rng)

    def _make_transactions(self) -> TransactionDriver | None:
        if self.options.transactional_id is None:
            return None
        machine = TransactionMachine(self.options.transactional_id, self.options.transaction_timeout_ms)
        driver = TransactionDriver(
            self._link, machine, self._accumulator, self._nursery,
            max_block_ms=self.options.max_block_ms, flush=self.flush, wake=self._sender.wake,
        )  # fmt: skip
        if self._begun is not None:
            driver.join(self._begun)
        return driver

    async def __aenter__(self) -> AsyncProducer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(raise_errors=error is None)

    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Coroutine[Any, Any, Delivery]:
        """Queue one record. An invalid record is refused here, so that it cannot fail a batch with others.

        key, value: bytes, str or None; with serializers, what they take. on_delivery: told how the record ended, on the
        event loop, in the order of its partition; in place of the option. It is told of a refusal, too.

        Raises RecordTooLarge, BufferExhausted, Unavailable, RequestFailed (unknown partition, invalid timestamp),
        SerializationFailed, TypeError, UnicodeEncodeError; with transactions, also TransactionStateError (none is
        open), TransactionFailed, FatalTransactionError.
        """
        if self._is_plain and on_delivery is None:
            return self.send_bytes(topic, value, key, headers, partition, timestamp_ms)
        return self._send_heard(topic, value, key, headers, partition, timestamp_ms, on_delivery)

    async def _send_heard(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: HeadersLike | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        self._begin()
        self.check_sending()
        given = SendArguments(topic, value, key, headers, partition, timestamp_ms)
        try:
            if self._preparation is not None:
                given = await self._preparation.prepare_off_loop(given)
            return await self.send_bytes(*given, on_delivery)
        except Exception as error:
            self.refused(given.topic, given.partition, error, on_delivery)
            raise

    def prepared(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: HeadersLike | None,
        partition: int | None,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
    ) -> Given:
        """What `send_bytes` takes. From any thread. Raises SerializationFailed, after `on_delivery` was told."""
        if self._preparation is None:
            return topic, value, key, headers, partition, timestamp_ms
        try:
            return self._preparation.prepare(SendArguments(topic, value, key, headers, partition, timestamp_ms))
        except Exception as error:
            self.refused(topic, partition, error, on_delivery)
            raise

    def refused(self, topic: str, partition: int | None, error: Exception, on_delivery: OnDelivery | None) -> None:
        """A record was not queued."""
        self._acknowledgements.refused(topic, partition, error, on_delivery)

    async def send_bytes(
        self,
        topic: str,
        value: bytes | str | None,
        key: bytes | str | None = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """As `send`, behind interceptors and serializers."""
        self._begin()
        self.check_sending()
        raw_key, raw_value = raw_bytes(key, "key"), raw_bytes(value, "value")
        pairs = header_pairs(headers) if headers else ()
        if timestamp_ms is not None:
            timestamp_ms = checked_timestamp(timestamp_ms)
        size = record_bytes(raw_key, raw_value, pairs)
        if size + BATCH_OVERHEAD > self.options.max_request_size:
            raise self._too_large(topic, size)
        if topic not in self._link.cache.topics:
            await self._link.topic_ready(topic, self.options.max_block_ms)
            self._begin()
        if not self._accumulator.has_room(size):
            await self._wait_for_room(size)
        return self._queue(topic, raw_key, raw_value, pairs, partition, timestamp_ms, size, on_delivery)

    def _queue(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp_ms: int | None,
        size: int,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        self.check_sending()  # the one above may have ended meanwhile
        count = self._link.cache.topics[topic].partition_count
        if partition is None and self.options.partitioner is None:
            partition = self._partitioner.partition(topic, key, size, count)
        else:
            if partition is None:
                partition = operator.index(self.options.partitioner(topic, key, value, count))
            self._check_partition(topic, partition, count)
        when_ms = self._clock.wall_ms() if timestamp_ms is None else timestamp_ms
        batch, index, new = self._accumulator.append(
            topic,
            partition,
            when_ms,
            key,
            value,
            headers,
            size=size,
            now_ms=self._clock.now_ms(),
            on_done=self._batch_done,
        )
        if new:
            self._fates[batch] = BatchFate(asyncio.get_running_loop())
            self._sender.wake()
        if on_delivery is not None or self._acknowledgements.hears_all:
            self._acknowledgements.add(batch, index, when_ms, on_delivery)
        return Delivery(self._fates[batch], index, when_ms)

    def metrics(self) -> dict[str, int]:
        """What this producer counts, read now; by Kafka's names where it has them, with the unit in the name.

        A record that was acknowledged or has failed counts once; record-retry-total counts each further try of it.
        """
        accumulator, sender = self._accumulator, self._sender
        return {
            "record-send-total": self.stats.acknowledged,
            "record-error-total": self.stats.failed,
            "record-retry-total": sender.retried_records,
            "records-possibly-duplicated-total": self.stats.duplicates_possible,
            "produce-request-total": sender.produce_requests,
            "requests-in-flight": sender.in_flight,
            "batches-unfinished": accumulator.unfinished,
            "buffer-total-bytes": self.options.buffer_memory,
            "buffer-available-bytes": max(0, self.options.buffer_memory - accumulator.buffered_bytes),
            "produce-throttle-time-ms": sender.throttle_ms,
            **self._link.metrics(),
        }

    async def partition_count(self, topic: str, timeout_ms: int) -> int:
        """Of the topic, as this client knows it; it makes none. Raises NoSuchTopic, Unavailable, RequestFailed."""
        self._begin()
        await self._link.topic_ready(topic, min(timeout_ms, self.options.max_block_ms), create=False)
        self._begin()
        return self._link.cache.topics[topic].partition_count

    async def topic_id(self, topic: str) -> Uuid:
        """Of the last topic of this name that this client knows, into which it sends; empty: the cluster has no ids."""
        return self._link.cache.life_of(topic).topic_id

    async def is_ours(self, topic: str) -> bool:
        """True if a broker of quorumlog told the topic's metadata: Apache Kafka does not say how new they are.

        Only of a client that asks by gRPC: the lane is Kafka's protocol on both sides.
        """
        return self._link.cache.life_of(topic).metadata_offset >= 0

    async def batch_limit(self, topic: str) -> BatchLimit:
        """What the topic takes at most at once. NO_LIMIT if the cluster does not say."""
        self._begin()
        return await ask_limit(self._link, topic)

    async def send_arrow(
        self,
        topic: str,
        columns: Any,
        partition: int | None = None,
        *,
        keyless: int | None = None,
        limit: BatchLimit = NO_LIMIT,
        all_or_none: bool = False,
    ) -> ArrowDelivery:
        """Queue the rows of a pyarrow Table or RecordBatch. Columns: `value`; optional `key`, `headers`, `timestamp`
        (ms or a timestamp type) and `partition`.

        A row that names no partition goes to the one of its key's hash. A row without a key goes to `keyless`; without
        that, such rows go to the partitions in turn, in equal ranges of at most a batch, so that over many tables all
        partitions get as much. Rows of one partition keep their order. A row larger than `max_request_size` or `limit`
        is not sent and fails the delivery (RecordTooLarge); the others are sent. all_or_none: all rows are encoded
        before one is queued, and RecordTooLarge is raised here.
        """
        with importing_arrow("send_arrow"):  # pyarrow and numpy: only here
            from quorumlog.client.batches.arrow_split import ArrowColumns, split

        self._begin()
        self.check_sending()
        await self._link.topic_ready(topic, self.options.max_block_ms)
        self._begin()
        count = self._link.cache.topics[topic].partition_count
        given = ArrowColumns.of(columns, default_timestamp_ms=self._clock.wall_ms())
        parts: list[tuple[BatchFate, Any]] = []
        first = self._table_turns.first(topic, count)
        shares = list(split(given, count, partition, first, self._batch_size, keyless))
        self._table_turns.used(topic, len(shares), count)
        for target, _ in shares:
            self._check_partition(topic, target, count)  # check all before anything is queued
        batch_bytes = min(self._batch_size, limit.batch_bytes)
        encoded: Iterable[tuple[int, Iterable[tuple[UnsealedBatch, Any]]]] = (
            (target, given.encode(rows, batch_bytes, self.options.compression_type)) for target, rows in shares
        )
        if all_or_none:
            encoded = [(target, list(batches)) for target, batches in encoded]
            self._check_rows(topic, [unsealed for _, batches in encoded for unsealed, _ in batches], limit)
        for target, batches in encoded:
            parts.extend(await self._queue_batches(topic, target, batches, limit))
        return ArrowDelivery(parts)

    def _check_rows(self, topic: str, batches: Iterable[UnsealedBatch], limit: BatchLimit) -> None:
        for unsealed in batches:
            if unsealed.count == 1 and (refusal := self._row_refusal(topic, len(unsealed.buffer), limit)):
                raise refusal

    async def _queue_batches(
        self, topic: str, partition: int, batches: Iterable[tuple[UnsealedBatch, Any]], limit: BatchLimit
    ) -> list[tuple[BatchFate, Any]]:
        parts: list[tuple[BatchFate, Any]] = []
        for unsealed, places in batches:
            if unsealed.count == 1 and (refusal := self._row_refusal(topic, len(unsealed.buffer), limit)):
                parts.append((self._refuse_row(topic, partition, refusal), places))
                continue
            await self._wait_for_room(len(unsealed.buffer))
            self.check_sending()
            batch = self._accumulator.append_unsealed(
                topic, partition, unsealed, now_ms=self._clock.now_ms(), on_done=self._batch_done
            )
            fate = self._fates[batch] = BatchFate(asyncio.get_running_loop())
            parts.append((fate, places))
            self._sender.wake()
        return parts

    def _row_refusal(self, topic: str, size: int, limit: BatchLimit) -> RecordTooLarge | None:
        """size: of the row's own batch, compressed."""
        if size > self.options.max_request_size:
            return self._too_large(topic, size)
        if size > limit.row_bytes:
            return RecordTooLarge(
                f"a record of {size} bytes for topic {topic!r}; its max.message.bytes is {limit.row_bytes}"
            )
        return None

    def _refuse_row(self, topic: str, partition: int, refusal: RecordTooLarge) -> BatchFate:
        """A row that is too large fails at once and is not queued."""
        batch = Batch(topic, partition, self._clock.now_ms(), self._batch_done, count=1, done=True)
        batch.error = refusal
        fate = self._fates[batch] = BatchFate(asyncio.get_running_loop())
        self._batch_done(batch)
        return fate

    def _too_large(self, topic: str, size: int) -> RecordTooLarge:
        limit = self.options.max_request_size
        return RecordTooLarge(f"a record of {size} bytes for topic {topic!r}; max_request_size is {limit}")

    # --- transactions; each call raises ConfigError without `transactional_id` ---

    @property
    def transactions(self) -> TransactionDriver:
        self._begin()
        if self._transactions is None:
            raise ConfigError("this producer has no transactions: give it a transactional_id")
        if self._begun is not None:
            raise ConfigError("this producer's transaction was begun elsewhere, and is ended there")
        return self._transactions

    def transaction(self) -> TransactionScope:
        """`async with producer.transaction():` commits at the end of the block, and aborts on an exception."""
        return TransactionScope(self.transactions)

    async def init_transactions(self) -> None:
        """Fence earlier producers of this transactional id, and end their transaction. The first `begin` does it, too.

        Raises TransactionTimeout, FatalTransactionError.
        """
        await self.transactions.init()

    @property
    def identity(self) -> Identity:
        """Producer id and epoch, once `init_transactions` has returned."""
        found = self.transactions.machine.identity
        assert found is not None, "init_transactions has not returned yet"
        return found

    async def begin(self) -> None:
        """Raises TransactionStateError if a transaction is open, and what `init_transactions` raises."""
        await self.transactions.begin()

    async def commit(self) -> None:
        """Wait for every record of the transaction, then commit. Readers of committed records see all of it, or none.

        Raises TransactionFailed (abort it), TransactionTimeout (call it again), FatalTransactionError (close the
        producer), TransactionStateError.
        """
        await self.transactions.commit()

    async def abort(self) -> None:
        """No reader of committed records sees anything of the transaction. Deliveries that wait raise
        TransactionAborted. Raises TransactionTimeout (call it again), FatalTransactionError, TransactionStateError."""
        await self.transactions.abort()

    async def send_offsets(self, offsets: Mapping[tuple[str, int], int], group: GroupMetadata) -> None:
        """Commit a consumer group's offsets with the transaction. offsets: by topic and partition, the next to read.

        group: `consumer.group_metadata()`; a member that the group has replaced is refused (KIP-447).
        Raises TransactionFailed (abort it), FatalTransactionError, TransactionStateError, ConfigError.
        """
        await self.transactions.send_offsets(offsets, group)

    async def flush(self) -> None:
        """Wait until every record queued so far has been acknowledged or has failed."""
        if not self._started:
            return
        self._sender.flushing(True)
        try:
            for fate in list(self._fates.values()):
                while not fate.done:
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            self._sender.flushing(False)

    async def close(self, *, raise_errors: bool = True, flush: bool = True, end_transaction: bool = True) -> None:
        """Flush and stop. Idempotent. raise_errors: raise the first error that the caller has not seen. flush: False
        drops what is queued and waits for no answer: what is in flight may be stored or not. end_transaction: abort
        the one that is open; False leaves it to somebody else who knows its id, producer id and epoch."""
        if self._closed:
            return
        try:
            if end_transaction and self._begun is None and self._transactions is not None and self._failure is None:
                await self._transactions.close()
            if flush:
                await self.flush()
        finally:
            self._closed = True
            await self._nursery.close()
            self._accumulator.fail_all(lambda batch: ClientClosed("the producer was closed"), under_way=True)
            await self._link.close()
        error = self._unseen_errors.first()
        if raise_errors and error is not None:
            raise error

    def _begin(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise ClientClosed("the producer is closed")
        if not self._started:
            self._started = True
            self._sender.start()

    def check_sending(self) -> None:
        """Raises unless a record can join the open transaction; without transactions it always can."""
        if self._transactions is not None:
            self._transactions.machine.check_open()

    def fail_transaction(self, error: Exception) -> bool:
        """A record of the open transaction was refused after `send` had returned. False: there are no transactions."""
        if self._transactions is not None:
            self._transactions.failed(error)
        return self._transactions is not None

    def _check_partition(self, topic: str, partition: int, count: int) -> None:
        if not 0 <= partition < count:
            raise RequestFailed(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic!r} has partitions 0 to {count - 1}, not {partition}"
            )

    async def _wait_for_room(self, size: int) -> None:
        if self._accumulator.has_room(size):
            return
        self._sender.wake()
        try:
            async with asyncio.timeout(self.options.max_block_ms / 1000):
                while not self._accumulator.has_room(size):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise BufferExhausted(
                f"buffer_memory ({self.options.buffer_memory} bytes) stayed full for {self.options.max_block_ms} ms"
            ) from error
        self._begin()

    def _batch_done(self, batch: Batch) -> None:
        fate = self._fates.pop(batch, None)
        self.stats.unknown_outcomes += batch.unknown_outcomes
        if batch.error is None:
            self.stats.acknowledged += batch.count
            self.stats.duplicates_possible += batch.count if batch.may_be_duplicated else 0
        else:
            self.stats.failed += batch.count
            if self._transactions is None:
                self._unseen_errors.add(fate, batch.error)
            else:
                self._transactions.failed(batch.error)  # `commit` tells it
        if fate is not None:
            fate.on_done(batch)
        self._acknowledgements.ended(batch)
        self._changed.set()

    def _crashed(self, name: str, error: BaseException) -> None:
        """An internal error: fail every batch, so that no caller waits for ever."""
        failure = ClientClosed(f"the producer's {name} failed: {error!r}")
        failure.__cause__ = error
        self._failure = self._failure or failure
        self._accumulator.fail_all(lambda batch: failure, under_way=True)
