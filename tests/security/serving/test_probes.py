"""Probes and strangers at each port of a node: what they cost the log, and that none of them is a failed login."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from authority import Authority, server_context
from door import at_once, wall_ms
from door import door as lane

from quorumlog.proof.refusal_log import MAX_PEERS, PERIOD_S
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving.certified import certified
from quorumlog.rpc.transport import Address, Listener
from quorumlog.security.login import Login
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.sasl.session import SessionRules
from quorumlog.security.tls.mapping import parse_rules
from quorumlog.wire.serving.gate import RefusalLines
from quorumlog.wire.serving.protection import Protection
from quorumlog_server.process.http_admin import HttpAdmin
from quorumlog_server.process.http_page import Page
from tests.rpc.secured import by_name, server_security
from tests.wire.lane import echo, until

TIMES = 30
HELLO = b"\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03"
PLAIN = b"\x00\x00\x00\x10\x00\x03\x00\x0d\x00\x00\x00\x01\x00\x02me\x00\x00\x00"  # the beginning of a frame of Kafka's


@dataclass
class Port:
    """told: its counters. logins: that it has told of. name: what its lines call it."""

    address: Address
    told: Mapping[str, int]
    name: str
    logins: list[Login] = field(default_factory=list)
    lines: RefusalLines | None = None


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def at_lane(context: ssl.SSLContext | None) -> AsyncIterator[Port]:
    """With TLS its clients are known by their certificates, so a failed handshake is a failed login."""
    logins: list[Login] = []
    protection = None
    if context is not None:
        rules = parse_rules("DEFAULT")
        protection = Protection(
            unix_ms=wall_ms,
            in_thread=at_once,
            context=lambda: context,
            certified=lambda der: certified(der, rules),
            on_login=lambda login, _reason: logins.append(login),
        )
    async with lane(protection) as listener:
        name = f"{'TLS' if context else 'plain'} listener TEST"
        lines = listener.transport._refusals
        yield Port(listener.address, listener.strangers.told, name, logins, lines)


@asynccontextmanager
async def at_login(context: ssl.SSLContext | None) -> AsyncIterator[Port]:
    """A listener of the lane whose clients log in."""
    logins: list[Login] = []
    protection = Protection(
        unix_ms=wall_ms,
        in_thread=at_once,
        context=None if context is None else lambda: context,
        sasl=SessionRules(mechanisms={}),
        on_login=lambda login, _reason: logins.append(login),
    )
    async with lane(protection) as listener:
        name = f"{'TLS' if context else 'plain'} listener TEST"
        yield Port(listener.address, listener.strangers.told, name, logins, listener.transport._refusals)


@asynccontextmanager
async def at_http(context: ssl.SSLContext | None) -> AsyncIterator[Port]:
    admin = HttpAdmin({"/healthz": lambda: Page(200, b"")}, None, None if context is None else lambda: context)
    address = await admin.start("127.0.0.1", 0)
    try:
        yield Port(address, admin.told, f"{'TLS' if context else 'plain'} port of metrics", lines=admin._lines)
    finally:
        await admin.close()


@asynccontextmanager
async def at_grpc(context: ssl.SSLContext | None) -> AsyncIterator[Port]:
    """gRPC closes such connections by itself, and tells nobody."""
    logins: list[Login] = []
    security = server_security(on_login=lambda login, _reason: logins.append(login))
    protocol = SecurityProtocol.PLAINTEXT if context is None else SecurityProtocol.SSL
    listener = Listener(name="TEST", address=Address("127.0.0.1", 0), internal=False, security=protocol)
    server = await GrpcTransport(server_security=by_name(security)).listen(listener, echo)
    try:
        yield Port(server.listener.address, Counter(), "", logins)
    finally:
        await server.close()


PORTS = [(at, has_tls) for at in (at_lane, at_login, at_http, at_grpc) for has_tls in (False, True)]
IDS = [f"{at.__name__[3:]}, {'TLS' if has_tls else 'plain'}" for at, has_tls in PORTS]
Opens = Callable[[ssl.SSLContext | None], AsyncIterator[Port]]


async def come(port: Port, said: bytes) -> None:
    """One after the other, each until it is turned away, or at once if it says nothing."""
    for _ in range(TIMES):
        reader, writer = await asyncio.open_connection(port.address.host, port.address.port)
        if said:
            writer.write(said)
            async with asyncio.timeout(2):
                await reader.read()
        writer.close()


@pytest.mark.parametrize(("at", "has_tls"), PORTS, ids=IDS)
def test_who_opens_and_closes_is_a_counter(
    authority: Authority, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], at: Opens, has_tls: bool
) -> None:
    async def scenario() -> None:
        async with at(server_context(authority.issue("node")) if has_tls else None) as port:  # type: ignore[attr-defined]
            await come(port, b"")
            for _ in range(TIMES):  # with a reset, as `nc -z` of some systems
                peer = socket.create_connection((port.address.host, port.address.port))
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                peer.close()
            if port.name:
                await until(lambda: port.told["probes"] == 2 * TIMES)
            assert set(port.told) <= {"probes"} and port.logins == []

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO] == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("at", "has_tls"), PORTS[:6], ids=IDS[:6])
def test_the_other_protocol_is_two_lines_and_no_failed_login(
    authority: Authority, caplog: pytest.LogCaptureFixture, at: Opens, has_tls: bool
) -> None:
    async def scenario() -> None:
        async with at(server_context(authority.issue("node")) if has_tls else None) as port:  # type: ignore[attr-defined]
            await come(port, PLAIN if has_tls else HELLO)
            await until(lambda: port.told["foreign"] == TIMES)
            assert {name for name, count in port.told.items() if count} == {"foreign"} and port.logins == []
            assert port.lines is not None
            port.lines.tell_rest(asyncio.get_running_loop().time() + PERIOD_S)
            said = f"{'no TLS to the TLS' if has_tls else 'TLS to the plain'} {port.name.partition(' ')[2]}"
            first, rest = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
            assert said in first and "127.0.0.1" in first
            assert said in rest and rest.endswith(f": {TIMES - 1} more in the last 60 s")

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())


def test_the_rest_is_told_by_a_timer_once(caplog: pytest.LogCaptureFixture) -> None:
    timers: list[Callable[[], None]] = []
    now_s = 10.0

    def call_later(_delay_s: float, call: Callable[[], None]) -> bool:
        timers.append(call)
        return True

    async def scenario() -> None:
        lines = RefusalLines(lambda: now_s, call_later)
        for _ in range(5):
            lines.refused("refused h: x", "refused h:1: x")

    asyncio.run(scenario())
    now_s += PERIOD_S
    assert len(timers) == 1
    timers[0]()
    assert len(timers) == 1, "nothing is left to be told"
    assert [one.getMessage() for one in caplog.records] == ["refused h:1: x", "refused h: x: 4 more in the last 60 s"]


def test_many_addresses_do_not_fill_the_table() -> None:
    lines = RefusalLines()

    async def scenario() -> None:
        for number in range(3 * MAX_PEERS):
            lines.refused(f"refused h{number}: x", "x")

    asyncio.run(scenario())
    assert len(lines._refusals._logged) == MAX_PEERS
