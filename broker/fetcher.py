"""The pull loop of a follower: one per source broker and own log directory.

A round is one fetch for all partitions of the pair, then the appends of its answer in one turn of the directory's
writer, then, once these are durable, the next round, whose offsets acknowledge them. So a sick disk delays its own
directory only, and a round takes along whatever came meanwhile. Partitions that are added while a fetch waits at the
source cut it short: a new leader is asked at once.

What is told to the source is decided here, what becomes of the answer in `follower.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from broker.fetch_position import FetchPosition
from broker.reconciler import PartitionKey
from broker.replication_config import ReplicationConfig
from quorumlog.clock import Clock
from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, NodeId, Uuid
from quorumlog.messages.fetch import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError


class Source(Protocol):
    """The broker that is fetched from."""

    async def fetch(self, request: FetchRequest, timeout_ms: int) -> FetchResponse:
        """Raises RpcError, also where no address is known."""


class Sink(Protocol):
    """Where answers go (`follower.py`)."""

    def take(
        self, position: FetchPosition, answer: FetchPartitionResponse, done: Callable[[FetchPosition], None]
    ) -> None:
        """Sets `position.busy` until its work on the disk is over, then moves the position and calls `done`."""


class Fetcher:
    """`add` and `remove` from the loop at any time; `run` is one task."""

    def __init__(
        self,
        *,
        node_id: NodeId,
        source: Source,
        sink: Sink,
        clock: Clock,
        nursery: Nursery,
        config: ReplicationConfig,
        broker_epoch: Callable[[], BrokerEpoch],
        name: str,
    ) -> None:
        self._node_id = node_id
        self._source = source
        self._sink = sink
        self._clock = clock
        self._nursery = nursery
        self._config = config
        self._broker_epoch = broker_epoch
        self._name = name
        self._positions: dict[PartitionKey, FetchPosition] = {}
        self._changed = asyncio.Event()  # something may be ready, or has been added
        self._added = False
        self._call: asyncio.Task[FetchResponse | None] | None = None

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, position: FetchPosition) -> None:
        self._positions[position.key] = position
        self._added = True
        self._changed.set()

    def remove(self, key: PartitionKey) -> None:
        """Answers that are on their way or being written no longer move anything here."""
        self._positions.pop(key, None)
        self._changed.set()

    async def run(self) -> None:
        while True:
            self._changed.clear()
            self._added = False
            asked = self._ready()
            if not asked:
                await self._wait_for_change()
                continue
            response = await self._ask(asked)
            if response is not None:
                self._take(asked, response)
                await self._written(asked)

    # --- asking ---

    def _ready(self) -> list[FetchPosition]:
        """Nobody while one is still being written: the next round shall carry all."""
        now_ms = self._clock.now_ms()
        return [position for position in self._positions.values() if position.is_ready(now_ms)]

    async def _wait_for_change(self) -> None:
        waits_ms = [position.not_before_ms for position in self._positions.values() if not position.busy]
        timeout_s = None if not waits_ms else max(0, min(waits_ms) - self._clock.now_ms()) / 1000
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _ask(self, asked: Sequence[FetchPosition]) -> FetchResponse | None:
        """None where there is no answer to go by: an error on the way, or partitions were added."""
        call = self._nursery.start(self._fetch(self._request(asked)), f"{self._name}:call")
        call.add_done_callback(lambda _: self._changed.set())
        try:
            while not call.done() and not self._added:
                await self._changed.wait()
                self._changed.clear()
        finally:
            if not call.done():
                call.cancel()
        if not call.done() or call.cancelled() or call.exception() is not None:
            return None  # an unexpected exception stops the node by way of the nursery
        response = call.result()
        if response is None:
            self._back_off_all(asked)
        return response

    async def _fetch(self, request: FetchRequest) -> FetchResponse | None:
        try:
            response = await self._source.fetch(request, request.max_wait_ms + self._config.rpc_timeout_ms)
        except RpcError:
            return None
        return response if response.error_code == ErrorCode.NONE else None

    def _request(self, asked: Sequence[FetchPosition]) -> FetchRequest:
        topics: dict[Uuid, list[FetchPartition]] = {}
        for position in asked:
            topics.setdefault(position.key[0], []).append(
                FetchPartition(
                    index=position.key[1],
                    fetch_offset=position.offset,
                    max_bytes=self._config.fetch_max_bytes,
                    current_leader_epoch=position.leader_epoch,
                    last_fetched_epoch=position.last_epoch,
                    log_start_offset=position.log_start,
                )
            )
        return FetchRequest(
            max_wait_ms=self._longest_wait_ms(),
            min_bytes=self._config.fetch_min_bytes,
            max_bytes=self._config.fetch_response_max_bytes,
            topics=tuple(FetchTopic(topic_id=topic, partitions=tuple(parts)) for topic, parts in topics.items()),
            replica=ReplicaState(replica_id=self._node_id, broker_epoch=self._broker_epoch()),
        )

    def _longest_wait_ms(self) -> int:
        """Not beyond the time when somebody who backs off now may ask again."""
        now_ms = self._clock.now_ms()
        waits_ms = [one.not_before_ms - now_ms for one in self._positions.values() if one.not_before_ms > now_ms]
        return min([self._config.fetch_wait_max_ms, *waits_ms])

    def _back_off_all(self, asked: Sequence[FetchPosition]) -> None:
        now_ms = self._clock.now_ms()
        for position in asked:
            position.back_off(now_ms, self._config.fetch_backoff_ms)

    # --- the answer ---

    def _take(self, asked: Sequence[FetchPosition], response: FetchResponse) -> None:
        answers = {(topic.topic_id, answer.index): answer for topic in response.topics for answer in topic.partitions}
        for position in asked:
            if self._positions.get(position.key) is not position:
                continue  # another leadership since: the answer is for nobody
            answer = answers.get(position.key)
            if answer is None:
                position.back_off(self._clock.now_ms(), self._config.fetch_backoff_ms)
                continue
            if len(answer.records):
                self._rotate(position)
            self._sink.take(position, answer, self._done)

    def _rotate(self, position: FetchPosition) -> None:
        """Who got records asks last next time: an answer's limit must not starve anybody."""
        del self._positions[position.key]
        self._positions[position.key] = position

    def _done(self, _position: FetchPosition) -> None:
        self._changed.set()

    async def _written(self, asked: Sequence[FetchPosition]) -> None:
        """Until no answer of this round waits for the disk. Who was removed meanwhile is not waited for."""
        while any(one.busy and self._positions.get(one.key) is one for one in asked):
            self._changed.clear()
            await self._changed.wait()
