"""A listener of the lane in this process with a protection, and peers that speak to it by hand."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.fetch import FetchPartitionResponse, FetchRequest, FetchResponse, FetchTopicResponse
from quorumlog.rpc.transport import Address, Context, Handler, Listener
from quorumlog.settings.security import StrangerLimits
from quorumlog.wire.protocol.apis import BY_REQUEST
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.serving.strangers import Strangers
from quorumlog.wire.transport import WireTransport
from tests.wire.lane import IDENTITY, Wire, request_bytes


async def at_once(work: Callable[[], Any]) -> Any:
    return work()


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Door:
    """crashes: unexpected errors; a test expects none. contexts: what the listener's handlers saw."""

    transport: WireTransport
    address: Address
    crashes: list[str]
    contexts: list[Context]

    @property
    def strangers(self) -> Strangers:
        return self.transport.strangers[False]

    async def open(self, context: ssl.SSLContext | None = None) -> Wire:
        name = None if context is None else "localhost"
        return Wire(
            *await asyncio.open_connection(self.address.host, self.address.port, ssl=context, server_hostname=name)
        )


@asynccontextmanager
async def door(
    protection: Protection | None,
    *,
    handler: Handler | None = None,
    limits: WireLimits | None = None,
    strangers: StrangerLimits | None = None,
    internal: bool = False,
) -> AsyncIterator[Door]:
    crashes: list[str] = []
    contexts: list[Context] = []
    transport = WireTransport(
        IDENTITY,
        on_crash=lambda name, error: crashes.append(f"{name}: {error!r}"),
        limits=limits,
        protections={} if protection is None else {"TEST": protection},
        stranger_limits=strangers,
    )

    asyncio.get_running_loop().set_exception_handler(lambda _loop, found: crashes.append(f"of the loop: {found}"))

    def noted(context: Context, request: Any) -> Awaitable[Any]:
        contexts.append(context)
        return (handler or echo)(context, request)

    listener = Listener(name="TEST", address=Address("127.0.0.1", 0), internal=internal, lane=True)
    server = await transport.listen(listener, noted)
    try:
        async with asyncio.timeout(20):
            yield Door(transport, server.listener.address, crashes, contexts)
    finally:
        await server.close()
    assert crashes == []


METADATA = request_bytes(MetadataRequest(all_topics=True))


def fetch_of(size_bytes: int, correlation_id: int = 1) -> bytes:
    return request_bytes(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=size_bytes), correlation_id)


def records(size_bytes: int) -> bytes:
    """What a fetch of so many bytes is answered with: a row that tells a piece from its neighbour."""
    row = b"".join(bytes(((high + low) % 256,)) for high in range(256) for low in range(256))
    return (row * (size_bytes // len(row) + 1))[:size_bytes]


async def echo(_context: Context, request: Any) -> Any:
    if isinstance(request, MetadataRequest):
        return MetadataResponse(cluster_id="c1")
    if isinstance(request, FetchRequest):
        partition = FetchPartitionResponse(index=0, records=records(request.max_bytes))
        return FetchResponse(topics=(FetchTopicResponse(topic_id=bytes(16), partitions=(partition,)),))
    return BY_REQUEST[type(request)].method.response()
