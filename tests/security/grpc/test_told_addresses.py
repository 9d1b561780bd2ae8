"""Which gRPC address a node tells: that of the listener with the same protection, and to nobody before the login."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from protected_node import CERTIFIED, GRPC_CERTIFIED, LOGINS, SECURE, ProtectedNode

from quorumlog.client.real_edges import security_of
from quorumlog.rpc.caller_security import PLAIN_TEXT, CallerSecurity
from quorumlog.wire.format.frame_writer import LENGTH_BYTES
from quorumlog.wire.protocol import versions
from quorumlog.wire.transport import WireTransport
from tests.scenarios.one_node import LANE


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    made = ProtectedNode(tmp_path_factory.mktemp("node"))
    yield made
    made.close()
    assert not made.crashes


def told(node: ProtectedNode, listener: str, security: CallerSecurity = PLAIN_TEXT) -> Any:
    async def ask() -> Any:
        connection = WireTransport(security=security).connect(node.address(listener), internal=False)
        try:
            return (await connection.negotiate(ordered=True)).grpc_address
        finally:
            await connection.close()

    return node.do(ask())


def test_each_listener_tells_of_its_like(node: ProtectedNode) -> None:
    assert told(node, LANE) is None, "gRPC has no plain listener here"
    assert told(node, SECURE, security_of(node.by_login())) == node.address(LOGINS)
    by_certificate = security_of(node.by_certificate(node.issue("ada")))
    assert told(node, CERTIFIED, by_certificate) == node.address(GRPC_CERTIFIED)


def test_a_stranger_is_not_told(node: ProtectedNode) -> None:
    """Whoever has not logged in learns which versions there are, and nothing else."""

    async def ask() -> Any:
        address, security = node.address(SECURE), security_of(node.by_login())
        assert security.tls is not None
        context = security.tls.newest().context
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=context, server_hostname=address.host
        )
        writer.writelines(versions.ask(0, "stranger"))
        size = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        frame = memoryview(await reader.readexactly(size))
        writer.transport.abort()
        return versions.read_answer(frame)

    known, address = node.do(ask())
    assert known and address is None
