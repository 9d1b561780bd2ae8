"""The clients of the virtual day: producers that come and go, a reader, an operator. Each call ends in bounded time."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.settings import BOOTSTRAP
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S
from jepsen.soak.cluster.cluster import DayCluster
from jepsen.soak.cluster.topics import PARTITIONS, REPLICAS, Acked, Kind, Part
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.producer import AsyncProducer
from quorumlog.ids import NodeId
from quorumlog.rpc.transport import RpcError, Transport
from quorumlog.wire.routing import RoutingTransport

T = TypeVar("T")
HOST = "client"
CALL_LIMIT_S = 600
TOMBSTONE = 0.1
OPTIONS: dict[str, Any] = {"request_timeout_ms": 30_000, "retry_backoff_ms": 200, "retry_backoff_max_ms": 2_000}
FAILURES = (QuorumlogError, RpcError)


class Clients:
    """counts: acked, unanswered, producers, reads, records_read, refused."""

    def __init__(self, cluster: DayCluster, rng: random.Random) -> None:
        self._cluster, self._rng = cluster, rng
        self._scheduler = cluster.scheduler
        self.loop = SimLoop(cluster.scheduler, HOST)
        SimSockets(cluster.network, HOST, self.loop)
        cluster.clients[HOST] = self.loop
        self._clock = SimClock(cluster.scheduler)
        self._producer: AsyncProducer | None = None
        self._number = 0
        self.acked = self.unanswered = self.producers = self.reads = self.records_read = self.refused = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        result: T = self.loop.run_until_complete(coroutine, self._scheduler.now_ns + CALL_LIMIT_S * NS_PER_S)
        self.loop.forget_done_tasks()
        return result

    @property
    def _now_ms(self) -> int:
        return self._scheduler.now_ns // NS_PER_MS

    # --- records ---

    async def write(self, parts: Sequence[Part]) -> None:
        """One record for each; all are answered, or given up, when it returns."""
        if self._producer is None:
            self.producers += 1
            self._producer = AsyncProducer(
                self._transport(), clock=self._clock, rng=self._rng, bootstrap_servers=BOOTSTRAP,
                delivery_timeout_ms=60_000, max_block_ms=60_000, **OPTIONS,
            )  # fmt: skip
        sent = []
        for part in parts:
            self._number += 1
            key = b"k%d" % self._rng.randrange(part.kind.keys) if part.kind.keys else None
            value: bytes | None = b"%d/" % self._number + b"v" * self._rng.randrange(150)
            if key is not None and self._rng.random() < TOMBSTONE:
                value = None
            size = part.note_sent(self._now_ms, key, value)
            try:
                sent.append(
                    (part, key, value, size, await self._producer.send(part.kind.name, value, key, None, part.index))
                )
            except QuorumlogError:
                self.refused += 1
        failed = False
        for part, key, value, size, delivery in sent:
            try:
                record = await delivery
            except QuorumlogError:
                self.unanswered += 1
                failed = True
                continue
            self.acked += 1
            part.acked.append(Acked(self._now_ms, record.offset, key, value, size))
        if failed:
            await self.new_producer()

    async def new_producer(self) -> None:
        """The next write begins with one."""
        if self._producer is not None:
            await self._producer.close(raise_errors=False)
            self._producer = None

    async def read(self, part: Part) -> None:
        """Read the partition from its start to its present end, and compare. Raises Broken."""
        found: dict[int, tuple[bytes | None, bytes | None]] = {}
        consumer = AsyncConsumer(
            self._transport(), clock=self._clock, rng=self._rng, bootstrap_servers=BOOTSTRAP,
            default_api_timeout_ms=60_000, **OPTIONS,
        )  # fmt: skip
        async with consumer:
            await consumer.assign([(part.kind.name, part.index, "earliest")], stop="latest")
            start = await consumer.position(part.kind.name, part.index)
            while not consumer.finished:
                for record in await consumer.poll(timeout_ms=5_000):
                    found[record.offset] = (record.key, record.value)
        part.check(found, start, self._now_ms)
        self.reads += 1
        self.records_read += len(found)

    # --- an operator ---

    async def create(self, kind: Kind) -> None:
        async with self._admin() as admin:
            await admin.create_topic(kind.name, PARTITIONS, REPLICAS, kind.configs)

    async def delete(self, kind: Kind) -> None:
        async with self._admin() as admin:
            await admin.delete_topic(kind.name)

    async def configure(self, kind: Kind, key: str, value: str | None) -> None:
        async with self._admin() as admin:
            await admin.alter_configs(kind.name, {key: value})

    async def move(self, part: Part, broker: NodeId, path: str) -> None:
        async with self._admin() as admin:
            await admin.alter_replica_log_dirs({(part.kind.name, part.index, broker): path})

    # --- details ---

    def _admin(self) -> AsyncAdmin:
        return AsyncAdmin(
            self._transport(), clock=self._clock, rng=self._rng, bootstrap_servers=BOOTSTRAP,
            default_api_timeout_ms=60_000, **OPTIONS,
        )  # fmt: skip

    def _transport(self) -> Transport:
        grpc = SimTransport(self._cluster.network, HOST, self.loop, None, on_crash=_crashed)
        return RoutingTransport(on_crash=_crashed, grpc=grpc) if self._cluster.lane else grpc


def _crashed(name: str, error: BaseException) -> None:
    raise AssertionError(f"{name} crashed") from error
