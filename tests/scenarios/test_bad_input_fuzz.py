"""No request makes a node fail; an unexpected exception of a handler would end the process.

One real node (both roles, real files, real gRPC) runs in this process and records crashes in a list. Requests of every
type that a client may send are built from values near the limits of what is legal. Each gets a response of its type.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from one_node import BATCH, CALL_MS, GRPC, RealNode, make_topic

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.services import METHODS
from quorumlog.rpc.transport import OutcomeUnknown
from quorumlog.security.required.nodes_only import INTERNAL_SERVICES
from tests.parts import few

TOPIC = "fuzz"
METHOD_OF = {method.request: method for method in METHODS if method.service not in INTERNAL_SERVICES}


class World:
    """The node and a client's gRPC connection to it, which carries every type."""

    def __init__(self, folder: Path) -> None:
        self.at = RealNode(folder)
        self.connection = self.at.connect(GRPC)
        self.topic_id = self.at.do(make_topic(self.connection, TOPIC))

    async def call(self, request: Any) -> Any:
        """The response; None if the stream ended, as after a failed acks=0, or if no answer is due."""
        try:
            return await self.connection.call(request, CALL_MS)
        except OutcomeUnknown:
            return None

    def close(self) -> None:
        self.at.do(self.connection.close())
        self.at.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("fuzz"))
    try:
        TOPIC_IDS.append(world.topic_id)
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
@settings(max_examples=few(30), suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_every_request_gets_an_answer_and_none_makes_the_node_fail(
    world: World, kind: Any, data: st.DataObject
) -> None:
    request = data.draw(built(kind))
    response = world.at.do(world.call(request))
    assert response is None or type(response) is METHOD_OF[kind].response
    crashes, world.at.crashes = world.at.crashes, []
    assert not crashes, f"{request}\n{crashes[0]}"


def test_the_node_is_healthy_afterwards(world: World) -> None:
    if world.at.do(world.call(MetadataRequest(all_topics=True))) is None:
        pytest.fail("no answer")
    assert world.at.node.ready and world.at.node.fatal is None
    assert world.at.crashes == []
