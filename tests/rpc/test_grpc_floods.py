"""Peers that flood a listener of gRPC before they have logged in: others are served."""

from __future__ import annotations

import asyncio
import ssl
import struct
import time
from collections.abc import Callable, Iterator

import pytest
from secured import material_of
from test_grpc_logins import Users, basic, sasl_node, shows
from test_grpc_tls import CALL_MS, FETCH, connected_to, run

from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.handshake import PREFACE
from quorumlog.rpc.transport import Address

FLOOD = 5_000
SERVED_S = 5.0  # of one call beside the flood; without one it takes some milliseconds
HEADERS, RST_STREAM, CONTINUATION = 0x1, 0x3, 0x9  # RFC 9113, 6
END_STREAM, END_HEADERS = 0x1, 0x4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """Without a place in the table (RFC 7541, 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request_headers() -> bytes:
    path = BY_REQUEST[type(FETCH)].method.path.encode()
    known = b"\x83\x87" + b"\x04" + bytes([len(path)]) + path + b"\x01\x01h"  # POST, https, the path, a host
    return known + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")


def rapid_reset() -> Iterator[bytes]:
    """CVE-2023-44487: streams that are opened and reset at once."""
    block = request_headers()
    for number in range(FLOOD):
        stream = 2 * number + 1
        yield frame(HEADERS, END_HEADERS, stream, block) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def endless_headers() -> Iterator[bytes]:
    """CVE-2023-33953, CVE-2024-27316: headers that never end."""
    yield frame(HEADERS, END_STREAM, 1, request_headers())
    block = b"".join(literal(b"x-%d" % number, b"v" * 100) for number in range(100))
    for _ in range(FLOOD):
        yield frame(CONTINUATION, 0, 1, block)


async def flood(address: Address, frames: Iterator[bytes]) -> int:
    """How many frames were sent until the server closed."""
    context = ssl.create_default_context(cadata=material_of(None).authorities.decode())
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname="localhost")
    sent = 0

    async def swallow() -> None:
        while await reader.read(65_536):
            pass

    swallowing = asyncio.create_task(swallow())
    try:
        writer.write(PREFACE)
        for data in frames:
            writer.write(data)
            sent += 1
            if sent % 100 == 0:
                await writer.drain()
                await asyncio.sleep(0)
    except (OSError, ssl.SSLError):
        pass
    finally:
        swallowing.cancel()
        writer.transport.abort()
    return sent


@pytest.mark.parametrize("frames", [rapid_reset, endless_headers], ids=["rapid reset", "endless headers"])
def test_a_flood_before_the_login_takes_nothing_from_others(frames: Callable[[], Iterator[bytes]]) -> None:
    async def scenario() -> None:
        node = sasl_node(Users(ada="pencil"))
        async with node.serving() as address, connected_to(address, shows(basic("ada", "pencil"))) as connection:
            await connection.call(FETCH, CALL_MS)
            flooding = asyncio.create_task(flood(address, frames()))
            slowest_s = 0.0
            while not flooding.done():
                began_s = time.monotonic()
                await connection.call(FETCH, CALL_MS)
                slowest_s = max(slowest_s, time.monotonic() - began_s)
                await asyncio.sleep(0.02)
            assert await flooding and slowest_s < SERVED_S, slowest_s
            async with connected_to(address, shows(basic("ada", "pencil"))) as another:
                await another.call(FETCH, CALL_MS)
        assert {str(one) for one in node.principals} == {"User:ada"}

    run(scenario())
