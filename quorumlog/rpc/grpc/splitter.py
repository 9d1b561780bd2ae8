"""One port for TLS and for gRPC in clear, while nodes go from one to the other (`NodeAuth.BOTH`).

The first byte of a connection says which it is: a TLS handshake begins with 0x16, HTTP/2 with `P`. Its bytes then go to
one of two ports of the same server on loopback, and back. That costs a copy each way, so it is for the calls between
nodes, and for the time between two rolling restarts.
"""

from __future__ import annotations

import asyncio

from quorumlog.nursery import Nursery, OnCrash
from quorumlog.rpc.transport import Address

TLS_HANDSHAKE = 0x16  # RFC 8446, 5.1: ContentType
FIRST_BYTE_TIMEOUT_S = 10.0
LAST_BYTES_TIMEOUT_S = 5.0  # to a caller that has closed
MAX_CONNECTIONS = 1_000  # of nodes of one cluster; one more is closed
PIECE_BYTES = 256 * 1024


class Splitter:
    """tls, plain: ports on loopback."""

    def __init__(self, tls: int, plain: int, on_crash: OnCrash) -> None:
        self._tls, self._plain = tls, plain
        self._nursery = Nursery(on_crash)
        self._server: asyncio.Server | None = None
        self._callers: dict[str, str] = {}  # as gRPC names them: by what a port of ours is called, who is behind it
        self._is_closed = False

    async def listen(self, address: Address) -> int:
        """The port. Raises OSError."""
        self._server = await asyncio.start_server(
            self._accept, address.host or None, address.port, limit=PIECE_BYTES, reuse_address=True
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def caller(self, peer: str) -> str:
        """Who is behind what gRPC takes for a peer."""
        return self._callers.get(peer, peer)

    async def close(self) -> None:
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        await self._nursery.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_closed or len(self._nursery) >= MAX_CONNECTIONS:
            writer.transport.abort()
        else:
            self._nursery.start(self._serve(reader, writer), "connection of a node")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(FIRST_BYTE_TIMEOUT_S):
                first = await reader.read(PIECE_BYTES)
            if first:
                await self._join(first, reader, writer)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()

    async def _join(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self._tls if first[0] == TLS_HANDSHAKE else self._plain
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port, limit=PIECE_BYTES)
        name = _named(to_server.get_extra_info("sockname"))
        self._callers[name] = _named(writer.get_extra_info("peername"))
        back = asyncio.create_task(_copy(from_server, writer))
        try:
            to_server.write(first)
            await _copy(reader, to_server)
            async with asyncio.timeout(LAST_BYTES_TIMEOUT_S):
                await back
        finally:
            to_server.transport.abort()
            back.cancel()
            del self._callers[name]


def _named(where: tuple[str, int]) -> str:
    host, port = where[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one of them ends, which the other then does, too."""
    try:
        while data := await reader.read(PIECE_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
