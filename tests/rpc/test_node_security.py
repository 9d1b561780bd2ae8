"""Nodes among themselves over gRPC: the secret, certificates, and the way from one to the other."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest
from secured import by_name, ca, material_of, node_pair, pair, server_security
from test_grpc_tls import CALL_MS, run
from transport_worlds import identity

from quorumlog.errors import ErrorCode
from quorumlog.ids import ZERO_UUID
from quorumlog.messages.controller import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    ProbeRequest,
    ProbeResponse,
)
from quorumlog.messages.quorum import VoteRequest, VoteResponse
from quorumlog.proof.node_certificate import IsDenied
from quorumlog.proof.peer import Peer
from quorumlog.rpc.grpc import server
from quorumlog.rpc.grpc.server_security import ServerSecurity
from quorumlog.rpc.grpc.transport import GrpcTransport
from quorumlog.rpc.node_security import NodeSecurity
from quorumlog.rpc.transport import (
    Address,
    Answered,
    Context,
    Identity,
    Listener,
    NoProof,
    NotAuthenticated,
    Refused,
    RpcError,
)
from quorumlog.security.node_auth import NodeAuth
from quorumlog.security.protocol import SecurityProtocol
from quorumlog.security.tls.peer import fingerprint
from quorumlog.security.tls.settings import ClientAuth, ClientTls
from tests.rules import rule
from tests.security.tls.certificates import Pair, leaf

SECRET, BOTH, MTLS = NodeAuth.SECRET, NodeAuth.BOTH, NodeAuth.MTLS
PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL
VOTE = VoteRequest(epoch=1, candidate_id=2, voter_id=1, last_epoch=0, last_epoch_end_offset=0, pre_vote=False)
BEAT = BrokerHeartbeatRequest(
    broker_id=2, broker_epoch=1, current_metadata_offset=0, want_fence=False, want_shutdown=False,
    incarnation_id=ZERO_UUID,
)  # fmt: skip


class Stage:
    """One stage of the way: how a node listens and calls. tls: None: in clear."""

    def __init__(self, auth: NodeAuth, *, tls: bool = True) -> None:
        self.auth, self.tls = auth, tls

    def __repr__(self) -> str:
        return self.auth.value if self.tls else f"{self.auth.value} in clear"

    def transport(
        self, own: Identity, certificate: Pair | None = None, *, trusts: str = "Test CA", denied: Collection[str] = ()
    ) -> GrpcTransport:
        if not self.tls:
            return GrpcTransport(own)
        pair = certificate or node_pair(own.node_id, own.cluster_id)
        material = material_of(pair, trusts=trusts)
        is_denied: IsDenied = lambda one: one in denied  # noqa: E731
        return GrpcTransport(
            own,
            server_security=by_name(self._server(pair, is_denied)),
            nodes=NodeSecurity(auth=self.auth, tls=ClientTls(), material=lambda: material, is_denied=is_denied),
        )

    def _server(self, certificate: Pair, is_denied: IsDenied) -> ServerSecurity:
        auth = ClientAuth.REQUIRED if self.auth.has_certificates else ClientAuth.NONE
        return server_security(certificate, auth=auth, is_denied=is_denied)

    @property
    def listener(self) -> Listener:
        protocol = SSL if self.tls else PLAINTEXT
        return Listener(name="TEST", address=Address("127.0.0.1", 0), internal=True, security=protocol)


class Peers:
    """A handler that notes the nodes that have called, and from which host."""

    def __init__(self) -> None:
        self.seen: list[tuple[Peer | None, str]] = []

    async def handle(self, context: Context, request: Any) -> Any:
        self.seen.append((context.peer, context.client_host))
        match request:
            case BrokerHeartbeatRequest():
                return BrokerHeartbeatResponse()
            case ProbeRequest():
                return ProbeResponse(node_id=1, incarnation_id=bytes([1]) * 16)
        return VoteResponse()


@asynccontextmanager
async def serving(transport: GrpcTransport, listener: Listener) -> AsyncIterator[tuple[Peers, Address]]:
    peers = Peers()
    server = await transport.listen(listener, peers.handle)
    try:
        yield peers, server.listener.address
    finally:
        await server.close()


async def called(transport: GrpcTransport, address: Address) -> list[Any]:
    """What a unary call and one by a stream bring: an error code, or an exception."""
    connection = transport.connect(address, internal=True)
    found = await asyncio.gather(connection.call(VOTE, CALL_MS), connection.call(BEAT, CALL_MS), return_exceptions=True)
    await connection.close()
    return [one.error_code if not isinstance(one, BaseException) else one for one in found]


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
        async with serving(server.transport(identity(1)), server.listener) as (peers, address):
            assert await called(caller.transport(own), address) == [0, 0]
            assert peers.seen == [(own.peer, "127.0.0.1")] * 2

    run(scenario())


@pytest.mark.parametrize(("caller", "server"), STRANGERS, ids=repr)
def test_nodes_of_stages_that_are_no_neighbours_carry_nothing_out(caller: Stage, server: Stage) -> None:
    """What nobody can get in by leaving a stage out."""

    async def scenario() -> None:
        async with serving(server.transport(identity(1)), server.listener) as (peers, address):
            found = await called(caller.transport(identity(2)), address)
            refused = [isinstance(one, RpcError) or one == ErrorCode.CLUSTER_AUTHORIZATION_FAILED for one in found]
            assert all(refused) and peers.seen == [], found

    run(scenario())


OF_ANOTHER_NODE = node_pair(3)
OF_ANOTHER_CLUSTER = node_pair(2, "c2")
OF_NO_NODE = pair("node-2")
TWICE = leaf(ca(), "node-2", ip=("127.0.0.1",), uri=("quorumlog://c1/node/2", "quorumlog://c1/node/3"))


@pytest.mark.parametrize("server", [TO, ARRIVED], ids=repr)
@pytest.mark.parametrize(
    "certificate",
    [OF_ANOTHER_NODE, OF_ANOTHER_CLUSTER, OF_NO_NODE, TWICE],
    ids=["another node", "another cluster", "no node", "two nodes"],
)
@rule("security 1.14")
def test_a_certificate_speaks_for_its_node_only(certificate: Pair, server: Stage) -> None:
    """Also beside a proof of the secret, which every node of the cluster knows: a stolen disk is no other node."""

    async def scenario() -> None:
        async with serving(server.transport(identity(1)), server.listener) as (peers, address):
            for caller in (TO, ARRIVED):
                found = await called(caller.transport(identity(2), certificate), address)
                codes = {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INCONSISTENT_CLUSTER_ID}
                assert found[0] in codes, found
                assert isinstance(found[1], RpcError) or found[1] in codes, found
            assert peers.seen == []

    run(scenario())


@pytest.mark.parametrize("caller", [TO, ARRIVED], ids=repr)
@pytest.mark.parametrize(
    "certificate",
    [node_pair(1, "c2"), pair("node-1"), node_pair(1, issuer="Foreign CA"), leaf(ca(), "n", ip=("127.0.0.9",))],
    ids=["another cluster", "no node", "foreign authority", "another host"],
)
def test_a_node_calls_no_server_whose_certificate_is_not_of_its_cluster(certificate: Pair, caller: Stage) -> None:
    async def scenario() -> None:
        server = Stage(MTLS).transport(identity(1), certificate)
        async with serving(server, ARRIVED.listener) as (peers, address):
            found = await called(caller.transport(identity(2)), address)
            assert [type(one) for one in found] == [NotAuthenticated] * 2, found
            assert peers.seen == []

    run(scenario())


def test_a_denied_certificate_is_refused_on_both_sides_at_once() -> None:
    async def scenario() -> None:
        denied = fingerprint(node_pair(2).der)
        async with serving(ARRIVED.transport(identity(1), denied=(denied,)), ARRIVED.listener) as (peers, address):
            found = await called(ARRIVED.transport(identity(2)), address)
            assert found[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED and peers.seen == []
            assert (await called(ARRIVED.transport(identity(3)), address)) == [0, 0]
        async with serving(ARRIVED.transport(identity(2)), ARRIVED.listener) as (peers, address):
            found = await called(ARRIVED.transport(identity(1), denied=(denied,)), address)
            assert type(found[0]) is NotAuthenticated and "denied" in str(found[0]) and peers.seen == []

    run(scenario())


def test_a_stream_of_a_node_that_is_denied_meanwhile_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DENIED_POLL_S", 0.02)

    async def scenario() -> None:
        denied: list[str] = []
        async with serving(ARRIVED.transport(identity(1), denied=denied), ARRIVED.listener) as (peers, address):
            connection = ARRIVED.transport(identity(2)).connect(address, internal=True)
            gone = asyncio.Event()
            connection.on_closed(gone.set)
            assert (await connection.call(BEAT, CALL_MS)).error_code == 0
            await asyncio.sleep(0.1)
            assert not gone.is_set()
            denied.append(fingerprint(node_pair(2).der))
            await asyncio.wait([asyncio.ensure_future(gone.wait())], timeout=5)
            assert gone.is_set() and len(peers.seen) == 1
            await connection.close()

    run(scenario())


def test_only_a_refused_connection_is_proof_of_death() -> None:
    async def scenario() -> None:
        caller = ARRIVED.transport(identity(2))
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            dead = Address("127.0.0.1", sock.getsockname()[1])
        assert isinstance(await caller.probe(dead, 5_000), Refused)
        async with serving(ARRIVED.transport(identity(1)), ARRIVED.listener) as (_, address):
            assert isinstance(await caller.probe(address, 5_000), Answered)
        for stage, certificate in (
            (ARRIVED, node_pair(1, issuer="Foreign CA")),
            (OLD, None),
            (SEALED, node_pair(1, "c2")),
        ):
            async with serving(stage.transport(identity(1), certificate), stage.listener) as (_, address):
                assert isinstance(await caller.probe(address, 5_000), NoProof), stage

    run(scenario())


def test_a_node_that_is_restarted_into_the_next_stage_is_found_under_the_same_connection() -> None:
    """Both ways, at one address: clear, both, mtls, and back to both."""

    async def scenario() -> None:
        own = identity(2)
        connection = TO.transport(own).connect(Address("127.0.0.1", 0), internal=True)
        for stage in (OLD, TO, ARRIVED, TO, OLD):
            listener = Listener(
                name="TEST", address=connection.address, internal=True, security=stage.listener.security
            )
            async with serving(stage.transport(identity(1)), listener) as (peers, address):
                if connection.address.port == 0:
                    connection = TO.transport(own).connect(address, internal=True)
                for request in (VOTE, BEAT):
                    async with asyncio.timeout(10):
                        while True:
                            try:
                                answer = await connection.call(request, CALL_MS)
                            except RpcError:
                                await asyncio.sleep(0.05)  # gRPC's own pause after a broken connection
                                continue
                            if answer.error_code == 0:
                                break
                assert peers.seen == [(own.peer, "127.0.0.1")] * 2, stage
        await connection.close()

    run(scenario())


@pytest.mark.parametrize("first", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"], ids=["nothing", "half", "http"])
def test_a_connection_that_is_no_nodes_holds_nobody_up(first: bytes) -> None:
    async def scenario() -> None:
        async with serving(TO.transport(identity(1)), TO.listener) as (_, address):
            writers = []
            for _ in range(50):
                _, writer = await asyncio.open_connection(address.host, address.port)
                writer.write(first)
                writers.append(writer)
            assert await called(TO.transport(identity(2)), address) == [0, 0]
            for writer in writers:
                writer.transport.abort()

    run(scenario())
