"""Copies the partitions of a foreign log into a new topic, replica by replica (decision 37).

One task for each replica asks its broker where the replica ends, sends what follows, and seals it. When all are sealed,
the controller gives the partitions their leaders in one change. Everything may be interrupted: the next import of the
same source finds the topic and what its replicas hold, and goes on.

A replica that holds something must hold a beginning of this source: it ends where a batch of the source ends, and its
last checksum is that batch's. Otherwise nothing is sent (`OtherSource`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from quorumlog.client.cluster.link import Link, check
from quorumlog.client.errors import QuorumlogError, RequestFailed
from quorumlog.errors import ErrorCode
from quorumlog.ids import Epoch, NodeId, Offset, Uuid
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.imports import (
    BeginImportRequest,
    BeginImportResponse,
    FinishImportRequest,
    FinishImportResponse,
    ImportedPartition,
    ImportRecordsRequest,
    ImportRecordsResponse,
    SealedReplica,
)
from quorumlog.nursery import Nursery
from quorumlog.records import BatchHeader

CHUNK_BYTES = 1 << 20  # of records in one request, or one batch if that is larger
REPLICAS_AT_ONCE = 8  # that records are sent to
STILL_MS = 60_000  # an import that made no progress for so long gives up; it can be run again
SEAL_TRIES = 10  # of all replicas, after brokers that have started again meanwhile
ASK_ONLY: Offset = -1


class OtherSource(QuorumlogError):
    """The topic takes an import already, and of something else."""


class Source(Protocol):
    """One partition to copy. size: bytes. batches: every batch that ends above an offset, with its bytes, in order."""

    @property
    def start_offset(self) -> Offset: ...
    @property
    def log_start(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset: ...
    @property
    def last_epoch(self) -> Epoch: ...
    @property
    def max_producer_id(self) -> int: ...
    @property
    def size(self) -> int: ...
    def batches(self, from_offset: Offset) -> Iterator[tuple[BatchHeader, bytes]]: ...


class _Chunk(NamedTuple):
    records: bytes
    end_offset: Offset  # exclusive


class TopicImport:
    """on_progress: called with the bytes that all replicas have taken, and those that they will take."""

    def __init__(
        self, link: Link, name: str, sources: Sequence[Source], on_progress: Callable[[int, int], None]
    ) -> None:
        self._link, self._name, self._sources, self._on_progress = link, name, sources, on_progress
        self._taken: dict[tuple[int, NodeId], int] = {}  # bytes, by replica
        self._replicas = 1
        self._topic_id: Uuid = b""
        self._at_once = asyncio.Semaphore(REPLICAS_AT_ONCE)

    async def run(self, replication: int, configs: Mapping[str, str]) -> BeginImportResponse:
        """Returns once every partition has a leader. Raises RequestFailed, OtherSource, Unavailable."""
        began = await self._begin(replication, configs)
        self._topic_id = began.topic_id
        self._replicas = len(began.assignments[0].broker_ids)
        replicas = [(one.partition, node) for one in began.assignments for node in one.broker_ids]
        for tries_left in reversed(range(SEAL_TRIES)):
            sealed = await self._copy_all(replicas)
            try:
                await self._finish(sealed)
            except RequestFailed as error:
                if error.code not in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.REPLICA_NOT_AVAILABLE) or not tries_left:
                    raise
            else:
                break
        return began

    async def _begin(self, replication: int, configs: Mapping[str, str]) -> BeginImportResponse:
        request = BeginImportRequest(
            name=self._name,
            replication_factor=replication,
            configs=tuple(ConfigEntry(name=name, value=value) for name, value in sorted(configs.items())),
            last_epochs=tuple(source.last_epoch for source in self._sources),
            next_producer_id=max(source.max_producer_id for source in self._sources) + 1,
            timeout_ms=self._link.options.request_timeout_ms,
        )

        async def ask() -> BeginImportResponse:
            response: BeginImportResponse = await self._link.call_any(request)
            check(response)
            return response

        return await self._link.until(ask, STILL_MS)  # type: ignore[no-any-return]

    async def _finish(self, sealed: Mapping[tuple[int, NodeId], ImportRecordsResponse]) -> None:
        partitions = tuple(
            ImportedPartition(
                index=index,
                replicas=tuple(
                    SealedReplica(broker_id=node, broker_epoch=told.broker_epoch, end_offset=told.end_offset)
                    for (of_index, node), told in sealed.items()
                    if of_index == index
                ),
            )
            for index in range(len(self._sources))
        )
        request = FinishImportRequest(
            topic_id=self._topic_id, partitions=partitions, timeout_ms=self._link.options.request_timeout_ms
        )

        async def ask() -> None:
            response: FinishImportResponse = await self._link.call_any(request)
            check(response)

        await self._link.until(ask, self._link.options.default_api_timeout_ms)

    async def _copy_all(
        self, replicas: Sequence[tuple[int, NodeId]]
    ) -> dict[tuple[int, NodeId], ImportRecordsResponse]:
        """The brokers' answers to the seals. The first failure of a replica ends the copying of all."""
        failures: list[BaseException] = []

        def failed(_name: str, error: BaseException) -> None:
            failures.append(error)
            for task in tasks:
                task.cancel()

        nursery = Nursery(failed)
        tasks = [nursery.start(self._copy(index, node), f"copy {index} to {node}") for index, node in replicas]
        try:
            return {replica: await task for replica, task in zip(replicas, tasks, strict=True)}
        except asyncio.CancelledError:
            if failures:
                raise failures[0] from None
            raise
        finally:
            await nursery.close()

    async def _copy(self, index: int, node: NodeId) -> ImportRecordsResponse:
        """The broker's answer to the seal."""
        source = self._sources[index]
        async with self._at_once:
            while True:
                held = await self._send(node, ImportRecordsRequest(topic_id=self._topic_id, index=index, records=b""))
                end = self._agreed_end(source, index, node, held)
                for chunk in _chunks(source, end):
                    request = ImportRecordsRequest(
                        topic_id=self._topic_id, index=index, end_offset=end, start_offset=source.start_offset,
                        records=chunk.records,
                    )  # fmt: skip
                    if (await self._send(node, request)).end_offset != chunk.end_offset:
                        break  # it has started again and lost what was not synced
                    self._took((index, node), len(chunk.records))
                    end = chunk.end_offset
                request = ImportRecordsRequest(
                    topic_id=self._topic_id, index=index, end_offset=end, start_offset=source.start_offset,
                    records=b"", seal_at_log_start=source.log_start,
                )  # fmt: skip
                told = await self._send(node, request) if end == source.end_offset else held
                if told.sealed and told.end_offset == source.end_offset:
                    self._took((index, node), source.size - self._taken.get((index, node), 0))
                    return told

    def _took(self, replica: tuple[int, NodeId], size: int) -> None:
        self._taken[replica] = self._taken.get(replica, 0) + size
        total = sum(source.size for source in self._sources) * self._replicas
        self._on_progress(sum(self._taken.values()), total)

    def _agreed_end(self, source: Source, index: int, node: NodeId, held: ImportRecordsResponse) -> Offset:
        """Where to go on. Raises OtherSource."""
        if held.end_offset == held.start_offset <= source.start_offset:
            return source.start_offset
        last = _last_of(source, held.end_offset)
        if last is None or last.next_offset != held.end_offset or last.crc != held.last_checksum:
            raise OtherSource(
                f"{self._name}-{index} on broker {node} holds a part of something else, up to offset "
                f"{held.end_offset}; delete the topic {self._name} and import again"
            )
        return held.end_offset

    async def _send(self, node: NodeId, request: ImportRecordsRequest) -> ImportRecordsResponse:
        async def ask() -> ImportRecordsResponse:
            if node not in self._link.cache.brokers:
                await self._link.refresh([])
            response: ImportRecordsResponse = await self._link.call_node(node, request)
            if response.error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise RequestFailed(ErrorCode.REPLICA_NOT_AVAILABLE, response.error_message)  # it has not heard of it
            check(response)
            return response

        return await self._link.until(ask, STILL_MS)  # type: ignore[no-any-return]


def _chunks(source: Source, from_offset: Offset) -> Iterator[_Chunk]:
    parts: list[bytes] = []
    size, end = 0, from_offset
    for header, data in source.batches(from_offset):
        if parts and size + len(data) > CHUNK_BYTES:
            yield _Chunk(b"".join(parts), end)
            parts, size = [], 0
        parts.append(data)
        size, end = size + len(data), header.next_offset
    if parts:
        yield _Chunk(b"".join(parts), end)


def _last_of(source: Source, end: Offset) -> BatchHeader | None:
    """The batch of the source that holds the offset before `end`, or the first one after it."""
    return next((header for header, _ in source.batches(end - 1)), None)
