"""Three real processes whose calls to each other all pass through a proxy that keeps every byte.

The kept bytes hold the secret in no form, and sending them again gets nothing done.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from test_three_nodes import CALL_MS, IDS, START_S, TOPIC, Client, Nodes

from quorumlog.ids import NodeId, format_uuid
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest
from quorumlog.messages.quorum import DescribeQuorumRequest
from quorumlog.rpc.transport import Address
from quorumlog.testing.ports import PortPicker
from quorumlog_server.config.config import load
from quorumlog_server.directories.format import format_node
from quorumlog_server.directories.secret import new_secret
from quorumlog_server.edge.real_edges import random_uuid
from quorumlog_storage.edge.disk import RealDisk

REPLAY_S = 10.0
SECRET = new_secret(os.urandom(32))


@dataclass
class Recorded:
    """One connection: where it went, and what its caller sent and was answered."""

    to: Address
    sent: bytearray = field(default_factory=bytearray)
    answered: bytearray = field(default_factory=bytearray)


class Recorder:
    """The proxies, one for each internal listener. listens: the node's own address, by that of its proxy."""

    def __init__(self, listens: dict[Address, Address]) -> None:
        self._listens = listens
        self._servers: list[asyncio.Server] = []
        self.connections: list[Recorded] = []

    async def start(self) -> None:
        for proxy, to in self._listens.items():
            self._servers.append(await asyncio.start_server(self._accepting(to), proxy.host, proxy.port))

    def _accepting(self, to: Address):  # type: ignore[no-untyped-def]
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                behind_reader, behind_writer = await asyncio.open_connection(to.host, to.port)
            except OSError:
                writer.transport.abort()  # the node does not listen yet
                return
            kept = Recorded(to)
            self.connections.append(kept)
            ways = [
                asyncio.ensure_future(_pass_on(reader, behind_writer, kept.sent)),
                asyncio.ensure_future(_pass_on(behind_reader, writer, kept.answered)),
            ]
            await ways[0]
            await ways[1]

        return accept

    def close(self) -> None:
        for server in self._servers:
            server.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kept: bytearray) -> None:
    try:
        while data := await reader.read(65_536):
            kept += data
            writer.write(data)
    except OSError:
        pass
    writer.close()


def forms(secret: bytes) -> list[bytes]:
    decoded = base64.urlsafe_b64decode(secret + b"=" * (-len(secret) % 4))
    found = []
    for value in (secret, decoded):
        found += [
            value,
            base64.b64encode(value).rstrip(b"="),
            base64.urlsafe_b64encode(value).rstrip(b"="),
            b"%b" % value,
        ]
        found += [value.hex().encode(), value.hex().upper().encode()]
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Nodes, Recorder]]:
    picker = PortPicker()
    made, recorder = make(tmp_path, picker)
    try:
        yield made, recorder
    finally:
        for process in made.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        picker.close()


def make(root: Path, picker: PortPicker) -> tuple[Nodes, Recorder]:
    """`admin` and `replication` of a second row of ports are those of the proxies."""
    rows = picker.pick(2 * len(IDS))
    own, proxies = dict(zip(IDS, rows, strict=False)), dict(zip(IDS, rows[len(IDS) :], strict=True))
    voters = ",".join(f"{node_id}@127.0.0.1:{proxies[node_id].internal}" for node_id in IDS)
    cluster_id = format_uuid(random_uuid())
    listens: dict[Address, Address] = {}
    for node_id in IDS:
        mine, front = own[node_id], proxies[node_id]
        for behind, port in ((mine.internal, front.internal), (mine.replication, front.replication)):
            listens[Address("127.0.0.1", port)] = Address("127.0.0.1", behind)
        path = root / f"{node_id}.properties"
        path.write_text(
            f"node.id={node_id}\nlog.dirs={root}/data{node_id}\ncontroller.quorum.voters={voters}\n"
            f"listeners=GRPC://127.0.0.1:{mine.grpc},INTERNAL://127.0.0.1:{mine.internal},"
            f"REPLICATION://127.0.0.1:{mine.replication}\n"
            f"advertised.listeners=INTERNAL://127.0.0.1:{front.internal},REPLICATION://127.0.0.1:{front.replication}\n"
            "lane.listeners=REPLICATION\ndefault.replication.factor=3\nmin.insync.replicas=2\n"
        )
        format_node(
            load(str(path), path.read_text(), {}),
            cluster_id=cluster_id,
            secret=SECRET,
            disk=RealDisk(),
            new_uuid=random_uuid,
            protect=lambda name: os.chmod(name, 0o600),
        )
    client = {node_id: Address("127.0.0.1", own[node_id].grpc) for node_id in IDS}
    return Nodes(root, client, {}), Recorder(listens)


def test_what_nodes_send_each_other_holds_no_secret_and_gets_nothing_done_again(
    cluster: tuple[Nodes, Recorder],
) -> None:
    nodes, recorder = cluster
    asyncio.run(scenario(nodes, recorder))
    assert nodes.stop_all() == dict.fromkeys(IDS, 0)


async def scenario(nodes: Nodes, recorder: Recorder) -> None:
    await recorder.start()
    for node_id in IDS:
        nodes.start(node_id)
    client = Client(nodes)
    create = CreateTopicsRequest(
        topics=(CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3),), timeout_ms=CALL_MS
    )

    async def created() -> bool | None:
        response = await client.call(1, create)
        return True if response.error_code == 0 and response.topics[0].error_code in (0, 36) else None

    await client.until("topic", START_S, created)
    partition = await client.until("leader", START_S, lambda: client.leader(list(IDS), isr_size=3))
    await client.until("ack", START_S, lambda: client.produce(partition.leader_id, [b"a record"]))
    before = await epoch(client)

    recorded = [Recorded(kept.to, bytearray(kept.sent), bytearray(kept.answered)) for kept in recorder.connections]
    everything = b"\0".join(bytes(kept.sent + kept.answered) for kept in recorded)
    assert b"SCRAM-SHA-256" in everything and b"quorumlog.v1" in everything, "both wires were recorded"
    assert b"a record" in everything, "a follower fetched the record in clear"
    for form in forms(SECRET.encode()):
        assert form not in everything

    for kept in recorded:
        if kept.sent:
            await replay(kept)
    logs = "\n".join((nodes.root / f"{node_id}.log").read_text() for node_id in IDS)
    assert "came before: somebody repeats what was sent" in logs
    assert "belongs to another exchange" in logs
    assert await epoch(client) == before
    assert await client.until("same leader", START_S, lambda: client.leader(list(IDS), isr_size=3)) == partition
    recorder.close()


async def epoch(client: Client) -> tuple[NodeId, int]:
    """The leader of the quorum, and its epoch."""

    async def asked() -> tuple[NodeId, int] | None:
        response = await client.call(1, DescribeQuorumRequest())
        return (response.leader_id, response.leader_epoch) if response.error_code == 0 else None

    return await client.until("quorum", START_S, asked)


async def replay(kept: Recorded) -> None:
    """Send it all again on a new connection. No answer carries the data of one."""
    reader, writer = await asyncio.open_connection(kept.to.host, kept.to.port)
    writer.write(bytes(kept.sent))
    writer.write_eof()
    answered = b""
    try:
        async with asyncio.timeout(REPLAY_S):
            while data := await reader.read(65_536):
                answered += data
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    assert b"a record" not in answered
