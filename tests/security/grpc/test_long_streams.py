"""Streams of our clients outlive the tokens and certificates that they were opened with; nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from protected_node import GRPC_CERTIFIED, LOGINS, ProtectedNode, token

from quorumlog.client.errors import AuthenticationFailed
from quorumlog.client.real_edges import admin, consumer, producer

STREAMED = {"transport": "grpc", "stream_chunks": True}
LIFE_S, REAUTH_MS = 0.8, 1_000


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    more = {"listener.name.grpc_logins.connections.max.reauth.ms": str(REAUTH_MS)}
    made = ProtectedNode(tmp_path_factory.mktemp("node"), more)
    yield made
    made.close()
    assert not made.crashes


@pytest.fixture
def node(shared: ProtectedNode) -> ProtectedNode:
    shared.came.clear()
    return shared


async def flows(given: dict[str, Any], topic: str, seconds: float) -> None:
    """One client writes by one stream what another one reads by another, for so long."""
    async with admin({**given, "transport": "grpc"}) as client:
        await client.create_topic(topic, partitions=1, replication=1)
    sent, read = 0, list[bytes | None]()
    async with producer({**given, "transport": "grpc"}) as sender, consumer({**given, **STREAMED}) as reader:
        await reader.assign_topic(topic)
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            placed = await (await sender.send(topic, b"%d" % sent))
            assert placed.offset == sent, "a record is there twice, or none"
            sent += 1
            read += [record.value for record in await reader.poll(timeout_ms=50)]
        while len(read) < sent:
            found = await reader.poll(timeout_ms=5_000)
            assert found, f"{sent - len(read)} records are lost"
            read += [record.value for record in found]
    assert read == [b"%d" % number for number in range(sent)] and sent > 5


def test_a_stream_outlives_its_tokens(node: ProtectedNode) -> None:
    """Security journal S5: nothing but the token bounds the session."""
    asked = []

    def next_token() -> str:
        asked.append(time.monotonic())
        return token(LIFE_S)

    node.do(flows(node.by_token(next_token, LOGINS), "tokens", 3.2 * LIFE_S))
    assert {"Produce", "FetchChunk"} <= set(node.requests(LOGINS))
    assert len(asked) >= 1 + 2 * 2, "the writer and the reader have had two tokens each, at least"
    assert len(asked) < 60, "a token serves many calls"


def test_a_user_whose_password_is_changed_reads_until_the_session_ends(node: ProtectedNode) -> None:
    """`connections.max.reauth.ms` bounds a stream as it does a connection of the lane."""
    given = node.by_login(LOGINS)
    node.do(flows(given, "sessions", 0.4))
    node.make_user("bob", "pen")

    async def scenario() -> None:
        async with consumer({**given, **STREAMED, "sasl_username": "bob", "sasl_password": "pen"}) as reader:
            await reader.assign_topic("sessions")
            assert await reader.poll(timeout_ms=5_000)
            await node.change_user("bob", "other")
            began_s = time.monotonic()
            with pytest.raises(AuthenticationFailed, match="sasl_password"):
                while time.monotonic() - began_s < 10:
                    await reader.poll(timeout_ms=100)

    node.do(scenario())


def test_a_stream_outlives_its_certificate(node: ProtectedNode) -> None:
    """The file is replaced before the certificate ends; who has opened a stream goes on with the new one."""
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    path = node.issue("ada", not_after=ends)

    async def scenario() -> None:
        left_s = (ends - datetime.now(UTC)).total_seconds()
        flowing = asyncio.create_task(flows(node.by_certificate(path, GRPC_CERTIFIED), "certificates", left_s + 1))
        await asyncio.sleep(left_s / 2)
        renewed = node.issue("renewed")
        (node.folder / "renewed.pem").replace(path)
        assert renewed != path
        await flowing

    node.do(scenario())
    assert node.requests(GRPC_CERTIFIED)["FetchChunk"] == {"User:CN=ada", "User:CN=renewed"}
    assert node.requests(GRPC_CERTIFIED)["Produce"] == {"User:CN=ada", "User:CN=renewed"}
