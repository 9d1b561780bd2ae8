"""No request that anybody can send makes a node fail: an unexpected exception of a handler ends the process.

One real node (both roles, real files, real gRPC) in this process, whose fail-stop is a list. Requests of every type
that a client may send, built from values near the edges of what is legal; each gets an answer of its own type.
"""

from __future__ import annotations

import asyncio
import dataclasses
import traceback
import types
import typing
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.server.config import load
from cli.server.format import format_node
from cli.server.node import Node, build_node
from cli.server.real_edges import random_uuid, real_edges
from cli.server.secret import new_secret
from quorumlog.ids import format_uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.cluster import CreatableTopic, CreateTopicsRequest, MetadataRequest, TopicQuery
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceTopic
from quorumlog.messages.services import METHODS
from quorumlog.records.plain import encode_batch
from quorumlog.records.record import Record
from quorumlog.rpc.access import INTERNAL_SERVICES
from quorumlog.rpc.grpc_transport import GrpcTransport
from quorumlog.rpc.transport import Connection, OutcomeUnknown
from quorumlog.testing.ports import PortPicker
from storage.edge.disk import RealDisk

CALL_MS = 10_000
TOPIC = "fuzz"
BATCH = encode_batch([Record(number, 1_700_000_000_000, None, b"value", ()) for number in range(3)])
METHOD_OF = {method.request: method for method in METHODS if method.service not in INTERNAL_SERVICES}


class World:
    """The node, a client's connection to it, and what should never happen."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.crashes: list[str] = []
        self.picker = PortPicker()
        self.topic_id = b""
        self.stored = 0  # records that were appended on purpose, or by chance
        (ports,) = self.picker.pick(1)
        path = folder / "server.properties"
        path.write_text(
            f"node.id=1\nlog.dirs={folder}/a\nlisteners=CLIENT://127.0.0.1:0,GRPC://127.0.0.1:0,"
            f"INTERNAL://127.0.0.1:{ports.internal}\n"
            f"controller.quorum.voters=1@127.0.0.1:{ports.internal}\n"
        )
        self.config = load(str(path), path.read_text(), {})
        secret = new_secret(bytes(range(32)))
        format_node(
            self.config,
            cluster_id=format_uuid(random_uuid()),
            secret=secret,
            disk=RealDisk(),
            new_uuid=random_uuid,
            protect=lambda name: Path(name).chmod(0o600),
        )
        self.node, self.connection = self.do(self._start())

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(coroutine)

    def on_crash(self, name: str, error: BaseException) -> None:
        self.crashes.append(f"{name}\n{''.join(traceback.format_exception(error))}")

    async def _start(self) -> tuple[Node, Connection]:
        edges = dataclasses.replace(
            real_edges(self.config),
            on_crash=self.on_crash,
            transport=lambda identity: GrpcTransport(identity, on_crash=self.on_crash),
        )
        node = build_node(self.config, edges)
        await node.start()
        async with asyncio.timeout(30):
            while not node.ready:  # noqa: ASYNC110 - readiness is a question
                await asyncio.sleep(0.02)
        connection = GrpcTransport().connect(node.addresses["GRPC"], internal=False)
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        await connection.call(CreateTopicsRequest(topics=(topic,), timeout_ms=CALL_MS), CALL_MS)
        return node, connection

    async def append(self) -> int:
        """One good batch, with which the node shows that it is well. The error code."""
        partition = ProducePartition(index=0, records=BATCH)
        topic = ProduceTopic(name=TOPIC, partitions=(partition,))
        response = await self.connection.call(ProduceRequest(acks=-1, timeout_ms=CALL_MS, topics=(topic,)), CALL_MS)
        return int(response.topics[0].partitions[0].error_code)

    async def call(self, request: Any) -> Any:
        """The answer; None where the stream was ended, as after a failed acks=0, or no answer is due."""
        try:
            return await self.connection.call(request, CALL_MS)
        except OutcomeUnknown:
            return None

    def close(self) -> None:
        self.do(self.connection.close())
        self.do(self.node.stop())
        self.loop.close()
        self.picker.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("fuzz"))
    try:
        for _ in range(100):
            asked = MetadataRequest(all_topics=False, topics=(TopicQuery(name=TOPIC),))
            found = world.do(world.connection.call(asked, CALL_MS)).topics[0]
            if found.error_code == 0 and found.partitions[0].leader_id == 1 and world.do(world.append()) == 0:
                break
            world.do(asyncio.sleep(0.05))
        TOPIC_IDS.append(found.topic_id)
        yield world
    finally:
        world.close()


# --- requests near the edges ---

TOPIC_IDS: list[bytes] = [b"", bytes(16), b"\xff" * 16, b"short"]
NAMES = st.sampled_from([TOPIC, TOPIC, "..", "a/b", "", "x" * 250, "nope", "\0", "retention.ms"]) | st.text(max_size=4)
NUMBERS = st.sampled_from([-(2**31), -3, -2, -1, 0, 0, 1, 1, 2, 3, 4, 2**31 - 1])
SMALL_WAITS = st.sampled_from([-1, 0, 1, 5])


def flipped(position: int) -> bytes:
    data = bytearray(BATCH)
    data[position % len(data)] ^= 0xFF
    return bytes(data)


RECORDS = (
    st.sampled_from([BATCH, BATCH + BATCH, BATCH[:-1], b""]) | st.integers(0, 500).map(flipped) | st.binary(max_size=70)
)


KINDS = sorted(METHOD_OF, key=lambda kind: kind.__name__)


def built(kind: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{f.name: value_of(f.name, hints[f.name]) for f in dataclasses.fields(kind)})


def value_of(name: str, hint: Any) -> st.SearchStrategy[Any]:
    if hint == Buffer:
        return RECORDS
    if typing.get_origin(hint) is tuple:
        return st.lists(value_of(name, typing.get_args(hint)[0]), max_size=2).map(tuple)
    if isinstance(hint, types.UnionType):
        (single,) = [part for part in typing.get_args(hint) if part is not types.NoneType]
        return st.none() | value_of(name, single)
    if dataclasses.is_dataclass(hint):
        return built(hint)
    if name == "port":
        return st.integers(0, 2**16)
    if hint is int:
        return SMALL_WAITS if name in ("timeout_ms", "max_wait_ms") else NUMBERS
    if hint is bytes:
        return st.deferred(lambda: st.sampled_from(TOPIC_IDS)) | st.binary(max_size=3)
    return {str: NAMES, bool: st.booleans(), float: st.just(0.5)}[hint]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
@settings(max_examples=30, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_every_request_gets_an_answer_and_none_makes_the_node_fail(
    world: World, kind: Any, data: st.DataObject
) -> None:
    request = data.draw(built(kind))
    response = world.do(world.call(request))
    assert response is None or type(response) is METHOD_OF[kind].response
    crashes, world.crashes = world.crashes, []
    assert not crashes, f"{request}\n{crashes[0]}"


def test_the_node_is_well_after_all_of_it(world: World) -> None:
    if world.do(world.call(MetadataRequest(all_topics=True))) is None:
        pytest.fail("no answer")
    assert world.node.ready and world.node.fatal is None
    assert world.crashes == []
