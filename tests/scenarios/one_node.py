"""One production node with both roles, alone in its cluster, in this process, reachable over either transport.

`RealNode`: real files and sockets on its own loop. `SimNode`: a simulated machine and network. An unexpected failure
of a handler does not end the process; it is recorded in `crashes`.
"""

from __future__ import annotations

import asyncio
import dataclasses
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.network import Network
from jepsen.sim.network.sockets import SimSockets
from jepsen.sim.network.transport import SimTransport
from jepsen.sim.time.loop import SimLoop
from jepsen.sim.time.scheduler import NS_PER_MS, NS_PER_S, Scheduler
from quorumlog.ids import format_uuid
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, MetadataRequest, TopicQuery
from quorumlog.messages.common import ConfigEntry
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import encode_batch
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Connection
from quorumlog.security.required.asker import Rules
from quorumlog.testing.ports import PortPicker
from quorumlog.wire.routing import RoutingTransport
from quorumlog.wire.transport import WireTransport
from quorumlog_broker.api.handlers import HANDLERS
from quorumlog_server.config.config import NodeConfig, from_values
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.edges import Edges
from quorumlog_server.edge.real_edges import random_uuid, real_edges
from quorumlog_server.process.node import Node, build_node
from quorumlog_storage.edge.disk import RealDisk

T = TypeVar("T")
CALL_MS = 10_000
READY_LIMIT_S = 30
BATCH = encode_batch([Record(number, 1_700_000_000_000, None, b"value", ()) for number in range(3)])
GRPC, LANE = "GRPC", "CLIENT"  # the listeners of clients, by wire
NO_TOPICS_BY_ACCIDENT = {"auto.create.topics.enable": "false"}


class OneNode(Protocol):
    crashes: list[str]

    @property
    def node(self) -> Node: ...

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it on the client's loop."""

    def connect(self, wire: str) -> Connection:
        """wire: GRPC or LANE."""

    def close(self) -> None: ...


class RealNode:
    def __init__(self, folder: Path, more: dict[str, str] | None = None, rules: Rules | None = None) -> None:
        """more: settings of the node. rules: what clients may do; None: everything."""
        self._rules = rules
        self._runner = asyncio.Runner()
        self.crashes: list[str] = []
        self._picker = PortPicker()
        (ports,) = self._picker.pick(1)
        self.config = _config(str(folder / "a"), "127.0.0.1", (0, 0, ports.internal), more or {})
        format_node(
            self.config,
            cluster_id=format_uuid(random_uuid()),
            secret=new_secret(bytes(range(32))),
            disk=RealDisk(),
            new_uuid=random_uuid,
            protect=lambda name: Path(name).chmod(0o600),
        )
        self.node = self.do(self._start())

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def connect(self, wire: str) -> Connection:
        transport = GrpcTransport() if wire == GRPC else WireTransport()
        return transport.connect(self.node.addresses[wire], internal=False, client_id="tester")

    def restart(self) -> None:
        """Clean restart with the data on its disk."""
        self.do(self.node.stop())
        self.node = self.do(self._start())

    def close(self) -> None:
        self.do(self.node.stop())
        self._runner.close()  # cancels what a test left, a stream for example
        self._picker.close()

    def _on_crash(self, name: str, error: BaseException) -> None:
        self.crashes.append(f"{name}\n{''.join(traceback.format_exception(error))}")

    def _edges(self) -> Edges:
        real = real_edges(self.config)
        return dataclasses.replace(
            real,
            on_crash=self._on_crash,
            transport=lambda identity: RoutingTransport(
                identity, on_crash=self._on_crash, serves=tuple(HANDLERS), features=real.features
            ),
        )

    async def _start(self) -> Node:
        node = build_node(self.config, self._edges(), rules=self._rules)
        await node.start()
        async with asyncio.timeout(READY_LIMIT_S):
            while not node.ready:  # noqa: ASYNC110 - readiness has no event
                await asyncio.sleep(0.02)
        return node


class ProtectedNode(RealNode):
    """Its listeners are what its configuration says. A handler's failure ends the process, as in production."""

    def _edges(self) -> Edges:
        return real_edges(self.config)

    def configure(self, more: dict[str, str]) -> None:
        """For the next start."""
        internal = self.node.addresses["INTERNAL"].port
        self.config = _config(self.config.log_dirs[0], "127.0.0.1", (0, 0, internal), more)


class SimNode:
    """The client is another host. gRPC is the simulated transport; the lane is production's on simulated sockets."""

    def __init__(self, seed: int = 4711) -> None:
        self.crashes: list[str] = []
        self.scheduler = Scheduler(seed)
        self._network = Network(self.scheduler)
        self._machine = Machine(
            self.scheduler,
            self._network,
            "b1",
            lane=True,
            config=_config("/data/d0", "b1", (9092, 9094, 9093), {}),
            on_touch=lambda _: None,
            on_disk=lambda *_: None,
            on_death=lambda _, why: self.crashes.append(why),
        )
        self._machine.format()
        self._machine.start()
        self._client = SimLoop(self.scheduler, "client")
        SimSockets(self._network, "client", self._client)
        limit_ns = self.scheduler.now_ns + READY_LIMIT_S * NS_PER_S
        assert self.scheduler.run_while(lambda: not self._ready(), limit_ns), self.crashes

    @property
    def node(self) -> Node:
        assert self._machine.node is not None, self.crashes
        return self._machine.node

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        result: T = self._client.run_until_complete(coroutine, self.scheduler.now_ns + 10 * CALL_MS * NS_PER_MS)
        return result

    def connect(self, wire: str) -> Connection:
        on_crash = lambda name, error: self.crashes.append(f"{name}: {error!r}")  # noqa: E731
        transport: SimTransport | WireTransport
        if wire == GRPC:
            transport = SimTransport(self._network, "client", self._client, on_crash=on_crash)
        else:
            transport = WireTransport(on_crash=on_crash)
        return transport.connect(self.node.addresses[wire], internal=False, client_id="tester")

    def close(self) -> None:
        self._client.kill()
        self._machine.kill()

    def _ready(self) -> bool:
        return self._machine.node is not None and self._machine.node.ready


def _config(log_dir: str, host: str, ports: tuple[int, int, int], more: dict[str, str]) -> NodeConfig:
    """ports: of the lane, of gRPC, and internal, which `more` may name as {internal}."""
    lane, grpc, internal = ports
    node_id = more.get("node.id", "1")
    return from_values(
        {
            "node.id": node_id,
            "log.dirs": log_dir,
            "listeners": f"{LANE}://{host}:{lane},{GRPC}://{host}:{grpc},INTERNAL://{host}:{internal}",
            "controller.quorum.voters": f"{node_id}@{host}:{internal}",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
            **{key: value.replace("{internal}", str(internal)) for key, value in more.items()},
        }
    )


# --- preparations of a client ---


async def make_topic(connection: Connection, name: str, partitions: int = 1, **configs: str) -> bytes:
    """The topic's id, once every partition has acknowledged. Each then holds one batch of three records."""
    entries = tuple(ConfigEntry(name=key.replace("_", "."), value=value) for key, value in configs.items())
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=entries)
    response = await connection.call(CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS), CALL_MS)
    assert response.topics[0].error_code == 0, response.topics[0]
    for index in range(partitions):
        for _ in range(200):
            if await append(connection, name, index) == 0:
                break
            await asyncio.sleep(0.02)
    asked = MetadataRequest(all_topics=False, topics=(TopicQuery(name=name),))
    found = (await connection.call(asked, CALL_MS)).topics[0]
    assert found.error_code == 0
    topic_id: bytes = found.topic_id
    return topic_id


async def append(connection: Connection, name: str, index: int = 0, records: bytes = BATCH) -> int:
    """Returns the error code."""
    topic = ProduceTopic(name=name, partitions=(ProducePartition(index=index, records=records),))
    response = await connection.call(ProduceRequest(acks=-1, timeout_ms=CALL_MS, topics=(topic,)), CALL_MS)
    return int(response.topics[0].partitions[0].error_code)
