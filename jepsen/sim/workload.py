"""Clients of the simulated cluster: producers, readers by assignment, and a client that creates topics.

They run the production client on their own host and record their requests and results (jepsen.checkers.history). Every
value is unique.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from jepsen.checkers.history import History, Key, Poll, Send
from jepsen.sim.clock import SimClock
from jepsen.sim.cluster import CLIENT_HOST, SimCluster
from jepsen.sim.loop import SimLoop
from jepsen.sim.scheduler import NS_PER_S
from jepsen.sim.settings import BOOTSTRAP
from jepsen.sim.sim_socket import SimSockets
from jepsen.sim.transport import SimTransport
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
from quorumlog.client.delivery import Delivery
from quorumlog.client.errors import DeliveryTimeout, QuorumlogError, RequestFailed
from quorumlog.client.producer import AsyncProducer
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import RpcError, Transport
from quorumlog.wire.routing import RoutingTransport

PARTITIONS = 3
PRODUCER_ACKS = ("all", "all", "1")  # one producer for each
_FAST: dict[str, Any] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50, "retry_backoff_max_ms": 500}
_POLL_MS = 500


class Workload:
    """stopping: when it is set, producers and readers end soon."""

    def __init__(self, cluster: SimCluster) -> None:
        self.history = History()
        self.stopping = False
        self.acked = 0
        self.ended = 0  # number of producers and readers that have ended
        self._cluster = cluster
        self._scheduler = cluster.scheduler
        self.loop = SimLoop(cluster.scheduler, CLIENT_HOST, on_error=self._on_error)
        SimSockets(cluster.network, CLIENT_HOST, self.loop)
        self._clock = SimClock(cluster.scheduler)
        self._topics: list[str] = []  # known to exist
        self._nursery = Nursery(self._crashed)
        self._next_value = 0

    def start(self) -> None:
        self.loop.create_task(self._start())

    @property
    def idle(self) -> bool:
        return len(self._nursery) == 0

    @property
    def topics(self) -> list[str]:
        """Topics whose creation was acknowledged."""
        return list(self._topics)

    async def _start(self) -> None:
        self._nursery.start(self._create_topics(), "topics")
        for number, acks in enumerate(PRODUCER_ACKS):
            self._nursery.start(self._produce(f"p{number}", acks), f"producer {number}")
        for number in range(2):
            self._nursery.start(self._consume(f"r{number}"), f"reader {number}")

    # --- topics ---

    async def _create_topics(self) -> None:
        rng = self._rng("topics")
        number = 0
        while not self.stopping:
            name = f"t{number}"
            async with self._admin(name) as admin:
                try:
                    await admin.create_topic(name, PARTITIONS, 3, self._cluster.sizes.topic, exist_ok=True)
                except (QuorumlogError, RpcError):
                    await asyncio.sleep(0.5)
                    continue
            self.history.created.append(name)
            self._topics.append(name)
            number += 1
            if number < 3:
                await asyncio.sleep(rng.uniform(5, 15))
            else:
                return

    # --- producers ---

    async def _produce(self, name: str, acks: str) -> None:
        rng = self._rng(name)
        producer = AsyncProducer(
            self._transport(),
            clock=self._clock,
            rng=self._rng(f"{name}/client"),
            bootstrap_servers=BOOTSTRAP,
            acks=acks,
            delivery_timeout_ms=8_000,
            max_block_ms=8_000,
            **_FAST,
        )
        deliveries = Nursery(self._crashed)
        while not self.stopping:
            if self._topics:
                for _ in range(rng.choice((1, 1, 2, 5))):
                    await self._send(producer, name, acks, rng, deliveries)
            await asyncio.sleep(rng.expovariate(1 / 0.12))
        await producer.close(raise_errors=False)
        await asyncio.sleep(0.05)  # all deliveries have ended with the producer; this lets their tasks record them
        await deliveries.close()

    async def _send(
        self, producer: AsyncProducer, name: str, acks: str, rng: random.Random, deliveries: Nursery
    ) -> None:
        key = (rng.choice(self._topics), rng.randrange(PARTITIONS))
        self._next_value += 1
        send = Send(
            process=name,
            key=key,
            value=f"{name}:{self._next_value:06d}",
            acks=-1 if acks == "all" else int(acks),
            invoked_ns=self._scheduler.now_ns,
            idempotent=producer.options.idempotent,
        )
        self.history.sends.append(send)
        try:
            delivery = await producer.send(key[0], send.value, partition=key[1])
        except QuorumlogError as error:  # the record was not queued
            send.fail(repr(error), self._scheduler.now_ns)
            return
        deliveries.start(self._await(delivery, send), send.value)

    async def _await(self, delivery: Delivery, send: Send) -> None:
        try:
            record = await delivery
        except (RequestFailed, DeliveryTimeout) as error:
            (send.info if error.outcome_unknown else send.fail)(repr(error), self._scheduler.now_ns)
        except QuorumlogError as error:
            send.info(repr(error), self._scheduler.now_ns)
        else:
            send.ok(record.offset, record.may_be_duplicated, self._scheduler.now_ns)
            if send.acks == -1:
                self.acked += 1
                self._cluster.invariants.on_acked(send)

    # --- readers ---

    async def _consume(self, name: str) -> None:
        """Read everything from the start, then on from the last position, sometimes with a new client."""
        rng = self._rng(name)
        positions: dict[Key, int] = {}
        assignment = 0
        while not self.stopping:
            known = [(topic, index) for topic in self._topics for index in range(PARTITIONS)]
            if not known:
                await asyncio.sleep(0.2)
                continue
            if rng.random() < 0.2:
                positions = {}  # start again from the beginning: all records must still be readable
            assignment += 1
            until_ns = self._scheduler.now_ns + int(rng.uniform(2, 10) * NS_PER_S)
            await self._read(name, assignment, known, positions, until_ns)

    async def _read(
        self,
        name: str,
        assignment: int,
        keys: list[Key],
        positions: dict[Key, int],
        until_ns: int,
    ) -> None:
        async with self._consumer(f"{name}/{assignment}") as consumer:
            try:
                await consumer.assign([(topic, index, positions.get((topic, index), 0)) for topic, index in keys])
                while self._scheduler.now_ns < until_ns and not self.stopping:
                    self._note(name, assignment, positions, await consumer.poll(timeout_ms=_POLL_MS))
            except (QuorumlogError, RpcError):
                await asyncio.sleep(0.1)

    def _note(self, name: str, assignment: int, positions: dict[Key, int], records: list[ConsumedRecord]) -> None:
        by_key: dict[Key, list[tuple[int, str]]] = {}
        for record in records:
            assert record.value is not None
            by_key.setdefault((record.topic, record.partition), []).append((record.offset, record.value.decode()))
        for key, found in by_key.items():
            positions[key] = found[-1][0] + 1
            self.history.polls.append(
                Poll(process=name, assignment=assignment, key=key, records=tuple(found), at_ns=self._scheduler.now_ns)
            )

    # --- after everything has healed ---

    async def probe(self) -> None:
        """Get one record acknowledged in every partition. Raises the client's errors."""
        async with AsyncProducer(
            self._transport(), clock=self._clock, rng=self._rng("probe"), bootstrap_servers=BOOTSTRAP, **_FAST
        ) as producer:
            for topic in self._topics:
                for index in range(PARTITIONS):
                    self._next_value += 1
                    send = Send(
                        process="probe",
                        key=(topic, index),
                        value=f"probe:{self._next_value:06d}",
                        acks=-1,
                        invoked_ns=self._scheduler.now_ns,
                    )
                    self.history.sends.append(send)
                    await self._await(await producer.send(topic, send.value, partition=index), send)

    async def read_all(self) -> None:
        """Read everything from the start to the current end with a new reader."""
        async with self._admin("final") as admin:
            self.history.final_topics = [topic.name for topic in await admin.list_topics()]
        for topic in self._topics:
            for index in range(PARTITIONS):
                key = (topic, index)
                async with self._consumer(f"final/{topic}/{index}") as consumer:
                    await consumer.assign([(topic, index, "earliest")], stop="latest")
                    log = self.history.final.setdefault(key, {})
                    while not consumer.finished:
                        for record in await consumer.poll(timeout_ms=_POLL_MS):
                            assert record.value is not None
                            log[record.offset] = record.value.decode()
                    self.history.final_ends[key] = consumer.position(topic, index)

    # --- clients ---

    def _transport(self) -> Transport:
        grpc = SimTransport(self._cluster.network, CLIENT_HOST, self.loop, None, on_crash=self._crashed)
        return RoutingTransport(on_crash=self._crashed, grpc=grpc) if self._cluster.lane else grpc

    def _admin(self, name: str) -> AsyncAdmin:
        return AsyncAdmin(
            self._transport(),
            clock=self._clock,
            rng=self._rng(f"admin/{name}"),
            bootstrap_servers=BOOTSTRAP,
            default_api_timeout_ms=5_000,
            **_FAST,
        )

    def _consumer(self, name: str) -> AsyncConsumer:
        return AsyncConsumer(
            self._transport(),
            clock=self._clock,
            rng=self._rng(f"consumer/{name}"),
            bootstrap_servers=BOOTSTRAP,
            default_api_timeout_ms=5_000,
            **_FAST,
        )

    def _rng(self, name: str) -> random.Random:
        return self._scheduler.rng(f"workload/{name}")

    def _crashed(self, name: str, error: BaseException) -> None:
        self._cluster.findings.broken("client-crashed", f"{name}: {error!r}")

    def _on_error(self, context: dict[str, object]) -> None:
        if "exception" in context and "handle" in context:
            self._cluster.findings.broken("client-crashed", f"{context.get('message')}: {context.get('exception')!r}")
