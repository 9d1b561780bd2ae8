"""Peers that flood a listener of gRPC before they have logged in: others are served."""

from __future__ import annotations

import asyncio
import functools
import resource
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from secured import material_of
from test_grpc_logins import basic, sasl_node, shows
from test_grpc_tls import CALL_MS, FETCH, connected_to, run

from quorumlog.messages.fetch import FetchResponse
from quorumlog.rpc.calls import BY_REQUEST
from quorumlog.rpc.grpc.handshake import PREFACE
from quorumlog.rpc.grpc.options import GrpcOptions
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.transport import Address, Connection, Listener
from tests.rules import rule
from tests.security.sasl.users import Users

FLOOD = 5_000
PEERS = 300
CONNECTIONS, BUDGET_BYTES = 100, 64 << 20
MOST_MORE_BYTES = 256 << 10  # of a connection, once as many idle ones have come and gone
SERVED_S = 5.0  # of one call beside the flood; without one it takes some milliseconds
OF_LINUX = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read as Linux tells it")
DATA, HEADERS, RST_STREAM, CONTINUATION = 0x0, 0x1, 0x3, 0x9  # RFC 9113, 6
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


@functools.cache
def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=material_of(None).authorities.decode())
    context.set_alpn_protocols(["h2"])
    return context


async def connected(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(address.host, address.port, ssl=trusting(), server_hostname="localhost")


async def flood(address: Address, frames: Iterator[bytes]) -> int:
    """How many frames were sent until the server closed."""
    reader, writer = await connected(address)
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


def half_headers() -> bytes:
    """Headers of which most are missing."""
    whole = frame(HEADERS, 0, 1, bytes(16_000))
    return PREFACE + whole[:1_000]


def half_message() -> bytes:
    """A stream whose message promises 4 GiB, and a frame that promises 16 KiB; of both only the beginning comes."""
    headers = frame(HEADERS, END_HEADERS, 1, request_headers())
    message = frame(DATA, 0, 1, b"\0\xff\xff\xff\xff" + bytes(100))
    return headers + message + frame(DATA, 0, 1, bytes(16_384))[:200]


@OF_LINUX
@rule("security 1.20")
def test_connections_that_stop_in_a_frame_are_bounded_and_cost_little() -> None:
    """The limit holds before any login. Who is connected is served."""

    async def scenario() -> tuple[int, int]:
        transport = GrpcTransport(options=GrpcOptions(max_connections=CONNECTIONS, health=False))
        listener = Listener(name="G", address=Address("127.0.0.1", 0), internal=False)

        async def handler(_context: object, _request: object) -> FetchResponse:
            return FetchResponse()

        server = await transport.listen(listener, handler)
        address = server.listener.address
        connection = transport.connect(address, internal=False)
        try:
            await connection.call(FETCH, CALL_MS)
            before = resident_bytes()
            held = [await asyncio.open_connection(address.host, address.port) for _ in range(5 * CONNECTIONS)]
            for _, writer in held:
                writer.write(half_headers())
            await connection.call(FETCH, CALL_MS)
            ended = await asyncio.gather(*(has_ended(reader) for reader, _ in held))
            await connection.call(FETCH, CALL_MS)
            grown = resident_bytes() - before
            for _, writer in held:
                writer.transport.abort()
        finally:
            await connection.close()
            await server.close()
        return sum(ended), grown

    ended, grown = asyncio.run(scenario())
    assert ended >= 4 * CONNECTIONS and grown < BUDGET_BYTES, (ended, grown)


async def has_ended(reader: asyncio.StreamReader) -> bool:
    """Within a second."""
    try:
        async with asyncio.timeout(1):
            while await reader.read(65_536):
                pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def cost_bytes(address: Address, sent: bytes, other: Connection) -> float:
    """What a stranger costs both sides, who sends this and stays, while another client is served."""
    before, held = resident_bytes(), list[asyncio.StreamWriter]()
    for _ in range(PEERS):
        _, writer = await connected(address)
        writer.write(sent)
        held.append(writer)
        await other.call(FETCH, CALL_MS)
    took = resident_bytes() - before
    for writer in held:
        writer.transport.abort()
    return took / PEERS


@OF_LINUX
def test_half_frames_before_the_login_cost_little_memory() -> None:
    """What a frame or a message promises is not set aside: CVE-2022-34917 and CVE-2026-27571 of this wire."""

    async def scenario() -> None:
        node = sasl_node(Users(ada="pencil"))
        async with node.serving() as address, connected_to(address, shows(basic("ada", "pencil"))) as connection:
            await connection.call(FETCH, CALL_MS)
            await cost_bytes(address, PREFACE, connection)
            more = await cost_bytes(address, PREFACE + half_message(), connection)
        assert more < MOST_MORE_BYTES, more
        assert {str(one) for one in node.principals} == {"User:ada"}

    run(scenario())
