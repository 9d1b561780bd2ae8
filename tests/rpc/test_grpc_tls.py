"""gRPC over TLS: who is refused, in which words and how soon; certificates that change while connections are open."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from secured import by_name, ca, channel_security, material_of, node_pair, pair, server_security, unix_ms
from transport_worlds import identity

from quorumlog.ids import NodeId
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.messages.produce import ProduceRequest, ProduceResponse
from quorumlog.rpc.grpc import server as of_servers
from quorumlog.rpc.grpc.channel_security import ChannelSecurity
from quorumlog.rpc.grpc.server_security import ServerSecurity
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.serving.grpc_listener import check_grpc_listener
from quorumlog.rpc.transport import Address, Connection, Context, Listener, NotAuthenticated, NotDelivered, RpcError
from quorumlog.security.principal import ANONYMOUS, Principal
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.tls.contexts import client_context, server_context
from quorumlog.security.tls.errors import BadTls
from quorumlog.security.tls.peer import fingerprint
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls
from tests.rules import rule
from tests.security.tls.certificates import DAY, NOW, Pair, leaf

LIMIT_S = 20
SOON_S = 10.0
CALL_MS = 8_000
FETCH = FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1)
PRODUCE = ProduceRequest(acks=-1, timeout_ms=1, topics=())
TLS = Listener(name="TEST", address=Address("127.0.0.1", 0), internal=False, security=SecurityProtocol.SSL)


def run(scenario: Any) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await scenario

    asyncio.run(limited())


async def within(happened: asyncio.Event, limit_s: float) -> bool:
    try:
        async with asyncio.timeout(limit_s):
            return await happened.wait()
    except TimeoutError:
        return False


class Node:
    """A server that notes who has called it."""

    def __init__(self, security: ServerSecurity, listener: Listener = TLS) -> None:
        self.principals: list[Principal] = []
        self.before_answer: Callable[[], object] = lambda: None
        self._transport = GrpcTransport(identity(1), server_security=by_name(security), on_crash=self._crash)
        self._listener = listener

    @staticmethod
    def _crash(name: str, error: BaseException) -> None:
        raise AssertionError(name) from error

    async def _handle(self, context: Context, request: Any) -> Any:
        self.principals.append(context.principal)
        self.before_answer()
        return ProduceResponse() if isinstance(request, ProduceRequest) else FetchResponse()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Address]:
        server = await self._transport.listen(self._listener, self._handle)
        try:
            yield server.listener.address
        finally:
            await server.close()


@asynccontextmanager
async def connected_to(address: Address, security: ChannelSecurity | None) -> AsyncIterator[Connection]:
    connection = GrpcTransport(security=security).connect(address, internal=False)
    try:
        yield connection
    finally:
        await connection.close()


async def refusal(address: Address, security: ChannelSecurity | None, request: Any = FETCH) -> RpcError:
    began_s = time.monotonic()
    async with connected_to(address, security) as connection:
        with pytest.raises(RpcError) as found:
            await connection.call(request, CALL_MS)
        assert time.monotonic() - began_s < SOON_S
        return found.value


@asynccontextmanager
async def tls_server(context: ssl.SSLContext) -> AsyncIterator[tuple[Address, list[bytes], list[int]]]:
    """Not gRPC: what clients have sent it, and how many have connected."""
    got: list[bytes] = []
    connects: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connects.append(1)
        try:
            while data := await reader.read(65536):
                got.append(data)
        except (ssl.SSLError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1]), got, connects
    finally:
        server.close()


OLD = pair("old", not_after=NOW - DAY / 2)
FOREIGN = pair("mallory", issuer="Foreign CA")


@pytest.mark.parametrize("request_", [FETCH, PRODUCE], ids=["unary", "stream"])
@pytest.mark.parametrize("own", [None, OLD, FOREIGN], ids=["none", "expired", "foreign"])
def test_a_client_whose_certificate_is_refused_is_told_so_and_stops(own: Pair | None, request_: Any) -> None:
    """By RFC 8446 its own handshake has ended well before that."""

    async def scenario() -> None:
        node = Node(server_security(auth=ClientAuth.REQUIRED))
        async with node.serving() as address:
            error = await refusal(address, channel_security(own), request_)
            assert type(error) is NotAuthenticated and "certificate" in str(error), error
        assert node.principals == []

    run(scenario())


def test_a_refusal_is_not_repeated_as_a_fault_of_the_network() -> None:
    """A caller that asks again at once is answered by the last refusal, and nobody connects."""

    async def scenario() -> None:
        tls = ServerTls(client_auth=ClientAuth.REQUIRED)
        context = server_context(tls, material_of(node_pair(NodeId(1))))
        context.set_alpn_protocols(["h2"])
        async with tls_server(context) as (address, got, connects):
            async with connected_to(address, channel_security()) as connection:
                for _ in range(200):
                    with pytest.raises(NotAuthenticated):
                        await connection.call(FETCH, CALL_MS)
            assert len(connects) <= 3 and got == []

    run(scenario())


def test_nothing_secret_reaches_a_server_that_is_not_trusted() -> None:
    """CVE-2022-33681, CVE-2022-33682, CVE-2022-33683: host and authority are judged before a credential is sent."""

    async def scenario() -> None:
        async def authorization() -> str:
            raise AssertionError("a credential was asked for")

        for own, reason in (
            (node_pair(NodeId(1), issuer="Foreign CA"), "not among the trusted"),
            (leaf(ca(), "other", dns=("elsewhere.example",)), "no address entry"),
        ):
            context = server_context(ServerTls(), material_of(own))
            context.set_alpn_protocols(["h2"])
            async with tls_server(context) as (address, got, _):
                error = await refusal(address, channel_security(authorization=authorization))
                assert type(error) is NotAuthenticated and reason in str(error), error
            assert got == []

    run(scenario())


def test_a_client_with_tls_at_a_plain_listener_and_the_reverse() -> None:
    async def scenario() -> None:
        plain = Node(server_security(), replace(TLS, security=SecurityProtocol.PLAINTEXT))
        async with plain.serving() as address:
            error = await refusal(address, channel_security())
            assert type(error) is NotAuthenticated and "TLS" in str(error), error
        async with Node(server_security()).serving() as address:
            assert isinstance(await refusal(address, None), NotDelivered)

    run(scenario())


@pytest.mark.parametrize(
    ("own", "served"),
    [
        (leaf(ca(), "node", ip=("127.0.0.1",)), True),
        (leaf(ca(), "node", dns=("127.0.0.1",)), False),
        (leaf(ca(), "127.0.0.1", dns=("other.example",)), False),
        (leaf(ca(), "node", ip=("127.0.0.2",)), False),
    ],
    ids=["address entry", "text of the address", "common name", "another address"],
)
def test_an_address_is_compared_with_address_entries_only(own: Pair, served: bool) -> None:
    """gRPC by itself also takes a DNS name that looks like the address."""

    async def scenario() -> None:
        async with Node(server_security(own)).serving() as address:
            if served:
                async with connected_to(address, channel_security()) as connection:
                    await connection.call(FETCH, CALL_MS)
            else:
                assert "address" in str(await refusal(address, channel_security()))

    run(scenario())


def test_a_principal_is_the_name_in_the_certificate_by_the_listeners_rules() -> None:
    async def scenario() -> None:
        node = Node(server_security(auth=ClientAuth.REQUIRED, rules="RULE:^CN=(a.*)$/$1/U"))
        async with node.serving() as address:
            async with connected_to(address, channel_security(pair("ada"))) as connection:
                await connection.call(FETCH, CALL_MS)
                await connection.call(PRODUCE, CALL_MS)
            assert node.principals == [Principal("User", "ADA")] * 2
            error = await refusal(address, channel_security(pair("bob")))  # no rule fits
            assert type(error) is NotAuthenticated and "authentication failed" in str(error)
        assert len(node.principals) == 2

    run(scenario())


def test_who_shows_no_certificate_where_none_is_asked_for_is_anonymous() -> None:
    async def scenario() -> None:
        node = Node(server_security())
        async with node.serving() as address, connected_to(address, channel_security(pair("ada"))) as connection:
            await connection.call(FETCH, CALL_MS)
        assert node.principals == [ANONYMOUS]

    run(scenario())


def test_a_stream_ends_with_the_certificate_that_opened_it() -> None:
    async def scenario() -> None:
        ada = pair("ada")
        ends_ms = material_of(ada).not_after_ms
        assert ends_ms is not None
        shift_ms = ends_ms - unix_ms() - 700  # for the server the certificate ends in 700 ms
        node = Node(server_security(auth=ClientAuth.REQUIRED, clock=lambda: unix_ms() + shift_ms))
        async with node.serving() as address, connected_to(address, channel_security(ada, denied_ms=0)) as connection:
            gone = asyncio.Event()
            connection.on_closed(gone.set)
            await connection.call(PRODUCE, CALL_MS)
            assert await within(gone, SOON_S)
            for request in (PRODUCE, FETCH):
                with pytest.raises(NotAuthenticated):
                    await connection.call(request, CALL_MS)
        assert len(node.principals) == 1

    run(scenario())


def test_a_certificate_that_is_denied_ends_its_streams_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_servers, "DENIED_POLL_S", 0.05)
    denied: set[str] = set()

    async def scenario() -> None:
        ada, bob = pair("ada"), pair("bob")
        node = Node(server_security(auth=ClientAuth.REQUIRED, is_denied=denied.__contains__))
        async with (
            node.serving() as address,
            connected_to(address, channel_security(ada, denied_ms=0)) as connection,
            connected_to(address, channel_security(bob)) as other,
        ):
            gone, stays = asyncio.Event(), asyncio.Event()
            connection.on_closed(gone.set)
            other.on_closed(stays.set)
            for each in (connection, other):
                await each.call(PRODUCE, CALL_MS)
            denied.add(fingerprint(ada.der))
            assert await within(gone, SOON_S)
            for request in (PRODUCE, FETCH):
                with pytest.raises(NotAuthenticated):
                    await connection.call(request, CALL_MS)
            await other.call(PRODUCE, CALL_MS)
            assert not stays.is_set()
        assert [one.name for one in node.principals] == ["CN=ada", "CN=bob", "CN=bob"]

    run(scenario())


def test_a_long_poll_of_a_certificate_that_is_denied_meanwhile_brings_nothing() -> None:
    denied: set[str] = set()

    async def scenario() -> None:
        ada = pair("ada")
        node = Node(server_security(auth=ClientAuth.REQUIRED, is_denied=denied.__contains__))
        node.before_answer = lambda: denied.add(fingerprint(ada.der))
        async with node.serving() as address, connected_to(address, channel_security(ada)) as connection:
            with pytest.raises(RpcError, match="the credential has expired"):
                await connection.call(FETCH, CALL_MS)
        assert len(node.principals) == 1

    run(scenario())


@rule("security 1.27")
def test_a_new_generation_is_for_new_connections() -> None:
    """Both ends: a server's certificate is renewed, then the client's; nobody is cut off."""

    async def scenario() -> None:
        served, shown = [material_of(node_pair(NodeId(1)))], [material_of(pair("ada"))]
        node = Node(server_security(auth=ClientAuth.REQUIRED, newest=lambda: served[-1]))
        async with node.serving() as address:
            security = channel_security(newest=lambda: shown[-1])
            async with connected_to(address, security) as connection:
                await connection.call(PRODUCE, CALL_MS)
                served.append(material_of(leaf(ca(), "renewed", ip=("127.0.0.1",))))
                await connection.call(PRODUCE, CALL_MS)
                assert await subject(address) == "renewed"
                shown.append(material_of(pair("ada2")))
                await connection.call(FETCH, CALL_MS)  # by a channel with the new certificate
                await connection.call(PRODUCE, CALL_MS)  # the stream goes on
        names = [one.name for one in node.principals]
        assert names == ["CN=ada", "CN=ada", "CN=ada2", "CN=ada"]

    run(scenario())


async def subject(address: Address) -> str:
    context = client_context(ClientTls(), material_of(pair("ada")))
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=address.host)
    found: Any = writer.get_extra_info("peercert")
    writer.transport.abort()
    return str(dict(part for parts in found["subject"] for part in [parts[0]])["commonName"])


def test_what_grpc_cannot_do_is_refused_before_the_port_opens() -> None:
    with pytest.raises(BadTls, match=r"ssl\.client\.auth=requested.*write required or none"):
        check_grpc_listener(TLS, ServerTls(client_auth=ClientAuth.REQUESTED))
    with pytest.raises(BadTls, match=r"SASL_PLAINTEXT.*write TEST:SASL_SSL"):
        check_grpc_listener(replace(TLS, security=SecurityProtocol.SASL_PLAINTEXT), None)
    with pytest.raises(BadTls, match=r"ssl\.endpoint\.identification\.algorithm is empty"):
        ChannelSecurity(tls=ClientTls(check_hostname=False), material=lambda: material_of(None))
