"""Nodes among themselves over the lane: replica fetches by the secret, by certificates, and on the way between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quorumlog.errors import ErrorCode
from quorumlog.ids import NodeId
from quorumlog.messages.fetch import FetchRequest, FetchResponse
from quorumlog.proof.peer import Peer
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.transport import Address, Context, Identity, Listener, RpcError
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.tls.contexts import server_context
from quorumlog.security.tls.peer import fingerprint
from quorumlog.security.tls.settings import ClientAuth, ClientTls, ServerTls
from quorumlog.wire.serving.protection import Protection
from quorumlog.wire.transport import WireTransport
from tests.rpc.secured import ca, material_of, node_pair, pair, unix_ms
from tests.security.tls.certificates import Pair, leaf

SECRET, BOTH, MTLS = NodeAuth.SECRET, NodeAuth.BOTH, NodeAuth.MTLS
FETCH = FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1)
CALL_MS = 8_000


def identity(node_id: int) -> Identity:
    return Identity(
        cluster_id="c1", node_id=NodeId(node_id), incarnation_id=bytes([node_id]) * 16, secret=b"s" * 32
    )  # fmt: skip


async def in_place(work: Callable[[], Any]) -> Any:
    return work()


class Stage:
    """auth: how a node listens and calls. tls: False: in clear."""

    def __init__(self, auth: NodeAuth, *, tls: bool = True) -> None:
        self.auth, self.tls = auth, tls

    def __repr__(self) -> str:
        return self.auth.value if self.tls else f"{self.auth.value} in clear"

    def transport(
        self,
        own: Identity,
        certificate: Pair | None = None,
        *,
        denied: Collection[str] = (),
        clock: Callable[[], int] = unix_ms,
    ) -> WireTransport:
        if not self.tls:
            return WireTransport(own)
        material = material_of(certificate or node_pair(own.node_id))
        client_auth = ClientAuth.REQUIRED if self.auth.has_certificates else ClientAuth.NONE
        context = server_context(ServerTls(client_auth=client_auth), material)
        protection = Protection(
            unix_ms=clock,
            in_thread=in_place,
            context=lambda: context,
            node_auth=self.auth,
            is_denied=lambda one: one in denied,
        )
        nodes = NodeSecurity(
            auth=self.auth, tls=ClientTls(), material=lambda: material, is_denied=lambda one: one in denied
        )
        return WireTransport(own, protections={"R": protection}, nodes=nodes)

    @property
    def listener(self) -> Listener:
        protocol = SecurityProtocol.SSL if self.tls else SecurityProtocol.PLAINTEXT
        return Listener(name="R", address=Address("127.0.0.1", 0), internal=True, lane=True, security=protocol)


@asynccontextmanager
async def serving(transport: WireTransport, listener: Listener) -> AsyncIterator[tuple[list[Peer | None], Address]]:
    seen: list[Peer | None] = []

    async def handle(context: Context, _request: Any) -> Any:
        seen.append(context.peer)
        return FetchResponse()

    server = await transport.listen(listener, handle)
    try:
        yield seen, server.listener.address
    finally:
        await server.close()


async def called(transport: WireTransport, address: Address) -> int | RpcError:
    """An error code, or an exception."""
    connection = transport.connect(address, internal=True)
    try:
        answer = await connection.call(FETCH, CALL_MS)
        assert type(answer) is FetchResponse
        return int(answer.error_code)
    except RpcError as error:
        return error
    finally:
        await connection.close()


def run(scenario: Awaitable[None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await scenario

    asyncio.run(limited())


OLD, SEALED, TO, ARRIVED = Stage(SECRET, tls=False), Stage(SECRET), Stage(BOTH), Stage(MTLS)
NEIGHBOURS = [
    (OLD, OLD), (OLD, TO), (TO, OLD), (TO, TO), (TO, ARRIVED), (ARRIVED, TO), (ARRIVED, ARRIVED),
    (SEALED, SEALED), (SEALED, TO), (TO, SEALED),
]  # fmt: skip
STRANGERS = [(OLD, ARRIVED), (ARRIVED, OLD), (OLD, SEALED), (SEALED, OLD), (SEALED, ARRIVED), (ARRIVED, SEALED)]


@pytest.mark.parametrize(("caller", "server"), NEIGHBOURS, ids=repr)
def test_nodes_of_two_neighbouring_stages_know_each_other(caller: Stage, server: Stage) -> None:
    async def scenario() -> None:
        own = identity(2)
        async with serving(server.transport(identity(1)), server.listener) as (seen, address):
            assert await called(caller.transport(own), address) == 0
            assert seen == [own.peer]

    run(scenario())


@pytest.mark.parametrize(("caller", "server"), STRANGERS, ids=repr)
def test_nodes_of_stages_that_are_no_neighbours_carry_nothing_out(caller: Stage, server: Stage) -> None:
    async def scenario() -> None:
        async with serving(server.transport(identity(1)), server.listener) as (seen, address):
            found = await called(caller.transport(identity(2)), address)
            assert isinstance(found, RpcError) or found != 0
            assert seen == []

    run(scenario())


TWICE = leaf(ca(), "node-2", ip=("127.0.0.1",), uri=("quorumlog://c1/node/2", "quorumlog://c1/node/3"))


@pytest.mark.parametrize("server", [TO, ARRIVED], ids=repr)
@pytest.mark.parametrize("caller", [TO, ARRIVED], ids=repr)
@pytest.mark.parametrize(
    "certificate",
    [node_pair(NodeId(3)), node_pair(NodeId(2), "c2"), pair("node-2"), TWICE],
    ids=["another node", "another cluster", "no node", "two nodes"],
)
def test_a_certificate_speaks_for_its_node_only(certificate: Pair, caller: Stage, server: Stage) -> None:
    async def scenario() -> None:
        async with serving(server.transport(identity(1)), server.listener) as (seen, address):
            found = await called(caller.transport(identity(2), certificate), address)
            assert found in (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_CLUSTER_ID)
            assert seen == []

    run(scenario())


@pytest.mark.parametrize("caller", [TO, ARRIVED], ids=repr)
@pytest.mark.parametrize(
    "certificate",
    [node_pair(NodeId(1), "c2"), pair("node-1"), node_pair(NodeId(1), issuer="Foreign CA")],
    ids=["another cluster", "no node", "foreign authority"],
)
def test_a_node_calls_no_server_whose_certificate_is_not_of_its_cluster(certificate: Pair, caller: Stage) -> None:
    async def scenario() -> None:
        async with serving(ARRIVED.transport(identity(1), certificate), ARRIVED.listener) as (seen, address):
            assert isinstance(await called(caller.transport(identity(2)), address), RpcError)
            assert seen == []

    run(scenario())


def test_a_denied_certificate_is_refused_on_both_sides() -> None:
    async def scenario() -> None:
        denied = (fingerprint(node_pair(NodeId(2)).der),)
        async with serving(ARRIVED.transport(identity(1), denied=denied), ARRIVED.listener) as (seen, address):
            assert await called(ARRIVED.transport(identity(2)), address) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert seen == [] and await called(ARRIVED.transport(identity(3)), address) == 0
        async with serving(ARRIVED.transport(identity(2)), ARRIVED.listener) as (seen, address):
            found = await called(ARRIVED.transport(identity(1), denied=denied), address)
            assert isinstance(found, RpcError) and "denied" in str(found) and seen == []

    run(scenario())


@pytest.mark.parametrize("server", [TO, ARRIVED], ids=repr)
@pytest.mark.parametrize("how", ["denied", "ended"])
def test_a_connection_ends_with_the_certificate_that_opened_it(server: Stage, how: str) -> None:
    async def scenario() -> None:
        denied: list[str] = []
        later_ms = [0]
        own = server.transport(identity(1), denied=denied, clock=lambda: unix_ms() + later_ms[0])
        async with serving(own, server.listener) as (seen, address):
            connection = server.transport(identity(2)).connect(address, internal=True)
            for _ in range(2):
                assert (await connection.call(FETCH, CALL_MS)).error_code == 0
            if how == "denied":
                denied.append(fingerprint(node_pair(NodeId(2)).der))
            else:
                ends_ms = material_of(node_pair(NodeId(2))).not_after_ms
                assert ends_ms is not None
                later_ms[0] = ends_ms - unix_ms() + 1_000
            with pytest.raises(RpcError):
                await connection.call(FETCH, CALL_MS)
            assert len(seen) == 2
            await connection.close()

    run(scenario())
