"""Addresses that a peer or a person has told, and that no resolver takes: Python raises ValueError for them."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from quorumlog.messages.cluster import MetadataRequest
from quorumlog.rpc.calling.probe import try_connect
from quorumlog.rpc.grpc.handshake import shake_hands
from quorumlog.rpc.transport import Address, NoProof, NotDelivered
from quorumlog.wire.transport import WireTransport

NO_HOSTS = [".x", f"{'a' * 70}.example", "a..b", "a\0b"]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_nobody_is_there_and_nothing_crashes(host: str) -> None:
    """A node stops where something of it crashes, and may be told of a voter by a client."""
    address, crashes = Address(host, 9), list[str]()

    async def scenario() -> None:
        assert isinstance(await try_connect(address), NoProof)
        with pytest.raises(NotDelivered, match="no connection"):
            await shake_hands(address, ssl.create_default_context())
        lane = WireTransport(on_crash=lambda name, _error: crashes.append(name))
        connection = lane.connect(address, internal=False)
        with pytest.raises(NotDelivered):
            await connection.call(MetadataRequest(all_topics=True), 500)
        await connection.close()

    asyncio.run(scenario())
    assert crashes == []
