"""Clients of the simulated cluster: producers, readers by assignment, and an operator (chores.py).

They run the production client on their own host and record their requests and results (jepsen.checkers.history). Every
value is unique.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jepsen.checkers.history import AllowedLoss, History, Key, Poll, Send
from jepsen.joint.recorder import JOINT
from jepsen.sim.cluster import CLIENT_HOST, READER_HOST, SimCluster
from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.settings import CLUSTER_ID, COMPACTED_TOPIC, SECRET
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S
from jepsen.sim.truth.durability import Loss
from jepsen.sim.truth.topics import Topic
from jepsen.sim.users import ROOT
from jepsen.sim.workload.activity import Activity
from jepsen.sim.workload.groups.group_calls import UNITS_OF
from jepsen.sim.workload.operator.chores import MAX_PARTITIONS, Chores
from jepsen.sim.workload.operator.imports import IMPORTED
from jepsen.sim.workload.operator.moves import MoveChore
from jepsen.sim.workload.operator.reassignments import ReassignmentChore
from jepsen.sim.workload.security.officer import SHARED_TOPICS
from jepsen.transactions.readers import LEDGER
from quorumlog.client.admin import AsyncAdmin
from quorumlog.client.batches.delivery import Delivery
from quorumlog.client.consumer import AsyncConsumer, ConsumedRecord
from quorumlog.client.errors import DeliveryTimeout, QuorumlogError, RequestFailed, TopicReplaced
from quorumlog.client.producer import AsyncProducer
from quorumlog.ids import NodeId, Offset
from quorumlog.messages.reassignments import ReassignablePartition
from quorumlog.nursery import Nursery
from quorumlog.rpc.transport import Identity, RpcError, Transport
from quorumlog.wire.routing import RoutingTransport

PRODUCER_ACKS = ("all", "all", "1")  # one producer for each
_FAST: dict[str, Any] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50, "retry_backoff_max_ms": 500}
_POLL_MS = 500
_CLIENT_ID = 900  # a node id that no node has
_BURST_SHARE, _BURST_RECORDS, _BURST_BYTES = 0.01, 40, 60_000


@dataclass(frozen=True, slots=True)
class _Reader:
    """One assignment of a reader. assigned_ns: when it set its positions."""

    name: str
    assignment: int
    assigned_ns: int


class Workload:
    """Ends soon after `stop`. activities: what else goes on, in this order."""

    def __init__(
        self,
        cluster: SimCluster,
        *,
        chores: tuple[str, ...] = (),
        bursts: bool = False,
        late_requests: bool = False,
        activities: Iterable[Callable[[Workload], Activity]] = (),
    ) -> None:
        """chores: kinds of what the operator does meanwhile. bursts: producers sometimes send more at once than a
        broker's buffers hold. late_requests: one may arrive twice, or after its answer was given up."""
        self.history = History()
        self._stopping = False
        self.acked = 0
        self.cluster, self.late_requests = cluster, late_requests
        self._scheduler = cluster.scheduler
        self.loops: list[SimLoop] = []
        self.loop = self.make_loop(CLIENT_HOST)
        self._reader_loop = self.make_loop(READER_HOST)
        self.clock = SimClock(cluster.scheduler)
        self._chores = Chores(
            cluster,
            self.history,
            self.rng("topics"),
            partial(self.admin, "chores"),
            chores,
            late_requests=late_requests,
        )
        self.activities = [make(self) for make in activities]
        self._take_orders()
        self.nursery, self._readers = Nursery(self.crashed), Nursery(self.crashed)
        self._bursts = bursts
        self._next_value = 0

    def start(self) -> None:
        self.loop.create_task(self._start())
        self._reader_loop.create_task(self._start_readers())
        for activity in self.activities:
            activity.start()

    @property
    def idle(self) -> bool:
        return len(self.nursery) == len(self._readers) == 0 and all(activity.idle for activity in self.activities)

    def make_loop(self, host: str) -> SimLoop:
        loop = SimLoop(self._scheduler, host, on_error=self._on_error)
        SimSockets(self.cluster.network, host, loop)
        self.cluster.clients[host] = loop
        self.loops.append(loop)
        return loop

    def stop(self) -> None:
        self._stopping = self._chores.stopping = True
        for activity in self.activities:
            activity.stop()

    def _take_orders(self) -> None:
        """What a script asks of the operator is done beside everything else."""
        moves = MoveChore(self.cluster, self.rng("asked moves"), partial(self.admin, "asked moves"))
        admin = partial(self.admin, "asked reassignments")
        reassignments = ReassignmentChore(self.rng("asked reassignments"), admin, list)

        def start(work: Coroutine[Any, Any, object]) -> None:
            self.nursery.start(work, "for a script")

        def reassign(topic: str, index: int, replicas: Sequence[NodeId]) -> None:
            wanted = ReassignablePartition(index=index, replicas=tuple(replicas))
            self.loop.deliver(lambda: start(reassignments.ask(topic, wanted)))

        chores, orders = self._chores, self.cluster.orders
        orders.delete_records = lambda *asked: self.loop.deliver(lambda: start(chores.delete_records(*asked)))
        orders.make_anew = lambda *asked: self.loop.deliver(lambda: start(chores.make_anew(*asked)))
        self.cluster.orders.reassign = reassign
        self.cluster.orders.elect = lambda: self.loop.deliver(lambda: start(reassignments.elect()))
        self.cluster.orders.move = lambda *asked: self.loop.deliver(lambda: start(moves.ask(*asked)))
        self.cluster.orders.alter_topic = lambda *asked: self.loop.deliver(lambda: start(self._chores.alter(*asked)))

    @property
    def topics(self) -> list[str]:
        """Topics that exist now, as far as acknowledgements tell."""
        return [topic.name for topic in self._chores.open]

    @property
    def open_topics(self) -> list[Topic]:
        return self._chores.open

    @property
    def counts(self) -> dict[str, int]:
        """How often each chore was acknowledged, and what the activities count."""
        counts = dict(self._chores.counts)
        for activity in self.activities:
            counts |= activity.counts
        return counts

    def now_ns(self) -> int:
        return self._scheduler.now_ns

    async def _start(self) -> None:
        self.nursery.start(self._chores.make_topics(), "topics")
        self.nursery.start(self._chores.do_chores(), "chores")
        for activity in self.activities:
            activity.start_beside(self.nursery)
        for number, acks in enumerate(PRODUCER_ACKS):
            self.nursery.start(self._produce(f"p{number}", acks), f"producer {number}")

    async def _start_readers(self) -> None:
        for number in range(2):
            self._readers.start(self._consume(f"r{number}"), f"reader {number}")

    # --- producers ---

    async def _produce(self, name: str, acks: str) -> None:
        rng = self.rng(name)
        producer = self.producer(name, acks)
        deliveries = Nursery(self.crashed)
        while not self._stopping:
            if self.topics:
                is_burst = self._bursts and rng.random() < _BURST_SHARE
                for _ in range(_BURST_RECORDS if is_burst else rng.choice((1, 1, 2, 5))):
                    if not self.topics:
                        break
                    await self._send(producer, name, acks, rng, deliveries, _BURST_BYTES if is_burst else 0)
            await asyncio.sleep(rng.expovariate(1 / 0.12))
        await producer.close(raise_errors=False)
        await asyncio.sleep(0.05)  # all deliveries have ended with the producer; this lets their tasks record them
        await deliveries.close()

    def producer(self, name: str, acks: str) -> AsyncProducer:
        return AsyncProducer(
            self.transport(),
            clock=self.clock,
            rng=self.rng(f"{name}/client"),
            bootstrap_servers=self.cluster.bootstrap,
            acks=acks,
            delivery_timeout_ms=8_000,
            max_block_ms=8_000,
            **_FAST,
        )

    async def _send(
        self, producer: AsyncProducer, name: str, acks: str, rng: random.Random, deliveries: Nursery, padding: int
    ) -> None:
        """padding: bytes beside the record's name."""
        topic = rng.choice(self._chores.open)
        key = (topic.name, rng.randrange(topic.partitions))
        self._next_value += 1
        send = Send(
            process=name,
            key=key,
            value=f"{name}:{self._next_value:06d}" + "." * padding,
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
        deliveries.start(self._await(delivery, send), "delivery")

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
                self._on_acked(send)

    def _on_acked(self, send: Send) -> None:
        topic = self._chores.topics[send.key[0]]
        self.cluster.invariants.on_acked(send, topic)
        if send.life == topic.life:
            topic.acked[send.key[1]] = max(topic.acked.get(send.key[1], 0), send.offset + 1)

    # --- readers ---

    async def _consume(self, name: str) -> None:
        """Read everything from the start, then on from the last position, sometimes with a new client."""
        rng = self.rng(name)
        positions: dict[tuple[Key, int], int] = {}  # by partition and life
        assignment = 0
        while not self._stopping:
            known = [
                ((topic.name, index), topic.life) for topic in self._chores.open for index in range(topic.partitions)
            ]
            if not known:
                await asyncio.sleep(0.2)
                continue
            if rng.random() < 0.2:
                positions = {}  # start again from the beginning: all records must still be readable
            assignment += 1
            until_ns = self._scheduler.now_ns + int(rng.uniform(2, 10) * NS_PER_S)
            await self._read(_Reader(name, assignment, self._scheduler.now_ns), known, positions, until_ns)

    async def _read(
        self, reader: _Reader, keys: list[tuple[Key, int]], positions: dict[tuple[Key, int], int], until_ns: int
    ) -> None:
        lives: dict[Key, int] = {}
        async with self._consumer(f"{reader.name}/{reader.assignment}", self._reader_loop) as consumer:
            try:
                await consumer.assign([(*key, positions.get((key, life), 0)) for key, life in keys])
                while self._scheduler.now_ns < until_ns and not self._stopping:
                    self._note(reader, positions, lives, await consumer.poll(timeout_ms=_POLL_MS))
            except (QuorumlogError, RpcError) as error:
                if isinstance(error, TopicReplaced):
                    self._note_replaced(reader, error)
                await asyncio.sleep(0.1)

    def _note_replaced(self, reader: _Reader, error: TopicReplaced) -> None:
        ids = self._chores.topics[error.topic].ids
        if error.new_id in ids and error.topic_id in ids[ids.index(error.new_id) :]:
            what = f"{reader.name} takes life {ids.index(error.new_id) + 1} of {error.topic} for the one that followed"
            self.cluster.findings.broken("former-topic-taken", f"{what} life {ids.index(error.topic_id) + 1}")

    def _note(
        self,
        reader: _Reader,
        positions: dict[tuple[Key, int], int],
        lives: dict[Key, int],
        records: list[ConsumedRecord],
    ) -> None:
        """lives: by partition, the one that this assignment reads; 0: it was gone when the first record came."""
        found: dict[tuple[Key, int], list[tuple[int, str]]] = {}  # by partition and life
        for record in records:
            assert record.value is not None
            key, value = (record.topic, record.partition), record.value.decode()
            topic = self._chores.topics[record.topic]
            life = self.cluster.invariants.life_of(topic, record.partition, record.offset, value)
            found.setdefault((key, life), []).append((record.offset, value))
        for (key, life), of_life in found.items():
            before = lives.setdefault(key, life)
            if life and before and life != before:
                what = f"{reader.name} reads {key[0]}-{key[1]} in life {life} after life {before}, and was not told"
                self.cluster.findings.broken("other-life-untold", what)
            positions[key, life] = of_life[-1][0] + 1
            self.history.polls.append(
                Poll(
                    process=reader.name,
                    assignment=reader.assignment,
                    key=key,
                    records=tuple(of_life),
                    at_ns=self._scheduler.now_ns,
                    life=life,
                    assigned_ns=reader.assigned_ns,
                )
            )

    # --- after everything has healed ---

    async def probe(self) -> None:
        """Get one record acknowledged in every partition. Raises the client's errors."""
        async with AsyncProducer(
            self.transport(),
            clock=self.clock,
            rng=self.rng("probe"),
            bootstrap_servers=self.cluster.bootstrap,
            **_FAST,
        ) as producer:
            for topic in self._chores.open:
                for index in range(topic.partitions):
                    self._next_value += 1
                    send = Send(
                        process="probe",
                        key=(topic.name, index),
                        value=f"probe:{self._next_value:06d}",
                        acks=-1,
                        invoked_ns=self._scheduler.now_ns,
                    )
                    self.history.sends.append(send)
                    await self._await(await producer.send(topic.name, send.value, partition=index), send)

    async def read_all(self) -> None:
        """Read everything from the start to the current end with a new reader."""
        async with self.admin("final") as admin:
            found = await admin.list_topics()
            others = (COMPACTED_TOPIC, LEDGER, JOINT, UNITS_OF, *SHARED_TOPICS)
            found = [topic for topic in found if topic.name not in others and not topic.is_internal]
            found = [topic for topic in found if not topic.name.startswith(IMPORTED)]
            self.history.final_topics = [topic.name for topic in found]
            self.history.final_partitions = {topic.name: len(topic.partitions) for topic in found}
            for name in self.history.final_topics:
                settings = (await admin.describe_configs(name)).configs
                self.history.final_configs[name] = {each.name: each.value or "" for each in settings}
        for topic in self._chores.open:
            for index in range(topic.partitions):
                await self._read_partition((topic.name, index))

    async def _read_partition(self, key: Key) -> None:
        history = self.history
        by_stream = key[1] % 2 == 1  # of chunks, by gRPC; the others by calls
        async with self._consumer(f"final/{key[0]}/{key[1]}", self.loop, by_stream=by_stream) as consumer:
            await consumer.assign([(*key, "earliest")], stop="latest")
            history.final_starts[key] = await consumer.position(*key)
            log = history.final.setdefault(key, {})
            while not consumer.finished:
                for record in await consumer.poll(timeout_ms=_POLL_MS):
                    assert record.value is not None
                    log[record.offset] = record.value.decode()
            history.final_ends[key] = await consumer.position(*key)

    def note_losses(self, losses: Sequence[Loss]) -> None:
        """For the checkers: what was lost as the promise of its topic allows it."""
        for log, end, at_ns in losses:
            for topic in self._chores.topics.values():
                for index in range(MAX_PARTITIONS):  # an earlier life may have had more than this one
                    if log in topic.logs(index):
                        life = topic.logs(index).index(log) + 1
                        lost = AllowedLoss(key=(topic.name, index), life=life, end=end, at_ns=at_ns)
                        self.history.losses.append(lost)

    def note_retained(self, retained: Mapping[str, Offset]) -> None:
        """For the checkers: by log, the offset before which a policy let records go."""
        for topic in self._chores.topics.values():
            for index in range(MAX_PARTITIONS):
                for life, log in enumerate(topic.logs(index), start=1):
                    self.history.retained[(topic.name, index), life] = retained.get(log, 0)

    # --- clients ---

    def transport(self, loop: SimLoop | None = None, user: str = ROOT) -> Transport:
        """user: who it is, where the cluster knows its clients."""
        loop, users = loop or self.loop, self.cluster.users
        user = "" if users is None else user
        grpc = SimTransport(self.cluster.network, loop.node, loop, None, on_crash=self.crashed, user=user)
        if not self.cluster.lane:
            return grpc
        if users is None:
            return RoutingTransport(on_crash=self.crashed, grpc=grpc)
        random_bytes = self.cluster.network.new_random_bytes(loop.node)
        return RoutingTransport(on_crash=self.crashed, grpc=grpc, security=users.security(user, random_bytes))

    def trusted(self, loop: SimLoop) -> Transport:
        """As a node's, to its controllers' own listeners."""
        identity = Identity(
            cluster_id=CLUSTER_ID, node_id=_CLIENT_ID, incarnation_id=b"client".ljust(16), secret=SECRET.encode()
        )
        return SimTransport(self.cluster.network, loop.node, loop, identity, on_crash=self.crashed)

    def admin(self, name: str, loop: SimLoop | None = None) -> AsyncAdmin:
        return AsyncAdmin(
            self.transport(loop),
            clock=self.clock,
            rng=self.rng(f"admin/{name}"),
            bootstrap_servers=self.cluster.bootstrap,
            default_api_timeout_ms=5_000,
            security_protocol="SSL",  # there is none, but nobody reads this network: passwords may be changed over it
            **_FAST,
        )

    def _consumer(self, name: str, loop: SimLoop, *, by_stream: bool = False) -> AsyncConsumer:
        return AsyncConsumer(
            self.transport(loop),
            clock=self.clock,
            rng=self.rng(f"consumer/{name}"),
            bootstrap_servers=self.cluster.bootstrap,
            default_api_timeout_ms=5_000,
            stream_chunks="auto" if by_stream else "false",
            client_rack="" if by_stream else self._rack(name),
            **_FAST,
        )

    def _rack(self, name: str) -> str:
        """Of a consumer, where leaders send readers to their racks."""
        layout = self.cluster.layout
        if "replica.selector.class" not in layout.files:
            return ""
        return self.rng(f"rack/{name}").choice(("", *sorted(set(layout.racks.values()))))

    def rng(self, name: str) -> random.Random:
        return self._scheduler.rng(f"workload/{name}")

    def crashed(self, name: str, error: BaseException) -> None:
        self.cluster.findings.broken("client-crashed", f"{name}: {error!r}")

    def _on_error(self, context: dict[str, object]) -> None:
        if "exception" in context and "handle" in context:
            self.cluster.findings.broken("client-crashed", f"{context.get('message')}: {context.get('exception')!r}")
