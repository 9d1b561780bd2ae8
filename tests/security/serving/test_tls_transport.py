"""A listener with TLS: what is on the wire, how handshakes fail, how connections end, and who is counted when."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from authority import Authority, client_context, server_context
from door import METADATA, at_once, door, fetch_of, records, wall_ms

from quorumlog.client.errors import AuthenticationFailed
from quorumlog.client.real_edges import admin
from quorumlog.messages.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from quorumlog.settings.security import StrangerLimits
from quorumlog.wire.protocol.limits import WireLimits
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.serving.tls_transport import TlsTransport
from tests.rules import rule
from tests.wire.lane import request_bytes, until

MIB = 1024 * 1024
RECORDS = range(0x14, 0x18)  # RFC 8446, section 5.1


def protected(context: ssl.SSLContext, **others: Any) -> Protection:
    return Protection(unix_ms=wall_ms, in_thread=at_once, context=lambda: context, **others)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


class Tapped:
    """A TLS client whose bytes on the wire are seen: both directions of a plain socket, and the TLS of it by hand."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        self.socket = socket.create_connection(address)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.received = b""  # on the wire

    def until(self, step: Any) -> Any:
        while True:
            try:
                result = step()
                self._flush()
                return result
            except ssl.SSLWantReadError:
                self._flush()
                self._feed()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self.socket.sendall(self._outgoing.read())

    def _feed(self) -> None:
        data = self.socket.recv(1 << 20)
        self.received += data
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def read_exactly(self, count: int) -> bytes:
        found = b""
        while count > len(found):
            found += self.until(partial(self.tls.read, count - len(found)))
        return found


def record_kinds(wire: bytes) -> Counter[int]:
    """The first bytes of all records. Raises AssertionError where something that is no record begins."""
    kinds: Counter[int] = Counter()
    while wire:
        kind, major, _minor, length = struct.unpack(">BBBH", wire[:5])
        assert kind in RECORDS and major == 3, f"{wire[:16]!r} is no record of TLS"
        kinds[kind] += 1
        assert len(wire) >= 5 + length, "the last record is not whole"
        wire = wire[5 + length :]
    return kinds


@pytest.mark.parametrize("size_bytes", [1, 200, 70_000, 3 * MIB], ids=["one", "small", "pieces", "large"])
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_every_byte_on_the_wire_is_in_a_record(authority: Authority, size_bytes: int, newest: ssl.TLSVersion) -> None:
    """Answers leave by `write`, by `write_now` in one piece and in many; none of them reaches the socket as it is."""

    def client(address: tuple[str, int]) -> tuple[bytes, bytes]:
        peer, answer = Tapped(address, client_context(authority.ca, newest=newest)), b""
        peer.until(peer.tls.do_handshake)
        peer.until(lambda: peer.tls.write(METADATA + fetch_of(size_bytes, 2)))
        with contextlib.suppress(ssl.SSLError):  # of what is no record; it is looked at below
            for _ in range(2):
                answer = peer.read_exactly(struct.unpack(">i", peer.read_exactly(4))[0])
        peer.socket.close()
        return peer.received, answer

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")))) as listener:
            wire, answer = await asyncio.to_thread(client, (listener.address.host, listener.address.port))
        kinds = record_kinds(wire)
        assert records(size_bytes) in answer
        assert kinds[0x17] >= 2 and records(200)[16:32] not in wire

    asyncio.run(scenario())


def test_a_large_answer_is_in_full_records(authority: Authority) -> None:
    """An answer of many small buffers costs no more records than its bytes need."""

    def client(address: tuple[str, int]) -> bytes:
        peer = Tapped(address, client_context(authority.ca))
        peer.until(peer.tls.do_handshake)
        peer.until(lambda: peer.tls.write(fetch_of(MIB)))
        peer.read_exactly(struct.unpack(">i", peer.read_exactly(4))[0])
        return peer.received

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")))) as listener:
            wire = await asyncio.to_thread(client, (listener.address.host, listener.address.port))
        assert record_kinds(wire)[0x17] <= MIB // 16_384 + 24  # beside the last of each piece, and the handshake's

    asyncio.run(scenario())


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shows", ["nothing", "a foreign one"])
def test_a_refused_certificate_is_told_by_an_alert(
    authority: Authority, tmp_path: Path, newest: ssl.TLSVersion, shows: str
) -> None:
    foreign = None if shows == "nothing" else Authority(tmp_path, "others").issue("eve")
    context = server_context(authority.issue("node"), ssl.CERT_REQUIRED)

    async def scenario() -> None:
        async with door(protected(context)) as listener:
            with pytest.raises(ssl.SSLError, match="alert"):
                peer = await listener.open(client_context(authority.ca, foreign, newest))
                await peer.reader.read()  # TLSv1.3 tells it after the client's handshake has ended
            await until(lambda: listener.strangers.told["failed handshakes"] == 1)
            assert listener.contexts == [] and len(listener.strangers) == 0

    asyncio.run(scenario())


def test_a_closed_connection_is_gone_soon_whatever_its_peer_does(authority: Authority) -> None:
    """It sends close_notify and its end, and waits no 30 s for the peer's."""

    def client(address: tuple[str, int]) -> tuple[bytes, float]:
        peer = Tapped(address, client_context(authority.ca))
        peer.until(peer.tls.do_handshake)
        peer.until(lambda: peer.tls.write(struct.pack(">i", 6) + struct.pack(">hhh", 9999, 0, 0)))  # is no API
        began = time.monotonic()
        peer.socket.settimeout(10)
        while data := peer.socket.recv(1 << 16):
            peer.received += data
        ended_s = time.monotonic() - began
        try:
            for _ in range(100):  # a peer that goes on sending is told that nobody listens
                peer.socket.sendall(b"x" * 1000)
                time.sleep(0.05)
        except OSError:
            return peer.received, time.monotonic() - began
        raise AssertionError(f"after {ended_s} s of its end the connection still takes bytes")

    async def scenario() -> None:
        limits = WireLimits(max_idle_ms=100_000)
        async with door(protected(server_context(authority.issue("node"))), limits=limits) as listener:
            wire, gone_s = await asyncio.to_thread(client, (listener.address.host, listener.address.port))
        assert gone_s < 4 and record_kinds(wire)

    asyncio.run(scenario())


def test_answers_reach_a_peer_that_has_ended_its_side(authority: Authority) -> None:
    """As on a plain listener: what it has sent is carried out and answered, then both sides have ended."""

    def client(address: tuple[str, int]) -> bytes:
        peer = Tapped(address, client_context(authority.ca))
        peer.until(peer.tls.do_handshake)
        peer.until(lambda: peer.tls.write(fetch_of(2 * MIB)))
        try:
            peer.tls.unwrap()
        except ssl.SSLWantReadError:
            peer._flush()
        peer.socket.shutdown(socket.SHUT_WR)
        began = time.monotonic()
        while data := peer.socket.recv(1 << 20):
            peer.received += data
        assert time.monotonic() - began < 2
        return peer.received

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")))) as listener:
            wire = await asyncio.to_thread(client, (listener.address.host, listener.address.port))
        assert len(wire) > 2 * MIB and record_kinds(wire)[0x17] > 128

    asyncio.run(scenario())


SIZES = [[200], [5_000], [110_000], [3 * MIB], [60_000, 64 * 1024 - 1, 64 * 1024, 100_000, 3 * MIB, 7]]  # of requests


@pytest.mark.parametrize("sizes", SIZES, ids=["small", "first buffer", "grown", "large", "one behind the other"])
def test_a_large_request_comes_whole_whatever_parts_it_comes_in(authority: Authority, sizes: list[int]) -> None:
    """Its frame grows as its bytes come, which it cannot while a view of it is held, and while records of TLS wait."""

    async def run() -> None:
        taken: list[bytes] = []

        async def take(_context: Any, request: Any) -> ProduceResponse:
            taken.append(bytes(request.topics[0].partitions[0].records))
            return ProduceResponse()

        async with door(protected(server_context(authority.issue("broker"))), handler=take) as node:
            peer = await node.open(client_context(authority.ca))
            for size_bytes in sizes:
                row = ProducePartition(index=0, records=records(size_bytes))
                topics = (ProduceTopic(name="t", partitions=(row,)),)
                peer.send(request_bytes(ProduceRequest(acks=-1, timeout_ms=1_000, topics=topics)))
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):  # `taken` tells
                async with asyncio.timeout(5):
                    for _ in sizes:
                        await peer.frame()
            peer.close()
        assert taken == [records(size_bytes) for size_bytes in sizes]

    asyncio.run(run())


def test_a_large_request_wakes_the_loop_for_more_than_a_record(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer sends record by record. What is smaller, and the end of a request, is read as it comes."""
    reads: list[int] = []
    lost: list[bool] = []
    update, lose = TlsTransport.buffer_updated, TlsTransport.connection_lost

    def counted(self: TlsTransport, nbytes: int) -> None:
        reads.append(nbytes)
        update(self, nbytes)

    def told(self: TlsTransport, exc: Exception | None) -> None:
        lost.append(True)
        lose(self, exc)

    async def run() -> None:
        async with door(protected(server_context(authority.issue("broker")))) as node:
            peer = await node.open(client_context(authority.ca))
            peer.send(METADATA)
            await peer.frame()
            monkeypatch.setattr(TlsTransport, "buffer_updated", counted)
            monkeypatch.setattr(TlsTransport, "connection_lost", told)
            row = ProducePartition(index=0, records=records(2 * MIB))
            topics = (ProduceTopic(name="t", partitions=(row,)),)
            request = request_bytes(ProduceRequest(acks=-1, timeout_ms=1_000, topics=topics))
            for start in range(0, len(request), 16_384):
                peer.send(request[start : start + 16_384])
                await asyncio.sleep(0.001)
            await peer.frame()
            assert len(reads) <= 60, "of 129 records"
            for _ in range(3):
                peer.send(METADATA)
                await peer.frame()
            peer.send(request[:300_000])
            await until(lambda: sum(reads) > len(request) + 200_000)
            peer.writer.transport.abort()
            await until(lambda: lost == [True])

    asyncio.run(run())


def test_a_slow_handshake_ends_in_time(authority: Authority) -> None:
    async def scenario() -> None:
        protection = protected(server_context(authority.issue("node")), timeout_ms=300)
        async with door(protection) as listener:
            began = asyncio.get_running_loop().time()
            peer = await listener.open()
            peer.send(b"\x16\x03\x01\x02\x00\x01")
            await until(lambda: len(listener.strangers) == 1)
            assert await peer.ended() == b"" and asyncio.get_running_loop().time() - began < 2
            await until(lambda: len(listener.strangers) == 0)

    asyncio.run(scenario())


@rule("security 1.20")
def test_handshakes_are_counted_from_when_they_are_accepted(authority: Authority) -> None:
    """The oldest goes where one address has too many, and a client that begins at once is served."""

    async def scenario() -> None:
        limits = StrangerLimits(most=50, most_of_address=8)
        async with door(protected(server_context(authority.issue("node"))), strangers=limits) as listener:
            silent = [await listener.open() for _ in range(20)]
            await until(lambda: listener.strangers.told["displaced"] == 12)
            assert len(listener.strangers) == 8
            for peer in silent[:12]:
                assert await peer.ended() == b""
            client = await listener.open(client_context(authority.ca))
            client.send(METADATA)
            assert await client.frame()
            assert len(listener.strangers) == 7, "a client that has come in is no stranger"
            for peer in (*silent, client):
                peer.close()

    asyncio.run(scenario())


def test_a_probe_is_no_failure(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    """`nc -z`, ten times: a counter, and no line."""

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")))) as listener:
            for _ in range(10):
                socket.create_connection((listener.address.host, listener.address.port)).close()
            await until(lambda: listener.strangers.told["probes"] == 10)
            assert listener.strangers.told["failed handshakes"] == 0 and len(listener.strangers) == 0

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []


@pytest.mark.parametrize("has_tls", [True, False], ids=["plain to TLS", "TLS to plain"])
def test_the_other_protocol_is_named_once_for_an_address(
    authority: Authority, caplog: pytest.LogCaptureFixture, has_tls: bool
) -> None:
    protection = protected(server_context(authority.issue("node"))) if has_tls else None
    said = "no TLS to the TLS listener TEST" if has_tls else "TLS to the plain listener TEST"

    async def scenario() -> None:
        async with door(protection) as listener:
            for _ in range(20):
                peer = await listener.open()
                peer.send(METADATA if has_tls else b"\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03")
                assert await peer.ended() == (b"\x15\x03\x03\0\x02\x02\x0a" if has_tls else b""), "the alert"

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1 and said in lines[0] and "TEST" in lines[0], lines


@pytest.mark.parametrize("has_tls", [True, False], ids=["plain to TLS", "TLS to plain"])
def test_our_client_of_the_other_protocol_is_told_security_protocol(authority: Authority, has_tls: bool) -> None:
    protection = protected(server_context(authority.issue("node"))) if has_tls else None
    options: dict[str, str] = (
        {} if has_tls else {"security_protocol": "SSL", "ssl_truststore_location": str(authority.ca)}
    )

    async def scenario() -> None:
        async with door(protection) as listener, asyncio.timeout(10):
            async with admin({"bootstrap_servers": str(listener.address)}, **options) as client:
                with pytest.raises(AuthenticationFailed, match="security_protocol"):
                    await client.list_topics()

    asyncio.run(scenario())


@rule("security 1.27")
def test_a_connection_keeps_the_context_that_it_began_with(authority: Authority, tmp_path: Path) -> None:
    """A certificate that is replaced counts for later connections; the earlier one goes on."""
    newer = Authority(tmp_path, "newer")
    current = server_context(authority.issue("node"))

    async def scenario() -> None:
        nonlocal current
        protection = Protection(unix_ms=wall_ms, in_thread=at_once, context=lambda: current)
        async with door(protection) as listener:
            old = await listener.open(client_context(authority.ca))
            half = await listener.open()
            current = server_context(newer.issue("node"))
            with pytest.raises(ssl.SSLCertVerificationError):
                await listener.open(client_context(authority.ca))
            new = await listener.open(client_context(newer.ca))
            for peer in (old, new):
                peer.send(METADATA)
                assert await peer.frame()
                peer.close()
            half.close()

    asyncio.run(scenario())


def test_a_changed_record_ends_the_connection(authority: Authority) -> None:
    def client(address: tuple[str, int]) -> None:
        peer = Tapped(address, client_context(authority.ca))
        peer.until(peer.tls.do_handshake)
        peer.socket.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
        peer.socket.settimeout(5)
        while peer.socket.recv(1 << 16):
            pass

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")))) as listener:
            await asyncio.to_thread(client, (listener.address.host, listener.address.port))
            assert listener.contexts == []

    asyncio.run(scenario())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl command is missing")
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_s_client_verifies_and_is_closed_well(authority: Authority, version: str) -> None:
    def client(address: tuple[str, int]) -> subprocess.CompletedProcess[str]:
        command = [
            "openssl", "s_client", "-connect", f"{address[0]}:{address[1]}", "-CAfile", str(authority.ca), version,
            "-verify_return_error", "-verify_hostname", "localhost", "-brief",
        ]  # fmt: skip
        return subprocess.run(command, input="", text=True, capture_output=True, timeout=20, check=False)

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")))) as listener:
            found = await asyncio.to_thread(client, (listener.address.host, listener.address.port))
            assert found.returncode == 0 and "Verification: OK" in found.stderr, found.stderr

    asyncio.run(scenario())


class Places:
    """Where a peer breaks off: in the hello, before it, in the middle of the handshake, and after a request."""

    ALL = ("no byte", "half a hello", "after the hello", "after the handshake", "after a request", "after a bad frame")

    @staticmethod
    def go(place: str, address: tuple[str, int], context: ssl.SSLContext) -> socket.socket:
        peer = Tapped(address, context)
        if place == "half a hello":
            peer.socket.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        elif place == "after the hello":
            try:
                peer.tls.do_handshake()
            except ssl.SSLWantReadError:
                peer._flush()
        elif place != "no byte":
            peer.until(peer.tls.do_handshake)
            sent = {"after a request": fetch_of(4 * MIB), "after a bad frame": b"\x00\x00\x00\x06" + b"\x27" * 6}
            if place in sent:
                peer.until(lambda: peer.tls.write(sent[place]))
        return peer.socket


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("place", Places.ALL)
def test_a_peer_may_break_off_anywhere(authority: Authority, place: str, how: str) -> None:
    """Also while the listener ends the connection itself: an error in a callback would end the whole node."""

    def client(address: tuple[str, int], pause_s: float) -> None:
        peer = Places.go(place, address, client_context(authority.ca))
        time.sleep(pause_s)
        if how == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")), timeout_ms=100)) as listener:
            address = (listener.address.host, listener.address.port)
            for pause_ms in (0, 1, 3, 10, 99, 101, 200):
                await asyncio.to_thread(client, address, pause_ms / 1000)
            await until(lambda: len(listener.strangers) == 0)
            peer = await listener.open(client_context(authority.ca))
            peer.send(METADATA)
            assert await peer.frame()
            peer.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_are_no_handshake_end_it(authority: Authority, seed: int) -> None:
    """A hello with some bytes changed, or random ones behind the first of a hello."""
    rng = random.Random(seed)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client_context(authority.ca).wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    hello = bytearray(outgoing.read())
    if seed % 4 == 0:
        hello = bytearray(b"\x16\x03\x01" + rng.randbytes(rng.randrange(400)))
    for _ in range(rng.randrange(1, 6)):
        hello[rng.randrange(1, len(hello))] = rng.randrange(256)

    async def scenario() -> None:
        async with door(protected(server_context(authority.issue("node")), timeout_ms=500)) as listener:
            peer = await listener.open()
            peer.send(bytes(hello))
            wire = await peer.ended()
            assert listener.contexts == []
            if wire[:1] == b"\x15":
                record_kinds(wire)
            await until(lambda: len(listener.strangers) == 0)

    asyncio.run(scenario())
