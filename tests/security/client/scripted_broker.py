"""A broker of a few answers, over TLS or not: what came, in order, and how often somebody connected."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from quorumlog.rpc.transport import Address
from quorumlog.wire.format.header import API_VERSIONS_KEY, RequestHeader
from quorumlog.wire.format.kio_schemas import response_shape
from quorumlog.wire.protocol.codec import encode_values
from quorumlog.wire.protocol.sasl import AUTHENTICATE_KEY, HANDSHAKE_KEY

METADATA_KEY = 3
_NAMES = {
    API_VERSIONS_KEY: "api_versions",
    HANDSHAKE_KEY: "sasl_handshake",
    AUTHENTICATE_KEY: "sasl_authenticate",
    METADATA_KEY: "metadata",
}
VERSIONS = {
    "api_keys": [
        {"api_key": key, "min_version": 0, "max_version": newest}
        for key, newest in ((METADATA_KEY, 12), (HANDSHAKE_KEY, 1), (API_VERSIONS_KEY, 3), (AUTHENTICATE_KEY, 2))
    ]
}
METADATA = {"brokers": [], "cluster_id": "c1", "controller_id": 1, "topics": []}
Answers = Callable[[int], dict[str, Any] | None]  # by API key; None: close instead


class ScriptedBroker:
    """keys: of the requests that came, in order. connects: also those whose TLS failed."""

    def __init__(self, answers: Answers) -> None:
        self.keys: list[int] = []
        self.connects = 0
        self.address = Address("", 0)
        self._answers = answers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                key, version, correlation_id = struct.unpack(">hhi", frame[:8])
                self.keys.append(key)
                values = self._answers(key)
                if values is None:
                    return
                writer.writelines(
                    encode_values(
                        RequestHeader(key, version, correlation_id), response_shape(_NAMES[key], version), values
                    )
                )
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted_broker(answers: Answers, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedBroker]:
    broker = ScriptedBroker(answers)
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0, ssl=tls)
    front = await asyncio.start_server(lambda r, w: _pass(broker, server, r, w), "127.0.0.1", 0)
    broker.address = Address("127.0.0.1", front.sockets[0].getsockname()[1])
    try:
        async with asyncio.timeout(60):
            yield broker
    finally:
        front.close()
        server.close()


async def _pass(
    broker: ScriptedBroker, server: asyncio.Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Counts a connection, also one whose handshake fails behind it."""
    broker.connects += 1
    behind, to_broker = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    await asyncio.gather(_copy(reader, to_broker), _copy(behind, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
