"""A client of ours that is refused by gRPC, or that refuses a node, says so within seconds, as on the lane; and no
address that a node tells makes it say less safely what it says on the lane."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from protected_node import GRPC_CERTIFIED, LOGINS, PASSWORD, ProtectedNode, token

from quorumlog.client.errors import AuthenticationFailed
from quorumlog.client.real_edges import admin, consumer, make_transport, producer, security_of
from quorumlog.messages.cluster import MetadataRequest, MetadataResponse
from quorumlog.messages.joint import ListJointRequest
from quorumlog.rpc.transport import Address, NotAuthenticated
from quorumlog.wire.format.header import API_VERSIONS_KEY
from quorumlog.wire.protocol.sasl import AUTHENTICATE_KEY, HANDSHAKE_KEY
from tests.security.client.scripted_broker import METADATA, METADATA_KEY, VERSIONS, scripted_broker
from tests.security.tls.certificates import authority

LIMIT_S = 10.0
MAX_CONNECTS = 3


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtectedNode]:
    made = ProtectedNode(tmp_path_factory.mktemp("node"))
    yield made
    made.close()
    assert not made.crashes


@asynccontextmanager
async def counted(behind: Address) -> AsyncIterator[tuple[Address, list[bytes]]]:
    """An address before another one, and what each connection has said there."""
    said: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(said)
        said.append(b"")
        theirs, to_them = await asyncio.open_connection(behind.host, behind.port)

        async def up() -> None:
            while data := await reader.read(65_536):
                said[number] += data
                to_them.write(data)
            to_them.close()

        async def down() -> None:
            while data := await theirs.read(65_536):
                writer.write(data)
            writer.close()

        await asyncio.gather(up(), down(), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1]), said
    finally:
        server.close()


async def told(make: Any, ask: Any, given: dict[str, Any]) -> str:
    began_s = time.monotonic()
    async with make(given) as client:
        with pytest.raises(AuthenticationFailed) as refusal:
            await ask(client)
    assert time.monotonic() - began_s < LIMIT_S
    return str(refusal.value)


async def lists(client: Any) -> None:
    await client.list_topics()


async def sends(client: Any) -> None:
    await (await client.send("refused", b"x"))


async def polls(client: Any) -> None:
    await client.assign([("refused", 0, 0)])
    await client.poll(timeout_ms=5_000)


CALLS = {"admin": (admin, lists), "producer": (producer, sends), "consumer": (consumer, polls)}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("shown", ["none", "foreign"])
def test_a_refused_certificate_is_named_and_not_shown_again(node: ProtectedNode, shown: str, kind: str) -> None:
    """Security journal S1: under TLS 1.3 it is judged after the client's handshake has ended well."""
    made = {
        "none": "",
        "foreign": node.issue("mallory", authority("Foreign CA")),
    }[shown]

    async def scenario() -> None:
        async with counted(node.address(GRPC_CERTIFIED)) as (address, said):
            given = node.by_certificate(made, transport="grpc", bootstrap_servers=str(address))
            assert "certificate" in await told(*CALLS[kind], given)
            assert 1 <= len(said) <= MAX_CONNECTS

    node.do(scenario())
    assert node.requests(GRPC_CERTIFIED) == {}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("wrong", ["password", "user", "token"])
def test_a_refused_login_is_named(node: ProtectedNode, wrong: str, kind: str) -> None:
    asked = 0

    def bad_token() -> str:
        nonlocal asked
        asked += 1
        return token(aud="billing")

    given = {
        "password": node.by_login(LOGINS, sasl_password="wr0ng"),
        "user": node.by_login(LOGINS, sasl_username="nobody"),
        "token": node.by_token(bad_token, LOGINS),
    }[wrong]

    async def scenario() -> None:
        said = await told(*CALLS[kind], {**given, "transport": "grpc"})
        assert ("issuer and audience" if wrong == "token" else "sasl_password") in said
        assert "wr0ng" not in said and PASSWORD not in said

    node.do(scenario())
    assert node.requests(LOGINS) == {}
    assert asked == (2 if wrong == "token" else 0), "each token is shown once: there might be a newer one"


def test_a_login_that_may_be_mended_counts_again(node: ProtectedNode) -> None:
    given = node.by_login(LOGINS, sasl_username="late", sasl_password="pen", transport="grpc")

    async def refused() -> None:
        assert "sasl_password" in await told(admin, lists, given)

    async def served() -> None:
        async with admin(given) as client:
            await client.list_topics()

    node.do(refused())
    node.make_user("late", "pen")
    node.do(served())


# --- what an address that is told can do


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Address, list[bytes]]]:
    """Somebody who answers nothing, and what each connection has said."""
    said: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append(await reader.read(65_536))
        writer.write(b"\0\0\0\x04\0\0\0\0\0")  # as HTTP/2 begins
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1]), said
    finally:
        server.close()


def lane_that_tells(before: str, after: str) -> Any:
    """Answers of a broker that names a gRPC address before the login, and another one after it."""
    logged_in = False

    def answer(key: int) -> dict[str, Any] | None:
        nonlocal logged_in
        logged_in = logged_in or key == AUTHENTICATE_KEY
        named = after if logged_in else before
        return {
            API_VERSIONS_KEY: {**VERSIONS, **({"grpc_address": named} if named else {})},
            HANDSHAKE_KEY: {"mechanisms": ["PLAIN"]},
            AUTHENTICATE_KEY: {},
            METADATA_KEY: METADATA,
        }[key]

    return answer


def broker_tls(node: ProtectedNode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(node.issue("scripted"))
    return context


@pytest.mark.parametrize("transport", ["auto", "grpc"])
def test_no_address_makes_a_client_speak_in_clear(node: ProtectedNode, transport: str) -> None:
    """Each byte that came is TLS's; nothing of the login or of a call was among them."""

    async def scenario() -> None:
        async with listening() as (address, said):
            async with scripted_broker(lane_that_tells("", str(address)), broker_tls(node)) as broker:
                security = security_of(node.by_login(sasl_mechanism="PLAIN"))
                connection = make_transport(transport, security).connect(broker.address, internal=False)
                call = connection.call(ListJointRequest(), 10_000)
                (error,) = await asyncio.gather(call, return_exceptions=True)
                await connection.close()
        assert 1 <= len(said) <= MAX_CONNECTS
        assert all(one[:2] == b"\x16\x03" for one in said), "a handshake of TLS"
        assert not any(word in one for one in said for word in (PASSWORD.encode(), b"authorization", b"quorumlog.v1"))
        assert isinstance(error, NotAuthenticated) and "TLS" in str(error)

    node.do(scenario())


def test_an_address_that_is_told_before_the_login_is_not_used(node: ProtectedNode) -> None:
    async def scenario() -> None:
        async with listening() as (address, said):
            async with scripted_broker(lane_that_tells(str(address), ""), broker_tls(node)) as broker:
                security = security_of(node.by_login(sasl_mechanism="PLAIN"))
                connection = make_transport("grpc", security).connect(broker.address, internal=False)
                call = connection.call(MetadataRequest(all_topics=True), 10_000)
                (answer,) = await asyncio.gather(call, return_exceptions=True)
                await connection.close()
        assert said == []
        assert isinstance(answer, MetadataResponse), "by the lane, as there is nothing else"

    node.do(scenario())
