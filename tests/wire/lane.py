"""A listener of the lane in this process, and a bare socket to it."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.serving.request_parts import RequestBook
from quorumlog.rpc.serving.request_time import RequestTime
from quorumlog.rpc.transport import Address, Handler, Identity, Listener
from quorumlog.security.quota.arrivals import Arrivals
from quorumlog.wire.format.header import RequestHeader
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.codec import encode_request
from quorumlog.wire.protocol.limits import ConnectionLimits, WireLimits
from quorumlog.wire.serving.server import WireServer
from quorumlog.wire.transport import WireTransport

IDENTITY = Identity(cluster_id="c1", node_id=1, incarnation_id=b"i" * 16, secret=b"s" * 32)


class Served:
    """crashes: unexpected errors; a test expects none."""

    def __init__(self, transport: WireTransport, server: WireServer, crashes: list[str]) -> None:
        self.transport, self.server, self.crashes = transport, server, crashes
        self.address: Address = server.listener.address

    async def socket(self) -> Wire:
        return Wire(*await asyncio.open_connection(self.address.host, self.address.port))


class Wire:
    """A client socket that sends and receives frames by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes:
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return await self.reader.readexactly(size)

    async def ended(self) -> bytes:
        """All bytes that came until the peer closed."""
        try:
            return await self.reader.read()
        except (ConnectionError, ssl.SSLError):
            return b""

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def serving(
    handler: Handler,
    *,
    limits: WireLimits | None = None,
    internal: bool = False,
    connection_limits: ConnectionLimits | None = None,
    time: RequestTime | None = None,
    book: RequestBook | None = None,
    arrivals: Arrivals | None = None,
) -> AsyncIterator[Served]:
    crashes: list[str] = []
    transport = WireTransport(
        IDENTITY,
        on_crash=lambda name, error: crashes.append(f"{name}: {error!r}"),
        limits=limits,
        connection_limits=connection_limits,
        time=time,
        book=book,
        arrivals=arrivals,
    )
    listener = Listener(name="TEST", address=Address("127.0.0.1", 0), internal=internal, lane=True)
    server = await transport.listen(listener, handler)
    try:
        async with asyncio.timeout(30):
            yield Served(transport, server, crashes)
    finally:
        await server.close()


def request_bytes(request: Any, correlation_id: int = 1, version: int | None = None) -> bytes:
    api = BY_REQUEST[type(request)]
    header = RequestHeader(api.key, api.newest if version is None else version, correlation_id, "by hand")
    return b"".join(encode_request(api, header, request))


async def echo(_context: Any, request: Any) -> Any:
    """Empty responses; a fetch is answered with as many bytes as it may have."""
    if isinstance(request, ProduceRequest):
        return None if request.acks == 0 else ProduceResponse()
    if isinstance(request, MetadataRequest):
        return MetadataResponse(cluster_id="c1")
    if isinstance(request, FetchRequest):
        partition = FetchPartitionResponse(index=0, records=bytes(max(0, request.max_bytes)))
        return FetchResponse(topics=(FetchTopicResponse(topic_id=bytes(16), partitions=(partition,)),))
    return BY_REQUEST[type(request)].method.response()


async def until(condition: Callable[[], bool]) -> None:
    """Fails after some seconds."""
    until_s = asyncio.get_running_loop().time() + 8
    while not condition():
        assert asyncio.get_running_loop().time() < until_s, "what the test waits for does not happen"
        await asyncio.sleep(0.005)
