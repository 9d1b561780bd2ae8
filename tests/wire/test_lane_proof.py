"""How nodes prove themselves on the lane, and what a recording of it is good for: nothing, on another connection."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from lane import IDENTITY, Served, echo, request_bytes, serving
from proving import authenticate, prove, scram_of

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.cluster import MetadataRequest
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.rpc.transport import Address, Identity, NotDelivered, Transport
from quorumlog.wire.protocol import sasl, versions
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.transport import WireTransport

FETCH = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10)
NODE = replace(IDENTITY, node_id=2, incarnation_id=b"2" * 16)
LONG_MS = 10_000


class Recorder:
    """A handler that counts."""

    def __init__(self) -> None:
        self.seen = 0

    async def __call__(self, context: Any, request: Any) -> Any:
        self.seen += 1
        return await echo(context, request)


class Proxy:
    """Passes bytes on and keeps them. sent: by the callers, a connection each. answered: by the listener."""

    def __init__(self, to: Address) -> None:
        self.to = to
        self.sent: list[bytearray] = []
        self.answered = bytearray()
        self.address = to

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(self.to.host, self.to.port)
        kept = bytearray()
        self.sent.append(kept)

        async def back() -> None:
            while data := await behind_reader.read(65_536):
                self.answered += data
                writer.write(data)
            writer.close()

        answers = asyncio.ensure_future(back())
        while data := await reader.read(65_536):
            kept += data
            behind_writer.write(data)
        behind_writer.close()
        await answers


@asynccontextmanager
async def proxied(served: Served) -> AsyncIterator[Proxy]:
    proxy = Proxy(served.address)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.address = Address(*server.sockets[0].getsockname()[:2])
    try:
        yield proxy
    finally:
        server.close()


async def fetch(transport: Transport, address: Address) -> Any:
    connection = transport.connect(address, internal=True)
    try:
        return await connection.call(FETCH, LONG_MS)
    finally:
        await connection.close()


def test_a_recorded_connection_is_refused_when_it_is_played_again(caplog: pytest.LogCaptureFixture) -> None:
    handler = Recorder()

    async def scenario() -> None:
        async with serving(handler, internal=True) as served, proxied(served) as proxy:
            answer = await fetch(WireTransport(NODE), proxy.address)
            assert isinstance(answer, FetchResponse) and answer.error_code == 0 and handler.seen == 1
            (recorded,) = proxy.sent
            everything = bytes(recorded) + bytes(proxy.answered)
            for form in (NODE.secret, base64.b64encode(NODE.secret), NODE.secret.hex().encode()):
                assert form not in everything
            wire = await served.socket()
            wire.send(bytes(recorded))
            await wire.ended()  # a reset may overtake the refusal, so the listener's log is asked for it
            assert handler.seen == 1

    asyncio.run(scenario())
    assert "belongs to another exchange" in caplog.text


def test_a_recorded_proof_is_refused_with_the_nonce_of_a_new_connection_put_in() -> None:
    async def scenario() -> None:
        async with serving(echo, internal=True) as served:
            wire, scram = await served.socket(), scram_of(NODE)
            first = scram.first()
            asked = await authenticate(wire, first)
            final = scram.final(asked)
            scram.verify(await authenticate(wire, final))
            other = await served.socket()
            asked_again = await authenticate(other, first)
            old, new = (message.split(b",")[0][2:] for message in (asked, asked_again))
            with pytest.raises(ApiError, match="wrong cluster secret"):
                await authenticate(other, final.replace(old, new))
            assert await other.ended() == b""

    asyncio.run(scenario())


def test_a_recorded_proof_is_refused_on_its_own_connection_too() -> None:
    async def scenario() -> None:
        async with serving(echo, internal=True) as served:
            wire, scram = await served.socket(), scram_of(NODE)
            first = scram.first()
            final = scram.final(await authenticate(wire, first))
            await authenticate(wire, final)
            with pytest.raises(ApiError, match="out of its order"):
                await authenticate(wire, final)
            assert await wire.ended() == b""

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("identity", "code", "text"),
    [
        (replace(NODE, secret=b"another"), ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "wrong cluster secret"),
        (replace(NODE, cluster_id="c2"), ErrorCode.INCONSISTENT_CLUSTER_ID, "this is cluster c1, not c2"),
    ],
    ids=["secret", "cluster"],
)
def test_a_stranger_reads_why_and_the_connection_ends(identity: Identity, code: ErrorCode, text: str) -> None:
    async def scenario() -> None:
        async with serving(echo, internal=True) as served:
            wire = await served.socket()
            with pytest.raises(ApiError, match=text) as refused:
                await prove(wire, identity)
            assert refused.value.code is code
            assert await wire.ended() == b""

    asyncio.run(scenario())


def test_nothing_but_the_proof_is_carried_out_before_it() -> None:
    handler = Recorder()

    async def scenario() -> None:
        async with serving(handler, internal=True) as served:
            wire, scram = await served.socket(), scram_of(NODE)
            wire.send(b"".join(versions.ask(1, "")))
            await wire.frame()
            await authenticate(wire, scram.first())
            wire.send(request_bytes(FETCH) + request_bytes(MetadataRequest(all_topics=True), 2))
            await wire.frame()
            assert await wire.ended() == b"" and handler.seen == 0

    asyncio.run(scenario())


def test_a_client_listener_proves_nothing() -> None:
    async def scenario() -> None:
        async with serving(echo) as served:
            wire = await served.socket()
            with pytest.raises(ApiError, match="asks for no proof"):
                await authenticate(wire, scram_of(NODE).first())
            assert await wire.ended() == b""

    asyncio.run(scenario())


def test_a_connection_that_does_not_prove_itself_in_time_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(echo, internal=True, limits=WireLimits(max_unproven_ms=200)) as served:
            began_s = time.monotonic()
            silent, talker, node = await served.socket(), await served.socket(), await served.socket()
            await prove(node, NODE)

            async def talk() -> None:
                while True:
                    talker.send(b"".join(versions.ask(1, "")))
                    await talker.frame()

            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await talk()
            assert await silent.ended() == b""
            assert time.monotonic() - began_s >= 0.2
            node.send(request_bytes(FETCH))
            assert await node.frame()

    with caplog.at_level(logging.WARNING, "quorumlog.wire"):
        asyncio.run(scenario())
    assert caplog.text.count("it has not proven itself within 200 ms") == 2


def test_a_large_message_is_not_received_from_one_who_has_proven_nothing() -> None:
    async def scenario() -> None:
        async with serving(echo, internal=True) as served:
            wire = await served.socket()
            wire.send((1_000_000).to_bytes(4, "big"))
            assert await wire.ended() == b""

    asyncio.run(scenario())


def test_a_listener_without_the_secret_gets_no_call(caplog: pytest.LogCaptureFixture) -> None:
    """It accepts every proof, and cannot give one."""
    handler = Recorder()

    async def scenario() -> None:
        async with serving(handler, internal=True) as served:
            fake = await asyncio.start_server(lambda *socket: _accept_all(served, *socket), "127.0.0.1", 0)
            address = Address(*fake.sockets[0].getsockname()[:2])
            with pytest.raises(NotDelivered, match="does not know this cluster's secret"):
                await fetch(WireTransport(NODE), address)
            fake.close()
            assert handler.seen == 0

    asyncio.run(scenario())
    assert "has not proven that it belongs to this cluster" in caplog.text


async def _accept_all(served: Served, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Lets a real listener answer all but the last message."""
    wire = await served.socket()
    for _ in range(3):
        size = await reader.readexactly(4)
        wire.send(size + await reader.readexactly(int.from_bytes(size, "big")))
        frame = await wire.frame()
        writer.write(len(frame).to_bytes(4, "big") + frame)
    await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    header = sasl.RequestHeader(sasl.AUTHENTICATE_KEY, 1, 0)
    writer.write(b"".join(sasl.answer_authenticate(header, b"v=" + b"A" * 43 + b"=")))
    await reader.read()
    writer.close()


def test_a_relay_can_pass_on_a_connection_but_not_keep_its_proof(caplog: pytest.LogCaptureFixture) -> None:
    """What holds without TLS: who stays in the middle of a proven connection can use it, until it ends."""
    handler = Recorder()

    async def scenario() -> None:
        async with serving(handler, internal=True) as served, proxied(served) as proxy:
            for _ in range(2):
                assert (await fetch(WireTransport(NODE), proxy.address)).error_code == 0
            first, second = (bytes(sent) for sent in proxy.sent)
            assert first != second
            for mixed in (first + second, second + first):
                wire = await served.socket()
                wire.send(mixed)
                await wire.ended()
            assert handler.seen == 2

    asyncio.run(scenario())
    assert "belongs to another exchange" in caplog.text
