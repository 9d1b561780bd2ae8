"""Three real processes, from unformatted directories to a fail-over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from quorumlog.ids import NodeId, format_uuid
from quorumlog.messages.cluster import (
    CreatableTopic,
    CreateTopicsRequest,
    MetadataRequest,
    PartitionMetadata,
    TopicMetadata,
    TopicQuery,
)
from quorumlog.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.records.format.batch import headers
from quorumlog.records.format.record import Record
from quorumlog.records.rowwise.plain import decode_batch, encode_batch
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Connection, RpcError
from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.edge.disk import RealDisk

T = TypeVar("T")
IDS = (1, 2, 3)
START_S = 30.0
FAILOVER_S = 20.0
CALL_MS = 5_000
TOPIC = "orders"


@dataclass
class Nodes:
    """client: the client address of each node."""

    root: Path
    client: dict[NodeId, Address]
    processes: dict[NodeId, subprocess.Popen[bytes]]

    def start(self, node_id: NodeId) -> None:
        command = [sys.executable, "-P", "-m", "quorumlog_server", "-c", str(self.root / f"{node_id}.properties")]
        with (self.root / f"{node_id}.log").open("ab") as log:
            self.processes[node_id] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self, node_id: NodeId) -> None:
        self.processes[node_id].send_signal(signal.SIGKILL)
        self.processes[node_id].wait()

    def stop_all(self) -> dict[NodeId, int]:
        """Clean shutdown by SIGTERM. Returns exit codes by node."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        return {node_id: process.wait(timeout=30) for node_id, process in self.processes.items()}

    def logs(self) -> str:
        return "\n".join((self.root / f"{node_id}.log").read_text()[-4_000:] for node_id in IDS)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    picker = PortPicker()
    made = make_nodes(tmp_path, picker)
    try:
        for node_id in IDS:
            made.start(node_id)
        yield made
    finally:
        for process in made.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        picker.close()


def make_nodes(root: Path, picker: PortPicker) -> Nodes:
    ports = dict(zip(IDS, picker.pick(len(IDS)), strict=True))
    client = {node_id: Address("127.0.0.1", ports[node_id].client) for node_id in IDS}
    voters = ",".join(f"{node_id}@127.0.0.1:{ports[node_id].internal}" for node_id in IDS)
    secret, cluster_id = new_secret(os.urandom(32)), format_uuid(random_uuid())
    for node_id in IDS:
        path = root / f"{node_id}.properties"
        path.write_text(
            f"node.id={node_id}\nlog.dirs={root}/data{node_id}\ncontroller.quorum.voters={voters}\n"
            f"listeners=GRPC://{client[node_id]},INTERNAL://127.0.0.1:{ports[node_id].internal}\n"
            "default.replication.factor=3\nmin.insync.replicas=2\nbroker.session.timeout.ms=3000\n"
        )
        config = load(str(path), path.read_text(), {})
        format_node(
            config,
            cluster_id=cluster_id,
            secret=secret,
            disk=RealDisk(),
            new_uuid=random_uuid,
            protect=lambda name: os.chmod(name, 0o600),
        )
    return Nodes(root, client, {})


class Client:
    """Asks the nodes until one gives the expected answer."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._transport = GrpcTransport()
        self._connections: dict[NodeId, Connection] = {}

    async def call(self, node_id: NodeId, request: Any) -> Any:
        if node_id not in self._connections:
            self._connections[node_id] = self._transport.connect(self.nodes.client[node_id], internal=False)
        return await self._connections[node_id].call(request, CALL_MS)

    async def until(self, what: str, timeout_s: float, attempt: Callable[[], Awaitable[T | None]]) -> T:
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    try:
                        result = await attempt()
                        if result is not None:
                            return result
                    except RpcError:
                        pass
                    await asyncio.sleep(0.05)  # pause between two requests; the awaited condition is the answer
        except TimeoutError:
            pytest.fail(f"no {what} within {timeout_s} s\n{self.nodes.logs()}")

    async def topic(self, node_id: NodeId) -> TopicMetadata | None:
        request = MetadataRequest(all_topics=False, topics=(TopicQuery(name=TOPIC),), allow_auto_topic_creation=False)
        response = await self.call(node_id, request)
        return response.topics[0] if response.error_code == 0 and response.topics[0].error_code == 0 else None

    async def leader(self, alive: list[NodeId], isr_size: int) -> PartitionMetadata | None:
        """The partition, once every node in `alive` reports the same live leader and an ISR of at least `isr_size`."""
        seen = [await self.topic(node_id) for node_id in alive]
        partitions = [topic.partitions[0] for topic in seen if topic is not None]
        agreed = len(partitions) == len(alive) and len({part.leader_id for part in partitions}) == 1
        if agreed and partitions[0].leader_id in alive and all(len(part.isr) >= isr_size for part in partitions):
            return partitions[0]
        return None

    async def produce(self, leader: NodeId, values: list[bytes]) -> int | None:
        """The base offset, once acknowledged by every in-sync replica."""
        records = [Record(index, 0, None, value, ()) for index, value in enumerate(values)]
        batch = encode_batch(records)
        partition = ProducePartition(index=0, records=batch)
        topics = (ProduceTopic(name=TOPIC, partitions=(partition,)),)
        response = await self.call(leader, ProduceRequest(acks=-1, timeout_ms=CALL_MS, topics=topics))
        (answer,) = response.topics[0].partitions
        return answer.base_offset if answer.error_code == 0 else None

    async def read_all(self, leader: NodeId, topic_id: bytes, count: int) -> list[bytes] | None:
        partition = FetchPartition(index=0, fetch_offset=0, max_bytes=1 << 20)
        topics = (FetchTopic(topic_id=topic_id, name=TOPIC, partitions=(partition,)),)
        request = FetchRequest(max_wait_ms=200, min_bytes=1, max_bytes=1 << 20, topics=topics)
        response = await self.call(leader, request)
        (answer,) = response.topics[0].partitions
        data = bytes(answer.records)
        values = [record.value or b"" for header in headers(data) for record in decode_batch(data, header)]
        return values if answer.error_code == 0 and len(values) >= count else None


def test_create_produce_fetch_and_lose_the_leader(nodes: Nodes) -> None:
    asyncio.run(scenario(nodes))
    assert nodes.stop_all() == dict.fromkeys(IDS, 0)


async def scenario(nodes: Nodes) -> None:
    client = Client(nodes)
    asked = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3)
    create = CreateTopicsRequest(topics=(asked,), timeout_ms=CALL_MS)

    async def created() -> bool | None:
        response = await client.call(1, create)
        return True if response.error_code == 0 and response.topics[0].error_code in (0, 36) else None

    await client.until("topic", START_S, created)
    partition = await client.until("leader", START_S, lambda: client.leader(list(IDS), isr_size=3))
    topic = await client.topic(1)
    assert topic is not None
    first = [b"a", b"b", b"c"]
    base = await client.until("ack", START_S, lambda: client.produce(partition.leader_id, first))
    assert base == 0
    read = await client.until("records", START_S, lambda: client.read_all(partition.leader_id, topic.topic_id, 3))
    assert read == first

    nodes.kill(partition.leader_id)
    alive = [node_id for node_id in IDS if node_id != partition.leader_id]
    successor = await client.until("new leader", FAILOVER_S, lambda: client.leader(alive, isr_size=2))
    await client.until("ack after fail-over", FAILOVER_S, lambda: client.produce(successor.leader_id, [b"d"]))
    read = await client.until("records", FAILOVER_S, lambda: client.read_all(successor.leader_id, topic.topic_id, 4))
    assert read[:3] == first
    assert set(read[3:]) == {b"d"}

    nodes.start(partition.leader_id)
    await client.until("full ISR", FAILOVER_S, lambda: client.leader(list(IDS), isr_size=3))
