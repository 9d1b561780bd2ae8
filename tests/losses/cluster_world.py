"""A simulated cluster of production nodes with a client, for tests of what a whole cluster promises.

What belongs to a test's preparation raises `NotPrepared`, never AssertionError: a promise is broken only where the test
itself says so.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from jepsen.sim.cluster import CLIENT_HOST, SimCluster
from jepsen.sim.machine.machine import Machine
from jepsen.sim.machine.page_cache import DirectoryNode
from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.settings import BOOTSTRAP, DATA
from jepsen.sim.sizes import Sizes
from jepsen.sim.time import killed_coroutines
from jepsen.sim.time.clock import SimClock
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_S
from quorumlog.client.admin import AsyncAdmin, NewTopic
from quorumlog.client.consumer import AsyncConsumer
from quorumlog.client.errors import QuorumlogError
from quorumlog.client.producer import AsyncProducer
from quorumlog.rpc.transport import RpcError, Transport
from quorumlog.wire.routing import RoutingTransport
from quorumlog_quorum.metadata.registration import PartitionRegistration

T = TypeVar("T")
LIMIT_S = 60  # virtual, for one call of a client or for a state of the cluster
_QUICK: dict[str, Any] = {"request_timeout_ms": 2_000, "retry_backoff_ms": 50, "retry_backoff_max_ms": 500}


class NotPrepared(Exception):
    """The cluster did not reach the state in which the test begins."""


@contextmanager
def world(seed: int = 1, sizes: Sizes | None = None) -> Iterator[World]:
    """A healthy cluster. sizes: None for the defaults.

    The garbage collector is off meanwhile, as in every simulation.
    """
    gc.collect()
    gc.disable()
    made = World(seed, sizes)
    try:
        made.cluster.start()
        made.prepare(made.cluster.is_healthy, "the cluster starts")
        yield made
    finally:
        for machine in made.cluster.machines.values():
            if machine.loop is not None:
                machine.loop.kill()
        made.loop.kill()
        killed_coroutines.empty()
        gc.enable()


class World:
    """Topics have one partition unless it is said otherwise."""

    def __init__(self, seed: int, sizes: Sizes | None = None) -> None:
        self.cluster = SimCluster(seed, sizes=sizes)
        self.scheduler = self.cluster.scheduler
        self.loop = SimLoop(self.scheduler, CLIENT_HOST, on_error=lambda _: None)
        SimSockets(self.cluster.network, CLIENT_HOST, self.loop)
        self._clients = 0

    # --- time ---

    def run_for(self, seconds: float) -> None:
        self.scheduler.run_for(int(seconds * NS_PER_S))

    def comes_true(self, condition: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
        """Whether the condition becomes true; checked every 10 virtual ms."""
        for _ in range(int(limit_s * 100)):
            if condition():
                return True
            self.run_for(0.01)
        return condition()

    def prepare(self, condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
        """Raises NotPrepared."""
        if not self.comes_true(condition, limit_s):
            raise NotPrepared(f"{what}: not within {limit_s} s; {self.cluster.problems()}")

    # --- the client ---

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Raises NotPrepared if the client gave up: these tests do not promise that a call succeeds."""
        try:
            result: T = self.loop.run_until_complete(coroutine, self.scheduler.now_ns + LIMIT_S * NS_PER_S)
        except (QuorumlogError, RpcError) as error:
            raise NotPrepared(repr(error)) from error
        return result

    def create(self, topic: str, brokers: Sequence[int], partitions: int = 1) -> None:
        """brokers: ids, the leader first, of every partition. Returns once all of them are in sync."""
        new = NewTopic(name=topic, assignment=[list(brokers)] * partitions)

        async def create() -> None:
            async with AsyncAdmin(**self._options()) as admin:
                (result,) = await admin.create_topics([new])
                if result.error_code:
                    raise NotPrepared(result.error_message)

        self.do(create())
        self.prepare(lambda: self.cluster.image.topic(topic) is not None, f"{topic} is known")
        self.prepare(lambda: self._in_sync(topic), f"{topic} is in sync")

    def _in_sync(self, topic: str) -> bool:
        found = self.cluster.image.topic(topic)
        return found is not None and all(
            len(partition.isr) == len(partition.replicas) for _, partition in found.sorted_partitions()
        )

    def delete(self, topic: str) -> None:
        async def delete() -> None:
            async with AsyncAdmin(**self._options()) as admin:
                await admin.delete_topic(topic)

        self.do(delete())

    def delete_records(self, topic: str, before: int) -> None:
        async def delete() -> None:
            async with AsyncAdmin(**self._options()) as admin:
                await admin.delete_records({(topic, 0): before})

        self.do(delete())

    def produce(self, topic: str, values: Sequence[str], partition: int = 0) -> dict[int, str]:
        """Send each value in a batch of its own, acks=all. Returns all values by their offsets."""

        async def produce() -> dict[int, str]:
            acknowledged: dict[int, str] = {}
            async with AsyncProducer(**self._options()) as producer:
                for value in values:
                    acknowledged[(await (await producer.send(topic, value, partition=partition))).offset] = value
            return acknowledged

        return self.do(produce())

    def read(self, topic: str, partition: int = 0) -> dict[int, str]:
        """All readable values, by offset."""

        async def read() -> dict[int, str]:
            found: dict[int, str] = {}
            async with AsyncConsumer(**self._options()) as consumer:
                await consumer.assign([(topic, partition, "earliest")], stop="latest")
                while not consumer.finished:
                    for record in await consumer.poll(timeout_ms=500):
                        found[record.offset] = (record.value or b"").decode()
            return found

        return self.do(read())

    def topics(self) -> list[str]:
        async def ask() -> list[str]:
            async with AsyncAdmin(**self._options()) as admin:
                return [topic.name for topic in await admin.list_topics()]

        return self.do(ask())

    def _options(self) -> dict[str, Any]:
        self._clients += 1
        rng = self.scheduler.rng(f"client/{self._clients}")
        options = {"bootstrap_servers": BOOTSTRAP, **_QUICK}
        return {"transport": self._transport(), "clock": SimClock(self.scheduler), "rng": rng, **options}

    def _transport(self) -> Transport:
        grpc = SimTransport(self.cluster.network, CLIENT_HOST, self.loop, None, on_crash=lambda *_: None)
        return RoutingTransport(on_crash=lambda *_: None, grpc=grpc) if self.cluster.lane else grpc

    # --- the machines ---

    def partition(self, topic: str, index: int = 0) -> PartitionRegistration:
        """As the newest committed image has it."""
        found = self.cluster.image.topic(topic)
        if found is None:
            raise NotPrepared(f"{topic} is not there")
        return found.partitions[index]

    def restart(self, machine: Machine) -> None:
        """Kill it if it runs, and start it. Does not wait until it serves."""
        machine.kill()
        machine.start()

    def is_ready(self, machine: Machine) -> bool:
        return machine.alive and machine.node is not None and machine.node.ready


def files_of(machine: Machine) -> dict[str, bytes]:
    """Every file below the log directory as readers see it, by its path."""
    found: dict[str, bytes] = {}

    def walk(path: str, node: Any) -> None:
        if isinstance(node, DirectoryNode):
            for name in sorted(node.current):
                walk(f"{path}/{name}", node.current[name])
        else:
            found[path] = bytes(node.current)

    node: Any = machine.disk.root
    for name in DATA.strip("/").split("/"):
        node = node.current[name]
    walk(DATA, node)
    return found


def overwrite(machine: Machine, path: str, content: bytes) -> None:
    """Replace a file's content durably. The machine's process must be dead."""
    file = machine.disk.open(path, create=True)
    file.truncate(0)
    file.pwritev([content], 0)
    file.sync()
    file.close()
    machine.disk.sync_directory(path.rpartition("/")[0])
